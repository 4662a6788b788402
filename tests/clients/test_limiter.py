"""The rate limiter of a service: slots within rate and concurrency, granted fairly."""

import asyncio
from collections import Counter

import pytest

from setpoint.clients.ratelimit.circuit_breaker import RESPONDED, BreakerState, CallOutcome, Throttled, Unavailable
from setpoint.clients.ratelimit.fair_queue import Caller
from setpoint.clients.ratelimit.token_bucket import AimdSettings
from setpoint.errors import RemoteUnavailable
from tests.clients.limited_service import ONE_A_SECOND, LimitedService
from tests.clients.manual_time import ManualClock, run

# --- Without contention -----------------------------------------------------------------------------------------------


def test_an_uncontended_call_does_not_yield_to_the_event_loop() -> None:
    async def main() -> list[str]:
        service, seen = LimitedService(), list[str]()
        asyncio.get_running_loop().call_soon(seen.append, "another callback")
        budget = service.budget()
        with await budget.limiter.acquire(budget, Caller("a"), "GET /x"):
            seen.append("the call")
        await asyncio.sleep(0)
        return seen

    assert run(main()) == ["the call", "another callback"]


def test_the_snapshot_has_the_figures_of_all_calls() -> None:
    async def main() -> LimitedService:
        service = LimitedService(AimdSettings(start=2, burst=1, ceiling=2, growth=0.25))
        await service.call(Caller("a"))
        await service.call(Caller("a"), outcome=Throttled())
        await service.call(Caller("b"))
        return service

    figures = run(main()).budgets.snapshot()

    assert [(one.key, one.rate, one.waiting, one.calls, one.throttles) for one in figures.budgets] == [
        (("sql", "p", "reads"), 1.25, 0, 3, 1)
    ]
    assert figures.budgets[0].seconds_waited == pytest.approx(0.5 + 1.0)
    assert [(one.service, one.in_flight, one.breaker, one.openings, one.rejected) for one in figures.limiters] == [
        ("sql", 0, BreakerState.CLOSED, 0, 0)
    ]


# --- Rate and pauses --------------------------------------------------------------------------------------------------


def test_calls_beyond_the_burst_wait_for_the_rate() -> None:
    async def main() -> list[float]:
        service, loop = LimitedService(ONE_A_SECOND), asyncio.get_running_loop()
        times = []
        for _ in range(4):
            await service.call(Caller("a"))
            times.append(loop.time())
        return times

    assert run(main()) == pytest.approx([0.0, 1.0, 2.0, 3.0])


def test_projects_do_not_wait_for_each_other() -> None:
    async def main() -> float:
        service = LimitedService(ONE_A_SECOND)
        await asyncio.gather(*(service.call(Caller(project), project=project) for project in "abcd"))
        return asyncio.get_running_loop().time()

    assert run(main()) == 0.0


def test_callers_wait_for_a_short_pause() -> None:
    async def main() -> float:
        service = LimitedService()
        await service.call(Caller("a"), outcome=Throttled(9.0))
        await service.call(Caller("b"))
        return asyncio.get_running_loop().time()

    assert run(main()) == 9.0


def test_a_long_pause_of_one_project_does_not_delay_another() -> None:
    async def main() -> dict[str, list[float]]:
        service = LimitedService(ONE_A_SECOND)
        await service.call(Caller("a"), outcome=Throttled(9.0))
        calls = (service.call(Caller("a"), project=project) for project in ("p", "q", "q"))
        await asyncio.gather(*calls)
        return service.times

    assert run(main()) == {"p": [0.0, 9.0], "q": [0.0, 1.0]}


def test_a_call_does_not_overtake_waiting_ones() -> None:
    clock = ManualClock()

    async def main() -> list[object]:
        service = LimitedService(ONE_A_SECOND, clock=clock)
        tasks = [asyncio.create_task(service.call(Caller(key))) for key in "ab"]
        await tasks[0]
        # There is a token, and the timer has not fired yet.
        clock.now = 1.0
        tasks.append(asyncio.create_task(service.call(Caller("c"))))
        await asyncio.sleep(0)
        clock.advance(1.0)
        await asyncio.wait(tasks)
        return [one.key for one in service.started]

    assert asyncio.run(main()) == ["a", "b", "c"]


def test_a_long_pause_rejects_new_and_waiting_callers_with_its_time() -> None:
    async def main() -> tuple[list[object], int]:
        service = LimitedService(ONE_A_SECOND)
        first = service.call(Caller("a"), seconds=0.5, outcome=Throttled(30.0))
        rejections = await asyncio.gather(first, *(service.call(Caller(key)) for key in "bc"), return_exceptions=True)
        await asyncio.sleep(10.0)
        rejections += await asyncio.gather(service.call(Caller("d")), return_exceptions=True)
        return [(str(one), one.after) for one in rejections if isinstance(one, RemoteUnavailable)], service.waiting

    message = "GET /x: not sent: https://sql.test asked for a pause in such calls; it is sent when the pause is over"
    assert run(main()) == ([(message, 30.0), (message, 30.0), (message, 20.0)], 0)


def test_retry_after_of_an_unavailable_service_is_honoured() -> None:
    async def main() -> float:
        service = LimitedService()
        await service.call(Caller("a"), outcome=Unavailable(5.0))
        await service.call(Caller("b"))
        return asyncio.get_running_loop().time()

    assert run(main()) == 5.0


# --- Cancelled --------------------------------------------------------------------------------------------------------


def test_a_slot_granted_to_a_cancelled_caller_goes_to_the_next_one() -> None:
    clock = ManualClock()

    async def main() -> list[object]:
        service = LimitedService(ONE_A_SECOND, clock=clock)
        tasks = [asyncio.create_task(service.call(Caller(key))) for key in "abc"]
        await asyncio.sleep(0)
        clock.advance(1.0)
        tasks[1].cancel()
        await asyncio.wait(tasks)
        return [one.key for one in service.started]

    assert (asyncio.run(main()), clock.now) == (["a", "c"], 1.0)


def test_a_caller_cancelled_before_its_grant_gets_no_slot() -> None:
    clock = ManualClock()

    async def main() -> list[object]:
        service = LimitedService(ONE_A_SECOND, clock=clock)
        tasks = [asyncio.create_task(service.call(Caller(key))) for key in "abc"]
        await asyncio.sleep(0)
        tasks[1].cancel()
        clock.advance(1.0)
        await asyncio.wait(tasks)
        return [one.key for one in service.started]

    assert (asyncio.run(main()), clock.now) == (["a", "c"], 1.0)


def test_no_timer_is_left_when_no_caller_waits() -> None:
    clock = ManualClock()

    async def main() -> list[int]:
        service, timers = LimitedService(ONE_A_SECOND, clock=clock), []
        await service.call(Caller("a"))
        task = asyncio.create_task(service.call(Caller("b")))
        await asyncio.sleep(0)
        timers.append(clock.timers)
        task.cancel()
        await asyncio.wait([task])
        return [*timers, clock.timers]

    assert asyncio.run(main()) == [1, 0]


# --- Concurrency ------------------------------------------------------------------------------------------------------


def test_the_concurrency_limit_holds_over_all_projects() -> None:
    async def main() -> int:
        service = LimitedService(max_in_flight=8)
        await asyncio.gather(*(service.call(Caller(key), 1.0, project=str(key % 5)) for key in range(50)))
        return service.max_concurrent

    assert run(main()) == 8


def test_failed_callers_leave_a_quarter_of_the_concurrency_to_healthy_ones() -> None:
    async def main() -> list[int]:
        service = LimitedService(max_in_flight=8)
        slow = [asyncio.create_task(service.call(Caller(key, failed=True), 60.0)) for key in range(50)]
        await asyncio.sleep(1.0)
        in_flight = [service.in_flight]
        async with asyncio.timeout(1.0):
            await asyncio.gather(*(service.call(Caller(key), 0.1) for key in range(10)))
        await asyncio.gather(*slow)
        return [*in_flight, service.max_concurrent, len(service.started)]

    assert run(main()) == [6, 8, 60]


# --- Fair shares ------------------------------------------------------------------------------------------------------


def test_six_hundred_failing_callers_leave_fifty_healthy_ones_their_share() -> None:
    async def call_in_a_loop(service: LimitedService, caller: Caller, outcome: CallOutcome | Exception) -> None:
        while True:
            try:
                await service.call(caller, 0.05, outcome)
            except RemoteUnavailable:
                continue

    async def main() -> list[Caller]:
        service = LimitedService(AimdSettings(start=50, burst=50, ceiling=50, growth=1))
        failing = [call_in_a_loop(service, Caller(f"f{n}", failed=True), RemoteUnavailable("500")) for n in range(600)]
        healthy = [call_in_a_loop(service, Caller(f"h{n}"), RESPONDED) for n in range(50)]
        tasks = [asyncio.create_task(one) for one in failing + healthy]
        while len(service.started) < 3000:
            await asyncio.sleep(1.0)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        return service.started

    started = run(main())
    # The burst went before any caller had to wait.
    calls_under_contention = Counter(one.key for one in started[50:2450])
    calls_by_caller = Counter(one.key for one in started[:2450])

    assert sum(one.failed for one in started[50:2450]) == 600
    assert {calls_under_contention[f"h{n}"] for n in range(50)} <= {35, 36, 37}
    assert {calls_by_caller[f"f{n}"] for n in range(600)} <= {1, 2}


def test_without_healthy_callers_failed_ones_get_every_slot() -> None:
    async def main() -> float:
        service = LimitedService(ONE_A_SECOND)
        await asyncio.gather(*(service.call(Caller(key, failed=True)) for key in range(10)))
        return asyncio.get_running_loop().time()

    assert run(main()) == pytest.approx(9.0)


def test_a_caller_with_many_calls_gets_one_slot_per_round() -> None:
    async def main() -> list[object]:
        service = LimitedService(ONE_A_SECOND)
        await asyncio.gather(*(service.call(Caller(key)) for key in "aaaaabc"))
        return [one.key for one in service.started]

    assert run(main()) == ["a", "a", "b", "c", "a", "a", "a"]
