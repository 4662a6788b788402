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
from collections.abc import Callable, Collection, Hashable, Sequence
from enum import Enum
from math import isfinite
from typing import Final, Generic, TypeVar

import msgspec

from setpoint.engine.ports import Clock
from setpoint.engine.requeue import RequeueDelays, error_backoff, poll_backoff
from setpoint.errors import Bug, SetpointError
from setpoint.runtime.workqueue.scheduling import (
    DIRTY,
    PROCESSING,
    QUEUED,
    DelayedAdds,
    Priority,
    PriorityLanes,
    QueueEntry,
)
from setpoint.runtime.workqueue.statistics import COUNTED_TOGETHER, DurationHistogram, QueueSnapshot

K = TypeVar("K", bound=Hashable)


class QueueItem(msgspec.Struct, Generic[K], frozen=True, gc=False):
    """A key to process: the most urgent of its triggers, and the seconds since the first add."""

    key: K
    priority: Priority
    trigger: str
    waited: float


class ShutDown(Enum):
    """What `get` returns when the queue was shut down."""

    SHUT_DOWN = "the queue was shut down"


SHUT_DOWN: Final = ShutDown.SHUT_DOWN
# Of the delayed adds that are due, so many are added in one operation. A service that is down makes all of them due at
# the same moment: hundreds of thousands would block the event loop for seconds.
MOST_ADDED: Final = 1_000


class WorkQueue(Generic[K]):
    """For one event loop. A `get` that need not wait does not yield to other tasks."""

    def __init__(self, clock: Clock, jitter: Callable[[], float] = random.random) -> None:
        self._clock = clock
        self._monotonic = clock.monotonic
        self._jitter = jitter
        self._is_open = True
        self._entries: dict[K, QueueEntry[K]] = {}
        self._lanes: PriorityLanes[K] = PriorityLanes()
        self._delayed: DelayedAdds[K] = DelayedAdds()
        # A dict for its order, the one that was handed out first at the front; and the sum of when they were.
        self._processing: dict[QueueEntry[K], None] = {}
        self._sum_started = 0.0
        self._delays: dict[K, RequeueDelays] = {}
        self._getters: deque[asyncio.Future[None]] = deque()
        self._drainers: list[asyncio.Future[None]] = []
        # Sleeps until the next delayed add is due, while a worker waits in `get`.
        self._timer: asyncio.Task[None] | None = None
        self._timer_due = 0.0
        self._adds = self._retries = 0
        self._queue_durations, self._work_durations = DurationHistogram(), DurationHistogram()

    # --- Adding -------------------------------------------------------------------------------------------------------

    def add(self, key: K, priority: Priority, trigger: str) -> None:
        """Queues `key` under this priority. Of several adds the most urgent counts, with its trigger."""
        if self._is_open:
            # As `_catch_up` does: a call less for each key, here and in `get` and `done`.
            now = self._monotonic()
            if now >= self._delayed.next_due:
                self._add_due(now)
            self._insert(key, priority, trigger, now)

    def schedule(self, key: K, seconds: float, priority: Priority, trigger: str) -> None:
        """Adds `key` after so many seconds (now, when negative); replaces the delayed add that it has."""
        if not isfinite(seconds):
            raise Bug(f"the next add of {key} cannot be in {seconds} seconds")
        if not self._is_open:
            return
        now = self._monotonic()
        if now >= self._delayed.next_due:
            self._add_due(now)
        self._delayed.schedule(key, now + (seconds if seconds > 0.0 else 0.0), priority, trigger)
        if self._getters:
            self._set_timer(now)

    def schedule_all(self, adds: Sequence[tuple[K, float]], later: float, priority: Priority, trigger: str) -> None:
        """The same for many keys, each with its seconds; `later` by so much."""
        if not adds or not self._is_open:
            return
        now = self._monotonic()
        if now >= self._delayed.next_due:
            self._add_due(now)
        self._delayed.schedule_all([(key, now + max(0.0, seconds + later)) for key, seconds in adds], priority, trigger)
        if self._getters:
            self._set_timer(now)

    def advance(self, key: K, seconds: float, priority: Priority, trigger: str) -> None:
        """Like `schedule`; but a delayed add that is due before that stays."""
        if self._delayed.due_at(key) > self._catch_up() + seconds:
            self.schedule(key, seconds, priority, trigger)

    def seconds_until(self, key: K) -> float | None:
        """The seconds until its delayed add, not less than 0; None when it has none."""
        due = self._delayed.due_at(key)
        return max(0.0, due - self._clock.monotonic()) if isfinite(due) else None

    def take_rescheduled(self) -> Collection[K]:
        """The keys whose delayed add was set or dropped since the last call; at the first call all that have one.

        For one caller. Nothing is noted before its first call.
        """
        return self._delayed.take_changed()

    def next_in(self, key: K) -> float | None:
        """The seconds until it is processed: 0 while it waits for its turn or is processed; None when it has no add."""
        return 0.0 if key in self._entries else self.seconds_until(key)

    def retry(self, key: K, error: SetpointError, priority: Priority, trigger: str) -> float:
        """Adds `key` after the backoff that `error` asks for; how long that is, in seconds."""
        delays = self._delays.get(key)
        if delays is None:
            delays = RequeueDelays(error_backoff(self._jitter), poll_backoff(self._jitter))
            self._delays[key] = delays
        seconds = delays.after(error)
        self._retries += 1
        self.schedule(key, seconds, priority, trigger)
        return seconds

    def failures(self, key: K) -> int:
        """How often `key` was retried since it was reset, or last waited for an operation."""
        delays = self._delays.get(key) if self._delays else None
        return 0 if delays is None else delays.errors.failures

    def reset(self, key: K) -> None:
        """Resets the backoff of `key`: it succeeded."""
        # Mostly none has failed, and that check is cheaper than to hash a key.
        if self._delays:
            self._delays.pop(key, None)

    def forget(self, key: K) -> None:
        """Resets the backoff of `key` and drops its delayed add: it is gone."""
        self._catch_up()
        self.reset(key)
        self._delayed.drop(key)

    def discard(self, key: K) -> None:
        """Removes `key` from the queue until it is added again. If it is being processed, that goes on."""
        self.forget(key)
        entry = self._entries.get(key)
        if entry is None:
            return
        if entry.state is QUEUED:
            del self._entries[key]
            self._lanes.drop(entry)
        else:
            entry.state, entry.overdue = PROCESSING, None

    # --- Processing ---------------------------------------------------------------------------------------------------

    async def get(self) -> QueueItem[K] | ShutDown:
        """The next key to process, until `done`; waits for one. A cancelled call takes no key."""
        while self._is_open:
            item = self.take()
            if item is not None:
                return item
            await self._wait()
        return SHUT_DOWN

    def take(self) -> QueueItem[K] | None:
        """The next key to process, until `done`; None when there is none now."""
        now = self._monotonic()
        if now >= self._delayed.next_due:
            self._add_due(now)
        entry = self._lanes.take()
        if entry is None:
            return None
        entry.state, entry.started = PROCESSING, now
        self._processing[entry] = None
        self._sum_started += now
        waited = now - entry.since
        self._queue_durations.uncounted.append(waited)
        return QueueItem(entry.key, entry.priority, entry.trigger, waited)

    def done(self, key: K) -> None:
        """The processing of `key` has ended, with or without success: it may be handed out again."""
        now = self._monotonic()
        if now >= self._delayed.next_due:
            self._add_due(now)
        entry = self._entries.pop(key, None)
        if entry is None or entry.state is QUEUED:
            if entry is not None:
                self._entries[key] = entry
            raise Bug(f"{key} is done without being processed: get it first, and call done once")
        del self._processing[entry]
        self._sum_started = self._sum_started - entry.started if self._processing else 0.0
        durations = self._work_durations.uncounted
        durations.append(now - entry.started)
        if len(durations) >= COUNTED_TOGETHER:
            self._work_durations.count()
            self._queue_durations.count()
        delayed = entry.overdue
        if delayed is not None and self._delayed.claim(delayed):
            self._mark_dirty(entry, delayed.priority, delayed.trigger, delayed.due)
        if entry.state is DIRTY:
            entry.state = QUEUED
            self._entries[key] = entry
            self._queue(entry, now)
        if self._drainers and not self._processing:
            self._wake_drainers()

    # --- Shutting down ------------------------------------------------------------------------------------------------

    def shut_down(self) -> None:
        """Every `get` ends, what was not handed out is dropped, and nothing is taken in any more."""
        self._is_open = False
        self._lanes.clear()
        self._delayed.clear()
        self._delays.clear()
        for entry in self._processing:
            entry.state, entry.overdue = PROCESSING, None
        self._entries = {entry.key: entry for entry in self._processing}
        if self._timer is not None:
            self._timer.cancel()
        while self._getters:
            self._wake_one()

    async def drained(self) -> None:
        """Returns when no key is being processed. After `shut_down` that is the end."""
        if self._processing:
            drainer: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._drainers.append(drainer)
            await drainer

    # --- Reading ------------------------------------------------------------------------------------------------------

    def snapshot(self) -> QueueSnapshot:
        """The queue now; costs the same for a million keys as for one."""
        now, running = self._catch_up(), len(self._processing)
        first = next(iter(self._processing), None)
        return QueueSnapshot(
            depth=dict(zip(Priority, self._lanes.depths, strict=True)),
            delayed=len(self._delayed),
            processing=running,
            unfinished_seconds=max(0.0, running * now - self._sum_started),
            longest_running_seconds=0.0 if first is None else now - first.started,
            adds=self._adds,
            retries=self._retries,
            queue_durations=self._queue_durations.snapshot(),
            work_durations=self._work_durations.snapshot(),
        )

    # --- Internals ----------------------------------------------------------------------------------------------------

    def _catch_up(self) -> float:
        """The time, after the delayed adds that are due were added; of more than MOST_ADDED the rest follows later."""
        now = self._monotonic()
        if now >= self._delayed.next_due:
            self._add_due(now)
        return now

    def _add_due(self, now: float) -> None:
        for delayed in self._delayed.due(now, MOST_ADDED):
            entry = self._entries.get(delayed.key)
            if entry is not None and entry.state is not QUEUED:
                entry.overdue = delayed
            elif self._delayed.claim(delayed):
                self._insert(delayed.key, delayed.priority, delayed.trigger, delayed.due)

    def _insert(self, key: K, priority: Priority, trigger: str, at: float) -> None:
        fresh = QueueEntry(key, priority, trigger, at)
        # One dictionary operation: hashing the key is the most expensive part of an add.
        entry = self._entries.setdefault(key, fresh)
        if entry is fresh:
            self._adds += 1
            self._lanes.put(fresh, at)
            if self._getters:
                self._wake_one()
        elif entry.state is not QUEUED:
            self._mark_dirty(entry, priority, trigger, at)
        elif priority < entry.priority:
            self._entries[key] = self._lanes.raised(entry, priority, trigger, at)

    def _mark_dirty(self, entry: QueueEntry[K], priority: Priority, trigger: str, at: float) -> None:
        if entry.state is PROCESSING:
            self._adds += 1
            entry.state, entry.priority, entry.trigger, entry.since = DIRTY, priority, trigger, at
        elif priority < entry.priority:
            entry.priority, entry.trigger = priority, trigger
        entry.since = min(entry.since, at)

    def _queue(self, entry: QueueEntry[K], at: float) -> None:
        self._lanes.put(entry, at)
        if self._getters:
            self._wake_one()

    async def _wait(self) -> None:
        """Returns when there may be a key to process."""
        self._set_timer(self._monotonic())
        getter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._getters.append(getter)
        try:
            await getter
        except asyncio.CancelledError:
            if not getter.cancelled():
                # It was woken and then cancelled: another waiting worker takes the key.
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
        due = self._delayed.next_due
        if not isfinite(due) or (self._timer is not None and self._timer_due <= due):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.create_task(self._sleep(max(0.0, due - now)))
        self._timer.add_done_callback(self._on_timer)
        self._timer_due = due

    async def _sleep(self, seconds: float) -> None:
        await self._clock.sleep(seconds)

    def _on_timer(self, timer: asyncio.Task[None]) -> None:
        """Adds what is due, which wakes waiting workers; sets the next timer while some of them still wait."""
        if timer is not self._timer:
            return  # an earlier delayed add came in between, and has a timer of its own
        self._timer = None
        if timer.cancelled():
            return
        timer.result()
        now = self._catch_up()
        if self._getters:
            self._set_timer(now)

    def _wake_drainers(self) -> None:
        for drainer in self._drainers:
            if not drainer.done():
                drainer.set_result(None)
        self._drainers.clear()
