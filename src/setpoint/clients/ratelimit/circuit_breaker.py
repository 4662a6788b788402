"""Circuit breaker: opens when a service answers no call at all, and probes it with backoff. Also: outcomes of calls."""

import random
from collections import deque
from collections.abc import Callable, Hashable
from enum import StrEnum
from math import inf
from typing import Final, TypeAlias

from setpoint.core.backoff import Backoff
from setpoint.core.values.deferred_dataclass import dataclass

# --- Outcomes of calls ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Responded:
    """The service responded, with whatever status: it is up, and takes our calls."""


@dataclass(frozen=True, slots=True)
class Throttled:
    """The service is up, and asks for fewer calls; `after` is Retry-After in seconds, if it was sent."""

    after: float | None = None


@dataclass(frozen=True, slots=True)
class Unavailable:
    """No response, or one that says that the service is unavailable; `after` as above."""

    after: float | None = None


@dataclass(frozen=True, slots=True)
class Abandoned:
    """The caller was cancelled before the response: nothing is known about the service."""


CallOutcome: TypeAlias = Responded | Throttled | Unavailable | Abandoned

RESPONDED: Final = Responded()
UNAVAILABLE: Final = Unavailable()
ABANDONED: Final = Abandoned()

# --- The breaker ------------------------------------------------------------------------------------------------------

# A service is down when it answered nothing for so many seconds, while so many calls of so many callers failed.
FAILURE_WINDOW: Final = 10.0
MIN_CALLS: Final = 20
MIN_CALLERS: Final = 5
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0


class BreakerState(StrEnum):
    """Closed: all calls go. Open: none does. Half open: one goes, as a probe."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "probing"


# As a constant, because reading a member of an enum costs more than the comparison.
CLOSED: Final = BreakerState.CLOSED


class CircuitBreaker:
    """Opens when no call at all is answered, closes with the first response. A single caller never opens it.

    The time is an argument, in monotonic seconds.
    """

    __slots__ = ("_backoff", "_next_probe", "_responded_at", "_unanswered", "openings", "state")

    def __init__(self, jitter: Callable[[], float] = random.random) -> None:
        self.state = BreakerState.CLOSED
        self.openings = 0
        self._backoff = Backoff(FIRST_PAUSE, LONGEST_PAUSE, jitter)
        self._responded_at = -inf
        # The latest calls without a response: when, and of which caller.
        self._unanswered: deque[tuple[float, Hashable]] = deque(maxlen=10 * MIN_CALLS)
        self._next_probe = -inf

    def seconds_until_probe(self, now: float) -> float:
        """How long calls are rejected; 0.0 when the next one may go, as a probe if the breaker is not closed."""
        match self.state:
            case BreakerState.CLOSED:
                return 0.0
            case BreakerState.OPEN:
                return max(self._next_probe - now, 0.0)
            case BreakerState.HALF_OPEN:
                # How long the probe takes is unknown: the caller asks again after the shortest pause.
                return FIRST_PAUSE

    def begin_probe(self) -> None:
        """The next call is a probe. It ends with `responded`, `unanswered` or `abandon_probe`."""
        self.state = BreakerState.HALF_OPEN

    def abandon_probe(self) -> None:
        """The probe was abandoned: the next call is one."""
        if self.state is BreakerState.HALF_OPEN:
            self.state = BreakerState.OPEN

    def responded(self, now: float) -> None:
        """The service responded: the breaker closes."""
        self._responded_at = now
        if self._unanswered:
            self._unanswered.clear()
        if self.state is not CLOSED:
            self.state = CLOSED
            self._backoff.reset()

    def unanswered(self, now: float, caller: Hashable, *, is_probe: bool) -> bool:
        """A call of `caller` got no response; whether that has just opened the breaker."""
        if is_probe:
            if self.state is BreakerState.HALF_OPEN:
                self._open(now)
            return False
        if self.state is not BreakerState.CLOSED:
            return False
        self._unanswered.append((now, caller))
        if not self._is_down(now):
            return False
        self._unanswered.clear()
        self.openings += 1
        self._open(now)
        return True

    def _is_down(self, now: float) -> bool:
        if len(self._unanswered) < MIN_CALLS or now - self._responded_at < FAILURE_WINDOW:
            return False
        recent = [caller for at, caller in self._unanswered if now - at < FAILURE_WINDOW]
        return len(recent) >= MIN_CALLS and len(set(recent)) >= MIN_CALLERS

    def _open(self, now: float) -> None:
        self.state = BreakerState.OPEN
        self._next_probe = now + self._backoff.next()
