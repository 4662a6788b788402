"""Watches live objects for changes while a wait is under way: one watch per topic, shared by all objects of it."""

import asyncio
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Final

from setpoint.engine.capabilities import SupportsWatch, WatchTopic
from setpoint.engine.drivers.topic_watch import watch_topic
from setpoint.engine.kind import Location
from setpoint.engine.ports import Clock

# An object that changes all the time is observed at most ten times a second.
_MIN_INTERVAL: Final = 0.1


@dataclass(slots=True)
class ObjectWatch:
    """The changes of one live object."""

    location: Location
    _topic: "_TopicWatch"
    _clock: Clock
    _changed: asyncio.Event

    async def wait_for_change(self, seconds: float) -> None:
        """Returns when the object has changed since the last call, or may have; or after so many seconds."""
        timeout = asyncio.ensure_future(self._clock.sleep(seconds))
        change = asyncio.ensure_future(self._next_change())
        try:
            await asyncio.wait((timeout, change), return_when=asyncio.FIRST_COMPLETED)
        finally:
            timeout.cancel()
            change.cancel()

    async def _next_change(self) -> None:
        self._topic.start()
        await self._clock.sleep(_MIN_INTERVAL)
        # While the watch has failed there are no changes: then the timeout ends the wait.
        await self._changed.wait()
        self._changed.clear()


class ObjectWatches:
    """One watch for each topic, however many of its objects are waited for. `close` ends them all."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._topics: dict[tuple[int, WatchTopic], _TopicWatch] = {}

    def watch(self, kind: SupportsWatch, location: Location) -> ObjectWatch:
        """The watch of that object; it starts with the first `wait_for_change`."""
        name = kind.watch_topic(location)
        topic = self._topics.setdefault((id(kind), name), _TopicWatch(kind, name, self._clock))
        return ObjectWatch(location, topic, self._clock, topic.subscribe(location))

    async def close(self) -> None:
        """Ends all watches."""
        tasks = [topic.task for topic in self._topics.values() if topic.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@dataclass(slots=True)
class _TopicWatch:
    kind: SupportsWatch
    topic: WatchTopic
    clock: Clock
    task: asyncio.Task[None] | None = None
    _subscribers: defaultdict[Location, list[asyncio.Event]] = field(default_factory=lambda: defaultdict(list))
    _has_begun: bool = False

    def subscribe(self, location: Location) -> asyncio.Event:
        changed = asyncio.Event()
        self._subscribers[location].append(changed)
        if self._has_begun:
            # This subscriber missed the changes before it.
            changed.set()
        return changed

    def start(self) -> None:
        if self.task is None:
            watching = watch_topic(self.kind, self.topic, self.clock, on_change=self._notify)
            self.task = asyncio.create_task(watching)

    def _notify(self, location: Location | None) -> None:
        """Wakes the subscribers of one object; of all when any may have changed."""
        self._has_begun = True
        found = self._subscribers.values() if location is None else (self._subscribers.get(location, []),)
        for changed in (one for some in found for one in some):
            changed.set()
