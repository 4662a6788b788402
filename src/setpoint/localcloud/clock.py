"""A clock that can be moved forward and held still."""

import asyncio
from datetime import UTC, datetime, timedelta


class CloudClock:
    """Runs with the system clock until it is held. `CloudClock(start)` is held from the beginning."""

    def __init__(self, held_at: datetime | None = None) -> None:
        self._held_at = held_at
        self._ahead = timedelta()
        self._moved = asyncio.Event()

    @property
    def is_held(self) -> bool:
        """Whether time stands still between two calls of `advance`."""
        return self._held_at is not None

    def now(self) -> datetime:
        """The time, in UTC."""
        return self._held_at or datetime.now(UTC) + self._ahead

    def advance(self, seconds: float) -> None:
        """Moves the time forward and wakes the sleepers that are due. Negative seconds have no effect."""
        step = timedelta(seconds=max(seconds, 0.0))
        if self._held_at is not None:
            self._held_at += step
        else:
            self._ahead += step
        self._wake()

    def hold(self) -> None:
        """Stops the time."""
        self._held_at = self.now()
        self._wake()

    def release(self) -> None:
        """Lets the time run on from where it was held."""
        if self._held_at is not None:
            self._ahead, self._held_at = self._held_at - datetime.now(UTC), None
        self._wake()

    async def sleep(self, seconds: float) -> None:
        """Returns when this clock, not the system clock, has advanced that far."""
        until = self.now() + timedelta(seconds=seconds)
        while (left := (until - self.now()).total_seconds()) > 0:
            moved = self._moved
            try:
                await asyncio.wait_for(moved.wait(), None if self.is_held else left)
            except TimeoutError:
                continue

    def _wake(self) -> None:
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()


def timestamp(time: datetime) -> str:
    """A time as the services write it: RFC 3339 in UTC, to the millisecond."""
    return time.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
