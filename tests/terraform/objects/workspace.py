"""A working directory of Terraform with the provider `setpoint`, and a namespace of a real API server."""

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

import yaml

from tests.cluster.access import Access
from tests.cluster.polling import until
from tests.terraform.command import Installation, Outcome, Project

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
# The API paths of kinds outside the core group.
_GROUPS: Final = {"deployments": "apis/apps/v1", "jobs": "apis/batch/v1"}

_RIGHTS: Final = "rbac.authorization.k8s.io"


def declared(label: str, document: str, more: str = "") -> str:
    """A `setpoint_object` with a YAML document, and more attributes."""
    body = textwrap.indent(textwrap.dedent(document).strip(), "    ")
    rest = textwrap.indent(textwrap.dedent(more).strip(), "  ")
    return f'resource "setpoint_object" "{label}" {{\n  yaml_body = <<-EOT\n{body}\n  EOT\n{rest}\n}}\n'


def valued(label: str, manifest: str, more: str = "") -> str:
    """A `setpoint_object` with an HCL value as its manifest."""
    return f'resource "setpoint_object" "{label}" {{\n  manifest = {manifest}\n  {more}\n}}\n'


def config_map(name: str, **data: str) -> str:
    """The document of a ConfigMap."""
    return f"""
    apiVersion: v1
    kind: ConfigMap
    metadata: {{name: {name}, namespace: NAMESPACE}}
    data: {json.dumps(data)}
    """


def define(access: Access, document: str) -> None:
    """Creates or changes a CustomResourceDefinition, and waits until its kind is served."""
    tree = yaml.safe_load(document)
    name, spec = tree["metadata"]["name"], tree["spec"]
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    answer = access.call("POST", path, tree)
    if answer.status == 409:
        answer = access.call("PATCH", f"{path}/{name}", {"spec": spec})
    assert answer.status in (200, 201), answer
    served = f"/apis/{spec['group']}/{spec['versions'][0]['name']}"
    until(lambda: access.call("GET", f"{served}/{spec['names']['plural']}").status == 200)


@dataclass(frozen=True, slots=True)
class Change:
    """The planned change of one resource."""

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
        """The project in this folder."""
        return Project(self.installation, self.folder)

    def write(self, text: str, providers: str = "") -> None:
        """Writes a configuration, ready to be applied; NAMESPACE in it stands for the namespace of this test.

        `providers` are lines for `required_providers`.
        """
        head = HEAD.replace("required_providers {", f"required_providers {{\n{providers}")
        whole = (head + text).replace("NAMESPACE", self.namespace)
        (self.folder / "main.tf").write_text(whole.replace("KUBECONFIG", str(self.access.kubeconfig)))
        self.project.initialise()

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
        """Applies a configuration: it has to succeed without diagnostics, and the next plan has no changes."""
        if text is not None:
            self.write(text)
        outcome = self.apply(*more)
        assert (outcome.code, outcome.diagnostics) == (0, []), outcome.diagnostics
        self.assert_no_changes()

    def apply_planned(self, *warnings: str) -> None:
        """Applies the plan of the last `planned`; it has to succeed, and the next plan has no changes."""
        outcome = self.project.run("apply", "-json", "-input=false", "plan")
        assert (outcome.code, {one.summary for one in outcome.diagnostics}) == (0, set(warnings)), outcome.errors
        self.assert_no_changes()

    def applied_in_the_end(self) -> None:
        """Applies what an apply with errors has left: it has to succeed, and the next plan has no changes."""
        outcome = self.apply()
        assert outcome.code == 0, [one for one in outcome.diagnostics if one.severity == "error"]
        self.assert_no_changes()

    def assert_no_changes(self) -> None:
        """Asserts that a plan has no changes and no diagnostics."""
        again = self.plan()
        assert (again.code, again.diagnostics, again.actions) == (0, [], {}), again.errors

    def destroyed(self) -> None:
        """Destroys everything: it has to succeed without diagnostics."""
        outcome = self.project.destroy()
        assert (outcome.code, outcome.diagnostics) == (0, []), outcome.errors

    def planned(self, text: str | None = None, *more: str) -> dict[str, Change]:
        """The changes of a plan, by address."""
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
        """The summary and the detail of the one error of a plan."""
        if text is not None:
            self.write(text)
        return self._error(self.plan())

    def failed(self, text: str | None = None) -> tuple[str, str]:
        """The same for an apply, whose plan has no error."""
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
        """The API path of the objects of a kind, by its plural; or of one of them."""
        where = f"/{_GROUPS.get(kind, 'api/v1')}/namespaces/{self.namespace}/{kind}"
        return f"{where}/{name}" if name else where

    def get(self, kind: str, name: str) -> Any:
        """A live object; None when it does not exist."""
        answer = self.access.call("GET", self.path(kind, name))
        return None if answer.status == 404 else answer.body

    def uid(self, kind: str, name: str) -> str:
        """The uid of an object."""
        return str(self.get(kind, name)["metadata"]["uid"])

    def make(self, kind: str, tree: Mapping[str, Any]) -> None:
        """Creates an object, as another writer."""
        answer = self.access.call("POST", self.path(kind), tree)
        assert answer.status == 201, answer

    def define(self, document: str) -> None:
        """Creates or changes a CustomResourceDefinition, and waits until its kind is served."""
        define(self.access, document)

    def edit(self, kind: str, name: str, change: Mapping[str, Any], manager: str = "kubectl-edit") -> None:
        """Changes an object, as another writer."""
        answer = self.access.call("PATCH", f"{self.path(kind, name)}?fieldManager={manager}", change)
        assert answer.status == 200, answer

    def report(self, kind: str, name: str, **status: Any) -> None:
        """Writes members of the status, as a controller does; None removes one."""
        answer = self.access.call("PATCH", f"{self.path(kind, name)}/status", {"status": status})
        assert answer.status == 200, answer

    def give_address(self, name: str, ip: str | None) -> None:
        """Sets the address of a Service, as a load balancer does; None removes it."""
        self.report("services", name, loadBalancer={"ingress": [{"ip": ip}] if ip else None})

    def context_of(self, user: str) -> str:
        """The context of a user's kubeconfig."""
        return str(yaml.safe_load(self.access.kubeconfig_of(user).read_text())["current-context"])

    def allow(self, user: str) -> None:
        """Gives a user all rights in the namespace."""
        binding = {
            "metadata": {"name": user},
            "roleRef": {"apiGroup": _RIGHTS, "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"kind": "User", "name": user}],
        }
        path = f"/apis/{_RIGHTS}/v1/namespaces/{self.namespace}/rolebindings"
        assert self.access.call("POST", path, binding).status == 201
        self.access.until_permitted(user, "*", "*.*", self.namespace)

    def forbid(self, user: str) -> None:
        """Revokes all rights of a user in the namespace."""
        path = f"/apis/{_RIGHTS}/v1/namespaces/{self.namespace}/rolebindings/{user}"
        assert self.access.call("DELETE", path).status == 200
        self.access.until_permitted(user, "*", "*.*", self.namespace, is_permitted=False)

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
        """Runs `action` in a thread as soon as the object exists, while Terraform is running."""

        def act() -> None:
            until(lambda: self.get(kind, name) is not None)
            action()

        thread = threading.Thread(target=act)
        thread.start()
        yield
        thread.join()
