"""cty values as plain Python, paths into them, and exact numbers.

| cty value | here |
|---|---|
| null | `None` |
| string, bool | `str`, `bool` |
| number | `int`, or `Decimal` when it has a fraction: never rounded (Terraform's have 512 bits) |
| list, set, tuple | `tuple`; the order of a set is not significant |
| map, object | `Mapping` |
| unknown | `UnknownValue`, with its refinement |
| dynamic | `Dynamic`, with its type; null or `UnknownValue` when the type is not known either |
"""

from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation
from typing import Final, TypeAlias

import msgspec

from setpoint.errors import ManifestInvalid
from setpoint.terraform.cty.types import DYNAMIC, CtyType, ListType, MapType, ObjectType, SetType, TupleType

# A string is the name of an attribute or the key of a map, by the type of the value; an integer is an index.
AttributePath: TypeAlias = tuple[str | int, ...]


def format_path(path: AttributePath) -> str:
    """A path as an author writes it: `ports[0].name`."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}"
    return text.removeprefix(".")


Number: TypeAlias = int | Decimal


class NumberBound(msgspec.Struct, frozen=True):
    """The lower or upper bound of a number that is not known yet."""

    number: Number
    inclusive: bool


class Refinement(msgspec.Struct, frozen=True):
    """What is known of an unknown value."""

    # True: it will be null. False: it will not. None: either.
    null: bool | None = None
    prefix: str = ""
    lower_bound: NumberBound | None = None
    upper_bound: NumberBound | None = None
    # The length of a list, set or map.
    min_length: int | None = None
    max_length: int | None = None


UNREFINED: Final = Refinement()


class UnknownValue(msgspec.Struct, frozen=True):
    """A value that is known only after apply."""

    refinement: Refinement = UNREFINED


class Dynamic(msgspec.Struct, frozen=True):
    """A value of the dynamic type, with its actual type."""

    type: CtyType
    value: "CtyValue"


CtyValue: TypeAlias = (
    bool | int | Decimal | str | tuple["CtyValue", ...] | Mapping[str, "CtyValue"] | UnknownValue | Dynamic | None
)
# The attributes of an object, by name.
AttributeValues: TypeAlias = Mapping[str, CtyValue]

UNKNOWN: Final = UnknownValue()


def unknown_paths(value: CtyValue, path: AttributePath = ()) -> Iterator[AttributePath]:
    """The path of each unknown part of `value`."""
    match value:
        case UnknownValue():
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


def is_known(value: CtyValue) -> bool:
    """Whether every part of `value` is known."""
    return next(unknown_paths(value), None) is None


def nullify_unknown(value: AttributeValues | None) -> AttributeValues | None:
    """`value` with null for every unknown part."""
    found = _without_unknown(value)
    return found if isinstance(found, Mapping) else None


def _without_unknown(value: CtyValue) -> CtyValue:
    match value:
        case UnknownValue():
            return None
        case Dynamic(type_, inner):
            return Dynamic(type_, _without_unknown(inner))
        case Mapping():
            return {key: _without_unknown(one) for key, one in value.items()}
        case tuple():
            return tuple(_without_unknown(one) for one in value)
        case _:
            return value


def same_value(a: CtyValue, b: CtyValue, type_: CtyType) -> bool:
    """Whether two values of one type are equal: `True` is not 1, and the order of a set is not significant."""
    if isinstance(type_, SetType) and isinstance(a, tuple) and isinstance(b, tuple):
        return _same_sets(a, b, type_.element)
    match a, b:
        case (Dynamic(), Dynamic()):
            return a.type == b.type and same_value(a.value, b.value, a.type)
        case (tuple(), tuple()):
            return len(a) == len(b) and all(
                same_value(one, other, type_at(type_, index))
                for index, (one, other) in enumerate(zip(a, b, strict=True))
            )
        case (Mapping(), Mapping()):
            return a.keys() == b.keys() and all(same_value(a[key], b[key], type_at(type_, key)) for key in a)
        case _:
            return isinstance(a, bool) == isinstance(b, bool) and a == b


def _same_sets(a: tuple[CtyValue, ...], b: tuple[CtyValue, ...], element: CtyType) -> bool:
    def contains(elements: tuple[CtyValue, ...], value: CtyValue) -> bool:
        return any(same_value(value, one, element) for one in elements)

    return all(contains(b, one) for one in a) and all(contains(a, one) for one in b)


def type_at(type_: CtyType, step: str | int) -> CtyType:
    """The type of the part of a value at `step`; dynamic where `type_` does not define it."""
    match type_:
        case ListType(element) | SetType(element) | MapType(element):
            return element
        case TupleType(elements) if isinstance(step, int) and step < len(elements):
            return elements[step]
        case ObjectType(attributes):
            return attributes.get(str(step), DYNAMIC)
        case _:
            return DYNAMIC


# More than the 512 bits of Terraform, and few enough for Python to print quickly.
_MAX_DIGITS: Final = 4000
_INT64: Final = range(-(2**63), 2**63)


def decode_number(raw: int | float | str | Decimal) -> Number:
    """The number of an encoded integer, double or decimal text."""
    if isinstance(raw, int):
        return raw
    try:
        return normalize_number(Decimal(raw))
    except InvalidOperation as error:
        raise ManifestInvalid("a text where a number belongs") from error


def normalize_number(number: Decimal) -> Number:
    """The same number, as an `int` when it is whole."""
    if number.is_nan():
        raise ManifestInvalid("NaN where a number belongs")
    if number.is_infinite():
        return number
    if number and abs(number.adjusted()) > _MAX_DIGITS:
        raise ManifestInvalid(f"a number of more than {_MAX_DIGITS} digits")
    numerator, denominator = number.as_integer_ratio() if number else (0, 1)
    return numerator if denominator == 1 else number


def encode_number(number: Number) -> int | float | str:
    """The shortest encoding that is exact: an integer, a double, or decimal text."""
    if isinstance(number, int) and number in _INT64:
        return number
    try:
        nearest = float(number)
    except OverflowError:
        return str(number)
    return nearest if Decimal(nearest) == number else _decimal_text(number)


def _decimal_text(number: Number) -> str:
    return str(number) if isinstance(number, int) else format(number, "f")
