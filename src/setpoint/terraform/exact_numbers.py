"""Numbers without loss, in and out: Terraform's have 512 bits, and 0.2 is not the nearest double to it."""

from decimal import Decimal, InvalidOperation
from typing import Final

from setpoint.errors import ManifestInvalid

Number = int | Decimal

# Far beyond 512 bits, and short of what Python takes too long to print.
_MOST_DIGITS: Final = 4000
_INT64: Final = range(-(2**63), 2**63)


def read_number(raw: int | float | str | Decimal) -> Number:
    """A number as it came: a whole one, a double, or its decimal text."""
    if isinstance(raw, int):
        return raw
    try:
        return exact(Decimal(raw))
    except InvalidOperation as error:
        raise ManifestInvalid("a text where a number belongs") from error


def exact(number: Decimal) -> Number:
    """The same number: an `int` when it is whole."""
    if number.is_nan():
        raise ManifestInvalid("NaN where a number belongs")
    if number.is_infinite():
        return number
    if number and abs(number.adjusted()) > _MOST_DIGITS:
        raise ManifestInvalid(f"a number of more than {_MOST_DIGITS} digits")
    numerator, denominator = number.as_integer_ratio() if number else (0, 1)
    return numerator if denominator == 1 else number


def write_number(number: Number) -> int | float | str:
    """The shortest form that says exactly this number: a whole one, a double, or decimal text."""
    if isinstance(number, int) and number in _INT64:
        return number
    try:
        nearest = float(number)
    except OverflowError:
        return str(number)
    return nearest if Decimal(nearest) == number else _text(number)


def _text(number: Number) -> str:
    return str(number) if isinstance(number, int) else format(number, "f")
