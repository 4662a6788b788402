"""Numbers print as ECMAScript prints them; integers keep their digits."""

import math

import pytest

from setpoint.core.values.json_types import number_text, same_number


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0"),
        (-0.0, "0"),
        (1.0, "1"),
        (-1.5, "-1.5"),
        (1e16, "10000000000000000"),
        (1e20, "100000000000000000000"),
        (1e21, "1e+21"),
        (1.5e300, "1.5e+300"),
        (123456789012345680000.0, "123456789012345680000"),
        (295147905179352830000.0, "295147905179352830000"),
        (1e-6, "0.000001"),
        (1e-7, "1e-7"),
        (1.25e-9, "1.25e-9"),
        (0.1, "0.1"),
        (5e-324, "5e-324"),
        (1.7976931348623157e308, "1.7976931348623157e+308"),
        (333333333.33333329, "333333333.3333333"),
        (4.50, "4.5"),
        (2e-3, "0.002"),
        (2**53 + 1, "9007199254740993"),
        (10**21, "1000000000000000000000"),
        (-(2**63), "-9223372036854775808"),
    ],
)
def test_a_number_has_one_text(number: float, text: str) -> None:
    assert number_text(number) == text


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_nan_and_infinity_have_no_text(number: float) -> None:
    with pytest.raises(ValueError, match="is not a JSON number"):
        number_text(number)


def test_one_and_one_point_zero_are_the_same_number() -> None:
    assert same_number(1, 1.0)


def test_neighbouring_integers_beyond_2_to_the_53_are_different_numbers() -> None:
    assert not same_number(2**53, 2**53 + 1)


def test_a_double_and_an_integer_beyond_2_to_the_53_are_the_same_when_their_digits_are() -> None:
    assert same_number(2.0**60, 1152921504606847000)
    assert not same_number(2.0**60, 2**60)


def test_no_integer_is_infinite_or_beyond_all_doubles() -> None:
    assert not same_number(10**400, math.inf)
    assert not same_number(10**5000, 1e300)
