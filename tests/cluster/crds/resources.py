"""Requests for custom resources of our kinds."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any

from setpoint.core.unstructured import plural_name
from tests.cli.programs import DEADLINE
from tests.cluster.access import Access, Answer
from tests.cluster.polling import until
from tests.forking.processes import SETPOINT, Start, run

APIS = {
    "SQLInstance": "sql.cnrm.cloud.google.com/v1beta1",
    "SQLDatabase": "sql.cnrm.cloud.google.com/v1beta1",
    "SQLUser": "sql.cnrm.cloud.google.com/v1beta1",
    "StorageBucket": "storage.cnrm.cloud.google.com/v1beta1",
    **dict.fromkeys(("IAMPartialPolicy", "IAMPolicy", "IAMPolicyMember"), "iam.cnrm.cloud.google.com/v1beta1"),
    "IAMServiceAccountKey": "iam.cnrm.cloud.google.com/v1beta1",
    "TrusteeConfig": "confidentialcontainers.org/v1alpha1",
    "KbsConfig": "confidentialcontainers.org/v1alpha1",
    "KubernetesObject": "setpoint.dev/v1alpha1",
    "ReferenceGrant": "setpoint.dev/v1alpha1",
}
# A kind may not be served right after it has been defined.
_NOT_YET = (HTTPStatus.NOT_FOUND, HTTPStatus.TOO_MANY_REQUESTS)


def printed_definitions(*kinds: str) -> str:
    """The output of `setpoint crds` for these kinds, or for all."""
    environment = {**os.environ, "PYTHONUTF8": "1"}
    done = run(Start((SETPOINT, "crds", *kinds), Path.cwd(), environment), DEADLINE)
    assert done.returncode == 0, done.stderr
    return done.stdout


def manifest(kind: str, spec: Any, name: str = "one") -> dict[str, Any]:
    """A resource of that kind."""
    return {"apiVersion": APIS[kind], "kind": kind, "metadata": {"name": name}, "spec": spec}


@dataclass(frozen=True, slots=True)
class CustomResources:
    """Custom resources in one namespace; every method returns the response of the API server."""

    cluster: Access
    namespace: str

    def create(self, document: Any) -> Answer:
        """Creates a resource; unknown fields are refused."""
        return self._post(document, "?fieldValidation=Strict")

    def create_dry_run(self, document: Any) -> Answer:
        """Creates a resource by a dry run; unknown fields are refused."""
        return self._post(document, "?fieldValidation=Strict&dryRun=All")

    def apply_dry_run(self, document: Any) -> Answer:
        """A dry run of a server-side apply; unknown fields are refused."""
        path = f"{self.path_of(document)}?fieldManager=author&fieldValidation=Strict&dryRun=All"
        return self._until_served(
            lambda: self.cluster.call("PATCH", path, document, patch_type="application/apply-patch+yaml")
        )

    def change(self, made: Any, spec: Any) -> Answer:
        """Replaces the spec of a resource."""
        return self.cluster.call("PUT", self.path_of(made), {**made, "spec": spec})

    def replace_status(self, made: Any, status: Any) -> Answer:
        """Replaces the status of a resource."""
        return self.cluster.call("PUT", f"{self.path_of(made)}/status", {**made, "status": status})

    def read(self, document: Any) -> Any:
        """The resource as it is now, not the response."""
        return self.cluster.call("GET", self.path_of(document)).body

    def path_of(self, document: Any) -> str:
        """The API path of a resource."""
        return f"{self._all(document['kind'])}/{document['metadata']['name']}"

    def _post(self, document: Any, query: str) -> Answer:
        path = self._all(document["kind"]) + query
        return self._until_served(lambda: self.cluster.call("POST", path, document))

    def _until_served(self, call: Callable[[], Answer]) -> Answer:
        answers: list[Answer] = []

        def is_served() -> bool:
            answers[:] = [call()]
            return answers[0].status not in _NOT_YET

        until(is_served)
        return answers[0]

    def _all(self, kind: str) -> str:
        return f"/apis/{APIS[kind]}/namespaces/{self.namespace}/{plural_name(kind)}"
