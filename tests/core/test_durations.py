"""Durations in Go's notation."""

import re
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.core.values.durations import parse_duration, parse_duration_text, rfc3339
from setpoint.core.values.json_types import Json
from setpoint.errors import ManifestInvalid
from tests.laws.json_values import json_values


@given(st.integers(0, 999), st.integers(0, 59), st.integers(1, 59))
def test_hours_minutes_and_seconds_add_up(hours: int, minutes: int, seconds: int) -> None:
    assert parse_duration(f"{hours}h{minutes}m{seconds}s") == hours * 3600 + minutes * 60 + seconds


@given(json_values | st.text("0123456789.hmsnuµ-+ ", max_size=8))
def test_any_value_is_a_positive_duration_or_a_clear_error(data: Json) -> None:
    with suppress(ManifestInvalid):
        assert 0 < parse_duration(data) < 9.3e9


@pytest.mark.parametrize(
    ("duration", "seconds"),
    [
        ("1h30m", 5400.0),
        ("90s", 90.0),
        ("700ms", 0.7),
        ("1.5h", 5400.0),
        (".5s", 0.5),
        ("2.s", 2.0),
        ("30us", 0.00003),
        ("30µs", 0.00003),
        ("30μs", 0.00003),
        ("1ns", 1e-9),
        (90, 90.0),
        (0.25, 0.25),
    ],
)
def test_reads_go_durations_and_plain_seconds(duration: Json, seconds: float) -> None:
    assert parse_duration(duration) == seconds


@pytest.mark.parametrize(
    "duration",
    [
        "",
        "5",
        "m",
        "5x",
        "1m30",
        "5 m",
        "-5m",
        "0s",
        "١s",
        0,
        -1,
        True,
        None,
        [],
        10**400,
        "9" * 400 + "s",
        "300000000h",
    ],
)
def test_a_value_that_is_no_positive_duration_is_refused(duration: Json) -> None:
    with pytest.raises(ManifestInvalid, match="is no duration above 0"):
        parse_duration(duration)


@pytest.mark.parametrize(
    ("text", "seconds"), [("30", 30.0), ("1.5", 1.5), ("0.25", 0.25), ("90s", 90.0), ("1h30m", 5400.0)]
)
def test_in_text_a_number_without_a_unit_is_seconds(text: str, seconds: float) -> None:
    assert parse_duration_text(text) == seconds


@pytest.mark.parametrize("text", ["0", "0.0", "-1", "1e3", "1.", ".5", "", " 30", "30 s", "nan", "9" * 400])
def test_text_that_is_no_duration_is_refused_as_it_was_written(text: str) -> None:
    with pytest.raises(ManifestInvalid, match=rf"^{re.escape(repr(text))} is no duration above 0"):
        parse_duration_text(text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "1970-01-01T00:00:00Z"), (1_790_000_000, "2026-09-21T14:13:20Z"), (1, "1970-01-01T00:00:01Z")],
)
def test_a_time_is_written_in_utc(seconds: int, text: str) -> None:
    assert rfc3339(seconds) == text
