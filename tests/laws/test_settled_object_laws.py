"""When an object counts as it was applied, and when an answer counts as recent."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.core.values.canonical import digest
from setpoint.core.values.paths import Path, set_at
from setpoint.kinds.kubernetes_object.spec import live_object
from setpoint.objects.recent_answers import RecentAnswer, RecentAnswers
from setpoint.objects.settled_objects import SettledObject, shown_digest
from tests.laws.json_values import json_values

pytestmark = pytest.mark.laws

KEYS = ("a", "b", "c", "d")
LOCATION = "v1 ConfigMap shop/settings @ own"
TEXTS = st.text(max_size=5)


def live_of(owned: dict[str, str], foreign: dict[str, str]) -> dict[str, Any]:
    """A ConfigMap of which one resource owns some keys, and another manager the others."""
    fields: dict[str, Any] = {"f:data": {f"f:{key}": {} for key in owned}}
    theirs: dict[str, Any] = {"f:data": {f"f:{key}": {} for key in foreign}}
    managed = [
        {"manager": "setpoint/default/tf-1", "operation": "Apply", "fieldsType": "FieldsV1", "fieldsV1": fields},
        {"manager": "other", "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": theirs},
    ]
    metadata = {"name": "settings", "namespace": "shop", "uid": "1", "resourceVersion": "7", "managedFields": managed}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {**foreign, **owned}}


def settled(live: dict[str, Any], shown: dict[str, str]) -> SettledObject:
    return SettledObject(LOCATION, digest(live_object(live)), shown_digest(shown))


@given(
    st.dictionaries(st.sampled_from(KEYS[:2]), TEXTS, min_size=1),
    st.dictionaries(st.sampled_from(KEYS[2:]), TEXTS),
    st.dictionaries(st.sampled_from(KEYS[2:]), TEXTS),
    json_values,
)
def test_what_others_write_and_report_leaves_an_object_as_applied(
    owned: dict[str, str], before: dict[str, str], after: dict[str, str], status: Any
) -> None:
    applied = settled(live_of(owned, before), owned)
    live = set_at({**live_of(owned, after), "status": status}, Path(("metadata", "resourceVersion")), "8")

    assert applied.is_as_applied(live, owned)


@given(
    st.dictionaries(st.sampled_from(KEYS), TEXTS, min_size=1),
    st.dictionaries(st.sampled_from(KEYS), TEXTS, min_size=1),
)
def test_another_value_of_a_declared_field_is_never_as_applied(before: dict[str, str], after: dict[str, str]) -> None:
    applied = settled(live_of(before, {}), before)

    assert applied.is_as_applied(live_of(after, {}), before) == (before == after)
    assert applied.is_as_applied(live_of(before, {}), after) == (before == after)


@given(st.sampled_from(("uid", "deletionTimestamp")), st.text(min_size=1, max_size=5).filter(lambda text: text != "1"))
def test_an_object_that_was_made_again_or_is_being_deleted_is_never_as_applied(name: str, text: str) -> None:
    live = live_of({"a": "b"}, {})

    assert not settled(live, {}).is_as_applied(set_at(live, Path(("metadata", name)), text), {})


class Steps:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


MOVES = st.one_of(
    st.tuples(st.just("keep"), st.sampled_from("xy")),
    st.tuples(st.just("write"), st.sampled_from("xy")),
    st.tuples(st.just("pass"), st.floats(0, 20)),
)


@given(st.lists(MOVES, max_size=30))
def test_an_answer_is_used_for_ten_seconds_at_most_and_never_once_its_object_is_written(
    moves: list[tuple[str, Any]],
) -> None:
    clock = Steps()
    answers, kept, written = RecentAnswers(clock), dict[str, RecentAnswer](), set[str]()
    for move, what in moves:
        if move == "pass":
            clock.now += what
        elif move == "write":
            answers.begin_write(what)
            written.add(what)
        else:
            kept[what] = RecentAnswer(clock.now, str(clock.now).encode())
            answers.keep(what, kept[what])

        for location in "xy":
            answer = kept.get(location)
            is_recent = answer is not None and clock.now - answer.at < 10 and location not in written
            assert answers.of(location) == (answer if is_recent else None)
