"""List scopes: which resources a LIST shows together, when it is worth its cost, and what an item shows."""

from collections.abc import Sequence
from enum import Enum
from hashlib import sha256
from math import ceil, inf
from typing import Final, NamedTuple

import msgspec

from setpoint.clients.listed_page import ListedPage
from setpoint.core.unstructured import GroupKind
from setpoint.core.values.canonical import digest
from setpoint.engine.capabilities import ListScope, SupportsList
from setpoint.engine.idle_cache import IdleEntry, state_digest
from setpoint.engine.kind import Location
from setpoint.engine.requeue import error_backoff, jittered_resync
from setpoint.engine.resource import ResourceRef
from setpoint.runtime.informer import ResourceEvent
from setpoint.runtime.predicates import ReconcileTrigger

# For fewer, a GET of each costs next to nothing.
MIN_MEMBERS: Final = 10
# An item costs about a tenth of a step, but is read twice as often: a listing starts with the first resync that is
# due. If one item in five saves a step, both ways cost about the same.
MAX_ITEMS_PER_MEMBER: Final = 5
# After a listing that was refused, or saved too little. Neither changes often.
RELIST_SECONDS: Final = 3600.0
# How long a scope with too few idle members is skipped before they are counted again.
RECOUNT_SECONDS: Final = 60.0


class ScopeListing:
    """One running listing of a scope with so many members."""

    def __init__(self, members: int, began: float, stepped: set[ResourceRef]) -> None:
        self.members = members
        self.began = began
        # When the current page was requested: it shows a state from after that.
        self.asked = began
        # The time at which its items are being read: one for those between which no other task has its turn.
        self.now = began
        # Resources with a step since then: the listing may show a state from before it.
        self.stepped = stepped
        # Resources whose resync waits for it, with the trigger.
        self.waiting: dict[ResourceRef, ReconcileTrigger] = {}
        # Items read; resyncs saved; seconds until the next resync of each resource that it answered for.
        self.seen = 0
        self.resyncs_saved = 0
        self.next_resyncs: list[float] = []
        # Those that the items of this moment have answered for, each with the seconds until its next resync.
        self.unchanged: list[tuple[ResourceRef, float]] = []
        # The next `shown` and `pages` of its scope.
        self.shown: dict[bytes, Location] = {}
        self.pages: dict[bytes, tuple[bytes, ...]] = {}

    def marks_of(self, page: Sequence[bytes], scope: "ListedScope") -> tuple[bytes, ...]:
        """The digest of each item of a page. Those of a page that the last listing showed are known."""
        if not isinstance(page, ListedPage):
            marks = tuple([sha256(item).digest() for item in page])
        else:
            known = scope.pages.get(page.digest)
            marks = known if known is not None else tuple([sha256(item).digest() for item in page.items])
            self.pages[page.digest] = marks
        self.seen += len(marks)
        return marks

    def answered(self, ref: ResourceRef, seconds: float) -> None:
        """`ref` needs no resync for so long."""
        self.resyncs_saved += 1
        self.next_resyncs.append(seconds)
        self.waiting.pop(ref, None)

    @property
    def is_not_worth_it(self) -> bool:
        """Whether there are too many items of objects that are not managed here."""
        return self.seen > MAX_ITEMS_PER_MEMBER * self.members

    @property
    def seconds_until_relist(self) -> float | None:
        """How long after its start the next listing pays: by then enough resyncs are due. None when none does."""
        enough = ceil(self.seen / MAX_ITEMS_PER_MEMBER)
        is_useful = len(self.next_resyncs) >= max(MIN_MEMBERS, enough)
        return sorted(self.next_resyncs)[enough - 1] / 2 if is_useful else None


class ListedScope:
    """One list scope: its members, the running listing, and when the next one may start.

    `namespace` is that of all members in a store with tenants: each tenant lists on its own behalf. Else it is empty.
    """

    def __init__(self, name: ListScope, kind: GroupKind, namespace: str) -> None:
        self.name = name
        self.kind = kind
        self.namespace = namespace
        # By location. Of two resources with the same location, only one is a member.
        self.members: dict[Location, ResourceRef] = {}
        # Of the members that the last listing showed unchanged, by the digest of the item: the same bytes again have
        # the same location, and need no decoding.
        self.shown: dict[bytes, Location] = {}
        # Of each page of the last listing, by its digest, the digests of its items.
        self.pages: dict[bytes, tuple[bytes, ...]] = {}
        self.listing: ScopeListing | None = None
        self.not_before = -inf
        self._backoff = error_backoff()

    def is_worth_listing(self, now: float) -> bool:
        """Whether a listing is running, or may pay."""
        return self.listing is not None or (now >= self.not_before and len(self.members) >= MIN_MEMBERS)

    def skip_for(self, now: float, seconds: float) -> None:
        """Starts no listing for so long."""
        self.not_before = now + seconds

    def back_off(self, now: float, asked: float | None) -> float:
        """Starts no listing until the service has had time to recover; how many seconds that is."""
        seconds = self._backoff.next(asked)
        self.skip_for(now, seconds)
        return seconds

    def record_result(self, listing: ScopeListing, now: float) -> bool:
        """Takes note of a finished listing; whether it paid."""
        self._backoff = error_backoff()
        self.shown, self.pages = listing.shown, listing.pages
        seconds = listing.seconds_until_relist
        self.not_before = now + RELIST_SECONDS if seconds is None else listing.began + seconds
        return seconds is not None


_COUNT_SECONDS: Final = 1.0


class ListedScopes:
    """Every list scope with members of one kind, by the recorded locations of their objects; `by_tenant` if need be."""

    def __init__(self, kind: SupportsList, *, by_tenant: bool) -> None:
        self._kind = kind
        self._by_tenant = by_tenant
        self._scopes: dict[tuple[str, ListScope], ListedScope] = {}
        # Until then no scope is worth listing; and when that is counted next.
        self._quiet_until = self._next_count = -inf

    def is_quiet(self, now: float) -> bool:
        """Whether no scope at all is worth listing: cheaper than to find the scope of a resource."""
        return now < self._quiet_until

    def count_quiet(self, now: float) -> None:
        """To be called when a scope is not worth listing: finds out, now and then, until when none is."""
        if now >= self._next_count:
            self._next_count = now + _COUNT_SECONDS
            large = (scope.not_before for scope in self._scopes.values() if len(scope.members) >= MIN_MEMBERS)
            self._quiet_until = min(large, default=inf)

    def handle_event(self, event: ResourceEvent) -> None:
        """A resource came, went, or got a location."""
        before = None if event.before is None else event.before.location
        after = None if event.after is None else event.after.location
        if before == after:
            return
        if before is not None:
            self._remove(event.ref, before)
        if after is not None:
            self._add(event.ref, after)

    def of(self, ref: ResourceRef, location: Location) -> ListedScope | None:
        """The scope that lists the object of `ref` at this location; None when there is none."""
        name = self._kind.list_scope_of(location)
        return None if name is None else self._scopes.get((self._namespace(ref), name))

    def _namespace(self, ref: ResourceRef) -> str:
        return ref.namespace if self._by_tenant else ""

    def _add(self, ref: ResourceRef, location: Location) -> None:
        name, namespace = self._kind.list_scope_of(location), self._namespace(ref)
        if name is not None:
            self._quiet_until = -inf
            new = ListedScope(name, ref.group_kind, namespace)
            # A second resource of the object does not replace the first.
            self._scopes.setdefault((namespace, name), new).members.setdefault(location, ref)

    def _remove(self, ref: ResourceRef, location: Location) -> None:
        scope = self.of(ref, location)
        if scope is None or scope.members.get(location) != ref:
            return
        del scope.members[location]
        if not scope.members and scope.listing is None:
            del self._scopes[scope.namespace, scope.name]


# A LIST may leave out what a GET shows, without a sign: so each object gets a step of its own about this often.
DIRECT_OBSERVE_SECONDS: Final = 6 * 3600.0


class ItemResult(Enum):
    """What an item shows of its object."""

    UNCHANGED = "it is as it was"
    CHANGED = "it was listed in another state before"
    UNKNOWN = "it cannot be compared"


class _Known(msgspec.Struct, gc=False, eq=False):
    """The digest of the item that shows the idle state, when it was last read, and until when it may answer."""

    item: bytes
    seen: float
    until: float
    # Of its resync interval: see `jittered_resync`.
    factor: float


class ListItem(NamedTuple):
    """An item of a page, with its digest, and the location of the object that it shows."""

    page: Sequence[bytes]
    number: int
    mark: bytes
    location: Location

    @property
    def text(self) -> bytes:
        """Its bytes."""
        return self.page[self.number]


class ListedItems:
    """The items of idle resources, as long as no step runs."""

    def __init__(self, kind: SupportsList) -> None:
        self._kind = kind
        self._known: dict[ResourceRef, _Known] = {}

    def forget(self, ref: ResourceRef) -> None:
        """The next item is decoded and compared."""
        if self._known:
            self._known.pop(ref, None)

    def was_unchanged_since(self, ref: ResourceRef, since: float) -> bool:
        """Whether an item has shown it unchanged since then."""
        known = self._known.get(ref)
        return known is not None and known.seen >= since

    def may_answer_for(self, ref: ResourceRef, now: float) -> bool:
        """Whether an item may answer, and no step of its own is due."""
        known = self._known.get(ref)
        return known is None or now < known.until

    def compare(self, ref: ResourceRef, idle: IdleEntry, item: ListItem, now: float) -> ItemResult:
        """What an item shows of an idle resource. The same bytes need no decoding."""
        known = self._known.get(ref)
        if known is None:
            if self.state_in(item.text, idle.location) != idle.state:
                return ItemResult.UNKNOWN
            factor = jittered_resync(ref, 1.0)
            self._known[ref] = _Known(item.mark, now, now + DIRECT_OBSERVE_SECONDS * factor, factor)
            return ItemResult.UNCHANGED
        if known.item != item.mark:
            if self.state_in(item.text, idle.location) != idle.state:
                return ItemResult.CHANGED
            known.item = item.mark
        known.seen = now
        return ItemResult.UNCHANGED

    def factor(self, ref: ResourceRef) -> float:
        """By how much the time until the next resync of an unchanged resource differs from the mean."""
        return self._known[ref].factor

    def state_in(self, item: bytes, location: Location) -> bytes | None:
        """The digest of the state of the object; None when the item may not show all of it."""
        found = self._kind.read_item(item, location)
        return None if found is None else state_digest(digest(found.live), found.outputs)
