"""The order of the work queue: priorities, one FIFO lane for each of them, and delayed adds."""

from collections import deque
from collections.abc import Collection, Hashable, Iterable
from enum import Enum, IntEnum
from heapq import heapify, heappop, heappush
from itertools import count
from math import inf
from typing import Final, Generic, NamedTuple, TypeVar

import msgspec


class Priority(IntEnum):
    """Why a key is queued, the most urgent first."""

    EDIT = 0
    """The author changed the resource, or requested a reconcile."""
    DEPENDENCY = 1
    """A dependency is ready."""
    DRIFT = 2
    """The live object changed."""
    RESYNC = 3
    """The resync is due."""
    START_UP = 4
    """The process has just started."""


# A deadline is the time of the add plus this: no priority starves, however busy the more urgent ones are.
# In the order of `Priority`; a less urgent one never has a shorter time.
MAX_WAIT_SECONDS: Final = (0.0, 1.0, 5.0, 30.0, 60.0)


K = TypeVar("K", bound=Hashable)

_SLACK: Final = 64


class DelayedAdd(NamedTuple, Generic[K]):
    """An add that is due later. Sorted by time; `number` decides between equals, so that keys are never compared."""

    due: float
    number: int
    key: K
    priority: Priority
    trigger: str


class DelayedAdds(Generic[K]):
    """At most one delayed add for each key. A new one replaces the old one, whichever is earlier."""

    def __init__(self) -> None:
        # Never later than the first pending one. Read before every operation of the queue, hence no property.
        self.next_due = inf
        self._pending: dict[K, DelayedAdd[K]] = {}
        # Holds replaced ones as well, until they come up or are too many.
        self._heap: list[DelayedAdd[K]] = []
        self._numbers = count()
        # The keys whose add was set or dropped since that was last asked; None until it is.
        self._changed: set[K] | None = None

    def __len__(self) -> int:
        return len(self._pending)

    @property
    def slots(self) -> int:
        """The size of the heap, replaced ones included: at most twice the pending ones, plus a constant."""
        return len(self._heap)

    def schedule(self, key: K, due: float, priority: Priority, trigger: str) -> None:
        """Schedules the add of `key`, and replaces the one that it has."""
        delayed = DelayedAdd(due, next(self._numbers), key, priority, trigger)
        self._pending[key] = delayed
        if self._changed is not None:
            self._changed.add(key)
        heap = self._heap
        heappush(heap, delayed)
        if len(heap) > 2 * len(self._pending) + _SLACK:
            self._tidy()
        else:
            self.next_due = heap[0].due

    def schedule_all(self, adds: Iterable[tuple[K, float]], priority: Priority, trigger: str) -> None:
        """The same for many keys, each with the time at which it is due."""
        pending, heap, numbers, changed = self._pending, self._heap, self._numbers, self._changed
        for key, due in adds:
            delayed = pending[key] = DelayedAdd(due, next(numbers), key, priority, trigger)
            heappush(heap, delayed)
            if changed is not None:
                changed.add(key)
        self._tidy()

    def due_at(self, key: K) -> float:
        """When the delayed add of `key` is due; infinity when it has none."""
        pending = self._pending.get(key)
        return inf if pending is None else pending.due

    def drop(self, key: K) -> None:
        """Removes the delayed add of `key`."""
        if self._changed is not None:
            # Also one that was added since: nothing follows it.
            self._changed.add(key)
        if self._pending.pop(key, None) is not None:
            self._tidy()

    def take_changed(self) -> Collection[K]:
        """The keys whose add was set or dropped since the last call; at the first call all that have one."""
        changed, self._changed = self._changed, set()
        return tuple(self._pending) if changed is None else changed

    def clear(self) -> None:
        """Removes all of them."""
        self._pending.clear()
        self._heap.clear()
        self.next_due = inf

    def due(self, now: float, most: int) -> list[DelayedAdd[K]]:
        """The pending ones that are due, the first `most` of them in order. They stay pending until `claim`."""
        found: list[DelayedAdd[K]] = []
        while self._heap and self._heap[0].due <= now and len(found) < most:
            delayed = heappop(self._heap)
            if self._pending.get(delayed.key) is delayed:
                found.append(delayed)
        self._tidy()
        return found

    def claim(self, delayed: DelayedAdd[K]) -> bool:
        """Removes a pending one; False when it was replaced or dropped before."""
        if self._pending.get(delayed.key) is not delayed:
            return False
        del self._pending[delayed.key]
        self._tidy()
        return True

    def _tidy(self) -> None:
        if len(self._heap) > 2 * len(self._pending) + _SLACK:
            self._heap[:] = self._pending.values()
            heapify(self._heap)
        self.next_due = self._heap[0].due if self._heap else inf


class KeyState(Enum):
    """The state of an entry."""

    QUEUED = "waits for its turn"
    STALE = "replaced by an entry in a more urgent lane"
    PROCESSING = "handed out"
    DIRTY = "handed out, and added again since"


# As constants, because reading a member of an enum costs more than the comparison.
QUEUED: Final = KeyState.QUEUED
STALE: Final = KeyState.STALE
PROCESSING: Final = KeyState.PROCESSING
DIRTY: Final = KeyState.DIRTY


class QueueEntry(msgspec.Struct, Generic[K], gc=False, eq=False):
    """A key between its first add and its `done`. `since` is the first add that no processing has answered yet.

    While it is processed, `priority`, `trigger` and `since` are void until it is added again.
    """

    key: K
    priority: Priority
    trigger: str
    since: float
    deadline: float = 0.0
    state: KeyState = QUEUED
    started: float = 0.0
    overdue: DelayedAdd[K] | None = None  # came due during processing; added at `done`, if still pending


class PriorityLanes(Generic[K]):
    """Takes out the earliest deadline: the time of the add plus the longest wait of its priority.

    No deadline is before that of an earlier add of the same priority. So each lane is sorted without a heap, and the
    earliest entry is at the front of one of the lanes. Stale entries are skipped, and removed when they outnumber the
    live ones.
    """

    def __init__(self) -> None:
        self._lanes: tuple[deque[QueueEntry[K]], ...] = tuple(deque() for _ in Priority)
        # Those that are not empty, in the same order: mostly one.
        self._occupied: tuple[deque[QueueEntry[K]], ...] = ()
        self._depths = [0] * len(Priority)

    @property
    def depths(self) -> tuple[int, ...]:
        """How many entries are queued under each priority."""
        return tuple(self._depths)

    @property
    def slots(self) -> int:
        """The entries in all lanes, stale ones included: at most twice the queued ones, plus a constant."""
        return sum(map(len, self._lanes))

    def put(self, entry: QueueEntry[K], at: float) -> None:
        """Queues an entry that is in no lane, with the time of its add."""
        priority = entry.priority
        deadline = at + MAX_WAIT_SECONDS[priority]
        lane = self._lanes[priority]
        if not lane:
            entry.deadline = deadline
            lane.append(entry)
            self._find_occupied()
        else:
            last = lane[-1].deadline
            entry.deadline = deadline if deadline > last else last
            lane.append(entry)
        self._depths[priority] += 1

    def raised(self, entry: QueueEntry[K], priority: Priority, trigger: str, at: float) -> QueueEntry[K]:
        """The entry to keep after a queued one was added again `at`, with a more urgent priority.

        Its deadline never gets later: an entry that is due earlier keeps its lane under the new priority.
        """
        self._depths[entry.priority] -= 1
        lane = self._lanes[priority]
        if entry.deadline < max(at + MAX_WAIT_SECONDS[priority], lane[-1].deadline if lane else 0.0):
            entry.priority, entry.trigger = priority, trigger
            self._depths[priority] += 1
            return entry
        fresh = QueueEntry(entry.key, priority, trigger, entry.since)
        self.put(fresh, at)
        self._make_stale(entry)
        return fresh

    def drop(self, entry: QueueEntry[K]) -> None:
        """Removes a queued entry."""
        self._depths[entry.priority] -= 1
        self._make_stale(entry)

    def take(self) -> QueueEntry[K] | None:
        """The entry with the earliest deadline, the more urgent of two equal ones; None when no entry is queued."""
        while occupied := self._occupied:
            best = occupied[0] if len(occupied) == 1 else min(occupied, key=_first_deadline)
            entry = best.popleft()
            if not best:
                self._find_occupied()
            if entry.state is QUEUED:
                self._depths[entry.priority] -= 1
                return entry
        return None

    def clear(self) -> None:
        """Removes all entries."""
        for lane in self._lanes:
            lane.clear()
        self._occupied = ()
        self._depths = [0] * len(Priority)

    def _make_stale(self, entry: QueueEntry[K]) -> None:
        entry.state = STALE
        if self.slots > 2 * sum(self._depths) + _SLACK:
            self._remove_stale()

    def _remove_stale(self) -> None:
        for lane in self._lanes:
            kept = [entry for entry in lane if entry.state is QUEUED]
            lane.clear()
            lane.extend(kept)
        self._find_occupied()

    def _find_occupied(self) -> None:
        self._occupied = tuple(lane for lane in self._lanes if lane)


def _first_deadline(lane: deque[QueueEntry[K]]) -> float:
    return lane[0].deadline
