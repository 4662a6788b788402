"""Exponential backoff: delays that double from a first to a longest one, with jitter."""

from collections.abc import Callable

from setpoint.core.values.deferred_dataclass import dataclass

# Beyond so many doublings any delay is the longest one, and the power would overflow.
_MAX_DOUBLINGS = 60


def exponential_delay(failures: int, first: float, longest: float) -> float:
    """`first` doubled once for each of `failures`, at most `longest`."""
    return min(first * 2.0 ** min(failures, _MAX_DOUBLINGS), longest)


@dataclass(slots=True)
class Backoff:
    """The delays after consecutive failures, in seconds.

    `jitter` draws from 0 to 1: the delay is between half of the exponential one and all of it.
    """

    first: float
    longest: float
    jitter: Callable[[], float]
    failures: int = 0

    @property
    def is_new(self) -> bool:
        """Whether nothing has failed since the start or the last `reset`."""
        return self.failures == 0

    def next(self, at_least: float | None = None) -> float:
        """Counts a failure; the delay after it, and no less than `at_least`, such as Retry-After."""
        delay = exponential_delay(self.failures, self.first, self.longest)
        self.failures += 1
        return max(delay * (0.5 + self.jitter() / 2), at_least or 0.0)

    def reset(self) -> None:
        """After a success: the next delay is the first one again."""
        self.failures = 0
