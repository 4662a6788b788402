"""Limits of encoded JSON: depth and number of values, found without decoding."""

import json
from unittest.mock import patch

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.core.values import json_limits
from setpoint.core.values.canonical import MAX_DEPTH
from setpoint.core.values.json_limits import MAX_VALUES, cut_nesting, decode_cut, excess_of
from setpoint.core.values.json_types import Json
from tests.laws.json_values import json_values

# Text in which marks of JSON stand where they mean nothing.
_AWKWARD = st.text('[]{},:"\\ab', max_size=12)
_TREES: st.SearchStrategy[Json] = st.recursive(
    st.one_of(st.integers(), st.none(), _AWKWARD),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(_AWKWARD, inner, max_size=4)),
    max_leaves=30,
)


def _depth(value: Json) -> int:
    if not isinstance(value, dict | list):
        return 0
    return 1 + max(map(_depth, value.values() if isinstance(value, dict) else value), default=0)


def _values(value: Json) -> int:
    """The value, its commas and its brackets: what a decoder has to make."""
    if not isinstance(value, dict | list):
        return 1
    inner = list(value.values() if isinstance(value, dict) else value)
    return 1 + max(sum(map(_values, inner)), 1)


@given(_TREES, st.integers(0, 8), st.integers(1, 40), st.integers(1, 5))
def test_a_text_is_within_the_limits_exactly_when_its_value_is(
    value: Json, depth: int, values: int, chunk: int
) -> None:
    with patch.object(json_limits, "_CHUNK", chunk):
        found = excess_of(json.dumps(value).encode(), values, depth)

    assert (found == "") == (_depth(value) <= depth and _values(value) <= values)


@given(json_values)
def test_ordinary_values_are_within_the_limits(value: Json) -> None:
    assert excess_of(json.dumps(value).encode()) == ""


@pytest.mark.parametrize(
    ("text", "excess"),
    [
        (b"[" * 300 + b"]" * 300, "is nested deeper than 254 levels"),
        (b"[" * 3_000_000, "has more than 100,000 values"),
        (b"[" * 90_000, "is nested deeper than 254 levels"),
        (b'["' + b"\\\\" * 40_000 + b'",' + b"[" * 300 + b"]" * 300 + b"]", "is nested deeper than 254 levels"),
        (b'["' + b"\\\\" * 40_000 + b'\\"' + b"[" * 300 + b'"]', ""),
        (b'{"a":' * 255 + b"1" + b"}" * 255, "is nested deeper than 254 levels"),
        (b"[" + b"1," * MAX_VALUES + b"1]", "has more than 100,000 values"),
        (b"[" + b"{}," * MAX_VALUES + b"1]", "has more than 100,000 values"),
        (b"[" * MAX_DEPTH + b"]" * MAX_DEPTH, ""),
        (b'["' + b",[{" * MAX_VALUES + b'"]', ""),
        (b'["' + b'\\"[' * MAX_VALUES + b'"]', ""),
        (b'"' + b'\\"[' * MAX_VALUES, ""),
        (b'"[' + b"\\\\" * MAX_VALUES + b"\\", ""),
        (b"1" * 3_000_000, ""),
        (b"", ""),
    ],
    ids=lambda case: case[:12].decode() if isinstance(case, bytes) else None,
)
def test_the_excess_is_named(text: bytes, excess: str) -> None:
    assert excess_of(text) == excess


@given(_TREES, st.integers(0, 8))
def test_a_cut_text_has_null_below_the_depth_and_is_the_same_above(value: Json, depth: int) -> None:
    assert json.loads(cut_nesting(json.dumps(value).encode(), depth)) == _cut(value, depth)


def _cut(value: Json, depth: int) -> Json:
    if not isinstance(value, dict | list):
        return value
    if depth == 0:
        return None
    if isinstance(value, dict):
        return {key: _cut(one, depth - 1) for key, one in value.items()}
    return [_cut(one, depth - 1) for one in value]


def test_the_deepest_text_is_cut_without_recursion() -> None:
    deep = b"[" * 1_000_000 + b"]" * 1_000_000

    assert cut_nesting(deep, 2) == b"[[null]]"
    assert cut_nesting(deep[:1_000_000], 2) == b"[[null"


def test_a_text_too_deep_for_the_stack_is_decoded_up_to_a_depth_that_is_not_accepted() -> None:
    found = msgspec.json.encode(decode_cut(msgspec.json.decode, b"[" * 50_000 + b"]" * 50_000))

    assert found == b"[" * 270 + b"null" + b"]" * 270
    assert excess_of(found) == "is nested deeper than 254 levels"


def test_any_other_text_is_decoded_as_it_is() -> None:
    assert decode_cut(msgspec.json.decode, msgspec.Raw(b'{"a":[1]}')) == {"a": [1]}
