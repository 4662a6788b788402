"""Delays double up to the longest one; jitter takes away up to half; a service may request a longer one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.core.backoff import Backoff, exponential_delay


def test_delays_double_until_the_longest() -> None:
    backoff = Backoff(first=0.25, longest=1.5, jitter=lambda: 1.0)

    assert [backoff.next() for _ in range(5)] == [0.25, 0.5, 1.0, 1.5, 1.5]


def test_a_success_starts_again_with_the_first_delay() -> None:
    backoff = Backoff(first=0.25, longest=1.5, jitter=lambda: 1.0, failures=7)
    was_new = backoff.is_new

    backoff.reset()

    assert (was_new, backoff.is_new, backoff.next()) == (False, True, 0.25)


@pytest.mark.parametrize(("at_least", "expected"), [(None, 0.125), (0.0, 0.125), (9.0, 9.0)])
def test_a_longer_delay_may_be_asked_for(at_least: float | None, expected: float) -> None:
    assert Backoff(first=0.25, longest=1.5, jitter=lambda: 0.0).next(at_least) == expected


@given(st.integers(0, 10**6), st.floats(0.0, 1.0))
def test_jitter_takes_away_at_most_half(failures: int, jitter: float) -> None:
    whole = exponential_delay(failures, 0.25, 120.0)

    delay = Backoff(first=0.25, longest=120.0, jitter=lambda: jitter, failures=failures).next()

    assert whole / 2 <= delay <= whole <= 120.0
