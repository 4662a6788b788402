"""Monotonic time and timers, as a protocol that tests replace."""

import asyncio
from collections.abc import Callable
from typing import Protocol


class TimerHandle(Protocol):
    """A timer that has been started."""

    def cancel(self) -> None:
        """The callback is not called any more."""
        ...


class MonotonicClock(Protocol):
    """Monotonic seconds, and timers."""

    def monotonic(self) -> float:
        """Seconds that never run backwards."""
        ...

    def call_later(self, seconds: float, callback: Callable[[], None]) -> TimerHandle:
        """Calls `callback` after that long."""
        ...


class EventLoopClock:
    """The time of the running event loop; a test's loop may have a time of its own."""

    def monotonic(self) -> float:
        """See MonotonicClock."""
        return asyncio.get_running_loop().time()

    def call_later(self, seconds: float, callback: Callable[[], None]) -> TimerHandle:
        """See MonotonicClock."""
        return asyncio.get_running_loop().call_later(seconds, callback)
