"""The work queue: waiting workers, cancellation, shutdown and metrics."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from setpoint.errors import RemoteUnavailable
from setpoint.runtime.workqueue.queue import SHUT_DOWN, QueueItem, ShutDown, WorkQueue
from setpoint.runtime.workqueue.scheduling import MAX_WAIT_SECONDS, Priority
from setpoint.runtime.workqueue.statistics import QUEUE_BUCKETS, DurationHistogram, HistogramSnapshot
from simulation.virtual_time import VirtualClock, run

EDIT, RESYNC = Priority.EDIT, Priority.RESYNC

Queue = WorkQueue[str]


def play(scenario: Callable[[Queue], Awaitable[None]]) -> None:
    async def play() -> None:
        await scenario(WorkQueue(VirtualClock()))

    run(play())


async def waiting(queue: Queue, count: int) -> "list[asyncio.Task[QueueItem[str] | ShutDown]]":
    """So many workers that wait for a key."""
    getters = [asyncio.create_task(queue.get()) for _ in range(count)]
    await asyncio.sleep(0)
    return getters


# --- Waiting workers --------------------------------------------------------------------------------------------------


def test_each_add_wakes_one_waiting_worker() -> None:
    async def scenario(queue: Queue) -> None:
        getters = await waiting(queue, 3)
        for key in "ab":
            queue.add(key, EDIT, "edit")
        await asyncio.sleep(1)

        assert [getter.done() for getter in getters] == [True, True, False]
        assert [getter.result() for getter in getters[:2]] == [
            QueueItem("a", EDIT, "edit", 0.0),
            QueueItem("b", EDIT, "edit", 0.0),
        ]
        getters[2].cancel()

    play(scenario)


def test_the_key_of_a_woken_and_cancelled_worker_goes_to_another() -> None:
    async def scenario(queue: Queue) -> None:
        first, second = await waiting(queue, 2)
        queue.add("a", EDIT, "edit")
        first.cancel()

        assert await second == QueueItem("a", EDIT, "edit", 0.0)
        assert first.cancelled()

    play(scenario)


def test_a_cancelled_worker_is_not_woken() -> None:
    async def scenario(queue: Queue) -> None:
        first, second = await waiting(queue, 2)
        first.cancel()
        queue.add("a", EDIT, "edit")

        assert await second == QueueItem("a", EDIT, "edit", 0.0)
        assert first.cancelled()

    play(scenario)


def test_the_key_of_the_only_worker_stays_queued_when_it_is_cancelled() -> None:
    async def scenario(queue: Queue) -> None:
        (only,) = await waiting(queue, 1)
        queue.add("a", EDIT, "edit")
        only.cancel()
        await asyncio.sleep(0)

        assert await queue.get() == QueueItem("a", EDIT, "edit", 0.0)

    play(scenario)


def test_a_get_with_a_queued_key_does_not_yield() -> None:
    async def scenario(queue: Queue) -> None:
        queue.add("a", EDIT, "edit")

        with pytest.raises(StopIteration) as returned:
            queue.get().send(None)
        assert returned.value.value == QueueItem("a", EDIT, "edit", 0.0)

    play(scenario)


def test_delayed_adds_have_one_timer_task_while_a_worker_waits_and_none_otherwise() -> None:
    async def scenario(queue: Queue) -> None:
        for number in range(1_000):
            queue.schedule(f"key {number}", 60.0 + number, RESYNC, "resync")
        assert len(asyncio.all_tasks()) == 1
        getters = await waiting(queue, 2)
        assert len(asyncio.all_tasks()) == 1 + len(getters) + 1
        await asyncio.gather(*getters)
        await asyncio.sleep(0)

        assert len(asyncio.all_tasks()) == 1

    play(scenario)


def test_there_is_no_timer_without_delayed_adds() -> None:
    async def scenario(queue: Queue) -> None:
        getters = await waiting(queue, 2)

        assert len(asyncio.all_tasks()) == 1 + len(getters)
        queue.shut_down()
        await asyncio.gather(*getters)

    play(scenario)


# --- Shutdown ---------------------------------------------------------------------------------------------------------


def test_a_shut_down_ends_every_get_now_and_later() -> None:
    async def scenario(queue: Queue) -> None:
        queue.schedule("a", 60.0, RESYNC, "resync")
        getters = await waiting(queue, 2)
        queue.shut_down()

        assert await asyncio.gather(*getters, queue.get()) == [SHUT_DOWN, SHUT_DOWN, SHUT_DOWN]
        await asyncio.sleep(0)
        assert len(asyncio.all_tasks()) == 1

    play(scenario)


def test_a_shut_down_drops_queued_keys_and_ignores_later_adds() -> None:
    async def scenario(queue: Queue) -> None:
        queue.add("a", EDIT, "edit")
        queue.shut_down()
        queue.add("b", EDIT, "edit")
        queue.schedule("c", 1.0, EDIT, "edit")

        assert await queue.get() is SHUT_DOWN
        assert sum(queue.snapshot().depth.values()) == queue.snapshot().delayed == 0

    play(scenario)


def test_drained_returns_when_the_last_key_is_done() -> None:
    async def scenario(queue: Queue) -> None:
        for key in "ab":
            queue.add(key, EDIT, "edit")
            await queue.get()
        queue.add("a", EDIT, "again")
        queue.shut_down()
        drained = asyncio.create_task(queue.drained())
        await asyncio.sleep(1)
        queue.done("a")
        await asyncio.sleep(1)
        assert not drained.done()
        queue.done("b")
        await drained

        assert queue.snapshot().processing == 0

    play(scenario)


def test_a_queue_without_keys_in_processing_is_drained() -> None:
    async def scenario(queue: Queue) -> None:
        queue.shut_down()
        queue.shut_down()
        await queue.drained()

    play(scenario)


# --- Metrics ----------------------------------------------------------------------------------------------------------


def test_a_snapshot_counts_queued_delayed_and_processing_keys() -> None:
    async def scenario(queue: Queue) -> None:
        for key in "abc":
            queue.add(key, RESYNC, "resync")
        await queue.get()
        await asyncio.sleep(2)
        await queue.get()
        queue.add("c", EDIT, "edit")
        queue.add("a", EDIT, "edit")
        queue.schedule("d", 60.0, RESYNC, "resync")
        await asyncio.sleep(3)
        shown = queue.snapshot()

        assert [shown.depth[priority] for priority in Priority] == [1, 0, 0, 0, 0]
        assert (shown.delayed, shown.processing) == (1, 2)
        assert (shown.unfinished_seconds, shown.longest_running_seconds) == (8.0, 5.0)
        assert shown.adds == 4

    play(scenario)


def test_a_snapshot_has_histograms_of_waiting_and_processing() -> None:
    async def scenario(queue: Queue) -> None:
        queue.add("a", RESYNC, "resync")
        await asyncio.sleep(0.5)
        await queue.get()
        await asyncio.sleep(20)
        queue.done("a")
        queue.retry("a", RemoteUnavailable("down"), RESYNC, "retry")
        shown = queue.snapshot()

        assert shown.queue_durations == HistogramSnapshot((0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1), 1, 0.5)
        assert shown.work_durations == HistogramSnapshot((0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1), 1, 20.0)
        assert (shown.adds, shown.retries) == (1, 1)

    play(scenario)


def test_a_duration_counts_for_every_bound_that_it_does_not_exceed() -> None:
    durations = DurationHistogram()
    for seconds in (0.0, 0.01, 0.02, 5000.0):
        durations.observe(seconds)

    assert QUEUE_BUCKETS[6] == 0.01
    assert durations.snapshot() == HistogramSnapshot((1, 1, 1, 1, 1, 1, 2, 3, 3, 3, 3, 3), 4, 5000.03)


def test_every_priority_has_a_longest_wait_that_grows_with_less_urgency() -> None:
    assert len(MAX_WAIT_SECONDS) == len(Priority)
    assert sorted(MAX_WAIT_SECONDS) == list(MAX_WAIT_SECONDS)
