"""The AIMD token bucket: what it never exceeds, how its rate rises and falls."""

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.clients.ratelimit.token_bucket import MAX_RETRY_AFTER, AimdSettings, AimdTokenBucket

pytestmark = pytest.mark.laws

SETTINGS = AimdSettings(start=10, burst=5, ceiling=40, growth=2)


@st.composite
def aimd_settings(draw: st.DrawFn) -> AimdSettings:
    floor, start, ceiling = sorted(draw(st.tuples(*[st.floats(0.25, 500)] * 3)))
    return AimdSettings(start, draw(st.integers(1, 50)), ceiling, draw(st.floats(0.01, 100)), floor)


# Seconds without calls.
Idle: TypeAlias = float


@dataclass(frozen=True)
class Calls:
    """Calls one after the other, each as soon as there is a token, and each answered after `seconds`."""

    count: int
    seconds: float


@dataclass(frozen=True)
class Throttle:
    """The last call was throttled, with this Retry-After."""

    after: float | None


Step: TypeAlias = Idle | Calls | Throttle
STEPS: st.SearchStrategy[list[Step]] = st.lists(
    st.floats(0, 100)
    | st.builds(Calls, st.integers(1, 12), st.floats(0, 1))
    | st.builds(Throttle, st.none() | st.floats(0, 2 * MAX_RETRY_AFTER)),
    max_size=8,
)


@dataclass
class Simulation:
    """A bucket, when each call was made, and the rates with the times from which they held."""

    rate: AimdTokenBucket
    now: float = 0.0
    calls: list[float] = field(default_factory=list)
    rates: list[tuple[float, float]] = field(default_factory=list)
    pauses: list[tuple[float, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.record_rate()

    def record_rate(self) -> None:
        self.rates.append((self.now, self.rate.per_second))

    def play(self, step: Step) -> None:
        match step:
            case float(seconds):
                self.now += seconds
            case Calls(count, seconds):
                for _ in range(count):
                    self.call(seconds)
            case Throttle(after):
                self.rate.throttled(self.calls[-1] if self.calls else self.now, self.now, after)
                self.pauses.append((self.now, self.now + min(after or 0.0, MAX_RETRY_AFTER)))
        self.record_rate()

    def call(self, seconds: float) -> None:
        while (wait := self.rate.seconds_until_token(self.now)) > 0.0:
            assert not self.rate.take(self.now)
            self.now += wait
        assert self.rate.take(self.now)
        self.calls.append(self.now)
        self.now += seconds
        self.rate.succeeded(self.calls[-1], self.now)
        self.record_rate()

    def allowed(self, since: float, until: float) -> float:
        """The calls that the rates from `since` to `until` add up to."""
        spans = pairwise([*self.rates, (max(until, self.now), 0.0)])
        return sum(rate * max(min(end, until) - max(start, since), 0.0) for (start, rate), (end, _) in spans)


def simulate(settings: AimdSettings, steps: list[Step]) -> Simulation:
    simulation = Simulation(AimdTokenBucket(settings))
    for step in steps:
        simulation.play(step)
    return simulation


@given(aimd_settings(), STEPS)
def test_no_window_has_more_calls_than_the_rate_in_it_and_one_burst(settings: AimdSettings, steps: list[Step]) -> None:
    simulation = simulate(settings, steps)

    for first, since in enumerate(simulation.calls):
        for last, until in enumerate(simulation.calls[first:], first):
            assert last - first + 1 <= simulation.allowed(since, until) + settings.burst + 1e-3


@given(aimd_settings(), STEPS)
def test_no_call_is_made_before_retry_after(settings: AimdSettings, steps: list[Step]) -> None:
    simulation = simulate(settings, steps)

    assert not [at for at in simulation.calls for since, until in simulation.pauses if since < at < until]


@given(aimd_settings(), STEPS)
def test_the_rate_stays_between_floor_and_ceiling(settings: AimdSettings, steps: list[Step]) -> None:
    simulation = simulate(settings, steps)

    assert all(settings.floor <= rate <= settings.ceiling for _, rate in simulation.rates)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20), st.data())
def test_throttled_calls_in_flight_together_lower_the_rate_once(starts: list[float], data: st.DataObject) -> None:
    rate = AimdTokenBucket(SETTINGS)
    ends = sorted(data.draw(st.floats(1, 2)) for _ in starts)
    for start, end in zip(starts, ends, strict=True):
        rate.throttled(start, end, None)

    assert rate.per_second == 5.0


def test_a_call_throttled_after_the_decrease_lowers_the_rate_again() -> None:
    rate = AimdTokenBucket(SETTINGS)
    rate.throttled(0.0, 1.0, None)
    rate.throttled(1.5, 2.0, None)

    assert rate.per_second == 2.5


def test_a_decrease_empties_the_bucket() -> None:
    rate = AimdTokenBucket(SETTINGS)
    rate.throttled(0.0, 1.0, None)

    assert rate.seconds_until_token(1.0) == 0.2


def test_the_rate_rises_linearly_with_demand() -> None:
    simulation = simulate(SETTINGS, [Calls(5, 0.0), Calls(50, 0.0)])
    seconds = simulation.now

    assert simulation.rate.per_second == pytest.approx(10 + 2 * seconds, rel=0.05)


def test_a_rate_that_is_not_used_up_does_not_rise() -> None:
    steps: list[Step] = [Calls(1, 0.0), 1.0]
    simulation = simulate(SETTINGS, steps * 20)

    assert simulation.rate.per_second == 10


def test_a_success_of_a_call_from_before_the_decrease_does_not_raise_the_rate() -> None:
    rate = AimdTokenBucket(SETTINGS)
    rate.throttled(0.0, 1.0, None)
    rate.succeeded(0.5, 1.5)

    assert rate.per_second == 5.0


def test_one_success_at_most_doubles_a_low_rate() -> None:
    rate = AimdTokenBucket(AimdSettings(start=0.5, burst=1, ceiling=1000, growth=100))
    assert rate.take(0.0)
    rate.succeeded(0.0, 0.1)

    assert rate.per_second == 1.0


def test_tokens_from_before_an_increase_are_refilled_at_the_old_rate() -> None:
    rate = AimdTokenBucket(AimdSettings(start=0.5, burst=1, ceiling=1000, growth=100))
    assert rate.take(0.0)
    rate.succeeded(0.0, 1.0)

    assert (rate.per_second, rate.seconds_until_token(1.0)) == (1.0, 0.5)


def test_after_a_pause_one_call_goes_and_the_next_ones_at_the_rate() -> None:
    rate = AimdTokenBucket(SETTINGS)
    rate.throttled(0.0, 1.0, 7.0)

    assert rate.seconds_until_token(1.0) == 7.0
    assert (rate.take(7.9), rate.take(8.0), rate.take(8.0)) == (False, True, False)
    assert rate.seconds_until_token(8.0) == 0.2


def test_a_shorter_retry_after_does_not_shorten_a_pause() -> None:
    rate = AimdTokenBucket(SETTINGS)
    rate.throttled(0.0, 1.0, 7.0)
    rate.throttled(0.0, 2.0, 1.0)

    assert rate.pause_left(2.0) == 6.0


@pytest.mark.parametrize("after", [1e9, float("inf")])
def test_retry_after_is_honoured_for_an_hour_at_most(after: float) -> None:
    rate = AimdTokenBucket(SETTINGS)
    rate.throttled(0.0, 0.0, after)

    assert rate.pause_left(0.0) == 3600.0


def test_a_token_given_back_can_be_taken_again() -> None:
    rate = AimdTokenBucket(SETTINGS)
    taken = [rate.take(0.0) for _ in range(6)]
    rate.give_back()

    assert taken == [True] * 5 + [False]
    assert (rate.take(0.0), rate.take(0.0)) == (True, False)
