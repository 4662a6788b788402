"""The rate of calls: what it never exceeds, how it rises and falls."""

from dataclasses import dataclass, field
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.clients.ratelimit.token_bucket import MAX_RETRY_AFTER, AimdSettings, AimdTokenBucket

pytestmark = pytest.mark.laws

PACE = AimdSettings(start=10, burst=5, ceiling=40, growth=2)


@st.composite
def paces(draw: st.DrawFn) -> AimdSettings:
    floor, start, ceiling = sorted(draw(st.tuples(*[st.floats(0.25, 500)] * 3)))
    return AimdSettings(start, draw(st.integers(1, 50)), ceiling, draw(st.floats(0.01, 100)), floor)


@dataclass(frozen=True)
class Wait:
    """No calls for a while."""

    seconds: float


@dataclass(frozen=True)
class Calls:
    """As many calls as may go, as soon as they may go, each answered after a while."""

    count: int
    seconds: float


@dataclass(frozen=True)
class TooMany:
    """The last call was one too many."""

    after: float | None


STORIES = st.lists(
    st.builds(Wait, st.floats(0, 100))
    | st.builds(Calls, st.integers(1, 12), st.floats(0, 1))
    | st.builds(TooMany, st.none() | st.floats(0, 2 * MAX_RETRY_AFTER)),
    max_size=8,
)


@dataclass
class Told:
    """What happened: when each call went, and which rate held from when on."""

    rate: AimdTokenBucket
    now: float = 0.0
    went: list[float] = field(default_factory=list)
    rates: list[tuple[float, float]] = field(default_factory=list)
    pauses: list[tuple[float, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.record_event()

    def record_event(self) -> None:
        self.rates.append((self.now, self.rate.per_second))

    def tell(self, part: Wait | Calls | TooMany) -> None:
        match part:
            case Wait(seconds):
                self.now += seconds
            case Calls(count, seconds):
                for _ in range(count):
                    self.call(seconds)
            case TooMany(after):
                self.rate.throttled(self.went[-1] if self.went else self.now, self.now, after)
                self.pauses.append((self.now, self.now + min(after or 0.0, MAX_RETRY_AFTER)))
        self.record_event()

    def call(self, seconds: float) -> None:
        while (wait := self.rate.seconds_until_token(self.now)) > 0.0:
            assert not self.rate.take(self.now)
            self.now += wait
        assert self.rate.take(self.now)
        self.went.append(self.now)
        self.now += seconds
        self.rate.succeeded(self.went[-1], self.now)
        self.record_event()

    def allowed(self, since: float, until: float) -> float:
        """The calls that the rates from `since` to `until` add up to."""
        spans = pairwise([*self.rates, (max(until, self.now), 0.0)])
        return sum(rate * max(min(end, until) - max(start, since), 0.0) for (start, rate), (end, _) in spans)


def told(pace: AimdSettings, story: list[Wait | Calls | TooMany]) -> Told:
    result = Told(AimdTokenBucket(pace))
    for part in story:
        result.tell(part)
    return result


@given(paces(), STORIES)
def test_no_window_has_more_calls_than_the_rate_in_it_and_one_burst(
    pace: AimdSettings, story: list[Wait | Calls | TooMany]
) -> None:
    what = told(pace, story)

    for first, since in enumerate(what.went):
        for last, until in enumerate(what.went[first:], first):
            assert last - first + 1 <= what.allowed(since, until) + pace.burst + 1e-3


@given(paces(), STORIES)
def test_no_call_is_made_before_retry_after(
    pace: AimdSettings, story: list[Wait | Calls | TooMany]
) -> None:
    what = told(pace, story)

    assert not [went for went in what.went for since, until in what.pauses if since < went < until]


@given(paces(), STORIES)
def test_the_rate_stays_between_floor_and_ceiling(pace: AimdSettings, story: list[Wait | Calls | TooMany]) -> None:
    what = told(pace, story)

    assert all(pace.floor <= rate <= pace.ceiling for _, rate in what.rates)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20), st.data())
def test_throttled_calls_in_flight_together_lower_the_rate_once(starts: list[float], data: st.DataObject) -> None:
    rate = AimdTokenBucket(PACE)
    ends = sorted(data.draw(st.floats(1, 2)) for _ in starts)
    for start, end in zip(starts, ends, strict=True):
        rate.throttled(start, end, None)

    assert rate.per_second == 5.0


def test_a_call_throttled_after_the_decrease_lowers_the_rate_again() -> None:
    rate = AimdTokenBucket(PACE)
    rate.throttled(0.0, 1.0, None)
    rate.throttled(1.5, 2.0, None)

    assert rate.per_second == 2.5


def test_a_decrease_empties_the_bucket() -> None:
    rate = AimdTokenBucket(PACE)
    rate.throttled(0.0, 1.0, None)

    assert rate.seconds_until_token(1.0) == 0.2


def test_the_rate_rises_linearly_with_demand() -> None:
    what = told(PACE, [Calls(5, 0.0), Calls(50, 0.0)])
    seconds = what.now

    assert what.rate.per_second == pytest.approx(10 + 2 * seconds, rel=0.05)


def test_a_rate_that_is_not_used_up_does_not_rise() -> None:
    what = told(PACE, [Calls(1, 0.0), Wait(1.0)] * 20)

    assert what.rate.per_second == 10


def test_a_success_of_a_call_from_before_the_decrease_does_not_raise_the_rate() -> None:
    rate = AimdTokenBucket(PACE)
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
    rate = AimdTokenBucket(PACE)
    rate.throttled(0.0, 1.0, 7.0)

    assert rate.seconds_until_token(1.0) == 7.0
    assert (rate.take(7.9), rate.take(8.0), rate.take(8.0)) == (False, True, False)
    assert rate.seconds_until_token(8.0) == 0.2


def test_a_shorter_retry_after_does_not_shorten_a_pause() -> None:
    rate = AimdTokenBucket(PACE)
    rate.throttled(0.0, 1.0, 7.0)
    rate.throttled(0.0, 2.0, 1.0)

    assert rate.pause_left(2.0) == 6.0


@pytest.mark.parametrize("after", [1e9, float("inf")])
def test_retry_after_is_honoured_for_an_hour_at_most(after: float) -> None:
    rate = AimdTokenBucket(PACE)
    rate.throttled(0.0, 0.0, after)

    assert rate.pause_left(0.0) == 3600.0


def test_a_token_given_back_can_be_taken_again() -> None:
    rate = AimdTokenBucket(PACE)
    taken = [rate.take(0.0) for _ in range(6)]
    rate.give_back()

    assert taken == [True] * 5 + [False]
    assert (rate.take(0.0), rate.take(0.0)) == (True, False)
