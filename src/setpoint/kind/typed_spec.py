"""Typed specs: the struct types they are built from, and decoding with errors that name the field of the manifest."""

import re
from collections.abc import Iterator
from dataclasses import replace
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    NamedTuple,
    TypeAlias,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec
from msgspec import Struct, UnsetType
from msgspec.structs import fields as struct_fields

from setpoint.core.schema.constraints import Matches
from setpoint.core.schema.shape import AtomicList, Field, KeyedList, MapShape, ObjectShape, paths_of, shape_of
from setpoint.core.values.messages import FieldTerm, Message, SubjectTerm
from setpoint.core.values.paths import Path, nearest
from setpoint.core.values.problems import joined_problems
from setpoint.engine.resource import Resource
from setpoint.errors import ManifestInvalid

T = TypeVar("T")
# A value, an explicit null, or left out.
Maybe: TypeAlias = T | None | UnsetType

# Names of Kubernetes' objects: no object has another.
OBJECT_NAME: Final = Matches(
    "[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?", "the name of an object: lower-case letters, digits, '-' and '.'", 253
)
REQUIRED_OBJECT_NAME: Final = replace(OBJECT_NAME, or_empty=False)
NAMESPACE_NAME: Final = Matches(
    "[a-z0-9](?:[a-z0-9-]*[a-z0-9])?", "the name of a namespace: lower-case letters, digits and '-'", 63
)
_SECRET_KEY: Final = Matches(
    "[A-Za-z0-9._-]+", "a key of a Secret: letters, digits, '-', '_' and '.'", 253, or_empty=False
)


class SpecStruct(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """A struct in a spec; unknown fields are refused."""


class SecretKeyRef(SpecStruct, frozen=True):
    """A key of a Secret in the resource's own namespace."""

    name: Annotated[str, REQUIRED_OBJECT_NAME]
    """The Secret, in the resource's own namespace."""
    key: Annotated[str, _SECRET_KEY]
    """The key in it."""


class ValueFrom(SpecStruct, frozen=True):
    """A value that is read from a Secret."""

    secretKeyRef: SecretKeyRef
    """The Secret, and the key in it."""


S = TypeVar("S", bound=msgspec.Struct)
# A message of msgspec: a problem, and its path.
_MESSAGE: Final = re.compile(r"(?P<problem>.*?)(?: - at `\$(?P<at>.*)`)?", re.DOTALL)
_UNKNOWN: Final = re.compile(r"Object contains unknown field `(.*)`")
_LACKING: Final = re.compile(r"Object missing required field `(.*)`")
_OTHER_TYPE: Final = re.compile(r"Expected `(.*)`, got `(.*)`")
_IS: Final = {
    **{"str": "text", "int": "a number", "float": "a number", "bool": "true or false"},
    **{"null": "null", "array": "a list", "object": "a map"},
}
_WRITE: Final = {
    **{"str": "text, in quotes", "int": "a whole number, without quotes", "float": "a number, without quotes"},
    **{"bool": "true or false, without quotes", "array": "a list", "object": "a map of fields"},
}
_STEP: Final = re.compile(r"\.([^.\[]+)|(\[[^\]]*\])")


def decode_spec(resource: Resource, type_: type[S]) -> S:
    """The decoded spec of `resource`; ManifestInvalid names each wrong field, and suggests names for an unknown one."""
    decoded = None if resource.written is None else _decoded(resource.written, type_)
    if decoded is not None:
        return decoded
    try:
        return msgspec.convert(resource.spec, type_)
    except msgspec.ValidationError as error:
        found = _problems(resource.spec, type_, _Place())
        raise joined_problems(
            ManifestInvalid(Message(SubjectTerm(str(resource.ref)), _explained(one, type_)), str(one.field))
            for one in found
        ) from error


def _decoded(written: bytes, type_: type[S]) -> S | None:
    """The spec from the author's part in bytes, which takes half as long as by way of a tree; None if it is wrong."""
    try:
        spec: S = _decoder(type_).decode(written).spec
    except msgspec.MsgspecError:
        return None
    return spec


@cache
def _decoder(type_: type[msgspec.Struct]) -> msgspec.json.Decoder[Any]:
    """The decoder of an author's part with a spec of this type: one for each type of a kind."""
    return msgspec.json.Decoder(msgspec.defstruct("Written", [("spec", type_)]))


def field_invalid(resource: Resource, path: str, problem: str) -> ManifestInvalid:
    """The error for the field at `path`, such as `spec.name`; `problem` goes on after it."""
    return ManifestInvalid(Message(SubjectTerm(str(resource.ref)), FieldTerm(path), problem))


# --- What is wrong with a spec: msgspec stops at the first problem ----------------------------------------------------


class _Place(NamedTuple):
    """A place in a spec: its path in the manifest, and the path as msgspec writes it, without the keys of maps."""

    path: Path = Path(("spec",))
    at: str = ""

    def member(self, name: str) -> "_Place":
        return _Place(self.path / name, f"{self.at}.{name}")

    def element(self, step: str | int) -> "_Place":
        return _Place(self.path / step, f"{self.at}[{step if isinstance(step, int) else '...'}]")


class _SpecProblem(NamedTuple):
    """A message of msgspec about the value `at` a place, and the field at fault."""

    message: str
    at: str
    field: Path
    # What to write, in addition to the message.
    advice: str = ""


def _problems(value: object, hint: Any, place: _Place) -> Iterator[_SpecProblem]:  # noqa: ANN401 - any type
    """The problems of a value of the type `hint`, each at the innermost value that has it."""
    try:
        msgspec.convert(value, hint)
    except msgspec.ValidationError as error:
        found = False
        for one in _inner_problems(value, _plain_type(hint), place):
            found = True
            yield one
        if not found:
            yield _SpecProblem(str(error), place.at, place.path, _choice_advice(value, _plain_type(hint)))


def _inner_problems(value: object, plain: Any, place: _Place) -> Iterator[_SpecProblem]:  # noqa: ANN401 - any type
    if isinstance(plain, type) and issubclass(plain, Struct) and isinstance(value, dict):
        yield from _struct_problems(value, plain, place)
    elif get_origin(plain) is list and isinstance(value, list):
        for position, item in enumerate(value):
            yield from _problems(item, get_args(plain)[0], place.element(position))
    elif get_origin(plain) is dict and isinstance(value, dict):
        for key, item in value.items():
            yield from _problems(item, get_args(plain)[1], place.element(key))


def _struct_problems(value: dict[str, object], type_: type[Struct], place: _Place) -> Iterator[_SpecProblem]:
    hints = get_type_hints(type_, include_extras=True)
    known = {one.encode_name: one for one in struct_fields(type_)}
    for name, item in value.items():
        if name in known:
            yield from _problems(item, hints[known[name].name], place.member(name))
        elif type_.__struct_config__.forbid_unknown_fields:
            yield _SpecProblem(f"Object contains unknown field `{name}`", place.at, place.path / name)
    unknown = [name for name in value if name not in known]
    for name, field in known.items():
        # A misspelt name is told once.
        if field.required and name not in value and not nearest(name, unknown):
            yield _SpecProblem(f"Object missing required field `{name}`", place.at, place.path / name)


def _choice_advice(value: object, plain: Any) -> str:  # noqa: ANN401 - any type
    """The texts that a field may have; the one that may be meant, where there is one."""
    if isinstance(plain, type) and issubclass(plain, Enum):
        choices = [str(one.value) for one in plain]
    else:
        choices = [str(one) for one in get_args(plain) if one] if get_origin(plain) is Literal else []
    if not choices or not isinstance(value, str):
        return ""
    near = nearest(value, choices)
    return f"; did you mean {near[0]}?" if near else f"; write {' or '.join(choices)}"


def _plain_type(hint: Any) -> Any:  # noqa: ANN401 - any type
    """The type without Annotated and `| None | UnsetType`; a union of several types as it is."""
    if get_origin(hint) is Annotated:
        return _plain_type(get_args(hint)[0])
    if get_origin(hint) in (Union, UnionType):
        members = [one for one in get_args(hint) if one not in (NoneType, UnsetType)]
        return _plain_type(members[0]) if len(members) == 1 else hint
    return hint


def _explained(found: _SpecProblem, type_: type[msgspec.Struct]) -> Message:
    """A problem in the words of a manifest."""
    parts = _MESSAGE.fullmatch(found.message)
    assert parts is not None
    problem, at = parts["problem"], f"{found.at}{parts['at'] or ''}"
    if unknown := _UNKNOWN.fullmatch(problem):
        name = unknown[1]
        return Message("there is no field ", _field(f"{at}.{name}"), _hint(name, at, str(_field(at)), type_))
    if lacking := _LACKING.fullmatch(problem):
        return Message(_field(f"{at}.{lacking[1]}"), " is missing: write it")
    if other := _OTHER_TYPE.fullmatch(problem):
        expected = [_WRITE[one] for one in other[1].split(" | ") if one in _WRITE]
        if expected and other[2] in _IS:
            return Message(_field(at), f" is {_IS[other[2]]}: write {' or '.join(expected)}")
    return Message(_field(at), f": {problem[:1].lower()}{problem[1:].replace('`', '')}{found.advice}")


def _field(at: str) -> Message:
    """The field at a path of msgspec's. It does not tell which element of a list: the field ends at the list."""
    known, element, below = at.partition("[...]")
    return Message(FieldTerm(f"spec{known}"), f"[…]{below.replace('[...]', '[…]')}" if element else "")


def _hint(name: str, at: str, here: str, type_: type[msgspec.Struct]) -> str:
    """Suggestions for an unknown field: the same name elsewhere, or a similar name in the same object."""
    shape = shape_of(type_)
    siblings = [f"{here}.{one}" for one in nearest(name, _field_names_at(shape, at))]
    namesakes = [f"spec.{path}" for path in paths_of(shape) if path.rpartition(".")[2] == name]
    found = [*namesakes, *siblings][:3]
    return f"; did you mean {' or '.join(found)}?" if found else ""


def _field_names_at(shape: ObjectShape, at: str) -> list[str]:
    place = Field(shape)
    for name, _ in _STEP.findall(at):
        match place.shape:
            case ObjectShape(fields=fields) if name in fields:
                place = fields[name]
            case AtomicList(item=item):
                place = Field(item)
            case MapShape(value=inside) | KeyedList(item=inside):
                place = inside
            case _:
                return []
    return list(place.shape.fields) if isinstance(place.shape, ObjectShape) else []
