"""The context of a call: a stop ends it, and its result or error is returned."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from setpoint.terraform.framework.call import ActiveCalls, CallContext
from setpoint.terraform.framework.diagnostics import Interrupted


def test_a_wait_ends_as_soon_as_the_call_is_stopped() -> None:
    async def waits() -> None:
        call = CallContext()
        asyncio.get_running_loop().call_soon(call.stop)
        await call.sleep(3600)

    with pytest.raises(Interrupted):
        asyncio.run(waits())


def test_until_stopped_returns_the_result_or_raises_the_error() -> None:
    async def gives(value: int) -> int:
        return value

    async def raises() -> int:
        raise LookupError("missing")

    async def both() -> int:
        call = CallContext()
        with pytest.raises(LookupError):
            await call.until_stopped(raises())
        return await call.until_stopped(gives(3))

    assert asyncio.run(both()) == 3


def test_a_stop_cancels_the_awaitable() -> None:
    ended: list[str] = []

    async def slow(call: CallContext) -> None:
        try:
            call.stop()
            await asyncio.sleep(3600)
        finally:
            ended.append("slow")

    async def waits() -> None:
        call = CallContext()
        with pytest.raises(Interrupted):
            await call.until_stopped(slow(call))
        assert ended == ["slow"]

    asyncio.run(waits())


def test_a_call_that_ignores_the_stop_is_cancelled_after_the_grace_period() -> None:
    async def ignores_stop() -> None:
        call = CallContext(grace_s=0)
        asyncio.get_running_loop().call_soon(call.stop)
        await call.run_with_grace(asyncio.sleep(3600))

    with pytest.raises(Interrupted):
        asyncio.run(ignores_stop())


def test_a_cancellation_by_the_caller_is_raised() -> None:
    async def cancelled() -> None:
        started = asyncio.Event()

        async def work() -> None:
            started.set()
            await asyncio.sleep(3600)

        task = asyncio.ensure_future(CallContext().run_with_grace(work()))
        await started.wait()
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancelled())


def _with_calls(context: Callable[[ActiveCalls], Awaitable[list[bool]]]) -> list[bool]:
    async def run() -> list[bool]:
        return await context(ActiveCalls())

    return asyncio.run(run())


async def _is_stopped(call: CallContext) -> bool:
    async def yields() -> None:
        for _ in range(10):
            await asyncio.sleep(0)

    try:
        await call.until_stopped(yields())
    except Interrupted:
        return True
    return False


def test_stop_ends_the_active_calls_and_no_later_one() -> None:
    async def context(calls: ActiveCalls) -> list[bool]:
        with calls.begin() as first, calls.begin() as second:
            calls.stop()
            with calls.begin() as later:
                return [await _is_stopped(call) for call in (first, second, later)]

    assert _with_calls(context) == [True, True, False]


def test_drain_waits_for_the_active_calls_and_stops_later_ones() -> None:
    async def context(calls: ActiveCalls) -> list[bool]:
        with calls.begin():
            ending = asyncio.ensure_future(calls.drain())
            await asyncio.sleep(0)
            before = ending.done()
            with calls.begin() as later:
                is_stopped = await _is_stopped(later)
        await ending
        return [before, is_stopped]

    assert _with_calls(context) == [False, True]
