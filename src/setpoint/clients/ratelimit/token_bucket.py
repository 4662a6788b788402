"""Token bucket whose rate is found by AIMD: additive increase on success, multiplicative decrease when throttled."""

from dataclasses import dataclass
from math import inf
from typing import Final

# What is left of the rate after the service has asked for fewer calls.
DECREASE_FACTOR: Final = 0.5
# A service that asks for more than this is not believed: one broken proxy must not stop us until the next start.
MAX_RETRY_AFTER: Final = 3600.0
# Timers fire, and seconds add up, only so exactly.
_TOLERANCE: Final = 1e-6


@dataclass(frozen=True, slots=True)
class AimdSettings:
    """Calls a second: at the start, at least and at most; `growth` is what each second of demand adds.

    `burst` calls may go at once after a quiet time.
    """

    start: float
    burst: float
    ceiling: float
    growth: float
    floor: float = 0.5


class AimdTokenBucket:
    """A bucket of tokens that fills at a rate which rises on success, and falls when there were too many calls.

    The time is an argument: seconds that never run backwards.
    """

    __slots__ = ("_counted_at", "_fell_at", "_pace", "_paused_until", "_tokens", "per_second")

    def __init__(self, pace: AimdSettings) -> None:
        self.per_second = pace.start
        self._pace = pace
        self._tokens = pace.burst
        self._counted_at = -inf
        self._fell_at = -inf
        self._paused_until = -inf

    def take(self, now: float) -> bool:
        """Whether one more call may go now; then it counts."""
        if self.seconds_until_free(now) > 0.0:
            return False
        self._tokens -= 1.0
        return True

    def give_back(self) -> None:
        """The last call that was let go was not made."""
        self._tokens = min(self._tokens + 1.0, self._pace.burst)

    def seconds_until_free(self, now: float) -> float:
        """How long until one more call may go, if none goes before; 0.0 when it may go now."""
        if now < self._paused_until:
            return self._paused_until - now
        self._count(now)
        missing = 1.0 - self._tokens
        return missing / self.per_second if missing > _TOLERANCE else 0.0

    def pause_left(self, now: float) -> float:
        """How much is left of the time in which the service wants no calls at all."""
        return max(self._paused_until - now, 0.0)

    def answered(self, started: float, now: float) -> None:
        """A call that went at `started` was welcome. Nothing is learnt from it while far fewer are made than may be."""
        pace = self._pace
        if self.per_second < pace.ceiling and started > self._fell_at and self._tokens < pace.burst / 2:
            self._count(now)
            # As each call adds its share of a second; at most twice as much, for a call that stands for many seconds.
            more = min(pace.growth / self.per_second, self.per_second)
            self.per_second = min(self.per_second + more, pace.ceiling)

    def throttled(self, started: float, now: float, after: float | None) -> None:
        """A call that went at `started` was one too many. Those that were under way together count once."""
        if started > self._fell_at:
            self._count(now)
            self.per_second = max(self.per_second * DECREASE_FACTOR, self._pace.floor)
            self._tokens = min(self._tokens, 0.0)
            self._fell_at = now
        until = now + min(after or 0.0, MAX_RETRY_AFTER)
        if until > max(now, self._paused_until):
            # One call may go when the pause is over; the others at the rate, from there.
            self._paused_until = self._counted_at = until
            self._tokens = 1.0

    def _count(self, now: float) -> None:
        if now > self._counted_at:
            filled = self._tokens + (now - self._counted_at) * self.per_second
            self._tokens = min(filled, self._pace.burst)
            self._counted_at = now
