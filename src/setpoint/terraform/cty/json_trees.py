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
)

# A fraction that is no double is a Decimal; unknown values stay unknown.
UntypedTree: TypeAlias = (
    bool | int | float | Decimal | str | UnknownValue | Sequence["UntypedTree"] | Mapping[str, "UntypedTree"] | None
)


def to_untyped(value: CtyValue) -> UntypedTree:
    """`value` as a tree of lists and dicts. A Decimal becomes the double that has the same digits."""
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


def from_untyped(tree: UntypedTree, type_: CtyType, path: AttributePath = ()) -> CtyValue:
    """A tree as a value of `type_`; ManifestInvalid where it does not conform. A missing attribute is null."""
    if tree is None or isinstance(tree, UnknownValue):
        return tree
    if type_ is DYNAMIC:
        actual = implied_type(tree)
        return Dynamic(actual, from_untyped(tree, actual, path))
    match type_, tree:
        case (ListType(element) | SetType(element), list() | tuple()):
            return tuple(from_untyped(one, element, (*path, index)) for index, one in enumerate(tree))
        case (TupleType(elements), list() | tuple()) if len(tree) == len(elements):
            parts = enumerate(zip(tree, elements, strict=True))
            return tuple(from_untyped(one, element, (*path, index)) for index, (one, element) in parts)
        case (MapType(element), Mapping()):
            return {key: from_untyped(one, element, (*path, key)) for key, one in tree.items()}
        case (ObjectType(attributes), Mapping()) if tree.keys() <= attributes.keys():
            return {name: from_untyped(tree.get(name), one, (*path, name)) for name, one in attributes.items()}
        case _:
            return _typed_scalar(tree, type_, path)


def _typed_scalar(tree: UntypedTree, type_: CtyType, path: AttributePath) -> CtyValue:
    is_bool = isinstance(tree, bool)
    match tree:
        case str() if type_ is STRING:
            return tree
        case bool() if type_ is BOOL:
            return tree
        case int() if type_ is NUMBER and not is_bool:
            return tree
        case float() | Decimal() if type_ is NUMBER:
            # The author means the decimal digits of 0.2, not the nearest double.
            return normalize_number(Decimal(repr(tree)) if isinstance(tree, float) else tree)
        case _:
            raise ManifestInvalid(
                f"{format_path(path) or 'the value'} is a {type(tree).__name__}, which is not of its type"
            )


def implied_type(tree: UntypedTree) -> CtyType:
    """The type that Terraform infers for a JSON tree: objects and tuples, never maps and lists."""
    match tree:
        case bool():
            return BOOL
        case int() | float() | Decimal():
            return NUMBER
        case str():
            return STRING
        case None | UnknownValue():
            return DYNAMIC
        case Mapping():
            return ObjectType({key: implied_type(one) for key, one in tree.items()})
        case list() | tuple():
            return TupleType(tuple(implied_type(one) for one in tree))
        case _:
            raise Bug(f"a {type(tree).__name__} is no plain value")


def to_json_tree(value: CtyValue) -> Json:
    """A value, all of which is known, as a JSON tree. A fraction that is no double is rounded to the nearest one."""
    return _json_tree(to_untyped(value))


def _json_tree(tree: UntypedTree) -> Json:
    match tree:
        case None | bool() | int() | float() | str():
            return tree
        case Decimal():
            return float(tree)
        case UnknownValue():
            raise Bug("a value that is not known yet was taken for a known one")
        case Mapping():
            return {key: _json_tree(one) for key, one in tree.items()}
        case _:
            return [_json_tree(one) for one in tree]


def without_nulls(tree: Json) -> Json:
    """Without members that are null: in Terraform, null means not set."""
    match tree:
        case Mapping():
            return {name: without_nulls(one) for name, one in tree.items() if one is not None}
        case list():
            return [without_nulls(one) for one in tree]
        case _:
            return tree
