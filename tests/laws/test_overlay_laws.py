"""Overlay and plan: what holds for every spec, live state and policy."""

import copy

import pytest
from hypothesis import assume, example, given

from setpoint.core.decide import Decision
from setpoint.core.diff import diff
from setpoint.core.overlay import Declared, keeping_rule_at, overlay, overlay_at, rule_at
from setpoint.core.plan import DEFAULT_PLAN_OPTIONS, Plan, PlanOptions, plan_fields, retainable_paths, retained_fields
from setpoint.core.schema.policy import IGNORE, FieldPolicy, Rule
from setpoint.core.values.canonical import canonical, same
from setpoint.core.values.json_types import MISSING, Json, JsonObject, Missing
from setpoint.core.values.paths import Path, get_at
from setpoint.errors import ImmutableFieldChanged
from tests.laws.declared_specs import (
    LISTABLE,
    PASSWORD,
    SECRET,
    SHAPE,
    as_the_service_shows_it,
    declared,
    live_objects,
    policies,
    specified,
    written,
)

pytestmark = pytest.mark.laws

PROTECTED = tuple(Path.parse(f"spec.settings.{name}") for name in ("edition", "backup.enabled", "retention"))


def _plan(one: Declared, live: JsonObject | Missing, sending: PlanOptions = DEFAULT_PLAN_OPTIONS) -> Plan:
    try:
        return plan_fields(Decision.FIRST_LOOK, one, live, sending)
    except ImmutableFieldChanged:
        assume(False)
        raise


def _is_covered(path: Path, policy: FieldPolicy) -> bool:
    return any(listed.covers(path) for listed in policy.unmanaged)


@given(declared, live_objects)
def test_overlay_is_idempotent(one: Declared, live: JsonObject) -> None:
    once = overlay(one, live)

    assert same(overlay(one, once), once)


@given(declared)
def test_overlay_of_a_new_object_is_idempotent(one: Declared) -> None:
    once = overlay(one, MISSING)

    assert same(overlay(one, once), once)


@given(declared, live_objects)
def test_a_plan_after_its_own_execution_is_empty(one: Declared, live: JsonObject) -> None:
    _plan(one, live)

    after = as_the_service_shows_it(overlay(one, live))

    assert _plan(one, after).is_empty


@given(declared)
def test_a_plan_after_the_execution_of_a_create_is_empty(one: Declared) -> None:
    after = as_the_service_shows_it(overlay(one, MISSING))

    assert _plan(one, after).is_empty


@given(live_objects)
def test_an_empty_spec_under_ignore_unspecified_plans_nothing(live: JsonObject) -> None:
    silent = Declared({}, SHAPE, IGNORE)

    assert overlay(silent, live) is live
    assert _plan(silent, live) == Plan(Decision.FIRST_LOOK, (), _plan(silent, live).kept)


@given(declared, live_objects)
def test_no_input_is_ever_mutated(one: Declared, live: JsonObject) -> None:
    before = copy.deepcopy((one.tree, live))

    overlay(one, live)
    _plan(one, live)

    assert repr((one.tree, live)) == repr(before)


@given(declared, live_objects)
@example(
    Declared({"spec": {"settings": {"flags": []}}}, SHAPE, FieldPolicy(unmanaged=(LISTABLE[8],))),
    {"spec": {"settings": {"flags": [{"name": "x", "value": ""}]}}},
)
def test_a_specified_field_has_its_value_whatever_the_policy_unless_it_is_unmanaged(
    one: Declared, live: JsonObject
) -> None:
    wanted = overlay(one, live)
    listed = one.policy.unmanaged + one.policy.listed

    for path, value in specified(one.tree):
        # An empty list stays so, apart from the elements in which a path lists something.
        is_open = value == [] and any(path.covers(inside) for inside in listed)
        if not _is_covered(path, one.policy) and not is_open:
            found = get_at(wanted, path)
            assert found is not MISSING
            assert same(found, value)


@given(written, live_objects, policies)
def test_prune_of_an_overlay_never_changes_a_specified_field(
    tree: JsonObject, live: JsonObject, policy: FieldPolicy
) -> None:
    kept = overlay(Declared(tree, SHAPE, policy), live)
    pruned = overlay(Declared(tree, SHAPE), kept)

    for path, value in specified(tree):
        found = get_at(pruned, path)
        assert found is not MISSING
        assert same(found, value)


@given(declared, live_objects)
def test_an_unmanaged_field_keeps_its_live_value_whatever_the_spec_says(one: Declared, live: JsonObject) -> None:
    wanted = overlay(one, live)

    for path in one.policy.unmanaged:
        assert get_at(wanted, path) is get_at(live, path)


@given(declared, live_objects)
def test_leaving_a_field_out_never_gives_up_its_protection(one: Declared, live: JsonObject) -> None:
    wanted = overlay(one, live)

    for path in PROTECTED:
        specified_values = [get_at(one.tree, Path(path.steps[:depth])) for depth in range(1, len(path.steps) + 1)]
        if get_at(live, path) is not MISSING and specified_values[-1] is MISSING and None not in specified_values:
            assert get_at(wanted, path) is get_at(live, path)


@given(declared, live_objects)
@example(
    Declared({"spec": {"settings": {"flags": []}}}, SHAPE, FieldPolicy(listed=(LISTABLE[8],))),
    {"spec": {"settings": {"flags": [{"name": "x"}]}}},
)
def test_every_change_comes_from_the_spec_a_default_or_pruning(one: Declared, live: JsonObject) -> None:
    rules = {change.rule for change in _plan(one, live).changes}

    assert rules <= {Rule.SPEC, Rule.DEFAULT, Rule.PRUNED}


@given(declared, live_objects)
@example(
    Declared({}, SHAPE, FieldPolicy(listed=(LISTABLE[8],))),
    {"spec": {"settings": {"flags": [{"name": "x", "value": ""}]}}},
)
def test_every_kept_field_names_the_rule_that_kept_it(one: Declared, live: JsonObject) -> None:
    for kept in _plan(one, live).kept:
        assert kept.rule in {Rule.UNMANAGED, Rule.LISTED, Rule.IGNORED, Rule.PROTECTED, Rule.FIXED}
        assert kept.rule is keeping_rule_at(one, kept.path)


@given(declared, live_objects)
def test_a_listed_field_that_the_spec_leaves_out_keeps_its_live_value(one: Declared, live: JsonObject) -> None:
    wanted = overlay(one, live)

    for path in one.policy.listed:
        if all(get_at(one.tree, Path(path.steps[:depth])) is MISSING for depth in range(1, len(path.steps) + 1)):
            assert get_at(wanted, path) is get_at(live, path)


@given(declared, live_objects)
def test_a_plan_never_shows_a_write_only_value(one: Declared, live: JsonObject) -> None:
    data = canonical(_plan(one, live, PlanOptions(resend=(PASSWORD,))).to_data())

    assert SECRET.encode() not in data


@given(declared, live_objects)
def test_unchanged_parts_are_shared_with_the_live_object(one: Declared, live: JsonObject) -> None:
    wanted = overlay(one, live)

    for path in LISTABLE:
        was, now = get_at(live, path), get_at(wanted, path)
        if not isinstance(was, Missing) and not isinstance(now, Missing) and same(was, now):
            assert now is was


@given(declared, live_objects)
def test_a_retained_field_keeps_its_live_value_and_is_not_in_the_spec(one: Declared, live: JsonObject) -> None:
    after = overlay(one, live)
    named = [path for path, _ in specified(one.tree)]

    for kept in retained_fields(one, live):
        assert same(_value(after, kept.path), _value(live, kept.path))
        assert kept.before == kept.after == _value(live, kept.path)
        assert not any(path.covers(kept.path) for path in named)


@given(declared, live_objects)
def test_every_live_field_that_a_mark_keeps_is_retained(one: Declared, live: JsonObject) -> None:
    found = {change.path: rule_at(one, change.path) for change in diff({}, live, SHAPE.as_field)}

    marked = {path: rule for path, rule in found.items() if rule in (Rule.PROTECTED, Rule.FIXED, Rule.CHOSEN)}
    assert {kept.path: kept.rule for kept in retained_fields(one, live)} == marked


@given(declared, live_objects)
def test_one_value_of_an_overlay_is_that_of_the_whole(one: Declared, live: JsonObject) -> None:
    whole = overlay(one, live)

    for path in LISTABLE:
        if all(isinstance(step, str) for step in path.steps):
            found, expected = overlay_at(one, live, path), get_at(whole, path)
            assert isinstance(found, Missing) == isinstance(expected, Missing)
            assert isinstance(found, Missing) or isinstance(expected, Missing) or same(found, expected)


@given(written)
def test_what_an_author_takes_out_is_retained_if_it_was_retainable(tree: JsonObject) -> None:
    live = as_the_service_shows_it(overlay(Declared(tree, SHAPE), MISSING))

    retained = retained_fields(Declared({}, SHAPE), live)

    assert {one.path for one in retained} == set(retainable_paths(Declared(tree, SHAPE)))


def _value(tree: JsonObject, path: Path) -> Json:
    found = get_at(tree, path)
    assert not isinstance(found, Missing)
    return found
