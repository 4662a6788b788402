"""Plans: ordered writes, what was kept and why, and what no write can do."""

from typing import Any

import pytest

from setpoint.core.decide import Decision, DecisionReason
from setpoint.core.diff import FieldChange
from setpoint.core.overlay import Declared
from setpoint.core.plan import (
    Action,
    Hold,
    Plan,
    PlannedWrite,
    PlanOptions,
    WriteStage,
    plan_delete,
    plan_fields,
    retainable_paths,
    retained_fields,
)
from setpoint.core.redaction import REDACTED
from setpoint.core.schema.policy import IGNORE, FieldPolicy
from setpoint.core.values.json_types import MISSING, Json, JsonObject
from setpoint.core.values.paths import Path
from setpoint.errors import ImmutableFieldChanged
from tests.laws.declared_specs import PASSWORD, SHAPE

LIVE: JsonObject = {
    "spec": {
        "region": "eu",
        "settings": {"tier": "a", "size": 1, "resize": True, "edition": "plus", "backup": {"enabled": True}},
    }
}


def _declared(settings: Json, policy: FieldPolicy | None = None) -> Declared:
    return Declared({"spec": {"settings": settings}}, SHAPE, policy or FieldPolicy())


def test_a_plan_names_each_field_its_values_and_the_rule() -> None:
    plan = plan_fields(Decision.INTENT_CHANGED, _declared({"tier": "b"}), LIVE)

    assert plan.to_data() == {
        "decision": "intent changed",
        "writes": [
            {
                "action": "update",
                "name": "update",
                "changes": [
                    {"path": "spec.settings.tier", "rule": "spec", "before": "a", "after": "b"},
                    {"path": "spec.settings.size", "rule": "pruned", "before": 1},
                ],
            }
        ],
        "kept": [
            {"path": "spec.region", "rule": "immutable", "before": "eu", "after": "eu"},
            {"path": "spec.settings.edition", "rule": "protected", "before": "plus", "after": "plus"},
            {"path": "spec.settings.backup.enabled", "rule": "protected", "before": True, "after": True},
        ],
    }


def test_an_empty_plan_still_lists_kept_fields() -> None:
    plan = plan_fields(Decision.DRIFTED, _declared({}, IGNORE), LIVE)

    assert plan.is_empty
    assert plan.changes == ()
    assert {change.rule.value for change in plan.kept} == {"ignore-unspecified-fields"}


def test_what_the_spec_leaves_out_and_a_mark_keeps_is_retained_with_its_rule() -> None:
    retained = retained_fields(_declared({"tier": "b", "edition": None}), LIVE)

    assert [(str(one.path), one.rule.value, one.before, one.after, one.immutable) for one in retained] == [
        ("spec.region", "immutable", "eu", "eu", False),
        ("spec.settings.backup.enabled", "protected", True, True, False),
    ]
    assert retained_fields(_declared({}, IGNORE), LIVE) == ()


def test_the_fields_that_would_be_retained_are_known_from_the_spec() -> None:
    declared = _declared({"tier": "b", "edition": "plus", "backup": {"enabled": True, "location": "eu"}})

    assert [str(path) for path in retainable_paths(declared)] == [
        "spec.settings.edition",
        "spec.settings.backup.enabled",
    ]


@pytest.mark.parametrize("location", ["eu", "e" * 5_000, "\ud800", 2**80, [2**80]])
def test_a_field_is_retained_whatever_its_value_is(location: Any) -> None:
    settings = {"backup": {"enabled": True, "location": "eu"}, "edition": location}
    live = {"spec": {"region": location, "settings": settings}}

    for _ in range(2):
        retained = retained_fields(_declared({}), live)

        assert {str(one.path): one.after for one in retained} == {
            "spec.region": location,
            "spec.settings.edition": location,
            "spec.settings.backup.enabled": True,
        }


def test_a_plan_as_json_says_what_its_decision_does_not() -> None:
    retained = retained_fields(_declared({"backup": None, "edition": None}), LIVE)
    plan = Plan(Decision.FIRST_LOOK, reason=DecisionReason.ADOPTED, retained=retained)

    assert plan.to_data() == {
        "decision": "first look",
        "writes": [],
        "kept": [],
        "reason": "adopted",
        "retained": [{"path": "spec.region", "rule": "immutable", "before": "eu", "after": "eu"}],
    }
    assert plan.is_adoption


@pytest.mark.parametrize(
    ("plan", "is_fast"),
    [
        (Plan(Decision.IN_SYNC), True),
        (Plan(Decision.IN_SYNC, reason=DecisionReason.COMPARED), False),
        (Plan(Decision.DIFFERS, reason=DecisionReason.COMPARED), False),
    ],
)
def test_only_matching_digests_are_the_fast_path(plan: Plan, is_fast: bool) -> None:
    assert plan.is_fast_path is is_fast
    assert not plan.is_adoption


def test_stages_are_sent_first_and_in_order_with_their_fields_only() -> None:
    options = PlanOptions(
        stages=(
            WriteStage("edition", (Path.parse("spec.settings.edition"),)),
            WriteStage("backup", (Path.parse("spec.settings.backup"),)),
            WriteStage("tier", (Path.parse("spec.settings.tier"),)),
        )
    )
    declared = _declared({"tier": "b", "size": 2, "edition": "basic"})

    plan = plan_fields(Decision.INTENT_CHANGED, declared, LIVE, options)

    assert [(write.name, [str(one.path) for one in write.changes]) for write in plan.writes] == [
        ("edition", ["spec.settings.edition"]),
        ("tier", ["spec.settings.tier"]),
        ("update", ["spec.settings.size"]),
    ]
    assert len(plan.changes) == 3


def test_a_secret_that_is_sent_again_is_planned_and_redacted() -> None:
    declared = Declared({"spec": {"password": "hunter2"}}, SHAPE, IGNORE)

    plan = plan_fields(Decision.INTENT_CHANGED, declared, LIVE, PlanOptions(resend=(PASSWORD,)))

    assert [(str(one.path), one.before, one.after) for one in plan.changes] == [("spec.password", REDACTED, REDACTED)]


def test_a_change_to_an_immutable_field_is_refused_and_named() -> None:
    declared = Declared({"spec": {"region": "us"}}, SHAPE, IGNORE)

    with pytest.raises(ImmutableFieldChanged, match=r'spec\.region cannot change from "eu" to "us": fixed') as caught:
        plan_fields(Decision.INTENT_CHANGED, declared, LIVE)

    assert caught.value.paths == ("spec.region",)


def test_removing_an_immutable_field_is_refused_too() -> None:
    with pytest.raises(ImmutableFieldChanged, match='from "eu" to nothing'):
        plan_fields(Decision.INTENT_CHANGED, Declared({"spec": {"region": None}}, SHAPE, IGNORE), LIVE)


def test_a_plan_as_json_has_stable_member_names() -> None:
    declared = Declared({"spec": {"settings": {"size": 2}}}, SHAPE, IGNORE)

    plan = plan_fields(Decision.INTENT_CHANGED, declared, LIVE)

    assert plan.to_data() == {
        "decision": "intent changed",
        "writes": [
            {
                "action": "update",
                "name": "update",
                "changes": [{"path": "spec.settings.size", "rule": "spec", "before": 1, "after": 2}],
            }
        ],
        "kept": [
            {"path": "spec.region", "rule": "ignore-unspecified-fields", "before": "eu", "after": "eu"},
            {"path": "spec.settings.tier", "rule": "ignore-unspecified-fields", "before": "a", "after": "a"},
            {"path": "spec.settings.edition", "rule": "ignore-unspecified-fields", "before": "plus", "after": "plus"},
            {
                "path": "spec.settings.backup.enabled",
                "rule": "ignore-unspecified-fields",
                "before": True,
                "after": True,
            },
        ],
    }


def test_a_plan_as_json_says_which_change_is_immutable() -> None:
    change = FieldChange(Path.parse("spec.region"), "eu", "us", immutable=True)

    plan = Plan(Decision.INTENT_CHANGED, (PlannedWrite(Action.REPLACE, "replace", (change,)),))

    assert plan.to_data() == {
        "decision": "intent changed",
        "writes": [
            {
                "action": "replace",
                "name": "replace",
                "changes": [{"path": "spec.region", "rule": "spec", "before": "eu", "after": "us", "immutable": True}],
            }
        ],
        "kept": [],
    }


def test_a_create_is_one_write_with_everything_in_it() -> None:
    plan = plan_fields(Decision.CREATE, Declared({"spec": {"region": "us"}}, SHAPE), MISSING)

    assert [(write.action, [str(one.path) for one in write.changes]) for write in plan.writes] == [
        (Action.CREATE, ["spec.region"])
    ]


def test_a_delete_is_one_write() -> None:
    assert plan_delete(Decision.IN_SYNC) == Plan(Decision.IN_SYNC, (PlannedWrite(Action.DELETE, "delete"),))


def test_an_unmanaged_value_that_the_spec_contradicts_is_shown_as_kept() -> None:
    policy = FieldPolicy(unmanaged=(Path.parse("spec.settings.tier"),))

    plan = plan_fields(Decision.FIRST_LOOK, _declared({"tier": "mine", "size": 1}, policy), LIVE)

    assert [(str(one.path), one.before, one.rule.value) for one in plan.kept][1] == (
        "spec.settings.tier",
        "a",
        "unmanaged",
    )


def test_a_plan_that_is_held_says_what_it_would_write_and_why_it_does_not() -> None:
    plan = plan_fields(Decision.DRIFTED, _declared({"tier": "b", "size": 1}), LIVE).hold(Hold.OBSERVED, "not now")

    assert plan.is_empty
    assert plan.held is Hold.OBSERVED
    assert {name: plan.to_data()[name] for name in ("writes", "withheld", "because")} == {
        "writes": [],
        "withheld": [{"path": "spec.settings.tier", "rule": "spec", "before": "a", "after": "b"}],
        "because": "not now",
    }
