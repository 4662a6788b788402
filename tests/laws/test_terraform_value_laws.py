"""Laws of Terraform's values: nothing is lost on the wire, and a value is of its type."""

import json
import struct
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from setpoint.errors import ManifestInvalid
from setpoint.terraform.cty.codec import decode_json, decode_msgpack, encode_msgpack
from setpoint.terraform.cty.json_trees import from_untyped, implied_type, to_untyped
from setpoint.terraform.cty.types import (
    DYNAMIC,
    NUMBER,
    STRING,
    CtyType,
    SetType,
    decode_type,
    encode_type,
    type_to_tree,
)
from setpoint.terraform.cty.values import (
    UNKNOWN,
    CtyValue,
    Dynamic,
    UnknownValue,
    decode_number,
    encode_number,
    is_known,
    nullify_unknown,
    same_value,
    type_at,
    unknown_paths,
)
from tests.laws.json_values import json_values
from tests.laws.terraform_values import conforms, numbers, typed_values, types, values_of
from tests.terraform.probe.prior_types import with_prior_types

pytestmark = pytest.mark.laws


@given(types)
def test_a_type_is_read_back_from_its_name(type_: CtyType) -> None:
    assert decode_type(encode_type(type_)) == type_


@given(typed_values())
def test_a_value_is_read_back_from_its_bytes(typed: tuple[CtyType, CtyValue]) -> None:
    type_, value = typed
    again = decode_msgpack(encode_msgpack(value, type_), type_)

    assert same_value(again, value, type_)
    assert encode_msgpack(again, type_) == encode_msgpack(value, type_)


@given(typed_values(known=True))
def test_a_value_is_read_back_from_the_json_of_a_state(typed: tuple[CtyType, CtyValue]) -> None:
    type_, value = typed
    if "Infinity" in str(value):
        return
    text = _json(value, type_)

    assert same_value(decode_json(text.encode(), type_), value, type_)


@given(typed_values())
def test_a_value_is_of_its_type(typed: tuple[CtyType, CtyValue]) -> None:
    type_, value = typed

    assert conforms(value, type_)
    assert same_value(value, value, type_)


@given(types, typed_values(known=True))
def test_a_value_of_another_type_is_not_encoded(type_: CtyType, typed: tuple[CtyType, CtyValue]) -> None:
    own, value = typed
    if conforms(value, type_) and type_ != own:
        again = decode_msgpack(encode_msgpack(value, type_), type_)

        assert same_value(again, value, type_)


@given(types, st.binary(max_size=12))
def test_any_bytes_decode_to_a_value_of_the_type_or_a_clear_error(type_: CtyType, data: bytes) -> None:
    try:
        value = decode_msgpack(data, type_)
    except ManifestInvalid:
        return

    assert conforms(value, type_)


@given(numbers)
@example(Decimal("0.2"))
@example(2**63)
@example(2**53 + 1)
def test_a_number_on_the_wire_is_exactly_that_number(number: int | Decimal) -> None:
    written = encode_number(number)
    # As Terraform would read it.
    exact = Fraction(written) if isinstance(written, int | float) else Fraction(Decimal(written))

    assert exact == Fraction(number)
    assert decode_number(written) == number
    assert not isinstance(written, float) or struct.unpack("d", struct.pack("d", written))[0] == written


@given(json_values)
def test_json_survives_the_conversion_to_cty_and_back(plain: Any) -> None:
    value = from_untyped(plain, DYNAMIC)
    again = to_untyped(value)

    assert conforms(value, DYNAMIC)
    assert again == _as_numbers_are(plain)


@given(typed_values())
def test_an_untyped_value_is_converted_back_to_the_same_value(typed: tuple[CtyType, CtyValue]) -> None:
    type_, value = typed
    if "Infinity" in str(value):
        return
    plain = to_untyped(value)
    again = from_untyped(plain, type_)

    assert conforms(again, type_)
    assert to_untyped(again) == plain
    assert same_value(with_prior_types(again, value), value, type_)


@given(json_values, json_values)
def test_prior_types_do_not_change_a_value(plain: Any, other: Any) -> None:
    value, before = from_untyped(plain, DYNAMIC), from_untyped(other, DYNAMIC)

    assert to_untyped(with_prior_types(value, before)) == to_untyped(value)


@given(typed_values())
def test_a_value_is_known_when_no_part_of_it_is_unknown(typed: tuple[CtyType, CtyValue]) -> None:
    type_, value = typed
    paths = list(unknown_paths(value))

    assert is_known(value) == (paths == [])
    for path in paths:
        assert isinstance(_at(value, path), UnknownValue)
    if isinstance(value, Mapping):
        known = nullify_unknown(value)

        assert is_known(known)
        assert conforms(known, type_)


@given(st.lists(values_of(DYNAMIC), max_size=4), st.randoms())
def test_the_order_of_a_set_is_ignored(parts: list[CtyValue], random: Any) -> None:
    shuffled = random.sample(parts, len(parts))

    assert same_value(tuple(parts), tuple(shuffled), SetType(DYNAMIC))
    assert same_value(tuple(parts + parts), tuple(shuffled), SetType(DYNAMIC))


@given(typed_values(), st.integers(1, 127).filter(lambda code: code != 12), st.binary(max_size=20))
def test_every_extension_means_unknown(typed: tuple[CtyType, CtyValue], code: int, data: bytes) -> None:
    type_, _ = typed

    assert decode_msgpack(msgspec.msgpack.encode(msgspec.msgpack.Ext(code, data)), type_) == UNKNOWN


@given(st.dictionaries(st.integers(7, 99), st.booleans(), max_size=3))
def test_unknown_refinements_are_skipped(refinements: dict[int, bool]) -> None:
    data = msgspec.msgpack.encode(msgspec.msgpack.Ext(12, msgspec.msgpack.encode({**refinements, 2: "ab"})))
    found = decode_msgpack(data, STRING)

    assert isinstance(found, UnknownValue)
    assert found.refinement.prefix == "ab"


@given(json_values)
def test_the_implied_type_of_a_tree_is_made_of_those_of_its_parts(plain: Any) -> None:
    type_ = implied_type(plain)
    if isinstance(plain, dict):
        assert all(type_at(type_, key) == implied_type(one) for key, one in plain.items())
    if isinstance(plain, list):
        assert all(type_at(type_, index) == implied_type(one) for index, one in enumerate(plain))
    assert type_ in (DYNAMIC, NUMBER, STRING) or isinstance(type_to_tree(type_), str | list)


def _json(value: CtyValue, type_: CtyType) -> str:
    """The JSON of a state, written in the slow and obvious way."""
    if value is None:
        return "null"
    if isinstance(value, Dynamic):
        inner = _json(value.value, value.type)
        return f'{{"value": {inner}, "type": {encode_type(value.type).decode()}}}'
    if isinstance(value, tuple):
        return f"[{', '.join(_json(one, type_at(type_, index)) for index, one in enumerate(value))}]"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{json.dumps(key)}: {_json(one, type_at(type_, key))}' for key, one in value.items())}}}"
    if isinstance(value, bool | str):
        return json.dumps(value)
    assert isinstance(value, int | Decimal)
    return str(value)


def _as_numbers_are(plain: Any) -> Any:
    """The same tree, with whole doubles as whole numbers: to Terraform they are one."""
    if isinstance(plain, list):
        return [_as_numbers_are(one) for one in plain]
    if isinstance(plain, dict):
        return {key: _as_numbers_are(one) for key, one in plain.items()}
    return int(Decimal(repr(plain))) if isinstance(plain, float) and plain.is_integer() else plain


def _at(value: CtyValue, path: tuple[str | int, ...]) -> CtyValue:
    while isinstance(value, Dynamic):
        value = value.value
    if not path:
        return value
    step, *rest = path
    if isinstance(value, Mapping):
        return _at(value[str(step)], tuple(rest))
    assert isinstance(value, tuple)
    return _at(value[int(step)], tuple(rest))
