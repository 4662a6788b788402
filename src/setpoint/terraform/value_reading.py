"""Values as they come: MessagePack, or the JSON of a state file."""

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final, TypeAlias

import msgspec

from setpoint.core.values import Json
from setpoint.errors import ManifestInvalid
from setpoint.terraform.attribute_path import Path, shown
from setpoint.terraform.cty_types import (
    ListOf,
    MapOf,
    ObjectOf,
    Primitive,
    SetOf,
    TupleOf,
    Type,
    read_type,
    type_of_tree,
)
from setpoint.terraform.cty_values import UNKNOWN, Bound, Dynamic, Refinement, Unknown, Value
from setpoint.terraform.exact_numbers import read_number

REFINED: Final = 12
# What a dynamic value came as: its type, and what it is in that type.
Unwrap: TypeAlias = Callable[[object], tuple[Type, object] | None]


def from_msgpack(data: bytes, type_: Type) -> Value:
    """The value of `type_` that `data` holds."""
    try:
        raw = _DECODER.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ManifestInvalid("a value that is no MessagePack") from error
    return _typed(raw, type_, _unwrapped_pair, ())


def from_json(data: bytes, type_: Type) -> Value:
    """The same of JSON, which cannot say unknown. An attribute that is not there is null."""
    return _typed(_loaded(data, Decimal), type_, _unwrapped_object, ())


def tree_in(data: bytes) -> Mapping[str, Json]:
    """The object that the JSON of a state is, whatever its schema was. Whole numbers keep all their digits."""
    found: Json = _loaded(data, float)
    if not isinstance(found, Mapping):
        raise ManifestInvalid("a state that is no JSON")
    return found


def _loaded(data: bytes, fraction: Callable[[str], Decimal | float]) -> Any:  # noqa: ANN401 - any JSON
    # Seldom asked for, and so only loaded then.
    import json

    try:
        return json.loads(data, parse_float=fraction)
    except (ValueError, RecursionError) as error:
        raise ManifestInvalid("a state that is no JSON") from error


def _unknown(code: int, data: memoryview) -> Unknown | None:
    # Every extension means unknown; only of one it is known what else it says.
    if code != REFINED:
        return UNKNOWN
    says = msgspec.msgpack.decode(data)
    if not isinstance(says, dict):
        return UNKNOWN
    null, prefix = says.get(1), says.get(2)
    # What will be null for certain is null.
    if null is True:
        return None
    return Unknown(
        Refinement(
            False if null is False else None,
            prefix if isinstance(prefix, str) else "",
            _bound(says.get(3)),
            _bound(says.get(4)),
            _length(says.get(5)),
            _length(says.get(6)),
        )
    )


def _length(raw: object) -> int | None:
    return raw if type(raw) is int else None


def _bound(raw: object) -> Bound | None:
    match raw:
        case [int() | float() | str() as number, bool() as inclusive] if not isinstance(number, bool):
            return Bound(read_number(number), inclusive)
        case _:
            return None


_DECODER: Final = msgspec.msgpack.Decoder(ext_hook=_unknown)


def _unwrapped_pair(raw: object) -> tuple[Type, object] | None:
    match raw:
        case [bytes() as type_, value]:
            return read_type(type_), value
        case _:
            return None


def _unwrapped_object(raw: object) -> tuple[Type, object] | None:
    match raw:
        case {"type": type_, "value": value}:
            return type_of_tree(type_), value
        case _:
            return None


def _typed(raw: object, type_: Type, unwrap: Unwrap, path: Path) -> Value:
    if raw is None or isinstance(raw, Unknown):
        return raw
    if isinstance(type_, Primitive):
        return _primitive(raw, type_, unwrap, path)
    match type_, raw:
        case (ListOf(element) | SetOf(element), list()):
            return tuple(_typed(one, element, unwrap, (*path, index)) for index, one in enumerate(raw))
        case (TupleOf(elements), list()) if len(elements) == len(raw):
            parts = enumerate(zip(raw, elements, strict=True))
            return tuple(_typed(one, element, unwrap, (*path, index)) for index, (one, element) in parts)
        case (MapOf(element), dict()):
            return {str(key): _typed(one, element, unwrap, (*path, str(key))) for key, one in raw.items()}
        case (ObjectOf(attributes), dict()) if raw.keys() <= attributes.keys():
            return _object(raw, attributes, unwrap, path)
        case _:
            raise _misfit(raw, type_, path)


def _object(raw: dict[str, object], attributes: Mapping[str, Type], unwrap: Unwrap, path: Path) -> Value:
    return {name: _typed(raw.get(name), one, unwrap, (*path, name)) for name, one in attributes.items()}


def _primitive(raw: object, type_: Primitive, unwrap: Unwrap, path: Path) -> Value:
    found = None
    match type_, raw:
        case (Primitive.STRING, str()):
            return raw
        case (Primitive.BOOL, bool()):
            return raw
        case (Primitive.NUMBER, int() | float() | str() | Decimal()) if not isinstance(raw, bool):
            return read_number(raw)
        case (Primitive.DYNAMIC, _):
            found = unwrap(raw)
        case _:
            pass
    if found is None:
        raise _misfit(raw, type_, path)
    actual, value = found
    return Dynamic(actual, _typed(value, actual, unwrap, path))


def _misfit(raw: object, type_: Type, path: Path) -> ManifestInvalid:
    # The value itself may be a secret: only what sort it is of is told.
    wanted = type_.value if isinstance(type_, Primitive) else type(type_).__name__
    return ManifestInvalid(f"{shown(path) or 'the value'} is a {type(raw).__name__}, which is no {wanted}")
