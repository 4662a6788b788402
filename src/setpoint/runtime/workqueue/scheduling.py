"""The order of the work queue: priorities, one FIFO lane for each of them, and delayed adds."""

from collections import deque
from collections.abc import Hashable
from enum import Enum, IntEnum
from heapq import heapify, heappop, heappush
from itertools import count
from math import inf
from typing import Final, Generic, NamedTuple, TypeVar

import msgspec


class Priority(IntEnum):
    """The reason for a look, the most urgent first."""

    EDIT = 0
    """The author changed something, or asked."""
    DEPENDENCY = 1
    """Something that it waits for is ready."""
    DRIFT = 2
    """The live object changed."""
    RESYNC = 3
    """It is time to look again."""
    START_UP = 4
    """The process has just begun."""


# Whoever was added first, plus this, comes first: everything has its turn, however busy the better classes are.
# The order is that of `Priority`, and no class may wait less long than a better one.
MAX_WAIT_SECONDS: Final = (0.0, 1.0, 5.0, 30.0, 60.0)


K = TypeVar("K", bound=Hashable)

_SLACK: Final = 64


class DelayedAdd(NamedTuple, Generic[K]):
    """A look that is to come. Sorted by time; `number` decides between equals, so that keys are never compared."""

    due: float
    number: int
    key: K
    priority: Priority
    trigger: str


class DelayedAdds(Generic[K]):
    """The next look at each key. A new plan for a key replaces the old one, whichever is earlier."""

    def __init__(self) -> None:
        # Never later than the first look that is wanted. Read before every step of the queue, hence no property.
        self.next_due = inf
        self._wanted: dict[K, DelayedAdd[K]] = {}
        # Holds replaced looks as well, until they come up or are too many.
        self._heap: list[DelayedAdd[K]] = []
        self._numbers = count()

    def __len__(self) -> int:
        return len(self._wanted)

    @property
    def slots(self) -> int:
        """How many places are taken, replaced looks too: never more than twice what is wanted, and a few."""
        return len(self._heap)

    def plan(self, key: K, due: float, priority: Priority, trigger: str) -> None:
        """The next look at `key`, whatever was planned before."""
        look = DelayedAdd(due, next(self._numbers), key, priority, trigger)
        self._wanted[key] = look
        heappush(self._heap, look)
        self._tidy()

    def drop(self, key: K) -> None:
        """No look at `key` is planned any more."""
        if self._wanted.pop(key, None) is not None:
            self._tidy()

    def clear(self) -> None:
        """No look is planned any more."""
        self._wanted.clear()
        self._heap.clear()
        self.next_due = inf

    def due(self, now: float) -> list[DelayedAdd[K]]:
        """The wanted looks whose time has come, in order. They stay on record until `answer`."""
        found = []
        while self._heap and self._heap[0].due <= now:
            look = heappop(self._heap)
            if self._wanted.get(look.key) is look:
                found.append(look)
        self._tidy()
        return found

    def answer(self, look: DelayedAdd[K]) -> bool:
        """Takes a look off the record; False when it was replaced or dropped before."""
        if self._wanted.get(look.key) is not look:
            return False
        del self._wanted[look.key]
        self._tidy()
        return True

    def _tidy(self) -> None:
        if len(self._heap) > 2 * len(self._wanted) + _SLACK:
            self._heap[:] = self._wanted.values()
            heapify(self._heap)
        self.next_due = self._heap[0].due if self._heap else inf


class KeyState(Enum):
    """Where a key is."""

    QUEUED = "waits for its turn"
    STALE = "waits elsewhere, at a better place"
    PROCESSING = "handed out"
    DIRTY = "handed out, and added again since"


# By these names, because reading a member off its class costs more than the comparison that it is for.
QUEUED: Final = KeyState.QUEUED
STALE: Final = KeyState.STALE
PROCESSING: Final = KeyState.PROCESSING
DIRTY: Final = KeyState.DIRTY


class QueueEntry(msgspec.Struct, Generic[K], gc=False, eq=False):
    """A key between its first add and its `done`. `since` is the first add that is not answered yet.

    In work, `priority`, `trigger` and `since` say nothing until it is added again, and then are those of that add.
    """

    key: K
    priority: Priority
    trigger: str
    since: float
    deadline: float = 0.0
    state: KeyState = QUEUED
    started: float = 0.0
    overdue: DelayedAdd[K] | None = (
        None  # the last look that came due in work: at `done` it counts, if it is still wanted
    )


class PriorityLanes(Generic[K]):
    """Takes out the earliest deadline: the time of adding, plus what the priority allows.

    Times must not go backwards from one call to the next. Then each lane is in order as it stands, and the first
    of all is the best of a few heads. Stale entries are passed over, and cleared away when they outnumber the others.
    """

    def __init__(self) -> None:
        self._lanes: tuple[deque[QueueEntry[K]], ...] = tuple(deque() for _ in Priority)
        self._depths = [0] * len(Priority)

    @property
    def depths(self) -> tuple[int, ...]:
        """How many wait under each priority."""
        return tuple(self._depths)

    @property
    def slots(self) -> int:
        """How many places are taken, stale too: right after a raise or drop at most twice what waits, and a few."""
        return sum(map(len, self._lanes))

    def put(self, entry: QueueEntry[K], at: float) -> None:
        """Queues an entry that is in no lane, as added `at`."""
        priority = entry.priority
        entry.deadline = at + MAX_WAIT_SECONDS[priority]
        self._lanes[priority].append(entry)
        self._depths[priority] += 1

    def raised(self, entry: QueueEntry[K], priority: Priority, trigger: str, at: float) -> QueueEntry[K]:
        """The entry to keep now that a queued one was added again `at`, with a better priority.

        Its deadline never gets later: whoever is overdue stays where it is, under a better name.
        """
        self._depths[entry.priority] -= 1
        if entry.deadline < at + MAX_WAIT_SECONDS[priority]:
            entry.priority, entry.trigger = priority, trigger
            self._depths[priority] += 1
            return entry
        fresh = QueueEntry(entry.key, priority, trigger, entry.since)
        self.put(fresh, at)
        self._make_stale(entry)
        return fresh

    def drop(self, entry: QueueEntry[K]) -> None:
        """A queued entry does not wait any more."""
        self._depths[entry.priority] -= 1
        self._make_stale(entry)

    def take(self) -> QueueEntry[K] | None:
        """The entry with the earliest deadline, of a better lane first when two are equal; None when none waits."""
        while True:
            best: deque[QueueEntry[K]] | None = None
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

    def _make_stale(self, entry: QueueEntry[K]) -> None:
        entry.state = STALE
        if self.slots > 2 * sum(self._depths) + _SLACK:
            self._clear_away()

    def _clear_away(self) -> None:
        for lane in self._lanes:
            kept = [entry for entry in lane if entry.state is QUEUED]
            lane.clear()
            lane.extend(kept)
