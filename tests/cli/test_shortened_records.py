"""`setpoint explain` of a record that was shortened: it says where, and how much is left out."""

from io import StringIO
from typing import Any

from rich.console import Console, RenderableType

from setpoint.cli.views.resources import description_of, explanation_of
from setpoint.core.decide import Decision
from setpoint.core.diff import FieldChange
from setpoint.core.plan import Action, Plan, PlannedWrite
from setpoint.core.schema.policy import Rule
from setpoint.core.step_record import bounded_record
from setpoint.core.values.json_types import Json
from setpoint.core.values.paths import Path
from setpoint.engine.resource import Resource
from setpoint.engine.state import StoredState
from setpoint.library.declared import DeclaredResource
from setpoint.library.inspection.records import ResourceDescription, StepExplanation


def _change(path: str, before: Json, after: Json, rule: Rule = Rule.SPEC) -> FieldChange:
    return FieldChange(Path.parse(path), before, after, rule)


def _resource(plan: Plan, **state: Any) -> Resource:
    record = bounded_record({"at": "2026-01-01T00:00:00Z", "trigger": "an edit", "cookie": {}, **plan.to_data()})
    status = StoredState(step=record, **state).into({}, with_cookie=True)
    metadata = {"name": "one", "namespace": "default"}
    return Resource({"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": metadata, "status": status})


def _text(view: RenderableType) -> list[str]:
    printed = StringIO()
    Console(file=printed, width=300).print(view)
    return printed.getvalue().splitlines()


def test_a_shortened_value_is_shown_as_such_and_the_fields_left_out_are_counted() -> None:
    changes = (_change("spec.text", "a" * 9000, 1), *(_change(f"spec.k{number}", 1, 2) for number in range(2000)))
    kept = tuple(_change(f"spec.kept{number}", 1, 1, Rule.IGNORED) for number in range(2000))
    plan = Plan(Decision.DRIFTED, (PlannedWrite(Action.UPDATE, "update", changes),), kept, kept, "in backoff")
    lines = _text(explanation_of(StepExplanation.of(_resource(plan))))

    assert lines[1:5] == [
        "2026-01-01T00:00:00Z, by an edit: drifted",
        "  wrote: update",
        f'    spec.text: "{"a" * 79}… (9002 bytes, SHA-256 83afbf79eeca…) → 1 (spec)',
        "    spec.k0: 1 → 2 (spec)",
    ]
    assert "    … and 1,983 more fields" in lines
    assert "  withheld: … and 1,983 more fields" in lines
    assert "  kept: … and 1,983 more fields" in lines


def test_the_children_and_fields_left_out_of_the_record_of_an_owner_are_counted() -> None:
    def write(number: int) -> PlannedWrite:
        name = f"ConfigMap/settings-{number}"
        changes = tuple(FieldChange(Path((name, "data", f"k{key}")), "old", "new") for key in range(500))
        return PlannedWrite(Action.UPDATE, name, changes)

    resource = _resource(Plan(Decision.INTENT_CHANGED, tuple(map(write, range(20)))))
    lines = _text(explanation_of(StepExplanation.of(resource)))

    assert lines[2:4] == ["~  ConfigMap/settings-0", '   ~ data.k0             "old" → "new"  the spec says so']
    assert "  … and 495 more fields of ConfigMap/settings-7" in lines
    assert "  … and 12 more children" in lines


def test_a_description_counts_the_server_defaults_that_are_not_stored() -> None:
    defaults = {f"spec.labels.k{number}": "0" * 16 for number in range(1000)}
    resource = DeclaredResource(_resource(Plan(Decision.IN_SYNC), server_defaults=defaults))
    lines = _text(description_of(ResourceDescription(resource)))

    shown = " ".join("".join(lines).split())
    assert "Server defaults spec.labels.k0, spec.labels.k1, " in shown
    assert "… and 946 more fields" in shown
