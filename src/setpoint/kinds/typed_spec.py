"""Typed specs: the struct types they are built from, and decoding with errors that name the field of the manifest."""

import re
from dataclasses import replace
from typing import Annotated, Final, TypeAlias, TypeVar

import msgspec
from msgspec import Struct, UnsetType

from setpoint.core.schema.constraints import Matches
from setpoint.core.schema.shape import AtomicList, Field, KeyedList, MapShape, ObjectShape, paths_of, shape_of
from setpoint.core.values.messages import FieldTerm, Message, SubjectTerm
from setpoint.core.values.paths import nearest
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
    """The decoded spec of `resource`; ManifestInvalid names the field, and suggests names for an unknown one."""
    try:
        return msgspec.convert(resource.spec, type_)
    except msgspec.ValidationError as error:
        raise ManifestInvalid(Message(SubjectTerm(str(resource.ref)), _explained(str(error), type_))) from error


def field_invalid(resource: Resource, path: str, problem: str) -> ManifestInvalid:
    """The error for the field at `path`, such as `spec.name`; `problem` goes on after it."""
    return ManifestInvalid(Message(SubjectTerm(str(resource.ref)), FieldTerm(path), problem))


def _explained(message: str, type_: type[msgspec.Struct]) -> Message:
    parts = _MESSAGE.fullmatch(message)
    assert parts is not None
    problem, at = parts["problem"], parts["at"] or ""
    if unknown := _UNKNOWN.fullmatch(problem):
        name = unknown[1]
        return Message("there is no field ", _field(f"{at}.{name}"), _hint(name, at, str(_field(at)), type_))
    if lacking := _LACKING.fullmatch(problem):
        return Message(_field(f"{at}.{lacking[1]}"), " is missing: write it")
    if other := _OTHER_TYPE.fullmatch(problem):
        expected = [_WRITE[one] for one in other[1].split(" | ") if one in _WRITE]
        if expected and other[2] in _IS:
            return Message(_field(at), f" is {_IS[other[2]]}: write {' or '.join(expected)}")
    return Message(_field(at), f": {problem[:1].lower()}{problem[1:].replace('`', '')}")


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
