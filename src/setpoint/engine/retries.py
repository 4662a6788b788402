"""How long to wait after a step that stopped: errors back off, operations are asked about at a pace of their own."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from setpoint.errors import OperationRunning, RemoteUnavailable, Retry, SetpointError, StillWaiting

FIRST_DELAY, LONGEST_DELAY = 0.25, 120.0
FIRST_POLL, LONGEST_POLL = 1.0, 15.0


@dataclass(slots=True)
class Backoff:
    """Delays that double, with jitter, from `first` to `longest` seconds; what a service asks for counts more."""

    jitter: Callable[[], float] = random.random
    failures: int = 0
    first: float = FIRST_DELAY
    longest: float = LONGEST_DELAY

    @property
    def is_new(self) -> bool:
        """Whether nothing has failed yet."""
        return self.failures == 0

    def next(self, asked: float | None = None) -> float:
        """How long to wait now."""
        # Beyond sixty doublings any delay is the longest one.
        doubled = min(self.first * 2.0 ** min(self.failures, 60), self.longest)
        self.failures += 1
        return max(doubled * (0.5 + self.jitter() / 2), asked or 0.0)


def _polling() -> Backoff:
    return Backoff(first=FIRST_POLL, longest=LONGEST_POLL)


@dataclass(slots=True)
class Delays:
    """The delays of one resource, until a step of it succeeds."""

    errors: Backoff = field(default_factory=Backoff)
    polls: Backoff = field(default_factory=_polling)

    def after(self, error: SetpointError) -> float:
        """How long to wait after a step that ended with `error`."""
        if isinstance(error, OperationRunning):
            # The service is at work, as it should be: what failed before is over.
            self.errors.failures = 0
            pause = self.polls.next(error.after)
            # The end of its time is told when it comes.
            return min(pause, error.left) if isinstance(error, StillWaiting) else pause
        if error.retry is Retry.STEP_AGAIN and self.errors.is_new:
            # Somebody was faster: at once, once. Whoever always is, is not raced.
            self.errors.next()
            return 0.0
        return self.errors.next(error.after if isinstance(error, RemoteUnavailable) else None)
