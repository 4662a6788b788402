"""Steps for many resources until each is settled, blocked or failed: what `apply` does, without a daemon."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from setpoint.engine.abilities import Audible
from setpoint.engine.listening import Ear
from setpoint.engine.reconcile import step
from setpoint.engine.remembered import location_in
from setpoint.engine.resource import ResourceRef
from setpoint.engine.retries import Delays
from setpoint.engine.scene import Outcome, Stopped, World
from setpoint.errors import (
    Blocked,
    DependencyNotReady,
    RemoteRefused,
    Retry,
    SetpointError,
    StillWaiting,
    WaitFailed,
    WaitTimedOut,
)

Listener = Callable[[ResourceRef, Outcome], None]


def _ignore(_ref: ResourceRef, _outcome: Outcome) -> None:
    """Nobody listens."""


@dataclass(slots=True)
class Run:
    """One run over a set of resources. `listener` hears of every outcome; `trigger` and `asked` as in `step`."""

    world: World
    listener: Listener = _ignore
    trigger: str = "a look"
    asked: bool = False
    outcomes: dict[ResourceRef, Outcome] = field(default_factory=dict)
    _open: set[ResourceRef] = field(default_factory=set)
    # How many were done when each of those that wait last looked.
    _blocked: dict[ResourceRef, int] = field(default_factory=dict)
    _done: int = 0
    _ears: dict[ResourceRef, Ear] = field(default_factory=dict)
    _moved: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def until_done(
        self, refs: Iterable[ResourceRef], timeout: float | None = None
    ) -> Mapping[ResourceRef, Outcome]:
        """The last outcome of each resource; whatever is still going on at the timeout stays as it was."""
        self._open = set(refs)
        try:
            async with asyncio.timeout(timeout), asyncio.TaskGroup() as group:
                for ref in sorted(self._open):
                    group.create_task(self._follow(ref))
        except TimeoutError:
            pass
        finally:
            for ear in self._ears.values():
                await ear.close()
        return self.outcomes

    async def _follow(self, ref: ResourceRef) -> None:
        delays, is_first = Delays(), True
        while True:
            seen = self._done
            asked = self.asked and is_first
            outcome = await step(ref, self.world, trigger=self.trigger, asked=asked, anew=is_first)
            is_first = False
            self.outcomes[ref] = outcome
            if await self._may_be_too_early(ref, outcome) and await self._another_moves(ref, seen):
                continue
            self.listener(ref, outcome)
            if not isinstance(outcome, Stopped) or _is_final(outcome.error):
                return await self._finish(ref)
            if isinstance(outcome.error, DependencyNotReady | Blocked):
                if not await self._another_moves(ref, seen):
                    return await self._finish(ref)
            else:
                await self._pause(ref, outcome.error, delays.after(outcome.error))

    async def _pause(self, ref: ResourceRef, error: SetpointError, seconds: float) -> None:
        """Waits so long, or until the object has changed whose state is waited for."""
        ear = None
        if isinstance(error, StillWaiting):
            ear = self._ears.get(ref) or await self._new_ear(ref)
        await (self.world.clock.sleep(seconds) if ear is None else ear.changed_within(seconds))

    async def _new_ear(self, ref: ResourceRef) -> Ear | None:
        kind, resource = self.world.kinds[ref.group, ref.kind], await self.world.store.get(ref)
        location = None if resource is None else location_in(resource.status)
        if not isinstance(kind, Audible) or location is None:
            return None
        ear = self._ears[ref] = Ear(kind, location, self.world.clock)
        return ear

    async def _may_be_too_early(self, ref: ResourceRef, outcome: Outcome) -> bool:
        """Whether a deletion was refused, as it is while something is there that has to go first: a replica, say."""
        if not (isinstance(outcome, Stopped) and isinstance(outcome.error, RemoteRefused)):
            return False
        resource = await self.world.store.get(ref)
        return resource is not None and resource.is_deleting

    async def _finish(self, ref: ResourceRef) -> None:
        async with self._moved:
            self._open.discard(ref)
            self._done += 1
            self._moved.notify_all()

    async def _another_moves(self, ref: ResourceRef, seen: int) -> bool:
        """Waits until more are done than when this one looked; False when all that are left wait in vain."""
        async with self._moved:
            self._blocked[ref] = seen
            self._moved.notify_all()
            await self._moved.wait_for(lambda: self._done > seen or self._is_stuck())
            del self._blocked[ref]
            return self._done > seen

    def _is_stuck(self) -> bool:
        return all(self._blocked.get(ref) == self._done for ref in self._open)


def _is_final(error: SetpointError) -> bool:
    """Whether only a person can go on from here: by an edit, by what a service refuses, or by mending a bug.

    A wait that is over goes on when a person runs this again.
    """
    is_over = isinstance(error, RemoteRefused | WaitTimedOut | WaitFailed)
    return is_over or error.retry in (Retry.ON_EDIT, Retry.STOP, Retry.BUG)
