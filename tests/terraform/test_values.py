"""What the laws of values cannot show: single values, and the words of a refusal."""

import msgspec
import pytest
from msgspec.msgpack import Ext

from setpoint.errors import Bug, ManifestInvalid
from setpoint.terraform.cty_types import BOOL, NUMBER, STRING, ListOf, ObjectOf
from setpoint.terraform.cty_values import NOT_NULL, Refinement, Unknown, same_value
from setpoint.terraform.value_reading import from_msgpack
from setpoint.terraform.value_writing import to_msgpack


def test_an_unknown_that_will_be_null_for_certain_is_null() -> None:
    data = msgspec.msgpack.encode(Ext(12, msgspec.msgpack.encode({1: True})))

    assert from_msgpack(data, STRING) is None
    assert to_msgpack(Unknown(Refinement(null=True)), STRING) == b"\xc0"


def test_what_is_known_of_an_unknown_is_written_where_it_goes_with_the_type() -> None:
    prefix = Unknown(Refinement(null=False, prefix="ab"))

    assert to_msgpack(NOT_NULL, BOOL) == bytes([0xC7, 3, 12, 0x81, 1, 0xC2])
    assert from_msgpack(to_msgpack(prefix, STRING), STRING) == prefix
    assert from_msgpack(to_msgpack(prefix, NUMBER), NUMBER) == NOT_NULL


def test_true_is_not_one() -> None:
    assert not same_value(True, 1, NUMBER)
    assert not same_value((0,), (False,), ListOf(NUMBER))


def test_a_value_of_another_type_is_refused_with_its_place_and_without_itself() -> None:
    type_ = ObjectOf({"a": ListOf(NUMBER)})

    with pytest.raises(Bug, match=r"^a\[1\] is a str, which is no number$"):
        to_msgpack({"a": (1, "hunter2")}, type_)
    with pytest.raises(Bug, match=r"^the answer is a dict with b, which is no ObjectOf$"):
        to_msgpack({"b": "hunter2"}, type_)
    with pytest.raises(ManifestInvalid, match=r"^a\[0\] is a bool, which is no number$"):
        from_msgpack(msgspec.msgpack.encode({"a": [True]}), type_)
