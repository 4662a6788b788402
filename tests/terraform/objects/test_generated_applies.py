"""For all resources, unknown values and edits between a plan and its apply, the real Terraform finds nothing wrong.

The number of batches is that of the environment variable `SETPOINT_GENERATED_APPLIES`.
"""

import os
from dataclasses import dataclass, replace
from typing import Any, Final

import pytest

from tests.terraform.command import Outcome
from tests.terraform.objects.generated_cases import Case, cases, configuration, tree
from tests.terraform.objects.manifests import DEFINITION
from tests.terraform.objects.workspace import Workspace

BATCHES: Final = int(os.environ.get("SETPOINT_GENERATED_APPLIES", "1"))
# So many resources are in one configuration.
COUNT: Final = 28
PLURALS: Final = {"Patch": "configmaps", "Deployment": "deployments", "Record": "records", "Namespace": "namespaces"}
# Every error of ours that other writers and late values may lead to.
OURS: Final = {
    "The plan no longer holds",
    "The object is there already",
    "The object is kept by another resource",
    "Held by others",
    "Management conflict",
    "Another field manager applies the field",
    "There is no such target",
    "The target was deleted",
    "The target was made anew",
}


@dataclass(frozen=True, slots=True)
class OtherWriters:
    """Other writers of the objects."""

    workspace: Workspace

    def path(self, case: Case, name: str = "") -> str:
        """The API path of an object of a case, or of all of its kind."""
        namespace, plural = self.workspace.namespace, PLURALS.get(case.kind, f"{case.kind.lower()}s")
        if case.kind == "Namespace":
            return f"/api/v1/namespaces/{name}"
        group = f"/apis/{namespace}.example.com/v1" if case.kind == "Record" else ""
        group = "/apis/apps/v1" if case.kind == "Deployment" else group or "/api/v1"
        return f"{group}/namespaces/{namespace}/{plural}" + (f"/{name}" if name else "")

    def edit(self, how: str, case: Case, step: int) -> None:
        """Does something to the object of a step, or makes it; whatever the API server makes of that."""
        name = case.name(step, self.workspace.namespace)
        path, body = self.path(case, name), self._body(case, step, name)
        call = self.workspace.access.call
        match how:
            case "update":
                call("PATCH", f"{path}?fieldManager=kubectl-edit", {"metadata": {"labels": {"tier": "theirs"}}})
            case "add":
                call("PATCH", f"{path}?fieldManager=kubectl-edit", {"metadata": {"annotations": {"theirs": "yes"}}})
            case "declare":
                body["metadata"]["labels"] = {"tier": "declared"}
                self._declare(path, body)
            case "delete" | "remake":
                call("DELETE", path)
                if how == "remake":
                    call("POST", self.path(case), body)
            case _:
                pass

    def _declare(self, path: str, body: dict[str, Any]) -> None:
        if self.workspace.access.call("GET", path).status == 200:
            where = f"{path}?fieldManager=another-tool&force=true"
            self.workspace.access.call("PATCH", where, body, patch_type="application/apply-patch+yaml")

    def give_up(self, case: Case, *, is_failed: bool) -> None:
        """Deletes what may be another writer's, or takes its fields from it."""
        is_held = is_failed or case.steps[-1].between in ("declare", "remake")
        for step in range(2):
            name = case.name(step, self.workspace.namespace)
            if is_held and case.kind == "Namespace":
                self._declare(self.path(case, name), {"apiVersion": "v1", "kind": "Namespace"})
            elif is_held:
                self.edit("delete", case, step)
            self.make_target(case, step)

    def make_target(self, case: Case, step: int) -> None:
        """Makes the target of a patch, unless it exists."""
        if case.kind == "Patch":
            name = case.name(step, self.workspace.namespace)
            self.workspace.access.call("POST", self.path(case), self._body(case, step, name))

    def _body(self, case: Case, step: int, name: str) -> dict[str, Any]:
        if case.kind == "Patch":
            return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"kept": "yes"}}
        steps = tuple(replace(one, unknown=frozenset[str]()) for one in case.steps)
        return tree(replace(case, steps=steps), step, self.workspace.namespace)


def _errors(outcome: Outcome) -> dict[str, str]:
    """The summary of each error, by address: every one is ours."""
    shown = [one for one in outcome.diagnostics if one.severity == "error"]
    assert [f"{one.address}: {one.summary}: {one.detail}" for one in shown if one.summary not in OURS] == []
    return {one.address: one.summary for one in shown}


@pytest.mark.parametrize("seed", range(BATCHES))
def test_each_resource_is_applied_as_planned_or_an_error_of_ours_says_why_not(workspace: Workspace, seed: int) -> None:
    all_cases, writers = cases(seed, COUNT), OtherWriters(workspace)
    workspace.define(DEFINITION.replace("GROUP", f"{workspace.namespace}.example.com"))
    failed: dict[str, str] = {}
    for step in range(2):
        for case in all_cases:
            writers.make_target(case, step)
            if step:
                writers.edit("delete" if case.address in failed else case.steps[step].before, case, step - 1)
            writers.make_target(case, 0)
        workspace.write(configuration(all_cases, step, workspace.namespace))
        planned = workspace.plan("-out=plan")
        assert (planned.code, _errors(planned)) == (2, {}), planned.errors
        for case in all_cases:
            writers.edit(case.steps[step].between, case, max(step - 1, 0))
        failed = _errors(workspace.project.run("apply", "-json", "-input=false", "plan"))
        assert {
            one.address: failed[one.address] for one in all_cases if one.address in failed and one.must_apply(step)
        } == {}

    # What other writers made or hold is given up: then everything is applied, and nothing is left to do.
    for case in all_cases:
        writers.give_up(case, is_failed=case.address in failed)
    workspace.applied_in_the_end()
    assert workspace.project.destroy().code == 0
