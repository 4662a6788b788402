"""Values as they go: MessagePack, in the form that Terraform itself would choose."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Final, TypeAlias

import msgspec
from msgspec.msgpack import Ext

from setpoint.errors import Bug
from setpoint.terraform.attribute_path import Path, shown
from setpoint.terraform.cty_types import ListOf, MapOf, ObjectOf, Primitive, SetOf, TupleOf, Type, type_json
from setpoint.terraform.cty_values import Bound, Dynamic, Refinement, Unknown, Value
from setpoint.terraform.exact_numbers import write_number
from setpoint.terraform.value_reading import REFINED

_Raw: TypeAlias = object
_PLAIN_UNKNOWN: Final = Ext(0, b"\0")
# Terraform takes no more than 1 KiB of what is known of an unknown.
_LONGEST_PREFIX: Final = 256
_ENCODER: Final = msgspec.msgpack.Encoder()


def to_msgpack(value: Value, type_: Type) -> bytes:
    """The bytes of `value`; Bug when it is not of `type_`, with the place and never the value."""
    raw = _raw(value, type_, ())
    try:
        return _ENCODER.encode(raw)
    except (UnicodeEncodeError, RecursionError) as error:
        raise Bug(f"a value has no MessagePack form: {type(error).__name__}") from None


def conforms(value: Value, type_: Type) -> bool:
    """Whether `value` is of `type_`."""
    try:
        _raw(value, type_, ())
    except Bug:
        return False
    return True


def _raw(value: Value, type_: Type, path: Path) -> _Raw:
    if value is None:
        return None
    if isinstance(value, Unknown):
        return _unknown(value.refinement, type_)
    if isinstance(type_, Primitive):
        return _primitive(value, type_, path)
    match type_, value:
        case (ListOf(element) | SetOf(element), tuple()):
            return [_raw(one, element, (*path, index)) for index, one in enumerate(value)]
        case (TupleOf(elements), tuple()) if len(value) == len(elements):
            parts = enumerate(zip(value, elements, strict=True))
            return [_raw(one, element, (*path, index)) for index, (one, element) in parts]
        case (MapOf(element), Mapping()):
            return {key: _raw(one, element, (*path, key)) for key, one in value.items()}
        case (ObjectOf(attributes), Mapping()) if value.keys() == attributes.keys():
            return {name: _raw(value[name], one, (*path, name)) for name, one in attributes.items()}
        case _:
            raise _misfit(value, type_, path)


def _primitive(value: Value, type_: Primitive, path: Path) -> _Raw:
    match type_, value:
        case (Primitive.STRING, str()) | (Primitive.BOOL, bool()):
            return value
        case (Primitive.NUMBER, int() | Decimal()) if not isinstance(value, bool):
            return write_number(value)
        case (Primitive.DYNAMIC, Dynamic(actual, inner)):
            return [type_json(actual), _raw(inner, actual, path)]
        case _:
            raise _misfit(value, type_, path)


def _misfit(value: Value, type_: Type, path: Path) -> Bug:
    # The value itself may be a secret: only what sort it is of is told.
    wanted = type_.value if isinstance(type_, Primitive) else type(type_).__name__
    has = f" with {', '.join(sorted(value))}" if isinstance(value, Mapping) and isinstance(type_, ObjectOf) else ""
    return Bug(f"{shown(path) or 'the answer'} is a {type(value).__name__}{has}, which is no {wanted}")


def _unknown(known: Refinement, type_: Type) -> Ext | None:
    if known.null is True:
        return None
    says = {number: one for number, one in _facts(known, type_).items() if one is not None}
    return Ext(REFINED, _ENCODER.encode(says)) if says else _PLAIN_UNKNOWN


def _facts(known: Refinement, type_: Type) -> dict[int, _Raw]:
    # A fact that does not go with the type would make Terraform refuse the value.
    match type_:
        case Primitive.DYNAMIC:
            return {}
        case Primitive.STRING:
            prefix = known.prefix.encode()[:_LONGEST_PREFIX].decode(errors="ignore")
            return {1: known.null, 2: prefix or None}
        case Primitive.NUMBER:
            return {1: known.null, 3: _bound(known.least), 4: _bound(known.most)}
        case ListOf() | SetOf() | MapOf():
            return {1: known.null, 5: known.fewest_parts, 6: known.most_parts}
        case _:
            return {1: known.null}


def _bound(bound: Bound | None) -> _Raw:
    return None if bound is None else [write_number(bound.number), bound.inclusive]
