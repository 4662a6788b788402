"""JSON bodies: merge patch (RFC 7386), and validation against a schema of fields.

Every field is known by name and type; anything else is refused, with its path named.
"""

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from enum import Enum, StrEnum
from typing import Any, Final, TypeAlias, assert_never

from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.localcloud import api_errors
from setpoint.localcloud.api_errors import CloudApiError

# The body of a request or response. A request's is validated against a schema before it is used.
# A body is never changed in place: a change makes a new one.
JsonBody: TypeAlias = dict[str, Any]


def merge_patch(target: JsonBody, patch: JsonBody) -> JsonBody:
    """`target` after `patch`: null removes, objects merge, anything else replaces."""
    merged = dict(target)
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        elif isinstance(value, dict):
            below = merged.get(name)
            merged[name] = merge_patch(below if isinstance(below, dict) else {}, value)
        else:
            merged[name] = value
    return merged


def member(tree: JsonBody, path: str) -> object:
    """The value at a dotted path, or None when any step of the way is absent."""
    here: object = tree
    for name in path.split("."):
        here = here.get(name) if isinstance(here, dict) else None
    return here


def with_member(tree: JsonBody, path: str, value: object) -> JsonBody:
    """`tree` with `value` at a dotted path; missing objects on the way are created."""
    name, _, rest = path.partition(".")
    if not rest:
        return {**tree, name: value}
    below = tree.get(name)
    return {**tree, name: with_member(below if isinstance(below, dict) else {}, rest, value)}


def without_member(tree: JsonBody, path: str) -> JsonBody:
    """`tree` without what is at a dotted path."""
    name, _, rest = path.partition(".")
    if not rest:
        return {key: value for key, value in tree.items() if key != name}
    below = tree.get(name)
    return {**tree, name: without_member(below, rest)} if isinstance(below, dict) else tree


class ScalarSchema(StrEnum):
    """A scalar type, named as in Google's error messages."""

    TEXT = "TYPE_STRING"
    BOOL = "TYPE_BOOL"
    INT32 = "TYPE_INT32"
    INT64 = "TYPE_INT64"  # a string in JSON, as in all of Google's APIs
    TIME = "type.googleapis.com/google.protobuf.Timestamp"
    SECRET = "a secret text"  # write-only


@dataclass(frozen=True, slots=True)
class EnumSchema:
    """Text from a closed set."""

    values: frozenset[str]


@dataclass(frozen=True, slots=True)
class ListSchema:
    """A list; a patch replaces it as a whole."""

    element: "FieldSchema"


@dataclass(frozen=True, slots=True)
class MapSchema:
    """A map with any names."""

    value: "FieldSchema"


@dataclass(frozen=True, slots=True)
class ObjectSchema:
    """An object with named fields. The service sets its `kind`, whatever the client sent."""

    fields: Mapping[str, "FieldSchema"]
    kind: str | None = None


class OutputOnly(Enum):
    """An output-only field: a request may contain it, without effect."""

    SERVICE = "service"


OUTPUT = OutputOnly.SERVICE
FieldSchema: TypeAlias = ScalarSchema | EnumSchema | ListSchema | MapSchema | ObjectSchema | OutputOnly


class NullMeaning(Enum):
    """What a null means: in a whole object the field is absent, in a patch it is removed."""

    ABSENT = "absent"
    REMOVE = "remove"


def enum_of(*values: str) -> EnumSchema:
    """Text that is one of `values`."""
    return EnumSchema(frozenset(values))


def validate(shape: ObjectSchema, body: object, nulls: NullMeaning = NullMeaning.ABSENT, at: str = "") -> JsonBody:
    """`body` as the service understands it; CloudApiError for the first unknown field or invalid value."""
    if not isinstance(body, dict):
        raise (
            api_errors.bad_json("The body is not an object.") if not at else api_errors.wrong_value(at, "object", body)
        )
    valid: JsonBody = {}
    for name, value in body.items():
        field = shape.fields.get(name)
        if field is None and name != "kind":
            raise api_errors.unknown_name(name, at)
        if field is None or field is OUTPUT or (value is None and nulls is NullMeaning.ABSENT):
            continue
        valid[name] = None if value is None else _validate_value(field, value, nulls, f"{at}.{name}" if at else name)
    return {**valid, "kind": shape.kind} if shape.kind else valid


def client_fields(shape: ObjectSchema, tree: JsonBody) -> JsonBody:
    """The fields of `tree` that clients set and the service returns: no outputs, no secrets, no unknown fields."""
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


# Letters of any script, digits, underscore, hyphen; lower case is checked separately.
_LABEL: Final = re.compile(r"[\w-]*")
_MAX_LABELS: Final = 64


def check_labels(labels: Mapping[str, str], refuse: Callable[[str], CloudApiError]) -> None:
    """Refuses invalid labels: lower case, at most 63 characters, a letter first, at most 64 labels."""
    if len(labels) > _MAX_LABELS:
        raise refuse(f"There are {len(labels)} labels, {_MAX_LABELS} is the limit")
    for key, value in labels.items():
        if not key or not key[0].isalpha() or not _is_label(key):
            raise refuse(f"Invalid label key ({key})")
        if not _is_label(value):
            raise refuse(f"Invalid value ({value}) of the label {key}")


def _is_label(text: str) -> bool:
    return len(text) <= 63 and _LABEL.fullmatch(text) is not None and text == text.lower()
