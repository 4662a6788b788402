"""Differences: found exactly where they are."""

import pytest
from hypothesis import given

from setpoint.core.diff import diff
from setpoint.core.redaction import redact
from setpoint.core.schema.shape import Field
from setpoint.core.values.canonical import same
from setpoint.core.values.json_types import Json, JsonObject, Missing
from setpoint.core.values.paths import remove_at, set_at
from tests.laws.declared_specs import SHAPE, live_objects
from tests.laws.json_values import small_json

pytestmark = pytest.mark.laws


@given(small_json, small_json)
def test_there_is_no_difference_exactly_when_two_values_are_the_same(a: Json, b: Json) -> None:
    assert (diff(a, b) == ()) == same(a, b)


@given(small_json, small_json)
def test_applying_every_change_turns_before_into_after(before: Json, after: Json) -> None:
    result = before
    for change in diff(before, after):
        if isinstance(change.after, Missing):
            result = remove_at(result, change.path)
        else:
            result = set_at(result, change.path, change.after)

    assert same(result, after)


@given(small_json, small_json)
def test_differences_both_ways_are_the_same_fields_with_sides_swapped(a: Json, b: Json) -> None:
    there = {(one.path, repr(one.before), repr(one.after)) for one in diff(a, b)}
    back = {(one.path, repr(one.after), repr(one.before)) for one in diff(b, a)}

    assert there == back


@given(live_objects)
def test_a_typed_object_does_not_differ_from_itself_or_from_its_copy(live: JsonObject) -> None:
    assert diff(live, {**live}, Field(SHAPE)) == ()


@given(live_objects)
def test_redacting_a_value_without_secrets_returns_the_same_value(live: JsonObject) -> None:
    assert redact(live, Field(SHAPE)) is live
