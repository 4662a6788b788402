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
from setpoint.terraform.cty_types import DYNAMIC, NUMBER, STRING, SetOf, Type, read_type, type_json, type_tree
from setpoint.terraform.cty_values import (
    UNKNOWN,
    Dynamic,
    Unknown,
    Value,
    is_known,
    known_part,
    part_type,
    same_value,
    unknown_paths,
)
from setpoint.terraform.exact_numbers import read_number, write_number
from setpoint.terraform.plain_values import as_before, from_plain, to_plain, type_of_plain
from setpoint.terraform.value_reading import from_json, from_msgpack
from setpoint.terraform.value_writing import conforms, to_msgpack
from tests.laws.json_values import json_values
from tests.laws.terraform_values import numbers, typed_values, types, values_of

pytestmark = pytest.mark.laws


@given(types)
def test_a_type_is_read_back_from_its_name(type_: Type) -> None:
    assert read_type(type_json(type_)) == type_


@given(typed_values())
def test_a_value_is_read_back_from_its_bytes(typed: tuple[Type, Value]) -> None:
    type_, value = typed
    again = from_msgpack(to_msgpack(value, type_), type_)

    assert same_value(again, value, type_)
    assert to_msgpack(again, type_) == to_msgpack(value, type_)


@given(typed_values(known=True))
def test_a_value_is_read_back_from_the_json_of_a_state(typed: tuple[Type, Value]) -> None:
    type_, value = typed
    if "Infinity" in str(value):
        return
    text = _json(value, type_)

    assert same_value(from_json(text.encode(), type_), value, type_)


@given(typed_values())
def test_a_value_is_of_its_type(typed: tuple[Type, Value]) -> None:
    type_, value = typed

    assert conforms(value, type_)
    assert same_value(value, value, type_)


@given(types, typed_values(known=True))
def test_what_is_not_of_a_type_is_not_written_as_one(type_: Type, typed: tuple[Type, Value]) -> None:
    own, value = typed
    if conforms(value, type_) and type_ != own:
        again = from_msgpack(to_msgpack(value, type_), type_)

        assert same_value(again, value, type_)


@given(types, st.binary(max_size=12))
def test_bytes_give_a_value_of_the_type_or_an_error_of_ours(type_: Type, data: bytes) -> None:
    try:
        value = from_msgpack(data, type_)
    except ManifestInvalid:
        return

    assert conforms(value, type_)


@given(numbers)
@example(Decimal("0.2"))
@example(2**63)
@example(2**53 + 1)
def test_a_number_on_the_wire_is_exactly_that_number(number: int | Decimal) -> None:
    written = write_number(number)
    # As Terraform would read it.
    exact = Fraction(written) if isinstance(written, int | float) else Fraction(Decimal(written))

    assert exact == Fraction(number)
    assert read_number(written) == number
    assert not isinstance(written, float) or struct.unpack("d", struct.pack("d", written))[0] == written


@given(json_values)
def test_json_goes_in_and_out_unchanged(plain: Any) -> None:
    value = from_plain(plain, DYNAMIC)
    again = to_plain(value)

    assert conforms(value, DYNAMIC)
    assert again == _as_numbers_are(plain)


@given(typed_values())
def test_what_is_plain_is_the_same_value_again(typed: tuple[Type, Value]) -> None:
    type_, value = typed
    if "Infinity" in str(value):
        return
    plain = to_plain(value)
    again = from_plain(plain, type_)

    assert conforms(again, type_)
    assert to_plain(again) == plain
    assert same_value(as_before(again, value), value, type_)


@given(json_values, json_values)
def test_what_changed_is_not_as_before(plain: Any, other: Any) -> None:
    value, before = from_plain(plain, DYNAMIC), from_plain(other, DYNAMIC)

    assert to_plain(as_before(value, before)) == to_plain(value)


@given(typed_values())
def test_a_value_is_known_when_no_part_of_it_is_unknown(typed: tuple[Type, Value]) -> None:
    type_, value = typed
    paths = list(unknown_paths(value))

    assert is_known(value) == (paths == [])
    for path in paths:
        assert isinstance(_at(value, path), Unknown)
    if isinstance(value, Mapping):
        known = known_part(value)

        assert is_known(known)
        assert conforms(known, type_)


@given(st.lists(values_of(DYNAMIC), max_size=4), st.randoms())
def test_the_order_of_a_set_is_nothing(parts: list[Value], random: Any) -> None:
    shuffled = random.sample(parts, len(parts))

    assert same_value(tuple(parts), tuple(shuffled), SetOf(DYNAMIC))
    assert same_value(tuple(parts + parts), tuple(shuffled), SetOf(DYNAMIC))


@given(typed_values(), st.integers(1, 127).filter(lambda code: code != 12), st.binary(max_size=20))
def test_every_extension_means_unknown(typed: tuple[Type, Value], code: int, data: bytes) -> None:
    type_, _ = typed

    assert from_msgpack(msgspec.msgpack.encode(msgspec.msgpack.Ext(code, data)), type_) == UNKNOWN


@given(st.dictionaries(st.integers(7, 99), st.booleans(), max_size=3))
def test_what_else_is_known_of_an_unknown_is_passed_over(says: dict[int, bool]) -> None:
    data = msgspec.msgpack.encode(msgspec.msgpack.Ext(12, msgspec.msgpack.encode({**says, 2: "ab"})))
    found = from_msgpack(data, STRING)

    assert isinstance(found, Unknown)
    assert found.refinement.prefix == "ab"


@given(json_values)
def test_a_tree_has_the_type_that_its_parts_have(plain: Any) -> None:
    type_ = type_of_plain(plain)
    if isinstance(plain, dict):
        assert all(part_type(type_, key) == type_of_plain(one) for key, one in plain.items())
    if isinstance(plain, list):
        assert all(part_type(type_, index) == type_of_plain(one) for index, one in enumerate(plain))
    assert type_ in (DYNAMIC, NUMBER, STRING) or isinstance(type_tree(type_), str | list)


def _json(value: Value, type_: Type) -> str:
    """The JSON of a state, written in the slow and obvious way."""
    if value is None:
        return "null"
    if isinstance(value, Dynamic):
        inner = _json(value.value, value.type)
        return f'{{"value": {inner}, "type": {type_json(value.type).decode()}}}'
    if isinstance(value, tuple):
        return f"[{', '.join(_json(one, part_type(type_, index)) for index, one in enumerate(value))}]"
    if isinstance(value, Mapping):
        return (
            f"{{{', '.join(f'{json.dumps(key)}: {_json(one, part_type(type_, key))}' for key, one in value.items())}}}"
        )
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


def _at(value: Value, path: tuple[str | int, ...]) -> Value:
    while isinstance(value, Dynamic):
        value = value.value
    if not path:
        return value
    step, *rest = path
    if isinstance(value, Mapping):
        return _at(value[str(step)], tuple(rest))
    assert isinstance(value, tuple)
    return _at(value[int(step)], tuple(rest))
