"""The time of this machine."""

import asyncio
import datetime
import time

# A clock that goes on while the machine sleeps, as leases do that run out meanwhile. Not every system has one.
_SINCE_BOOT: int | None = getattr(time, "CLOCK_BOOTTIME", None)


class SystemClock:
    """The time of this machine."""

    def now(self) -> str:
        """See Clock."""
        return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def monotonic(self) -> float:
        """See Clock."""
        return time.monotonic() if _SINCE_BOOT is None else time.clock_gettime(_SINCE_BOOT)

    async def sleep(self, seconds: float) -> None:
        """See Clock."""
        await asyncio.sleep(seconds)
