"""Following a journal for ever: awake as soon as something is committed, without polling in the same process."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Protocol, TypeAlias

from setpoint.engine.ports import Clock, Event, Query
from setpoint.engine.resource import Revision
from setpoint.stores.journal import Page, position, seen_through

# The changes after a position that may match a query.
ReadPage: TypeAlias = Callable[[int, Query], Page]


class Waiting(Protocol):
    """Something to wait for."""

    async def wait(self) -> object:
        """Returns when there may be news."""
        ...


class Alarm(Protocol):
    """What tells a watcher that there may be news."""

    def listen(self) -> Waiting:
        """Wakes for everything that is committed from now on."""
        ...


class Bell:
    """An alarm that is rung after every commit. Nobody signs up, so nobody is forgotten on it."""

    def __init__(self) -> None:
        self._next = asyncio.Event()

    def listen(self) -> Waiting:
        """The next ring."""
        return self._next

    def ring(self) -> None:
        """Wakes everyone who listens."""
        self._next.set()
        self._next = asyncio.Event()


class Lookout:
    """An alarm for what another process writes: looks again after a while."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self._seconds = seconds

    def listen(self) -> Waiting:
        """The next look."""
        return self

    async def wait(self) -> None:
        """Returns when it is time to look."""
        await self._clock.sleep(self._seconds)


async def follow(read: ReadPage, alarm: Alarm, since: Revision, query: Query) -> AsyncIterator[Event]:
    """Every event for `query` after `since`, in order, for ever."""
    at = position(since)
    while True:
        # Before reading: what is committed in between rings, and costs no more than a look in vain.
        news = alarm.listen()
        page = read(at, query)
        for entry in page.entries:
            event = seen_through(query, entry)
            if event is not None:
                yield event
        at = page.reached
        if at < page.last:
            await asyncio.sleep(0)
        else:
            await news.wait()
