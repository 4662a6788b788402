"""Regular looks by lists: one call shows many objects, and says of each that it has not moved, or nothing at all.

A listing answers for resources at rest, and offers what it shows to those that have yet to be looked at for the first
time. Whatever else may be so costs a look: an item that differs or is not there, a resource that a step was at work on
meanwhile, one that failed. Looks that are due wait for a listing that is under way; whoever edits or asks does not.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import aclosing
from enum import StrEnum
from itertools import islice
from typing import Final

from setpoint.clients.callers import calling_for
from setpoint.engine.cadence import spread
from setpoint.engine.kind import Location
from setpoint.engine.resource import ResourceRef
from setpoint.engine.rest import Rest
from setpoint.engine.scene import World
from setpoint.engine.shelf import Listable
from setpoint.engine.sightings import Sighting
from setpoint.errors import RemoteUnavailable, SetpointError
from setpoint.runtime.ages import Ages
from setpoint.runtime.heads import Head, Heads
from setpoint.runtime.informer import News
from setpoint.runtime.listed_items import ListedItems, Word
from setpoint.runtime.priorities import Priority
from setpoint.runtime.reasons import RESYNC, SHOWN, Reason
from setpoint.runtime.shelves import FEWEST, NOT_AGAIN, RECOUNT, Listing, Shelf, Shelves
from setpoint.runtime.workqueue import Item, WorkQueue

_log: Final = logging.getLogger(__name__)
# How long a look waits for a listing; never longer than half of what its author wants between two.
PATIENCE: Final = 60.0
_ITEMS_IN_A_ROW: Final = 32


class Ending(StrEnum):
    """What became of a listing."""

    COMPLETE = "complete"
    USELESS = "useless"
    REFUSED = "refused"
    UNAVAILABLE = "unavailable"
    BROKEN = "broken"


class Unlisted:
    """The lister of a kind whose objects cannot be listed: every look is taken."""

    under_way = 0

    async def drained(self) -> None:
        """See Lister."""

    def start(self, group: asyncio.TaskGroup) -> None:
        """See Lister."""

    def stop(self) -> None:
        """See Lister."""

    def hear(self, news: News) -> None:
        """See Lister."""

    def disturb(self, ref: ResourceRef) -> None:
        """See Lister."""

    def begin_step(self, ref: ResourceRef) -> None:
        """See Lister."""

    def end_step(self, ref: ResourceRef) -> None:
        """See Lister."""

    def takes(self, item: Item[ResourceRef]) -> bool:
        """See Lister."""
        return False


class Lister:
    """Lists the shelves of one kind when that pays. A controller asks it between its queue and its steps."""

    def __init__(self, kind: Listable, world: World, heads: Heads, queue: WorkQueue[ResourceRef], ages: Ages) -> None:
        assert world.rests is not None
        assert world.sightings is not None
        # Which resources are this process's to look at. Others lie on the same shelves.
        self.covers: Callable[[ResourceRef], bool] = lambda ref: True
        self._kind = kind
        self._rests = world.rests
        self._sightings = world.sightings
        self._clock = world.clock
        self._heads = heads
        self._queue = queue
        self._ages = ages
        self._shelves = Shelves(kind)
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

    def hear(self, news: News) -> None:
        """A resource changed."""
        if news.after is None:
            self.disturb(news.ref)
        self._shelves.hear(news)

    def disturb(self, ref: ResourceRef) -> None:
        """Something happened to `ref`: it is to be looked at by itself."""
        self._sightings.drop(ref)
        self.begin_step(ref)

    def begin_step(self, ref: ResourceRef) -> None:
        """A step is at work on `ref`, with what was shown to it: a listing under way may show what was before."""
        self._items.forget(ref)
        if self._left_out:
            self._left_out.discard(ref)
        shelf = self._shelf_of(ref) if self._tasks else None
        if shelf is not None and shelf.listing is not None:
            shelf.listing.disturbed.add(ref)
            shelf.listing.waiting.pop(ref, None)

    def end_step(self, ref: ResourceRef) -> None:
        """The step is over, whether it took up what was shown to it or not."""
        self._sightings.drop(ref)

    # --- Which looks are spared --------------------------------------------------------------------------------------

    def takes(self, item: Item[ResourceRef]) -> bool:
        """Whether nobody has to look now: a listing answered after the look was due, or is to answer."""
        if item.priority < Priority.RESYNC:
            # Somebody waits for it.
            return False
        ref, now = item.key, self._clock.monotonic()
        if self._items.was_seen(ref, now - item.waited):
            return True
        shelf = self._shelf_of(ref)
        if shelf is None or not shelf.is_of_use(now) or ref in self._left_out or not self._is_listable(ref, now):
            return False
        listing = shelf.listing or self._begin(shelf, ref, now)
        if listing is None or listing.waiting.pop(ref, None) is not None:
            # It is not worth it; or the look has waited long enough.
            return False
        self._put_off(ref, Reason(item.priority, item.trigger), listing)
        return True

    def _shelf_of(self, ref: ResourceRef) -> Shelf | None:
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
        return now < rest.until and self._items.may_tell(ref, now)

    def _wants_looks(self, ref: ResourceRef, head: Head) -> bool:
        """Whether `ref` is looked at here, and regularly: its author wants it, and no look that failed comes again."""
        return head.mean > 0 and self.covers(ref) and not self._queue.failures(ref)

    def _is_unseen(self, ref: ResourceRef, head: Head) -> bool:
        """Whether `ref` was as declared when an earlier process left it, and this one has yet to look."""
        return head.is_ready and self._ages.is_new(ref) and ref not in self._sightings

    def _begin(self, shelf: Shelf, due: ResourceRef, now: float) -> Listing | None:
        """A new listing, if enough of what is on the shelf can do with one."""
        if self._group is None:
            return None
        listable = (ref for ref in shelf.members.values() if self._is_listable(ref, now))
        if sum(1 for _ in islice(listable, FEWEST)) < FEWEST:
            shelf.leave_alone(now, RECOUNT)
            return None
        listing = shelf.listing = Listing(len(shelf.members), now, self._queue.keys_in_work() - {due})
        task = self._group.create_task(self._list(shelf, listing))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return listing

    def _put_off(self, ref: ResourceRef, reason: Reason, listing: Listing) -> None:
        """The look is not dropped, but comes later: the listing may take too long, or never end."""
        head = self._heads.get(ref)
        assert head is not None
        listing.waiting[ref] = reason
        self._queue.schedule(ref, min(PATIENCE, head.mean / 2), *reason)

    # --- Listing -----------------------------------------------------------------------------------------------------

    async def _list(self, shelf: Shelf, listing: Listing) -> None:
        try:
            with calling_for(shelf.name, failed=False):
                ending = await self._go_through(shelf, listing)
        except Exception as error:  # noqa: BLE001 - whatever it was, looks go on without
            ending = self._give_up(shelf, error)
        finally:
            shelf.listing = None
            self._left_out |= listing.waiting.keys()
            for ref, reason in listing.waiting.items():
                self._queue.schedule(ref, 0.0, *reason)
        self._ages.listed(ending.value, listing.looks)

    async def _go_through(self, shelf: Shelf, listing: Listing) -> Ending:
        async with aclosing(self._kind.pages(shelf.name)) as pages:
            async for page in pages:
                await self._read(page, shelf, listing)
                if listing.is_hopeless:
                    break
                listing.asked = self._clock.monotonic()
        was_useful = shelf.was_listed(listing, self._clock.monotonic())
        return Ending.COMPLETE if was_useful else Ending.USELESS

    def _give_up(self, shelf: Shelf, error: Exception) -> Ending:
        now = self._clock.monotonic()
        if isinstance(error, RemoteUnavailable):
            shelf.back_off(now, error.after)
            ending = Ending.UNAVAILABLE
        else:
            shelf.leave_alone(now, NOT_AGAIN)
            ending = Ending.REFUSED if isinstance(error, SetpointError) else Ending.BROKEN
        seconds = round(shelf.not_before - now, 3)
        if ending is Ending.BROKEN:
            _log.error("listing broke", extra={"shelf": shelf.name, "seconds": seconds}, exc_info=error)
        else:
            _log.info("not listed", extra={"shelf": shelf.name, "why": str(error), "seconds": seconds})
        return ending

    # --- What it shows -----------------------------------------------------------------------------------------------

    async def _read(self, page: Sequence[bytes], shelf: Shelf, listing: Listing) -> None:
        for item in page:
            listing.seen += 1
            try:
                location = self._kind.location_of(item, shelf.name)
                ref = shelf.members.get(location)
                if ref is not None and ref not in listing.disturbed:
                    self._hear_of(ref, item, location, listing)
            except SetpointError:
                # What cannot be read says nothing: its object is looked at by itself.
                pass
            if listing.seen % _ITEMS_IN_A_ROW == 0:
                await asyncio.sleep(0)

    def _hear_of(self, ref: ResourceRef, item: bytes, location: Location, listing: Listing) -> None:
        head = self._heads.get(ref)
        if head is None or not self._wants_looks(ref, head):
            return
        rest = self._rests.of(ref)
        if rest is None:
            if self._is_unseen(ref, head):
                self._show(ref, item, location, listing)
        elif rest.location == location and listing.asked < rest.until and self._items.may_tell(ref, listing.asked):
            self._answer(ref, rest, item, listing)

    def _show(self, ref: ResourceRef, item: bytes, location: Location, listing: Listing) -> None:
        """For the first step of this process, which compares it with what is on record."""
        state = self._items.state_in(item, location)
        if state is None:
            return
        self._sightings.show(ref, Sighting(location, state))
        listing.next_looks.append(self._seconds_between(ref))
        reason = listing.waiting.pop(ref, None)
        if reason is not None:
            self._queue.schedule(ref, 0.0, *reason)

    def _answer(self, ref: ResourceRef, rest: Rest, item: bytes, listing: Listing) -> None:
        """The look that is due, or will be, is needless if the object has not moved; if it has, the look comes now."""
        now = self._clock.monotonic()
        match self._items.compare(ref, rest, item, now):
            case Word.UNMOVED:
                seconds = self._seconds_between(ref)
                self._queue.schedule(ref, seconds - (now - listing.asked), *RESYNC)
                self._ages.unmoved(ref, listing.asked)
                listing.answered(ref, seconds)
            case Word.MOVED:
                self._queue.add(ref, *SHOWN)
            case Word.NOTHING:
                pass

    def _seconds_between(self, ref: ResourceRef) -> float:
        head = self._heads.get(ref)
        assert head is not None
        return spread(ref, head.mean)
