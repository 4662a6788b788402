"""The work queue of a controller: what comes next, what comes again, and when."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from setpoint.errors import Bug, OperationRunning, RemoteUnavailable, WriteConflict
from setpoint.runtime.workqueue.queue import QueueItem, ShutDown, WorkQueue
from setpoint.runtime.workqueue.scheduling import Priority
from tests.runtime.virtual_time import VirtualClock, run

EDIT, DEPENDENCY, DRIFT, RESYNC, START_UP = Priority

Queue = WorkQueue[str]


def play(scenario: Callable[[Queue], Awaitable[None]]) -> None:
    async def play() -> None:
        await scenario(WorkQueue(VirtualClock(), jitter=lambda: 1.0))

    run(play())


async def get(queue: Queue) -> QueueItem[str]:
    found = await queue.get()
    assert not isinstance(found, ShutDown)
    return found


async def take(queue: Queue, count: int) -> list[str]:
    """The next keys, each done at once."""
    keys = []
    for _ in range(count):
        keys.append((await get(queue)).key)
        queue.done(keys[-1])
    return keys


def now() -> float:
    return asyncio.get_running_loop().time()


# --- Which key next ---------------------------------------------------------------------------------------------------


def test_of_what_came_together_the_more_urgent_is_first() -> None:
    async def scenario(queue: Queue) -> None:
        for key, priority in zip("abcde", (START_UP, DRIFT, EDIT, RESYNC, DEPENDENCY), strict=True):
            queue.add(key, priority, "test")

        assert await take(queue, 5) == ["c", "e", "b", "d", "a"]

    play(scenario)


def test_equals_come_in_the_order_of_their_adds() -> None:
    async def scenario(queue: Queue) -> None:
        for key in "cab":
            queue.add(key, RESYNC, "test")

        assert await take(queue, 3) == ["c", "a", "b"]

    play(scenario)


def test_whoever_waited_for_a_minute_goes_before_endless_edits() -> None:
    async def scenario(queue: Queue) -> None:
        queue.add("old", START_UP, "start")
        handed_out = []
        for second in range(130):
            queue.add(f"edit {second}", EDIT, "edit")
            queue.add(f"other edit {second}", EDIT, "edit")
            handed_out += await take(queue, 1)
            await asyncio.sleep(1)

        assert handed_out[120:124] == ["edit 60", "other edit 60", "old", "edit 61"]

    play(scenario)


def test_an_item_tells_why_it_comes_and_how_long_it_waited() -> None:
    async def scenario(queue: Queue) -> None:
        queue.add("a", DRIFT, "live changed")
        await asyncio.sleep(2.5)

        assert await queue.get() == QueueItem("a", DRIFT, "live changed", 2.5)

    play(scenario)


# --- A key is queued once ---------------------------------------------------------------------------------------------


def test_a_key_that_is_added_often_comes_once_for_the_best_reason() -> None:
    async def scenario(queue: Queue) -> None:
        queue.add("a", RESYNC, "resync")
        queue.add("a", EDIT, "first edit")
        queue.add("a", EDIT, "second edit")
        queue.add("a", START_UP, "start")

        assert await queue.get() == QueueItem("a", EDIT, "first edit", 0.0)
        assert sum(queue.snapshot().depth.values()) == 0

    play(scenario)


def test_a_better_reason_brings_a_key_forward() -> None:
    async def scenario(queue: Queue) -> None:
        for key in "abc":
            queue.add(key, START_UP, "start")
        await asyncio.sleep(2)
        queue.add("b", EDIT, "edit")

        assert await get(queue) == QueueItem("b", EDIT, "edit", 2.0)
        queue.done("b")
        assert queue.snapshot().processing == 0
        assert await take(queue, 2) == ["a", "c"]

    play(scenario)


def test_a_better_reason_never_puts_off_a_key_whose_time_has_come() -> None:
    async def scenario(queue: Queue) -> None:
        queue.add("old", RESYNC, "resync")
        await asyncio.sleep(31)
        queue.add("new", EDIT, "edit")
        queue.add("old", EDIT, "edit")

        assert await queue.get() == QueueItem("old", EDIT, "edit", 31.0)

    play(scenario)


def test_what_is_added_in_work_comes_again_once_it_is_done_and_no_sooner() -> None:
    async def scenario(queue: Queue) -> None:
        queue.add("a", RESYNC, "resync")
        await queue.get()
        for priority, trigger in ((DRIFT, "drift"), (EDIT, "edit"), (EDIT, "another edit"), (RESYNC, "resync")):
            queue.add("a", priority, trigger)
        second = asyncio.create_task(queue.get())
        await asyncio.sleep(3)
        assert not second.done()
        queue.done("a")

        assert await second == QueueItem("a", EDIT, "edit", 3.0)

    play(scenario)


def test_what_is_not_added_again_does_not_come_again() -> None:
    async def scenario(queue: Queue) -> None:
        queue.add("a", EDIT, "edit")
        await take(queue, 1)

        with pytest.raises(TimeoutError):
            await asyncio.wait_for(queue.get(), 1_000_000)

    play(scenario)


def test_done_without_get_is_a_bug_and_changes_nothing() -> None:
    async def scenario(queue: Queue) -> None:
        queue.add("a", EDIT, "edit")

        with pytest.raises(Bug, match="a is done without being processed"):
            queue.done("a")
        with pytest.raises(Bug, match="b is done without being processed"):
            queue.done("b")
        assert await take(queue, 1) == ["a"]

    play(scenario)


# --- The next look ----------------------------------------------------------------------------------------------------


def test_a_look_comes_at_its_time() -> None:
    async def scenario(queue: Queue) -> None:
        queue.schedule("a", 600.0, RESYNC, "resync")

        assert await queue.get() == QueueItem("a", RESYNC, "resync", 0.0)
        assert now() == 600.0

    play(scenario)


@pytest.mark.parametrize("seconds", [5.0, 500.0])
def test_another_look_replaces_the_one_before_be_it_earlier_or_later(seconds: float) -> None:
    async def scenario(queue: Queue) -> None:
        queue.schedule("a", 50.0, RESYNC, "before")
        waiting = asyncio.create_task(get(queue))
        await asyncio.sleep(1)
        queue.schedule("a", seconds, DRIFT, "after")

        assert (await waiting).trigger == "after"
        assert now() == 1.0 + seconds
        assert queue.snapshot().delayed == 0

    play(scenario)


def test_an_add_makes_a_key_come_now_and_leaves_its_next_look() -> None:
    async def scenario(queue: Queue) -> None:
        queue.schedule("a", 600.0, RESYNC, "resync")
        queue.add("a", EDIT, "edit")
        await take(queue, 1)

        assert await queue.get() == QueueItem("a", RESYNC, "resync", 0.0)
        assert now() == 600.0

    play(scenario)


def test_a_look_that_comes_due_in_work_comes_after_it() -> None:
    async def scenario(queue: Queue) -> None:
        queue.schedule("a", 10.0, RESYNC, "resync")
        queue.add("a", EDIT, "edit")
        await queue.get()
        await asyncio.sleep(15)
        queue.done("a")

        assert await queue.get() == QueueItem("a", RESYNC, "resync", 5.0)

    play(scenario)


def test_a_look_that_comes_due_in_work_joins_what_was_added_there() -> None:
    async def scenario(queue: Queue) -> None:
        queue.schedule("a", 10.0, RESYNC, "resync")
        queue.add("a", EDIT, "edit")
        await queue.get()
        await asyncio.sleep(15)
        queue.add("a", DRIFT, "drift")
        queue.done("a")

        assert await queue.get() == QueueItem("a", DRIFT, "drift", 5.0)
        assert queue.snapshot().delayed == 0

    play(scenario)


def test_a_look_that_comes_due_in_work_and_is_replaced_there_is_void() -> None:
    async def scenario(queue: Queue) -> None:
        queue.schedule("a", 10.0, RESYNC, "before")
        queue.add("a", EDIT, "edit")
        await queue.get()
        await asyncio.sleep(15)
        queue.schedule("a", 600.0, RESYNC, "after")
        queue.done("a")

        assert (await get(queue)).trigger == "after"
        assert now() == 615.0

    play(scenario)


def test_a_look_at_once_from_within_the_work_comes_after_it() -> None:
    async def scenario(queue: Queue) -> None:
        queue.add("a", EDIT, "edit")
        await queue.get()
        queue.schedule("a", 0.0, DRIFT, "again")
        queue.done("a")

        assert await queue.get() == QueueItem("a", DRIFT, "again", 0.0)

    play(scenario)


def test_a_look_counts_as_added_when_it_was_due_though_nobody_was_there() -> None:
    async def scenario(queue: Queue) -> None:
        queue.schedule("early", 10.0, EDIT, "look")
        await asyncio.sleep(20)
        queue.add("late", EDIT, "edit")

        assert await queue.get() == QueueItem("early", EDIT, "look", 10.0)

    play(scenario)


@pytest.mark.parametrize("seconds", [float("inf"), float("nan")])
def test_a_look_at_no_time_is_a_bug(seconds: float) -> None:
    async def scenario(queue: Queue) -> None:
        with pytest.raises(Bug, match=f"the next add of a cannot be in {seconds} seconds"):
            queue.schedule("a", seconds, RESYNC, "resync")

    play(scenario)


def test_what_is_forgotten_has_no_next_look() -> None:
    async def scenario(queue: Queue) -> None:
        queue.schedule("a", 10.0, RESYNC, "resync")
        queue.schedule("b", 60.0, RESYNC, "resync")
        queue.forget("a")

        assert await take(queue, 1) == ["b"]
        assert now() == 60.0

    play(scenario)


# --- After a failure --------------------------------------------------------------------------------------------------


def test_each_failure_doubles_the_delay_until_the_key_is_forgotten() -> None:
    async def scenario(queue: Queue) -> None:
        down = RemoteUnavailable("down")
        delays = [queue.retry("a", down, DRIFT, "retry") for _ in range(11)]
        failures = queue.failures("a")
        queue.forget("a")

        assert delays == [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 120.0, 120.0]
        assert (failures, queue.failures("a")) == (11, 0)
        assert queue.retry("a", down, DRIFT, "retry") == 0.25

    play(scenario)


def test_a_service_s_wish_counts_more() -> None:
    async def scenario(queue: Queue) -> None:
        queue.retry("a", RemoteUnavailable("busy", after=30.0), DRIFT, "retry")
        await queue.get()

        assert now() == 30.0

    play(scenario)


def test_an_operation_at_work_is_no_failure() -> None:
    async def scenario(queue: Queue) -> None:
        queue.retry("a", RemoteUnavailable("down"), DRIFT, "retry")
        delays = [queue.retry("a", OperationRunning("at work"), DRIFT, "poll") for _ in range(6)]

        assert delays == [1.0, 2.0, 4.0, 8.0, 15.0, 15.0]
        assert queue.failures("a") == 0

    play(scenario)


def test_a_first_conflict_is_met_right_after_the_work() -> None:
    async def scenario(queue: Queue) -> None:
        queue.add("a", EDIT, "edit")
        await queue.get()
        queue.retry("a", WriteConflict("somebody was faster"), EDIT, "conflict")
        queue.done("a")

        assert await queue.get() == QueueItem("a", EDIT, "conflict", 0.0)

    play(scenario)
