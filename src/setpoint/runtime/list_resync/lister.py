"""Resync by LIST: one call shows many objects, and an item that is unchanged replaces the GET of its resync.

A listing answers for resources that are in sync, and offers its items to resources that this process has not
reconciled yet. Anything else costs a reconcile: an item that differs or is missing, a resource that was reconciled
meanwhile, one that failed. A resync that is due waits for a running listing; an edit or a request does not.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Sequence
from contextlib import aclosing
from enum import StrEnum
from itertools import islice
from typing import Final

from setpoint.clients.ratelimit.fair_queue import on_behalf_of
from setpoint.engine.capabilities import SupportsList
from setpoint.engine.context import EngineContext
from setpoint.engine.idle_cache import ListedObject
from setpoint.engine.requeue import jittered_resync
from setpoint.engine.resource import ResourceRef
from setpoint.errors import Bug, RemoteUnavailable, SetpointError
from setpoint.runtime.index import IndexEntry, ResourceIndex
from setpoint.runtime.informer import ResourceEvent
from setpoint.runtime.list_resync.listed_scopes import (
    MIN_MEMBERS,
    RECOUNT_SECONDS,
    RELIST_SECONDS,
    ItemResult,
    ListedItems,
    ListedScope,
    ListedScopes,
    ListItem,
    ScopeListing,
)
from setpoint.runtime.metrics.convergence import ConvergenceTracker
from setpoint.runtime.predicates import LISTED_CHANGE, RESYNC, ReconcileTrigger
from setpoint.runtime.workqueue.queue import QueueItem, WorkQueue
from setpoint.runtime.workqueue.scheduling import Priority

_log: Final = logging.getLogger(__name__)
# How long a resync waits for a listing; never longer than half of its interval.
MAX_DEFER_SECONDS: Final = 60.0
_ITEMS_BEFORE_YIELD: Final = 32
# At start-up every scope is to be listed. Each listing has a page in memory, and a budget that its call waits for.
MAX_LISTINGS: Final = 16


class ListingResult(StrEnum):
    """How a listing ended: the label `ending` of its metric."""

    COMPLETE = "complete"
    USELESS = "useless"
    REFUSED = "refused"
    UNAVAILABLE = "unavailable"
    BROKEN = "broken"


class NoListResync:
    """For a kind whose objects cannot be listed: every resync is a step."""

    running_listings = 0

    async def drained(self) -> None:
        """See ListResync."""

    def start(self, group: asyncio.TaskGroup) -> None:
        """See ListResync."""

    def stop(self) -> None:
        """See ListResync."""

    def handle_event(self, event: ResourceEvent) -> None:
        """See ListResync."""

    def invalidate(self, ref: ResourceRef) -> None:
        """See ListResync."""

    def step_started(self, ref: ResourceRef) -> None:
        """See ListResync."""

    def step_finished(self, ref: ResourceRef) -> None:
        """See ListResync."""

    def defers(self, item: QueueItem[ResourceRef]) -> bool:
        """See ListResync."""
        return False


class ListResync:
    """Lists the scopes of one kind when that is cheaper than a step for each. Sits between queue and steps."""

    def __init__(
        self,
        kind: SupportsList,
        engine: EngineContext,
        index: ResourceIndex,
        *,
        queue: WorkQueue[ResourceRef],
        convergence: ConvergenceTracker,
        is_reconciled_here: Callable[[ResourceRef], bool],
        running_steps: Collection[ResourceRef],
    ) -> None:
        assert engine.idle_cache is not None
        assert engine.listed_objects is not None
        # Objects of resources that other replicas reconcile are in the same lists.
        self.is_reconciled_here = is_reconciled_here
        self._running_steps = running_steps
        self._kind = kind
        self._engine = engine
        self._idle_cache = engine.idle_cache
        self._listed_objects = engine.listed_objects
        self._clock = engine.clock
        self._index = index
        self._queue = queue
        self._convergence = convergence
        self._scopes = ListedScopes(kind, by_tenant=engine.tenancy is not None)
        self._items = ListedItems(kind)
        # Resources that waited for a listing in which they were not: they wait for no other.
        self._not_listed: set[ResourceRef] = set()
        self._group: asyncio.TaskGroup | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._slots = asyncio.Semaphore(MAX_LISTINGS)

    @property
    def running_listings(self) -> int:
        """How many listings are running, or waiting for others to end."""
        return len(self._tasks)

    async def drained(self) -> None:
        """Returns when no listing is running."""
        if self._tasks:
            await asyncio.wait(self._tasks)

    # --- Called by the controller -------------------------------------------------------------------------------------

    def start(self, group: asyncio.TaskGroup) -> None:
        """From now on scopes are listed, in tasks of `group`."""
        self._group = group

    def stop(self) -> None:
        """Stops all listings."""
        self._group = None
        for task in self._tasks:
            task.cancel()

    def handle_event(self, event: ResourceEvent) -> None:
        """A resource changed."""
        if event.after is None:
            self.invalidate(event.ref)
        self._scopes.handle_event(event)

    def invalidate(self, ref: ResourceRef) -> None:
        """Something happened to `ref`: it needs a step of its own."""
        self._listed_objects.drop(ref)
        self.step_started(ref)

    def step_started(self, ref: ResourceRef) -> None:
        """A step of `ref` starts: a running listing may show a state from before it."""
        self._items.forget(ref)
        if self._not_listed:
            self._not_listed.discard(ref)
        scope = self._scope_of(ref) if self._tasks else None
        if scope is not None and scope.listing is not None:
            scope.listing.stepped.add(ref)
            scope.listing.waiting.pop(ref, None)

    def step_finished(self, ref: ResourceRef) -> None:
        """The step has ended, whether it used the listed object or not."""
        self._listed_objects.drop(ref)

    # --- Which resyncs wait for a listing -----------------------------------------------------------------------------

    def defers(self, item: QueueItem[ResourceRef]) -> bool:
        """Whether no step is needed now: a listing has answered since the resync was due, or is going to."""
        if item.priority < Priority.RESYNC:
            # An edit, a dependency or drift does not wait.
            return False
        ref, now = item.key, self._clock.monotonic()
        if self._items.was_unchanged_since(ref, now - item.waited):
            return True
        if self._scopes.is_quiet(now):
            return False
        scope = self._scope_of(ref)
        if scope is None or not scope.is_worth_listing(now):
            self._scopes.count_quiet(now)
            return False
        if ref in self._not_listed or not self._is_listable(ref, now):
            return False
        listing = scope.listing or self._start_listing(scope, now)
        if listing is None or listing.waiting.pop(ref, None) is not None:
            # A listing does not pay; or the resync has waited long enough.
            return False
        self._defer(ref, ReconcileTrigger(item.priority, item.trigger), listing)
        return True

    def _scope_of(self, ref: ResourceRef) -> ListedScope | None:
        entry = self._index.get(ref)
        return None if entry is None or entry.location is None else self._scopes.of(ref, entry.location)

    def _is_listable(self, ref: ResourceRef, now: float) -> bool:
        """Whether a listing can answer for `ref`: only a change of its object is of interest."""
        entry = self._index.get(ref)
        if entry is None or not self._is_resynced_here(ref, entry):
            return False
        idle = self._idle_cache.of(ref)
        if idle is None:
            return self._is_not_reconciled_yet(ref, entry)
        return now < idle.until and self._items.may_answer_for(ref, now)

    def _is_resynced_here(self, ref: ResourceRef, entry: IndexEntry) -> bool:
        """Whether `ref` has a resync, is reconciled here, and is not failing."""
        return entry.resync_seconds > 0 and self.is_reconciled_here(ref) and not self._queue.failures(ref)

    def _is_not_reconciled_yet(self, ref: ResourceRef, entry: IndexEntry) -> bool:
        """Whether `ref` was ready when this process started, and has not been reconciled by it."""
        return entry.is_ready and self._convergence.is_new(ref) and ref not in self._listed_objects

    def _start_listing(self, scope: ListedScope, now: float) -> ScopeListing | None:
        """A new listing, if it can answer for enough members of the scope."""
        if self._group is None:
            return None
        listable = (ref for ref in scope.members.values() if self._is_listable(ref, now))
        if sum(1 for _ in islice(listable, MIN_MEMBERS)) < MIN_MEMBERS:
            scope.skip_for(now, RECOUNT_SECONDS)
            return None
        listing = scope.listing = ScopeListing(len(scope.members), now, set(self._running_steps))
        task = self._group.create_task(self._list(scope, listing))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return listing

    def _defer(self, ref: ResourceRef, trigger: ReconcileTrigger, listing: ScopeListing) -> None:
        """The resync is not dropped, but scheduled for later: the listing may take too long, or never end."""
        entry = self._index.get(ref)
        assert entry is not None
        listing.waiting[ref] = trigger
        self._queue.schedule(ref, min(MAX_DEFER_SECONDS, entry.resync_seconds / 2), *trigger)

    # --- Listing -----------------------------------------------------------------------------------------------------

    async def _list(self, scope: ListedScope, listing: ScopeListing) -> None:
        try:
            async with self._slots:
                listing.asked = self._clock.monotonic()
                with on_behalf_of(scope.name, failed=False):
                    result = await self._read_pages(scope, listing)
        except Exception as error:  # noqa: BLE001 - resyncs go on without it
            result = self._give_up_listing(scope, error)
        finally:
            scope.listing = None
            self._not_listed |= listing.waiting.keys()
            for ref, trigger in listing.waiting.items():
                self._queue.schedule(ref, 0.0, *trigger)
        self._convergence.listed(result.value, listing.resyncs_saved)

    async def _read_pages(self, scope: ListedScope, listing: ScopeListing) -> ListingResult:
        kind = await self._kind_for(scope)
        async with aclosing(kind.pages(scope.name)) as pages:
            async for page in pages:
                await self._read_page(page, scope, listing)
                if listing.is_not_worth_it:
                    break
                listing.asked = self._clock.monotonic()
        was_useful = scope.record_result(listing, self._clock.monotonic())
        return ListingResult.COMPLETE if was_useful else ListingResult.USELESS

    async def _kind_for(self, scope: ListedScope) -> SupportsList:
        """The kind, bound to the tenant of the scope's members."""
        if not scope.namespace:
            return self._kind
        found = (await self._engine.for_namespace(scope.namespace)).kinds[scope.kind]
        if not isinstance(found, SupportsList):
            raise Bug(f"{scope.kind[1]} cannot be listed on behalf of a tenant")
        return found

    def _give_up_listing(self, scope: ListedScope, error: Exception) -> ListingResult:
        now = self._clock.monotonic()
        if isinstance(error, RemoteUnavailable):
            scope.back_off(now, error.after)
            result = ListingResult.UNAVAILABLE
        else:
            scope.skip_for(now, RELIST_SECONDS)
            result = ListingResult.REFUSED if isinstance(error, SetpointError) else ListingResult.BROKEN
        seconds = round(scope.not_before - now, 3)
        if result is ListingResult.BROKEN:
            _log.error("listing broke", extra={"scope": scope.name, "seconds": seconds}, exc_info=error)
        else:
            _log.info("not listed", extra={"scope": scope.name, "why": str(error), "seconds": seconds})
        return result

    # --- Items --------------------------------------------------------------------------------------------------------

    async def _read_page(self, page: Sequence[bytes], scope: ListedScope, listing: ScopeListing) -> None:
        listing.now = self._clock.monotonic()
        members, shown, stepped = scope.members, scope.shown, listing.stepped
        for number, mark in enumerate(listing.marks_of(page, scope)):
            try:
                location = shown.get(mark) or self._kind.location_of(page[number], scope.name)
                ref = members.get(location)
                if ref is not None and ref not in stepped:
                    item = ListItem(page, number, mark, location)
                    self._read_item(ref, item, listing)
            except SetpointError:
                # An item that cannot be read answers nothing: the resync is a step.
                pass
            if number % _ITEMS_BEFORE_YIELD == _ITEMS_BEFORE_YIELD - 1:
                self._schedule_resyncs(listing)
                await asyncio.sleep(0)
                listing.now = self._clock.monotonic()
        self._schedule_resyncs(listing)

    def _read_item(self, ref: ResourceRef, item: ListItem, listing: ScopeListing) -> None:
        entry = self._index.get(ref)
        if entry is None or not self._is_resynced_here(ref, entry):
            return
        idle = self._idle_cache.of(ref)
        if idle is None:
            if self._is_not_reconciled_yet(ref, entry):
                self._offer(ref, entry, item, listing)
        elif (
            idle.location == item.location
            and listing.asked < idle.until
            and self._items.may_answer_for(ref, listing.asked)
        ):
            result = self._items.compare(ref, idle, item, listing.now)
            if result is ItemResult.UNCHANGED:
                listing.shown[item.mark] = idle.location
                listing.unchanged.append((ref, self._items.factor(ref) * entry.resync_seconds))
            elif result is ItemResult.CHANGED:
                self._queue.add(ref, *LISTED_CHANGE)

    def _offer(self, ref: ResourceRef, entry: IndexEntry, item: ListItem, listing: ScopeListing) -> None:
        """Offers the object to the first step of this process, which compares it with the stored state."""
        state = self._items.state_in(item.text, item.location)
        if state is None:
            return
        self._listed_objects.show(ref, ListedObject(item.location, state))
        listing.next_resyncs.append(jittered_resync(ref, entry.resync_seconds))
        trigger = listing.waiting.pop(ref, None)
        if trigger is not None:
            self._queue.schedule(ref, 0.0, *trigger)

    def _schedule_resyncs(self, listing: ScopeListing) -> None:
        """Items are as good as the next resyncs of unchanged objects."""
        self._queue.schedule_all(listing.unchanged, listing.asked - listing.now, *RESYNC)
        for ref, seconds in listing.unchanged:
            self._convergence.seen_in_sync(ref, listing.asked)
            listing.answered(ref, seconds)
        listing.unchanged.clear()
