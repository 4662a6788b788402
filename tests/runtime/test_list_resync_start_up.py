"""The first reconciles of a process after a restart: one list instead of an observation of each. On virtual time."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from setpoint.engine.requeue import RESYNC_INTERVAL
from setpoint.runtime.list_resync.lister import MAX_DEFER_SECONDS
from setpoint.testing.faults import CallFault
from simulation.virtual_time import run
from tests.engine.gadgets import Fault, gadget_ref
from tests.runtime.list_resync_harness import ListResyncHarness, names_in, new_list_harness
from tests.runtime.manager_harness import running

pytestmark = pytest.mark.slow

NAMES = names_in("a", 30)


def _play(
    between: Callable[[ListResyncHarness], Awaitable[None]], scenario: Callable[[ListResyncHarness], Awaitable[None]]
) -> None:
    """A process makes all of them and ends; `between` happens to the next one before it begins."""

    async def main() -> None:
        first = new_list_harness()
        async with running(first.harness):
            await first.declare(*NAMES)
        second = new_list_harness(first)
        second.harness.service.calls.clear()
        await between(second)
        async with running(second.harness):
            await scenario(second)

    run(main())


async def _nothing(_: ListResyncHarness) -> None:
    """Nothing happened."""


async def _revisions(listed: ListResyncHarness) -> list[str]:
    return [one.revision for one in (await listed.harness.store.list()).resources]


def test_one_list_replaces_the_first_observation_of_each_and_nothing_is_written() -> None:
    async def scenario(listed: ListResyncHarness) -> None:
        before = await _revisions(listed)
        await listed.harness.clock.sleep(100)

        assert [verb for verb, _ in listed.harness.service.calls] == ["list"]
        assert listed.harness.metrics.steps == [("settled", "in sync")] * 30
        assert listed.listings == [("complete", 0)]
        assert await _revisions(listed) == before

    _play(_nothing, scenario)


def test_resources_that_the_first_list_showed_are_idle() -> None:
    async def scenario(listed: ListResyncHarness) -> None:
        await listed.harness.clock.sleep(100)
        assert listed.harness.manager.engine.idle_cache is not None
        resting = [listed.harness.manager.engine.idle_cache.of(gadget_ref(name)) is not None for name in NAMES]
        await listed.harness.clock.sleep(3_600)

        assert resting == [True] * 30
        assert listed.observations(*NAMES) == [0] * 30
        assert set(listed.listings[1:]) == {("complete", 30)}

    _play(_nothing, scenario)


def test_drift_before_the_start_is_observed_and_corrected() -> None:
    async def drift(listed: ListResyncHarness) -> None:
        listed.harness.service.objects["a-007"]["size"] = 9

    async def scenario(listed: ListResyncHarness) -> None:
        await listed.harness.clock.sleep(100)

        assert listed.harness.service.objects["a-007"]["size"] == 1
        # Two observations of the object to be written, and none of any other.
        assert listed.harness.service.calls[1:] == [("get", "a-007"), ("update", "a-007"), ("get", "a-007")]

    _play(drift, scenario)


def test_an_output_that_changed_before_the_start_is_in_the_status() -> None:
    async def move(listed: ListResyncHarness) -> None:
        listed.harness.service.objects["a-007"]["serial"] = "2"

    async def scenario(listed: ListResyncHarness) -> None:
        await listed.harness.clock.sleep(100)

        assert (await listed.harness.status("a-007"))["serial"] == "2"
        assert listed.harness.service.calls[1:] == [("get", "a-007")]

    _play(move, scenario)


def test_an_object_that_the_first_list_omits_is_observed() -> None:
    async def lose(listed: ListResyncHarness) -> None:
        listed.kind.hidden.add("a-003")
        del listed.harness.service.objects["a-007"]

    async def scenario(listed: ListResyncHarness) -> None:
        await listed.harness.clock.sleep(100)

        assert listed.harness.writes("a-003") == []
        assert listed.harness.writes("a-007") == ["create"]
        assert listed.observations(*NAMES) == [{"a-003": 1, "a-007": 2}.get(name, 0) for name in NAMES]

    _play(lose, scenario)


def test_an_edit_before_the_start_is_executed_after_an_observation() -> None:
    async def edit(listed: ListResyncHarness) -> None:
        await listed.harness.apply("a-007", {"size": 2})

    async def scenario(listed: ListResyncHarness) -> None:
        await listed.harness.settled("a-007")
        await listed.harness.clock.sleep(100)

        assert listed.harness.service.objects["a-007"]["size"] == 2
        assert [call for call in listed.harness.service.calls if call[0] != "list"] == [
            ("get", "a-007"),
            ("update", "a-007"),
            ("get", "a-007"),
        ]

    _play(edit, scenario)


def test_an_edit_at_the_start_neither_waits_for_the_list_nor_uses_it() -> None:
    async def hang(listed: ListResyncHarness) -> None:
        async def half_a_minute() -> None:
            await listed.harness.clock.sleep(30)

        listed.kind.after_page = half_a_minute

    async def scenario(listed: ListResyncHarness) -> None:
        await listed.harness.clock.sleep(1)
        # Back to what it was: the same intent as before, and another object than the list shows.
        listed.harness.service.objects["a-007"]["size"] = 9
        await listed.harness.apply("a-007", {"size": 2})
        await listed.harness.settled("a-007")
        await listed.harness.apply("a-007", {"size": 1})
        at = await listed.harness.settled("a-007")
        await listed.harness.clock.sleep(100)

        assert at < 5
        assert listed.harness.service.objects["a-007"]["size"] == 1
        assert listed.observations(*NAMES) == [4 if name == "a-007" else 0 for name in NAMES]

    _play(hang, scenario)


@pytest.mark.parametrize("trouble", [CallFault.REFUSED, CallFault.CUT])
def test_without_a_list_each_object_is_observed(trouble: CallFault) -> None:
    async def refuse(listed: ListResyncHarness) -> None:
        listed.harness.service.faults.append(Fault(trouble, ["list"], 10**6))

    async def scenario(listed: ListResyncHarness) -> None:
        await listed.harness.clock.sleep(100)

        assert listed.observations(*NAMES) == [1] * 30
        assert listed.harness.metrics.steps == [("settled", "in sync")] * 30

    _play(refuse, scenario)


def test_the_first_resyncs_wait_for_a_list_only_for_a_limited_time() -> None:
    async def hang(listed: ListResyncHarness) -> None:
        async def never() -> None:
            await listed.harness.clock.sleep(10**6)

        listed.kind.before_page = never

    async def scenario(listed: ListResyncHarness) -> None:
        await listed.harness.clock.sleep(MAX_DEFER_SECONDS + 1)

        assert listed.observations(*NAMES) == [1] * 30

    _play(hang, scenario)


def test_resources_without_a_resync_are_not_observed_at_the_start() -> None:
    async def drift(listed: ListResyncHarness) -> None:
        for name in NAMES[:15]:
            await listed.harness.apply(name, annotations={RESYNC_INTERVAL: "0"})

    async def scenario(listed: ListResyncHarness) -> None:
        await listed.harness.clock.sleep(100)
        listed.harness.service.objects["a-007"]["size"] = 9
        await listed.harness.clock.sleep(10_000)

        assert listed.observations(*NAMES[:15]) == [0] * 15
        assert listed.harness.service.objects["a-007"]["size"] == 9

    _play(drift, scenario)


def test_a_shutdown_cancels_a_running_listing() -> None:
    async def main() -> None:
        listed = new_list_harness()
        async with running(listed.harness):
            await listed.declare(*NAMES)

            async def never() -> None:
                await listed.harness.clock.sleep(10**6)

            listed.kind.before_page = never
            await listed.harness.clock.sleep(400)
            assert listed.running_listings == 1
            stopped_at = listed.harness.clock.monotonic()
        # No step was in work: nothing had to be waited for.
        assert listed.harness.clock.monotonic() == stopped_at
        assert listed.running_listings == 0
        assert listed.listings == []

    run(main())


def test_a_process_killed_anywhere_in_its_first_listing_writes_nothing() -> None:
    async def main() -> None:
        first = new_list_harness()
        async with running(first.harness):
            await first.declare(*NAMES)
        before, objects = await _revisions(first), {**first.harness.service.objects}
        turns, is_over = 0, False
        while not is_over:
            listed = _in_small_steps(first)
            task = asyncio.create_task(listed.harness.manager.run())
            await _turn(turns)
            is_over = bool(listed.listings) and len(listed.harness.metrics.steps) == 30
            await _cut(task)
            assert listed.harness.service.objects == objects
            assert await _revisions(listed) == before
            assert listed.running_listings == 0
            turns += 1
        assert turns > 10

    run(main())


def test_after_a_kill_anywhere_in_a_later_listing_the_next_process_corrects_the_drift() -> None:
    async def main() -> None:
        turns, is_over = 0, False
        while not is_over:
            listed = _in_small_steps(None)
            task = asyncio.create_task(listed.harness.manager.run())
            await listed.declare(*NAMES)
            await listed.harness.clock.sleep(900)
            listed.harness.service.objects["a-007"]["size"] = 9
            await _next_page(listed)
            await _turn(turns)
            is_over = not listed.running_listings and listed.harness.service.objects["a-007"]["size"] == 1
            await _cut(task)
            following = new_list_harness(listed)
            async with running(following.harness):
                await following.harness.clock.sleep(1)

            assert following.harness.service.objects["a-007"]["size"] == 1
            assert following.harness.writes("a-007") == ["create", "update"]
            assert len(following.harness.service.objects) == 30
            turns += 1
        assert turns > 10

    run(main())


def _in_small_steps(before: ListResyncHarness | None) -> ListResyncHarness:
    """A manager with lists of several pages, none of which arrives at once."""

    async def give_way() -> None:
        await asyncio.sleep(0)

    listed = new_list_harness(before)
    listed.kind.size = 4
    listed.kind.before_page = listed.kind.after_page = give_way
    return listed


async def _next_page(listed: ListResyncHarness) -> None:
    """Returns when the next page is asked for."""
    is_asked = asyncio.Event()

    async def ask() -> None:
        is_asked.set()
        await asyncio.sleep(0)

    listed.kind.before_page = ask
    await is_asked.wait()


async def _turn(turns: int) -> None:
    for _ in range(turns):
        await asyncio.sleep(0)


async def _cut(task: "asyncio.Task[None]") -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
