"""What a request may say: every field by name and type. Anything else is refused, with its place named."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum, StrEnum
from typing import TypeAlias, assert_never

from setpoint.localcloud import refusals
from setpoint.localcloud.trees import Tree


class Scalar(StrEnum):
    """A single value, named as Google's messages name it."""

    TEXT = "TYPE_STRING"
    BOOL = "TYPE_BOOL"
    INT32 = "TYPE_INT32"
    INT64 = "TYPE_INT64"  # text on the wire: JSON numbers are not safe for it
    TIME = "type.googleapis.com/google.protobuf.Timestamp"
    SECRET = "a secret text"  # taken in, never given out


@dataclass(frozen=True, slots=True)
class OneOf:
    """Text from a closed set."""

    values: frozenset[str]


@dataclass(frozen=True, slots=True)
class ListOf:
    """Elements of one shape; a patch replaces the whole list."""

    element: "Shape"


@dataclass(frozen=True, slots=True)
class MapOf:
    """Any names, values of one shape."""

    value: "Shape"


@dataclass(frozen=True, slots=True)
class Message:
    """Named fields. `kind` is the mark that the service puts on each, whatever the client wrote."""

    fields: Mapping[str, "Shape"]
    kind: str | None = None


class Owner(Enum):
    """A field that belongs to the service: a request may carry it, without effect."""

    SERVICE = "service"


OUTPUT = Owner.SERVICE
Shape: TypeAlias = Scalar | OneOf | ListOf | MapOf | Message | Owner


class Nulls(Enum):
    """What a null says: in a whole object nothing at all, in a patch "remove it"."""

    ABSENT = "absent"
    REMOVE = "remove"


def one_of(*values: str) -> OneOf:
    """Text that is one of `values`."""
    return OneOf(frozenset(values))


def read(shape: Message, body: object, nulls: Nulls = Nulls.ABSENT, at: str = "") -> Tree:
    """`body` as the service understands it; a Refusal names the first thing it does not."""
    if not isinstance(body, dict):
        raise refusals.bad_json("The body is not an object.") if not at else refusals.wrong_value(at, "object", body)
    understood: Tree = {}
    for name, value in body.items():
        field = shape.fields.get(name)
        if field is None and name != "kind":
            raise refusals.unknown_name(name, at)
        if field is None or field is OUTPUT or (value is None and nulls is Nulls.ABSENT):
            continue
        understood[name] = None if value is None else _value(field, value, nulls, f"{at}.{name}" if at else name)
    return {**understood, "kind": shape.kind} if shape.kind else understood


def kept(shape: Message, tree: Tree) -> Tree:
    """The part of `tree` that clients decide and the service gives back: no outputs, no secrets, nothing unknown."""
    result: Tree = {}
    for name, value in tree.items():
        match shape.fields.get(name):
            case Message() as below if isinstance(value, dict):
                result[name] = kept(below, value)
            case None | Owner() | Scalar.SECRET:
                continue
            case _:
                result[name] = value
    return {**result, "kind": shape.kind} if shape.kind else result


def _value(shape: Shape, value: object, nulls: Nulls, at: str) -> object:
    match shape:
        case Message():
            return read(shape, value, nulls, at)
        case MapOf():
            return _entries(shape, value, nulls, at)
        case ListOf():
            return _elements(shape, value, at)
        case OneOf():
            if value not in shape.values:
                raise refusals.wrong_value(at, "TYPE_ENUM", value)
            return value
        case Scalar():
            return _scalar(shape, value, at)
        case Owner():
            return value
        case _:
            assert_never(shape)


def _elements(shape: ListOf, value: object, at: str) -> list[object]:
    if not isinstance(value, list):
        raise refusals.wrong_value(at, "a list", value)
    # A list is replaced as a whole, so a null inside it removes nothing.
    return [_value(shape.element, one, Nulls.ABSENT, f"{at}[{n}]") for n, one in enumerate(value)]


def _entries(shape: MapOf, value: object, nulls: Nulls, at: str) -> Tree:
    if not isinstance(value, dict):
        raise refusals.wrong_value(at, "an object", value)
    present = {name: one for name, one in value.items() if one is not None or nulls is Nulls.REMOVE}
    return {n: None if one is None else _value(shape.value, one, nulls, f"{at}.{n}") for n, one in present.items()}


def _scalar(scalar: Scalar, value: object, at: str) -> object:
    match scalar:
        case Scalar.BOOL if isinstance(value, bool):
            return value
        case Scalar.INT32 if (whole := _whole(value)) is not None and abs(whole) < 2**31:
            return whole
        case Scalar.INT64 if (whole := _whole(value)) is not None and abs(whole) < 2**63:
            return str(whole)
        case Scalar.TEXT | Scalar.SECRET if isinstance(value, str):
            return value
        case Scalar.TIME if isinstance(value, str) and _is_time(value):
            return value
        case _:
            raise refusals.wrong_value(at, Scalar.TEXT if scalar is Scalar.SECRET else scalar, _shown(scalar, value))


def _shown(scalar: Scalar, value: object) -> object:
    return "[redacted]" if scalar is Scalar.SECRET else value


def _whole(value: object) -> int | None:
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
