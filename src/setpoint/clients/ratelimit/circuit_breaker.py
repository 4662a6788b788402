"""Circuit breaker: opens when a service answers no call at all, and probes it with backoff. Also: outcomes of calls."""

import random
from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from enum import StrEnum
from math import inf
from typing import Final, TypeAlias


@dataclass(frozen=True, slots=True)
class Responded:
    """The service is there, and had time for us: every answer is that, also a clear no."""


@dataclass(frozen=True, slots=True)
class Throttled:
    """The service is there, and wants fewer calls: none of them before `after` seconds, if it says so."""

    after: float | None = None


@dataclass(frozen=True, slots=True)
class Unavailable:
    """No answer, or one that says that the service cannot: `after` as above."""

    after: float | None = None


@dataclass(frozen=True, slots=True)
class Abandoned:
    """Nobody waited for the answer: it says nothing about the service."""


CallOutcome: TypeAlias = Responded | Throttled | Unavailable | Abandoned

RESPONDED: Final = Responded()
UNAVAILABLE: Final = Unavailable()
ABANDONED: Final = Abandoned()


# Down means: in so many seconds nothing was answered, while so many calls for so many callers went unanswered.
FAILURE_WINDOW: Final = 10.0
MIN_CALLS: Final = 20
MIN_CALLERS: Final = 5
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0


class BreakerState(StrEnum):
    """Calls go through; or none do; or one does, to see."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "probing"


class CircuitBreaker:
    """Opens when nothing at all is answered, closes with the first answer. One caller alone never opens it.

    The time is an argument: seconds that never run backwards.
    """

    __slots__ = ("_answered_at", "_jitter", "_next_probe", "_pause", "_unanswered", "openings", "state")

    def __init__(self, jitter: Callable[[], float] = random.random) -> None:
        self.state = BreakerState.CLOSED
        self.openings = 0
        self._jitter = jitter
        self._answered_at = -inf
        # When and for whom; more than enough to tell.
        self._unanswered: deque[tuple[float, Hashable]] = deque(maxlen=10 * MIN_CALLS)
        self._pause = FIRST_PAUSE
        self._next_probe = -inf

    def seconds_until_probe(self, now: float) -> float:
        """How long calls fail at once; 0.0 when this one may go: if the breaker is not closed, `probe` says so."""
        match self.state:
            case BreakerState.CLOSED:
                return 0.0
            case BreakerState.OPEN:
                return max(self._next_probe - now, 0.0)
            case BreakerState.HALF_OPEN:
                # Nobody knows how long the probe takes: whoever asks again learns more.
                return FIRST_PAUSE

    def probe(self) -> None:
        """A call goes to see. It ends with `answered`, `unanswered` or `probe_given_up`."""
        self.state = BreakerState.HALF_OPEN

    def abandon_probe(self) -> None:
        """The call that went to see came to nothing: the next one goes."""
        if self.state is BreakerState.HALF_OPEN:
            self.state = BreakerState.OPEN

    def answered(self, now: float) -> None:
        """The service is there."""
        self._answered_at = now
        if self._unanswered:
            self._unanswered.clear()
        if self.state is not BreakerState.CLOSED:
            self.state = BreakerState.CLOSED
            self._pause = FIRST_PAUSE

    def unanswered(self, now: float, key: Hashable, *, is_probe: bool) -> bool:
        """A call for `key` got no answer; whether that has opened the breaker just now."""
        if is_probe:
            if self.state is BreakerState.HALF_OPEN:
                self._pause = min(self._pause * 2, LONGEST_PAUSE)
                self._rest(now)
            return False
        if self.state is not BreakerState.CLOSED:
            return False
        self._unanswered.append((now, key))
        if not self._is_down(now):
            return False
        self._unanswered.clear()
        self.openings += 1
        self._rest(now)
        return True

    def _is_down(self, now: float) -> bool:
        if len(self._unanswered) < MIN_CALLS or now - self._answered_at < FAILURE_WINDOW:
            return False
        recent = [key for at, key in self._unanswered if now - at < FAILURE_WINDOW]
        return len(recent) >= MIN_CALLS and len(set(recent)) >= MIN_CALLERS

    def _rest(self, now: float) -> None:
        self.state = BreakerState.OPEN
        self._next_probe = now + self._pause * (0.5 + self._jitter() / 2)
