"""Terraform's values as plain Python.

| value | here |
|---|---|
| null | `None` |
| text, truth | `str`, `bool` |
| number | `int`, or `Decimal` when it has a fraction: nothing is ever rounded |
| list, set, tuple | `tuple`; the order of a set is nothing |
| map, object | `Mapping` |
| not known yet | `Unknown`, with what is known of it all the same |
| of the dynamic type | `Dynamic`, with its type; or null or `Unknown`, when not even that is known |
"""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Final, TypeAlias

import msgspec

from setpoint.terraform.attribute_path import Path
from setpoint.terraform.cty_types import DYNAMIC, ListOf, MapOf, ObjectOf, SetOf, TupleOf, Type


class Bound(msgspec.Struct, frozen=True):
    """An end of the numbers that a value may become."""

    number: int | Decimal
    inclusive: bool


class Refinement(msgspec.Struct, frozen=True):
    """What is known of a value that is not known yet."""

    # True: it will be null; False: it will not; None: who knows.
    null: bool | None = None
    prefix: str = ""
    least: Bound | None = None
    most: Bound | None = None
    # How many parts a list, set or map will have.
    fewest_parts: int | None = None
    most_parts: int | None = None


UNREFINED: Final = Refinement()


class Unknown(msgspec.Struct, frozen=True):
    """A value that apply will bring."""

    refinement: Refinement = UNREFINED


class Dynamic(msgspec.Struct, frozen=True):
    """A value of the dynamic type, and the type that it has."""

    type: Type
    value: "Value"


Number: TypeAlias = int | Decimal
Value: TypeAlias = bool | int | Decimal | str | tuple["Value", ...] | Mapping[str, "Value"] | Unknown | Dynamic | None
# The attributes of an object, by name.
Values: TypeAlias = Mapping[str, Value]

UNKNOWN: Final = Unknown()
NOT_NULL: Final = Unknown(Refinement(null=False))


def unknown_paths(value: Value, path: Path = ()) -> Iterator[Path]:
    """The place of each part of `value` that is not known yet."""
    match value:
        case Unknown():
            yield path
        case Dynamic(_, inner):
            yield from unknown_paths(inner, path)
        case Mapping():
            for key, one in value.items():
                yield from unknown_paths(one, (*path, key))
        case tuple():
            for index, one in enumerate(value):
                yield from unknown_paths(one, (*path, index))
        case _:
            pass


def is_known(value: Value) -> bool:
    """Whether every part of `value` is known."""
    return next(unknown_paths(value), None) is None


def known_part(value: Values | None) -> Values | None:
    """The same with null for everything that is not known yet."""
    found = _known(value)
    return found if isinstance(found, Mapping) else None


def _known(value: Value) -> Value:
    match value:
        case Unknown():
            return None
        case Dynamic(type_, inner):
            return Dynamic(type_, _known(inner))
        case Mapping():
            return {key: _known(one) for key, one in value.items()}
        case tuple():
            return tuple(_known(one) for one in value)
        case _:
            return value


def same_value(a: Value, b: Value, type_: Type) -> bool:
    """Whether two values of one type are the same one: `True` is not 1, and the order of a set is nothing."""
    if isinstance(type_, SetOf) and isinstance(a, tuple) and isinstance(b, tuple):
        return _same_sets(a, b, type_.element)
    match a, b:
        case (Dynamic(), Dynamic()):
            return a.type == b.type and same_value(a.value, b.value, a.type)
        case (tuple(), tuple()):
            return len(a) == len(b) and all(
                same_value(one, other, part_type(type_, index))
                for index, (one, other) in enumerate(zip(a, b, strict=True))
            )
        case (Mapping(), Mapping()):
            return a.keys() == b.keys() and all(same_value(a[key], b[key], part_type(type_, key)) for key in a)
        case _:
            return isinstance(a, bool) == isinstance(b, bool) and a == b


def _same_sets(a: tuple[Value, ...], b: tuple[Value, ...], element: Type) -> bool:
    def holds(those: tuple[Value, ...], one: Value) -> bool:
        return any(same_value(one, other, element) for other in those)

    return all(holds(b, one) for one in a) and all(holds(a, one) for one in b)


def part_type(type_: Type, step: str | int) -> Type:
    """The type of the part of a value to which `step` leads; dynamic where the type does not say."""
    match type_:
        case ListOf(element) | SetOf(element) | MapOf(element):
            return element
        case TupleOf(elements) if isinstance(step, int) and step < len(elements):
            return elements[step]
        case ObjectOf(attributes):
            return attributes.get(str(step), DYNAMIC)
        case _:
            return DYNAMIC
