"""Time that passes only when somebody sleeps."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass


def _nothing() -> None:
    """Nobody notices."""


@dataclass(slots=True)
class FakeClock:
    """Starts at one fixed second; `sleep` moves it and returns at once. `passing` is what happens meanwhile."""

    seconds: float = 0.0
    passing: Callable[[], None] = _nothing

    def now(self) -> str:
        whole = int(self.seconds)
        return f"2026-01-01T{whole // 3600:02}:{whole // 60 % 60:02}:{whole % 60:02}Z"

    def monotonic(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        self.seconds += seconds
        self.passing()
        await asyncio.sleep(0)
