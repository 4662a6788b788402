"""Plays the controllers that no test server has: fills the statuses of objects, through their subresource."""

import http.client
import json
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from tests.cluster.access import Access

_PATIENCE: Final = 90.0
# Where the objects of a kind are: the address of its version, and their plural.
PLACES: Final[Mapping[str, tuple[str, str]]] = {
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
    """In one namespace, as the administrator. One connection serves all that is played."""

    def __init__(self, access: Access, namespace: str) -> None:
        self._access = access
        self._namespace = namespace
        self._connection: http.client.HTTPSConnection | None = None

    def close(self) -> None:
        """Ends the connection."""
        if self._connection is not None:
            self._connection.close()

    def path(self, target: str) -> str:
        """Where the object `KIND/NAME` is."""
        kind, name = target.split("/")
        version, plural = PLACES[kind]
        return f"{version}/namespaces/{self._namespace}/{plural}/{name}"

    def see(self, target: str) -> Any:
        """The object as it is; None when it is not there."""
        code, body = self._call("GET", self.path(target))
        assert code in (200, 404), body
        return body if code == 200 else None

    def delete(self, target: str) -> None:
        """Deletes it, and whatever it holds."""
        code, body = self._call("DELETE", f"{self.path(target)}?propagationPolicy=Background")
        assert code in (200, 202), body

    def make(self, tree: Any) -> None:
        """Creates an object, as another writer."""
        code, body = self._call("POST", self.path(f"{tree['kind']}/").rstrip("/"), tree)
        assert code == 201, body

    def report(self, target: str, **status: Any) -> None:
        """Members of the status; those that are None go."""
        self._patch(f"{self.path(target)}/status", {"status": status})

    def edit(self, target: str, **members: Any) -> None:
        """Members of the object, as another actor changes them."""
        self._patch(self.path(target), members)

    # --- Roles --------------------------------------------------------------------------------------------------------

    def give_address(self, target: str, address: str | None) -> None:
        """What a cloud's load balancers do for a Service; None takes the address away."""
        self.report(target, loadBalancer={"ingress": [{"ip": address}] if address else None})

    def bring_up(self, target: str, wanted: int, up: int | None = None, **more: Any) -> None:
        """What the controllers of Deployments and StatefulSets say when `up` of the wanted pods run."""
        up = wanted if up is None else up
        counts = {"replicas": wanted, "updatedReplicas": wanted, "readyReplicas": up, "availableReplicas": up}
        self.report(target, **{**counts, "observedGeneration": self.generation(target), **more})

    def run_on_nodes(self, target: str, nodes: int, up: int) -> None:
        """What the controller of DaemonSets says when it runs on `up` of so many nodes."""
        counts = {"desiredNumberScheduled": nodes, "currentNumberScheduled": nodes, "updatedNumberScheduled": nodes}
        scheduled = {**counts, "numberMisscheduled": 0, "numberReady": up, "numberAvailable": up}
        self.report(target, **scheduled, observedGeneration=self.generation(target))

    def complete(self, target: str) -> None:
        """What the controller of Jobs says in the end."""
        conditions = [condition("SuccessCriteriaMet", "True"), condition("Complete", "True")]
        times = {"startTime": _LONG_AGO, "completionTime": _LONG_AGO}
        self.report(target, **times, active=None, succeeded=1, conditions=conditions)

    def fail(self, target: str, message: str) -> None:
        """The same for a Job that has used up its attempts."""
        why = {"reason": "BackoffLimitExceeded", "message": message}
        conditions = [condition("FailureTarget", "True", **why), condition("Failed", "True", **why)]
        self.report(target, startTime=_LONG_AGO, failed=1, conditions=conditions)

    def generation(self, target: str) -> int:
        """Which edition of its spec the object has."""
        number = self.see(target)["metadata"]["generation"]
        assert isinstance(number, int)
        return number

    # --- The wire -----------------------------------------------------------------------------------------------------

    def _patch(self, path: str, body: Any) -> None:
        code, answer = self._call("PATCH", path, body)
        assert code == 200, answer

    def _call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        try:
            return self._ask(method, path, body)
        except (http.client.HTTPException, OSError):
            # The API server ended meanwhile: what is played can be played twice.
            self.close()
            self._connection = None
            return self._ask(method, path, body)

    def _ask(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        if self._connection is None:
            netloc, tls = urlsplit(self._access.url).netloc, self._access.tls()
            self._connection = http.client.HTTPSConnection(netloc, context=tls, timeout=_PATIENCE)
        sort = "application/merge-patch+json" if method == "PATCH" else "application/json"
        text = None if body is None else json.dumps(body)
        self._connection.request(method, path, text, {"Accept": "application/json", "Content-Type": sort})
        response = self._connection.getresponse()
        return response.status, json.loads(response.read())


def condition(type_: str, status: str, **more: Any) -> dict[str, Any]:
    """A condition as controllers write it; an irrelevant change is one of its time."""
    return {"type": type_, "status": status, "lastTransitionTime": _LONG_AGO, **more}
