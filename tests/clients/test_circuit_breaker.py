"""The circuit breaker: what opens it, what does not, and how it closes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.clients.ratelimit.circuit_breaker import BreakerState, CircuitBreaker

CALLERS = [f"caller-{number}" for number in range(5)]


def breaker(jitter: float = 1.0) -> CircuitBreaker:
    return CircuitBreaker(lambda: jitter)


def opened(at: float = 0.0) -> CircuitBreaker:
    """A breaker that has just opened; the first probe may go a second later."""
    one = breaker()
    opens = [one.unanswered(at, CALLERS[number % 5], is_probe=False) for number in range(20)]
    assert opens == [False] * 19 + [True]
    return one


def test_opens_after_twenty_unanswered_calls_of_several_callers() -> None:
    one = opened()

    assert (one.state, one.openings, one.seconds_until_probe(0.0)) == (BreakerState.OPEN, 1, 1.0)


@given(st.lists(st.tuples(st.floats(0, 1), st.sampled_from(CALLERS[:4])), max_size=300))
def test_fewer_than_five_callers_never_open_it(calls: list[tuple[float, str]]) -> None:
    one, now = breaker(), 0.0
    for seconds, key in calls:
        now += seconds
        one.unanswered(now, key, is_probe=False)

    assert one.state is BreakerState.CLOSED


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 50)), max_size=300))
def test_it_never_opens_within_ten_seconds_of_an_answer(calls: list[tuple[float, int]]) -> None:
    one, now, answered_at = breaker(), 0.0, -10.0
    for seconds, key in calls:
        now += seconds
        if key == 0:
            one.responded(now)
            answered_at = now
        elif one.unanswered(now, key, is_probe=False):
            assert now - answered_at >= 10.0
            return


def test_calls_that_are_far_apart_do_not_open_it() -> None:
    one = breaker()
    opens = [one.unanswered(number * 1.0, number, is_probe=False) for number in range(100)]

    assert not any(opens)


def test_opens_ten_seconds_after_the_last_answer() -> None:
    one = breaker()
    one.responded(0.0)
    opens = [one.unanswered(number / 4, number, is_probe=False) for number in range(41)]

    assert opens == [False] * 40 + [True]


def test_an_answered_probe_closes_it() -> None:
    one = opened()
    one.begin_probe()
    probing = one.state
    one.responded(1.5)

    assert (probing, one.state, one.seconds_until_probe(1.5)) == (BreakerState.HALF_OPEN, BreakerState.CLOSED, 0.0)


def test_any_answer_closes_it() -> None:
    one = opened()
    one.responded(0.1)

    assert one.state is BreakerState.CLOSED


def test_each_failed_probe_doubles_the_pause_up_to_a_minute() -> None:
    one, now, pauses = opened(), 0.0, []
    for _ in range(8):
        pauses.append(one.seconds_until_probe(now))
        now += pauses[-1]
        one.begin_probe()
        one.unanswered(now, "any", is_probe=True)

    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60]


def test_the_pause_is_reset_when_it_closes() -> None:
    one = opened()
    one.begin_probe()
    one.unanswered(1.0, "any", is_probe=True)
    one.responded(3.0)
    for number in range(20):
        one.unanswered(13.0, number, is_probe=False)

    assert one.seconds_until_probe(13.0) == 1.0


@pytest.mark.parametrize(("jitter", "seconds"), [(0.0, 0.5), (0.5, 0.75), (1.0, 1.0)])
def test_probes_are_spread_by_jitter(jitter: float, seconds: float) -> None:
    one = breaker(jitter)
    for number in range(20):
        one.unanswered(0.0, number, is_probe=False)

    assert one.seconds_until_probe(0.0) == seconds


def test_after_an_abandoned_probe_the_next_one_may_go_at_once() -> None:
    one = opened()
    one.begin_probe()
    one.abandon_probe()

    assert (one.state, one.seconds_until_probe(1.0)) == (BreakerState.OPEN, 0.0)


def test_failures_of_calls_from_before_it_opened_are_ignored() -> None:
    one = opened()
    for number in range(100):
        one.unanswered(0.5, number, is_probe=False)

    assert (one.openings, one.seconds_until_probe(0.5)) == (1, 0.5)
