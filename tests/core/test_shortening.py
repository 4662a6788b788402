"""Texts and values that are shortened, so that no input decides the size of a status."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.core.values.json_types import MISSING, Json
from setpoint.core.values.shortening import short_value, shorten
from tests.laws.json_values import json_values


@pytest.mark.laws
@given(json_values | st.text(min_size=150))
def test_a_value_is_shown_on_one_short_line(value: Json) -> None:
    text = short_value(value)

    assert len(text.encode()) <= 200
    assert "\n" not in text


def test_a_value_is_shown_as_json() -> None:
    tree: Json = {"b": 1, "a": []}

    assert [short_value(9), short_value("a"), short_value(True), short_value(None)] == ["9", '"a"', "true", "null"]
    assert (short_value(tree), short_value(MISSING)) == ('{"a":[],"b":1}', "unset")


def test_a_long_value_is_shown_by_its_beginning_its_size_and_its_digest() -> None:
    assert short_value("x" * 1000) == f'"{"x" * 79}… (1002 bytes, SHA-256 fa0831df6ae1…)'


def test_the_middle_of_a_long_text_is_left_out_and_its_size_is_noted() -> None:
    text = "begin " + "x" * 5000 + " end"

    assert shorten(text, 148) == f"begin {'x' * 69}… (shortened from 5,010 bytes) …{'x' * 21} end"


@pytest.mark.laws
@given(st.text(), st.integers(60, 300))
def test_a_text_fits_its_limit_and_is_not_shortened_twice(text: str, limit: int) -> None:
    short = shorten(text * 20, limit)

    assert len(short.encode()) <= limit
    assert shorten(short, limit) == short
    assert shorten(text, 10**6) == text
