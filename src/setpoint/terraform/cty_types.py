"""The types of Terraform's values, and the JSON that names them: `"string"`, `["list","number"]`, `["object",{…}]`."""

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Final, TypeAlias, assert_never

import msgspec

from setpoint.core.values import Json
from setpoint.errors import ManifestInvalid


class Primitive(Enum):
    """A type without parts. A DYNAMIC value brings its type along."""

    STRING = "string"
    NUMBER = "number"
    BOOL = "bool"
    DYNAMIC = "dynamic"


class ListOf(msgspec.Struct, frozen=True):
    """Any number of values of one type, in an order."""

    element: "Type"


class SetOf(msgspec.Struct, frozen=True):
    """Any number of values of one type, each of them once; their order is nothing."""

    element: "Type"


class MapOf(msgspec.Struct, frozen=True):
    """Values of one type, by text."""

    element: "Type"


class ObjectOf(msgspec.Struct, frozen=True):
    """A value for each of these names; those in `optional` may be left out where a value is converted."""

    attributes: Mapping[str, "Type"]
    optional: frozenset[str] = frozenset()


class TupleOf(msgspec.Struct, frozen=True):
    """A value for each of these places."""

    elements: tuple["Type", ...]


Type: TypeAlias = Primitive | ListOf | SetOf | MapOf | ObjectOf | TupleOf

STRING: Final = Primitive.STRING
NUMBER: Final = Primitive.NUMBER
BOOL: Final = Primitive.BOOL
DYNAMIC: Final = Primitive.DYNAMIC

_PRIMITIVES: Final = {one.value: one for one in Primitive}
_COLLECTIONS: Final[Mapping[str, Callable[["Type"], "Type"]]] = {"list": ListOf, "set": SetOf, "map": MapOf}


def type_json(type_: Type) -> bytes:
    """The JSON that names `type_`."""
    return msgspec.json.encode(type_tree(type_))


def type_tree(type_: Type) -> Json:
    """The same before it is written."""
    match type_:
        case Primitive():
            return type_.value
        case ListOf(element):
            return ["list", type_tree(element)]
        case SetOf(element):
            return ["set", type_tree(element)]
        case MapOf(element):
            return ["map", type_tree(element)]
        case TupleOf(elements):
            return ["tuple", [type_tree(one) for one in elements]]
        case ObjectOf(attributes, optional):
            members = {name: type_tree(one) for name, one in attributes.items()}
            return ["object", members, sorted(optional)] if optional else ["object", members]
        case _:
            assert_never(type_)


def read_type(text: bytes) -> Type:
    """The type that the JSON `text` names."""
    try:
        return type_of_tree(msgspec.json.decode(text))
    except (msgspec.DecodeError, RecursionError) as error:
        raise ManifestInvalid(f"{text[:80]!r} names no type of Terraform's") from error


def type_of_tree(tree: Json) -> Type:
    """The type that a tree of JSON names."""
    match tree:
        case str() if tree in _PRIMITIVES:
            return _PRIMITIVES[tree]
        case ["list" | "set" | "map" as kind, element]:
            return _COLLECTIONS[str(kind)](type_of_tree(element))
        case ["tuple", [*elements]]:
            return TupleOf(tuple(type_of_tree(one) for one in elements))
        case ["object", Mapping() as members]:
            return _object_of(members, [])
        case ["object", Mapping() as members, [*optional]]:
            return _object_of(members, optional)
        case _:
            raise ManifestInvalid(f"{str(tree)[:80]} names no type of Terraform's")


def _object_of(members: Mapping[str, Json], optional: list[Json]) -> ObjectOf:
    types = {name: type_of_tree(one) for name, one in members.items()}
    return ObjectOf(types, frozenset(str(name) for name in optional))
