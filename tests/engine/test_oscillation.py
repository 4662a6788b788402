"""Oscillations: what is counted, how long the backoff is, what is forgotten; for all sequences of drift."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import Enum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.core.diff import FieldChange
from setpoint.core.redaction import REDACTED
from setpoint.core.values.json_types import Json, Missing
from setpoint.core.values.paths import Path
from setpoint.engine.contention.oscillation import (
    EXPIRES_AFTER,
    FIRST_BACKOFF,
    LONGEST_BACKOFF,
    NO_OSCILLATIONS,
    REPORTED_AFTER,
    Oscillation,
    Oscillations,
    backoff_after,
)
from tests.laws.json_values import json_values

HOUR = 3600
INTENT = "a" * 64
BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)


def at(seconds: float) -> str:
    return (BEGINNING + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def change(path: str = "spec.size", before: Json | Missing = 9, after: Json | Missing = 1) -> FieldChange:
    return FieldChange(Path.parse(path), before, after)


class End(Enum):
    """How a step that found the field changed comes to an end."""

    DONE = "done"
    KILLED_BEFORE_SENDING = "killed before it was sent"
    KILLED_AFTER_SENDING = "killed after it was sent"
    UNAVAILABLE = "the service did not take it"


@dataclass
class Life:
    """A field, another writer that changes it, and an engine that reverts it by the rule."""

    oscillations: Oscillations = NO_OSCILLATIONS
    # Moves with every change of the object, like an etag.
    mark: int = 0
    reverted_at: list[float] = field(default_factory=list)

    def drift(self, now: float, end: End = End.DONE, value: Json = 9) -> None:
        """The field is changed, and a step follows."""
        self.mark += 1
        self.step(now, end, value)

    def step(self, now: float, end: End = End.DONE, value: Json = 9) -> None:
        """A step that finds the field changed."""
        standing = self.oscillations.still_active(INTENT, str(self.mark), at(now))
        changes = (change(before=value),)
        if standing.waiting(changes, at(now)):
            self.oscillations = standing
            return
        self.oscillations = standing.begin(INTENT, changes, str(self.mark), at(now))
        if end in (End.DONE, End.KILLED_AFTER_SENDING):
            self.reverted_at.append(now)
            self.mark += 1
        if end is End.DONE:
            self.oscillations = self.oscillations.done(at(now))

    @property
    def count(self) -> int:
        return sum(oscillation.count for oscillation in self.oscillations.fields)


def most_within(seconds: float, times: Sequence[float]) -> int:
    return max((sum(start <= time < start + seconds for time in times) for start in times), default=0)


gaps = st.lists(st.integers(0, 7_300) | st.integers(0, 90), max_size=80)
endings = st.sampled_from(End)
counts = st.integers(0, 10**9)


# --- The rule --------------------------------------------------------------------------------------------------------


@pytest.mark.laws
@given(counts)
def test_waits_grow_and_have_an_end(count: int) -> None:
    assert 0 <= backoff_after(count) <= backoff_after(count + 1) <= LONGEST_BACKOFF == 3600


def test_waits_double_from_a_minute_to_an_hour() -> None:
    assert [backoff_after(count) for count in range(12)] == [0, 0, 0, 60, 120, 240, 480, 960, 1920, 3600, 3600, 3600]


@pytest.mark.laws
@given(gaps)
def test_however_another_writer_acts_reverts_keep_to_the_rule(drifts: list[int]) -> None:
    life, now = Life(), 0
    for gap in drifts:
        now += gap
        life.drift(now)

    _expect_the_rule(life.reverted_at)


@pytest.mark.laws
@given(st.lists(st.tuples(st.integers(0, 600), endings), max_size=80))
def test_however_often_the_process_dies_reverts_keep_to_the_rule(drifts: list[tuple[int, End]]) -> None:
    life, now = Life(), 0
    for gap, end in drifts:
        now += gap
        life.drift(now, end)

    _expect_the_rule(life.reverted_at)


def _expect_the_rule(times: Sequence[float]) -> None:
    assert most_within(FIRST_BACKOFF, times) <= 3
    assert most_within(HOUR, times) <= 8
    # With three pauses, each just long enough to be forgotten.
    assert most_within(24 * HOUR, times) <= 37


def test_another_writer_all_day_long_is_reverted_eight_times_in_the_first_hour_and_then_once_an_hour() -> None:
    life = Life()
    for now in range(24 * HOUR):
        life.drift(now)

    assert [most_within(hours * HOUR, life.reverted_at) for hours in (1, 24)] == [8, 31]


# --- What counts -----------------------------------------------------------------------------------------------------


@pytest.mark.laws
@given(st.lists(json_values, max_size=REPORTED_AFTER))
def test_each_revert_counts_once_whatever_other_writers_set(values: list[Json]) -> None:
    life = Life()
    for now, value in enumerate(values):
        life.drift(now, value=value)

    assert life.count == len(values) == len(life.reverted_at)


@pytest.mark.laws
@given(st.lists(st.tuples(st.integers(0, 600), endings), max_size=40))
def test_nothing_is_lost_and_nothing_is_counted_twice(drifts: list[tuple[int, End]]) -> None:
    life, now = Life(), 0
    for gap, end in drifts:
        now += gap
        life.drift(now, end)
    life.mark += 1

    seen = life.oscillations.still_active(INTENT, str(life.mark), at(now))

    assert sum(oscillation.count for oscillation in seen.fields) >= len(life.reverted_at)
    assert not any(oscillation.begun for oscillation in seen.fields)


@pytest.mark.laws
@given(st.lists(st.sampled_from([End.UNAVAILABLE, End.KILLED_BEFORE_SENDING]), max_size=20))
def test_what_was_never_sent_does_not_count(endings: list[End]) -> None:
    life = Life()
    life.drift(0, End.UNAVAILABLE)
    for now, end in enumerate(endings):
        life.step(now, end)
    before = life.count
    life.step(60)

    assert (before, life.count, life.reverted_at) == (0, 1, [60])


def test_a_revert_that_is_under_way_has_no_backoff() -> None:
    life = Life()
    for now in (0, 1, 2, 62):
        life.drift(now, End.UNAVAILABLE if now == 62 else End.DONE)
    life.step(63)

    assert life.reverted_at == [0, 1, 2, 63]


def test_the_newest_foreign_values_come_first() -> None:
    life = Life()
    for now, value in enumerate([5, 6, 5, 7, 8]):
        life.drift(now * HOUR, value=value)

    assert life.oscillations.fields[0].foreign_values == ("8", "7", "5")


def test_each_field_has_an_oscillation_of_its_own() -> None:
    oscillations = NO_OSCILLATIONS
    for now, paths in enumerate([("spec.a", "spec.b"), ("spec.a",), ("spec.a",), ("spec.a",)]):
        changes = [change(path) for path in paths]
        oscillations = oscillations.begin(INTENT, changes, str(now), at(now)).done(at(now))

    assert [(one.path, one.count) for one in oscillations.fields] == [("spec.a", 4), ("spec.b", 1)]
    assert [one.path for one in oscillations.reported] == ["spec.a"]
    assert [path for path, _ in oscillations.waiting([change("spec.a"), change("spec.b")], at(5))] == ["spec.a"]


def test_a_secret_that_is_sent_again_is_no_revert() -> None:
    sent = FieldChange(Path.parse("spec.password"), REDACTED, REDACTED)

    assert NO_OSCILLATIONS.begin(INTENT, [sent], "mark", at(0)) == NO_OSCILLATIONS


def test_what_came_to_nothing_does_not_count() -> None:
    begun = NO_OSCILLATIONS.begin(INTENT, [change()], "mark", at(0))

    assert begun.aborted().still_active(INTENT, "another mark", at(1)).fields[0].count == 0


# --- What is forgotten -----------------------------------------------------------------------------------------------


@pytest.mark.laws
@given(gaps, st.integers(0, 10**7))
def test_a_field_that_stays_as_declared_is_forgotten_in_time(drifts: list[int], more: int) -> None:
    life, now = Life(), 0
    for gap in drifts:
        now += gap
        life.drift(now)

    assert life.oscillations.still_active(INTENT, str(life.mark), at(now + EXPIRES_AFTER + more)) == NO_OSCILLATIONS


@pytest.mark.laws
@given(gaps)
def test_an_edit_of_the_author_forgets_everything(drifts: list[int]) -> None:
    life, now = Life(), 0
    for gap in drifts:
        now += gap
        life.drift(now)

    assert life.oscillations.still_active("b" * 64, str(life.mark), at(now)) == NO_OSCILLATIONS


@pytest.mark.laws
@given(st.integers(0, int(EXPIRES_AFTER) - 1))
def test_until_then_it_is_remembered_and_says_how_long_yet(later: int) -> None:
    life = Life()
    life.drift(0)

    seen = life.oscillations.still_active(INTENT, str(life.mark), at(later))

    assert seen == life.oscillations
    assert seen.expires_in(at(later)) == EXPIRES_AFTER - later


def test_without_oscillations_nothing_expires() -> None:
    assert NO_OSCILLATIONS.expires_in(at(0)) is None


def test_a_clock_that_was_wrong_holds_nothing_up_for_long() -> None:
    ahead = Oscillations(INTENT, (Oscillation("spec.size", ("9",), 50, at(0), "2031-01-01T00:00:00Z"),))

    assert ahead.still_active(INTENT, "mark", at(0)) == NO_OSCILLATIONS


# --- Text ------------------------------------------------------------------------------------------------------------

times = st.integers(0, 10**8).map(at)
texts = st.text(max_size=20)
oscillations = st.builds(
    Oscillation,
    texts,
    st.lists(texts, min_size=1, max_size=3).map(tuple),
    counts,
    times,
    times,
    st.none() | texts,
)


@pytest.mark.laws
@given(texts, st.lists(oscillations, min_size=1, max_size=16).map(tuple))
def test_reading_undoes_writing(intent: str, fields: tuple[Oscillation, ...]) -> None:
    kept = Oscillations(intent, fields)

    assert Oscillations.of(kept.to_data()) == kept


@pytest.mark.laws
@given(json_values)
def test_what_cannot_be_read_is_forgotten_and_breaks_nothing(data: Json) -> None:
    entry: Json = {"path": "spec.a", "theirs": [data], "count": 3, "since": at(0), "last": data}

    assert Oscillations.of(data) == NO_OSCILLATIONS
    assert Oscillations.of({"intent": INTENT, "fields": [data, entry]}) == NO_OSCILLATIONS


def test_many_fields_share_one_oscillation_at_their_common_ancestor() -> None:
    many = [change(f"spec.labels.k{number}") for number in range(2000)]
    first = NO_OSCILLATIONS.begin(INTENT, many, "0", at(0)).done(at(0))
    later = change("spec.labels.another")
    then = first.begin(INTENT, [many[7], later], "1", at(1)).done(at(1)).begin(INTENT, many[:1], "2", at(2)).done(at(2))

    assert [(one.path, one.is_subtree, one.count) for one in then.fields] == [("spec.labels", True, 3)]
    assert [path for path, _ in then.waiting([later, change("spec.size")], at(5))] == ["spec.labels.another"]
    assert Oscillations.of(then.to_data()) == then


def test_a_field_with_an_oscillation_of_its_own_keeps_it_among_many() -> None:
    one = NO_OSCILLATIONS.begin(INTENT, [change("spec.size")], "0", at(0)).done(at(0))
    many = one.begin(INTENT, [change(f"spec.k{number}") for number in range(100)], "1", at(1)).done(at(1))
    again = many.begin(INTENT, [change("spec.size")], "2", at(2)).done(at(2))

    assert [(one.path, one.count) for one in again.fields] == [("spec.size", 2), ("spec", 1)]


def test_the_field_with_a_long_name_is_counted_with_its_parent() -> None:
    oscillations = NO_OSCILLATIONS.begin(INTENT, [change("spec.map." + "x" * 1000)], "0", at(0))

    assert [(one.path, one.is_subtree) for one in oscillations.fields] == [("spec.map", True)]


def test_of_many_oscillations_of_an_earlier_version_the_most_reverted_are_kept() -> None:
    fields: list[Json] = [
        {"path": f"spec.k{number}", "theirs": ["1"], "count": number, "since": at(0), "last": at(0)}
        for number in range(1000)
    ]
    kept = Oscillations.of({"intent": INTENT, "fields": fields})

    assert [one.path for one in kept.fields] == [f"spec.k{number}" for number in range(999, 983, -1)]


@pytest.mark.laws
@given(st.lists(st.lists(st.lists(st.text(min_size=1), min_size=1, max_size=4), max_size=30), max_size=5))
def test_oscillations_have_a_bounded_size_whatever_drifts(rounds: list[list[list[str]]]) -> None:
    oscillations = NO_OSCILLATIONS
    for now, paths in enumerate(rounds):
        changes = [FieldChange(Path(tuple(steps)), "x" * 300, 1) for steps in paths]
        oscillations = oscillations.begin(INTENT, changes, str(now), at(now)).done(at(now))

        assert all(oscillations.at(one.path) is not None for one in changes)
        assert len(oscillations.fields) <= 17
    assert Oscillations.of(oscillations.to_data()) == oscillations
