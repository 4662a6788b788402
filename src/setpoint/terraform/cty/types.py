"""cty types, and their JSON encoding: `"string"`, `["list","number"]`, `["object",{…}]`."""

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Final, TypeAlias, assert_never

import msgspec

from setpoint.core.values.json_types import Json
from setpoint.errors import ManifestInvalid


class PrimitiveType(Enum):
    """A type without parts. A DYNAMIC value carries its own type."""

    STRING = "string"
    NUMBER = "number"
    BOOL = "bool"
    DYNAMIC = "dynamic"


class ListType(msgspec.Struct, frozen=True):
    """An ordered collection of values of one type."""

    element: "CtyType"


class SetType(msgspec.Struct, frozen=True):
    """An unordered collection of distinct values of one type."""

    element: "CtyType"


class MapType(msgspec.Struct, frozen=True):
    """Values of one type by string keys."""

    element: "CtyType"


class ObjectType(msgspec.Struct, frozen=True):
    """A value for each attribute; a conversion accepts values without the attributes in `optional`."""

    attributes: Mapping[str, "CtyType"]
    optional: frozenset[str] = frozenset()


class TupleType(msgspec.Struct, frozen=True):
    """A fixed number of values, each of its own type."""

    elements: tuple["CtyType", ...]


CtyType: TypeAlias = PrimitiveType | ListType | SetType | MapType | ObjectType | TupleType

STRING: Final = PrimitiveType.STRING
NUMBER: Final = PrimitiveType.NUMBER
BOOL: Final = PrimitiveType.BOOL
DYNAMIC: Final = PrimitiveType.DYNAMIC

_PRIMITIVES: Final = {one.value: one for one in PrimitiveType}
_COLLECTIONS: Final[Mapping[str, Callable[["CtyType"], "CtyType"]]] = {"list": ListType, "set": SetType, "map": MapType}


def encode_type(type_: CtyType) -> bytes:
    """The JSON encoding of `type_`."""
    return msgspec.json.encode(type_to_tree(type_))


def type_to_tree(type_: CtyType) -> Json:
    """The JSON tree that encodes `type_`."""
    match type_:
        case PrimitiveType():
            return type_.value
        case ListType(element):
            return ["list", type_to_tree(element)]
        case SetType(element):
            return ["set", type_to_tree(element)]
        case MapType(element):
            return ["map", type_to_tree(element)]
        case TupleType(elements):
            return ["tuple", [type_to_tree(one) for one in elements]]
        case ObjectType(attributes, optional):
            members = {name: type_to_tree(one) for name, one in attributes.items()}
            return ["object", members, sorted(optional)] if optional else ["object", members]
        case _:
            assert_never(type_)


def type_name(type_: CtyType) -> str:
    """The name of a type without its parts: `string`, `list`, `object`."""
    tree = type_to_tree(type_)
    return str(tree[0] if isinstance(tree, list) else tree)


def decode_type(text: bytes) -> CtyType:
    """The type that the JSON `text` encodes."""
    try:
        return type_from_tree(msgspec.json.decode(text))
    except (msgspec.DecodeError, RecursionError) as error:
        raise ManifestInvalid(f"{text[:80]!r} names no type of Terraform's") from error


def type_from_tree(tree: Json) -> CtyType:
    """The type that a JSON tree encodes."""
    match tree:
        case str() if tree in _PRIMITIVES:
            return _PRIMITIVES[tree]
        case ["list" | "set" | "map" as kind, element]:
            return _COLLECTIONS[str(kind)](type_from_tree(element))
        case ["tuple", [*elements]]:
            return TupleType(tuple(type_from_tree(one) for one in elements))
        case ["object", Mapping() as members]:
            return _object_type(members, [])
        case ["object", Mapping() as members, [*optional]]:
            return _object_type(members, optional)
        case _:
            raise ManifestInvalid(f"{str(tree)[:80]} names no type of Terraform's")


def _object_type(members: Mapping[str, Json], optional: list[Json]) -> ObjectType:
    types = {name: type_from_tree(one) for name, one in members.items()}
    return ObjectType(types, frozenset(str(name) for name in optional))
