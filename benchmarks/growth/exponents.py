"""How fast a quantity grows: the exponent between two sizes, and whether that is more than n log n."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import log
from typing import Final

from benchmarks.scenarios import Measurement, Unit

SUBJECT: Final = "growth: exponents"


@dataclass(frozen=True, slots=True)
class GrowthExponent(Measurement):
    """The exponent `value` of a quantity between two sizes; that of n log n there is the `limit`."""

    limit: float = 1.0


def exponents(quantity: str, sizes: Sequence[tuple[int, float]], least: float = 0) -> Iterator[GrowthExponent]:
    """The exponents between consecutive sizes, given the value at each; none from a value of zero on.

    A value below `least` counts as that: there, it does not depend on the size.
    """
    for (few, before), (many, after) in pairwise(sizes):
        if before > 0 and after > 0:
            power = exponent((few, max(before, least)), (many, max(after, least)))
            name = f"{quantity}: {few:,} to {many:,}"
            yield GrowthExponent(SUBJECT, name, power, Unit.EXPONENT, limit=n_log_n(few, many))


def exponent(few: tuple[int, float], many: tuple[int, float]) -> float:
    """The power of the size with which the value grows from one size to the other."""
    return log(many[1] / few[1]) / log(many[0] / few[0])


def n_log_n(few: int, many: int) -> float:
    """The same of n log n."""
    return exponent((few, few * log(few)), (many, many * log(many)))
