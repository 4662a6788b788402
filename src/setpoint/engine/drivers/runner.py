"""Takes steps for many resources until each is settled, blocked or failed: what `apply` does, without a controller."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from setpoint.engine.capabilities import SupportsWatch
from setpoint.engine.context import EngineContext, Gone, Settled, StepOutcome, Stopped
from setpoint.engine.dependency_graph import predecessors
from setpoint.engine.drivers.object_watch import ObjectWatch, ObjectWatches
from setpoint.engine.kind import Dependency, dependency_target
from setpoint.engine.references import dependencies_of, owner_dependency
from setpoint.engine.requeue import RequeueDelays
from setpoint.engine.resource import ResourceRef
from setpoint.engine.state import location_in
from setpoint.engine.step.reconcile import step
from setpoint.errors import (
    Blocked,
    DependencyNotReady,
    RemoteRefused,
    Retry,
    SetpointError,
    StillWaiting,
    StoreError,
    WaitFailed,
    WaitTimedOut,
)

OutcomeListener = Callable[[ResourceRef, StepOutcome], None]


def _ignore(_ref: ResourceRef, _outcome: StepOutcome) -> None:
    """Nobody listens."""


@dataclass(frozen=True, slots=True)
class _SharedTasks:
    """What all who are followed share."""

    group: asyncio.TaskGroup
    ears: ObjectWatches


@dataclass(slots=True)
class StepRunner:
    """One run over a set of resources. `listener` hears of every outcome; `trigger` and `asked` as in `step`."""

    engine: EngineContext
    listener: OutcomeListener = _ignore
    trigger: str = "a look"
    asked: bool = False
    outcomes: dict[ResourceRef, StepOutcome] = field(default_factory=dict)
    _open: set[ResourceRef] = field(default_factory=set)
    # Those among them that each one needs; of whom nothing is known here, any may be.
    _needed: Mapping[ResourceRef, set[ResourceRef]] = field(default_factory=dict)
    # How often each was done, or blocked by something new.
    _moves: Counter[ResourceRef] = field(default_factory=Counter)
    _all_moves: int = 0
    # How much there was to hear for each of those that wait when it last looked.
    _blocked: dict[ResourceRef, int] = field(default_factory=dict)
    _moved: asyncio.Condition = field(default_factory=asyncio.Condition)
    # Set with the first outcome of each.
    _looked: dict[ResourceRef, asyncio.Event] = field(default_factory=dict)
    _ears: dict[ResourceRef, ObjectWatch] = field(default_factory=dict)
    # Those whose children are in the run as well, and what each came to before these were looked at.
    _owners: dict[ResourceRef, StepOutcome] = field(default_factory=dict)

    async def until_done(
        self, refs: Iterable[ResourceRef], timeout: float | None = None
    ) -> Mapping[ResourceRef, StepOutcome]:
        """The last outcome of each resource; whatever is still going on at the timeout stays as it was.

        Children that are made, or have to go, join the run.
        """
        self._open = set(refs)
        self._looked = {ref: asyncio.Event() for ref in self._open}
        ears = ObjectWatches(self.engine.clock)
        try:
            async with asyncio.timeout(timeout), asyncio.TaskGroup() as group:
                dependencies = await self._needs()
                before = predecessors(dependencies)
                self._needed = {
                    ref: self._open.intersection(map(dependency_target, named)) for ref, named in dependencies.items()
                }
                everybody = _SharedTasks(group, ears)
                for ref in sorted(self._open):
                    group.create_task(self._follow(ref, sorted(before.get(ref, ())), everybody))
            await self._look_again_at_owners()
        except TimeoutError:
            pass
        finally:
            await ears.close()
        return self.outcomes

    async def _follow(self, ref: ResourceRef, before: Sequence[ResourceRef], everybody: "_SharedTasks") -> None:
        for other in before:
            # What it says is old until this run has looked; what it says then is told, ready or not.
            await self._looked[other].wait()
        delays, is_first = RequeueDelays(), True
        while True:
            seen = self._heard(ref)
            asked = self.asked and is_first
            outcome = await step(ref, self.engine, trigger=self.trigger, asked=asked, anew=is_first)
            is_first = False
            await self._hear(ref, outcome)
            if await self._may_be_too_early(ref, outcome) and await self._another_moves(ref, seen):
                continue
            if self._others_join(outcome, everybody) and isinstance(outcome, Settled):
                # How it stands is told when it is known how they do.
                self._owners[ref] = outcome
                return await self._finish(ref)
            self.listener(ref, outcome)
            if not isinstance(outcome, Stopped) or _is_final(outcome.error):
                return await self._finish(ref)
            if _is_blocked(outcome):
                if not await self._another_moves(ref, seen):
                    return await self._finish(ref)
            else:
                ear = await self._ear(ref, everybody.ears) if isinstance(outcome.error, StillWaiting) else None
                seconds = delays.after(outcome.error)
                await (self.engine.clock.sleep(seconds) if ear is None else ear.wait_for_change(seconds))

    def _others_join(self, outcome: StepOutcome, everybody: "_SharedTasks") -> bool:
        """Whether there is anybody else to look at because of `outcome`; who is not in the run yet joins it."""
        found = () if isinstance(outcome, Gone) else outcome.others
        for ref in found:
            if ref not in self._looked:
                self._open.add(ref)
                self._looked[ref] = asyncio.Event()
                everybody.group.create_task(self._follow(ref, (), everybody))
        return bool(found)

    async def _look_again_at_owners(self) -> None:
        """How it stands with those whose children are in the run, now that these are done."""
        for ref, first in self._owners.items():
            outcome = await step(ref, self.engine, trigger=self.trigger)
            if isinstance(first, Settled) and isinstance(outcome, Settled):
                outcome = replace(outcome, plan=first.plan)
            self.outcomes[ref] = outcome
            self.listener(ref, outcome)

    async def _hear(self, ref: ResourceRef, outcome: StepOutcome) -> None:
        """Takes note of an outcome. What one that is blocked says of it is part of what those say that wait for it."""
        before = self.outcomes.get(ref)
        self.outcomes[ref] = outcome
        self._looked[ref].set()
        if _is_blocked(outcome) and not (_is_blocked(before) and str(before) == str(outcome)):
            await self._tell(ref)

    async def _ear(self, ref: ResourceRef, ears: ObjectWatches) -> ObjectWatch | None:
        """What hears of changes of the object that `ref` stands for, where its service tells of them."""
        kind, resource = self.engine.resource_types[ref.group, ref.kind], None
        with suppress(StoreError):
            resource = await self.engine.store.get(ref)
        location = None if resource is None else location_in(resource.status)
        if location is None or not isinstance(kind, SupportsWatch):
            return None
        ear = self._ears.get(ref)
        if ear is None or ear.location != location:
            ear = self._ears[ref] = ears.on(kind, location)
        return ear

    async def _may_be_too_early(self, ref: ResourceRef, outcome: StepOutcome) -> bool:
        """Whether a deletion was refused, as it is while something is there that has to go first: a replica, say."""
        if not (isinstance(outcome, Stopped) and isinstance(outcome.error, RemoteRefused)):
            return False
        resource = await self.engine.store.get(ref)
        return resource is not None and resource.is_deleting

    async def _finish(self, ref: ResourceRef) -> None:
        self._open.discard(ref)
        await self._tell(ref)

    async def _tell(self, ref: ResourceRef) -> None:
        """There is something to hear for those that wait for `ref`."""
        async with self._moved:
            self._moves[ref] += 1
            self._all_moves += 1
            self._moved.notify_all()

    def _heard(self, ref: ResourceRef) -> int:
        """How much there is to hear for `ref`."""
        needed = self._needed.get(ref)
        return self._all_moves if needed is None else sum(self._moves[one] for one in needed)

    async def _another_moves(self, ref: ResourceRef, seen: int) -> bool:
        """Waits until there is more to hear than when this one looked; False when all that are left wait in vain."""
        async with self._moved:
            self._blocked[ref] = seen
            self._moved.notify_all()
            await self._moved.wait_for(lambda: self._heard(ref) > seen or self._is_stuck())
            del self._blocked[ref]
            return self._heard(ref) > seen

    def _is_stuck(self) -> bool:
        return all(ref in self._blocked and self._blocked[ref] == self._heard(ref) for ref in self._open)

    async def _needs(self) -> Mapping[ResourceRef, Sequence[Dependency]]:
        """What is needed by those of which that can be said before a step is taken: what is to go needs nothing."""
        found = {}
        for ref in sorted(self._open):
            # Otherwise its step says what is wrong.
            with suppress(SetpointError):
                resource = await self.engine.store.get(ref)
                if (
                    resource is not None
                    and not resource.is_deleting
                    and (ref.group, ref.kind) in self.engine.resource_types
                ):
                    found[ref] = (
                        *dependencies_of(resource, self.engine.resource_types),
                        *owner_dependency(resource, self._open),
                    )
        return found


def _is_blocked(outcome: StepOutcome | None) -> bool:
    return isinstance(outcome, Stopped) and isinstance(outcome.error, DependencyNotReady | Blocked)


def _is_final(error: SetpointError) -> bool:
    """Whether only a person can go on from here: by an edit, by what a service refuses, or by mending a bug.

    A wait that is over goes on when a person runs this again.
    """
    is_over = isinstance(error, RemoteRefused | WaitTimedOut | WaitFailed)
    return is_over or error.retry in (Retry.ON_EDIT, Retry.STOP, Retry.BUG)
