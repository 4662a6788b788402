"""When a resource is reconciled again: the resync interval when nothing is left to do, backoff after an error."""

import hashlib
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from setpoint.engine.resource import ResourceRef
from setpoint.errors import ManifestInvalid, OperationRunning, RemoteUnavailable, Retry, SetpointError, StillWaiting

RESYNC_INTERVAL: Final = "cnrm.cloud.google.com/reconcile-interval-in-seconds"
DEFAULT_RESYNC_SECONDS: Final = 600.0


def resync_seconds(annotations: Mapping[str, str]) -> float:
    """The mean time between two looks that the author wants; 0: none once the resource is up to date."""
    text = annotations.get(RESYNC_INTERVAL)
    if text is None:
        return DEFAULT_RESYNC_SECONDS
    if not (text.isascii() and text.isdecimal()):
        raise ManifestInvalid(
            f'{RESYNC_INTERVAL} is {text!r}: write whole seconds, such as "600", or "0" for never again'
        )
    return float(text)


def jittered_resync(ref: ResourceRef, mean: float) -> float:
    """The time until the next look: between half of the mean and one and a half, always the same for one resource.

    What starts together thus drifts apart, and stays apart.
    """
    name = "/".join((ref.group, ref.kind, ref.namespace, ref.name))
    drawn = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "big") / 2**64
    return mean * (0.5 + drawn)


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
class RequeueDelays:
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
