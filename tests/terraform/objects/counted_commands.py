"""Commands of Terraform whose cluster is behind a proxy that counts requests."""

from dataclasses import dataclass
from typing import Final

from tests.terraform.objects.counting_proxy import CountingProxy
from tests.terraform.objects.workspace import Workspace

_HEAD: Final = """
terraform {
  required_providers {
    setpoint = { source = "setpoint/setpoint" }
  }
}
provider "setpoint" {
  cluster = { host = "URL" }
}
"""


@dataclass(frozen=True, slots=True)
class CountedCommands:
    """Commands of Terraform in a workspace, and the requests that each has sent."""

    workspace: Workspace
    proxy: CountingProxy

    def write(self, text: str) -> None:
        """Writes a configuration whose cluster is behind the proxy."""
        whole = (_HEAD.replace("URL", self.proxy.url) + text).replace("NAMESPACE", self.workspace.namespace)
        (self.workspace.folder / "main.tf").write_text(whole)
        self.workspace.project.initialise()

    def plan(self, *, has_changes: bool) -> list[str]:
        """The requests of a plan, which is kept."""
        outcome = self.workspace.plan("-out=plan")
        assert outcome.code == (2 if has_changes else 0), (outcome.diagnostics, outcome.errors)
        return self.proxy.taken()

    def apply(self, *what: str) -> list[str]:
        """The requests of an apply: of the kept plan, or of a new one."""
        outcome = self.workspace.project.run("apply", "-json", "-input=false", *(what or ("plan",)))
        errors = [one for one in outcome.diagnostics if one.severity == "error"]
        assert (outcome.code, errors) == (0, []), outcome.errors
        return self.proxy.taken()

    def unchanged(self) -> tuple[list[str], list[str], list[str]]:
        """The requests of a plan without changes, of the apply of it, and of an apply that plans by itself."""
        return self.plan(has_changes=False), self.apply(), self.apply("-auto-approve")
