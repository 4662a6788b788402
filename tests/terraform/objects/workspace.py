"""A working directory of Terraform, and a namespace of a real API server."""

import http.client
import json
import textwrap
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from tests.cluster.access import Access
from tests.cluster.polling import until
from tests.terraform.command import Installation, Outcome, Project, finished

HEAD: Final = """
terraform {
  required_providers {
    setpoint = { source = "setpoint/setpoint" }
  }
}
provider "setpoint" {
  cluster = { config_path = "KUBECONFIG" }
}
"""
A: Final = "setpoint_object.a"
B: Final = "setpoint_object.b"
# Where the objects are that are not in the core group.
_GROUPS: Final = {"deployments": "apis/apps/v1", "jobs": "apis/batch/v1"}

_RIGHTS: Final = "rbac.authorization.k8s.io"


def declared(label: str, document: str, more: str = "") -> str:
    """A resource with a YAML document, and whatever else it says."""
    body = textwrap.indent(textwrap.dedent(document).strip(), "    ")
    rest = textwrap.indent(textwrap.dedent(more).strip(), "  ")
    return f'resource "setpoint_object" "{label}" {{\n  yaml_body = <<-EOT\n{body}\n  EOT\n{rest}\n}}\n'


def valued(label: str, manifest: str, more: str = "") -> str:
    """A resource with a value of HCL for a manifest."""
    return f'resource "setpoint_object" "{label}" {{\n  manifest = {manifest}\n  {more}\n}}\n'


def config_map(name: str, **data: str) -> str:
    """The document of a ConfigMap."""
    return f"""
    apiVersion: v1
    kind: ConfigMap
    metadata: {{name: {name}, namespace: NAMESPACE}}
    data: {json.dumps(data)}
    """


@dataclass(frozen=True, slots=True)
class Change:
    """What is planned for one resource."""

    actions: list[str]
    before: Any
    after: Any
    unknown: Any


@dataclass(frozen=True, slots=True)
class Workspace:
    """Writes configurations, runs Terraform, and reads and changes the cluster as another writer."""

    installation: Installation
    access: Access
    namespace: str
    folder: Path

    # --- Terraform ----------------------------------------------------------------------------------------------------

    @property
    def project(self) -> Project:
        """The folder, as Terraform sees it."""
        return Project(self.installation, self.folder)

    def write(self, text: str) -> None:
        """A configuration, ready to be applied; NAMESPACE in it is the one of this test."""
        whole = (HEAD + text).replace("NAMESPACE", self.namespace)
        (self.folder / "main.tf").write_text(whole.replace("KUBECONFIG", str(self.access.kubeconfig)))
        if not (self.folder / ".terraform").exists():
            outcome = finished(self.project.start("init", "-input=false", "-no-color"))
            assert outcome.code == 0, outcome.errors

    def plan(self, *more: str) -> Outcome:
        """`terraform plan`."""
        return self.project.plan(*more)

    def apply(self, *more: str) -> Outcome:
        """`terraform apply`."""
        return self.project.apply(*more)

    def another(self, name: str) -> "Workspace":
        """Another working directory of Terraform, with a state of its own."""
        folder = self.folder / name
        folder.mkdir()
        return Workspace(self.installation, self.access, self.namespace, folder)

    def applied(self, text: str | None = None, *more: str) -> None:
        """Applies a configuration, which has to succeed without a word and leave nothing to do."""
        if text is not None:
            self.write(text)
        outcome = self.apply(*more)
        assert (outcome.code, outcome.diagnostics) == (0, []), outcome.errors
        self.is_settled()

    def is_settled(self) -> None:
        """Nothing is left to do, and nothing to be told."""
        again = self.plan()
        assert (again.code, again.diagnostics, again.actions) == (0, [], {}), again.errors

    def destroyed(self) -> None:
        """Destroys everything, which has to succeed without a word."""
        outcome = self.project.destroy()
        assert (outcome.code, outcome.diagnostics) == (0, []), outcome.errors

    def planned(self, text: str | None = None, *more: str) -> dict[str, Change]:
        """What a plan would change, by address."""
        if text is not None:
            self.write(text)
        outcome = self.plan("-out=plan", *more)
        assert outcome.code in (0, 2), outcome.diagnostics
        output, _ = self.project.start("show", "-json", "plan").communicate()
        return {
            one["address"]: Change(
                one["change"]["actions"],
                one["change"]["before"],
                one["change"]["after"],
                one["change"]["after_unknown"],
            )
            for one in json.loads(output)["resource_changes"]
            if one["change"]["actions"] != ["no-op"]
        }

    def refused(self, text: str | None = None) -> tuple[str, str]:
        """The one error of a plan that fails, as its summary and its detail."""
        if text is not None:
            self.write(text)
        return self._error(self.plan())

    def failed(self, text: str | None = None) -> tuple[str, str]:
        """The same for an apply, which plans without an error."""
        if text is not None:
            self.write(text)
        outcome = self.apply()
        assert outcome.actions, outcome.diagnostics
        return self._error(outcome)

    def _error(self, outcome: Outcome) -> tuple[str, str]:
        errors = [one for one in outcome.diagnostics if one.severity == "error"]
        assert (outcome.code, len(errors)) == (1, 1), (outcome.code, errors, outcome.errors)
        return errors[0].summary, errors[0].detail

    def state(self, address: str = A) -> Mapping[str, Any]:
        """The attributes of a resource."""
        return self.project.attributes(address)

    # --- The cluster --------------------------------------------------------------------------------------------------

    def path(self, kind: str, name: str = "") -> str:
        """Where objects of a kind, by its plural, are."""
        where = f"/{_GROUPS.get(kind, 'api/v1')}/namespaces/{self.namespace}/{kind}"
        return f"{where}/{name}" if name else where

    def get(self, kind: str, name: str) -> Any:
        """An object; None when there is none."""
        answer = self.access.call("GET", self.path(kind, name))
        return None if answer.status == 404 else answer.body

    def uid(self, kind: str, name: str) -> str:
        """Which object of that name it is."""
        return str(self.get(kind, name)["metadata"]["uid"])

    def make(self, kind: str, tree: Mapping[str, Any]) -> None:
        """Creates an object, as another writer."""
        answer = self.access.call("POST", self.path(kind), tree)
        assert answer.status == 201, answer

    def edit(self, kind: str, name: str, change: Mapping[str, Any], manager: str = "kubectl-edit") -> None:
        """Changes an object, as another writer."""
        answer = self.access.call("PATCH", f"{self.path(kind, name)}?fieldManager={manager}", change)
        assert answer.status == 200, answer

    def report(self, kind: str, name: str, **status: Any) -> None:
        """Members of the status, as a controller writes them; those that are None go."""
        answer = self.access.call("PATCH", f"{self.path(kind, name)}/status", {"status": status})
        assert answer.status == 200, answer

    def give_address(self, name: str, ip: str | None) -> None:
        """What load balancers do for a Service; None takes the address away."""
        self.report("services", name, loadBalancer={"ingress": [{"ip": ip}] if ip else None})

    def allow(self, user: str) -> None:
        """Gives a user all rights in the namespace."""
        binding = {
            "metadata": {"name": user},
            "roleRef": {"apiGroup": _RIGHTS, "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"kind": "User", "name": user}],
        }
        path = f"/apis/{_RIGHTS}/v1/namespaces/{self.namespace}/rolebindings"
        assert self.access.call("POST", path, binding).status == 201

    def forbid(self, user: str) -> None:
        """Takes that back."""
        path = f"/apis/{_RIGHTS}/v1/namespaces/{self.namespace}/rolebindings/{user}"
        assert self.access.call("DELETE", path).status == 200

    def declare(self, kind: str, name: str, tree: Mapping[str, Any], manager: str) -> None:
        """Declares fields of an object by a server-side apply that forces them, as another tool would."""
        address = f"{self.path(kind, name)}?fieldManager={manager}&force=true"
        connection = http.client.HTTPSConnection(urlsplit(self.access.url).netloc, context=self.access.tls())
        connection.request("PATCH", address, json.dumps(tree), {"Content-Type": "application/apply-patch+yaml"})
        response = connection.getresponse()
        text = response.read().decode()
        connection.close()
        assert response.status in (200, 201), text

    @contextmanager
    def meanwhile(self, kind: str, name: str, action: Callable[[], None]) -> Iterator[None]:
        """Does something as soon as there is an object of that name, while Terraform is busy."""

        def act() -> None:
            until(lambda: self.get(kind, name) is not None)
            action()

        thread = threading.Thread(target=act)
        thread.start()
        yield
        thread.join()
