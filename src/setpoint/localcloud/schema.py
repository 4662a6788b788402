"""Validation of request bodies: fields by name and type, labels. Anything else is refused, with its path named."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum, StrEnum
from typing import Final, TypeAlias, assert_never

from setpoint.localcloud import api_errors
from setpoint.localcloud.api_errors import CloudApiError
from setpoint.localcloud.json_body import JsonBody


class ScalarSchema(StrEnum):
    """A single value, named as Google's messages name it."""

    TEXT = "TYPE_STRING"
    BOOL = "TYPE_BOOL"
    INT32 = "TYPE_INT32"
    INT64 = "TYPE_INT64"  # text on the wire: JSON numbers are not safe for it
    TIME = "type.googleapis.com/google.protobuf.Timestamp"
    SECRET = "a secret text"  # taken in, never given out


@dataclass(frozen=True, slots=True)
class EnumSchema:
    """Text from a closed set."""

    values: frozenset[str]


@dataclass(frozen=True, slots=True)
class ListSchema:
    """Elements of one shape; a patch replaces the whole list."""

    element: "FieldSchema"


@dataclass(frozen=True, slots=True)
class MapSchema:
    """Any names, values of one shape."""

    value: "FieldSchema"


@dataclass(frozen=True, slots=True)
class ObjectSchema:
    """Named fields. `kind` is the mark that the service puts on each, whatever the client wrote."""

    fields: Mapping[str, "FieldSchema"]
    kind: str | None = None


class OutputOnly(Enum):
    """A field that belongs to the service: a request may carry it, without effect."""

    SERVICE = "service"


OUTPUT = OutputOnly.SERVICE
FieldSchema: TypeAlias = ScalarSchema | EnumSchema | ListSchema | MapSchema | ObjectSchema | OutputOnly


class NullMeaning(Enum):
    """What a null says: in a whole object nothing at all, in a patch "remove it"."""

    ABSENT = "absent"
    REMOVE = "remove"


def enum_of(*values: str) -> EnumSchema:
    """Text that is one of `values`."""
    return EnumSchema(frozenset(values))


def validate(shape: ObjectSchema, body: object, nulls: NullMeaning = NullMeaning.ABSENT, at: str = "") -> JsonBody:
    """`body` as the service understands it; a Refusal names the first thing it does not."""
    if not isinstance(body, dict):
        raise (
            api_errors.bad_json("The body is not an object.") if not at else api_errors.wrong_value(at, "object", body)
        )
    understood: JsonBody = {}
    for name, value in body.items():
        field = shape.fields.get(name)
        if field is None and name != "kind":
            raise api_errors.unknown_name(name, at)
        if field is None or field is OUTPUT or (value is None and nulls is NullMeaning.ABSENT):
            continue
        understood[name] = (
            None if value is None else _validate_value(field, value, nulls, f"{at}.{name}" if at else name)
        )
    return {**understood, "kind": shape.kind} if shape.kind else understood


def client_fields(shape: ObjectSchema, tree: JsonBody) -> JsonBody:
    """The part of `tree` that clients decide and the service gives back: no outputs, no secrets, nothing unknown."""
    result: JsonBody = {}
    for name, value in tree.items():
        match shape.fields.get(name):
            case ObjectSchema() as below if isinstance(value, dict):
                result[name] = client_fields(below, value)
            case None | OutputOnly() | ScalarSchema.SECRET:
                continue
            case _:
                result[name] = value
    return {**result, "kind": shape.kind} if shape.kind else result


def _validate_value(shape: FieldSchema, value: object, nulls: NullMeaning, at: str) -> object:
    match shape:
        case ObjectSchema():
            return validate(shape, value, nulls, at)
        case MapSchema():
            return _validate_map(shape, value, nulls, at)
        case ListSchema():
            return _validate_list(shape, value, at)
        case EnumSchema():
            if value not in shape.values:
                raise api_errors.wrong_value(at, "TYPE_ENUM", value)
            return value
        case ScalarSchema():
            return _validate_scalar(shape, value, at)
        case OutputOnly():
            return value
        case _:
            assert_never(shape)


def _validate_list(shape: ListSchema, value: object, at: str) -> list[object]:
    if not isinstance(value, list):
        raise api_errors.wrong_value(at, "a list", value)
    # A list is replaced as a whole, so a null inside it removes nothing.
    return [_validate_value(shape.element, one, NullMeaning.ABSENT, f"{at}[{n}]") for n, one in enumerate(value)]


def _validate_map(shape: MapSchema, value: object, nulls: NullMeaning, at: str) -> JsonBody:
    if not isinstance(value, dict):
        raise api_errors.wrong_value(at, "an object", value)
    present = {name: one for name, one in value.items() if one is not None or nulls is NullMeaning.REMOVE}
    return {
        n: None if one is None else _validate_value(shape.value, one, nulls, f"{at}.{n}") for n, one in present.items()
    }


def _validate_scalar(scalar: ScalarSchema, value: object, at: str) -> object:
    match scalar:
        case ScalarSchema.BOOL if isinstance(value, bool):
            return value
        case ScalarSchema.INT32 if (whole := _integer(value)) is not None and abs(whole) < 2**31:
            return whole
        case ScalarSchema.INT64 if (whole := _integer(value)) is not None and abs(whole) < 2**63:
            return str(whole)
        case ScalarSchema.TEXT | ScalarSchema.SECRET if isinstance(value, str):
            return value
        case ScalarSchema.TIME if isinstance(value, str) and _is_time(value):
            return value
        case _:
            raise api_errors.wrong_value(
                at, ScalarSchema.TEXT if scalar is ScalarSchema.SECRET else scalar, _shown(scalar, value)
            )


def _shown(scalar: ScalarSchema, value: object) -> object:
    return "[redacted]" if scalar is ScalarSchema.SECRET else value


def _integer(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | str):
        return None
    try:
        return int(value)
    except ValueError:
        return None


def _is_time(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


# Small letters of any script, digits, underscore, hyphen; the upper-case check is done on the text itself.
_LABEL: Final = re.compile(r"[\w-]*")
_MAX_LABELS: Final = 64


def check_labels(labels: Mapping[str, str], refuse: Callable[[str], CloudApiError]) -> None:
    """Refuses labels that break the rules of names: lower case, 63 characters, a letter first, at most 64 of them."""
    if len(labels) > _MAX_LABELS:
        raise refuse(f"There are {len(labels)} labels, {_MAX_LABELS} is the limit")
    for key, value in labels.items():
        if not key or not key[0].isalpha() or not _is_label(key):
            raise refuse(f"Invalid label key ({key})")
        if not _is_label(value):
            raise refuse(f"Invalid value ({value}) of the label {key}")


def _is_label(text: str) -> bool:
    return len(text) <= 63 and _LABEL.fullmatch(text) is not None and text == text.lower()
