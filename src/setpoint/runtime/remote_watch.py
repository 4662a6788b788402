"""Watches live objects where the service offers a watch, so that drift is reconciled when it happens."""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable
from contextlib import aclosing
from typing import Final

from setpoint.engine.capabilities import SupportsWatch, WatchTopic
from setpoint.engine.kind import Location
from setpoint.engine.ports import Clock
from setpoint.engine.resource import ResourceRef
from setpoint.errors import SetpointError
from setpoint.runtime.informer import ResourceEvent
from setpoint.runtime.predicates import ReconcileTrigger
from setpoint.runtime.workqueue.scheduling import Priority

_log: Final = logging.getLogger(__name__)
LIVE_CHANGED: Final = ReconcileTrigger(Priority.DRIFT, "a change of the live object")
WATCH_STARTED: Final = ReconcileTrigger(Priority.RESYNC, "the beginning of a watch")
# What changes again and again is looked at so often at most.
COALESCE_SECONDS: Final = 0.5
# How long to wait before listening again to what cannot be heard.
REWATCH_SECONDS: Final = 60.0


class NoRemoteWatch:
    """The listener of a kind whose service tells nothing."""

    def start(self, group: asyncio.TaskGroup) -> None:
        """See Listener."""

    def stop(self) -> None:
        """See Listener."""

    def hear(self, news: ResourceEvent) -> None:
        """See Listener."""


class RemoteWatch:
    """Listens to the topics of all resources of one kind whose object is on record. `call` asks for a look."""

    def __init__(
        self, kind: SupportsWatch, clock: Clock, call: Callable[[ResourceRef, ReconcileTrigger], None]
    ) -> None:
        self._kind = kind
        self._clock = clock
        self._call = call
        self._members: defaultdict[WatchTopic, dict[Location, ResourceRef]] = defaultdict(dict)
        self._tasks: dict[WatchTopic, asyncio.Task[None]] = {}
        self._group: asyncio.TaskGroup | None = None
        self._flushing: asyncio.Task[None] | None = None
        self._changed: dict[ResourceRef, ReconcileTrigger] = {}
        self._is_changed = asyncio.Event()

    def start(self, group: asyncio.TaskGroup) -> None:
        """From now on it listens, in tasks of `group`."""
        self._group = group
        self._flushing = group.create_task(self._flush())
        for topic in self._members:
            self._begin(topic)

    def stop(self) -> None:
        """Listens no longer."""
        self._group = None
        for task in (*self._tasks.values(), self._flushing):
            if task is not None:
                task.cancel()

    def hear(self, news: ResourceEvent) -> None:
        """A resource changed: its object may be another one, or no more."""
        before = None if news.before is None else news.before.location
        after = None if news.after is None else news.after.location
        if before == after:
            return
        if before is not None:
            self._drop(before)
        if after is not None:
            topic = self._kind.watch_topic(after)
            self._members[topic][after] = news.ref
            self._begin(topic)

    def _begin(self, topic: WatchTopic) -> None:
        if self._group is not None and topic not in self._tasks:
            self._tasks[topic] = self._group.create_task(self._listen(topic))

    def _drop(self, location: Location) -> None:
        topic = self._kind.watch_topic(location)
        self._members[topic].pop(location, None)
        if not self._members[topic]:
            del self._members[topic]
            task = self._tasks.pop(topic, None)
            if task is not None:
                task.cancel()

    async def _listen(self, topic: WatchTopic) -> None:
        """Goes on whatever happens: regular looks find what nobody tells of."""
        while True:
            try:
                async with aclosing(self._kind.changes(topic)) as changes:
                    async for where in changes:
                        self._take_note(topic, where)
            except SetpointError as error:
                _log.warning("changes cannot be heard", extra={"topic": topic, "why": str(error)})
            except Exception:  # noqa: BLE001 - whatever it was, looks go on without
                _log.exception("listening broke", extra={"topic": topic})
            await self._clock.sleep(REWATCH_SECONDS)

    def _take_note(self, topic: WatchTopic, where: Location | None) -> None:
        members = self._members.get(topic, {})
        if where is None:
            for one in members.values():
                self._changed.setdefault(one, WATCH_STARTED)
        elif where in members:
            self._changed[members[where]] = LIVE_CHANGED
        if self._changed:
            self._is_changed.set()

    async def _flush(self) -> None:
        while True:
            await self._is_changed.wait()
            self._is_changed.clear()
            changed, self._changed = self._changed, {}
            for ref, reason in changed.items():
                self._call(ref, reason)
            await self._clock.sleep(COALESCE_SECONDS)
