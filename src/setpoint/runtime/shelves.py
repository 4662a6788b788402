"""Which resources lie on which shelf, and when it is worth listing one."""

from math import ceil, inf
from typing import Final

from setpoint.engine.kind import Location
from setpoint.engine.resource import ResourceRef
from setpoint.engine.retries import Backoff
from setpoint.engine.shelf import Listable
from setpoint.engine.shelf import Shelf as ShelfName
from setpoint.runtime.informer import News
from setpoint.runtime.reasons import Reason

# For fewer, a look at each costs next to nothing.
FEWEST: Final = 10
# An item costs us about a tenth of a look, but is seen twice as often: a listing begins with the first look that is
# due. With one item in five that spares a look, both ways cost about the same.
STRANGERS: Final = 5
# After a listing that was refused, or was of no use. Neither changes often.
NOT_AGAIN: Final = 3600.0
# How long a shelf on which too little is at rest is left alone before it is counted again.
RECOUNT: Final = 60.0


class Listing:
    """One that is under way, on a shelf with so many of ours."""

    def __init__(self, ours: int, began: float, disturbed: set[ResourceRef]) -> None:
        self.ours = ours
        self.began = began
        # When the page that is being read was asked for: it shows what was so at some time after that.
        self.asked = began
        # What a step was at work on since then: the listing may show it as it was before.
        self.disturbed = disturbed
        # Whose looks wait for it, and why they were due.
        self.waiting: dict[ResourceRef, Reason] = {}
        # How many items there were; how many looks it answered; when the next look is at each that it was of use to.
        self.seen = 0
        self.looks = 0
        self.next_looks: list[float] = []

    def answered(self, ref: ResourceRef, seconds: float) -> None:
        """`ref` need not be looked at for so long."""
        self.looks += 1
        self.next_looks.append(seconds)
        self.waiting.pop(ref, None)

    @property
    def is_hopeless(self) -> bool:
        """Whether so much has been seen that it cannot be of use any more."""
        return self.seen > STRANGERS * self.ours

    @property
    def seconds_of_use(self) -> float | None:
        """How long after it began the next one pays: when enough looks come in as long again. None when none does."""
        enough = ceil(self.seen / STRANGERS)
        is_useful = len(self.next_looks) >= max(FEWEST, enough)
        return sorted(self.next_looks)[enough - 1] / 2 if is_useful else None


class Shelf:
    """One shelf: which of ours lie on it, and what became of listing it."""

    def __init__(self, name: ShelfName) -> None:
        self.name = name
        # By location. Of two that claim one object, one is here; the other is looked at by itself.
        self.members: dict[Location, ResourceRef] = {}
        self.listing: Listing | None = None
        self.not_before = -inf
        self._backoff = Backoff()

    def is_of_use(self, now: float) -> bool:
        """Whether it is being listed, or may be worth it."""
        return self.listing is not None or (now >= self.not_before and len(self.members) >= FEWEST)

    def leave_alone(self, now: float, seconds: float) -> None:
        """It is not listed for so long."""
        self.not_before = now + seconds

    def back_off(self, now: float, asked: float | None) -> float:
        """It is not listed until the service has had time to recover; how many seconds that is."""
        seconds = self._backoff.next(asked)
        self.leave_alone(now, seconds)
        return seconds

    def was_listed(self, listing: Listing, now: float) -> bool:
        """Whether `listing`, which has come to its end, was of use."""
        self._backoff = Backoff()
        seconds = listing.seconds_of_use
        self.not_before = now + NOT_AGAIN if seconds is None else listing.began + seconds
        return seconds is not None


class Shelves:
    """Every shelf on which one of the resources of a kind lies, by the location on its record."""

    def __init__(self, kind: Listable) -> None:
        self._kind = kind
        self._shelves: dict[ShelfName, Shelf] = {}

    def hear(self, news: News) -> None:
        """A resource came, went, or has a location on record now."""
        before = None if news.before is None else news.before.location
        after = None if news.after is None else news.after.location
        if before == after:
            return
        if before is not None:
            self._take_down(news.ref, before)
        if after is not None:
            self._put_up(news.ref, after)

    def of(self, location: Location) -> Shelf | None:
        """The shelf with that place on it; None for one that is listed nowhere."""
        name = self._kind.shelf_of(location)
        return None if name is None else self._shelves.get(name)

    def _put_up(self, ref: ResourceRef, location: Location) -> None:
        name = self._kind.shelf_of(location)
        if name is not None:
            self._shelves.setdefault(name, Shelf(name)).members[location] = ref

    def _take_down(self, ref: ResourceRef, location: Location) -> None:
        shelf = self.of(location)
        if shelf is None or shelf.members.get(location) != ref:
            return
        del shelf.members[location]
        if not shelf.members and shelf.listing is None:
            del self._shelves[shelf.name]
