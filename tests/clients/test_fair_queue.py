"""Whose turn it is: for any callers, in any order, over any number of queues."""

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
class Ask:
    """A caller waits for a turn."""

    queue: int
    key: int
    failed: bool


@dataclass(frozen=True)
class Give:
    """One call can be served from these queues."""

    queues: frozenset[int]


@dataclass(frozen=True)
class Given:
    """A turn, and whether one whose last step had not failed waited for it: anywhere, or in the same queue."""

    ask: Ask
    others_waited: bool
    others_waited_here: bool


@dataclass
class Office:
    """Queues before one counter, and what happened there."""

    queues: list[FairQueue[Ask]] = field(default_factory=lambda: [FairQueue() for _ in range(QUEUES)])
    share: FailedShare = field(default_factory=FailedShare)
    tickets: int = 0
    waiting: list[Ask] = field(default_factory=list)
    given: list[Given] = field(default_factory=list)

    def ask(self, ask: Ask) -> None:
        self.tickets += 1
        self.waiting.append(ask)
        self.queues[ask.queue].callers(failed=ask.failed).add(ask.key, ask, self.tickets)

    def give(self, turn: Give) -> Ask | None:
        """The call that is served; None when none waits."""
        free = [self.queues[number] for number in turn.queues]
        found = next_queue(free, self.share, room_for_failed=True)
        if found is None:
            assert not any(free)
            return None
        queue, rotation = found
        healthy, healthy_here = any(one.healthy for one in free), bool(queue.healthy)
        self.tickets += 1
        ask = rotation.take(self.tickets)
        for share in (queue.share, self.share):
            share.served(failed=ask.failed)
        self.waiting.remove(ask)
        self.given.append(Given(ask, healthy, healthy_here))
        return ask


ASKS = st.builds(Ask, st.integers(0, QUEUES - 1), st.integers(0, 4), st.booleans())
TO_ALL = Give(frozenset(range(QUEUES)))
GIVES = st.builds(Give, st.frozensets(st.integers(0, QUEUES - 1)))
Story = list[Ask | Give]
STORIES: st.SearchStrategy[Story] = st.lists(ASKS | GIVES, max_size=60)
STORIES_FOR_ALL: st.SearchStrategy[Story] = st.lists(ASKS | st.just(TO_ALL), max_size=60)


def told(story: Story) -> Office:
    office = Office()
    for part in [*story, *[TO_ALL] * len(story)]:
        if isinstance(part, Ask):
            office.ask(part)
        else:
            office.give(part)
    return office


@given(STORIES)
def test_every_caller_gets_exactly_the_calls_that_it_queued(story: Story) -> None:
    asked = sorted((ask for ask in story if isinstance(ask, Ask)), key=repr)

    assert sorted((one.ask for one in told(story).given), key=repr) == asked


@given(STORIES)
def test_in_a_queue_a_caller_waits_for_at_most_one_call_of_each_caller_of_its_class(story: Story) -> None:
    for group in product(range(QUEUES), (True, False)):
        _take_turns(story, partial(_is_in, group))


@given(STORIES_FOR_ALL)
def test_over_all_queues_a_healthy_caller_waits_for_at_most_one_call_of_each_healthy_caller(story: Story) -> None:
    _take_turns(story, lambda ask: not ask.failed)


def _is_in(group: tuple[int, bool], ask: Ask) -> bool:
    return (ask.queue, ask.failed) == group


def _take_turns(story: Story, belongs: Callable[[Ask], bool]) -> None:
    office = Office()
    # For each that waits: how many turns of its group it may have to wait for, its own included.
    patience: dict[Ask, int] = {}
    for part in [*story, *[TO_ALL] * len(story)]:
        turn = office.give(part) if isinstance(part, Give) else None
        if isinstance(part, Ask):
            office.ask(part)
        if turn is not None and belongs(turn):
            patience = {who: left - 1 for who, left in patience.items()}
            assert patience.pop(turn) >= 0
        for who in office.waiting:
            if belongs(who):
                patience.setdefault(who, len({one for one in office.waiting if belongs(one)}))

    assert patience == {}


@given(STORIES)
def test_while_healthy_callers_wait_failed_ones_get_at_most_a_quarter_of_the_calls(story: Story) -> None:
    contested = [one for one in told(story).given if one.others_waited]

    _at_most_a_quarter(contested)


@given(STORIES)
def test_while_healthy_callers_wait_in_a_queue_failed_ones_get_at_most_a_quarter_of_its_calls(
    story: Story,
) -> None:
    given = told(story).given
    for queue in range(QUEUES):
        _at_most_a_quarter([one for one in given if one.ask.queue == queue and one.others_waited_here])


def _at_most_a_quarter(turns: list[Given]) -> None:
    for first in range(len(turns)):
        for last in range(first, len(turns)):
            window = turns[first : last + 1]
            assert sum(one.ask.failed for one in window) <= (len(window) + 3) // 4


def crowd() -> Office:
    """Two hundred of each class in each queue."""
    office = Office()
    for number in range(200 * QUEUES):
        office.ask(Ask(number % QUEUES, number, failed=False))
        office.ask(Ask(number % QUEUES, number, failed=True))
    return office


def test_while_all_wait_failed_callers_get_a_quarter_in_the_long_run() -> None:
    office = crowd()
    for _ in range(400):
        office.give(TO_ALL)

    assert 97 <= sum(one.ask.failed for one in office.given) <= 100


def test_each_of_two_queues_served_alternately_gives_failed_callers_at_most_a_quarter_and_some() -> None:
    office = crowd()
    for turn in range(80):
        office.give(Give(frozenset([turn % 2])))
    failed = [sum(one.ask.failed for one in office.given if one.ask.queue == queue) for queue in (0, 1)]

    assert 5 <= min(failed) <= max(failed) <= 10


def test_without_room_for_failed_callers_healthy_ones_are_served() -> None:
    office = Office()
    for number in range(8):
        office.ask(Ask(0, number, failed=number % 2 == 0))
    keys = []
    while found := next_queue(office.queues, office.share, room_for_failed=False):
        keys.append(found[1].take(0).key)

    assert keys == [1, 3, 5, 7]


def test_a_removed_call_costs_the_next_call_of_its_caller_nothing() -> None:
    line: RoundRobin[str] = RoundRobin()
    for ticket, (key, call) in enumerate([("a", "a1"), ("b", "b1"), ("a", "a2")]):
        line.add(key, call, ticket)
    line.remove("a", "a1")
    line.remove("a", "not there")
    line.remove("c", "not there")

    assert [line.take(9), line.take(9), len(line)] == ["a2", "b1", 0]
