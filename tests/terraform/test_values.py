"""Single values, and the messages of errors, besides the laws of values."""

import msgspec
import pytest
from msgspec.msgpack import Ext

from setpoint.errors import Bug, ManifestInvalid
from setpoint.terraform.cty.codec import decode_msgpack, encode_msgpack
from setpoint.terraform.cty.types import BOOL, NUMBER, STRING, ListType, ObjectType
from setpoint.terraform.cty.values import Refinement, UnknownValue, same_value

NOT_NULL = UnknownValue(Refinement(null=False))


def test_an_unknown_that_will_be_null_for_certain_is_null() -> None:
    data = msgspec.msgpack.encode(Ext(12, msgspec.msgpack.encode({1: True})))

    assert decode_msgpack(data, STRING) is None
    assert encode_msgpack(UnknownValue(Refinement(null=True)), STRING) == b"\xc0"


def test_a_refinement_is_encoded_where_it_applies_to_the_type() -> None:
    prefix = UnknownValue(Refinement(null=False, prefix="ab"))

    assert encode_msgpack(NOT_NULL, BOOL) == bytes([0xC7, 3, 12, 0x81, 1, 0xC2])
    assert decode_msgpack(encode_msgpack(prefix, STRING), STRING) == prefix
    assert decode_msgpack(encode_msgpack(prefix, NUMBER), NUMBER) == NOT_NULL


def test_true_is_not_one() -> None:
    assert not same_value(True, 1, NUMBER)
    assert not same_value((0,), (False,), ListType(NUMBER))


def test_the_error_for_a_value_of_another_type_names_its_path_and_not_the_value() -> None:
    type_ = ObjectType({"a": ListType(NUMBER)})

    with pytest.raises(Bug, match=r"^a\[1\] is a str, which is no number$"):
        encode_msgpack({"a": (1, "hunter2")}, type_)
    with pytest.raises(Bug, match=r"^the answer is a dict with b, which is no object$"):
        encode_msgpack({"b": "hunter2"}, type_)
    with pytest.raises(ManifestInvalid, match=r"^a\[0\] is a bool, which is no number$"):
        decode_msgpack(msgspec.msgpack.encode({"a": [True]}), type_)
