"""A work queue that is right because it is simple: every question is a search through all there is."""

from dataclasses import dataclass, replace

from setpoint.errors import OperationRunning, RemoteUnavailable, SetpointError
from setpoint.runtime.workqueue.queue import QueueItem
from setpoint.runtime.workqueue.scheduling import Priority

ALLOWED = {
    Priority.EDIT: 0.0,
    Priority.DEPENDENCY: 1.0,
    Priority.DRIFT: 5.0,
    Priority.RESYNC: 30.0,
    Priority.START_UP: 60.0,
}


@dataclass(frozen=True)
class Wish:
    """Why a key is to be looked at, and since when."""

    priority: Priority
    trigger: str
    since: float

    def and_also(self, other: "Wish") -> "Wish":
        best = other if other.priority < self.priority else self
        return replace(best, since=min(self.since, other.since))


Rank = tuple[float, Priority, int]


class ModelQueue:
    """What a WorkQueue does, without waiting: `getters` are those who wait, `handed_out` what they got."""

    def __init__(self) -> None:
        self.now = 0.0
        self.getters = 0
        self.handed_out: list[QueueItem[str]] = []
        self.waiting: dict[str, tuple[Rank, Wish]] = {}
        self.processing: dict[str, Wish | None] = {}
        self.looks: dict[str, tuple[int, Wish]] = {}
        self.failures: dict[str, int] = {}
        self.polls: dict[str, int] = {}
        self._number = 0

    def add(self, key: str, priority: Priority, trigger: str) -> None:
        self.bring_due()
        self._arrive(key, Wish(priority, trigger, self.now), self.now)

    def schedule(self, key: str, seconds: float, priority: Priority, trigger: str) -> None:
        self.bring_due()
        self.looks[key] = (self._next_number(), Wish(priority, trigger, self.now + seconds))

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

    def forget(self, key: str) -> None:
        self.bring_due()
        self.failures.pop(key, None)
        self.polls.pop(key, None)
        self.looks.pop(key, None)

    def discard(self, key: str) -> None:
        self.forget(key)
        self.waiting.pop(key, None)
        if key in self.processing:
            self.processing[key] = None

    def done(self, key: str) -> None:
        self.bring_due()
        again = self.processing.pop(key)
        if key in self.looks and self.looks[key][1].since <= self.now:
            look = self.looks.pop(key)[1]
            again = look if again is None else again.and_also(look)
        if again is not None:
            self._arrive(key, again, self.now)

    def shut_down(self) -> None:
        self.waiting.clear()
        self.looks.clear()
        self.failures.clear()
        self.polls.clear()
        self.processing = dict.fromkeys(self.processing)

    def pass_time(self, seconds: float) -> None:
        """Those who wait get what comes due on the way at the moment it does."""
        end = self.now + seconds
        moments = {look.since for _, look in self.looks.values() if self.now < look.since < end}
        for context in (*sorted(moments), end):
            self.hand_out()
            self.now = context
        self.hand_out()

    def hand_out(self) -> None:
        """Whoever waits gets what has the first rank."""
        self.bring_due()
        while self.getters and self.waiting:
            key = min(self.waiting, key=lambda key: self.waiting[key][0])
            wish = self.waiting.pop(key)[1]
            self.processing[key] = None
            self.getters -= 1
            self.handed_out.append(QueueItem(key, wish.priority, wish.trigger, self.now - wish.since))

    def bring_due(self) -> None:
        due = [key for key, (_, look) in self.looks.items() if look.since <= self.now and key not in self.processing]
        for key in sorted(due, key=lambda key: (self.looks[key][1].since, self.looks[key][0])):
            look = self.looks.pop(key)[1]
            self._arrive(key, look, look.since)

    def _arrive(self, key: str, wish: Wish, at: float) -> None:
        rank = (at + ALLOWED[wish.priority], wish.priority, self._next_number())
        if key in self.processing:
            before = self.processing[key]
            self.processing[key] = wish if before is None else before.and_also(wish)
        elif key in self.waiting:
            old_rank, before = self.waiting[key]
            self.waiting[key] = (min(rank, old_rank), before.and_also(wish))
        else:
            self.waiting[key] = (rank, wish)

    def _next_number(self) -> int:
        self._number += 1
        return self._number
