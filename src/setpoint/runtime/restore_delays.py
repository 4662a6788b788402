"""When a status that another writer changed is restored: at once, and later if that writer goes on."""

from dataclasses import field

from setpoint.core.backoff import Backoff
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.engine.ports import Clock
from setpoint.engine.requeue import LONGEST_DELAY, error_backoff
from setpoint.engine.resource import ResourceRef


@dataclass(slots=True)
class _RecentEdits:
    """The edits of one status that follow each other closely."""

    last: float
    backoff: Backoff = field(default_factory=error_backoff)


class RestoreDelays:
    """How long a status stays as another writer left it: not at all at first, longer with each edit soon after."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._edits: dict[ResourceRef, _RecentEdits] = {}

    def after_edit(self, ref: ResourceRef) -> float:
        """The seconds until the status is restored."""
        now, recent = self._clock.monotonic(), self._edits.get(ref)
        if recent is None or now - recent.last > 2 * LONGEST_DELAY:
            self._edits[ref] = _RecentEdits(now)
            return 0.0
        recent.last = now
        return recent.backoff.next()

    def forget(self, ref: ResourceRef) -> None:
        """The resource is gone, or not reconciled here any more."""
        self._edits.pop(ref, None)
