"""The watch of live objects: which resources a change triggers, how soon, and how often at most. On virtual time."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field

import pytest

from setpoint.engine.capabilities import WatchTopic
from setpoint.engine.drivers.object_watch import REWATCH_SECONDS
from setpoint.engine.kind import Location
from setpoint.errors import RemoteRefused, UserError
from setpoint.runtime.remote_watch import COALESCE_SECONDS, LONGEST_START_SECONDS
from simulation.virtual_time import run
from tests.engine.gadgets import Service, gadget_ref
from tests.runtime.manager_harness import ManagerHarness, RecordingKind, new_harness, running

# Much less than the time between two resyncs.
TWO_INTERVALS = 2 * COALESCE_SECONDS


@dataclass(slots=True)
class WatchableKind(RecordingKind):
    """A kind that can be watched: `a-1` and `a-2` have the topic `a`."""

    # The changes to be reported, by topic; the topics of the watches that started, and of those that ended.
    queues: "dict[WatchTopic, asyncio.Queue[Location | None | Exception]]" = field(default_factory=dict)
    begun: list[str] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)

    def watch_topic(self, location: Location) -> WatchTopic:
        if "-" not in location:
            raise UserError(f"the location on record, {location!r}, is none that this kind has")
        return WatchTopic(location.partition("-")[0])

    async def changes(self, topic: WatchTopic) -> AsyncGenerator[Location | None, None]:
        self.begun.append(topic)
        changes_of_topic = self.queues.setdefault(topic, asyncio.Queue())
        try:
            while True:
                one = await changes_of_topic.get()
                if isinstance(one, Exception):
                    raise one
                yield one
        finally:
            self.ended.append(topic)

    def report(self, topic: str, *changes_of_topic: Location | None | Exception) -> None:
        for one in changes_of_topic:
            self.queues[WatchTopic(topic)].put_nowait(one)


def play(scenario: Callable[[ManagerHarness, WatchableKind], Awaitable[None]]) -> None:
    async def main() -> None:
        kind = WatchableKind(Service())
        async with running(new_harness(kind=kind)) as harness:
            await scenario(harness, kind)

    run(main())


async def _settled(harness: ManagerHarness, kind: WatchableKind, *names: str) -> None:
    for name in names:
        await harness.apply(name)
    await harness.settled(*names)
    await harness.clock.sleep(TWO_INTERVALS)
    kind.observed.clear()


def test_drift_of_a_watched_object_is_corrected_at_once() -> None:
    async def scenario(harness: ManagerHarness, kind: WatchableKind) -> None:
        await _settled(harness, kind, "a-1", "a-2")
        harness.service.objects["a-1"]["size"] = 7
        kind.report("a", Location("a-1"))
        await harness.clock.sleep(TWO_INTERVALS)

        assert harness.service.objects["a-1"]["size"] == 1
        assert harness.observations_of("a-2") == []

    play(scenario)


def test_a_change_of_an_undeclared_object_triggers_nothing() -> None:
    async def scenario(harness: ManagerHarness, kind: WatchableKind) -> None:
        await _settled(harness, kind, "a-1")
        kind.report("a", Location("a-undeclared"))
        await harness.clock.sleep(TWO_INTERVALS)

        assert kind.observed == []

    play(scenario)


def test_an_object_that_changes_all_the_time_is_reconciled_once_per_interval() -> None:
    async def scenario(harness: ManagerHarness, kind: WatchableKind) -> None:
        await _settled(harness, kind, "a-1")
        for _ in range(1_000):
            kind.report("a", Location("a-1"))
            await harness.clock.sleep(0.01)
        await harness.clock.sleep(TWO_INTERVALS)

        assert 10 / COALESCE_SECONDS / 2 <= len(harness.observations_of("a-1")) <= 10 / COALESCE_SECONDS + 2
        assert harness.writes("a-1") == ["create"]

    play(scenario)


def test_after_a_gap_every_object_of_the_topic_is_reconciled() -> None:
    async def scenario(harness: ManagerHarness, kind: WatchableKind) -> None:
        await _settled(harness, kind, "a-1", "a-2", "b-1")
        kind.report("a", None)
        await harness.clock.sleep(TWO_INTERVALS)

        assert (
            len(harness.observations_of("a-1")),
            len(harness.observations_of("a-2")),
            harness.observations_of("b-1"),
        ) == (1, 1, [])

    play(scenario)


def test_each_topic_has_one_watch_that_ends_with_its_last_resource() -> None:
    async def scenario(harness: ManagerHarness, kind: WatchableKind) -> None:
        await _settled(harness, kind, "a-1", "a-2", "b-1")
        assert sorted(kind.begun) == ["a", "b"]

        await harness.store.delete(gadget_ref("b-1"))
        await harness.clock.sleep(60)

        assert kind.ended == ["b"]

    play(scenario)


def test_a_forged_location_ends_no_watch_and_not_the_process() -> None:
    """A status may hold anything: the location of another kind's object, for instance."""

    async def scenario(harness: ManagerHarness, kind: WatchableKind) -> None:
        await _settled(harness, kind, "a-1", "a-2")
        for location in ("nowhere", "somewhere", "b-3"):
            stored = await harness.store.get(gadget_ref("a-1"))
            assert stored is not None
            await harness.store.update_status(stored, {"setpoint": {"location": location}})
            await harness.clock.sleep(TWO_INTERVALS)
        kind.report("a", Location("a-2"))
        await harness.clock.sleep(TWO_INTERVALS)

        assert harness.observations_of("a-2") != []

    play(scenario)


@pytest.mark.parametrize("error", [RemoteRefused("403: not allowed"), ValueError("a bug")])
def test_a_failed_watch_is_restarted_later_and_the_manager_continues(error: Exception) -> None:
    async def scenario(harness: ManagerHarness, kind: WatchableKind) -> None:
        await _settled(harness, kind, "a-1")
        kind.report("a", error)
        await harness.clock.sleep(REWATCH_SECONDS / 2)
        begun = list(kind.begun)
        await harness.clock.sleep(REWATCH_SECONDS)

        assert (begun, kind.begun) == (["a"], ["a", "a"])
        assert harness.manager.failed_tasks == []

    play(scenario)


# --- The start of a process -------------------------------------------------------------------------------------------


def _restart(scenario: Callable[[ManagerHarness, WatchableKind], Awaitable[None]]) -> None:
    """A process settles `a-1` and `a-2` and ends, and the next one begins."""

    async def main() -> None:
        first = WatchableKind(Service())
        async with running(new_harness(kind=first)) as harness:
            await _settled(harness, first, "a-1", "a-2")
        kind = WatchableKind(first.service)
        async with running(new_harness(harness.store, kind=kind)) as second:
            await scenario(second, kind)

    run(main())


def test_the_first_steps_of_settled_resources_wait_for_the_watch_to_begin() -> None:
    async def scenario(harness: ManagerHarness, kind: WatchableKind) -> None:
        await harness.clock.sleep(LONGEST_START_SECONDS / 2)
        before = list(kind.observed)
        kind.report("a", None)
        await harness.clock.sleep(2 * LONGEST_START_SECONDS)

        assert before == []
        assert sorted(name for _, name in kind.observed) == ["a-1", "a-2"]

    _restart(scenario)


def test_a_watch_that_does_not_begin_delays_the_first_steps_for_a_while_only() -> None:
    async def scenario(harness: ManagerHarness, kind: WatchableKind) -> None:
        await harness.clock.sleep(LONGEST_START_SECONDS / 2)
        before = list(kind.observed)
        await harness.clock.sleep(LONGEST_START_SECONDS)

        assert before == []
        assert sorted(name for _, name in kind.observed) == ["a-1", "a-2"]

    _restart(scenario)


def test_an_edit_waits_for_no_watch() -> None:
    async def scenario(harness: ManagerHarness, kind: WatchableKind) -> None:
        await harness.clock.sleep(LONGEST_START_SECONDS / 4)
        await harness.apply("a-1", {"size": 5})
        await harness.clock.sleep(LONGEST_START_SECONDS / 4)

        assert harness.service.objects["a-1"]["size"] == 5
        assert harness.observations_of("a-2") == []

    _restart(scenario)
