"""Watching during a wait: woken by a change, by what may have been one, and at the latest when the time is over."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from setpoint.engine.capabilities import WatchTopic
from setpoint.engine.drivers.object_watch import ObjectWatches
from setpoint.engine.kind import Location
from simulation.virtual_time import VirtualClock, run

HERE, THERE = Location("here"), Location("there")


@dataclass(slots=True)
class ScriptedWatchKind:
    """A kind whose watch sends the events that a test queues."""

    events: asyncio.Queue[Location | Exception | None] = field(default_factory=asyncio.Queue)
    begun: int = 0
    ended: int = 0

    def watch_topic(self, location: Location) -> WatchTopic:
        return WatchTopic("all")

    async def changes(self, topic: WatchTopic) -> AsyncGenerator[Location | None, None]:
        self.begun += 1
        try:
            while True:
                event = await self.events.get()
                if isinstance(event, Exception):
                    raise event
                yield event
        finally:
            self.ended += 1


def _now() -> float:
    return asyncio.get_running_loop().time()


def _play(scenario: Callable[[ScriptedWatchKind, ObjectWatches], Awaitable[None]]) -> None:
    async def main() -> None:
        watches = ObjectWatches(VirtualClock())
        await scenario(ScriptedWatchKind(), watches)
        await watches.close()
        assert len(asyncio.all_tasks()) == 1

    run(main())


def _later(seconds: float, kind: ScriptedWatchKind, event: Location | Exception | None) -> None:
    asyncio.get_running_loop().call_later(seconds, kind.events.put_nowait, event)


def test_a_change_of_the_object_wakes() -> None:
    async def scenario(kind: ScriptedWatchKind, watches: ObjectWatches) -> None:
        _later(3, kind, HERE)

        await watches.watch(kind, HERE).wait_for_change(10)

        assert _now() == 3

    _play(scenario)


def test_what_may_have_been_a_change_wakes_all() -> None:
    async def scenario(kind: ScriptedWatchKind, watches: ObjectWatches) -> None:
        _later(3, kind, None)

        await asyncio.gather(
            watches.watch(kind, HERE).wait_for_change(10), watches.watch(kind, THERE).wait_for_change(10)
        )

        assert _now() == 3

    _play(scenario)


def test_a_change_of_another_object_wakes_no_wait() -> None:
    async def scenario(kind: ScriptedWatchKind, watches: ObjectWatches) -> None:
        _later(3, kind, THERE)

        await watches.watch(kind, HERE).wait_for_change(10)

        assert _now() == 10

    _play(scenario)


def test_a_change_between_two_waits_is_not_missed() -> None:
    async def scenario(kind: ScriptedWatchKind, watches: ObjectWatches) -> None:
        watch = watches.watch(kind, HERE)
        await watch.wait_for_change(1)
        kind.events.put_nowait(HERE)
        await asyncio.sleep(5)

        await watch.wait_for_change(10)

        assert _now() == 6.1

    _play(scenario)


def test_one_change_wakes_once() -> None:
    async def scenario(kind: ScriptedWatchKind, watches: ObjectWatches) -> None:
        watch = watches.watch(kind, HERE)
        _later(3, kind, HERE)
        await watch.wait_for_change(10)

        await watch.wait_for_change(10)

        assert _now() == 13

    _play(scenario)


def test_a_later_subscriber_observes_once_more() -> None:
    async def scenario(kind: ScriptedWatchKind, watches: ObjectWatches) -> None:
        _later(3, kind, None)
        await watches.watch(kind, HERE).wait_for_change(10)

        await watches.watch(kind, THERE).wait_for_change(10)

        assert _now() == 3.1
        assert kind.begun == 1

    _play(scenario)


def test_a_time_shorter_than_any_pause_is_kept() -> None:
    async def scenario(kind: ScriptedWatchKind, watches: ObjectWatches) -> None:
        await watches.watch(kind, HERE).wait_for_change(0.01)

        assert _now() == 0.01

    _play(scenario)


def test_a_line_that_breaks_leaves_the_time() -> None:
    async def scenario(kind: ScriptedWatchKind, watches: ObjectWatches) -> None:
        watch = watches.watch(kind, HERE)
        _later(3, kind, ZeroDivisionError())

        for _ in range(3):
            await watch.wait_for_change(10)

        assert _now() == 30
        assert kind.begun == kind.ended == 1

    _play(scenario)


def test_a_cancelled_wait_leaves_nothing_behind() -> None:
    async def scenario(kind: ScriptedWatchKind, watches: ObjectWatches) -> None:
        waiting = asyncio.create_task(watches.watch(kind, HERE).wait_for_change(10))
        await asyncio.sleep(1)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        await asyncio.sleep(1)

        # The line itself, and this.
        assert len(asyncio.all_tasks()) == 2

    _play(scenario)


@given(
    st.lists(st.tuples(st.floats(0, 20), st.sampled_from([HERE, THERE, None])), max_size=10),
    st.floats(0.5, 10),
)
def test_it_wakes_at_the_first_change_or_at_the_timeout(
    events_at: list[tuple[float, Location | None]], seconds: float
) -> None:
    async def scenario(kind: ScriptedWatchKind, watches: ObjectWatches) -> None:
        for at, event in events_at:
            _later(at, kind, event)

        await watches.watch(kind, HERE).wait_for_change(seconds)

        wakeups = [max(at, 0.1) for at, event in events_at if event != THERE]
        assert abs(_now() - min([*wakeups, seconds])) < 1e-6

    _play(scenario)
