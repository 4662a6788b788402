"""Fake controllers: they write the statuses of objects by the status subresource."""

from collections.abc import Mapping
from typing import Any, Final

from tests.cluster.access import Access

# By kind: the path of its API version, and its plural.
ENDPOINTS: Final[Mapping[str, tuple[str, str]]] = {
    "ConfigMap": ("/api/v1", "configmaps"),
    "Service": ("/api/v1", "services"),
    "Deployment": ("/apis/apps/v1", "deployments"),
    "StatefulSet": ("/apis/apps/v1", "statefulsets"),
    "DaemonSet": ("/apis/apps/v1", "daemonsets"),
    "Job": ("/apis/batch/v1", "jobs"),
    "DNSRecord": ("/apis/names.example.com/v1", "dnsrecords"),
}
_LONG_AGO: Final = "2026-01-01T00:00:00Z"


class FakeControllers:
    """The fake controllers of one namespace."""

    def __init__(self, access: Access, namespace: str) -> None:
        self._access = access
        self._namespace = namespace

    def path(self, target: str) -> str:
        """The API path of the object `KIND/NAME`."""
        kind, name = target.split("/")
        version, plural = ENDPOINTS[kind]
        return f"{version}/namespaces/{self._namespace}/{plural}/{name}"

    def get(self, target: str) -> Any:
        """The object; None when there is none."""
        answer = self._access.call("GET", self.path(target))
        assert answer.status in (200, 404), answer
        return answer.body if answer.status == 200 else None

    def delete(self, target: str) -> None:
        """Deletes it, and its dependants in the background."""
        answer = self._access.call("DELETE", f"{self.path(target)}?propagationPolicy=Background")
        assert answer.status in (200, 202), answer

    def create(self, tree: Any) -> None:
        """Creates an object, as another writer."""
        answer = self._access.call("POST", self.path(f"{tree['kind']}/").rstrip("/"), tree)
        assert answer.status == 201, answer

    def patch_status(self, target: str, **status: Any) -> None:
        """Patches members of the status; None removes one."""
        self._patch(f"{self.path(target)}/status", {"status": status})

    def edit(self, target: str, **members: Any) -> None:
        """Patches members of the object, as another writer."""
        self._patch(self.path(target), members)

    # --- Reports ------------------------------------------------------------------------------------------------------

    def report_address(self, target: str, address: str | None) -> None:
        """Sets the load balancer address of a Service; None removes it."""
        self.patch_status(target, loadBalancer={"ingress": [{"ip": address}] if address else None})

    def report_replicas(self, target: str, wanted: int, up: int | None = None, **more: Any) -> None:
        """The status of a Deployment or StatefulSet with `up` of the wanted replicas available."""
        up = wanted if up is None else up
        counts = {"replicas": wanted, "updatedReplicas": wanted, "readyReplicas": up, "availableReplicas": up}
        self.patch_status(target, **{**counts, "observedGeneration": self.generation(target), **more})

    def report_nodes(self, target: str, nodes: int, up: int) -> None:
        """The status of a DaemonSet that is available on `up` of so many nodes."""
        counts = {"desiredNumberScheduled": nodes, "currentNumberScheduled": nodes, "updatedNumberScheduled": nodes}
        scheduled = {**counts, "numberMisscheduled": 0, "numberReady": up, "numberAvailable": up}
        self.patch_status(target, **scheduled, observedGeneration=self.generation(target))

    def report_complete(self, target: str) -> None:
        """The status of a complete Job."""
        conditions = [condition("SuccessCriteriaMet", "True"), condition("Complete", "True")]
        times = {"startTime": _LONG_AGO, "completionTime": _LONG_AGO}
        self.patch_status(target, **times, active=None, succeeded=1, conditions=conditions)

    def report_failed(self, target: str, message: str) -> None:
        """The status of a Job that reached its backoff limit."""
        why = {"reason": "BackoffLimitExceeded", "message": message}
        conditions = [condition("FailureTarget", "True", **why), condition("Failed", "True", **why)]
        self.patch_status(target, startTime=_LONG_AGO, failed=1, conditions=conditions)

    def generation(self, target: str) -> int:
        """The generation of the object."""
        number = self.get(target)["metadata"]["generation"]
        assert isinstance(number, int)
        return number

    # --- Requests -----------------------------------------------------------------------------------------------------

    def _patch(self, path: str, body: Any) -> None:
        answer = self._access.call("PATCH", path, body)
        assert answer.status == 200, answer


def condition(type_: str, status: str, **more: Any) -> dict[str, Any]:
    """A condition with a fixed transition time."""
    return {"type": type_, "status": status, "lastTransitionTime": _LONG_AGO, **more}
