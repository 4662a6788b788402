"""Canonical bytes: named cases, and everything that is refused."""

import datetime
import enum
import uuid
from collections import OrderedDict
from types import MappingProxyType
from typing import Any

import msgspec
import pytest
from msgspec import UNSET, UnsetType

from setpoint.core.values import canonical as routes
from setpoint.core.values.canonical import MAX_DEPTH, canonical, digest, encodes_same, same, sha256_hex
from setpoint.core.values.json_types import Json
from setpoint.errors import NotJson


class Color(enum.Enum):
    RED = "red"


class Instance(msgspec.Struct):
    name: str
    size: int | UnsetType = UNSET
    raw: Any = UNSET


class Nested(msgspec.Struct):
    labels: dict[str, str]
    items: "list[Nested] | None | UnsetType" = UNSET
    ratio: float | UnsetType = UNSET


class Encodable(msgspec.Struct):
    """A struct that msgspec can write but has no decoder for."""

    what: list[int] | set[int]


def _nested(depth: int) -> Json:
    value: Json = []
    for _ in range(depth - 1):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, b"null"),
        (True, b"true"),
        (False, b"false"),
        ({"b": 1, "a": [1.0, "x"]}, b'{"a":[1,"x"],"b":1}'),
        ({"\u20ac": 1, "\r": 2, "\ufb33": 3, "1": 4, "\U0001f600": 5, "\x80": 6, "\u00f6": 7}, None),
        ('\x00\b\t\n\f\r\x1f\x7f"\\/\u2028', b'"\\u0000\\b\\t\\n\\f\\r\\u001f\x7f\\"\\\\/\xe2\x80\xa8"'),
        (
            [2**53 - 1, 2**53, 2**53 + 1, 2**64],
            b"[9007199254740991,9007199254740992,9007199254740993,18446744073709551616]",
        ),
        ([1e21, 5e-324, -0.0], b"[1e+21,5e-324,0]"),
        ((1, 2), b"[1,2]"),
        (OrderedDict(z=1, a=2), b'{"a":2,"z":1}'),
        (MappingProxyType({"a": 1}), b'{"a":1}'),
    ],
)
def test_a_value_has_one_byte_form(value: Json, text: bytes | None) -> None:
    expected = text or '{"\\r":2,"1":4,"\x80":6,"ö":7,"€":1,"\U0001f600":5,"\ufb33":3}'.encode()

    assert canonical(value) == expected


def test_keys_sort_as_utf_16_so_that_astral_ones_come_before_the_private_use_area() -> None:
    assert canonical({"\ue000": 1, "\U00010000": 2}) == '{"\U00010000":2,"\ue000":1}'.encode()


def test_enum_members_and_uuids_are_written_as_text() -> None:
    number = uuid.UUID(int=1)
    members: Any = [Color.RED, number, 1.5]

    assert canonical(members) == b'["red","00000000-0000-0000-0000-000000000001",1.5]'
    assert canonical(members[:2]) == b'["red","00000000-0000-0000-0000-000000000001"]'


def test_a_struct_is_written_without_its_unset_fields() -> None:
    assert canonical(Instance("db")) == b'{"name":"db"}'


def test_a_struct_with_untyped_members_uses_the_exact_encoder() -> None:
    assert canonical(Instance("db", raw={"b": 1.0, "a": 2})) == b'{"name":"db","raw":{"a":2,"b":1}}'


def test_a_struct_of_unsupported_types_is_written_as_its_builtins() -> None:
    assert canonical(Encodable([2, 1])) == b'{"what":[2,1]}'


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Nested({"b": "x", "a": "y"}), b'{"labels":{"a":"y","b":"x"}}'),
        (
            Nested({}, [Nested({}), Nested({"é": "x"})]),
            '{"items":[{"labels":{}},{"labels":{"é":"x"}}],"labels":{}}'.encode(),
        ),
        (Nested({}, None), b'{"items":null,"labels":{}}'),
        (Nested({}, [], 0.5), b'{"items":[],"labels":{},"ratio":0.5}'),
        (Nested({"\ue000": "", "\U00010000": ""}), '{"labels":{"\U00010000":"","\ue000":""}}'.encode()),
    ],
)
def test_a_struct_of_plain_types_has_one_byte_form(value: "Nested", text: bytes) -> None:
    assert canonical(value) == text


def test_a_struct_with_an_integer_beyond_64_bits_keeps_its_digits() -> None:
    assert canonical(Plain("db", 2**70)) == b'{"name":"db","size":1180591620717411303424}'


class Plain(msgspec.Struct):
    name: str
    size: int


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (float("nan"), "nan is not a JSON number"),
        ({"a": [{"b": float("-inf")}]}, r"a\[0\].b: -inf is not a JSON number"),
        ({"a": {1: 2}}, "a: the key 1 is a int: JSON keys are text, put it in quotes"),
        ("\ud800", "text with a lone surrogate at position 0 has no UTF-8 form"),
        ({"x": {"\udfff": 1}}, "x: text with a lone surrogate at position 0"),
        ({"t": datetime.date(2020, 1, 1)}, "t: a date has no JSON form: use text, a number, a list or a map"),
        ({"n": 10**5000}, "n: Exceeds the limit"),
    ],
)
def test_a_value_without_a_json_form_is_refused_with_its_path(value: Any, message: str) -> None:
    with pytest.raises(NotJson, match=message):
        canonical(value)


def test_nesting_is_accepted_up_to_its_limit() -> None:
    assert canonical(_nested(MAX_DEPTH)) == b"[" * MAX_DEPTH + b"]" * MAX_DEPTH
    with pytest.raises(NotJson, match="nested deeper than 254 levels, or in a cycle"):
        canonical(_nested(MAX_DEPTH + 1))


def test_the_exact_encoder_has_the_same_nesting_limit() -> None:
    inner: Json = 1.5
    for _ in range(MAX_DEPTH):
        inner = [inner]

    assert canonical(inner).count(b"[") == MAX_DEPTH
    with pytest.raises(NotJson, match="nested deeper"):
        canonical([inner])


def test_a_cycle_is_refused() -> None:
    loop: dict[str, Json] = {}
    loop["self"] = loop

    with pytest.raises(NotJson, match="in a cycle"):
        canonical(loop)


@pytest.mark.parametrize("value", [203, [203], {"a": "x" * 203}, {"a": [-(2**62) + 203]}, [[], {}, {"a": 203}]])
def test_a_value_with_the_byte_of_a_float_and_no_float_uses_the_fast_encoder(value: Json) -> None:
    assert routes._fast_text(value) == routes._exact_text(value)


@pytest.mark.parametrize("value", [0.5, [[203, 0.5]], {"a": {"b": 1e16}}, [float("nan")]])
def test_a_value_with_a_float_never_uses_the_fast_encoder(value: Json) -> None:
    assert routes._fast_text(value) is None


def test_a_digest_is_lower_case_sha_256() -> None:
    assert digest({}) == "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
    assert sha256_hex(b"{}") == digest({})


@pytest.mark.parametrize(
    ("a", "b"),
    [(1, 1.0), (0, -0.0), ({"a": 1, "b": 2}, {"b": 2.0, "a": 1}), ([1], (1,)), ("x", "x"), (None, None)],
)
def test_one_json_value_is_the_same_however_python_holds_it(a: Json, b: Json) -> None:
    assert same(a, b)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (True, 1),
        (0, False),
        (None, False),
        ("1", 1),
        (1, "1"),
        ([1], 1),
        ([True], [1]),
        ({"a": 1}, {"a": True}),
        ({"a": 1}, {"b": 1}),
        ({"a": 1}, [1]),
        ([1, 2], [2, 1]),
        ([float("nan")], [None]),
        ([1], "x"),
        ({"a": 2**60}, {"a": 2.0**60}),
    ],
)
def test_different_json_values_are_never_the_same(a: Json, b: Json) -> None:
    assert not same(a, b)


def test_structs_are_compared_by_their_json_form() -> None:
    assert same(Instance("db", 1), {"name": "db", "size": 1.0})
    assert not same(Instance("db", 1), Instance("db"))


def test_values_that_cannot_be_packed_never_encode_the_same() -> None:
    assert not encodes_same([2**70], [2**70])
    assert same([2**70], [2**70])


def test_values_nested_too_deeply_to_compare_are_refused() -> None:
    with pytest.raises(NotJson, match="nested deeper"):
        same([_nested(3000), 1], [_nested(3000), 1.0])
