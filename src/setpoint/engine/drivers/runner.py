"""Takes steps for many resources until each is settled, blocked or failed: what `apply` does, without a controller."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace

from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.engine.capabilities import SupportsWatch
from setpoint.engine.context import UNSPECIFIED_TRIGGER, EngineContext
from setpoint.engine.dependency_graph import predecessors
from setpoint.engine.drivers.object_watch import ObjectWatch, ObjectWatches
from setpoint.engine.kind import Dependency, dependency_target
from setpoint.engine.references import dependencies_of, owner_dependency
from setpoint.engine.requeue import RequeueDelays
from setpoint.engine.resource import ResourceRef
from setpoint.engine.state import location_in
from setpoint.engine.step.outcomes import Gone, Settled, StepOutcome, Stopped
from setpoint.engine.step.reconcile import step
from setpoint.errors import (
    Blocked,
    DependencyNotReady,
    OperationQueued,
    RemoteRefused,
    Retry,
    SetpointError,
    StillWaiting,
    StoreError,
    WaitFailed,
    WaitTimedOut,
    is_same_error,
)

OutcomeListener = Callable[[ResourceRef, StepOutcome], None]


def _ignore(_ref: ResourceRef, _outcome: StepOutcome) -> None:
    """The listener of a run that only returns its outcomes."""


@dataclass(slots=True)
class StepRunner:
    """One run over a set of resources. `listener` gets every outcome; `trigger` and `requested` as in `step`."""

    engine: EngineContext
    listener: OutcomeListener = _ignore
    trigger: str = UNSPECIFIED_TRIGGER
    requested: bool = False
    outcomes: dict[ResourceRef, StepOutcome] = field(default_factory=dict)
    # The resources that are not done.
    _open: set[ResourceRef] = field(default_factory=set)
    # The dependencies of each within the run; a resource with unknown dependencies may depend on any.
    _dependencies: Mapping[ResourceRef, set[ResourceRef]] = field(default_factory=dict)
    # How often each resource was done, or blocked by something new; and the sum of all.
    _progress: Counter[ResourceRef] = field(default_factory=Counter)
    _total_progress: int = 0
    # The blocked resources, each with the progress of its dependencies before its last step.
    _blocked: dict[ResourceRef, int] = field(default_factory=dict)
    _progressed: asyncio.Condition = field(default_factory=asyncio.Condition)
    # Set with the first outcome of each.
    _has_outcome: dict[ResourceRef, asyncio.Event] = field(default_factory=dict)
    _object_watches: dict[ResourceRef, ObjectWatch] = field(default_factory=dict)
    # Owners with children in the run, each with its outcome before those were reconciled.
    _owners: dict[ResourceRef, StepOutcome] = field(default_factory=dict)
    _tasks: asyncio.TaskGroup = field(init=False)
    _watches: ObjectWatches = field(init=False)

    async def until_done(
        self, refs: Iterable[ResourceRef], timeout: float | None = None
    ) -> Mapping[ResourceRef, StepOutcome]:
        """The last outcome of each resource; one that is not done at the timeout keeps the outcome of its last step.

        Children that are created, or have to be deleted, join the run.
        """
        self._open = set(refs)
        self._has_outcome = {ref: asyncio.Event() for ref in self._open}
        self._watches = ObjectWatches(self.engine.clock)
        try:
            async with asyncio.timeout(timeout), asyncio.TaskGroup() as self._tasks:
                dependencies = await self._read_dependencies()
                before = predecessors(dependencies)
                self._dependencies = {
                    ref: self._open.intersection(map(dependency_target, named)) for ref, named in dependencies.items()
                }
                for ref in sorted(self._open):
                    self._tasks.create_task(self._reconcile(ref, sorted(before.get(ref, ()))))
            await self._reconcile_owners_again()
        except TimeoutError:
            pass
        finally:
            await self._watches.close()
        return self.outcomes

    async def _reconcile(self, ref: ResourceRef, before: Sequence[ResourceRef]) -> None:
        for dependency in before:
            # Its status may be outdated until this run has reconciled it; from then on it counts, ready or not.
            await self._has_outcome[dependency].wait()
        delays, is_first = RequeueDelays(), True
        while True:
            seen = self._progress_for(ref)
            requested = self.requested and is_first
            outcome = await step(ref, self.engine, trigger=self.trigger, requested=requested, restart_wait=is_first)
            is_first = False
            await self._record(ref, outcome)
            if await self._may_be_too_early(ref, outcome) and await self._wait_for_progress(ref, seen):
                continue
            if self._start_children(outcome) and isinstance(outcome, Settled):
                # The owner's outcome is reported once its children are done.
                self._owners[ref] = outcome
                return await self._finish(ref)
            self.listener(ref, outcome)
            if not isinstance(outcome, Stopped) or _is_final(outcome.error):
                return await self._finish(ref)
            if _is_blocked(outcome):
                if not await self._wait_for_progress(ref, seen):
                    return await self._finish(ref)
            else:
                await self._wait_to_retry(ref, outcome.error, delays.after(outcome.error))

    def _start_children(self, outcome: StepOutcome) -> bool:
        """Whether `outcome` names children to reconcile; those that are not in the run yet join it."""
        children = () if isinstance(outcome, Gone) else outcome.due_children
        for ref in children:
            if ref not in self._has_outcome:
                self._open.add(ref)
                self._has_outcome[ref] = asyncio.Event()
                self._tasks.create_task(self._reconcile(ref, ()))
        return bool(children)

    async def _reconcile_owners_again(self) -> None:
        """One more step of each owner with children in the run, now that these are done."""
        for ref, first in self._owners.items():
            outcome = await step(ref, self.engine, trigger=self.trigger)
            if isinstance(first, Settled) and isinstance(outcome, Settled):
                outcome = replace(outcome, plan=first.plan)
            self.outcomes[ref] = outcome
            self.listener(ref, outcome)

    async def _record(self, ref: ResourceRef, outcome: StepOutcome) -> None:
        """Records an outcome. A new block is progress: it is part of the chain that dependants report."""
        before = self.outcomes.get(ref)
        self.outcomes[ref] = outcome
        self._has_outcome[ref].set()
        if _is_blocked(outcome) and not _is_same_block(before, outcome):
            await self._count_progress(ref)

    async def _wait_to_retry(self, ref: ResourceRef, error: SetpointError, seconds: float) -> None:
        """Returns after so many seconds; or as soon as a wait may go on: the live object changes, or it is
        the turn of the operation."""
        if isinstance(error, OperationQueued):
            return await self.engine.operations.wait_for_turn(ref, seconds, self.engine.clock)
        watch = await self._object_watch(ref) if isinstance(error, StillWaiting) else None
        return await (self.engine.clock.sleep(seconds) if watch is None else watch.wait_for_change(seconds))

    async def _object_watch(self, ref: ResourceRef) -> ObjectWatch | None:
        """The watch of the live object of `ref`, if its service can be watched."""
        kind, resource = self.engine.resource_types[ref.group_kind], None
        with suppress(StoreError):
            resource = await self.engine.store.get(ref)
        location = None if resource is None else location_in(resource.status)
        if location is None or not isinstance(kind, SupportsWatch):
            return None
        watch = self._object_watches.get(ref)
        if watch is None or watch.location != location:
            watch = self._object_watches[ref] = self._watches.watch(kind, location)
        return watch

    async def _may_be_too_early(self, ref: ResourceRef, outcome: StepOutcome) -> bool:
        """Whether a deletion was refused, as it is while a dependant still exists: a replica, for example."""
        if not (isinstance(outcome, Stopped) and isinstance(outcome.error, RemoteRefused)):
            return False
        resource = await self.engine.store.get(ref)
        return resource is not None and resource.is_deleting

    async def _finish(self, ref: ResourceRef) -> None:
        self._open.discard(ref)
        await self._count_progress(ref)

    async def _count_progress(self, ref: ResourceRef) -> None:
        """Wakes the resources that are blocked by `ref`."""
        async with self._progressed:
            self._progress[ref] += 1
            self._total_progress += 1
            self._progressed.notify_all()

    def _progress_for(self, ref: ResourceRef) -> int:
        """The progress of all dependencies of `ref`."""
        dependencies = self._dependencies.get(ref)
        return self._total_progress if dependencies is None else sum(self._progress[one] for one in dependencies)

    async def _wait_for_progress(self, ref: ResourceRef, seen: int) -> bool:
        """Waits until a dependency makes progress after `seen`; False when no resource that is left can make any."""
        async with self._progressed:
            self._blocked[ref] = seen
            self._progressed.notify_all()
            await self._progressed.wait_for(lambda: self._progress_for(ref) > seen or self._is_stuck())
            del self._blocked[ref]
            return self._progress_for(ref) > seen

    def _is_stuck(self) -> bool:
        return all(ref in self._blocked and self._blocked[ref] == self._progress_for(ref) for ref in self._open)

    async def _read_dependencies(self) -> Mapping[ResourceRef, Sequence[Dependency]]:
        """The dependencies of each resource that is not being deleted; those of an invalid one are left out."""
        types, found = self.engine.resource_types, {}
        for ref in sorted(self._open):
            # The step of the resource reports the error.
            with suppress(SetpointError):
                resource = await self.engine.store.get(ref)
                if resource is not None and not resource.is_deleting and ref.group_kind in types:
                    found[ref] = (*dependencies_of(resource, types), *owner_dependency(resource, self._open))
        return found


def _is_blocked(outcome: StepOutcome | None) -> bool:
    return isinstance(outcome, Stopped) and isinstance(outcome.error, DependencyNotReady | Blocked)


def _is_same_block(before: StepOutcome | None, after: StepOutcome) -> bool:
    return isinstance(before, Stopped) and isinstance(after, Stopped) and is_same_error(before.error, after.error)


def _is_final(error: SetpointError) -> bool:
    """Whether this run cannot continue: an edit of the author, an act of the operator or a bug fix is needed.

    A wait that timed out continues in the next run.
    """
    is_over = isinstance(error, RemoteRefused | WaitTimedOut | WaitFailed)
    return is_over or error.retry in (Retry.ON_EDIT, Retry.STOP, Retry.BUG)
