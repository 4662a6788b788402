"""How long things took, counted in buckets that are there from the start."""

from bisect import bisect_left
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

# Those of controller-runtime's work queues, so that a dashboard made for them fits: ten nanoseconds to 1,000 seconds.
BOUNDS: Final = tuple(10.0**power for power in range(-8, 4))


@dataclass(frozen=True, slots=True)
class Distribution:
    """`at_most` counts, for each of the bounds, what took no longer; `count` and `seconds` are of everything."""

    at_most: tuple[int, ...]
    count: int
    seconds: float


class Durations:
    """Takes in durations for next to nothing, to be read when somebody asks."""

    __slots__ = ("_bounds", "_counts", "_seconds")

    def __init__(self, bounds: tuple[float, ...] = BOUNDS) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._seconds = 0.0

    def add(self, seconds: float) -> None:
        """One more that took so long."""
        self._counts[bisect_left(self._bounds, seconds)] += 1
        self._seconds += seconds

    def read(self) -> Distribution:
        """All so far."""
        *at_most, count = accumulate(self._counts)
        return Distribution(tuple(at_most), count, self._seconds)
