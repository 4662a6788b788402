"""Conversion between typed cty values and the untyped trees that JSON and YAML give."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import TypeAlias

from setpoint.core.values.json_types import Json
from setpoint.errors import Bug, ManifestInvalid
from setpoint.terraform.cty.types import (
    BOOL,
    DYNAMIC,
    NUMBER,
    STRING,
    CtyType,
    ListType,
    MapType,
    ObjectType,
    SetType,
    TupleType,
)
from setpoint.terraform.cty.values import (
    AttributePath,
    CtyValue,
    Dynamic,
    UnknownValue,
    format_path,
    normalize_number,
    same_value,
)

# A fraction that no double has stays a Decimal; what is not known yet stays Unknown.
UntypedTree: TypeAlias = (
    bool | int | float | Decimal | str | UnknownValue | Sequence["UntypedTree"] | Mapping[str, "UntypedTree"] | None
)


def to_untyped(value: CtyValue) -> UntypedTree:
    """The tree of lists and dicts that `value` is. A Decimal becomes the double that is written with its digits."""
    match value:
        case Dynamic(_, inner):
            return to_untyped(inner)
        case Decimal():
            nearest = float(value)
            return nearest if Decimal(repr(nearest)) == value else value
        case tuple():
            return [to_untyped(one) for one in value]
        case Mapping():
            return {key: to_untyped(one) for key, one in value.items()}
        case _:
            return value


def from_untyped(plain: UntypedTree, type_: CtyType, path: AttributePath = ()) -> CtyValue:
    """The value of `type_` that a tree is; ManifestInvalid where it is none. An attribute left out is null."""
    if plain is None or isinstance(plain, UnknownValue):
        return plain
    if type_ is DYNAMIC:
        actual = implied_type(plain)
        return Dynamic(actual, from_untyped(plain, actual, path))
    match type_, plain:
        case (ListType(element) | SetType(element), list() | tuple()):
            return tuple(from_untyped(one, element, (*path, index)) for index, one in enumerate(plain))
        case (TupleType(elements), list() | tuple()) if len(plain) == len(elements):
            parts = enumerate(zip(plain, elements, strict=True))
            return tuple(from_untyped(one, element, (*path, index)) for index, (one, element) in parts)
        case (MapType(element), Mapping()):
            return {key: from_untyped(one, element, (*path, key)) for key, one in plain.items()}
        case (ObjectType(attributes), Mapping()) if plain.keys() <= attributes.keys():
            return {name: from_untyped(plain.get(name), one, (*path, name)) for name, one in attributes.items()}
        case _:
            return _typed_scalar(plain, type_, path)


def with_prior_types(value: CtyValue, before: CtyValue) -> CtyValue:
    """`value`, with the types of `before` wherever both are the same tree.

    JSON cannot tell a list from a tuple, nor a map from an object. A dynamic value that was read back from it would
    look changed to Terraform although it is not.
    """
    match value, before:
        case (_, Dynamic()) if _is_same_tree(value, before):
            return before
        case (tuple(), tuple()) if len(value) == len(before):
            return tuple(with_prior_types(one, other) for one, other in zip(value, before, strict=True))
        case (Mapping(), Mapping()):
            return {key: with_prior_types(one, before.get(key)) for key, one in value.items()}
        case _:
            return value


def _is_same_tree(value: CtyValue, other: CtyValue) -> bool:
    return same_value(from_untyped(to_untyped(value), DYNAMIC), from_untyped(to_untyped(other), DYNAMIC), DYNAMIC)


def _typed_scalar(plain: UntypedTree, type_: CtyType, path: AttributePath) -> CtyValue:
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
            return normalize_number(Decimal(repr(plain)) if isinstance(plain, float) else plain)
        case _:
            raise ManifestInvalid(
                f"{format_path(path) or 'the value'} is a {type(plain).__name__}, which is not of its type"
            )


def implied_type(plain: UntypedTree) -> CtyType:
    """The type that Terraform gives to a tree of JSON: objects and tuples, never maps and lists."""
    match plain:
        case bool():
            return BOOL
        case int() | float() | Decimal():
            return NUMBER
        case str():
            return STRING
        case None | UnknownValue():
            return DYNAMIC
        case Mapping():
            return ObjectType({key: implied_type(one) for key, one in plain.items()})
        case list() | tuple():
            return TupleType(tuple(implied_type(one) for one in plain))
        case _:
            raise Bug(f"a {type(plain).__name__} is no plain value")


def to_json_tree(value: CtyValue) -> Json:
    """The tree of JSON that a value is. A fraction that no double has is rounded to the next one."""
    return _json_tree(to_untyped(value))


def _json_tree(plain: UntypedTree) -> Json:
    match plain:
        case None | bool() | int() | float() | str():
            return plain
        case Decimal():
            return float(plain)
        case UnknownValue():
            raise Bug("a value that is not known yet was taken for a known one")
        case Mapping():
            return {key: _json_tree(one) for key, one in plain.items()}
        case _:
            return [_json_tree(one) for one in plain]
