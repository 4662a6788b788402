"""One byte form per JSON value: what holds for all of them."""

import hashlib
from typing import Any

import msgspec
import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, UnsetType

from setpoint.core.values import canonical as routes
from setpoint.core.values.canonical import canonical, digest, same
from setpoint.core.values.json_types import Json, number_text
from tests.laws.json_values import json_values, numbers, small_json, text

pytestmark = pytest.mark.laws


class Inner(msgspec.Struct, rename="camel"):
    big_number: int | UnsetType = UNSET
    ratio: float | None | UnsetType = UNSET
    by_name: dict[str, str] | UnsetType = UNSET


class Outer(msgspec.Struct):
    zone: str
    inner: Inner | UnsetType = UNSET
    items: list[Inner] | UnsetType = UNSET
    anything: Any = UNSET


inners = st.builds(
    Inner,
    big_number=st.integers() | st.just(UNSET),
    ratio=st.floats(allow_nan=False, allow_infinity=False) | st.none() | st.just(UNSET),
    by_name=st.dictionaries(text, text, max_size=3) | st.just(UNSET),
)
outers = st.builds(
    Outer, zone=text, inner=inners | st.just(UNSET), items=st.lists(inners, max_size=3), anything=json_values
)


@given(json_values)
def test_the_fast_encoder_returns_none_or_the_bytes_of_the_exact_encoder(value: Json) -> None:
    fast = routes._fast_text(value)

    assert fast is None or fast == routes._exact_text(value)


@given(json_values)
def test_canonical_bytes_are_those_of_the_exact_encoder(value: Json) -> None:
    assert canonical(value) == routes._exact_text(value)


@given(json_values, json_values)
def test_digests_are_equal_exactly_when_values_are_the_same(a: Json, b: Json) -> None:
    assert (digest(a) == digest(b)) == same(a, b)


@given(small_json, small_json)
def test_digests_are_equal_exactly_when_small_values_are_the_same(a: Json, b: Json) -> None:
    assert (digest(a) == digest(b)) == same(a, b)


@given(numbers, numbers)
def test_numbers_are_the_same_exactly_when_their_texts_are_equal(a: float, b: float) -> None:
    assert same(a, b) == (number_text(a) == number_text(b))


@given(json_values)
def test_canonical_bytes_read_back_as_the_same_value(value: Json) -> None:
    assert same(msgspec.json.decode(canonical(value)), value)


@given(json_values)
def test_canonical_bytes_do_not_depend_on_the_order_of_keys(value: Json) -> None:
    def turned(node: Json) -> Json:
        if isinstance(node, dict):
            return {key: turned(node[key]) for key in reversed(list(node))}
        return [turned(item) for item in node] if isinstance(node, list) else node

    assert canonical(turned(value)) == canonical(value)


@given(json_values)
def test_canonical_bytes_equal_rfc_8785_wherever_it_is_defined(value: Json) -> None:
    try:
        defined = rfc8785.dumps(value)
    except rfc8785.IntegerDomainError:
        return

    assert canonical(value) == defined


@given(outers)
def test_a_struct_has_the_bytes_of_its_builtins(value: Outer) -> None:
    assert canonical(value) == routes._exact_text(msgspec.to_builtins(value, str_keys=True))


@given(inners)
def test_the_fast_encoder_of_structs_returns_none_or_the_bytes_of_the_exact_encoder(value: Inner) -> None:
    fast = routes._struct_text(value)

    assert fast is None or fast == routes._exact_text(msgspec.to_builtins(value, str_keys=True))


@given(json_values)
def test_a_digest_is_the_sha_256_of_the_canonical_bytes(value: Json) -> None:
    assert digest(value) == hashlib.sha256(canonical(value)).hexdigest()
