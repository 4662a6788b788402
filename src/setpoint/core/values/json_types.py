"""JSON values: their type, the marker for an absent value, and the canonical text of numbers."""

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Annotated, Final, TypeAlias

from msgspec import UNSET, Meta, UnsetType

# Any JSON value.
Json: TypeAlias = bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"] | None
# A JSON object.
JsonObject: TypeAlias = Mapping[str, Json]

# Absent is neither null nor unknown. It is msgspec's own marker, so that a field that a typed spec leaves out and a
# path that a tree does not have are the same thing.
Missing: TypeAlias = UnsetType
# The marker itself: `value is MISSING`.
MISSING: Final = UNSET

# Integers that services and API servers can store.
Int32: TypeAlias = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
# 64 bits: what most have.
Int64: TypeAlias = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]

# Beyond this, a double cannot represent every integer.
MAX_EXACT_INTEGER: Final = 2**53
_BEYOND_DOUBLES: Final = 2**1024


def number_text(value: int | float) -> str:
    """`value` as ECMAScript prints it; an integer keeps all its digits. ValueError for NaN and infinity."""
    if isinstance(value, int):
        return int.__repr__(value)
    if not isfinite(value):
        raise ValueError(f"{value} is not a JSON number")
    if value == 0:
        return "0"
    sign = "-" if value < 0 else ""
    digits, point = _shortest_digits(abs(value))
    return sign + _place_point(digits, point)


def _shortest_digits(value: float) -> tuple[str, int]:
    """The fewest digits that read back as `value`, and the position of the decimal point: 0.25 is ("25", 0)."""
    mantissa, _, exponent = float.__repr__(value).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    leading_zeros = len(whole + fraction) - len(digits)
    point = len(whole) - leading_zeros + int(exponent or 0)
    return digits.rstrip("0"), point


def _place_point(digits: str, point: int) -> str:
    """Number::toString of ECMA-262: plain between 1e-7 and 1e21, exponential outside."""
    count = len(digits)
    if count <= point <= 21:
        return digits + "0" * (point - count)
    if 0 < point <= 21:
        return f"{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"0.{'0' * -point}{digits}"
    fraction = f".{digits[1:]}" if count > 1 else ""
    return f"{digits[0]}{fraction}e{point - 1:+d}"


def same_number(a: int | float, b: int | float) -> bool:
    """Whether both have the same text form: 1 and 1.0 do, 2**53 and 2**53 + 1 do not."""
    if isinstance(a, int) == isinstance(b, int):
        return a == b
    whole, real = (a, b) if isinstance(a, int) else (b, a)
    if abs(whole) <= MAX_EXACT_INTEGER:
        return whole == real
    return isfinite(real) and abs(whole) < _BEYOND_DOUBLES and number_text(whole) == number_text(real)
