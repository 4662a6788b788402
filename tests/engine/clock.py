"""Time that passes only while a caller sleeps."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

_BEGINNING: Final = datetime(2026, 1, 1, tzinfo=UTC)


def _nothing() -> None:
    """No observer."""


@dataclass(slots=True)
class FakeClock:
    """Starts at one fixed second; `sleep` moves it and returns at once. `passing` is what happens meanwhile."""

    seconds: float = 0.0
    passing: Callable[[], None] = _nothing

    def now(self) -> str:
        return (_BEGINNING + timedelta(seconds=int(self.seconds))).strftime("%Y-%m-%dT%H:%M:%SZ")

    def monotonic(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        self.seconds += seconds
        self.passing()
        await asyncio.sleep(0)
