"""Laws of fair queueing, for any callers in any order over any number of queues."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.clients.ratelimit.fair_queue import FailedShare, FairQueue, RoundRobin, next_queue

pytestmark = pytest.mark.laws

QUEUES = 3


@dataclass(frozen=True)
class QueuedCall:
    """A caller queues a call."""

    queue: int
    key: int
    failed: bool


@dataclass(frozen=True)
class ServeOne:
    """One call can be served from these queues."""

    queues: frozenset[int]


@dataclass(frozen=True)
class Served:
    """A served call, and whether healthy callers waited: in any queue, or in the same queue."""

    call: QueuedCall
    healthy_waited: bool
    healthy_waited_here: bool


@dataclass
class Simulation:
    """The queues of one service, and the calls that were served."""

    queues: list[FairQueue[QueuedCall]] = field(default_factory=lambda: [FairQueue() for _ in range(QUEUES)])
    share: FailedShare = field(default_factory=FailedShare)
    tickets: int = 0
    waiting: list[QueuedCall] = field(default_factory=list)
    served: list[Served] = field(default_factory=list)

    def queue(self, call: QueuedCall) -> None:
        self.tickets += 1
        self.waiting.append(call)
        self.queues[call.queue].callers(failed=call.failed).add(call.key, call, self.tickets)

    def serve(self, one: ServeOne) -> QueuedCall | None:
        """The call that is served; None when none waits."""
        free = [self.queues[number] for number in one.queues]
        found = next_queue(free, self.share, room_for_failed=True)
        if found is None:
            assert not any(free)
            return None
        queue, callers = found
        healthy, healthy_here = any(other.healthy for other in free), bool(queue.healthy)
        self.tickets += 1
        call = callers.take(self.tickets)
        for share in (queue.share, self.share):
            share.served(failed=call.failed)
        self.waiting.remove(call)
        self.served.append(Served(call, healthy, healthy_here))
        return call


QUEUED_CALLS = st.builds(QueuedCall, st.integers(0, QUEUES - 1), st.integers(0, 4), st.booleans())
FROM_ALL = ServeOne(frozenset(range(QUEUES)))
SERVE_ONE = st.builds(ServeOne, st.frozensets(st.integers(0, QUEUES - 1)))
Script = list[QueuedCall | ServeOne]
SCRIPTS: st.SearchStrategy[Script] = st.lists(QUEUED_CALLS | SERVE_ONE, max_size=60)
SCRIPTS_FROM_ALL: st.SearchStrategy[Script] = st.lists(QUEUED_CALLS | st.just(FROM_ALL), max_size=60)


def simulate(script: Script) -> Simulation:
    simulation = Simulation()
    for part in [*script, *[FROM_ALL] * len(script)]:
        if isinstance(part, QueuedCall):
            simulation.queue(part)
        else:
            simulation.serve(part)
    return simulation


@given(SCRIPTS)
def test_every_caller_gets_exactly_the_calls_that_it_queued(script: Script) -> None:
    queued = sorted((call for call in script if isinstance(call, QueuedCall)), key=repr)

    assert sorted((one.call for one in simulate(script).served), key=repr) == queued


@given(SCRIPTS)
def test_in_a_queue_a_caller_waits_for_at_most_one_call_of_each_caller_of_its_class(script: Script) -> None:
    for group in product(range(QUEUES), (True, False)):
        _check_waits(script, partial(_is_in, group))


@given(SCRIPTS_FROM_ALL)
def test_over_all_queues_a_healthy_caller_waits_for_at_most_one_call_of_each_healthy_caller(script: Script) -> None:
    _check_waits(script, lambda call: not call.failed)


def _is_in(group: tuple[int, bool], call: QueuedCall) -> bool:
    return (call.queue, call.failed) == group


def _check_waits(script: Script, belongs: Callable[[QueuedCall], bool]) -> None:
    simulation = Simulation()
    # For each waiting call: how many calls of its group may be served before it, itself included.
    calls_left: dict[QueuedCall, int] = {}
    for part in [*script, *[FROM_ALL] * len(script)]:
        served_call = simulation.serve(part) if isinstance(part, ServeOne) else None
        if isinstance(part, QueuedCall):
            simulation.queue(part)
        if served_call is not None and belongs(served_call):
            calls_left = {waiting: left - 1 for waiting, left in calls_left.items()}
            assert calls_left.pop(served_call) >= 0
        for waiting in simulation.waiting:
            if belongs(waiting):
                calls_left.setdefault(waiting, len({one for one in simulation.waiting if belongs(one)}))

    assert calls_left == {}


@given(SCRIPTS)
def test_while_healthy_callers_wait_failed_ones_get_at_most_a_quarter_of_the_calls(script: Script) -> None:
    under_contention = [one for one in simulate(script).served if one.healthy_waited]

    _at_most_a_quarter(under_contention)


@given(SCRIPTS)
def test_while_healthy_callers_wait_in_a_queue_failed_ones_get_at_most_a_quarter_of_its_calls(
    script: Script,
) -> None:
    served = simulate(script).served
    for queue in range(QUEUES):
        _at_most_a_quarter([one for one in served if one.call.queue == queue and one.healthy_waited_here])


def _at_most_a_quarter(served: list[Served]) -> None:
    for first in range(len(served)):
        for last in range(first, len(served)):
            window = served[first : last + 1]
            assert sum(one.call.failed for one in window) <= (len(window) + 3) // 4


def crowded() -> Simulation:
    """Two hundred callers of each class in each queue."""
    simulation = Simulation()
    for number in range(200 * QUEUES):
        simulation.queue(QueuedCall(number % QUEUES, number, failed=False))
        simulation.queue(QueuedCall(number % QUEUES, number, failed=True))
    return simulation


def test_while_all_wait_failed_callers_get_a_quarter_in_the_long_run() -> None:
    simulation = crowded()
    for _ in range(400):
        simulation.serve(FROM_ALL)

    assert 97 <= sum(one.call.failed for one in simulation.served) <= 100


def test_each_of_two_queues_served_alternately_gives_failed_callers_at_most_a_quarter_and_some() -> None:
    simulation = crowded()
    for number in range(80):
        simulation.serve(ServeOne(frozenset([number % 2])))
    failed = [sum(one.call.failed for one in simulation.served if one.call.queue == queue) for queue in (0, 1)]

    assert 5 <= min(failed) <= max(failed) <= 10


def test_without_room_for_failed_callers_healthy_ones_are_served() -> None:
    simulation = Simulation()
    for number in range(8):
        simulation.queue(QueuedCall(0, number, failed=number % 2 == 0))
    keys = []
    while found := next_queue(simulation.queues, simulation.share, room_for_failed=False):
        keys.append(found[1].take(0).key)

    assert keys == [1, 3, 5, 7]


def test_a_removed_call_costs_the_next_call_of_its_caller_nothing() -> None:
    callers: RoundRobin[str] = RoundRobin()
    for ticket, (key, call) in enumerate([("a", "a1"), ("b", "b1"), ("a", "a2")]):
        callers.add(key, call, ticket)
    callers.remove("a", "a1")
    callers.remove("a", "not there")
    callers.remove("c", "not there")

    assert [callers.take(9), callers.take(9), len(callers)] == ["a2", "b1", 0]
