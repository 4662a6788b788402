"""Between Terraform's values and the plain trees that JSON and YAML give."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import TypeAlias

from setpoint.errors import Bug, ManifestInvalid
from setpoint.terraform.attribute_path import Path, shown
from setpoint.terraform.cty_types import BOOL, DYNAMIC, NUMBER, STRING, ListOf, MapOf, ObjectOf, SetOf, TupleOf, Type
from setpoint.terraform.cty_values import Dynamic, Unknown, Value, same_value
from setpoint.terraform.exact_numbers import exact

# A fraction that no double has stays a Decimal; what is not known yet stays Unknown.
Plain: TypeAlias = bool | int | float | Decimal | str | Unknown | Sequence["Plain"] | Mapping[str, "Plain"] | None


def to_plain(value: Value) -> Plain:
    """The tree of lists and dicts that `value` is. A Decimal becomes the double that is written with its digits."""
    match value:
        case Dynamic(_, inner):
            return to_plain(inner)
        case Decimal():
            nearest = float(value)
            return nearest if Decimal(repr(nearest)) == value else value
        case tuple():
            return [to_plain(one) for one in value]
        case Mapping():
            return {key: to_plain(one) for key, one in value.items()}
        case _:
            return value


def from_plain(plain: Plain, type_: Type, path: Path = ()) -> Value:
    """The value of `type_` that a tree is; ManifestInvalid where it is none. An attribute left out is null."""
    if plain is None or isinstance(plain, Unknown):
        return plain
    if type_ is DYNAMIC:
        actual = type_of_plain(plain)
        return Dynamic(actual, from_plain(plain, actual, path))
    match type_, plain:
        case (ListOf(element) | SetOf(element), list() | tuple()):
            return tuple(from_plain(one, element, (*path, index)) for index, one in enumerate(plain))
        case (TupleOf(elements), list() | tuple()) if len(plain) == len(elements):
            parts = enumerate(zip(plain, elements, strict=True))
            return tuple(from_plain(one, element, (*path, index)) for index, (one, element) in parts)
        case (MapOf(element), Mapping()):
            return {key: from_plain(one, element, (*path, key)) for key, one in plain.items()}
        case (ObjectOf(attributes), Mapping()) if plain.keys() <= attributes.keys():
            return {name: from_plain(plain.get(name), one, (*path, name)) for name, one in attributes.items()}
        case _:
            return _scalar(plain, type_, path)


def as_before(value: Value, before: Value) -> Value:
    """`value`, with the types of `before` wherever both are the same tree.

    JSON cannot tell a list from a tuple, nor a map from an object. A dynamic value that was read back from it would
    look changed to Terraform although it is not.
    """
    match value, before:
        case (_, Dynamic()) if _is_same_tree(value, before):
            return before
        case (tuple(), tuple()) if len(value) == len(before):
            return tuple(as_before(one, other) for one, other in zip(value, before, strict=True))
        case (Mapping(), Mapping()):
            return {key: as_before(one, before.get(key)) for key, one in value.items()}
        case _:
            return value


def _is_same_tree(value: Value, other: Value) -> bool:
    return same_value(from_plain(to_plain(value), DYNAMIC), from_plain(to_plain(other), DYNAMIC), DYNAMIC)


def _scalar(plain: Plain, type_: Type, path: Path) -> Value:
    is_bool = isinstance(plain, bool)
    match plain:
        case str() if type_ is STRING:
            return plain
        case bool() if type_ is BOOL:
            return plain
        case int() if type_ is NUMBER and not is_bool:
            return plain
        case float() | Decimal() if type_ is NUMBER:
            # What a person means by 0.2 are its digits, not the nearest double.
            return exact(Decimal(repr(plain)) if isinstance(plain, float) else plain)
        case _:
            raise ManifestInvalid(f"{shown(path) or 'the value'} is a {type(plain).__name__}, which is not of its type")


def type_of_plain(plain: Plain) -> Type:
    """The type that Terraform gives to a tree of JSON: objects and tuples, never maps and lists."""
    match plain:
        case bool():
            return BOOL
        case int() | float() | Decimal():
            return NUMBER
        case str():
            return STRING
        case None | Unknown():
            return DYNAMIC
        case Mapping():
            return ObjectOf({key: type_of_plain(one) for key, one in plain.items()})
        case list() | tuple():
            return TupleOf(tuple(type_of_plain(one) for one in plain))
        case _:
            raise Bug(f"a {type(plain).__name__} is no plain value")
