"""What is declared in a soak: buckets and databases, how they can differ, and whether an object is as declared."""

import random
from dataclasses import dataclass
from typing import Any, Final

from soak.cloud import PROJECT, SoakCloud, object_name

INSTANCES: Final = tuple(f"soak-{number}" for number in range(20))
_CLASSES: Final = ("STANDARD", "NEARLINE", "COLDLINE")
_CHARSETS: Final = ("utf8mb4", "latin1", "utf8mb3")
_STORAGE, _SQL = "storage.cnrm.cloud.google.com", "sql.cnrm.cloud.google.com"


@dataclass(frozen=True, slots=True)
class Subject:
    """One resource, whatever its spec is just now."""

    kind: str
    name: str
    instance: str = ""

    @property
    def group(self) -> str:
        """Its API group."""
        return _STORAGE if self.kind == "StorageBucket" else _SQL

    @property
    def path(self) -> str:
        """Where its object is in the API."""
        if self.kind == "StorageBucket":
            return f"/storage/v1/b/{self.name}"
        return f"/sql/v1beta4/projects/{PROJECT}/instances/{self.instance}/databases/{self.name}"

    @property
    def object(self) -> str:
        """Its object's name in the counts."""
        return object_name(self.path)

    def manifest(self, draw: random.Random) -> dict[str, Any]:
        """A manifest with a spec that is drawn."""
        metadata: dict[str, Any] = {
            "name": self.name,
            "annotations": {
                "cnrm.cloud.google.com/project-id": PROJECT,
                "cnrm.cloud.google.com/reconcile-interval-in-seconds": "30",
            },
        }
        if self.kind == "StorageBucket":
            metadata["labels"] = {"team": draw.choice("abc")}
        spec = _bucket(draw) if self.kind == "StorageBucket" else _database(self.instance, draw)
        return {"apiVersion": f"{self.group}/v1beta1", "kind": self.kind, "metadata": metadata, "spec": spec}


def subjects(count: int) -> tuple[Subject, ...]:
    """Three buckets for each database."""
    return tuple(
        Subject("SQLDatabase", f"soak-{number}", INSTANCES[number % len(INSTANCES)])
        if number % 4 == 0
        else Subject("StorageBucket", f"soak-{number}")
        for number in range(count)
    )


def _bucket(draw: random.Random) -> dict[str, Any]:
    # No two specs are the same: labels alone could still be changed while a bucket is being deleted.
    rule = {"action": {"type": "Delete"}, "condition": {"age": draw.randrange(1, 10**6)}}
    spec: dict[str, Any] = {"location": "EU", "storageClass": draw.choice(_CLASSES), "lifecycleRule": [rule]}
    if draw.random() < 0.7:
        spec["versioning"] = {"enabled": draw.random() < 0.5}
    if draw.random() < 0.5:
        spec["website"] = {"mainPageSuffix": f"{draw.choice('xyz')}.html"}
    return spec


def _database(instance: str, draw: random.Random) -> dict[str, Any]:
    return {"instanceRef": {"external": instance}, "charset": draw.choice(_CHARSETS)}


def make_instances(cloud: SoakCloud) -> None:
    """The instances that the databases are in: they are not declared."""
    for name in INSTANCES:
        body = {"name": name, "databaseVersion": "MYSQL_8_0", "region": "europe-west1"}
        answer = cloud.call("POST", f"/sql/v1beta4/projects/{PROJECT}/instances", {**body, "settings": _TIER})
        assert answer.status == 200, answer
    cloud.advance(60)


_TIER: Final = {"tier": "db-custom-1-3840"}


def differences(subject: Subject, manifest: dict[str, Any], cloud: SoakCloud) -> list[str]:
    """The fields in which the object differs from the manifest; compared without any code of the product."""
    answer = cloud.call("GET", subject.path)
    if answer.status != 200:
        return [f"{subject.object}: GET answers {answer.status}"]
    live: Any = answer.body
    pairs = _bucket_pairs(manifest, live) if subject.kind == "StorageBucket" else _database_pairs(manifest, live)
    return [f"{subject.object}: {what} is {got!r}, not {wanted!r}" for what, wanted, got in pairs if wanted != got]


def _bucket_pairs(manifest: dict[str, Any], live: dict[str, Any]) -> list[tuple[str, Any, Any]]:
    spec, labels = manifest["spec"], manifest["metadata"]["labels"]
    rules = [rule["condition"]["age"] for rule in spec.get("lifecycleRule", [])]
    theirs = [rule["condition"].get("age") for rule in (live.get("lifecycle") or {}).get("rule", [])]
    return [
        ("lifecycle", rules, theirs),
        ("storageClass", spec["storageClass"], live["storageClass"]),
        ("versioning", spec.get("versioning", {}).get("enabled", False), _at(live, "versioning", "enabled", False)),
        ("website", _at(spec, "website", "mainPageSuffix", None), _at(live, "website", "mainPageSuffix", None)),
        ("labels", {**labels, "managed-by-cnrm": "true"}, live.get("labels", {})),
        ("requesterPays", False, _at(live, "billing", "requesterPays", False)),
    ]


def _database_pairs(manifest: dict[str, Any], live: dict[str, Any]) -> list[tuple[str, Any, Any]]:
    spelled = {"utf8mb3": "utf8"}
    wanted, got = manifest["spec"]["charset"], live["charset"].lower()
    return [("charset", spelled.get(wanted, wanted), spelled.get(got, got))]


def _at(tree: dict[str, Any], part: str, member: str, default: object) -> object:
    return (tree.get(part) or {}).get(member, default)
