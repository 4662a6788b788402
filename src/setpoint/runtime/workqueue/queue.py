"""The work queue of a controller: a key is queued at most once, processed by one worker at a time, and never lost.

A key is in one place: nowhere, queued, or processing. A key that is added while it is processed is queued again by
`done`. The earliest deadline goes first (see PriorityLanes). Besides, each key has at most one delayed add (see
DelayedAdds), set by `schedule` or `retry`: the last call wins. The worker sets it again after each reconcile:

* An add in between queues the key now, and leaves the delayed add as it is.
* A delayed add that comes due during processing waits for `done`, and is void if it was replaced or forgotten by then.
"""

import asyncio
import random
from collections import deque
from collections.abc import Callable, Hashable
from enum import Enum
from math import isfinite
from typing import Final, Generic, TypeVar

import msgspec

from setpoint.engine.ports import Clock
from setpoint.engine.requeue import RequeueDelays, error_backoff, poll_backoff
from setpoint.errors import Bug, SetpointError
from setpoint.runtime.metrics.catalogue import Histogram, QueueSnapshot
from setpoint.runtime.workqueue.scheduling import (
    DIRTY,
    PROCESSING,
    QUEUED,
    DelayedAdds,
    Priority,
    PriorityLanes,
    QueueEntry,
)

K = TypeVar("K", bound=Hashable)


class QueueItem(msgspec.Struct, Generic[K], frozen=True, gc=False):
    """A key to work on: the best reason of all that asked for it, and the seconds since the first of them did."""

    key: K
    priority: Priority
    trigger: str
    waited: float


class ShutDown(Enum):
    """What `get` gives when there will be nothing more."""

    SHUT_DOWN = "the queue was shut down"


SHUT_DOWN: Final = ShutDown.SHUT_DOWN


class WorkQueue(Generic[K]):
    """For one event loop. A `get` that need not wait does not give way to other tasks either."""

    def __init__(self, clock: Clock, jitter: Callable[[], float] = random.random) -> None:
        self._clock = clock
        self._monotonic = clock.monotonic
        self._jitter = jitter
        self._is_open = True
        self._entries: dict[K, QueueEntry[K]] = {}
        self._lanes: PriorityLanes[K] = PriorityLanes()
        self._looks: DelayedAdds[K] = DelayedAdds()
        self._processing: set[QueueEntry[K]] = set()
        self._delays: dict[K, RequeueDelays] = {}
        self._getters: deque[asyncio.Future[None]] = deque()
        self._drainers: list[asyncio.Future[None]] = []
        # Sleeps until the next look, while somebody waits in `get`.
        self._timer: asyncio.Task[None] | None = None
        self._timer_due = 0.0
        self._adds = self._retries = 0
        self._queue_durations, self._work_durations = Histogram(), Histogram()

    # --- Putting in ----------------------------------------------------------------------------------------------

    def add(self, key: K, priority: Priority, trigger: str) -> None:
        """`key` comes as soon as `priority` allows. Of several adds the best counts, with its trigger."""
        if self._is_open:
            self._insert(key, priority, trigger, self._catch_up())

    def schedule(self, key: K, seconds: float, priority: Priority, trigger: str) -> None:
        """The next look at `key` is in so many seconds (now, when they are past), whatever was planned before."""
        if not isfinite(seconds):
            raise Bug(f"the next look at {key} cannot be in {seconds} seconds")
        if not self._is_open:
            return
        now = self._catch_up()
        self._looks.plan(key, now + max(0.0, seconds), priority, trigger)
        if self._getters:
            self._set_timer(now)

    def retry(self, key: K, error: SetpointError, priority: Priority, trigger: str) -> float:
        """The next look at `key` is as long after `error` as Delays says; how long that is, in seconds."""
        delays = self._delays.get(key)
        if delays is None:
            delays = RequeueDelays(error_backoff(self._jitter), poll_backoff(self._jitter))
            self._delays[key] = delays
        seconds = delays.after(error)
        self._retries += 1
        self.schedule(key, seconds, priority, trigger)
        return seconds

    def failures(self, key: K) -> int:
        """How often `key` was retried since it was forgotten, or was last seen waiting for an operation."""
        delays = self._delays.get(key)
        return 0 if delays is None else delays.errors.failures

    def forget(self, key: K) -> None:
        """No failure and no look to come of `key` is on record any more: it succeeded, or is gone."""
        self._catch_up()
        if self._delays:
            self._delays.pop(key, None)
        self._looks.drop(key)

    def discard(self, key: K) -> None:
        """`key` does not come any more, whatever it was wanted for, unless it is added again. In work, it stays so."""
        self.forget(key)
        entry = self._entries.get(key)
        if entry is None:
            return
        if entry.state is QUEUED:
            del self._entries[key]
            self._lanes.drop(entry)
        else:
            entry.state, entry.overdue = PROCESSING, None

    # --- Taking out ----------------------------------------------------------------------------------------------

    async def get(self) -> QueueItem[K] | ShutDown:
        """The next key to work on, until `done`; waits for one. Whoever is cancelled here takes nothing along."""
        while self._is_open:
            now = self._catch_up()
            entry = self._lanes.take()
            if entry is not None:
                entry.state, entry.started = PROCESSING, now
                self._processing.add(entry)
                waited = now - entry.since
                self._queue_durations.add(waited)
                return QueueItem(entry.key, entry.priority, entry.trigger, waited)
            await self._wait()
        return SHUT_DOWN

    def done(self, key: K) -> None:
        """The work on `key` is over, well or badly: it may be handed out again."""
        now = self._catch_up()
        entry = self._entries.pop(key, None)
        if entry is None or entry.state is QUEUED:
            if entry is not None:
                self._entries[key] = entry
            raise Bug(f"{key} is done without being in work: get it first, and say so once")
        self._processing.discard(entry)
        self._work_durations.add(now - entry.started)
        look = entry.overdue
        if look is not None and self._looks.answer(look):
            self._want_again(entry, look.priority, look.trigger, look.due)
        if entry.state is DIRTY:
            entry.state = QUEUED
            self._entries[key] = entry
            self._enter(entry, now)
        if self._drainers and not self._processing:
            self._tell_drainers()

    # --- Ending --------------------------------------------------------------------------------------------------

    def shut_down(self) -> None:
        """Every `get` ends, what was not handed out is dropped, and nothing is taken in any more."""
        self._is_open = False
        self._lanes.clear()
        self._looks.clear()
        self._delays.clear()
        for entry in self._processing:
            entry.state, entry.overdue = PROCESSING, None
        self._entries = {entry.key: entry for entry in self._processing}
        if self._timer is not None:
            self._timer.cancel()
        while self._getters:
            self._wake_one()

    async def drained(self) -> None:
        """Returns when nothing is in work any more. After `shut_down` that is the end."""
        if self._processing:
            drainer: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._drainers.append(drainer)
            await drainer

    # --- Looking on ----------------------------------------------------------------------------------------------

    def processing_keys(self) -> set[K]:
        """What was handed out, and is not done."""
        return {entry.key for entry in self._processing}

    def snapshot(self) -> QueueSnapshot:
        """The queue as it is now; costs no more for a million keys than for one."""
        now = self._catch_up()
        running = [now - entry.started for entry in self._processing]
        return QueueSnapshot(
            depth=dict(zip(Priority, self._lanes.depths, strict=True)),
            delayed=len(self._looks),
            processing=len(running),
            unfinished_seconds=sum(running),
            longest_running_seconds=max(running, default=0.0),
            adds=self._adds,
            retries=self._retries,
            queue_durations=self._queue_durations.read(),
            work_durations=self._work_durations.read(),
        )

    # --- Inside --------------------------------------------------------------------------------------------------

    def _catch_up(self) -> float:
        """Now, after every look that is due by now was added at its own time: that keeps the lanes in order."""
        now = self._monotonic()
        if now >= self._looks.next_due:
            self._bring_due(now)
        return now

    def _bring_due(self, now: float) -> None:
        for look in self._looks.due(now):
            entry = self._entries.get(look.key)
            if entry is not None and entry.state is not QUEUED:
                entry.overdue = look
            elif self._looks.answer(look):
                self._insert(look.key, look.priority, look.trigger, look.due)

    def _insert(self, key: K, priority: Priority, trigger: str, at: float) -> None:
        fresh = QueueEntry(key, priority, trigger, at)
        # Once, not a look and then a store: hashing the key is the dearest part of an add.
        entry = self._entries.setdefault(key, fresh)
        if entry is fresh:
            self._adds += 1
            self._enter(fresh, at)
        elif entry.state is not QUEUED:
            self._want_again(entry, priority, trigger, at)
        elif priority < entry.priority:
            self._entries[key] = self._lanes.raised(entry, priority, trigger, at)

    def _want_again(self, entry: QueueEntry[K], priority: Priority, trigger: str, at: float) -> None:
        if entry.state is PROCESSING:
            self._adds += 1
            entry.state, entry.priority, entry.trigger, entry.since = DIRTY, priority, trigger, at
        elif priority < entry.priority:
            entry.priority, entry.trigger = priority, trigger
        entry.since = min(entry.since, at)

    def _enter(self, entry: QueueEntry[K], at: float) -> None:
        self._lanes.put(entry, at)
        if self._getters:
            self._wake_one()

    async def _wait(self) -> None:
        """Returns when there may be something to take."""
        self._set_timer(self._monotonic())
        getter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._getters.append(getter)
        try:
            await getter
        except asyncio.CancelledError:
            if not getter.cancelled():
                # It was woken and will not come: what it was woken for is another's.
                self._wake_one()
            elif getter in self._getters:
                self._getters.remove(getter)
            raise

    def _wake_one(self) -> None:
        while self._getters:
            getter = self._getters.popleft()
            if not getter.done():
                getter.set_result(None)
                return

    def _set_timer(self, now: float) -> None:
        due = self._looks.next_due
        if not isfinite(due) or (self._timer is not None and self._timer_due <= due):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.create_task(self._sleep(max(0.0, due - now)))
        self._timer.add_done_callback(self._ring)
        self._timer_due = due

    async def _sleep(self, seconds: float) -> None:
        await self._clock.sleep(seconds)

    def _ring(self, timer: asyncio.Task[None]) -> None:
        """Adds what is due, which wakes those who wait; sleeps on for those who still do."""
        if timer is not self._timer:
            return  # an earlier look came in between, and has a timer of its own
        self._timer = None
        if timer.cancelled():
            return
        timer.result()
        now = self._catch_up()
        if self._getters:
            self._set_timer(now)

    def _tell_drainers(self) -> None:
        for drainer in self._drainers:
            if not drainer.done():
                drainer.set_result(None)
        self._drainers.clear()
