"""A saved plan that is applied on another machine: as planned, or an error of ours."""

import shutil
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from tests.terraform.command import Outcome, Project
from tests.terraform.objects.admission import mutating
from tests.terraform.objects.workspace import Workspace, config_map, declared, valued
from tests.terraform.patches.configurations import make_config_map, patched

OUTDATED: Final = "The plan no longer holds"
EXISTS: Final = "The object is there already"
# The kubeconfig is the one that the environment names.
HEAD: Final = """
terraform {
  required_providers {
    setpoint = { source = "setpoint/setpoint" }
  }
}
provider "setpoint" {}
"""
NEVER: Final = 'wait_for = { field = "status.never", timeout = "1s" }'


@dataclass(frozen=True, slots=True)
class Machine:
    """A home directory, a kubeconfig and a working directory of their own."""

    project: Project

    @staticmethod
    def new(workspace: Workspace, folder: Path, *, working_directory: Path | None = None) -> "Machine":
        """A machine that has nothing yet, or a copy of the working directory of another one."""
        home, work = folder / "home", folder / "work"
        home.mkdir(parents=True)
        shutil.copy(workspace.access.kubeconfig, folder / "kubeconfig")
        if working_directory is not None:
            shutil.copytree(working_directory, work, symlinks=True)
        else:
            work.mkdir()
        more = {"XDG_CACHE_HOME": str(home), "KUBECONFIG": str(folder / "kubeconfig")}
        return Machine(Project(workspace.installation, work, more))

    @property
    def folder(self) -> Path:
        """The working directory."""
        return self.project.folder

    def write(self, text: str) -> None:
        """Writes a configuration."""
        (self.folder / "main.tf").write_text(HEAD + text)
        self.project.initialise()

    def plan(self) -> None:
        """Saves a plan."""
        outcome = self.project.plan("-out=plan")
        assert outcome.code == 2, outcome.diagnostics

    def apply_plan(self) -> dict[str, str]:
        """The summary of each error, by address: none is Terraform's own about this provider."""
        return _errors(self.project.run("apply", "-json", "-input=false", "plan"))


def _errors(outcome: Outcome) -> dict[str, str]:
    shown = [one for one in outcome.diagnostics if one.severity == "error"]
    assert [f"{one.summary}: {one.detail}" for one in shown if "rovider" in one.summary] == []
    return {one.address: one.summary for one in shown}


def _configuration(colour: str, namespace: str, *, is_second: bool) -> str:
    late = """{
      apiVersion = "v1"
      kind       = "ConfigMap"
      metadata   = { name = "late", namespace = "NAMESPACE" }
      data       = { colour = terraform_data.x.output }
    }"""
    text = f'resource "terraform_data" "x" {{ input = "{colour}" }}\n' + valued("late", late)
    text += "".join(declared(one, config_map(one, colour=colour)) for one in ("kept", "frozen", "mutated"))
    text += declared("pending", config_map("pending", colour="blue"), "" if is_second else NEVER)
    text += patched("p", "theirs", f'patch = {{ data = {{ colour = "{colour}" }} }}')
    if is_second:
        text += declared("new", config_map("new", colour=colour)) + declared("made", config_map("made"))
        text += declared("mutated_new", config_map("mutated-new", colour=colour))
        text += patched("q", "mutated-theirs", f'patch = {{ data = {{ colour = "{colour}" }} }}')
    return text.replace("NAMESPACE", namespace)


@pytest.fixture
def planned(workspace: Workspace, tmp_path: Path) -> Machine:
    """A machine with objects, one of which is kept after a wait that failed, and with a plan that changes them all."""
    for name in ("theirs", "mutated-theirs"):
        make_config_map(workspace, name, {"colour": "red"})
    first = Machine.new(workspace, tmp_path / "first")
    first.write(_configuration("blue", workspace.namespace, is_second=False))
    assert _errors(first.project.apply()) == {"setpoint_object.pending": "Wait timed out"}
    first.write(_configuration("yellow", workspace.namespace, is_second=True))
    first.plan()
    return first


def test_a_plan_is_applied_where_nothing_but_the_plan_came_from_another_machine(
    planned: Machine, workspace: Workspace, tmp_path: Path
) -> None:
    uid = workspace.uid("configmaps", "pending")
    second = Machine.new(workspace, tmp_path / "second")
    second.write(_configuration("yellow", workspace.namespace, is_second=True))
    for file in ("plan", "terraform.tfstate"):
        shutil.copy(planned.folder / file, second.folder / file)

    assert second.apply_plan() == {}
    again = second.project.plan()
    assert (again.code, again.actions) == (0, {}), again.diagnostics
    # The object whose wait had failed is the same one.
    assert workspace.uid("configmaps", "pending") == uid
    assert workspace.get("configmaps", "late")["data"] == {"colour": "yellow"}


def test_what_changed_meanwhile_is_told_where_the_working_directory_came_along(
    planned: Machine, workspace: Workspace, tmp_path: Path
) -> None:
    second = Machine.new(workspace, tmp_path / "second", working_directory=planned.folder)
    shutil.rmtree(tmp_path / "first")
    workspace.edit("configmaps", "frozen", {"immutable": True})
    workspace.edit("configmaps", "kept", {"data": {"colour": "theirs"}})
    workspace.make("configmaps", {"metadata": {"name": "made"}})
    with ExitStack() as policies:
        policies.enter_context(mutating(workspace.access, workspace.namespace, "mutated"))
        errors = second.apply_plan()

    assert errors == {
        "setpoint_object.frozen": OUTDATED,
        "setpoint_object.mutated": OUTDATED,
        "setpoint_object.mutated_new": OUTDATED,
        "setpoint_object.made": EXISTS,
        "setpoint_patch.q": OUTDATED,
    }
    assert workspace.get("configmaps", "kept")["data"] == {"colour": "yellow"}
