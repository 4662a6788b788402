"""The work queue: who waits, who gives up, how it ends, and what can be measured."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from setpoint.errors import RemoteUnavailable
from setpoint.runtime.metrics.catalogue import (
    QUEUE_BUCKETS,
    Histogram,
    HistogramSnapshot,
    MetricType,
    Sample,
    queue_samples,
)
from setpoint.runtime.workqueue.queue import SHUT_DOWN, QueueItem, ShutDown, WorkQueue
from setpoint.runtime.workqueue.scheduling import MAX_WAIT_SECONDS, Priority
from tests.runtime.virtual_time import VirtualClock, run

EDIT, RESYNC = Priority.EDIT, Priority.RESYNC

Queue = WorkQueue[str]


def play(scenario: Callable[[Queue], Awaitable[None]]) -> None:
    async def play() -> None:
        await scenario(WorkQueue(VirtualClock()))

    run(play())


async def waiting(queue: Queue, count: int) -> "list[asyncio.Task[QueueItem[str] | ShutDown]]":
    """So many that wait for a key."""
    getters = [asyncio.create_task(queue.get()) for _ in range(count)]
    await asyncio.sleep(0)
    return getters


# --- Those who wait ---------------------------------------------------------------------------------------------------


def test_each_add_wakes_one_of_those_who_wait() -> None:
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


def test_what_one_was_woken_for_who_gives_up_goes_to_another() -> None:
    async def scenario(queue: Queue) -> None:
        first, second = await waiting(queue, 2)
        queue.add("a", EDIT, "edit")
        first.cancel()

        assert await second == QueueItem("a", EDIT, "edit", 0.0)
        assert first.cancelled()

    play(scenario)


def test_nobody_is_woken_who_has_just_given_up() -> None:
    async def scenario(queue: Queue) -> None:
        first, second = await waiting(queue, 2)
        first.cancel()
        queue.add("a", EDIT, "edit")

        assert await second == QueueItem("a", EDIT, "edit", 0.0)
        assert first.cancelled()

    play(scenario)


def test_what_the_only_one_who_waited_gave_up_is_still_there() -> None:
    async def scenario(queue: Queue) -> None:
        (only,) = await waiting(queue, 1)
        queue.add("a", EDIT, "edit")
        only.cancel()
        await asyncio.sleep(0)

        assert await queue.get() == QueueItem("a", EDIT, "edit", 0.0)

    play(scenario)


def test_a_get_that_need_not_wait_does_not_give_way() -> None:
    async def scenario(queue: Queue) -> None:
        queue.add("a", EDIT, "edit")

        with pytest.raises(StopIteration) as returned:
            queue.get().send(None)
        assert returned.value.value == QueueItem("a", EDIT, "edit", 0.0)

    play(scenario)


def test_there_is_no_task_for_looks_unless_somebody_waits_and_then_one() -> None:
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


def test_there_is_no_timer_when_nothing_is_to_come() -> None:
    async def scenario(queue: Queue) -> None:
        getters = await waiting(queue, 2)

        assert len(asyncio.all_tasks()) == 1 + len(getters)
        queue.shut_down()
        await asyncio.gather(*getters)

    play(scenario)


# --- The end ----------------------------------------------------------------------------------------------------------


def test_a_shut_down_tells_all_who_wait_and_whoever_comes_later() -> None:
    async def scenario(queue: Queue) -> None:
        queue.schedule("a", 60.0, RESYNC, "resync")
        getters = await waiting(queue, 2)
        queue.shut_down()

        assert await asyncio.gather(*getters, queue.get()) == [SHUT_DOWN, SHUT_DOWN, SHUT_DOWN]
        await asyncio.sleep(0)
        assert len(asyncio.all_tasks()) == 1

    play(scenario)


def test_what_waited_at_the_shut_down_is_dropped_and_what_comes_later_is_ignored() -> None:
    async def scenario(queue: Queue) -> None:
        queue.add("a", EDIT, "edit")
        queue.shut_down()
        queue.add("b", EDIT, "edit")
        queue.schedule("c", 1.0, EDIT, "edit")

        assert await queue.get() is SHUT_DOWN
        assert sum(queue.snapshot().depth.values()) == queue.snapshot().delayed == 0

    play(scenario)


def test_drained_returns_when_the_last_key_in_work_is_done() -> None:
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


def test_with_nothing_in_work_a_queue_is_drained() -> None:
    async def scenario(queue: Queue) -> None:
        queue.shut_down()
        queue.shut_down()
        await queue.drained()

    play(scenario)


# --- What can be measured ---------------------------------------------------------------------------------------------


def test_a_snapshot_counts_what_waits_is_to_come_and_is_in_work() -> None:
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


def test_a_snapshot_tells_how_long_keys_waited_and_were_worked_on() -> None:
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


def test_figures_have_the_names_and_labels_of_controller_runtime() -> None:
    async def scenario(queue: Queue) -> None:
        queue.add("a", EDIT, "edit")
        found = list(queue_samples("SQLInstance", queue.snapshot()))

        labels = {"name": "SQLInstance", "controller": "SQLInstance"}
        assert found[0] == Sample("workqueue_depth", MetricType.GAUGE, labels | {"priority": "edit"}, 1)
        assert [figure.labels for figure in found[5:]] == [labels] * 8
        assert [(figure.name, figure.sort) for figure in found[5:]] == [
            ("workqueue_adds_total", MetricType.COUNTER),
            ("workqueue_retries_total", MetricType.COUNTER),
            ("workqueue_queue_duration_seconds", MetricType.HISTOGRAM),
            ("workqueue_work_duration_seconds", MetricType.HISTOGRAM),
            ("workqueue_unfinished_work_seconds", MetricType.GAUGE),
            ("workqueue_longest_running_processor_seconds", MetricType.GAUGE),
            ("setpoint_workqueue_delayed", MetricType.GAUGE),
            ("setpoint_workqueue_in_work", MetricType.GAUGE),
        ]

    play(scenario)


def test_a_duration_counts_for_every_bound_that_it_does_not_exceed() -> None:
    durations = Histogram()
    for seconds in (0.0, 0.01, 0.02, 5000.0):
        durations.add(seconds)

    assert QUEUE_BUCKETS[6] == 0.01
    assert durations.read() == HistogramSnapshot((1, 1, 1, 1, 1, 1, 2, 3, 3, 3, 3, 3), 4, 5000.03)


def test_every_priority_has_an_allowance_and_none_is_shorter_than_a_better_one() -> None:
    assert len(MAX_WAIT_SECONDS) == len(Priority)
    assert sorted(MAX_WAIT_SECONDS) == list(MAX_WAIT_SECONDS)
