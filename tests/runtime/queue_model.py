"""A work queue that is right because it is simple: every question is a search through all there is."""

from dataclasses import dataclass, replace

from setpoint.errors import OperationRunning, RemoteUnavailable, SetpointError
from setpoint.runtime.workqueue.queue import QueueItem
from setpoint.runtime.workqueue.scheduling import Priority

LONGEST_WAIT = {
    Priority.EDIT: 0.0,
    Priority.DEPENDENCY: 1.0,
    Priority.DRIFT: 5.0,
    Priority.RESYNC: 30.0,
    Priority.START_UP: 60.0,
}


@dataclass(frozen=True)
class PendingAdd:
    """Why a key is to be reconciled, and since when."""

    priority: Priority
    trigger: str
    since: float

    def merged_with(self, other: "PendingAdd") -> "PendingAdd":
        best = other if other.priority < self.priority else self
        return replace(best, since=min(self.since, other.since))


Rank = tuple[float, Priority, int]


class ModelQueue:
    """A WorkQueue without waiting: `getters` is the number of waiting workers, `handed_out` what they got."""

    def __init__(self) -> None:
        self.now = 0.0
        self.getters = 0
        self.handed_out: list[QueueItem[str]] = []
        self.waiting: dict[str, tuple[Rank, PendingAdd]] = {}
        self.processing: dict[str, PendingAdd | None] = {}
        self.delayed: dict[str, tuple[int, PendingAdd]] = {}
        self.failures: dict[str, int] = {}
        self.polls: dict[str, int] = {}
        self._number = 0

    def add(self, key: str, priority: Priority, trigger: str) -> None:
        self.add_due()
        self._add(key, PendingAdd(priority, trigger, self.now), self.now)

    def schedule(self, key: str, seconds: float, priority: Priority, trigger: str) -> None:
        self.add_due()
        self.delayed[key] = (self._next_number(), PendingAdd(priority, trigger, self.now + seconds))

    def retry(self, key: str, error: SetpointError, priority: Priority, trigger: str) -> float:
        """With a jitter of zero: half of what a delay may be."""
        failures = self.failures.get(key, 0)
        self.failures[key] = failures + 1
        match error:
            case OperationRunning():
                polls = self.polls.get(key, 0)
                self.polls[key] = polls + 1
                self.failures[key] = 0
                seconds = max(min(2.0**polls, 15.0) / 2, error.after or 0.0)
            case RemoteUnavailable():
                seconds = max(min(0.25 * 2.0**failures, 120.0) / 2, error.after or 0.0)
            case _:
                seconds = 0.0 if failures == 0 else min(0.25 * 2.0**failures, 120.0) / 2
        self.schedule(key, seconds, priority, trigger)
        return seconds

    def reset(self, key: str) -> None:
        self.failures.pop(key, None)
        self.polls.pop(key, None)

    def forget(self, key: str) -> None:
        self.add_due()
        self.reset(key)
        self.delayed.pop(key, None)

    def discard(self, key: str) -> None:
        self.forget(key)
        self.waiting.pop(key, None)
        if key in self.processing:
            self.processing[key] = None

    def done(self, key: str) -> None:
        self.add_due()
        again = self.processing.pop(key)
        if key in self.delayed and self.delayed[key][1].since <= self.now:
            due = self.delayed.pop(key)[1]
            again = due if again is None else again.merged_with(due)
        if again is not None:
            self._add(key, again, self.now)

    def shut_down(self) -> None:
        self.waiting.clear()
        self.delayed.clear()
        self.failures.clear()
        self.polls.clear()
        self.processing = dict.fromkeys(self.processing)

    def pass_time(self, seconds: float) -> None:
        """Waiting workers get each delayed add at the moment when it is due."""
        end = self.now + seconds
        moments = {due.since for _, due in self.delayed.values() if self.now < due.since < end}
        for moment in (*sorted(moments), end):
            self.hand_out()
            self.now = moment
        self.hand_out()

    def hand_out(self) -> None:
        """Hands the keys of the first ranks to waiting workers."""
        self.add_due()
        while self.getters and self.waiting:
            key = min(self.waiting, key=lambda key: self.waiting[key][0])
            pending = self.waiting.pop(key)[1]
            self.processing[key] = None
            self.getters -= 1
            self.handed_out.append(QueueItem(key, pending.priority, pending.trigger, self.now - pending.since))

    def add_due(self) -> None:
        keys = [key for key, (_, add) in self.delayed.items() if add.since <= self.now and key not in self.processing]
        for key in sorted(keys, key=lambda key: (self.delayed[key][1].since, self.delayed[key][0])):
            due = self.delayed.pop(key)[1]
            self._add(key, due, due.since)

    def _add(self, key: str, pending: PendingAdd, at: float) -> None:
        rank = (at + LONGEST_WAIT[pending.priority], pending.priority, self._next_number())
        if key in self.processing:
            before = self.processing[key]
            self.processing[key] = pending if before is None else before.merged_with(pending)
        elif key in self.waiting:
            old_rank, before = self.waiting[key]
            self.waiting[key] = (min(rank, old_rank), before.merged_with(pending))
        else:
            self.waiting[key] = (rank, pending)

    def _next_number(self) -> int:
        self._number += 1
        return self._number
