"""Encoding of cty values: MessagePack in both directions, and the JSON of a state file."""

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final, TypeAlias

import msgspec
from msgspec.msgpack import Ext

from setpoint.core.values.json_types import Json
from setpoint.errors import Bug, ManifestInvalid
from setpoint.terraform.cty.types import (
    CtyType,
    ListType,
    MapType,
    ObjectType,
    PrimitiveType,
    SetType,
    TupleType,
    decode_type,
    encode_type,
    type_from_tree,
    type_name,
)
from setpoint.terraform.cty.values import (
    UNKNOWN,
    AttributePath,
    CtyValue,
    Dynamic,
    NumberBound,
    Refinement,
    UnknownValue,
    decode_number,
    encode_number,
    format_path,
)

# The MessagePack extensions of an unknown value: with a refinement, and without.
_REFINED: Final = 12
_UNREFINED: Final = Ext(0, b"\0")
# Terraform accepts at most 1 KiB of refinement.
_MAX_PREFIX_BYTES: Final = 256
_ENCODER: Final = msgspec.msgpack.Encoder()

_Raw: TypeAlias = object
# Splits an encoded dynamic value into its type and its encoded value; None when it is no dynamic value.
_Unwrap: TypeAlias = Callable[[object], tuple[CtyType, object] | None]


def decode_msgpack(data: bytes, type_: CtyType) -> CtyValue:
    """The value of `type_` that the MessagePack `data` encodes."""
    try:
        raw = _DECODER.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ManifestInvalid("a value that is no MessagePack") from error
    return _decode(raw, type_, _unwrap_pair, ())


def decode_json(data: bytes, type_: CtyType) -> CtyValue:
    """The value of `type_` that the JSON `data` encodes; it has no unknown values. A missing attribute is null."""
    return _decode(_load_json(data, Decimal), type_, _unwrap_object, ())


def decode_state(data: bytes) -> Mapping[str, Json]:
    """The attributes in the JSON of a stored state, of any version of its schema. Integers keep all their digits."""
    found: Json = _load_json(data, float)
    if not isinstance(found, Mapping):
        raise ManifestInvalid("a state that is no JSON")
    return found


def _load_json(data: bytes, fraction: Callable[[str], Decimal | float]) -> Any:  # noqa: ANN401 - any JSON
    # Imported on use: most processes decode no state.
    import json

    try:
        return json.loads(data, parse_float=fraction)
    except (ValueError, RecursionError) as error:
        raise ManifestInvalid("a state that is no JSON") from error


def _decode_unknown(code: int, data: memoryview) -> UnknownValue | None:
    # Every extension is an unknown value; one of them has a refinement.
    if code != _REFINED:
        return UNKNOWN
    fields = msgspec.msgpack.decode(data)
    if not isinstance(fields, dict):
        return UNKNOWN
    null, prefix = fields.get(1), fields.get(2)
    if null is True:
        return None
    return UnknownValue(
        Refinement(
            False if null is False else None,
            prefix if isinstance(prefix, str) else "",
            _decode_bound(fields.get(3)),
            _decode_bound(fields.get(4)),
            _length(fields.get(5)),
            _length(fields.get(6)),
        )
    )


def _length(raw: object) -> int | None:
    return raw if type(raw) is int else None


def _decode_bound(raw: object) -> NumberBound | None:
    match raw:
        case [int() | float() | str() as number, bool() as inclusive] if not isinstance(number, bool):
            return NumberBound(decode_number(number), inclusive)
        case _:
            return None


_DECODER: Final = msgspec.msgpack.Decoder(ext_hook=_decode_unknown)


def _unwrap_pair(raw: object) -> tuple[CtyType, object] | None:
    match raw:
        case [bytes() as type_, value]:
            return decode_type(type_), value
        case _:
            return None


def _unwrap_object(raw: object) -> tuple[CtyType, object] | None:
    match raw:
        case {"type": type_, "value": value}:
            return type_from_tree(type_), value
        case _:
            return None


def _decode(raw: object, type_: CtyType, unwrap: _Unwrap, path: AttributePath) -> CtyValue:
    if raw is None or isinstance(raw, UnknownValue):
        return raw
    if isinstance(type_, PrimitiveType):
        return _decode_primitive(raw, type_, unwrap, path)
    match type_, raw:
        case (ListType(element) | SetType(element), list()):
            return tuple(_decode(one, element, unwrap, (*path, index)) for index, one in enumerate(raw))
        case (TupleType(elements), list()) if len(elements) == len(raw):
            parts = enumerate(zip(raw, elements, strict=True))
            return tuple(_decode(one, element, unwrap, (*path, index)) for index, (one, element) in parts)
        case (MapType(element), dict()):
            return {str(key): _decode(one, element, unwrap, (*path, str(key))) for key, one in raw.items()}
        case (ObjectType(attributes), dict()) if raw.keys() <= attributes.keys():
            return _decode_object(raw, attributes, unwrap, path)
        case _:
            raise _decode_error(raw, type_, path)


def _decode_object(
    raw: dict[str, object], attributes: Mapping[str, CtyType], unwrap: _Unwrap, path: AttributePath
) -> CtyValue:
    return {name: _decode(raw.get(name), one, unwrap, (*path, name)) for name, one in attributes.items()}


def _decode_primitive(raw: object, type_: PrimitiveType, unwrap: _Unwrap, path: AttributePath) -> CtyValue:
    found = None
    match type_, raw:
        case (PrimitiveType.STRING, str()):
            return raw
        case (PrimitiveType.BOOL, bool()):
            return raw
        case (PrimitiveType.NUMBER, int() | float() | str() | Decimal()) if not isinstance(raw, bool):
            return decode_number(raw)
        case (PrimitiveType.DYNAMIC, _):
            found = unwrap(raw)
        case _:
            pass
    if found is None:
        raise _decode_error(raw, type_, path)
    actual, value = found
    return Dynamic(actual, _decode(value, actual, unwrap, path))


def _decode_error(raw: object, type_: CtyType, path: AttributePath) -> ManifestInvalid:
    # Without the value, which may be a secret.
    return ManifestInvalid(
        f"{format_path(path) or 'the value'} is a {type(raw).__name__}, which is no {type_name(type_)}"
    )


# --- Encoding --------------------------------------------------------------------------------------------------------


def encode_msgpack(value: CtyValue, type_: CtyType) -> bytes:
    """The MessagePack encoding of `value`; Bug when it is not of `type_`: names the path, never the value."""
    raw = _encode(value, type_, ())
    try:
        return _ENCODER.encode(raw)
    except (UnicodeEncodeError, RecursionError) as error:
        raise Bug(f"a value has no MessagePack form: {type(error).__name__}") from None


def _encode(value: CtyValue, type_: CtyType, path: AttributePath) -> _Raw:
    if value is None:
        return None
    if isinstance(value, UnknownValue):
        return _encode_unknown(value.refinement, type_)
    if isinstance(type_, PrimitiveType):
        return _encode_primitive(value, type_, path)
    match type_, value:
        case (ListType(element) | SetType(element), tuple()):
            return [_encode(one, element, (*path, index)) for index, one in enumerate(value)]
        case (TupleType(elements), tuple()) if len(value) == len(elements):
            parts = enumerate(zip(value, elements, strict=True))
            return [_encode(one, element, (*path, index)) for index, (one, element) in parts]
        case (MapType(element), Mapping()):
            return {key: _encode(one, element, (*path, key)) for key, one in value.items()}
        case (ObjectType(attributes), Mapping()) if value.keys() == attributes.keys():
            return {name: _encode(value[name], one, (*path, name)) for name, one in attributes.items()}
        case _:
            raise _encode_error(value, type_, path)


def _encode_primitive(value: CtyValue, type_: PrimitiveType, path: AttributePath) -> _Raw:
    match type_, value:
        case (PrimitiveType.STRING, str()) | (PrimitiveType.BOOL, bool()):
            return value
        case (PrimitiveType.NUMBER, int() | Decimal()) if not isinstance(value, bool):
            return encode_number(value)
        case (PrimitiveType.DYNAMIC, Dynamic(actual, inner)):
            return [encode_type(actual), _encode(inner, actual, path)]
        case _:
            raise _encode_error(value, type_, path)


def _encode_error(value: CtyValue, type_: CtyType, path: AttributePath) -> Bug:
    # Without the value, which may be a secret.
    names = f" with {', '.join(sorted(value))}" if isinstance(value, Mapping) and isinstance(type_, ObjectType) else ""
    return Bug(
        f"{format_path(path) or 'the answer'} is a {type(value).__name__}{names}, which is no {type_name(type_)}"
    )


def _encode_unknown(refinement: Refinement, type_: CtyType) -> Ext | None:
    if refinement.null is True:
        return None
    fields = {number: one for number, one in _refinement_fields(refinement, type_).items() if one is not None}
    return Ext(_REFINED, _ENCODER.encode(fields)) if fields else _UNREFINED


def _refinement_fields(refinement: Refinement, type_: CtyType) -> dict[int, _Raw]:
    # Terraform rejects a value with a refinement that does not apply to its type.
    match type_:
        case PrimitiveType.DYNAMIC:
            return {}
        case PrimitiveType.STRING:
            prefix = refinement.prefix.encode()[:_MAX_PREFIX_BYTES].decode(errors="ignore")
            return {1: refinement.null, 2: prefix or None}
        case PrimitiveType.NUMBER:
            return {
                1: refinement.null,
                3: _encode_bound(refinement.lower_bound),
                4: _encode_bound(refinement.upper_bound),
            }
        case ListType() | SetType() | MapType():
            return {1: refinement.null, 5: refinement.min_length, 6: refinement.max_length}
        case _:
            return {1: refinement.null}


def _encode_bound(bound: NumberBound | None) -> _Raw:
    return None if bound is None else [encode_number(bound.number), bound.inclusive]
