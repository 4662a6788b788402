"""Watches live objects: the loop of every watch, and the watches that wake a wait, one for all objects of a topic."""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import field
from typing import Final

from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.engine.capabilities import SupportsWatch, WatchTopic
from setpoint.engine.kind import Location
from setpoint.engine.ports import Clock
from setpoint.errors import SetpointError

_log: Final = logging.getLogger(__name__)
# How long to wait before a failed watch is started again. A kind retries by itself what it expects to fail.
REWATCH_SECONDS: Final = 60.0


async def watch_topic(
    kind: SupportsWatch, topic: WatchTopic, clock: Clock, *, on_change: Callable[[Location | None], None]
) -> None:
    """Calls `on_change` with the location of each change, or None when any object may have changed; until cancelled.

    No failure ends it: objects are observed at intervals as well, which finds the changes that it missed.
    """
    while True:
        try:
            async with aclosing(kind.changes(topic)) as changes:
                async for location in changes:
                    on_change(location)
        except SetpointError as error:
            _log.warning("watch failed", extra={"topic": topic, "why": str(error), "seconds": REWATCH_SECONDS})
        except Exception:  # noqa: BLE001 - a bug of the kind; steps go on without the watch
            _log.exception("watch broke", extra={"topic": topic, "seconds": REWATCH_SECONDS})
        await clock.sleep(REWATCH_SECONDS)


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
