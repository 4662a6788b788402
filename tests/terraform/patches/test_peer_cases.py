"""The table of a peer's cases, many of them in each run of Terraform."""

from collections.abc import Mapping
from typing import Any

import pytest

from setpoint.core.values.json_types import MISSING
from setpoint.core.values.paths import Path, get_at
from tests.cluster.access import Access
from tests.cluster.polling import until
from tests.terraform.objects.workspace import Workspace
from tests.terraform.patches.configurations import BACK, errors_of, make_config_map, managers_in, patched
from tests.terraform.patches.peer_cases import DIFFERS, INVALID, PATCHED, REFUSED, Case

_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
GADGETS = {
    "metadata": {"name": "gadgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"kind": "Gadget", "plural": "gadgets", "singular": "gadget"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": _OPEN}}},
            }
        ],
    },
}


@pytest.fixture
def gadgets(api_server: Access) -> None:
    """A kind of custom resources."""
    answer = api_server.call("POST", _DEFINITIONS, GADGETS)
    assert answer.status in (201, 409), answer
    until(lambda: api_server.call("GET", "/apis/example.com/v1/gadgets").status == 200)


def _name(workspace: Workspace, label: str) -> str:
    return f"{label}-{workspace.namespace[-8:]}"


def _make(workspace: Workspace, label: str, case: Case) -> None:
    body = {"apiVersion": case.version, "kind": case.kind, **case.tree}
    body["metadata"] = {"name": _name(workspace, label)}
    answer = workspace.access.call("POST", case.path(workspace.namespace, "") + "?fieldManager=helm", body)
    assert answer.status == 201, answer


def _get(workspace: Workspace, label: str, case: Case) -> dict[str, Any]:
    found: dict[str, Any] = workspace.access.call("GET", case.path(workspace.namespace, _name(workspace, label))).body
    return found


def _configuration(workspace: Workspace, patches: Mapping[str, str]) -> str:
    found = ""
    for label, patch in patches.items():
        case = PATCHED[label]
        text = patched(label, _name(workspace, label), patch, kind=case.kind, version=case.version)
        found += text.replace(', namespace = "NAMESPACE"', "") if case.is_cluster_scoped else text
    return found


def _differences(workspace: Workspace, label: str, expected: Mapping[str, Any]) -> dict[str, Any]:
    live = _get(workspace, label, PATCHED[label])
    values = {path: get_at(live, Path.parse(path)) for path in expected}
    shown = {path: None if value is MISSING else value for path, value in values.items()}
    return {path: value for path, value in shown.items() if value != expected[path]}


def _of_author(live: Mapping[str, Any]) -> dict[str, Any]:
    """What an author wrote of an object: no status, and of the metadata labels, annotations and finalizers."""
    metadata = {name: live["metadata"].get(name) for name in ("labels", "annotations", "finalizers", "uid")}
    return {**{name: value for name, value in live.items() if name not in ("metadata", "status")}, **metadata}


def test_patches_of_every_form_are_written_changed_put_back_and_given_up(workspace: Workspace, gadgets: None) -> None:
    for label, case in PATCHED.items():
        _make(workspace, label, case)
    before = {label: _of_author(_get(workspace, label, case)) for label, case in PATCHED.items()}
    workspace.applied(_configuration(workspace, {label: case.patch for label, case in PATCHED.items()}))
    wrong = {label: _differences(workspace, label, case.expected) for label, case in PATCHED.items()}
    assert {label: one for label, one in wrong.items() if one} == {}
    assert all(workspace.state(f"setpoint_patch.{label}")["projection"] is not None for label in PATCHED)

    second = {label: case.second or case.patch for label, case in PATCHED.items()}
    workspace.write(_configuration(workspace, second))
    outcome = workspace.apply()
    assert outcome.code == 0, outcome.diagnostics
    rewritten = {f"setpoint_patch.{label}" for label, case in PATCHED.items() if case.second and label != "yaml"}
    assert set(outcome.actions) == rewritten
    workspace.assert_no_changes()
    wrong = {label: _differences(workspace, label, case.second_expected) for label, case in PATCHED.items()}
    assert {label: one for label, one in wrong.items() if one} == {}

    edits = {label: case for label, case in PATCHED.items() if case.edit}
    for label, case in edits.items():
        path = case.path(workspace.namespace, _name(workspace, label)) + "?fieldManager=kubectl-edit"
        assert workspace.access.call("PATCH", path, case.edit).status == 200
    drifted = [_get(workspace, label, case)["metadata"]["resourceVersion"] for label, case in edits.items()]
    plan = workspace.plan()
    assert (plan.code, set(plan.actions)) == (2, {f"setpoint_patch.{label}" for label in edits}), plan.diagnostics
    read = [_get(workspace, label, case)["metadata"]["resourceVersion"] for label, case in edits.items()]
    assert read == drifted
    workspace.applied()
    wrong = {
        label: _differences(workspace, label, case.second_expected or case.expected) for label, case in edits.items()
    }
    assert {label: one for label, one in wrong.items() if one} == {}

    outcome = workspace.project.destroy()
    assert (outcome.code, {one.summary for one in outcome.diagnostics}) == (0, {BACK}), outcome.diagnostics
    after = {label: _get(workspace, label, case) for label, case in PATCHED.items()}
    assert {label: _of_author(one) for label, one in after.items()} == before
    assert [label for label, one in after.items() if managers_in(one)] == []


def test_a_wrong_patch_is_refused_before_a_cluster_is_asked(workspace: Workspace) -> None:
    workspace.write("".join(patched(label, "settings", patch) for label, (patch, _) in INVALID.items()))
    found = errors_of(workspace.plan())

    assert set(found) == {f"setpoint_patch.{label}" for label in INVALID}
    for label, (_, words) in INVALID.items():
        text = found[f"setpoint_patch.{label}"]
        assert [word for word in words if word not in text] == [], (label, text)


def test_a_patch_that_the_cluster_would_refuse_is_refused_by_the_plan(workspace: Workspace) -> None:
    for name in ("settings", "ours"):
        make_config_map(workspace, name, {"colour": "red"})
    workspace.edit("configmaps", "ours", {"metadata": {"annotations": {"setpoint.dev/terraform-id": "abc/1"}}})
    tree = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied"}, "data": {"colour": "red"}}
    workspace.declare("configmaps", "applied", tree, "argocd")
    web = PATCHED["number"]
    path = web.path(workspace.namespace, "")
    assert workspace.access.call("POST", path, {"metadata": {"name": "web"}, **web.tree}).status == 201
    versions = {"Deployment": "apps/v1", "Widget": "example.com/v1"}
    workspace.write(
        "".join(
            patched(label, name, patch, kind=kind, version=versions.get(kind, "v1"))
            for label, (name, kind, patch, _) in REFUSED.items()
        )
    )
    found = errors_of(workspace.plan())

    assert set(found) == {f"setpoint_patch.{label}" for label in REFUSED}
    for label, (_, _, _, words) in REFUSED.items():
        text = found[f"setpoint_patch.{label}"]
        assert [word for word in words if word not in text] == [], (label, text)
        assert "spec.manifest" not in text
    assert all(reason.endswith(".") for reason in DIFFERS.values())
