"""A clock of tests: time passes only while a caller sleeps."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final

from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.testing.awaiting import MaybeAwaitable, resolved

_BEGINNING: Final = datetime(2026, 1, 1, tzinfo=UTC)


def _nothing() -> None:
    """No observer."""


@dataclass(slots=True)
class VirtualClock:
    """Starts at one fixed second; `sleep` moves it and returns at once. `passing` is what happens meanwhile."""

    seconds: float = 0.0
    passing: Callable[[], MaybeAwaitable[None]] = _nothing

    def now(self) -> str:
        """The time as a status shows it."""
        return (_BEGINNING + timedelta(seconds=int(self.seconds))).strftime("%Y-%m-%dT%H:%M:%SZ")

    def monotonic(self) -> float:
        """The seconds since the clock started."""
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        """Moves the clock."""
        self.seconds += seconds
        await resolved(self.passing())
        await asyncio.sleep(0)
