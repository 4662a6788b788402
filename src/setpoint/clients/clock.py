"""Monotonic time and timers, as a protocol that tests replace."""

import asyncio
from collections.abc import Callable
from typing import Protocol


class TimerHandle(Protocol):
    """What can be called off."""

    def cancel(self) -> None:
        """It will not ring any more."""
        ...


class MonotonicClock(Protocol):
    """Seconds, and alarms."""

    def monotonic(self) -> float:
        """Seconds that never run backwards."""
        ...

    def call_later(self, seconds: float, ring: Callable[[], None]) -> TimerHandle:
        """Calls `ring` after that long."""
        ...


class EventLoopClock:
    """The time of whichever event loop is running: a loop whose time is made up brings its own with it."""

    def monotonic(self) -> float:
        """See Clock."""
        return asyncio.get_running_loop().time()

    def call_later(self, seconds: float, ring: Callable[[], None]) -> TimerHandle:
        """See Clock."""
        return asyncio.get_running_loop().call_later(seconds, ring)
