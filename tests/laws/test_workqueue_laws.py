"""The work queue: what holds for every order of adds, gets, work, failures and cancelled waits."""

import asyncio
from dataclasses import dataclass, field

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from setpoint.errors import RemoteUnavailable
from setpoint.runtime.workqueue.queue import SHUT_DOWN, WorkQueue
from setpoint.runtime.workqueue.scheduling import DelayedAdds, Priority, PriorityLanes, QueueEntry
from simulation.virtual_time import VirtualClock, run
from tests.runtime.queue_programs import (
    Add,
    Done,
    Get,
    GiveUp,
    Operation,
    Pass,
    Run,
    Schedule,
    Settle,
    figures,
    model_figures,
    programs,
)

pytestmark = pytest.mark.laws

EDIT, RESYNC, START_UP = Priority.EDIT, Priority.RESYNC, Priority.START_UP
WOKEN_AND_GONE: list[Operation] = [Get(), Get(), Settle(), Add("a", EDIT, "x"), GiveUp(0), Settle()]
GONE_BEFORE_IT_IS_WOKEN: list[Operation] = [Get(), Get(), Settle(), GiveUp(0), Add("a", EDIT, "x"), Settle()]
RAISED_WHEN_OVERDUE: list[Operation] = [
    Add("a", START_UP, "x"),
    Pass(70.0),
    Add("b", EDIT, "x"),
    Add("a", EDIT, "y"),
]
RAISED_IN_TIME: list[Operation] = [Add("b", RESYNC, "x"), Add("a", RESYNC, "x"), Pass(30.0), Add("a", EDIT, "y")]
DUE_IN_WORK: list[Operation] = [Schedule("a", 5.0, RESYNC, "x"), Add("a", EDIT, "y"), Get(), Pass(10.0), Done(0)]
AN_EARLIER_STEP: list[Operation] = [
    Schedule("a", 50.0, RESYNC, "x"),
    Get(),
    Settle(),
    Schedule("b", 5.0, RESYNC, "x"),
    Pass(9.0),
]


@given(programs)
@example(WOKEN_AND_GONE)
@example(GONE_BEFORE_IT_IS_WOKEN)
@example(RAISED_WHEN_OVERDUE)
@example(RAISED_IN_TIME)
@example(DUE_IN_WORK)
@example(AN_EARLIER_STEP)
def test_keys_come_in_the_order_of_a_reference_queue_with_linear_search(program: list[Operation]) -> None:
    async def scenario() -> None:
        work = Run()
        for operation in program:
            await work.perform(operation)
            assert work.handed_out == work.model.handed_out[: len(work.handed_out)]
        await work.settle()
        assert work.handed_out == work.model.handed_out
        assert figures(work.queue.snapshot()) == model_figures(work.model)
        await work.drain()
        assert work.handed_out == work.model.handed_out
        assert figures(work.queue.snapshot()) == ([0, 0, 0, 0, 0], 0, 0)
        await work.end()

    run(scenario())


@given(programs, programs)
def test_after_shut_down_every_worker_is_notified_and_gets_no_key(
    before: list[Operation], after: list[Operation]
) -> None:
    async def scenario() -> None:
        work = Run()
        for operation in before:
            await work.perform(operation)
        await work.settle()
        waiting, handed_out = work.model.getters, list(work.handed_out)
        work.queue.shut_down()
        work.model.shut_down()
        await work.settle()
        assert work.ended == waiting
        for operation in after:
            if isinstance(operation, Add | Schedule):
                await work.perform(operation)
                work.model.shut_down()
        assert await work.queue.get() is SHUT_DOWN
        drained = asyncio.create_task(work.queue.drained())
        while work.model.processing:
            await work.settle()
            assert not drained.done()
            await work.perform(Done(0))
        await drained
        assert work.handed_out == handed_out
        assert figures(work.queue.snapshot()) == ([0, 0, 0, 0, 0], 0, 0)

    run(scenario())


@dataclass
class HandOutLog:
    """When each key was added, and when a worker got it. Moments are numbered: several may share one time."""

    asked: dict[str, int] = field(default_factory=dict)
    begun: dict[str, int] = field(default_factory=dict)
    due: dict[str, float] = field(default_factory=dict)
    held: set[str] = field(default_factory=set)
    context: int = 0

    def ask(self, key: str) -> None:
        self.context += 1
        self.asked[key] = self.context

    def begin(self, key: str) -> None:
        self.context += 1
        self.begun[key] = self.context
        assert key not in self.held
        self.held.add(key)


async def work_on(queue: WorkQueue[str], log: HandOutLog, durations: list[float]) -> None:
    """A worker, each time busy for its next duration; it calls `done` even when it is cancelled."""
    while (item := await queue.get()) is not SHUT_DOWN:
        log.begin(item.key)
        assert VirtualClock().monotonic() >= log.due.pop(item.key, 0.0)
        try:
            await asyncio.sleep(durations[log.context % len(durations)])
        finally:
            log.held.remove(item.key)
            queue.done(item.key)


_durations = st.lists(st.floats(min_value=0, max_value=100), min_size=1, max_size=5)
_requests = st.lists(
    st.tuples(st.sampled_from("abc"), st.sampled_from(Priority), st.floats(min_value=0, max_value=50)), max_size=30
)


@given(_requests, _durations, st.integers(1, 4), st.sets(st.integers(0, 29), max_size=10))
def test_every_key_is_handed_out_after_its_last_add_and_never_to_two_at_once(
    requests: list[tuple[str, Priority, float]], durations: list[float], workers: int, cancelled: set[int]
) -> None:
    async def scenario() -> HandOutLog:
        queue, log = WorkQueue[str](VirtualClock()), HandOutLog()
        workers_ = [asyncio.create_task(work_on(queue, log, durations)) for _ in range(workers)]
        for number, (key, priority, pause) in enumerate(requests):
            queue.add(key, priority, "test")
            log.ask(key)
            if number in cancelled:
                workers_[number % workers].cancel()
                workers_[number % workers] = asyncio.create_task(work_on(queue, log, durations))
            await asyncio.sleep(pause)
        await asyncio.sleep(100_000)
        queue.shut_down()
        await queue.drained()
        await asyncio.gather(*workers_)
        return log

    log = run(scenario())

    assert all(log.begun[key] > asked for key, asked in log.asked.items())
    assert log.held == set()


@given(_requests, _durations, st.integers(1, 4))
def test_every_delayed_add_is_handed_out_and_none_before_it_is_due(
    requests: list[tuple[str, Priority, float]], durations: list[float], workers: int
) -> None:
    async def scenario() -> HandOutLog:
        clock = VirtualClock()
        queue, log = WorkQueue[str](clock), HandOutLog()
        workers_ = [asyncio.create_task(work_on(queue, log, durations)) for _ in range(workers)]
        for number, (_, priority, seconds) in enumerate(requests):
            log.due[f"key {number}"] = clock.monotonic() + seconds
            queue.schedule(f"key {number}", seconds, priority, "test")
            await asyncio.sleep(seconds / 10)
        await asyncio.sleep(100_000)
        queue.shut_down()
        await asyncio.gather(*workers_)
        return log

    log = run(scenario())

    assert sorted(log.begun) == sorted(f"key {number}" for number in range(len(requests)))


@given(st.lists(st.none() | st.floats(min_value=0, max_value=1000), max_size=20), st.floats(min_value=0, max_value=1))
def test_a_delay_doubles_within_bounds_until_the_key_is_forgotten(asked: list[float | None], jitter: float) -> None:
    async def scenario() -> None:
        queue = WorkQueue[str](VirtualClock(), jitter=lambda: jitter)
        for number, at_least in enumerate(asked):
            delay = queue.retry("a", RemoteUnavailable("down", at_least), RESYNC, "retry")
            longest = min(0.25 * 2**number, 120.0)
            assert max(longest / 2, at_least or 0.0) <= delay <= max(longest, at_least or 0.0)
            assert queue.failures("a") == number + 1
        queue.forget("a")
        assert queue.failures("a") == 0
        assert 0.125 <= queue.retry("a", RemoteUnavailable("down"), RESYNC, "retry") <= 0.25

    run(scenario())


@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from(Priority), st.booleans()), max_size=30))
@example([(0, START_UP, False), (0, EDIT, True)])
def test_raises_and_drops_do_not_accumulate_stale_entries(steps: list[tuple[int, Priority, bool]]) -> None:
    lanes, entries = PriorityLanes[int](), dict[int, QueueEntry[int]]()
    for number, (key, priority, is_taken) in enumerate(steps * 100):
        at, found = number / 1000, entries.get(key)
        if found is None:
            entries[key] = QueueEntry(key, priority, "test", at)
            lanes.put(entries[key], at)
        elif priority < found.priority:
            entries[key] = lanes.raised(found, priority, "test", at)
            assert lanes.slots <= 2 * len(entries) + 64
        if is_taken:
            taken = lanes.take()
            assert taken is not None
            assert entries.pop(taken.key) is taken
        elif found is not None and number % 7 == 0:
            lanes.drop(entries.pop(key))
            assert lanes.slots <= 2 * len(entries) + 64
        assert sum(lanes.depths) == len(entries)


@given(st.lists(st.tuples(st.integers(0, 5), st.floats(min_value=0, max_value=10), st.booleans()), max_size=30))
def test_replaced_delayed_adds_do_not_accumulate(plans: list[tuple[int, float, bool]]) -> None:
    delayed, wanted = DelayedAdds[int](), dict[int, float]()
    for number, (key, seconds, is_dropped) in enumerate(plans * 20):
        now = number / 20
        for one in delayed.due(now, 1_000):
            assert delayed.claim(one)
            assert wanted.pop(one.key) == one.due <= now
        delayed.schedule(key, now + seconds, RESYNC, "test")
        wanted[key] = now + seconds
        if is_dropped:
            delayed.drop(key)
            del wanted[key]
        assert len(delayed) == len(wanted)
        assert delayed.slots <= 2 * len(wanted) + 64
        assert delayed.next_due <= min(wanted.values(), default=delayed.next_due)
