"""The time, so that tests can say what it is."""

import asyncio
from collections.abc import Callable
from typing import Protocol


class Alarm(Protocol):
    """What can be called off."""

    def cancel(self) -> None:
        """It will not ring any more."""
        ...


class Clock(Protocol):
    """Seconds, and alarms."""

    def monotonic(self) -> float:
        """Seconds that never run backwards."""
        ...

    def call_later(self, seconds: float, ring: Callable[[], None]) -> Alarm:
        """Calls `ring` after that long."""
        ...


class LoopClock:
    """The time of whichever event loop is running: a loop whose time is made up brings its own with it."""

    def monotonic(self) -> float:
        """See Clock."""
        return asyncio.get_running_loop().time()

    def call_later(self, seconds: float, ring: Callable[[], None]) -> Alarm:
        """See Clock."""
        return asyncio.get_running_loop().call_later(seconds, ring)
