"""Listening to a service for changes of one object, while somebody waits for what becomes of it."""

import asyncio
from contextlib import aclosing, suppress
from dataclasses import dataclass, field

from setpoint.engine.abilities import Audible
from setpoint.engine.kind import Location
from setpoint.engine.ports import Clock


@dataclass(slots=True)
class Ear:
    """Hears of changes from when it is first asked on. `close` ends that."""

    kind: Audible
    location: Location
    clock: Clock
    _heard: asyncio.Event = field(default_factory=asyncio.Event)
    _task: asyncio.Task[None] | None = None

    async def changed_within(self, seconds: float) -> None:
        """Returns when something has changed since the last time, or may have; or after so many seconds."""
        if self._task is None:
            self._task = asyncio.create_task(self._listen())
        heard = asyncio.ensure_future(self._heard.wait())
        late = asyncio.ensure_future(self.clock.sleep(seconds))
        try:
            await asyncio.wait((heard, late, self._task), return_when=asyncio.FIRST_COMPLETED)
            if self._task.done():
                # Nobody tells us any more: the next look is due when it would have been anyway.
                self._task.result()
                await late
        finally:
            heard.cancel()
            late.cancel()
        self._heard.clear()

    async def close(self) -> None:
        """Listens no longer."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _listen(self) -> None:
        async with aclosing(self.kind.changes(self.kind.topic_of(self.location))) as changes:
            async for where in changes:
                if where is None or where == self.location:
                    self._heard.set()
