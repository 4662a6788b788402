"""Resync by LIST: one call shows many objects, and an item that is unchanged replaces the GET of its resync.

A listing answers for resources that are in sync, and offers its items to resources that this process has not
reconciled yet. Anything else costs a reconcile: an item that differs or is missing, a resource that was reconciled
meanwhile, one that failed. A resync that is due waits for a running listing; an edit or a request does not.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import aclosing
from enum import StrEnum
from itertools import islice
from typing import Final

from setpoint.clients.ratelimit.fair_queue import on_behalf_of
from setpoint.engine.capabilities import SupportsList
from setpoint.engine.context import EngineContext
from setpoint.engine.idle_cache import IdleEntry, ListedObject
from setpoint.engine.kind import Location
from setpoint.engine.requeue import jittered_resync
from setpoint.engine.resource import ResourceRef
from setpoint.errors import RemoteUnavailable, SetpointError
from setpoint.runtime.index import IndexEntry, ResourceIndex
from setpoint.runtime.informer import ResourceEvent
from setpoint.runtime.list_resync.listed_collections import (
    MIN_MEMBERS,
    RECOUNT_SECONDS,
    RELIST_SECONDS,
    CollectionListing,
    ItemVerdict,
    ListedCollection,
    ListedCollections,
    ListedItems,
)
from setpoint.runtime.metrics.convergence import ConvergenceTracker
from setpoint.runtime.predicates import LISTED_CHANGE, RESYNC, ReconcileTrigger
from setpoint.runtime.workqueue.queue import QueueItem, WorkQueue
from setpoint.runtime.workqueue.scheduling import Priority

_log: Final = logging.getLogger(__name__)
# How long a look waits for a listing; never longer than half of what its author wants between two.
MAX_DEFER_SECONDS: Final = 60.0
_ITEMS_BEFORE_YIELD: Final = 32


class ListingResult(StrEnum):
    """What became of a listing."""

    COMPLETE = "complete"
    USELESS = "useless"
    REFUSED = "refused"
    UNAVAILABLE = "unavailable"
    BROKEN = "broken"


class NoListResync:
    """The lister of a kind whose objects cannot be listed: every look is taken."""

    under_way = 0

    async def drained(self) -> None:
        """See Lister."""

    def start(self, group: asyncio.TaskGroup) -> None:
        """See Lister."""

    def stop(self) -> None:
        """See Lister."""

    def hear(self, news: ResourceEvent) -> None:
        """See Lister."""

    def invalidate(self, ref: ResourceRef) -> None:
        """See Lister."""

    def begin_step(self, ref: ResourceRef) -> None:
        """See Lister."""

    def end_step(self, ref: ResourceRef) -> None:
        """See Lister."""

    def takes(self, item: QueueItem[ResourceRef]) -> bool:
        """See Lister."""
        return False


class ListResync:
    """Lists the shelves of one kind when that pays. A controller asks it between its queue and its steps."""

    def __init__(
        self,
        kind: SupportsList,
        engine: EngineContext,
        heads: ResourceIndex,
        queue: WorkQueue[ResourceRef],
        ages: ConvergenceTracker,
    ) -> None:
        assert engine.idle_cache is not None
        assert engine.listed_objects is not None
        # Which resources are this process's to look at. Others lie on the same shelves.
        self.covers: Callable[[ResourceRef], bool] = lambda ref: True
        self._kind = kind
        self._rests = engine.idle_cache
        self._sightings = engine.listed_objects
        self._clock = engine.clock
        self._heads = heads
        self._queue = queue
        self._convergence = ages
        self._shelves = ListedCollections(kind)
        self._items = ListedItems(kind)
        # Those of which a listing said nothing though they waited for it: they wait for no other.
        self._left_out: set[ResourceRef] = set()
        self._group: asyncio.TaskGroup | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def under_way(self) -> int:
        """How many listings there are now."""
        return len(self._tasks)

    async def drained(self) -> None:
        """Returns when nothing is being listed."""
        if self._tasks:
            await asyncio.wait(self._tasks)

    # --- What the controller tells -----------------------------------------------------------------------------------

    def start(self, group: asyncio.TaskGroup) -> None:
        """From now on shelves are listed, as tasks of `group`."""
        self._group = group

    def stop(self) -> None:
        """Nothing is listed any more."""
        self._group = None
        for task in self._tasks:
            task.cancel()

    def hear(self, news: ResourceEvent) -> None:
        """A resource changed."""
        if news.after is None:
            self.invalidate(news.ref)
        self._shelves.hear(news)

    def invalidate(self, ref: ResourceRef) -> None:
        """Something happened to `ref`: it is to be looked at by itself."""
        self._sightings.drop(ref)
        self.begin_step(ref)

    def begin_step(self, ref: ResourceRef) -> None:
        """A step is at work on `ref`, with what was shown to it: a listing under way may show what was before."""
        self._items.forget(ref)
        if self._left_out:
            self._left_out.discard(ref)
        list_scope = self._shelf_of(ref) if self._tasks else None
        if list_scope is not None and list_scope.listing is not None:
            list_scope.listing.disturbed.add(ref)
            list_scope.listing.waiting.pop(ref, None)

    def end_step(self, ref: ResourceRef) -> None:
        """The step is over, whether it took up what was shown to it or not."""
        self._sightings.drop(ref)

    # --- Which looks are spared --------------------------------------------------------------------------------------

    def takes(self, item: QueueItem[ResourceRef]) -> bool:
        """Whether nobody has to look now: a listing answered after the look was due, or is to answer."""
        if item.priority < Priority.RESYNC:
            # Somebody waits for it.
            return False
        ref, now = item.key, self._clock.monotonic()
        if self._items.was_unchanged_since(ref, now - item.waited):
            return True
        list_scope = self._shelf_of(ref)
        if (
            list_scope is None
            or not list_scope.is_worth_listing(now)
            or ref in self._left_out
            or not self._is_listable(ref, now)
        ):
            return False
        listing = list_scope.listing or self._begin(list_scope, ref, now)
        if listing is None or listing.waiting.pop(ref, None) is not None:
            # It is not worth it; or the look has waited long enough.
            return False
        self._put_off(ref, ReconcileTrigger(item.priority, item.trigger), listing)
        return True

    def _shelf_of(self, ref: ResourceRef) -> ListedCollection | None:
        head = self._heads.get(ref)
        return None if head is None or head.location is None else self._shelves.of(head.location)

    def _is_listable(self, ref: ResourceRef, now: float) -> bool:
        """Whether all that is to be known of `ref` is whether its object has moved, and a listing may tell."""
        head = self._heads.get(ref)
        if head is None or not self._wants_looks(ref, head):
            return False
        rest = self._rests.of(ref)
        if rest is None:
            return self._is_unseen(ref, head)
        return now < rest.until and self._items.may_answer_for(ref, now)

    def _wants_looks(self, ref: ResourceRef, head: IndexEntry) -> bool:
        """Whether `ref` is looked at here, and regularly: its author wants it, and no look that failed comes again."""
        return head.mean > 0 and self.covers(ref) and not self._queue.failures(ref)

    def _is_unseen(self, ref: ResourceRef, head: IndexEntry) -> bool:
        """Whether `ref` was as declared when an earlier process left it, and this one has yet to look."""
        return head.is_ready and self._convergence.is_new(ref) and ref not in self._sightings

    def _begin(self, list_scope: ListedCollection, due: ResourceRef, now: float) -> CollectionListing | None:
        """A new listing, if enough of what is on the shelf can do with one."""
        if self._group is None:
            return None
        listable = (ref for ref in list_scope.members.values() if self._is_listable(ref, now))
        if sum(1 for _ in islice(listable, MIN_MEMBERS)) < MIN_MEMBERS:
            list_scope.skip_for(now, RECOUNT_SECONDS)
            return None
        listing = list_scope.listing = CollectionListing(
            len(list_scope.members), now, self._queue.processing_keys() - {due}
        )
        task = self._group.create_task(self._list(list_scope, listing))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return listing

    def _put_off(self, ref: ResourceRef, reason: ReconcileTrigger, listing: CollectionListing) -> None:
        """The look is not dropped, but comes later: the listing may take too long, or never end."""
        head = self._heads.get(ref)
        assert head is not None
        listing.waiting[ref] = reason
        self._queue.schedule(ref, min(MAX_DEFER_SECONDS, head.mean / 2), *reason)

    # --- Listing -----------------------------------------------------------------------------------------------------

    async def _list(self, list_scope: ListedCollection, listing: CollectionListing) -> None:
        try:
            with on_behalf_of(list_scope.name, failed=False):
                ending = await self._go_through(list_scope, listing)
        except Exception as error:  # noqa: BLE001 - whatever it was, looks go on without
            ending = self._give_up(list_scope, error)
        finally:
            list_scope.listing = None
            self._left_out |= listing.waiting.keys()
            for ref, reason in listing.waiting.items():
                self._queue.schedule(ref, 0.0, *reason)
        self._convergence.listed(ending.value, listing.looks)

    async def _go_through(self, list_scope: ListedCollection, listing: CollectionListing) -> ListingResult:
        async with aclosing(self._kind.pages(list_scope.name)) as pages:
            async for page in pages:
                await self._read(page, list_scope, listing)
                if listing.is_not_worth_it:
                    break
                listing.asked = self._clock.monotonic()
        was_useful = list_scope.was_listed(listing, self._clock.monotonic())
        return ListingResult.COMPLETE if was_useful else ListingResult.USELESS

    def _give_up(self, list_scope: ListedCollection, error: Exception) -> ListingResult:
        now = self._clock.monotonic()
        if isinstance(error, RemoteUnavailable):
            list_scope.back_off(now, error.after)
            ending = ListingResult.UNAVAILABLE
        else:
            list_scope.skip_for(now, RELIST_SECONDS)
            ending = ListingResult.REFUSED if isinstance(error, SetpointError) else ListingResult.BROKEN
        seconds = round(list_scope.not_before - now, 3)
        if ending is ListingResult.BROKEN:
            _log.error("listing broke", extra={"shelf": list_scope.name, "seconds": seconds}, exc_info=error)
        else:
            _log.info("not listed", extra={"shelf": list_scope.name, "why": str(error), "seconds": seconds})
        return ending

    # --- What it shows -----------------------------------------------------------------------------------------------

    async def _read(self, page: Sequence[bytes], list_scope: ListedCollection, listing: CollectionListing) -> None:
        for item in page:
            listing.seen += 1
            try:
                location = self._kind.location_of(item, list_scope.name)
                ref = list_scope.members.get(location)
                if ref is not None and ref not in listing.disturbed:
                    self._hear_of(ref, item, location, listing)
            except SetpointError:
                # What cannot be read says nothing: its object is looked at by itself.
                pass
            if listing.seen % _ITEMS_BEFORE_YIELD == 0:
                await asyncio.sleep(0)

    def _hear_of(self, ref: ResourceRef, item: bytes, location: Location, listing: CollectionListing) -> None:
        head = self._heads.get(ref)
        if head is None or not self._wants_looks(ref, head):
            return
        rest = self._rests.of(ref)
        if rest is None:
            if self._is_unseen(ref, head):
                self._show(ref, item, location, listing)
        elif (
            rest.location == location and listing.asked < rest.until and self._items.may_answer_for(ref, listing.asked)
        ):
            self._answer(ref, rest, item, listing)

    def _show(self, ref: ResourceRef, item: bytes, location: Location, listing: CollectionListing) -> None:
        """For the first step of this process, which compares it with what is on record."""
        state = self._items.state_in(item, location)
        if state is None:
            return
        self._sightings.show(ref, ListedObject(location, state))
        listing.next_resyncs.append(self._seconds_between(ref))
        reason = listing.waiting.pop(ref, None)
        if reason is not None:
            self._queue.schedule(ref, 0.0, *reason)

    def _answer(self, ref: ResourceRef, rest: IdleEntry, item: bytes, listing: CollectionListing) -> None:
        """The look that is due, or will be, is needless if the object has not moved; if it has, the look comes now."""
        now = self._clock.monotonic()
        match self._items.compare(ref, rest, item, now):
            case ItemVerdict.UNCHANGED:
                seconds = self._seconds_between(ref)
                self._queue.schedule(ref, seconds - (now - listing.asked), *RESYNC)
                self._convergence.seen_in_sync(ref, listing.asked)
                listing.answered(ref, seconds)
            case ItemVerdict.CHANGED:
                self._queue.add(ref, *LISTED_CHANGE)
            case ItemVerdict.NOTHING:
                pass

    def _seconds_between(self, ref: ResourceRef) -> float:
        head = self._heads.get(ref)
        assert head is not None
        return jittered_resync(ref, head.mean)
