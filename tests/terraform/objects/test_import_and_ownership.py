"""Objects that exist already: unmanaged, of another state, or with fields that another manager declares."""

import pytest

from tests.terraform.objects.workspace import A, B, Workspace, config_map, declared

BLUE = declared("a", config_map("settings", colour="blue"))
FORCED = declared("a", config_map("settings", colour="blue"), "force_conflicts = true")
UNMANAGED = {"metadata": {"name": "settings"}, "data": {"colour": "green", "size": "1"}}


def identifier(workspace: Workspace) -> str:
    return f"apiVersion=v1,kind=ConfigMap,namespace={workspace.namespace},name=settings"


def imported(workspace: Workspace) -> None:
    outcome = workspace.project.run("import", "-input=false", "-no-color", A, identifier(workspace))
    assert outcome.code == 0, outcome.errors


def test_an_unmanaged_object_is_an_error_at_plan_then_imported_and_managed(workspace: Workspace) -> None:
    workspace.make("configmaps", UNMANAGED)
    uid = workspace.uid("configmaps", "settings")
    summary, detail = workspace.refused(BLUE)

    assert summary == "The object is there already"
    assert f"terraform import ADDRESS '{identifier(workspace)}'" in detail
    imported(workspace)
    change = workspace.planned()[A]
    assert change.actions == ["update"]
    workspace.apply_planned()
    assert workspace.get("configmaps", "settings")["data"] == {"colour": "blue", "size": "1"}
    assert workspace.uid("configmaps", "settings") == uid
    workspace.destroyed()
    assert workspace.get("configmaps", "settings") is None


def test_an_object_is_destroyed_straight_after_its_import(workspace: Workspace) -> None:
    workspace.make("configmaps", UNMANAGED)
    workspace.write(BLUE)
    imported(workspace)
    workspace.destroyed()

    assert workspace.get("configmaps", "settings") is None


def test_an_import_block_writes_the_configuration_that_changes_nothing(workspace: Workspace) -> None:
    metadata = {**UNMANAGED["metadata"], "generateName": "settings-"}
    workspace.make("configmaps", {**UNMANAGED, "metadata": metadata})
    workspace.write(f'import {{\n  to = {A}\n  id = "{identifier(workspace)}"\n}}\n')
    planned = workspace.plan("-generate-config-out=generated.tf")

    assert planned.code == 2, planned.diagnostics
    assert planned.summary("plan") == (0, 1, 0)
    workspace.applied()
    assert workspace.get("configmaps", "settings")["data"] == UNMANAGED["data"]


@pytest.mark.parametrize("what", ["v1,kind=ConfigMap", "apiVersion=v1,kind=ConfigMap,namespace=NAMESPACE,name=none"])
def test_an_import_of_an_object_that_does_not_exist_is_an_error(workspace: Workspace, what: str) -> None:
    workspace.write(BLUE)
    outcome = workspace.project.run(
        "import", "-input=false", "-no-color", A, what.replace("NAMESPACE", workspace.namespace)
    )

    assert outcome.code == 1
    assert "No such" in outcome.errors


def test_an_object_of_another_state_is_refused_and_stays_as_it_is(workspace: Workspace) -> None:
    workspace.applied(BLUE)
    other = workspace.another("other")
    summary, detail = other.failed(declared("a", config_map("settings", colour="red")))

    assert summary == "The object is kept by another resource"
    assert "terraform state rm" in detail
    assert other.project.instances() == {}
    workspace.assert_no_changes()
    assert workspace.get("configmaps", "settings")["data"] == {"colour": "blue"}


def test_two_resources_of_one_object_are_refused(workspace: Workspace) -> None:
    summary, _ = workspace.failed(BLUE + declared("b", config_map("settings", size="1"), f"depends_on = [{A}]"))

    assert summary == "The object is kept by another resource"
    assert list(workspace.project.instances()) == [A]


def test_an_object_that_another_state_adopted_is_left_to_it(workspace: Workspace) -> None:
    workspace.applied(BLUE)
    other = workspace.another("other")
    other.write(declared("a", config_map("settings", colour="red")))
    imported(other)
    other.applied()
    workspace.destroyed()

    assert workspace.get("configmaps", "settings")["data"] == {"colour": "red"}
    other.assert_no_changes()


def test_a_field_that_another_tool_declares_is_named_at_plan_and_taken_by_force(workspace: Workspace) -> None:
    workspace.applied(BLUE)
    red = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"colour": "red"}}
    workspace.declare("configmaps", "settings", red, "helm")
    summary, detail = workspace.refused()

    assert summary == "Held by others"
    assert "data.colour is held by helm" in detail
    assert "force_conflicts = true" in detail
    assert "ignore_fields" in detail
    workspace.applied(FORCED)
    assert workspace.get("configmaps", "settings")["data"] == {"colour": "blue"}


def test_a_renamed_resource_keeps_its_object(workspace: Workspace) -> None:
    workspace.applied(BLUE)
    uid = workspace.uid("configmaps", "settings")
    workspace.applied(BLUE.replace('"a"', '"b"') + f"moved {{\n  from = {A}\n  to = {B}\n}}\n")

    assert workspace.uid("configmaps", "settings") == uid
