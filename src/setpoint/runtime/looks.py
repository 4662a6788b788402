"""When to look next: one time for each key, and the last word on it counts."""

from collections.abc import Hashable
from heapq import heapify, heappop, heappush
from itertools import count
from math import inf
from typing import Final, Generic, NamedTuple, TypeVar

from setpoint.runtime.priorities import Priority

K = TypeVar("K", bound=Hashable)

_FEW: Final = 64


class Look(NamedTuple, Generic[K]):
    """A look that is to come. Sorted by time; `number` decides between equals, so that keys are never compared."""

    due: float
    number: int
    key: K
    priority: Priority
    trigger: str


class Looks(Generic[K]):
    """The next look at each key. A new plan for a key replaces the old one, whichever is earlier."""

    def __init__(self) -> None:
        # Never later than the first look that is wanted. Read before every step of the queue, hence no property.
        self.next_due = inf
        self._wanted: dict[K, Look[K]] = {}
        # Holds replaced looks as well, until they come up or are too many.
        self._heap: list[Look[K]] = []
        self._numbers = count()

    def __len__(self) -> int:
        return len(self._wanted)

    @property
    def slots(self) -> int:
        """How many places are taken, replaced looks too: never more than twice what is wanted, and a few."""
        return len(self._heap)

    def plan(self, key: K, due: float, priority: Priority, trigger: str) -> None:
        """The next look at `key`, whatever was planned before."""
        look = Look(due, next(self._numbers), key, priority, trigger)
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

    def due(self, now: float) -> list[Look[K]]:
        """The wanted looks whose time has come, in order. They stay on record until `answer`."""
        found = []
        while self._heap and self._heap[0].due <= now:
            look = heappop(self._heap)
            if self._wanted.get(look.key) is look:
                found.append(look)
        self._tidy()
        return found

    def answer(self, look: Look[K]) -> bool:
        """Takes a look off the record; False when it was replaced or dropped before."""
        if self._wanted.get(look.key) is not look:
            return False
        del self._wanted[look.key]
        self._tidy()
        return True

    def _tidy(self) -> None:
        if len(self._heap) > 2 * len(self._wanted) + _FEW:
            self._heap[:] = self._wanted.values()
            heapify(self._heap)
        self.next_due = self._heap[0].due if self._heap else inf
