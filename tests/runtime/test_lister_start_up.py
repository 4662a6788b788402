"""The first looks of a process that follows another: one list instead of a look at each. On virtual time."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from setpoint.engine.requeue import RESYNC_INTERVAL
from setpoint.runtime.list_resync.lister import MAX_DEFER_SECONDS
from tests.engine.gadgets import Fault, gadget_ref
from tests.engine.kind_fixture import Trouble
from tests.runtime.listed_rig import ListedRig, names_on, new_listed_rig
from tests.runtime.rig import running
from tests.runtime.virtual_time import run

pytestmark = pytest.mark.slow

NAMES = names_on("a", 30)


def _play(between: Callable[[ListedRig], Awaitable[None]], scenario: Callable[[ListedRig], Awaitable[None]]) -> None:
    """A process makes all of them and ends; `between` happens to the next one before it begins."""

    async def main() -> None:
        first = new_listed_rig()
        async with running(first.rig):
            await first.declare(*NAMES)
        second = new_listed_rig(first)
        second.rig.service.calls.clear()
        await between(second)
        async with running(second.rig):
            await scenario(second)

    run(main())


async def _nothing(_: ListedRig) -> None:
    """Nothing happened."""


async def _revisions(listed: ListedRig) -> list[str]:
    return [one.revision for one in (await listed.rig.store.list()).resources]


def test_one_list_stands_for_the_first_look_at_each_and_nothing_is_written() -> None:
    async def scenario(listed: ListedRig) -> None:
        before = await _revisions(listed)
        await listed.rig.clock.sleep(100)

        assert [verb for verb, _ in listed.rig.service.calls] == ["list"]
        assert listed.rig.tally.steps == [("settled", "in sync")] * 30
        assert listed.listings == [("complete", 0)]
        assert await _revisions(listed) == before

    _play(_nothing, scenario)


def test_what_was_shown_at_the_start_rests() -> None:
    async def scenario(listed: ListedRig) -> None:
        await listed.rig.clock.sleep(100)
        assert listed.rig.manager.engine.idle_cache is not None
        resting = [listed.rig.manager.engine.idle_cache.of(gadget_ref(name)) is not None for name in NAMES]
        await listed.rig.clock.sleep(3_600)

        assert resting == [True] * 30
        assert listed.looks(*NAMES) == [0] * 30
        assert set(listed.listings[1:]) == {("complete", 30)}

    _play(_nothing, scenario)


def test_drift_meanwhile_is_looked_at_and_put_back() -> None:
    async def drift(listed: ListedRig) -> None:
        listed.rig.service.objects["a-007"]["size"] = 9

    async def scenario(listed: ListedRig) -> None:
        await listed.rig.clock.sleep(100)

        assert listed.rig.service.objects["a-007"]["size"] == 1
        # Two looks at what is to be written, and none at anything else.
        assert listed.rig.service.calls[1:] == [("get", "a-007"), ("update", "a-007"), ("get", "a-007")]

    _play(drift, scenario)


def test_an_output_that_moved_meanwhile_is_told() -> None:
    async def move(listed: ListedRig) -> None:
        listed.rig.service.objects["a-007"]["serial"] = "2"

    async def scenario(listed: ListedRig) -> None:
        await listed.rig.clock.sleep(100)

        assert (await listed.rig.status("a-007"))["serial"] == "2"
        assert listed.rig.service.calls[1:] == [("get", "a-007")]

    _play(move, scenario)


def test_what_a_list_leaves_out_is_looked_at() -> None:
    async def lose(listed: ListedRig) -> None:
        listed.kind.hidden.add("a-003")
        del listed.rig.service.objects["a-007"]

    async def scenario(listed: ListedRig) -> None:
        await listed.rig.clock.sleep(100)

        assert listed.rig.writes("a-003") == []
        assert listed.rig.writes("a-007") == ["create"]
        assert listed.looks(*NAMES) == [{"a-003": 1, "a-007": 2}.get(name, 0) for name in NAMES]

    _play(lose, scenario)


def test_an_edit_meanwhile_is_carried_out_after_a_look() -> None:
    async def edit(listed: ListedRig) -> None:
        await listed.rig.apply("a-007", {"size": 2})

    async def scenario(listed: ListedRig) -> None:
        await listed.rig.settled("a-007")
        await listed.rig.clock.sleep(100)

        assert listed.rig.service.objects["a-007"]["size"] == 2
        assert [call for call in listed.rig.service.calls if call[0] != "list"] == [
            ("get", "a-007"),
            ("update", "a-007"),
            ("get", "a-007"),
        ]

    _play(edit, scenario)


def test_an_edit_at_the_start_does_not_wait_for_the_list_and_does_not_go_by_it() -> None:
    async def hang(listed: ListedRig) -> None:
        async def half_a_minute() -> None:
            await listed.rig.clock.sleep(30)

        listed.kind.after_page = half_a_minute

    async def scenario(listed: ListedRig) -> None:
        await listed.rig.clock.sleep(1)
        # Back to what it was: the same intent as before, and another object than the list shows.
        listed.rig.service.objects["a-007"]["size"] = 9
        await listed.rig.apply("a-007", {"size": 2})
        await listed.rig.settled("a-007")
        await listed.rig.apply("a-007", {"size": 1})
        at = await listed.rig.settled("a-007")
        await listed.rig.clock.sleep(100)

        assert at < 5
        assert listed.rig.service.objects["a-007"]["size"] == 1
        assert listed.looks(*NAMES) == [4 if name == "a-007" else 0 for name in NAMES]

    _play(hang, scenario)


@pytest.mark.parametrize("trouble", [Trouble.REFUSED, Trouble.CUT])
def test_without_a_list_there_is_a_look_at_each(trouble: Trouble) -> None:
    async def refuse(listed: ListedRig) -> None:
        listed.rig.service.faults.append(Fault(trouble, ["list"], 10**6))

    async def scenario(listed: ListedRig) -> None:
        await listed.rig.clock.sleep(100)

        assert listed.looks(*NAMES) == [1] * 30
        assert listed.rig.tally.steps == [("settled", "in sync")] * 30

    _play(refuse, scenario)


def test_a_list_that_does_not_end_is_not_waited_for_at_the_start() -> None:
    async def hang(listed: ListedRig) -> None:
        async def never() -> None:
            await listed.rig.clock.sleep(10**6)

        listed.kind.before_page = never

    async def scenario(listed: ListedRig) -> None:
        await listed.rig.clock.sleep(MAX_DEFER_SECONDS + 1)

        assert listed.looks(*NAMES) == [1] * 30

    _play(hang, scenario)


def test_what_is_to_be_left_alone_is_left_alone() -> None:
    async def drift(listed: ListedRig) -> None:
        for name in NAMES[:15]:
            await listed.rig.apply(name, annotations={RESYNC_INTERVAL: "0"})

    async def scenario(listed: ListedRig) -> None:
        await listed.rig.clock.sleep(100)
        listed.rig.service.objects["a-007"]["size"] = 9
        await listed.rig.clock.sleep(10_000)

        assert listed.looks(*NAMES[:15]) == [0] * 15
        assert listed.rig.service.objects["a-007"]["size"] == 9

    _play(drift, scenario)


def test_the_end_comes_in_the_middle_of_a_listing() -> None:
    async def main() -> None:
        listed = new_listed_rig()
        async with running(listed.rig):
            await listed.declare(*NAMES)

            async def never() -> None:
                await listed.rig.clock.sleep(10**6)

            listed.kind.before_page = never
            await listed.rig.clock.sleep(400)
            assert listed.list_resync.running_listings == 1
            stopped_at = listed.rig.clock.monotonic()
        # No step was in work: nothing had to be waited for.
        assert listed.rig.clock.monotonic() == stopped_at
        assert listed.list_resync.running_listings == 0
        assert listed.listings == []

    run(main())


def test_a_process_that_is_cut_short_anywhere_in_its_first_listing_leaves_nothing_behind() -> None:
    async def main() -> None:
        first = new_listed_rig()
        async with running(first.rig):
            await first.declare(*NAMES)
        before, objects = await _revisions(first), {**first.rig.service.objects}
        turns, is_over = 0, False
        while not is_over:
            listed = _in_small_steps(first)
            task = asyncio.create_task(listed.rig.manager.run())
            await _turn(turns)
            is_over = bool(listed.listings) and len(listed.rig.tally.steps) == 30
            await _cut(task)
            assert listed.rig.service.objects == objects
            assert await _revisions(listed) == before
            assert listed.list_resync.running_listings == 0
            turns += 1
        assert turns > 10

    run(main())


def test_a_process_that_is_cut_short_anywhere_in_a_regular_listing_is_followed_by_one_that_goes_on() -> None:
    async def main() -> None:
        turns, is_over = 0, False
        while not is_over:
            listed = _in_small_steps(None)
            task = asyncio.create_task(listed.rig.manager.run())
            await listed.declare(*NAMES)
            await listed.rig.clock.sleep(900)
            listed.rig.service.objects["a-007"]["size"] = 9
            await _next_page(listed)
            await _turn(turns)
            is_over = not listed.list_resync.running_listings and listed.rig.service.objects["a-007"]["size"] == 1
            await _cut(task)
            following = new_listed_rig(listed)
            async with running(following.rig):
                await following.rig.clock.sleep(1)

            assert following.rig.service.objects["a-007"]["size"] == 1
            assert following.rig.writes("a-007") == ["create", "update"]
            assert len(following.rig.service.objects) == 30
            turns += 1
        assert turns > 10

    run(main())


def _in_small_steps(before: ListedRig | None) -> ListedRig:
    """A process whose lists have several pages, none of which comes at once."""

    async def give_way() -> None:
        await asyncio.sleep(0)

    listed = new_listed_rig(before)
    listed.kind.size = 4
    listed.kind.before_page = listed.kind.after_page = give_way
    return listed


async def _next_page(listed: ListedRig) -> None:
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
