"""Laws of the rate limiter, for any calls, outcomes and cancellations."""

import asyncio
from dataclasses import dataclass
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.clients.ratelimit.circuit_breaker import RESPONDED, CallOutcome, Throttled, Unavailable
from setpoint.clients.ratelimit.fair_queue import Caller
from setpoint.clients.ratelimit.token_bucket import AimdSettings
from tests.clients.limited_service import FAST, ONE_A_SECOND, LimitedService
from tests.clients.manual_time import run

pytestmark = pytest.mark.laws


@dataclass(frozen=True)
class PlannedCall:
    """A call: when it is made, by which caller, how long it takes, its outcome, and when it is cancelled."""

    at: float
    caller: Caller
    project: str
    seconds: float
    outcome: CallOutcome
    cancelled_after: float | None


OUTCOMES = st.sampled_from([RESPONDED, Throttled(), Throttled(3.0), Unavailable(), Unavailable(2.0)])
# Halves of a second, so that many events coincide.
HALVES = st.integers(0, 8).map(lambda half: half / 2)
CALLS = st.lists(
    st.builds(
        PlannedCall,
        HALVES,
        # Too few to open the breaker.
        st.builds(Caller, st.integers(0, 3), failed=st.booleans()),
        st.sampled_from(["p", "q"]),
        HALVES,
        OUTCOMES,
        st.none() | HALVES,
    ),
    max_size=40,
)
SETTINGS = st.sampled_from([FAST, ONE_A_SECOND, AimdSettings(start=4, burst=2, ceiling=8, growth=4)])


async def make(service: LimitedService, one: PlannedCall) -> bool:
    """Makes the call; whether it was not cancelled."""
    await asyncio.sleep(one.at)
    try:
        async with asyncio.timeout(one.cancelled_after):
            await service.call(one.caller, one.seconds, one.outcome, one.project)
    except TimeoutError:
        return False
    return True


@given(CALLS, SETTINGS, st.integers(1, 4))
def test_whatever_is_cancelled_no_caller_waits_for_ever_and_every_slot_is_released(
    calls_to_make: list[PlannedCall], settings: AimdSettings, max_in_flight: int
) -> None:
    async def main() -> tuple[LimitedService, list[bool], int]:
        service = LimitedService(settings, max_in_flight)
        done = await asyncio.gather(*(make(service, one) for one in calls_to_make))
        most, service.max_concurrent, service.settings = service.max_concurrent, 0, FAST
        calls = (service.call(Caller(number), seconds=1.0, project="new") for number in range(max_in_flight))
        await asyncio.gather(*calls)
        return service, done, most

    service, done, most = run(main())
    figures = service.budgets.snapshot()

    assert all(was_done for one, was_done in zip(calls_to_make, done, strict=True) if one.cancelled_after is None)
    assert most <= max_in_flight
    assert service.max_concurrent == max_in_flight
    assert ([one.in_flight for one in figures.limiters], service.waiting) == ([0], 0)


@given(CALLS, SETTINGS, st.integers(1, 64))
def test_no_call_is_made_beyond_its_budget_or_during_a_pause(
    calls_to_make: list[PlannedCall], settings: AimdSettings, max_in_flight: int
) -> None:
    async def main() -> LimitedService:
        service = LimitedService(settings, max_in_flight)
        await asyncio.gather(*(make(service, one) for one in calls_to_make))
        return service

    service = run(main())

    for project, times in service.times.items():
        for (first, since), (last, until) in combinations(enumerate(times), 2):
            assert last - first + 1 <= (until - since) * settings.ceiling + settings.burst + 1e-3
        assert not [at for at in times for since, until in service.pauses[project] if since < at < until]


@given(CALLS, st.integers(1, 4))
def test_a_cancelled_call_that_was_not_made_costs_no_token(
    calls_to_make: list[PlannedCall], max_in_flight: int
) -> None:
    async def main() -> tuple[LimitedService, int]:
        service = LimitedService(ONE_A_SECOND, max_in_flight)
        await asyncio.gather(*(make(service, one) for one in calls_to_make))
        return service, sum(one.calls for one in service.budgets.snapshot().budgets)

    service, counted = run(main())

    assert counted == len(service.started)
