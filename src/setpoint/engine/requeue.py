"""When a resource is reconciled again: the resync interval when nothing is left to do, backoff after an error."""

import hashlib
import random
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Final

from setpoint.core.backoff import Backoff
from setpoint.core.schema import annotations as known_annotations
from setpoint.core.schema.annotations import annotation_value
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.engine.resource import ResourceRef
from setpoint.errors import OperationQueued, OperationRunning, RemoteUnavailable, Retry, SetpointError, StillWaiting

RESYNC_INTERVAL: Final = known_annotations.RESYNC_INTERVAL
DEFAULT_RESYNC_SECONDS: Final = 600.0
# How soon an owner with children that are not ready is reconciled again, even without a change of them.
NOT_READY_SECONDS: Final = 10.0


def resync_seconds(annotations: Mapping[str, str]) -> float:
    """The mean resync interval that the author wants; 0: no resync once the resource is up to date."""
    text = annotation_value(annotations, RESYNC_INTERVAL)
    return DEFAULT_RESYNC_SECONDS if text is None else float(text)


def jittered_resync(ref: ResourceRef, mean: float) -> float:
    """The time until the next resync: between half of the mean and one and a half, always the same for one resource.

    Resources that start together thus drift apart, and stay apart.
    """
    name = "/".join((ref.group, ref.kind, ref.namespace, ref.name))
    fraction = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "big") / 2**64
    return mean * (0.5 + fraction)


FIRST_DELAY, LONGEST_DELAY = 0.25, 120.0
FIRST_POLL, LONGEST_POLL = 1.0, 15.0
# Of an operation that others wait for.
FIRST_AWAITED_POLL: Final = 0.1
# A resource in an operation queue is reconciled in its turn; this is for a turn that was missed.
QUEUED_SECONDS: Final = 30.0


def error_backoff(jitter: Callable[[], float] = random.random, *, longest: float = LONGEST_DELAY) -> Backoff:
    """The delays after errors."""
    return Backoff(FIRST_DELAY, longest, jitter)


def poll_backoff(jitter: Callable[[], float] = random.random) -> Backoff:
    """The delays between two polls of an operation that is running."""
    return Backoff(FIRST_POLL, LONGEST_POLL, jitter)


@dataclass(slots=True)
class RequeueDelays:
    """The delays of one resource, until a step of it succeeds."""

    errors: Backoff = field(default_factory=error_backoff)
    polls: Backoff = field(default_factory=poll_backoff)

    def after(self, error: SetpointError) -> float:
        """The delay after a step that stopped with `error`, in seconds."""
        if isinstance(error, OperationQueued):
            return QUEUED_SECONDS
        if isinstance(error, OperationRunning):
            # The service executes the request: the failures of before are over.
            self.errors.reset()
            self.polls.first = FIRST_AWAITED_POLL if error.is_awaited else FIRST_POLL
            delay = self.polls.next(error.after)
            # A wait that times out is reported at its timeout.
            return min(delay, error.left) if isinstance(error, StillWaiting) else delay
        if error.retry is Retry.STEP_AGAIN and self.errors.is_new:
            # A lost race with another writer is retried at once, the first time; after that it backs off.
            self.errors.next()
            return 0.0
        return self.errors.next(error.after if isinstance(error, RemoteUnavailable) else None)
