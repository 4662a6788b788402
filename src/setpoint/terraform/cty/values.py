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

# Text names an attribute of an object or a key of a map: the type of what holds it says which.
AttributePath: TypeAlias = tuple[str | int, ...]


def format_path(path: AttributePath) -> str:
    """A path as people write it: `ports[0].name`."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}"
    return text.removeprefix(".")


class NumberBound(msgspec.Struct, frozen=True):
    """An end of the numbers that a value may become."""

    number: int | Decimal
    inclusive: bool


class Refinement(msgspec.Struct, frozen=True):
    """What is known of a value that is not known yet."""

    # True: it will be null; False: it will not; None: who knows.
    null: bool | None = None
    prefix: str = ""
    least: NumberBound | None = None
    most: NumberBound | None = None
    # How many parts a list, set or map will have.
    min_length: int | None = None
    max_length: int | None = None


UNREFINED: Final = Refinement()


class UnknownValue(msgspec.Struct, frozen=True):
    """A value that apply will bring."""

    refinement: Refinement = UNREFINED


class Dynamic(msgspec.Struct, frozen=True):
    """A value of the dynamic type, and the type that it has."""

    type: CtyType
    value: "CtyValue"


NumberValue: TypeAlias = int | Decimal
CtyValue: TypeAlias = (
    bool | int | Decimal | str | tuple["CtyValue", ...] | Mapping[str, "CtyValue"] | UnknownValue | Dynamic | None
)
# The attributes of an object, by name.
AttributeValues: TypeAlias = Mapping[str, CtyValue]

UNKNOWN: Final = UnknownValue()
NOT_NULL: Final = UnknownValue(Refinement(null=False))


def unknown_paths(value: CtyValue, path: AttributePath = ()) -> Iterator[AttributePath]:
    """The place of each part of `value` that is not known yet."""
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
    """The same with null for everything that is not known yet."""
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
    """Whether two values of one type are the same one: `True` is not 1, and the order of a set is nothing."""
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
    def holds(those: tuple[CtyValue, ...], one: CtyValue) -> bool:
        return any(same_value(one, other, element) for other in those)

    return all(holds(b, one) for one in a) and all(holds(a, one) for one in b)


def type_at(type_: CtyType, step: str | int) -> CtyType:
    """The type of the part of a value to which `step` leads; dynamic where the type does not say."""
    match type_:
        case ListType(element) | SetType(element) | MapType(element):
            return element
        case TupleType(elements) if isinstance(step, int) and step < len(elements):
            return elements[step]
        case ObjectType(attributes):
            return attributes.get(str(step), DYNAMIC)
        case _:
            return DYNAMIC


ExactNumber = int | Decimal

# Far beyond 512 bits, and short of what Python takes too long to print.
_MAX_DIGITS: Final = 4000
_INT64: Final = range(-(2**63), 2**63)


def decode_number(raw: int | float | str | Decimal) -> ExactNumber:
    """A number as it came: a whole one, a double, or its decimal text."""
    if isinstance(raw, int):
        return raw
    try:
        return normalize_number(Decimal(raw))
    except InvalidOperation as error:
        raise ManifestInvalid("a text where a number belongs") from error


def normalize_number(number: Decimal) -> ExactNumber:
    """The same number: an `int` when it is whole."""
    if number.is_nan():
        raise ManifestInvalid("NaN where a number belongs")
    if number.is_infinite():
        return number
    if number and abs(number.adjusted()) > _MAX_DIGITS:
        raise ManifestInvalid(f"a number of more than {_MAX_DIGITS} digits")
    numerator, denominator = number.as_integer_ratio() if number else (0, 1)
    return numerator if denominator == 1 else number


def encode_number(number: ExactNumber) -> int | float | str:
    """The shortest form that says exactly this number: a whole one, a double, or decimal text."""
    if isinstance(number, int) and number in _INT64:
        return number
    try:
        nearest = float(number)
    except OverflowError:
        return str(number)
    return nearest if Decimal(nearest) == number else _decimal_text(number)


def _decimal_text(number: ExactNumber) -> str:
    return str(number) if isinstance(number, int) else format(number, "f")
