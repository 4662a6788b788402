"""Watches live objects where the service offers a watch, so that drift is reconciled when it happens."""

import asyncio
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from itertools import chain
from typing import Final

from setpoint.engine.capabilities import SupportsWatch, WatchTopic
from setpoint.engine.drivers.object_watch import watch_topic
from setpoint.engine.kind import Location
from setpoint.engine.ports import Clock
from setpoint.engine.resource import ResourceRef
from setpoint.errors import UserError
from setpoint.runtime.index import IndexEntry
from setpoint.runtime.informer import ResourceEvent
from setpoint.runtime.predicates import ReconcileTrigger
from setpoint.runtime.workqueue.queue import QueueItem, WorkQueue
from setpoint.runtime.workqueue.scheduling import Priority

LIVE_CHANGED: Final = ReconcileTrigger(Priority.DRIFT, "a change of the live object")
WATCH_STARTED: Final = ReconcileTrigger(Priority.RESYNC, "the beginning of a watch")
# An object that changes all the time is reconciled at most this often.
COALESCE_SECONDS: Final = 0.5
# So long the first steps of settled resources wait for the list of a watch, which shows what has not changed.
LONGEST_START_SECONDS: Final = 10.0


class NoRemoteWatch:
    """For a kind whose service offers no watch."""

    def start(self, group: asyncio.TaskGroup) -> None:
        """See RemoteWatch."""

    def stop(self) -> None:
        """See RemoteWatch."""

    def handle_event(self, event: ResourceEvent) -> None:
        """See RemoteWatch."""

    def defers(self, item: QueueItem[ResourceRef], entry: IndexEntry | None) -> bool:
        """See RemoteWatch."""
        return False


class RemoteWatch:
    """Watches the live objects of one kind, one watch for each topic, and queues resources whose object changed."""

    def __init__(
        self,
        kind: SupportsWatch,
        clock: Clock,
        enqueue: Callable[[ResourceRef, ReconcileTrigger], None],
        queue: WorkQueue[ResourceRef],
    ) -> None:
        self._kind = kind
        self._clock = clock
        self._enqueue = enqueue
        self._queue = queue
        # Of each topic whose watch has not begun: the monotonic time until which steps wait for it.
        self._starting: dict[WatchTopic, float] = {}
        # Mostly one resource for each location: a second one is refused, and has it on record for a moment.
        self._topics: defaultdict[WatchTopic, dict[Location, tuple[ResourceRef, ...]]] = defaultdict(dict)
        self._tasks: dict[WatchTopic, asyncio.Task[None]] = {}
        self._group: asyncio.TaskGroup | None = None
        self._flush_task: asyncio.Task[None] | None = None
        self._changed: dict[ResourceRef, ReconcileTrigger] = {}
        self._is_changed = asyncio.Event()

    def start(self, group: asyncio.TaskGroup) -> None:
        """Starts the watches, in tasks of `group`."""
        self._group = group
        self._flush_task = group.create_task(self._flush())
        for topic in self._topics:
            self._start_watch(topic)

    def stop(self) -> None:
        """Stops all watches."""
        self._group = None
        for task in (*self._tasks.values(), self._flush_task):
            if task is not None:
                task.cancel()

    def handle_event(self, event: ResourceEvent) -> None:
        """A resource changed: its object may have another location, or none."""
        before = None if event.before is None else event.before.location
        after = None if event.after is None else event.after.location
        if before == after:
            return
        if before is not None:
            self._drop(before, event.ref)
        topic = None if after is None else self._topic_of(after)
        if after is not None and topic is not None:
            members = self._topics[topic]
            members[after] = (*members.get(after, ()), event.ref)
            self._start_watch(topic)

    def _start_watch(self, topic: WatchTopic) -> None:
        if self._group is not None and topic not in self._tasks:
            on_change = partial(self._mark_changed, topic)
            watching = watch_topic(self._kind, topic, self._clock, on_change=on_change)
            self._starting[topic] = self._clock.monotonic() + LONGEST_START_SECONDS
            self._tasks[topic] = self._group.create_task(watching)

    def _topic_of(self, location: Location) -> WatchTopic | None:
        """None for a location that is none of the kind: a status may hold anything, and a step reports it."""
        try:
            return self._kind.watch_topic(location)
        except UserError:
            return None

    def _drop(self, location: Location, ref: ResourceRef) -> None:
        topic = self._topic_of(location)
        if topic is None:
            return
        left = tuple(one for one in self._topics[topic].pop(location, ()) if one != ref)
        if left:
            self._topics[topic][location] = left
        if not self._topics[topic]:
            del self._topics[topic]
            self._starting.pop(topic, None)
            task = self._tasks.pop(topic, None)
            if task is not None:
                task.cancel()

    def defers(self, item: QueueItem[ResourceRef], entry: IndexEntry | None) -> bool:
        """Whether the first step of a settled resource waits for the beginning of a watch, which leads to one."""
        if item.priority is not Priority.START_UP or entry is None or entry.location is None:
            return False
        topic = self._topic_of(entry.location) if entry.is_ready else None
        until = 0.0 if topic is None else self._starting.get(topic, 0.0)
        seconds = until - self._clock.monotonic()
        if seconds <= 0.0 or entry.is_deleting:
            return False
        self._queue.schedule(item.key, seconds, item.priority, item.trigger)
        return True

    def _mark_changed(self, topic: WatchTopic, location: Location | None) -> None:
        self._starting.pop(topic, None)
        members = self._topics.get(topic, {})
        if location is None:
            for ref in chain.from_iterable(members.values()):
                self._changed.setdefault(ref, WATCH_STARTED)
        else:
            self._changed.update(dict.fromkeys(members.get(location, ()), LIVE_CHANGED))
        if self._changed:
            self._is_changed.set()

    async def _flush(self) -> None:
        while True:
            await self._is_changed.wait()
            self._is_changed.clear()
            changed, self._changed = self._changed, {}
            for ref, trigger in changed.items():
                self._enqueue(ref, trigger)
            await self._clock.sleep(COALESCE_SECONDS)
