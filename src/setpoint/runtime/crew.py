"""The hands of a controller, shared out so that what keeps failing does not keep the rest from its turn."""

from setpoint.engine.kind import Sort
from setpoint.engine.resource import ResourceRef
from setpoint.runtime.workqueue import Item


class Crew:
    """So many hands for a kind, of which at most three quarters, and never all, are busy with what failed last time."""

    def __init__(self, kind: Sort, size: int) -> None:
        self.kind = kind
        self.size = size
        self.busy = 0
        self._most_failing = max(1, size * 3 // 4)
        self._failing = 0
        # A dict for its order: those that wait until there are hands for what fails.
        self._aside: dict[ResourceRef, Item[ResourceRef]] = {}

    @property
    def has_hands_for_failing(self) -> bool:
        """Whether one more that failed may be taken on."""
        return self._failing < self._most_failing and not self._aside

    def put_aside(self, item: Item[ResourceRef]) -> None:
        """It waits until there are hands for it."""
        self._aside[item.key] = item

    def next_failing(self) -> Item[ResourceRef] | None:
        """The one that was put aside first, when there are hands for it."""
        if not self._aside or self._failing >= self._most_failing:
            return None
        return self._aside.pop(next(iter(self._aside)))

    def release(self, ref: ResourceRef) -> bool:
        """Whether `ref` was waiting; it does not any more."""
        return self._aside.pop(ref, None) is not None

    def release_all(self) -> tuple[ResourceRef, ...]:
        """All that waited; none does any more."""
        waiting = tuple(self._aside)
        self._aside.clear()
        return waiting

    def begin(self, *, failing: bool) -> None:
        """One more hand is busy."""
        self.busy += 1
        self._failing += failing

    def end(self, *, failing: bool) -> None:
        """A hand is free again."""
        self.busy -= 1
        self._failing -= failing
