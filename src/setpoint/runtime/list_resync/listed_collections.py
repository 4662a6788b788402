"""Which resources are in which listable collection, when a LIST is worth its cost, and what an item shows."""

from enum import Enum
from hashlib import sha256
from math import ceil, inf
from typing import Final

import msgspec

from setpoint.core.values.canonical import digest
from setpoint.engine.capabilities import ListScope as ShelfName
from setpoint.engine.capabilities import SupportsList
from setpoint.engine.idle_cache import IdleEntry, state_digest
from setpoint.engine.kind import Location
from setpoint.engine.requeue import error_backoff, jittered_resync
from setpoint.engine.resource import ResourceRef
from setpoint.runtime.informer import ResourceEvent
from setpoint.runtime.predicates import ReconcileTrigger

# For fewer, a look at each costs next to nothing.
MIN_MEMBERS: Final = 10
# An item costs us about a tenth of a look, but is seen twice as often: a listing begins with the first look that is
# due. With one item in five that spares a look, both ways cost about the same.
MAX_ITEMS_PER_MEMBER: Final = 5
# After a listing that was refused, or was of no use. Neither changes often.
RELIST_SECONDS: Final = 3600.0
# How long a shelf on which too little is at rest is left alone before it is counted again.
RECOUNT_SECONDS: Final = 60.0


class CollectionListing:
    """One that is under way, on a shelf with so many of ours."""

    def __init__(self, ours: int, began: float, disturbed: set[ResourceRef]) -> None:
        self.ours = ours
        self.began = began
        # When the page that is being read was asked for: it shows what was so at some time after that.
        self.asked = began
        # What a step was at work on since then: the listing may show it as it was before.
        self.disturbed = disturbed
        # Whose looks wait for it, and why they were due.
        self.waiting: dict[ResourceRef, ReconcileTrigger] = {}
        # How many items there were; how many looks it answered; when the next look is at each that it was of use to.
        self.seen = 0
        self.looks = 0
        self.next_resyncs: list[float] = []

    def answered(self, ref: ResourceRef, seconds: float) -> None:
        """`ref` need not be looked at for so long."""
        self.looks += 1
        self.next_resyncs.append(seconds)
        self.waiting.pop(ref, None)

    @property
    def is_not_worth_it(self) -> bool:
        """Whether so much has been seen that it cannot be of use any more."""
        return self.seen > MAX_ITEMS_PER_MEMBER * self.ours

    @property
    def seconds_until_relist(self) -> float | None:
        """How long after it began the next one pays: when enough looks come in as long again. None when none does."""
        enough = ceil(self.seen / MAX_ITEMS_PER_MEMBER)
        is_useful = len(self.next_resyncs) >= max(MIN_MEMBERS, enough)
        return sorted(self.next_resyncs)[enough - 1] / 2 if is_useful else None


class ListedCollection:
    """One shelf: which of ours lie on it, and what became of listing it."""

    def __init__(self, name: ShelfName) -> None:
        self.name = name
        # By location. Of two that claim one object, one is here; the other is looked at by itself.
        self.members: dict[Location, ResourceRef] = {}
        self.listing: CollectionListing | None = None
        self.not_before = -inf
        self._backoff = error_backoff()

    def is_worth_listing(self, now: float) -> bool:
        """Whether it is being listed, or may be worth it."""
        return self.listing is not None or (now >= self.not_before and len(self.members) >= MIN_MEMBERS)

    def skip_for(self, now: float, seconds: float) -> None:
        """It is not listed for so long."""
        self.not_before = now + seconds

    def back_off(self, now: float, asked: float | None) -> float:
        """It is not listed until the service has had time to recover; how many seconds that is."""
        seconds = self._backoff.next(asked)
        self.skip_for(now, seconds)
        return seconds

    def was_listed(self, listing: CollectionListing, now: float) -> bool:
        """Whether `listing`, which has come to its end, was of use."""
        self._backoff = error_backoff()
        seconds = listing.seconds_until_relist
        self.not_before = now + RELIST_SECONDS if seconds is None else listing.began + seconds
        return seconds is not None


class ListedCollections:
    """Every shelf on which one of the resources of a kind lies, by the location on its record."""

    def __init__(self, kind: SupportsList) -> None:
        self._kind = kind
        self._shelves: dict[ShelfName, ListedCollection] = {}

    def hear(self, news: ResourceEvent) -> None:
        """A resource came, went, or has a location on record now."""
        before = None if news.before is None else news.before.location
        after = None if news.after is None else news.after.location
        if before == after:
            return
        if before is not None:
            self._take_down(news.ref, before)
        if after is not None:
            self._put_up(news.ref, after)

    def of(self, location: Location) -> ListedCollection | None:
        """The shelf with that place on it; None for one that is listed nowhere."""
        name = self._kind.list_scope_of(location)
        return None if name is None else self._shelves.get(name)

    def _put_up(self, ref: ResourceRef, location: Location) -> None:
        name = self._kind.list_scope_of(location)
        if name is not None:
            self._shelves.setdefault(name, ListedCollection(name)).members[location] = ref

    def _take_down(self, ref: ResourceRef, location: Location) -> None:
        list_scope = self.of(location)
        if list_scope is None or list_scope.members.get(location) != ref:
            return
        del list_scope.members[location]
        if not list_scope.members and list_scope.listing is None:
            del self._shelves[list_scope.name]


# A list may leave out what a look shows, and nobody would know: so each object is looked at by itself about this often.
DIRECT_OBSERVE_SECONDS: Final = 6 * 3600.0


class ItemVerdict(Enum):
    """What an item says of its object."""

    UNCHANGED = "it is as it was"
    CHANGED = "it was listed in another state before"
    NOTHING = "nothing to go by"


class _Known(msgspec.Struct, gc=False, eq=False):
    """The digest of the item that shows the state at rest, when it was last seen, and until when it is good enough."""

    item: bytes
    seen: float
    until: float


class ListedItems:
    """The items of resources at rest, as long as no step is at work on them."""

    def __init__(self, kind: SupportsList) -> None:
        self._kind = kind
        self._known: dict[ResourceRef, _Known] = {}

    def forget(self, ref: ResourceRef) -> None:
        """What comes next is compared closely."""
        if self._known:
            self._known.pop(ref, None)

    def was_unchanged_since(self, ref: ResourceRef, since: float) -> bool:
        """Whether an item has shown it at rest since then."""
        known = self._known.get(ref)
        return known is not None and known.seen >= since

    def may_answer_for(self, ref: ResourceRef, now: float) -> bool:
        """Whether an item is good enough, and no look of its own is due."""
        known = self._known.get(ref)
        return known is None or now < known.until

    def compare(self, ref: ResourceRef, rest: IdleEntry, item: bytes, now: float) -> ItemVerdict:
        """What `item` says of a resource at rest. The very bytes of the last time need no decoding."""
        mark, known = sha256(item).digest(), self._known.get(ref)
        if known is None:
            if self.state_in(item, rest.location) != rest.state:
                return ItemVerdict.NOTHING
            self._known[ref] = _Known(mark, now, now + jittered_resync(ref, DIRECT_OBSERVE_SECONDS))
            return ItemVerdict.UNCHANGED
        if known.item != mark:
            if self.state_in(item, rest.location) != rest.state:
                return ItemVerdict.CHANGED
            known.item = mark
        known.seen = now
        return ItemVerdict.UNCHANGED

    def state_in(self, item: bytes, location: Location) -> bytes | None:
        """What stands for the state of the object; None when the item may not show all of it."""
        found = self._kind.read_item(item, location)
        return None if found is None else state_digest(digest(found.live), found.outputs)
