"""The clock of the local cloud: held, advanced, released."""

import asyncio
from datetime import UTC, datetime, timedelta

from setpoint.localcloud.clock import CloudClock, timestamp
from tests.localcloud.requests import START


def test_a_held_clock_moves_only_when_it_is_moved() -> None:
    clock = CloudClock(START)
    clock.advance(1.5)
    clock.advance(-5)

    assert clock.now() == START + timedelta(seconds=1.5)
    assert timestamp(clock.now()) == "2026-01-01T00:00:01.500Z"


def test_a_sleeper_on_a_held_clock_wakes_when_it_is_due() -> None:
    async def scenario() -> list[str]:
        clock, seen = CloudClock(START), list[str]()
        sleeper = asyncio.create_task(clock.sleep(10))
        for step in (4, 5, 1):
            await asyncio.sleep(0)
            clock.advance(step)
            for _ in range(5):
                await asyncio.sleep(0)
            seen.append("awake" if sleeper.done() else "asleep")
        await sleeper
        return seen

    assert asyncio.run(scenario()) == ["asleep", "asleep", "awake"]


def test_a_running_clock_can_be_moved_held_and_released() -> None:
    clock = CloudClock()
    clock.advance(3600)
    ahead = clock.now() - datetime.now(UTC)
    clock.hold()
    held = clock.now()

    assert timedelta(minutes=59) < ahead <= timedelta(hours=1)
    assert (clock.is_held, clock.now()) == (True, held)
    clock.release()
    assert (clock.is_held, clock.now() >= held) == (False, True)


def test_a_sleeper_on_a_running_clock_wakes_when_the_clock_jumps() -> None:
    async def scenario() -> None:
        clock = CloudClock()
        sleeper = asyncio.create_task(clock.sleep(3600))
        await asyncio.sleep(0)
        clock.advance(3600)
        await sleeper

    asyncio.run(scenario())
