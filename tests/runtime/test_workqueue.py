"""The work queue of a controller: order, deduplication, delayed adds and retries."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from setpoint.errors import Bug, OperationRunning, RemoteUnavailable, WriteConflict
from setpoint.runtime.workqueue.queue import QueueItem, ShutDown, WorkQueue
from setpoint.runtime.workqueue.scheduling import Priority
from simulation.virtual_time import VirtualClock, run

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


def test_keys_added_together_come_by_priority() -> None:
    async def scenario(queue: Queue) -> None:
        for key, priority in zip("abcde", (START_UP, DRIFT, EDIT, RESYNC, DEPENDENCY), strict=True):
            queue.add(key, priority, "test")

        assert await take(queue, 5) == ["c", "e", "b", "d", "a"]

    play(scenario)


def test_keys_of_one_priority_come_in_order_of_their_adds() -> None:
    async def scenario(queue: Queue) -> None:
        for key in "cab":
            queue.add(key, RESYNC, "test")

        assert await take(queue, 3) == ["c", "a", "b"]

    play(scenario)


def test_a_start_up_key_is_not_starved_by_endless_edits() -> None:
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


def test_an_item_has_its_trigger_and_how_long_it_waited() -> None:
    async def scenario(queue: Queue) -> None:
        queue.add("a", DRIFT, "live changed")
        await asyncio.sleep(2.5)

        assert await queue.get() == QueueItem("a", DRIFT, "live changed", 2.5)

    play(scenario)


# --- A key is queued once ---------------------------------------------------------------------------------------------


def test_repeated_adds_are_one_item_with_the_most_urgent_trigger() -> None:
    async def scenario(queue: Queue) -> None:
        queue.add("a", RESYNC, "resync")
        queue.add("a", EDIT, "first edit")
        queue.add("a", EDIT, "second edit")
        queue.add("a", START_UP, "start")

        assert await queue.get() == QueueItem("a", EDIT, "first edit", 0.0)
        assert sum(queue.snapshot().depth.values()) == 0

    play(scenario)


def test_a_more_urgent_add_moves_a_queued_key_forward() -> None:
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


def test_a_more_urgent_add_never_makes_a_deadline_later() -> None:
    async def scenario(queue: Queue) -> None:
        queue.add("old", RESYNC, "resync")
        await asyncio.sleep(31)
        queue.add("new", EDIT, "edit")
        queue.add("old", EDIT, "edit")

        assert await queue.get() == QueueItem("old", EDIT, "edit", 31.0)

    play(scenario)


def test_a_key_added_during_processing_is_queued_again_after_done() -> None:
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


def test_a_key_is_not_handed_out_again_without_an_add() -> None:
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


# --- Delayed adds -----------------------------------------------------------------------------------------------------


def test_a_delayed_add_comes_at_its_time() -> None:
    async def scenario(queue: Queue) -> None:
        queue.schedule("a", 600.0, RESYNC, "resync")

        assert await queue.get() == QueueItem("a", RESYNC, "resync", 0.0)
        assert now() == 600.0

    play(scenario)


@pytest.mark.parametrize("seconds", [5.0, 500.0])
def test_a_delayed_add_replaces_the_one_before_earlier_or_later(seconds: float) -> None:
    async def scenario(queue: Queue) -> None:
        queue.schedule("a", 50.0, RESYNC, "before")
        waiting = asyncio.create_task(get(queue))
        await asyncio.sleep(1)
        queue.schedule("a", seconds, DRIFT, "after")

        assert (await waiting).trigger == "after"
        assert now() == 1.0 + seconds
        assert queue.snapshot().delayed == 0

    play(scenario)


def test_the_seconds_until_a_delayed_add_grow_fewer_and_end_with_it() -> None:
    async def scenario(queue: Queue) -> None:
        assert queue.seconds_until("a") is None
        queue.schedule("a", 600.0, RESYNC, "resync")
        assert queue.seconds_until("a") == 600.0
        await asyncio.sleep(250)
        assert queue.seconds_until("a") == 350.0
        queue.schedule("a", 5.0, DRIFT, "after")
        assert queue.seconds_until("a") == 5.0
        queue.add("a", EDIT, "edit")
        await take(queue, 1)
        assert queue.seconds_until("a") == 5.0
        await get(queue)

        assert queue.seconds_until("a") is None

    play(scenario)


def test_a_delayed_add_that_came_due_during_processing_is_no_time_away() -> None:
    async def scenario(queue: Queue) -> None:
        queue.schedule("a", 10.0, RESYNC, "resync")
        queue.add("a", EDIT, "edit")
        await queue.get()
        await asyncio.sleep(15)

        assert queue.seconds_until("a") == 0.0

    play(scenario)


def test_an_add_queues_a_key_now_and_leaves_its_delayed_add() -> None:
    async def scenario(queue: Queue) -> None:
        queue.schedule("a", 600.0, RESYNC, "resync")
        queue.add("a", EDIT, "edit")
        await take(queue, 1)

        assert await queue.get() == QueueItem("a", RESYNC, "resync", 0.0)
        assert now() == 600.0

    play(scenario)


def test_a_delayed_add_that_comes_due_during_processing_is_queued_after_done() -> None:
    async def scenario(queue: Queue) -> None:
        queue.schedule("a", 10.0, RESYNC, "resync")
        queue.add("a", EDIT, "edit")
        await queue.get()
        await asyncio.sleep(15)
        queue.done("a")

        assert await queue.get() == QueueItem("a", RESYNC, "resync", 5.0)

    play(scenario)


def test_a_delayed_add_that_comes_due_during_processing_joins_an_add_made_there() -> None:
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


def test_a_delayed_add_that_comes_due_during_processing_and_is_replaced_is_void() -> None:
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


def test_a_delayed_add_of_zero_seconds_during_processing_is_queued_after_done() -> None:
    async def scenario(queue: Queue) -> None:
        queue.add("a", EDIT, "edit")
        await queue.get()
        queue.schedule("a", 0.0, DRIFT, "again")
        queue.done("a")

        assert await queue.get() == QueueItem("a", DRIFT, "again", 0.0)

    play(scenario)


def test_a_delayed_add_counts_from_its_due_time_without_a_waiting_worker() -> None:
    async def scenario(queue: Queue) -> None:
        queue.schedule("early", 10.0, EDIT, "delayed")
        await asyncio.sleep(20)
        queue.add("late", EDIT, "edit")

        assert await queue.get() == QueueItem("early", EDIT, "delayed", 10.0)

    play(scenario)


@pytest.mark.parametrize("seconds", [float("inf"), float("nan")])
def test_a_delay_that_is_not_finite_is_a_bug(seconds: float) -> None:
    async def scenario(queue: Queue) -> None:
        with pytest.raises(Bug, match=f"the next add of a cannot be in {seconds} seconds"):
            queue.schedule("a", seconds, RESYNC, "resync")

    play(scenario)


def test_a_forgotten_key_has_no_delayed_add() -> None:
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


def test_retry_after_of_the_service_takes_precedence() -> None:
    async def scenario(queue: Queue) -> None:
        queue.retry("a", RemoteUnavailable("busy", after=30.0), DRIFT, "retry")
        await queue.get()

        assert now() == 30.0

    play(scenario)


def test_a_running_operation_is_no_failure() -> None:
    async def scenario(queue: Queue) -> None:
        queue.retry("a", RemoteUnavailable("down"), DRIFT, "retry")
        delays = [queue.retry("a", OperationRunning("at work"), DRIFT, "poll") for _ in range(6)]

        assert delays == [1.0, 2.0, 4.0, 8.0, 15.0, 15.0]
        assert queue.failures("a") == 0

    play(scenario)


def test_the_first_write_conflict_is_retried_at_once() -> None:
    async def scenario(queue: Queue) -> None:
        queue.add("a", EDIT, "edit")
        await queue.get()
        queue.retry("a", WriteConflict("another write came first"), EDIT, "conflict")
        queue.done("a")

        assert await queue.get() == QueueItem("a", EDIT, "conflict", 0.0)

    play(scenario)
