"""Time limits of requests: those of one length share a timer."""

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any

import pytest

from setpoint.clients.http_transport import TimeLimits


def _timers_of(main: Coroutine[Any, Any, None]) -> list[float]:
    """The delays of the timers that `main` sets; the clock of its event loop stands still."""
    delays: list[float] = []

    class StandingLoop(asyncio.SelectorEventLoop):
        def time(self) -> float:
            return 0.0

        def call_at(  # type: ignore[override] # the types of the arguments are of no interest here
            self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
        ) -> asyncio.TimerHandle:
            delays.append(when)
            return super().call_at(when, callback, *args, context=context)

    with asyncio.Runner(loop_factory=StandingLoop) as runner:
        runner.run(main)
    return delays


async def _never() -> None:
    await asyncio.get_running_loop().create_future()


def test_many_limits_of_one_length_set_one_timer() -> None:
    async def main() -> None:
        limits = TimeLimits()

        async def block() -> None:
            with limits.of(60.0):
                await asyncio.sleep(0)

        await asyncio.gather(*(block() for _ in range(20)))
        await block()

    assert _timers_of(main()) == [60.0]


def test_a_block_that_takes_too_long_ends_with_an_error_and_the_next_one_does_not() -> None:
    async def main() -> None:
        limits = TimeLimits()
        with pytest.raises(TimeoutError), limits.of(0.0):
            await _never()

        with limits.of(0.0):
            pass
        with pytest.raises(TimeoutError), limits.of(0.0):
            await _never()

    asyncio.run(main())


def test_a_block_that_another_task_cancels_is_cancelled() -> None:
    async def main() -> None:
        limits = TimeLimits()

        async def block() -> None:
            with limits.of(60.0):
                await _never()

        task = asyncio.create_task(block())
        await asyncio.sleep(0)
        task.cancel()

        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())


def test_lengths_that_are_not_in_use_are_forgotten() -> None:
    async def main() -> None:
        limits = TimeLimits()
        for length in range(1000):
            with limits.of(60.0 + length):
                pass

        assert limits.lengths <= 64

    asyncio.run(main())
