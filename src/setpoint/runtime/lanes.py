"""Keys in the order of their deadlines: a queue for each priority, and no heap."""

from collections import deque
from collections.abc import Hashable
from enum import Enum
from math import inf
from typing import Final, Generic, TypeVar

import msgspec

from setpoint.runtime.looks import Look
from setpoint.runtime.priorities import SECONDS_ALLOWED, Priority

K = TypeVar("K", bound=Hashable)

_FEW: Final = 64


class State(Enum):
    """Where a key is."""

    QUEUED = "waits for its turn"
    STALE = "waits elsewhere, at a better place"
    IN_WORK = "handed out"
    AGAIN = "handed out, and added again since"


# By these names, because reading a member off its class costs more than the comparison that it is for.
QUEUED: Final = State.QUEUED
STALE: Final = State.STALE
IN_WORK: Final = State.IN_WORK
AGAIN: Final = State.AGAIN


class Entry(msgspec.Struct, Generic[K], gc=False, eq=False):
    """A key between its first add and its `done`. `since` is the first add that is not answered yet.

    In work, `priority`, `trigger` and `since` say nothing until it is added again, and then are those of that add.
    """

    key: K
    priority: Priority
    trigger: str
    since: float
    deadline: float = 0.0
    state: State = QUEUED
    started: float = 0.0
    overdue: Look[K] | None = None  # the last look that came due in work: at `done` it counts, if it is still wanted


class Lanes(Generic[K]):
    """Takes out the earliest deadline: the time of adding, plus what the priority allows.

    Times must not go backwards from one call to the next. Then each lane is in order as it stands, and the first
    of all is the best of a few heads. Stale entries are passed over, and cleared away when they outnumber the others.
    """

    def __init__(self) -> None:
        self._lanes: tuple[deque[Entry[K]], ...] = tuple(deque() for _ in Priority)
        self._depths = [0] * len(Priority)

    @property
    def depths(self) -> tuple[int, ...]:
        """How many wait under each priority."""
        return tuple(self._depths)

    @property
    def slots(self) -> int:
        """How many places are taken, stale too: right after a raise or drop at most twice what waits, and a few."""
        return sum(map(len, self._lanes))

    def put(self, entry: Entry[K], at: float) -> None:
        """Queues an entry that is in no lane, as added `at`."""
        priority = entry.priority
        entry.deadline = at + SECONDS_ALLOWED[priority]
        self._lanes[priority].append(entry)
        self._depths[priority] += 1

    def raised(self, entry: Entry[K], priority: Priority, trigger: str, at: float) -> Entry[K]:
        """The entry to keep now that a queued one was added again `at`, with a better priority.

        Its deadline never gets later: whoever is overdue stays where it is, under a better name.
        """
        self._depths[entry.priority] -= 1
        if entry.deadline < at + SECONDS_ALLOWED[priority]:
            entry.priority, entry.trigger = priority, trigger
            self._depths[priority] += 1
            return entry
        fresh = Entry(entry.key, priority, trigger, entry.since)
        self.put(fresh, at)
        self._make_stale(entry)
        return fresh

    def drop(self, entry: Entry[K]) -> None:
        """A queued entry does not wait any more."""
        self._depths[entry.priority] -= 1
        self._make_stale(entry)

    def take(self) -> Entry[K] | None:
        """The entry with the earliest deadline, of a better lane first when two are equal; None when none waits."""
        while True:
            best: deque[Entry[K]] | None = None
            earliest = inf
            for lane in self._lanes:
                if lane and lane[0].deadline < earliest:
                    best, earliest = lane, lane[0].deadline
            if best is None:
                return None
            entry = best.popleft()
            if entry.state is QUEUED:
                self._depths[entry.priority] -= 1
                return entry

    def clear(self) -> None:
        """Nothing waits any more."""
        for lane in self._lanes:
            lane.clear()
        self._depths = [0] * len(Priority)

    def _make_stale(self, entry: Entry[K]) -> None:
        entry.state = STALE
        if self.slots > 2 * sum(self._depths) + _FEW:
            self._clear_away()

    def _clear_away(self) -> None:
        for lane in self._lanes:
            kept = [entry for entry in lane if entry.state is QUEUED]
            lane.clear()
            lane.extend(kept)
