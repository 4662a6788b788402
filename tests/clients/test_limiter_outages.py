"""The rate limiter of a service that is down: calls are rejected at once, and one at a time is a probe."""

import asyncio

import pytest

from setpoint.clients.ratelimit.circuit_breaker import BreakerState, Throttled, Unavailable
from setpoint.clients.ratelimit.fair_queue import Caller
from setpoint.clients.ratelimit.token_bucket import AimdSettings
from setpoint.errors import RemoteUnavailable
from tests.clients.limited_service import LimitedService
from tests.clients.manual_time import run

DOWN = RemoteUnavailable("cannot connect")


async def outage(service: LimitedService, callers: int = 20) -> None:
    """Twenty calls that get no answer."""
    calls = (service.call(Caller(number % callers), outcome=DOWN) for number in range(20))
    await asyncio.gather(*calls, return_exceptions=True)


def test_calls_to_a_service_that_is_down_are_rejected_at_once() -> None:
    async def main() -> tuple[str, float | None, int]:
        service = LimitedService()
        await outage(service)
        with pytest.raises(RemoteUnavailable) as caught:
            await service.call(Caller("a"))
        return str(caught.value), caught.value.after, len(service.started)

    message = (
        "GET /x: not sent: https://sql.test has not answered any call for a while; "
        "now and then one call is sent to see, and all are when it answers again"
    )
    assert run(main()) == (message, 1.0, 20)


def test_waiting_callers_are_rejected_when_the_breaker_opens() -> None:
    async def main() -> tuple[int, int, BreakerState]:
        service = LimitedService(AimdSettings(start=1, burst=20, ceiling=1, growth=1))
        calls = [service.call(Caller(number), 0.5, DOWN) for number in range(100)]
        results = await asyncio.gather(*calls, return_exceptions=True)
        return sum(one is not DOWN for one in results), service.waiting, service.breaker

    assert run(main()) == (80, 0, BreakerState.OPEN)


def test_one_caller_alone_never_opens_the_breaker() -> None:
    async def main() -> BreakerState:
        service = LimitedService()
        for _ in range(100):
            await outage(service, callers=1)
        return service.breaker

    assert run(main()) is BreakerState.CLOSED


def test_one_probe_at_a_time_and_its_response_closes_the_breaker() -> None:
    async def main() -> tuple[list[str], BreakerState]:
        service = LimitedService()
        await outage(service)
        await asyncio.sleep(1.0)
        seen = await asyncio.gather(*(service.call(Caller(key), 0.1) for key in "abc"), return_exceptions=True)
        seen += await asyncio.gather(*(service.call(Caller(key)) for key in "abc"))
        return [type(one).__name__ for one in seen], service.breaker

    rejected = "RemoteUnavailable"
    assert run(main()) == (["NoneType", rejected, rejected, "NoneType", "NoneType", "NoneType"], BreakerState.CLOSED)


def test_a_failed_probe_doubles_the_pause() -> None:
    async def main() -> float | None:
        service = LimitedService()
        await outage(service)
        await asyncio.sleep(1.0)
        with pytest.raises(RemoteUnavailable):
            await service.call(Caller("a"), outcome=DOWN)
        with pytest.raises(RemoteUnavailable) as caught:
            await service.call(Caller("b"))
        return caught.value.after

    assert run(main()) == 2.0


@pytest.mark.parametrize(("cancelled_after", "was_in_flight"), [(0.5, 0), (1.5, 1)])
def test_after_a_cancelled_probe_the_next_call_is_one(cancelled_after: float, was_in_flight: int) -> None:
    async def main() -> tuple[int, BreakerState]:
        service = LimitedService(AimdSettings(start=0.5, burst=20, ceiling=0.5, growth=1))
        await outage(service)
        await asyncio.sleep(1.0)
        # It waits for a second, and then for its answer.
        probe = asyncio.create_task(service.call(Caller("a"), 60.0))
        await asyncio.sleep(cancelled_after)
        in_flight_then = service.in_flight
        probe.cancel()
        await asyncio.wait([probe])
        await service.call(Caller("b"))
        return in_flight_then, service.breaker

    assert run(main()) == (was_in_flight, BreakerState.CLOSED)


def test_a_probe_rejected_by_a_pause_leaves_the_probe_to_another_project() -> None:
    async def main() -> BreakerState:
        service = LimitedService()
        await asyncio.gather(*(service.call(Caller(number), outcome=Unavailable(30.0)) for number in range(20)))
        await asyncio.sleep(1.0)
        with pytest.raises(RemoteUnavailable, match="asked for a pause"):
            await service.call(Caller("a"))
        await service.call(Caller("a"), project="q")
        return service.breaker

    assert run(main()) is BreakerState.CLOSED


def test_a_service_that_only_throttles_is_not_down() -> None:
    async def main() -> BreakerState:
        service = LimitedService()
        for _ in range(10):
            await asyncio.gather(*(service.call(Caller(number), outcome=Throttled()) for number in range(20)))
        return service.breaker

    assert run(main()) is BreakerState.CLOSED
