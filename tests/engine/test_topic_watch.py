"""The loop of every watch of live objects: it reports changes, and no failure ends it. On virtual time."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field

import pytest

from setpoint.engine.capabilities import WatchTopic
from setpoint.engine.drivers.object_watch import REWATCH_SECONDS, watch_topic
from setpoint.engine.kind import Location
from setpoint.errors import RemoteRefused
from simulation.virtual_time import VirtualClock, run

HERE, TOPIC = Location("here"), WatchTopic("all")


@dataclass(slots=True)
class WatchableKind:
    """Each watch yields the locations of `watches`, in turn, and ends with its error; the last one hangs."""

    watches: list[tuple[list[Location | None], Exception | None]]
    started: list[float] = field(default_factory=list)
    ended: int = 0

    def watch_topic(self, location: Location) -> WatchTopic:
        return TOPIC

    async def changes(self, topic: WatchTopic) -> AsyncGenerator[Location | None, None]:
        self.started.append(VirtualClock().monotonic())
        try:
            if len(self.started) > len(self.watches):
                await asyncio.Event().wait()
            locations, error = self.watches[len(self.started) - 1]
            for location in locations:
                yield location
            if error is not None:
                raise error
        finally:
            self.ended += 1


def _reported(kind: WatchableKind, seconds: float) -> list[Location | None]:
    """The changes that are reported within so many seconds; then the watch is cancelled."""

    async def main() -> list[Location | None]:
        found: list[Location | None] = []
        task = asyncio.create_task(watch_topic(kind, TOPIC, VirtualClock(), on_change=found.append))
        await asyncio.sleep(seconds)
        task.cancel()
        await asyncio.wait([task])
        return found

    return run(main())


def test_every_change_is_reported_in_order() -> None:
    assert _reported(WatchableKind([([None, HERE, HERE], None)]), 1) == [None, HERE, HERE]


@pytest.mark.parametrize(
    ("error", "level", "message"),
    [
        (RemoteRefused("403: not allowed"), logging.WARNING, "watch failed"),
        (ZeroDivisionError("a bug"), logging.ERROR, "watch broke"),
    ],
)
def test_a_failed_watch_is_logged_and_started_again_later(
    error: Exception, level: int, message: str, caplog: pytest.LogCaptureFixture
) -> None:
    kind = WatchableKind([([None], error), ([None, HERE], None)])

    assert _reported(kind, REWATCH_SECONDS + 1) == [None, None, HERE]
    assert kind.started == [0, REWATCH_SECONDS]
    assert [(one.levelno, one.message) for one in caplog.records] == [(level, message)]


def test_a_watch_that_ends_by_itself_is_started_again_later() -> None:
    kind = WatchableKind([([], None)])

    _reported(kind, REWATCH_SECONDS + 1)

    assert kind.started == [0, REWATCH_SECONDS]


def test_a_cancelled_watch_is_closed() -> None:
    kind = WatchableKind([])

    _reported(kind, 1)

    assert (kind.started, kind.ended) == ([0], 1)
