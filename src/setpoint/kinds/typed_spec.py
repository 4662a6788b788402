"""A spec as its type, or an error that names the field as the author wrote it."""

import re
from typing import Final, TypeVar

import msgspec

from setpoint.core.paths import nearest
from setpoint.core.shape import Field, KeyedList, ListOf, MapOf, Object, paths_of, shape_of
from setpoint.engine.resource import Resource
from setpoint.errors import ManifestInvalid

S = TypeVar("S", bound=msgspec.Struct)
# What msgspec says: a problem, and where it is.
_TOLD: Final = re.compile(r"(?P<problem>.*?)(?: - at `\$(?P<at>.*)`)?", re.DOTALL)
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


def read_spec(resource: Resource, type_: type[S]) -> S:
    """The spec of `resource`; ManifestInvalid names the field, and the nearest names for one that does not exist."""
    try:
        return msgspec.convert(resource.spec, type_)
    except msgspec.ValidationError as error:
        raise ManifestInvalid(f"{resource.ref}: {_told(str(error), type_)}") from error


def _told(message: str, type_: type[msgspec.Struct]) -> str:
    parts = _TOLD.fullmatch(message)
    assert parts is not None
    problem, at = parts["problem"], parts["at"] or ""
    here = f"spec{at.replace('[...]', '[…]')}"
    if unknown := _UNKNOWN.fullmatch(problem):
        return f"there is no field {here}.{unknown[1]}{_hint(unknown[1], at, here, type_)}"
    if lacking := _LACKING.fullmatch(problem):
        return f"{here}.{lacking[1]} is missing: write it"
    if other := _OTHER_TYPE.fullmatch(problem):
        expected = [_WRITE[one] for one in other[1].split(" | ") if one in _WRITE]
        if expected and other[2] in _IS:
            return f"{here} is {_IS[other[2]]}: write {' or '.join(expected)}"
    return f"{here}: {problem[:1].lower()}{problem[1:].replace('`', '')}"


def _hint(name: str, at: str, here: str, type_: type[msgspec.Struct]) -> str:
    """The fields that may have been meant: the same name elsewhere, or a like name in the same place."""
    shape = shape_of(type_)
    siblings = [f"{here}.{one}" for one in nearest(name, _names_at(shape, at))]
    namesakes = [f"spec.{path}" for path in paths_of(shape) if path.rpartition(".")[2] == name]
    found = [*namesakes, *siblings][:3]
    return f"; did you mean {' or '.join(found)}?" if found else ""


def _names_at(shape: Object, at: str) -> list[str]:
    place = Field(shape)
    for name, _ in _STEP.findall(at):
        match place.shape:
            case Object(fields=fields) if name in fields:
                place = fields[name]
            case ListOf(item=item):
                place = Field(item)
            case MapOf(value=inside) | KeyedList(item=inside):
                place = inside
            case _:
                return []
    return list(place.shape.fields) if isinstance(place.shape, Object) else []
