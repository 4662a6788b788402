"""Objects that were there before: of nobody, of another state, or with fields that another tool declares."""

import pytest

from tests.terraform.objects.stage import A, B, Stage, config_map, declared

BLUE = declared("a", config_map("settings", colour="blue"))
FORCED = declared("a", config_map("settings", colour="blue"), "force_conflicts = true")
FOREIGN = {"metadata": {"name": "settings"}, "data": {"colour": "green", "size": "1"}}


def identifier(stage: Stage) -> str:
    return f"apiVersion=v1,kind=ConfigMap,namespace={stage.namespace},name=settings"


def imported(stage: Stage) -> None:
    outcome = stage.project.run("import", "-input=false", "-no-color", A, identifier(stage))
    assert outcome.code == 0, outcome.errors


def test_a_foreign_object_is_refused_at_plan_then_imported_and_kept(stage: Stage) -> None:
    stage.make("configmaps", FOREIGN)
    uid = stage.uid("configmaps", "settings")
    summary, detail = stage.refused(BLUE)

    assert summary == "The object is there already"
    assert f"terraform import ADDRESS '{identifier(stage)}'" in detail
    imported(stage)
    change = stage.planned()[A]
    assert change.actions == ["update"]
    stage.applied()
    assert stage.get("configmaps", "settings")["data"] == {"colour": "blue", "size": "1"}
    assert stage.uid("configmaps", "settings") == uid
    stage.destroyed()
    assert stage.get("configmaps", "settings") is None


def test_an_object_is_destroyed_straight_after_its_import(stage: Stage) -> None:
    stage.make("configmaps", FOREIGN)
    stage.write(BLUE)
    imported(stage)
    stage.destroyed()

    assert stage.get("configmaps", "settings") is None


def test_an_import_block_writes_the_configuration_that_changes_nothing(stage: Stage) -> None:
    stage.make("configmaps", FOREIGN)
    stage.write(f'import {{\n  to = {A}\n  id = "{identifier(stage)}"\n}}\n')
    planned = stage.plan("-generate-config-out=generated.tf")

    assert planned.code == 2, planned.diagnostics
    assert planned.summary("plan") == (0, 1, 0)
    stage.applied()
    assert stage.get("configmaps", "settings")["data"] == FOREIGN["data"]


@pytest.mark.parametrize("what", ["v1,kind=ConfigMap", "apiVersion=v1,kind=ConfigMap,namespace=NAMESPACE,name=none"])
def test_an_import_of_nothing_says_so(stage: Stage, what: str) -> None:
    stage.write(BLUE)
    outcome = stage.project.run("import", "-input=false", "-no-color", A, what.replace("NAMESPACE", stage.namespace))

    assert outcome.code == 1
    assert "No such" in outcome.errors


def test_an_object_of_another_state_is_refused_and_stays_as_it_is(stage: Stage) -> None:
    stage.applied(BLUE)
    other = stage.another("other")
    summary, detail = other.failed(declared("a", config_map("settings", colour="red")))

    assert summary == "The object is kept by another resource"
    assert "terraform state rm" in detail
    assert other.project.instances() == {}
    stage.is_settled()
    assert stage.get("configmaps", "settings")["data"] == {"colour": "blue"}


def test_two_resources_of_one_object_are_refused(stage: Stage) -> None:
    summary, _ = stage.failed(BLUE + declared("b", config_map("settings", size="1"), f"depends_on = [{A}]"))

    assert summary == "The object is kept by another resource"
    assert list(stage.project.instances()) == [A]


def test_an_object_that_another_state_took_over_is_left_to_it(stage: Stage) -> None:
    stage.applied(BLUE)
    other = stage.another("other")
    other.write(declared("a", config_map("settings", colour="red")))
    imported(other)
    other.applied()
    stage.destroyed()

    assert stage.get("configmaps", "settings")["data"] == {"colour": "red"}
    other.is_settled()


def test_a_field_that_another_tool_declares_is_named_at_plan_and_taken_by_force(stage: Stage) -> None:
    stage.applied(BLUE)
    red = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"colour": "red"}}
    stage.declare("configmaps", "settings", red, "helm")
    summary, detail = stage.refused()

    assert summary == "Held by others"
    assert "data.colour is held by helm" in detail
    assert "force_conflicts = true" in detail
    assert "ignore_fields" in detail
    stage.applied(FORCED)
    assert stage.get("configmaps", "settings")["data"] == {"colour": "blue"}


def test_a_renamed_resource_keeps_its_object(stage: Stage) -> None:
    stage.applied(BLUE)
    uid = stage.uid("configmaps", "settings")
    stage.applied(BLUE.replace('"a"', '"b"') + f"moved {{\n  from = {A}\n  to = {B}\n}}\n")

    assert stage.uid("configmaps", "settings") == uid
