"""A shard that is ours, and the steps that are being taken there."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from setpoint.clients.permits import permitted_by
from setpoint.engine.scene import Outcome, Stopped
from setpoint.errors import LeaseLost
from setpoint.runtime.leases import Tenure

Step: TypeAlias = Callable[[], Awaitable[Outcome]]


class Holding:
    """Steps are taken under two leases: that of the shard, and that of the layout, which says what a shard is."""

    def __init__(self, shard: int, tenure: Tenure, layout: Tenure) -> None:
        self.shard = shard
        self.tenure = tenure
        self._layout = layout
        self.is_closing = False
        self._in_work = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._cuts: set[asyncio.Timeout] = set()

    @property
    def is_open(self) -> bool:
        """Whether steps may be begun."""
        return not (self.is_closing or self.tenure.is_over or self._layout.is_over)

    async def take(self, step: Step) -> Outcome:
        """What the step comes to, or LeaseLost when it was cut short."""
        try:
            async with asyncio.timeout(None) as cut:
                self._begin(cut)
                try:
                    with permitted_by(self._layout, self.tenure):
                        return await step()
                finally:
                    self._end(cut)
        except TimeoutError:
            return Stopped(LeaseLost(f"shard {self.shard} is not held here any more: its next holder goes on"))

    def close(self) -> None:
        """Begins no step any more; those in work go on."""
        self.is_closing = True

    def cut(self) -> bool:
        """Nothing is begun or written any more, and the steps in work end where they are; whether there were any."""
        self.is_closing = True
        self.tenure.end()
        were_any = bool(self._cuts)
        while self._cuts:
            self._cuts.pop().reschedule(asyncio.get_running_loop().time())
        return were_any

    async def is_idle_within(self, seconds: float) -> bool:
        """Whether the last step in work ended within so many seconds."""
        try:
            async with asyncio.timeout(seconds):
                await self._idle.wait()
        except TimeoutError:
            return False
        return True

    def _begin(self, cut: asyncio.Timeout) -> None:
        self._cuts.add(cut)
        self._in_work += 1
        self._idle.clear()

    def _end(self, cut: asyncio.Timeout) -> None:
        self._cuts.discard(cut)
        self._in_work -= 1
        if not self._in_work:
            self._idle.set()
