"""Token bucket with a rate that AIMD finds: additive increase on success, multiplicative decrease when throttled."""

from math import inf
from typing import Final

from setpoint.core.values.deferred_dataclass import dataclass

# The rate after the service has throttled a call, as a part of the rate before.
DECREASE_FACTOR: Final = 0.5
# The longest Retry-After that is honoured: one broken proxy must not stop all calls until the next start.
MAX_RETRY_AFTER: Final = 3600.0
# Timers fire, and floats add up, only so exactly.
_TOLERANCE: Final = 1e-6


@dataclass(frozen=True, slots=True)
class AimdSettings:
    """Calls a second: at the start, at most (`ceiling`) and at least (`floor`); a second of demand adds `growth`.

    `burst` is the size of the bucket: so many calls may go at once after an idle time.
    """

    start: float
    burst: float
    ceiling: float
    growth: float
    floor: float = 0.5


class AimdTokenBucket:
    """Tokens for calls, refilled at a rate that rises on success and falls when the service throttles.

    The time is an argument, in monotonic seconds.
    """

    __slots__ = ("_decreased_at", "_paused_until", "_refilled_at", "_settings", "_tokens", "per_second")

    def __init__(self, settings: AimdSettings) -> None:
        self.per_second = settings.start
        self._settings = settings
        self._tokens = settings.burst
        self._refilled_at = -inf
        self._decreased_at = -inf
        self._paused_until = -inf

    def take(self, now: float) -> bool:
        """Takes a token if there is one; whether a call may be made now."""
        # As `seconds_until_token` does: a call less for each call of a service.
        if now < self._paused_until:
            return False
        if now > self._refilled_at:
            self._refill(now)
        if 1.0 - self._tokens > _TOLERANCE:
            return False
        self._tokens -= 1.0
        return True

    def give_back(self) -> None:
        """Returns the token of a call that was not made after all."""
        self._tokens = min(self._tokens + 1.0, self._settings.burst)

    def seconds_until_token(self, now: float) -> float:
        """How long until there is a token, if none is taken before; 0.0 when there is one now."""
        if now < self._paused_until:
            return self._paused_until - now
        self._refill(now)
        missing = 1.0 - self._tokens
        return missing / self.per_second if missing > _TOLERANCE else 0.0

    def pause_left(self, now: float) -> float:
        """How much is left of the pause that the service asked for with Retry-After."""
        return max(self._paused_until - now, 0.0)

    def succeeded(self, started: float, now: float) -> None:
        """A call that began at `started` was not throttled: additive increase.

        Calls that use less than half of the bucket say nothing about the limit, and do not raise the rate.
        """
        settings = self._settings
        if self.per_second < settings.ceiling and started > self._decreased_at and self._tokens < settings.burst / 2:
            self._refill(now)
            # Each call adds its share of a second; at most it doubles the rate, at rates below one a second.
            more = min(settings.growth / self.per_second, self.per_second)
            self.per_second = min(self.per_second + more, settings.ceiling)

    def throttled(self, started: float, now: float, after: float | None) -> None:
        """A call that began at `started` was throttled: multiplicative decrease, once for calls in flight together.

        `after` is Retry-After in seconds, if the service sent it.
        """
        if started > self._decreased_at:
            self._refill(now)
            self.per_second = max(self.per_second * DECREASE_FACTOR, self._settings.floor)
            self._tokens = min(self._tokens, 0.0)
            self._decreased_at = now
        until = now + min(after or 0.0, MAX_RETRY_AFTER)
        if until > max(now, self._paused_until):
            # One call may go when the pause is over; from then on the bucket refills at the rate.
            self._paused_until = self._refilled_at = until
            self._tokens = 1.0

    def _refill(self, now: float) -> None:
        if now > self._refilled_at:
            filled, burst = self._tokens + (now - self._refilled_at) * self.per_second, self._settings.burst
            self._tokens = filled if filled < burst else burst
            self._refilled_at = now
