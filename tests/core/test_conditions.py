"""Conditions: upserts, transition times, and malformed data."""

from hypothesis import given
from hypothesis import strategies as st

from setpoint.core.conditions import (
    Condition,
    Conditions,
    condition_in,
    conditions_from_data,
    conditions_to_data,
    find_condition,
    remove_condition,
    set_condition,
)
from setpoint.core.values.json_types import MISSING, Json
from tests.laws.json_values import json_values

NOON = "2026-01-01T12:00:00Z"
LATER = "2026-01-01T13:00:00Z"
READY = Condition("Ready", "True", "UpToDate", "all is well", NOON)
STALLED = Condition("Stalled", "False", "Moving", "", NOON)

condition = st.builds(
    Condition,
    type=st.sampled_from("ABC"),
    status=st.sampled_from(("True", "False", "Unknown")),
    reason=st.sampled_from(("", "R", "S")),
    message=st.text(max_size=3),
    last_transition_time=st.sampled_from((NOON, LATER)),
    observed_generation=st.just(MISSING) | st.integers(0, 3),
)
conditions = st.lists(condition, unique_by=lambda one: one.type).map(tuple)


@given(conditions)
def test_reading_undoes_writing(some: Conditions) -> None:
    assert conditions_from_data(conditions_to_data(some)) == some


@given(conditions, condition)
def test_setting_twice_returns_the_same_tuple(some: Conditions, new: Condition) -> None:
    once = set_condition(some, new, NOON)

    assert set_condition(once, new, LATER) is once


@given(conditions, condition)
def test_the_transition_time_changes_exactly_when_the_status_does(some: Conditions, new: Condition) -> None:
    before = find_condition(some, new.type)
    after = find_condition(set_condition(some, new, "now"), new.type)

    assert after is not None
    flipped = before is None or before.status != new.status
    assert after.last_transition_time == ("now" if flipped or before is None else before.last_transition_time)


@given(conditions, condition)
def test_setting_one_leaves_the_others_and_their_order(some: Conditions, new: Condition) -> None:
    after = set_condition(some, new, LATER)

    assert remove_condition(after, new.type) == remove_condition(some, new.type)
    assert [one.type for one in after][: len(some)] == [one.type for one in some]


@given(st.lists(json_values) | json_values)
def test_any_data_can_be_read(data: Json) -> None:
    assert isinstance(conditions_from_data(data), tuple)


entries = st.fixed_dictionaries(
    {},
    optional={"type": st.sampled_from("ABC"), "status": st.sampled_from(("True", "False", "?")), "reason": st.text()},
)


@given(st.lists(entries | json_values) | json_values, st.sampled_from("ABC"))
def test_one_condition_is_read_as_among_all(data: Json, type_: str) -> None:
    assert condition_in(data, type_) == find_condition(conditions_from_data(data), type_)


def test_a_new_type_is_appended_with_the_current_time() -> None:
    after = set_condition((STALLED,), Condition("Ready", "True", "UpToDate", "all is well"), NOON)

    assert after == (STALLED, READY)


def test_a_new_message_changes_the_condition_and_not_its_time() -> None:
    after = set_condition((READY, STALLED), Condition("Ready", "True", "UpToDate", "still well"), LATER)

    assert after == (Condition("Ready", "True", "UpToDate", "still well", NOON), STALLED)


def test_a_missing_transition_time_is_filled_in() -> None:
    after = set_condition((Condition("Ready", "True"),), Condition("Ready", "True"), NOON)

    assert after == (Condition("Ready", "True", last_transition_time=NOON),)


def test_removing_an_absent_type_returns_the_same_tuple() -> None:
    some = (READY,)

    assert remove_condition(some, "Stalled") is some
    assert remove_condition(some, "Ready") == ()


def test_written_with_the_member_names_of_kubernetes() -> None:
    data = conditions_to_data((Condition("Ready", "False", "NotConverged", "spec.tier", NOON, 7), STALLED))

    assert data == [
        {
            "type": "Ready",
            "status": "False",
            "reason": "NotConverged",
            "message": "spec.tier",
            "lastTransitionTime": NOON,
            "observedGeneration": 7,
        },
        {"type": "Stalled", "status": "False", "reason": "Moving", "message": "", "lastTransitionTime": NOON},
    ]


def test_reading_drops_malformed_entries_and_keeps_the_first_of_each_type() -> None:
    data = [
        "Ready",
        {"type": "Ready"},
        {"type": "Ready", "status": "true"},
        {"type": "Ready", "status": True},
        {"type": 1, "status": "True"},
        {"type": "Ready", "status": "Unknown", "reason": 5, "observedGeneration": True},
        {"type": "Ready", "status": "True"},
    ]

    assert conditions_from_data(data) == (Condition("Ready", "Unknown"),)


def test_conditions_that_are_a_map_are_no_conditions() -> None:
    assert conditions_from_data({"Ready": {"type": "Ready", "status": "True"}}) == ()
