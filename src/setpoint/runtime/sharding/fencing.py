"""Fencing: steps run under the lease of their shard, and a store write without a valid lease is refused."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from math import isfinite
from typing import TypeAlias

from setpoint.clients.fencing import FencedWrite, fenced_by, seconds_allowed
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.engine.ports import (
    Lease,
    Store,
)
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.engine.step.outcomes import StepOutcome, Stopped
from setpoint.engine.step.store_decorators import StoreDecorator, StoreWrite, T
from setpoint.errors import LeaseLost
from setpoint.runtime.sharding.leases import HeldLease

StepCall: TypeAlias = Callable[[], Awaitable[StepOutcome]]


class HeldShard:
    """A shard that this process holds, and the steps that run in it.

    Steps run under two leases: that of the shard, and that of the layout, which fixes the number of shards.
    """

    def __init__(self, shard: int, lease: HeldLease, layout: HeldLease) -> None:
        self.shard = shard
        self.lease = lease
        self._layout = layout
        self.is_closing = False
        self._running = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._timeouts: set[asyncio.Timeout] = set()

    @property
    def is_open(self) -> bool:
        """Whether steps may be started."""
        return not (self.is_closing or self.lease.is_expired or self._layout.is_expired)

    async def run_step(self, step: StepCall) -> StepOutcome:
        """The outcome of the step; Stopped by LeaseLost when it was cancelled."""
        try:
            async with asyncio.timeout(None) as timeout:
                self._begin(timeout)
                try:
                    with fenced_by(self._layout, self.lease):
                        return await step()
                finally:
                    self._end(timeout)
        except TimeoutError:
            return Stopped(LeaseLost(f"shard {self.shard} is not held here any more: its next holder goes on"))

    def close(self) -> None:
        """Starts no further step; running ones go on."""
        self.is_closing = True

    def cancel_steps(self) -> bool:
        """Starts and writes nothing more, and cancels the running steps; whether there were any."""
        self.is_closing = True
        self.lease.expire()
        were_any = bool(self._timeouts)
        while self._timeouts:
            self._timeouts.pop().reschedule(asyncio.get_running_loop().time())
        return were_any

    async def is_idle_within(self, seconds: float) -> bool:
        """Whether the last running step ended within so many seconds."""
        try:
            async with asyncio.timeout(seconds):
                await self._idle.wait()
        except TimeoutError:
            return False
        return True

    def _begin(self, timeout: asyncio.Timeout) -> None:
        self._timeouts.add(timeout)
        self._running += 1
        self._idle.clear()

    def _end(self, timeout: asyncio.Timeout) -> None:
        self._timeouts.discard(timeout)
        self._running -= 1
        if not self._running:
            self._idle.set()


@dataclass(frozen=True, slots=True)
class FencedStore(StoreDecorator):
    """A store whose writes need a permit: each is refused without one, and cancelled when the permit expires.

    A store behind HTTP checks the permits as well, for each request. Writes outside of a step need no permit.
    """

    behind: Store

    async def get_many(self, refs: Sequence[ResourceRef]) -> tuple[Resource | None, ...]:
        """See Store."""
        return await self.behind.get_many(refs)

    async def guard(self, write: StoreWrite, send: Callable[[Store], Awaitable[T]]) -> T:
        """Sent with a permit, or outside of a step; LeaseLost when the permit expires meanwhile."""
        attempt = FencedWrite(write.verb, write.target)
        seconds = seconds_allowed(attempt)
        if not isfinite(seconds):
            return await send(self.behind)
        try:
            async with asyncio.timeout(seconds):
                return await send(self.behind)
        except TimeoutError as error:
            raise LeaseLost(f"{attempt}: no answer while the lease was ours; its next holder goes on") from error

    async def acquire(self, name: str, holder: str, seconds: float) -> Lease | None:
        """See Store. Without a permit: permits come from leases."""
        return await self.behind.acquire(name, holder, seconds)

    async def release(self, lease: Lease) -> None:
        """See Store. Without a permit."""
        return await self.behind.release(lease)

    async def close(self) -> None:
        """See Store."""
        await self.behind.close()
