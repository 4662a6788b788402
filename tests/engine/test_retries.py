"""How long to wait after a step that stopped."""

from hypothesis import given
from hypothesis import strategies as st

from setpoint.core.backoff import Backoff
from setpoint.engine.requeue import RequeueDelays, error_backoff, poll_backoff
from setpoint.errors import OperationRunning, RemoteConflict, RemoteRefused, RemoteUnavailable, WriteConflict


def _delays() -> RequeueDelays:
    """Delays at their longest."""
    return RequeueDelays(error_backoff(lambda: 1.0), poll_backoff(lambda: 1.0))


def _after(failures: int, backoff: Backoff) -> Backoff:
    backoff.failures = failures
    return backoff


@given(st.integers(min_value=0, max_value=10_000), st.floats(min_value=0, max_value=1))
def test_a_delay_is_between_an_eighth_of_a_second_and_two_minutes(failures: int, jitter: float) -> None:
    assert 0.125 <= _after(failures, error_backoff(lambda: jitter)).next() <= 120.0


@given(st.floats(min_value=0, max_value=10_000), st.integers(min_value=0, max_value=100))
def test_no_retry_comes_before_the_service_asks_for_it(requested: float, failures: int) -> None:
    assert _after(failures, error_backoff()).next(requested) >= requested


def test_delays_double_up_to_two_minutes() -> None:
    backoff = error_backoff(lambda: 1.0)

    delays = [backoff.next() for _ in range(12)]

    assert delays == [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 120.0, 120.0, 120.0]
    assert error_backoff(lambda: 0.0).next() == 0.125


def test_an_operation_is_asked_about_at_a_pace_of_its_own() -> None:
    delays = _delays()

    assert [delays.after(OperationRunning("at work")) for _ in range(6)] == [1.0, 2.0, 4.0, 8.0, 15.0, 15.0]
    assert delays.after(RemoteRefused("no")) == 0.25


def test_an_operation_that_runs_makes_up_for_earlier_failures() -> None:
    delays = _delays()
    for _ in range(5):
        delays.after(RemoteUnavailable("down"))
    delays.after(OperationRunning("at work"))

    assert delays.after(RemoteUnavailable("down")) == 0.25


def test_a_conflict_is_met_at_once_the_first_time_and_not_raced() -> None:
    delays = _delays()

    assert [delays.after(error) for error in (WriteConflict("a"), RemoteConflict("b"), WriteConflict("c"))] == [
        0.0,
        0.5,
        1.0,
    ]


def test_what_a_service_asks_for_counts_more() -> None:
    assert _delays().after(RemoteUnavailable("busy", after=30.0)) == 30.0
    assert _delays().after(OperationRunning("busy", after=30.0)) == 30.0
