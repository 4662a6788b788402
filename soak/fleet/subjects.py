"""What is declared: buckets, instances, databases and objects. Every edit is distinct from the one before."""

from dataclasses import dataclass
from typing import Any, Final

from soak.fleet.cloud import MultiEndpointCloud, Written

# That of the namespaces that tests make.
PROJECT: Final = "some-project"
# Where the databases are: it is not declared.
INSTANCE: Final = "there-already"
# More than the intents that are remembered: one that comes back again and again is contested, and held back.
_CHARSETS: Final = ("utf8mb4", "latin1", "utf8mb3", "ascii", "binary")
_SPELLED: Final = {"utf8": "utf8mb3"}
_API_VERSIONS: Final = {
    "StorageBucket": "storage.cnrm.cloud.google.com/v1beta1",
    "KubernetesObject": "setpoint.dev/v1alpha1",
}
_SQL: Final = "sql.cnrm.cloud.google.com/v1beta1"


@dataclass(frozen=True, slots=True)
class Subject:
    """One resource, in whichever of its editions; the first is what it is made with."""

    kind: str
    name: str

    @property
    def group(self) -> str:
        """Its API group."""
        return self._api_version.partition("/")[0]

    @property
    def is_in_cluster(self) -> bool:
        """Whether its object is in the cluster, and not in the cloud."""
        return self.kind == "KubernetesObject"

    @property
    def _api_version(self) -> str:
        return _API_VERSIONS.get(self.kind, _SQL)

    @property
    def path(self) -> str:
        """Where its object is in the cloud."""
        instances = f"/sql/v1beta4/projects/{PROJECT}/instances"
        match self.kind:
            case "StorageBucket":
                return f"/storage/v1/b/{self.name}"
            case "SQLInstance":
                return f"{instances}/{self.name}"
            case _:
                return f"{instances}/{INSTANCE}/databases/{self.name}"

    @property
    def collection(self) -> str:
        """Where objects like it are made."""
        return "/storage/v1/b" if self.kind == "StorageBucket" else self.path.rpartition("/")[0]

    def resources(self, namespace: str) -> str:
        """Where the cluster has resources like it."""
        return f"/apis/{self._api_version}/namespaces/{namespace}/{self.kind.lower()}s"

    def manifest(self, edition: int) -> dict[str, Any]:
        """What its author writes."""
        project = {} if self.is_in_cluster else {"cnrm.cloud.google.com/project-id": PROJECT}
        metadata = {"name": self.name, "annotations": project}
        return {"apiVersion": self._api_version, "kind": self.kind, "metadata": metadata, "spec": self.spec(edition)}

    def spec(self, edition: int) -> dict[str, Any]:
        """No two editions in a row are the same."""
        match self.kind:
            case "StorageBucket":
                rule = {"action": {"type": "Delete"}, "condition": {"age": edition + 1}}
                return {"location": "EU", "lifecycleRule": [rule]}
            case "SQLInstance":
                backups = {"enabled": True, "startTime": _time(edition)}
                settings = {"tier": "db-custom-1-3840", "backupConfiguration": backups}
                return {"databaseVersion": "MYSQL_8_0", "region": "europe-west1", "settings": settings}
            case "KubernetesObject":
                metadata, data = {"name": self.name}, {"edition": str(edition)}
                return {"manifest": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}}
            case _:
                return {"instanceRef": {"external": INSTANCE}, "charset": _CHARSETS[edition % len(_CHARSETS)]}

    def mark(self, edition: int) -> object:
        """The value that distinguishes an edition from its neighbours, in a write."""
        match self.kind:
            case "StorageBucket":
                return edition + 1
            case "SQLInstance":
                return _time(edition)
            case "KubernetesObject":
                return str(edition)
            case _:
                return _CHARSETS[edition % len(_CHARSETS)]

    def mark_in(self, body: dict[str, Any]) -> object:
        """The mark in a request to the cloud, or in a live object; None when it has none."""
        match self.kind:
            case "StorageBucket":
                rules = (body.get("lifecycle") or {}).get("rule") or [{}]
                return rules[0].get("condition", {}).get("age")
            case "SQLInstance":
                return body.get("settings", {}).get("backupConfiguration", {}).get("startTime")
            case "KubernetesObject":
                return body.get("data", {}).get("edition")
            case _:
                charset = str(body.get("charset")).lower()
                return _SPELLED.get(charset, charset)

    def is_made_by(self, written: Written) -> bool:
        """Whether a request asked for its object."""
        is_post = (written.method, written.path) == ("POST", self.collection)
        return is_post and isinstance(written.body, dict) and written.body.get("name") == self.name


def subjects(count: int) -> tuple[Subject, ...]:
    """One instance and one database in ten, objects, and buckets."""
    kinds = ("SQLInstance", "SQLDatabase", *("KubernetesObject",) * 3, *("StorageBucket",) * 5)
    return tuple(Subject(kinds[number % 10], f"fleet-{number}") for number in range(count))


def make_instance(cloud: MultiEndpointCloud) -> None:
    """The instance that databases are in."""
    settings = {"tier": "db-custom-1-3840"}
    body = {"name": INSTANCE, "databaseVersion": "MYSQL_8_0", "region": "europe-west1", "settings": settings}
    answer = cloud.call("POST", f"/sql/v1beta4/projects/{PROJECT}/instances", body)
    assert answer.status == 200, answer
    cloud.advance(60)
    cloud.written.clear()


def _time(edition: int) -> str:
    return f"{edition // 60 % 24:02}:{edition % 60:02}"
