"""The work queue when many delayed adds are due at the same moment, as after the pause of a circuit breaker."""

import asyncio
from collections.abc import Awaitable, Callable
from itertools import pairwise

from setpoint.runtime.workqueue.queue import MOST_ADDED, ShutDown, WorkQueue
from setpoint.runtime.workqueue.scheduling import Priority
from simulation.virtual_time import VirtualClock, run

EDIT, DRIFT = Priority.EDIT, Priority.DRIFT
COUNT = 3 * MOST_ADDED + 500

Queue = WorkQueue[int]


def play(scenario: Callable[[Queue, VirtualClock], Awaitable[None]]) -> None:
    async def play() -> None:
        clock = VirtualClock()
        queue = WorkQueue[int](clock)
        queue.schedule_all([(key, 60.0) for key in range(COUNT)], 0.0, DRIFT, "a retry")
        await scenario(queue, clock)

    run(play())


def depth(queue: Queue) -> int:
    """What is queued, without another operation."""
    return sum(queue._lanes.depths)


async def worked(queue: Queue) -> list[int]:
    """The keys in the order in which one worker is given them, until none is left."""
    keys = []
    while (item := queue.take()) is not None:
        assert not isinstance(item, ShutDown)
        keys.append(item.key)
        queue.done(item.key)
    return keys


def test_no_operation_adds_more_than_a_part_of_them() -> None:
    async def scenario(queue: Queue, clock: VirtualClock) -> None:
        await clock.sleep(61)
        depths = [depth(queue)]
        for _ in range(3):
            queue.take()
            depths.append(depth(queue))

        added = [after - before + 1 for before, after in pairwise(depths)]
        assert added == [MOST_ADDED] * 3

    play(scenario)


def test_each_is_handed_out_once_and_in_their_order() -> None:
    async def scenario(queue: Queue, clock: VirtualClock) -> None:
        await clock.sleep(61)

        assert await worked(queue) == list(range(COUNT))

    play(scenario)


def test_waiting_workers_are_given_all_of_them() -> None:
    async def scenario(queue: Queue, clock: VirtualClock) -> None:
        taken: list[int] = []

        async def work() -> None:
            while not isinstance(item := await queue.get(), ShutDown):
                taken.append(item.key)
                queue.done(item.key)
                await asyncio.sleep(0)

        workers = [asyncio.create_task(work()) for _ in range(20)]
        await clock.sleep(70)
        queue.shut_down()
        await asyncio.gather(*workers)

        assert sorted(taken) == list(range(COUNT))

    play(scenario)


def test_an_edit_goes_before_those_that_are_not_added_yet() -> None:
    async def scenario(queue: Queue, clock: VirtualClock) -> None:
        await clock.sleep(61)
        queue.add(-1, EDIT, "an edit")
        keys = await worked(queue)

        # A retry has the deadline of five seconds after it was due: an edit has none.
        assert keys[0] == -1
        assert sorted(keys[1:]) == list(range(COUNT))

    play(scenario)


def test_what_is_added_meanwhile_does_not_put_the_lanes_out_of_order() -> None:
    async def scenario(queue: Queue, clock: VirtualClock) -> None:
        await clock.sleep(61)
        for key in range(COUNT, COUNT + 3):
            queue.add(key, DRIFT, "drift")
        queue.add(COUNT - 1, EDIT, "an edit")
        lanes = [[entry.deadline for entry in lane] for lane in queue._lanes._lanes]

        assert lanes == [sorted(lane) for lane in lanes]
        assert sorted(await worked(queue)) == list(range(COUNT + 3))

    play(scenario)


def test_one_that_is_scheduled_anew_before_it_was_added_is_due_then() -> None:
    async def scenario(queue: Queue, clock: VirtualClock) -> None:
        await clock.sleep(61)
        queue.schedule(COUNT - 1, 30.0, DRIFT, "a retry")
        queue.forget(COUNT - 2)
        first = await worked(queue)
        await clock.sleep(31)

        assert first == list(range(COUNT - 2))
        assert await worked(queue) == [COUNT - 1]

    play(scenario)
