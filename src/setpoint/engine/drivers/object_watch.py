"""Watches live objects for changes while a wait is under way: one watch per topic, shared by all objects of it."""

import asyncio
import logging
from collections import defaultdict
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Final

from setpoint.engine.capabilities import SupportsWatch, WatchTopic
from setpoint.engine.kind import Location
from setpoint.engine.ports import Clock

_log: Final = logging.getLogger(__name__)
# What changes all the time is looked at ten times a second, and no more often.
_MIN_INTERVAL: Final = 0.1


@dataclass(slots=True)
class ObjectWatch:
    """Hears of changes of one object."""

    location: Location
    _line: "_TopicWatch"
    _clock: Clock
    _heard: asyncio.Event

    async def wait_for_change(self, seconds: float) -> None:
        """Returns when something has changed since the last time, or may have; or after so many seconds."""
        late = asyncio.ensure_future(self._clock.sleep(seconds))
        heard = asyncio.ensure_future(self._changed())
        try:
            await asyncio.wait((late, heard), return_when=asyncio.FIRST_COMPLETED)
        finally:
            late.cancel()
            heard.cancel()

    async def _changed(self) -> None:
        self._line.open()
        await self._clock.sleep(_MIN_INTERVAL)
        # Nobody tells any more of a line that is dead: then it is the seconds that count.
        await self._heard.wait()
        self._heard.clear()


class ObjectWatches:
    """One line for each topic, however many objects of it are waited for. `close` ends them all."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lines: dict[tuple[int, WatchTopic], _TopicWatch] = {}

    def on(self, kind: SupportsWatch, location: Location) -> ObjectWatch:
        """An ear for that object, from when it is first asked on."""
        topic = kind.watch_topic(location)
        line = self._lines.setdefault((id(kind), topic), _TopicWatch(kind, topic))
        return ObjectWatch(location, line, self._clock, line.joined(location))

    async def close(self) -> None:
        """Listens no longer."""
        tasks = [line.task for line in self._lines.values() if line.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@dataclass(slots=True)
class _TopicWatch:
    kind: SupportsWatch
    topic: WatchTopic
    task: asyncio.Task[None] | None = None
    _ears: defaultdict[Location, list[asyncio.Event]] = field(default_factory=lambda: defaultdict(list))
    _is_begun: bool = False

    def joined(self, location: Location) -> asyncio.Event:
        heard = asyncio.Event()
        self._ears[location].append(heard)
        if self._is_begun:
            # Whatever was told before, it was not told to this one.
            heard.set()
        return heard

    def open(self) -> None:
        if self.task is None:
            self.task = asyncio.create_task(self._listen())

    async def _listen(self) -> None:
        try:
            async with aclosing(self.kind.changes(self.topic)) as changes:
                async for where in changes:
                    self._is_begun = True
                    self._tell(where)
        except Exception:  # noqa: BLE001 - ours to mend; looks are taken all the same, and nothing else is dropped
            _log.exception("listening broke", extra={"topic": self.topic})

    def _tell(self, where: Location | None) -> None:
        ears = self._ears.values() if where is None else (self._ears.get(where, []),)
        for heard in (one for some in ears for one in some):
            heard.set()
