"""The gate to a service that is down: calls fail at once, and one at a time goes to see."""

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


def test_calls_to_a_service_that_is_down_fail_at_once_and_say_so() -> None:
    async def main() -> tuple[str, float | None, int]:
        service = LimitedService()
        await outage(service)
        with pytest.raises(RemoteUnavailable) as caught:
            await service.call(Caller("a"))
        return str(caught.value), caught.value.after, len(service.begun)

    told = (
        "GET /x: not sent: https://sql.test has not answered any call for a while; "
        "now and then one call is sent to see, and all are when it answers again"
    )
    assert run(main()) == (told, 1.0, 20)


def test_those_that_wait_are_turned_away_when_the_service_goes_down() -> None:
    async def main() -> tuple[int, int, BreakerState]:
        service = LimitedService(AimdSettings(start=1, burst=20, ceiling=1, growth=1))
        calls = [service.call(Caller(number), 0.5, DOWN) for number in range(100)]
        told = await asyncio.gather(*calls, return_exceptions=True)
        return sum(one is not DOWN for one in told), service.waiting, service.breaker

    assert run(main()) == (80, 0, BreakerState.OPEN)


def test_one_resource_alone_never_makes_a_service_look_down() -> None:
    async def main() -> BreakerState:
        service = LimitedService()
        for _ in range(100):
            await outage(service, callers=1)
        return service.breaker

    assert run(main()) is BreakerState.CLOSED


def test_one_call_at_a_time_goes_to_see_and_its_answer_opens_the_way_for_all() -> None:
    async def main() -> tuple[list[str], BreakerState]:
        service = LimitedService()
        await outage(service)
        await asyncio.sleep(1.0)
        seen = await asyncio.gather(*(service.call(Caller(key), 0.1) for key in "abc"), return_exceptions=True)
        seen += await asyncio.gather(*(service.call(Caller(key)) for key in "abc"))
        return [type(one).__name__ for one in seen], service.breaker

    rejected = "RemoteUnavailable"
    assert run(main()) == (["NoneType", rejected, rejected, "NoneType", "NoneType", "NoneType"], BreakerState.CLOSED)


def test_a_probe_in_vain_lengthens_the_pause() -> None:
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


@pytest.mark.parametrize(("cancelled_after", "was_under_way"), [(0.5, 0), (1.5, 1)])
def test_a_probe_that_is_cancelled_makes_room_for_the_next_one(cancelled_after: float, was_under_way: int) -> None:
    async def main() -> tuple[int, BreakerState]:
        service = LimitedService(AimdSettings(start=0.5, burst=20, ceiling=0.5, growth=1))
        await outage(service)
        await asyncio.sleep(1.0)
        # It waits for a second, and then for its answer.
        probe = asyncio.create_task(service.call(Caller("a"), 60.0))
        await asyncio.sleep(cancelled_after)
        under_way = service.inside
        probe.cancel()
        await asyncio.wait([probe])
        await service.call(Caller("b"))
        return under_way, service.breaker

    assert run(main()) == (was_under_way, BreakerState.CLOSED)


def test_a_probe_that_has_to_wait_for_a_long_pause_leaves_it_to_another_project() -> None:
    async def main() -> BreakerState:
        service = LimitedService()
        await asyncio.gather(*(service.call(Caller(number), outcome=Unavailable(30.0)) for number in range(20)))
        await asyncio.sleep(1.0)
        with pytest.raises(RemoteUnavailable, match="asked for a pause"):
            await service.call(Caller("a"))
        await service.call(Caller("a"), project="q")
        return service.breaker

    assert run(main()) is BreakerState.CLOSED


def test_a_service_that_only_says_no_is_there() -> None:
    async def main() -> BreakerState:
        service = LimitedService()
        for _ in range(10):
            await asyncio.gather(*(service.call(Caller(number), outcome=Throttled()) for number in range(20)))
        return service.breaker

    assert run(main()) is BreakerState.CLOSED
