"""Time that stands still: a world of one moment is looked at as of that moment, whenever that is."""

import asyncio
import time
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StoppedClock:
    """It is `at` for ever; how long something takes is still told."""

    at: str

    def now(self) -> str:
        """See Clock."""
        return self.at

    def monotonic(self) -> float:
        """See Clock."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """See Clock."""
        await asyncio.sleep(seconds)
