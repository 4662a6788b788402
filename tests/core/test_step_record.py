"""The record of a step keeps to 4,096 bytes, whatever the plan."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.core.decide import Decision, DecisionReason
from setpoint.core.diff import FieldChange
from setpoint.core.plan import Action, Hold, Plan, PlannedWrite
from setpoint.core.schema.policy import Rule
from setpoint.core.step_record import (
    OPERATION,
    bounded_record,
    operation_text,
    paths_digest,
    plain_size,
    short_path,
    withheld_paths,
    written_paths,
)
from setpoint.core.values.canonical import canonical
from setpoint.core.values.json_types import MISSING, Json, JsonObject
from setpoint.core.values.paths import Path, PathStep, Selector
from tests.laws.json_values import json_values

COOKIES: Json = {"before": "a" * 64 + "/" + "b" * 64, "after": None}


def record(plan: Plan, trigger: str = "an edit") -> JsonObject:
    return {"at": "2026-01-01T00:00:00Z", "trigger": trigger, "cookie": COOKIES, **plan.to_data()}


def update(*changes: FieldChange) -> PlannedWrite:
    return PlannedWrite(Action.UPDATE, "update", changes)


def change(path: str, before: Json, after: Json) -> FieldChange:
    return FieldChange(Path.parse(path), before, after)


texts = st.text() | st.text(alphabet='"\\\x01é😀', min_size=30, max_size=200) | st.just("x" * 1000)
steps: st.SearchStrategy[PathStep] = (
    texts | st.integers(0, 9) | st.builds(Selector, st.lists(st.tuples(texts, texts), min_size=1).map(tuple))
)
paths = st.lists(steps, max_size=6).map(lambda found: Path(tuple(found)))
sides = json_values | st.just(MISSING) | st.just({"password": "p" * 300}) | st.lists(st.text(min_size=100), min_size=5)
changes = st.builds(FieldChange, paths, sides, sides, st.sampled_from(Rule), st.booleans())
# Many changes are the same one: what counts is how many.
many_changes = st.lists(changes, max_size=4).flatmap(
    lambda found: st.sampled_from([1, 1, 1, 30]).map(lambda times: tuple(found * times))
)
writes = st.builds(PlannedWrite, st.sampled_from(Action), texts, many_changes)
plans = st.builds(
    Plan,
    st.sampled_from(Decision),
    st.lists(writes, max_size=10).map(tuple),
    many_changes,
    many_changes,
    texts,
    st.sampled_from(Hold),
    reason=st.sampled_from([None, *DecisionReason]),
    retained=many_changes,
)


plain_texts = st.text(st.characters(codec="ascii")) | st.text(alphabet='ab ~"\\', max_size=220)
plain_changes = st.dictionaries(
    st.sampled_from(["path", "rule", "before", "after", "immutable"]), plain_texts | json_values, min_size=2
)


@pytest.mark.laws
@given(plain_changes)
def test_the_size_of_a_plain_change_is_that_of_its_canonical_bytes(found: dict[str, Json]) -> None:
    size = plain_size(found)

    assert size in (None, len(canonical(found)))


def test_most_changes_are_plain() -> None:
    found: JsonObject = {"path": "data.a-b", "rule": "spec", "after": "x" * 198}

    assert plain_size(found) == len(canonical(found))
    assert plain_size({**found, "after": "x" * 199}) is None
    assert plain_size({**found, "after": '"'}) is None
    assert plain_size({**found, "after": 1}) is None
    assert plain_size({**found, "after": "\ud800"}) is None


@pytest.mark.laws
@given(plans, texts)
def test_the_record_of_any_plan_has_at_most_4096_bytes(plan: Plan, trigger: str) -> None:
    whole = record(plan, trigger)
    short = bounded_record(whole)

    assert len(canonical(short)) <= 4096
    assert bounded_record(short) is short
    assert canonical(bounded_record(whole)) == canonical(short)
    if len(canonical(whole)) <= 4096:
        assert short is whole
    if plan.because and plan.withheld:
        assert short["withheld"]
        assert withheld_paths(short) == paths_digest([str(one.path) for one in plan.withheld])


@pytest.mark.laws
@given(plans)
def test_every_change_of_a_plan_is_shown_or_counted(plan: Plan) -> None:
    short = bounded_record(record(plan))
    shown = short["writes"]
    assert isinstance(shown, list)
    first = plan.writes[: len(shown)]

    assert [len(one["changes"]) + one.get("more", 0) for one in shown] == [len(write.changes) for write in first]
    assert len(shown) + _number(short.get("moreWrites")) == len(plan.writes)
    assert len(_list(short["kept"])) + _number(short.get("moreKept")) == len(plan.kept)
    assert len(_list(short.get("retained", []))) + _number(short.get("moreRetained")) == len(plan.retained)
    assert short.get("reason") == (None if plan.reason is None else plan.reason.value)


@pytest.mark.laws
@given(json_values)
def test_a_status_that_another_writer_changed_is_cut_as_well(data: Json) -> None:
    odd: JsonObject = {"writes": [{"changes": [{"path": data, "before": data}, data]}, data], "kept": data, "at": data}

    assert len(canonical(bounded_record({**odd, "more": "x" * 5000, "cookie": data, "withheld": [data]}))) <= 4096


@pytest.mark.laws
@given(paths)
def test_a_short_path_can_be_parsed(path: Path) -> None:
    short = short_path(str(path))

    assert str(Path.parse(short)) == short
    assert len(canonical(short)) <= 900


def test_a_record_that_fits_is_kept_as_it_is() -> None:
    whole = record(Plan(Decision.DRIFTED, (update(change("spec.size", 9, 1)),)))

    assert bounded_record(whole) is whole


def test_long_values_are_shortened_and_named_as_such() -> None:
    plan = Plan(Decision.DRIFTED, (update(change("spec.text", "a" * 9000, "short"), change("spec.size", 9, 1)),))

    assert bounded_record(record(plan)) == {
        "at": "2026-01-01T00:00:00Z",
        "trigger": "an edit",
        "decision": "drifted",
        "cookie": COOKIES,
        "writes": [
            {
                "action": "update",
                "name": "update",
                "changes": [
                    {
                        "path": "spec.text",
                        "rule": "spec",
                        "before": f'"{"a" * 79}… (9002 bytes, SHA-256 83afbf79eeca…)',
                        "after": "short",
                        "shortened": ["before"],
                    },
                    {"path": "spec.size", "rule": "spec", "before": 9, "after": 1},
                ],
            }
        ],
        "kept": [],
    }


def test_of_thousands_of_fields_the_first_are_kept_and_the_others_counted() -> None:
    found = tuple(change(f"spec.labels.k{number}", "old", "new") for number in range(2000))
    short = bounded_record(record(Plan(Decision.INTENT_CHANGED, (update(*found),))))
    (write,) = _list(short["writes"])
    assert isinstance(write, dict)

    assert len(canonical(short)) <= 4096
    assert (len(write["changes"]), write["more"]) == (54, 1946)
    assert write["changes"][-1] == {"path": "spec.labels.k53", "rule": "spec", "before": "old", "after": "new"}


@given(plans, texts)
def test_a_record_that_is_cut_still_names_its_operation(plan: Plan, name: str) -> None:
    short = bounded_record({**record(plan), OPERATION: operation_text(name)})

    assert short[OPERATION] == operation_text(name) == operation_text(operation_text(name))


def test_the_fields_that_a_record_has_as_written_are_those_of_all_its_writes() -> None:
    found = (update(change("spec.size", 9, 1)), update(change("spec.mode", "a", "b"), change("spec.tier", "c", "d")))

    assert written_paths(record(Plan(Decision.DRIFTED, found))) == ["spec.size", "spec.mode", "spec.tier"]
    assert written_paths({"writes": "torn"}) == []


def test_what_was_taken_out_of_the_spec_and_stays_is_kept_and_counted() -> None:
    found = tuple(change(f"spec.labels.k{number}", "old", "old") for number in range(100))
    plan = Plan(Decision.FIRST_LOOK, reason=DecisionReason.ADOPTED, retained=found)
    short = bounded_record(record(plan))

    assert len(canonical(short)) <= 4096
    assert (len(_list(short["retained"])), short["moreRetained"], short["reason"]) == (54, 46, "adopted")


def test_a_secret_in_a_shortened_value_is_redacted() -> None:
    value: Json = {"password": "hunter2", "text": "x" * 9000}
    plan = Plan(Decision.DRIFTED, (update(change("spec.connection", value, None)),))

    assert b"hunter2" not in canonical(bounded_record(record(plan)))


def test_a_long_name_in_a_path_is_cut_and_the_middle_of_a_deep_one_left_out() -> None:
    assert short_path("spec.map." + "x" * 1000) == f'spec.map["{"x" * 59}…"]'
    assert short_path(".".join(f"level{number}" for number in range(60))) == 'level0["…"].level59'
    assert short_path('spec.list[name="' + "y" * 1000 + '"].value') == f'spec.list[name="{"y" * 59}…"].value'
    assert short_path("[no path " + "x" * 300) == f'["[no path {"x" * 50}…"]'


def _list(value: Json) -> list[Json]:
    assert isinstance(value, list)
    return value


def _number(value: Json) -> int:
    assert value is None or isinstance(value, int)
    return value or 0
