"""The API server of the benchmark, and the author and the other writers of the objects."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from benchmarks.fleet_server import install_kinds
from benchmarks.peers.collection_watch import CollectionWatch, WatchedObject
from benchmarks.peers.request_counts import AuditLog, api_server_arguments
from setpoint.core.schema.annotations import RESYNC_INTERVAL
from setpoint.engine.requeue import jittered_resync
from setpoint.engine.resource import ResourceRef
from tests.cluster.access import Access, write_account_kubeconfig
from tests.cluster.assets import Assets
from tests.cluster.server import Cluster, Settings

GROUP, VERSION, KIND, PLURAL = "setpoint.dev", "v1alpha1", "KubernetesObject", "kubernetesobjects"
# Of the JSON of a custom resource.
RESOURCE_BYTES: Final = 4_000
_FIELDS: Final = 20
_THREADS: Final = 8
_ACCOUNT: Final = "setpoint"


def manifest(name: str, edition: int = 0) -> dict[str, Any]:
    """A custom resource of 4 KB; an edition differs from another in one field."""
    data = {f"setting-{index:02}": f"{name} {index} ".ljust(175, "x") for index in range(_FIELDS)}
    config_map = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "labels": {"app.kubernetes.io/part-of": "benchmark"}},
        "data": {**data, "edition": str(edition)},
    }
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": KIND,
        "metadata": {"name": name},
        "spec": {"manifest": config_map},
    }


@contextmanager
def running_server(assets: Assets, folder: Path) -> Iterator["WorkServer"]:
    """A new API server with the kind; it is stopped at the end of the block."""
    with Cluster(assets, folder, Settings(arguments=api_server_arguments(folder))) as cluster:
        install_kinds(cluster.access)
        yield WorkServer(cluster.access)


class WorkServer:
    """The API server; each turn of a controller has a namespace of its own."""

    def __init__(self, access: Access) -> None:
        self.access = access
        self.audit_log = AuditLog(access.folder)

    def new_work(self, number: int) -> "Work":
        """A namespace for `number` resources."""
        namespace = self.access.new_namespace()
        kubeconfig = self.access.folder / f"{namespace}.kubeconfig"
        write_account_kubeconfig(self.access, namespace, _ACCOUNT, kubeconfig)
        return Work(self.access, namespace, kubeconfig, [f"item-{index:05}" for index in range(number)])


class Work:
    """The resources of one namespace. No request has a user agent, so that the audit log tells them apart."""

    def __init__(self, access: Access, namespace: str, kubeconfig: Path, names: list[str]) -> None:
        self.namespace = namespace
        self.kubeconfig = kubeconfig
        self.names = names
        self._access = access
        self._edition = 0
        self._resources = f"/apis/{GROUP}/{VERSION}/namespaces/{namespace}/{PLURAL}"
        self._config_maps = f"/api/v1/namespaces/{namespace}/configmaps"

    def create(self) -> None:
        """Creates all resources; returns when the status of each says that its ConfigMap is there."""
        self._until_settled(lambda name: self._call("POST", self._resources, manifest(name)))

    def edit(self) -> None:
        """Edits the spec of each resource; returns when the status of each says that its ConfigMap is as specified."""
        self._edition += 1
        patch = {"spec": {"manifest": {"data": {"edition": str(self._edition)}}}}
        self._until_settled(lambda name: self._call("PATCH", f"{self._resources}/{name}", patch))

    def drift(self, number: int) -> None:
        """Edits so many ConfigMaps, as another writer does; returns when each is as specified again."""
        names = self.names[:: len(self.names) // number][:number]
        versions: dict[str, int] = {}

        def drift(name: str) -> None:
            drifted = self._call("PATCH", f"{self._config_maps}/{name}", {"data": {"edition": "drifted"}})
            versions[name] = int(drifted["metadata"]["resourceVersion"])

        with CollectionWatch(self._access, self._config_maps, _version_and_edition) as found:
            self._for_each(drift, names)
            found.wait_until(
                lambda now: all(_is_corrected(now.get(name), versions[name], self._edition) for name in names)
            )

    def request_resync(self, seconds: float) -> None:
        """Gives each resource the annotation with which setpoint resyncs it once, `seconds` after its last step."""

        def annotate(name: str) -> None:
            factor = jittered_resync(ResourceRef(GROUP, KIND, self.namespace, name), 1.0)
            annotations = {RESYNC_INTERVAL: str(round(seconds / factor))}
            self._call("PATCH", f"{self._resources}/{name}", {"metadata": {"annotations": annotations}})

        self._for_each(annotate, self.names)

    def wrong_config_maps(self) -> list[str]:
        """The names of ConfigMaps that are missing or not as specified."""
        listed = self._call("GET", self._config_maps)["items"]
        found = {one["metadata"]["name"]: one["data"] for one in listed}
        wanted = {name: manifest(name, self._edition)["spec"]["manifest"]["data"] for name in self.names}
        return [name for name, data in wanted.items() if found.get(name) != data]

    def _until_settled(self, write: Callable[[str], Any]) -> None:
        with CollectionWatch(self._access, self._resources, _settled_generation) as settled:
            generations: dict[str, int] = {}

            def write_and_note(name: str) -> None:
                generations[name] = write(name)["metadata"]["generation"]

            self._for_each(write_and_note, self.names)
            settled.wait_until(lambda found: all(found.get(name, 0) >= generations[name] for name in self.names))

    def _for_each(self, action: Callable[[str], object], names: Iterable[str]) -> None:
        with ThreadPoolExecutor(_THREADS) as threads:
            for _ in threads.map(action, names):
                pass

    def _call(self, method: str, path: str, body: object = None) -> Any:  # noqa: ANN401 - a tree as the API server answers
        answer = self._access.call(method, path, body)
        if answer.status not in (200, 201):
            raise AssertionError(f"{method} {path}: {answer}")
        return answer.body


def _settled_generation(resource: WatchedObject) -> int:
    """The generation that the status says is settled; 0 for none."""
    is_ready = any(one.type == "Ready" and one.status == "True" for one in resource.status.conditions)
    return resource.status.observed_generation if is_ready else 0


def _version_and_edition(config_map: WatchedObject) -> tuple[int, str | None]:
    return int(config_map.metadata.resource_version), config_map.data.get("edition")


def _is_corrected(found: tuple[int, str | None] | None, drifted: int, edition: int) -> bool:
    return found is not None and found[0] > drifted and found[1] == str(edition)
