"""The controller of one kind: takes keys from the work queue, reconciles them, and schedules retries and resyncs.

Its worker pool limits how many workers failing resources may occupy.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from setpoint.clients.ratelimit.fair_queue import Caller, ConcurrencyLimit, current_caller
from setpoint.engine.capabilities import SupportsList, SupportsWatch
from setpoint.engine.contention.status_edits import LeftStatus
from setpoint.engine.context import EngineContext
from setpoint.engine.kind import ResourceType
from setpoint.engine.requeue import DEFAULT_RESYNC_SECONDS, jittered_resync
from setpoint.engine.resource import ResourceRef
from setpoint.engine.step.observe import IDLE, idle_step
from setpoint.engine.step.outcomes import Gone, Settled, StepOutcome, Stopped
from setpoint.engine.step.reconcile import step
from setpoint.errors import (
    Blocked,
    DependencyNotReady,
    LeaseLost,
    OperationQueued,
    OperationRunning,
    Retry,
    SetpointError,
    WaitFailed,
    WaitTimedOut,
)
from setpoint.runtime.index import ResourceIndex
from setpoint.runtime.informer import ResourceEvent
from setpoint.runtime.list_resync.lister import ListResync, NoListResync
from setpoint.runtime.metrics.convergence import ControllerMetrics, ConvergenceTracker
from setpoint.runtime.predicates import (
    FINALIZER_REMOVED,
    RESYNC,
    STATUS_EDITED,
    ReconcileTrigger,
    changes_status,
    lacks_finalizer,
    trigger_for,
)
from setpoint.runtime.remote_watch import NoRemoteWatch, RemoteWatch
from setpoint.runtime.restore_delays import RestoreDelays
from setpoint.runtime.sharding.replica import ControllerReplica
from setpoint.runtime.workqueue.queue import QueueItem, ShutDown, WorkQueue
from setpoint.runtime.workqueue.scheduling import Priority

_log: Final = logging.getLogger(__name__)
# After these an event triggers the next step: a dependency or the live object changed.
_WOKEN_BY_EVENT: Final = (Blocked, DependencyNotReady, WaitTimedOut, WaitFailed)
_STEPS_BEFORE_YIELD: Final = 16
# A new resource is reported as blocked only if what it waits for is not there by then, or not ready: a report is two
# requests, and most of what is applied together is ready soon.
MISSING_SECONDS, BLOCKED_SECONDS = 5.0, 15.0


class Controller:
    """Reconciles the resources of one kind: all of them, or with a `replica` those of the shards that it holds.

    `stop` ends the process because of an error after which no step may go on.
    """

    def __init__(
        self,
        kind: ResourceType,
        engine: EngineContext,
        index: ResourceIndex,
        *,
        workers: int,
        metrics: ControllerMetrics,
        stop: Callable[[SetpointError], None],
        replica: ControllerReplica | None = None,
    ) -> None:
        self.name = kind.name
        self.queue: WorkQueue[ResourceRef] = WorkQueue(engine.clock)
        # The last error of each resource that is retried; the status shows it only where it is the resource's state.
        self.last_errors: dict[ResourceRef, SetpointError] = {}
        # The trigger of each running step, and when it started.
        self.running_steps: dict[ResourceRef, tuple[str, float]] = {}
        # Those of them whose status was written meanwhile.
        self._written_in_step: set[ResourceRef] = set()
        self._engine = engine
        self._index = index
        # New resources that had no step yet, because something that they wait for is not ready.
        self._new_blocked: set[ResourceRef] = set()
        self._restore_delays = RestoreDelays(engine.clock)
        self.convergence = ConvergenceTracker(self.name, metrics, engine.clock)
        self._pool = WorkerPool(workers)
        self._stop = stop
        self._replica = replica
        self.list_resync = self._new_list_resync(kind)
        self.remote_watch = (
            RemoteWatch(kind, engine.clock, self.enqueue, self.queue)
            if isinstance(kind, SupportsWatch)
            else NoRemoteWatch()
        )

    def _new_list_resync(self, kind: ResourceType) -> ListResync | NoListResync:
        """A LIST is of use only with a cache of what was observed before."""
        has_cache = self._engine.idle_cache is not None and self._engine.listed_objects is not None
        if has_cache and isinstance(kind, SupportsList):
            return ListResync(
                kind,
                self._engine,
                self._index,
                queue=self.queue,
                convergence=self.convergence,
                is_reconciled_here=self._is_reconciled_here,
                running_steps=self.running_steps.keys(),
            )
        return NoListResync()

    @property
    def workers(self) -> int:
        """How many steps may run at once."""
        return self._pool.size

    @property
    def processing(self) -> int:
        """How many steps are running."""
        return self._pool.in_use

    # --- Queueing -----------------------------------------------------------------------------------------------------

    def handle_event(self, event: ResourceEvent) -> None:
        """A resource of this kind changed."""
        self.list_resync.handle_event(event)
        self.remote_watch.handle_event(event)
        if event.after is None:
            self._forget(event.ref)
            return
        trigger = trigger_for(event)
        if trigger is None and lacks_finalizer(event):
            self._enqueue_restore(event.ref, FINALIZER_REMOVED)
        elif trigger is None:
            self._restore_status(event.ref, is_changed=changes_status(event))
        if trigger is None or not self._is_reconciled_here(event.ref):
            return
        if trigger.priority is Priority.EDIT:
            # The author may have fixed the cause of earlier failures: the backoff starts again.
            self.convergence.edited(event.ref)
            self.queue.forget(event.ref)
        if event.before is None and not event.is_initial and self._is_blocked(event.ref):
            self._new_blocked.add(event.ref)
            self._schedule_blocked(event.ref, trigger)
        else:
            self.enqueue(event.ref, trigger)

    def enqueue(self, ref: ResourceRef, trigger: ReconcileTrigger) -> None:
        """Queues `ref`, if it is reconciled here; a new resource not before all that it waits for is ready."""
        if not self._is_reconciled_here(ref):
            return
        if trigger.priority is Priority.DEPENDENCY and ref in self._new_blocked and self._is_blocked(ref):
            self._schedule_blocked(ref, trigger)
            return
        self.list_resync.invalidate(ref)
        self.queue.add(ref, *trigger)
        if self._pool.unpark(ref):
            # It was parked among failing resources: the queue has it again, with the new trigger.
            self.queue.done(ref)

    def enqueue_as_blocked(self, ref: ResourceRef, trigger: ReconcileTrigger) -> None:
        """Queues `ref`, because what it depends on is being deleted; after a while, as it may be about to go, too."""
        if self._is_reconciled_here(ref):
            self.list_resync.invalidate(ref)
            self.queue.advance(ref, MISSING_SECONDS, *trigger)

    def _restore_status(self, ref: ResourceRef, *, is_changed: bool) -> None:
        """Queues `ref` if another writer changed its status; a running step has to end before that can be known."""
        entry, edits = self._index.get(ref), self._engine.status_edits
        if ref in self.running_steps:
            self._written_in_step.add(ref)
            return
        if entry is None or edits is None or not self._is_reconciled_here(ref):
            return
        is_edited = edits.is_edited(ref, LeftStatus(entry.revision, entry.status_hash))
        if is_edited or (is_changed and not edits.knows(ref)):
            self._enqueue_restore(ref, STATUS_EDITED)

    def _enqueue_restore(self, ref: ResourceRef, trigger: ReconcileTrigger) -> None:
        """Queues `ref` because another writer changed what is the engine's.

        The first edit is answered at once. Further ones back off, so that two writers never fight at full speed.
        """
        if not self._is_reconciled_here(ref):
            return
        if seconds := self._restore_delays.after_edit(ref):
            self.queue.advance(ref, seconds, *trigger)
        else:
            self.enqueue(ref, trigger)

    def release(self, ref: ResourceRef) -> None:
        """`ref` is not reconciled here any more; a running step goes on."""
        self.list_resync.invalidate(ref)
        self.queue.discard(ref)
        if self._pool.unpark(ref):
            self.queue.done(ref)
        self._forget(ref)

    def _is_blocked(self, ref: ResourceRef) -> bool:
        entry = self._index.get(ref)
        return entry is not None and not entry.is_deleting and self._index.is_blocked(entry)

    def _schedule_blocked(self, ref: ResourceRef, trigger: ReconcileTrigger) -> None:
        entry = self._index.get(ref)
        is_missing = entry is not None and any(self._index.get(one) is None for one in entry.awaited)
        self.queue.schedule(ref, MISSING_SECONDS if is_missing else BLOCKED_SECONDS, *trigger)

    def _is_reconciled_here(self, ref: ResourceRef) -> bool:
        return self._replica is None or self._replica.holds(ref)

    # --- Reconciling --------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Reconciles until the queue is shut down and every running step has ended."""
        async with asyncio.TaskGroup() as group:
            self.list_resync.start(group)
            self.remote_watch.start(group)
            for _ in range(self._pool.size):
                group.create_task(self._work())

    def shut_down(self) -> None:
        """Starts no further step."""
        self.queue.shut_down()
        self.list_resync.stop()
        self.remote_watch.stop()
        for ref in self._pool.unpark_all():
            self.queue.done(ref)

    async def _work(self) -> None:
        steps = 0
        while (item := await self._next()) is not None:
            try:
                is_deferred = self.remote_watch.defers(item, self._index.get(item.key))
                if not is_deferred and not self.list_resync.defers(item):
                    await self._step(item)
            finally:
                self.queue.done(item.key)
            steps += 1
            if steps % _STEPS_BEFORE_YIELD == 0:
                # Neither the queue nor a step may have to wait: without this, other tasks would starve.
                await asyncio.sleep(0)

    async def _next(self) -> QueueItem[ResourceRef] | None:
        """The next item; one that keeps failing only while enough workers are left for the rest. None at the end."""
        while True:
            if self._pool.parked and (parked := self._pool.next_parked()) is not None:
                return parked
            item = self.queue.take() or await self.queue.get()
            if isinstance(item, ShutDown):
                return None
            if self.queue.failures(item.key) == 0 or self._pool.has_worker_for_failing:
                return item
            self._pool.park(item)

    async def _step(self, item: QueueItem[ResourceRef]) -> None:
        ref, failed = item.key, self.queue.failures(item.key) > 0
        self._new_blocked.discard(ref)
        self.running_steps[ref] = (item.trigger, self._engine.clock.monotonic())
        self._pool.begin(failed=failed)
        self.list_resync.step_started(ref)
        token = current_caller.set(Caller(ref, failed=failed))
        try:
            outcome = await self._run_step(ref, item.trigger)
        finally:
            current_caller.reset(token)
            self._pool.end(failed=failed)
            self.list_resync.step_finished(ref)
            del self.running_steps[ref]
        if self.last_errors:
            self.last_errors.pop(ref, None)
        if outcome is IDLE:
            self.convergence.seen_in_sync(ref, self._engine.clock.monotonic())
        else:
            self.convergence.step_finished(ref, outcome)
        self._schedule_next(ref, outcome)
        if ref in self._written_in_step:
            self._written_in_step.remove(ref)
            self._restore_status(ref, is_changed=False)

    async def _run_step(self, ref: ResourceRef, trigger: str) -> StepOutcome:
        """The outcome of the step; Stopped by LeaseLost when the shard of `ref` is not held, or was lost."""
        if self._replica is None:
            return await step(ref, self._engine, trigger=trigger)
        # What writes nothing needs no fence.
        idle = await idle_step(ref, self._engine, trigger=trigger) if self._replica.holds(ref) else None
        return idle or await self._replica.run_step(ref, lambda: step(ref, self._engine, trigger=trigger))

    # --- The next step ------------------------------------------------------------------------------------------------

    def _schedule_next(self, ref: ResourceRef, outcome: StepOutcome) -> None:
        if self._replica is not None and not self._replica.holds(ref):
            # Its shard was handed over or lost meanwhile: the next holder schedules the next step.
            self._forget(ref)
            return
        match outcome:
            case Gone():
                self._forget(ref)
            case Settled():
                self.queue.reset(ref)
                self._schedule_resync(ref, is_done=outcome.ready.status == "True", at_the_latest=outcome.requeue_after)
            case Stopped(error):
                self._schedule_after_error(ref, error)

    def _schedule_after_error(self, ref: ResourceRef, error: SetpointError) -> None:
        if error.retry is Retry.STOP:
            # With a replica, a lost lease ends only the work of its shard.
            if self._replica is None or not isinstance(error, LeaseLost):
                self._stop(error)
        elif error.retry is Retry.ON_EDIT or isinstance(error, _WOKEN_BY_EVENT):
            # An edit, or an event of what it waits for, triggers the next step. The resync is for missed events.
            self.queue.reset(ref)
            self._schedule_resync(ref, is_done=False)
        else:
            what = "an operation" if isinstance(error, OperationRunning) else f"a retry after {type(error).__name__}"
            delay = self.queue.retry(ref, error, Priority.DRIFT, what)
            self.last_errors[ref] = error
            if isinstance(error, OperationQueued):
                # It is due in its turn, and not after that delay.
                return
            _log.info("step to be retried", extra={"ref": str(ref), "why": str(error), "seconds": round(delay, 3)})

    def _schedule_resync(self, ref: ResourceRef, *, is_done: bool, at_the_latest: float | None = None) -> None:
        entry = self._index.get(ref)
        mean = DEFAULT_RESYNC_SECONDS if entry is None else entry.resync_seconds
        if mean == 0 and is_done:
            self.queue.forget(ref)
            return
        seconds = jittered_resync(ref, mean or DEFAULT_RESYNC_SECONDS)
        self.queue.schedule(ref, seconds if at_the_latest is None else min(seconds, at_the_latest), *RESYNC)

    def looks_of(self, ref: ResourceRef) -> tuple[float | None, float | None]:
        """How many seconds ago the live object was looked at, and in how many it is next; None where unknown."""
        last = self.convergence.last_look(ref)
        return None if last is None else self._engine.clock.monotonic() - last, self.queue.next_in(ref)

    def _forget(self, ref: ResourceRef) -> None:
        self.queue.forget(ref)
        self._new_blocked.discard(ref)
        self._written_in_step.discard(ref)
        self.convergence.forget(ref)
        self.last_errors.pop(ref, None)
        self._restore_delays.forget(ref)
        self._engine.operations.leave(ref)
        if self._engine.status_edits is not None:
            self._engine.status_edits.forget(ref)
        if self._engine.idle_cache is not None:
            self._engine.idle_cache.drop(ref)


class WorkerPool(ConcurrencyLimit):
    """The workers of a controller. Items that failed last time are parked while their share of workers is in use."""

    __slots__ = ("parked",)

    def __init__(self, size: int) -> None:
        super().__init__(size)
        # Those that are set aside. A dict for its order.
        self.parked: dict[ResourceRef, QueueItem[ResourceRef]] = {}

    @property
    def has_worker_for_failing(self) -> bool:
        """Whether an item that failed last time may be processed now: parked ones come first."""
        return self.has_room_for_failed and not self.parked

    def park(self, item: QueueItem[ResourceRef]) -> None:
        """Sets an item aside until there is a worker for it."""
        self.parked[item.key] = item

    def next_parked(self) -> QueueItem[ResourceRef] | None:
        """The item that was parked first, when there is a worker for it."""
        if not self.parked or not self.has_room_for_failed:
            return None
        return self.parked.pop(next(iter(self.parked)))

    def unpark(self, ref: ResourceRef) -> bool:
        """Forgets a parked item; whether `ref` was parked."""
        return self.parked.pop(ref, None) is not None

    def unpark_all(self) -> tuple[ResourceRef, ...]:
        """Forgets all parked items, and returns them."""
        parked = tuple(self.parked)
        self.parked.clear()
        return parked
