"""When the next step of each resource is due: as the queue of this process has it, and as other processes say.

A step that finds nothing to do commits nothing, but sets the next one: these times change without a change of the
store, and are kept apart from the rows, with numbers of their own.
"""

from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from typing import Final, Protocol

from setpoint.core.values.durations import rfc3339
from setpoint.dashboard.views.fleet import FleetRows, newest_first
from setpoint.engine.ports import Clock
from setpoint.engine.resource import ResourceRef

# Others tell the time of a step anew with each answer, in whole seconds.
_SAME_SECONDS: Final = 2.0
# So many resources that are gone are kept.
_SLACK: Final = 1_000


class StepSource(Protocol):
    """The processes that take steps."""

    def rescheduled(self) -> Mapping[ResourceRef, float | None]:
        """The seconds until the next steps that were set anew since the last call; None where there is none now."""
        ...

    async def others(self, refs: Collection[ResourceRef], tokens: Collection[str]) -> Mapping[ResourceRef, str]:
        """When the next steps are due that other processes take, asked with the tokens of users."""
        ...


class NextSteps:
    """The times by resource (RFC 3339, UTC), and the order of their changes. Numbers of changes only grow."""

    def __init__(self, rows: FleetRows, source: StepSource, clock: Clock) -> None:
        self._rows = rows
        self._source = source
        self._clock = clock
        self._times: dict[ResourceRef, str] = {}
        # The last change of each, the oldest first.
        self._numbers: dict[ResourceRef, int] = {}
        # Those that this process says; and those that others say.
        self._own: set[ResourceRef] = set()
        self._of_others: Collection[ResourceRef] = ()
        self.number = 0

    def get(self, ref: ResourceRef) -> str | None:
        """When the next step of a resource is due; None when no process says so."""
        return self._times.get(ref)

    def __iter__(self) -> Iterator[ResourceRef]:
        return iter(self._times)

    def since(self, number: int) -> Mapping[ResourceRef, str | None]:
        """What changed after that number: the times now."""
        rows = ((ref, self._rows.get(ref)) for ref in newest_first(self._numbers, number))
        return {ref: self._times.get(ref, found.row.next_step) for ref, found in rows if found is not None}

    def refresh(self) -> None:
        """Takes over what the queues of this process have."""
        found = self._source.rescheduled()
        if not found:
            return
        now = datetime.fromisoformat(self._clock.now()).timestamp()
        for ref, seconds in found.items():
            self._put(ref, None if seconds is None else rfc3339(int(now + seconds)))
            if seconds is None:
                self._own.discard(ref)
            else:
                self._own.add(ref)
        self._forget_gone()

    async def ask_others(self, tokens: Collection[str]) -> None:
        """Takes over what other processes say. What they said before, and do not any more, is unknown."""
        found = await self._source.others(tuple(self._rows), tokens)
        for ref in self._of_others:
            if ref not in found and ref not in self._own:
                self._put(ref, None)
        theirs = ((ref, time) for ref, time in found.items() if ref in self._rows and ref not in self._own)
        self._of_others = [ref for ref, time in theirs if self._is_taken(ref, time)]

    def _is_taken(self, ref: ResourceRef, time: str) -> bool:
        """Takes over a time, unless it is none."""
        at = _seconds(time)
        if at is None:
            return False
        before = _seconds(self._times.get(ref, ""))
        if before is None or abs(at - before) > _SAME_SECONDS:
            self._put(ref, rfc3339(int(at)))
        return True

    def _put(self, ref: ResourceRef, time: str | None) -> None:
        if self._times.get(ref) == time:
            return
        if time is None:
            del self._times[ref]
        else:
            self._times[ref] = time
        self.number += 1
        self._numbers.pop(ref, None)
        self._numbers[ref] = self.number

    def _forget_gone(self) -> None:
        if len(self._numbers) > len(self._rows) + _SLACK:
            for ref in [one for one in self._numbers if one not in self._rows]:
                del self._numbers[ref]
                self._times.pop(ref, None)
                self._own.discard(ref)


def _seconds(time: str) -> float | None:
    try:
        return datetime.fromisoformat(time).timestamp()
    except (ValueError, OverflowError):
        return None
