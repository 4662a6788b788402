"""The fields of a type one by one: what the shape says of each, and what its JSON form is."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import msgspec
from msgspec import inspect

from setpoint.core.shape import Field, KeyedList, ListOf, MapOf, field_below, shape_of

Holder: TypeAlias = type[msgspec.Struct]


@dataclass(frozen=True, slots=True)
class Place:
    """A field, or what stands in a list or a map. `type` is without null."""

    path: str
    field: Field
    type: inspect.Type
    is_required: bool = False
    is_nullable: bool = False
    # The name in JSON; the struct that has the field, and the name that it has there.
    name: str = ""
    holder: Holder | None = None
    attribute: str = ""
    # What stands beside the type, for those who do not write it below the field.
    description: str = ""


def top_of(type_: Holder) -> Place:
    """The whole of a struct type."""
    return Place("", Field(shape_of(type_)), inspect.type_info(type_), is_required=True)


def members_of(place: Place) -> Iterator[Place]:
    """The fields of an object; none of anything else."""
    if not isinstance(place.type, inspect.StructType):
        return
    for one in place.type.fields:
        below = field_below(place.field, one.encode_name)
        assert below is not None
        path = f"{place.path}.{one.encode_name}".lstrip(".")
        plain, is_nullable, description = _plain(one.type)
        names = (one.encode_name, place.type.cls, one.name)
        yield Place(path, below, plain, one.required, is_nullable, *names, description)


def inside_of(place: Place) -> Place | None:
    """What stands in a list or a map; None for anything else."""
    match place.type:
        case inspect.ListType(item_type=item) | inspect.DictType(value_type=item):
            plain, is_nullable, _ = _plain(item)
            return Place(f"{place.path}{_any_of(place.field)}", _below(place.field), plain, is_nullable=is_nullable)
        case _:
            return None


def _any_of(field: Field) -> str:
    if isinstance(field.shape, KeyedList):
        return f"[{','.join(f'{key}=…' for key in field.shape.keys)}]"
    return "[…]"


def _below(field: Field) -> Field:
    if isinstance(field.shape, KeyedList):
        return field.shape.item
    if isinstance(field.shape, MapOf):
        return field.shape.value
    assert isinstance(field.shape, ListOf)
    return Field(field.shape.item)


def _plain(type_: inspect.Type) -> tuple[inspect.Type, bool, str]:
    """The type without null and notes, whether it may be null, and what a note says of it."""
    match type_:
        case inspect.Metadata(type=inner, extra_json_schema=extra):
            plain, is_nullable, deeper = _plain(inner)
            return plain, is_nullable, str((extra or {}).get("description", "")) or deeper
        case inspect.UnionType(types=types) if any(isinstance(one, inspect.NoneType) for one in types):
            rest = tuple(one for one in types if not isinstance(one, inspect.NoneType))
            plain, _, description = _plain(rest[0] if len(rest) == 1 else inspect.UnionType(rest))
            return plain, True, description
        case _:
            return type_, False, ""
