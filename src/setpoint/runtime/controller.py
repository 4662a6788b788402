"""The controller of one kind: takes keys from the work queue, reconciles them, and schedules retries and resyncs.

Its worker pool limits how many workers failing resources may occupy.
"""

import asyncio
import logging
from typing import Final

from setpoint.clients.ratelimit.fair_queue import ConcurrencyLimit, on_behalf_of
from setpoint.engine.capabilities import SupportsList, SupportsWatch
from setpoint.engine.context import EngineContext, Gone, Settled, StepOutcome, Stopped
from setpoint.engine.kind import ResourceType
from setpoint.engine.requeue import DEFAULT_RESYNC_SECONDS, jittered_resync
from setpoint.engine.resource import ResourceRef
from setpoint.engine.step.reconcile import step
from setpoint.errors import (
    Blocked,
    DependencyNotReady,
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
from setpoint.runtime.predicates import RESYNC, ReconcileTrigger, trigger_for
from setpoint.runtime.remote_watch import NoRemoteWatch, RemoteWatch
from setpoint.runtime.sharding.replica import ReconcileScope
from setpoint.runtime.workqueue.queue import QueueItem, ShutDown, WorkQueue
from setpoint.runtime.workqueue.scheduling import Priority


class WorkerPool(ConcurrencyLimit):
    """The workers of a kind. Items that failed last time are parked while their share of the workers is in use."""

    __slots__ = ("_parked", "kind")

    def __init__(self, kind: ResourceType, size: int) -> None:
        super().__init__(size)
        self.kind = kind
        # A dict for its order.
        self._parked: dict[ResourceRef, QueueItem[ResourceRef]] = {}

    @property
    def has_worker_for_failing(self) -> bool:
        """Whether an item that failed last time may be processed now: parked ones come first."""
        return self.has_room_for_failed and not self._parked

    def park(self, item: QueueItem[ResourceRef]) -> None:
        """Sets an item aside until there is a worker for it."""
        self._parked[item.key] = item

    def next_failing(self) -> QueueItem[ResourceRef] | None:
        """The item that was parked first, when there is a worker for it."""
        if not self._parked or not self.has_room_for_failed:
            return None
        return self._parked.pop(next(iter(self._parked)))

    def release(self, ref: ResourceRef) -> bool:
        """Forgets a parked item; whether `ref` was parked."""
        return self._parked.pop(ref, None) is not None

    def release_all(self) -> tuple[ResourceRef, ...]:
        """Forgets all parked items, and returns them."""
        parked = tuple(self._parked)
        self._parked.clear()
        return parked


_log: Final = logging.getLogger(__name__)
# After these somebody tells when there is something new.
_WOKEN_BY_EVENT: Final = (Blocked, DependencyNotReady, WaitTimedOut, WaitFailed)
_STEPS_BEFORE_YIELD: Final = 16


class Controller:
    """The resources of one kind, as far as they are this process's to look at."""

    def __init__(
        self,
        crew: WorkerPool,
        engine: EngineContext,
        heads: ResourceIndex,
        measures: ControllerMetrics,
        scope: ReconcileScope,
    ) -> None:
        self.name = crew.kind.name
        self.queue: WorkQueue[ResourceRef] = WorkQueue(engine.clock)
        self._world = engine
        self._heads = heads
        self._convergence = ConvergenceTracker(self.name, measures, engine.clock)
        self._scope = scope
        self._pool = crew
        self.lister = self._new_lister(crew.kind)
        kind = crew.kind
        self.listener = (
            RemoteWatch(kind, engine.clock, self.call) if isinstance(kind, SupportsWatch) else NoRemoteWatch()
        )
        # Why each of those that are to be retried stopped; the status says so only where that is the resource's state.
        self.troubles: dict[ResourceRef, SetpointError] = {}
        # What is in work: why, and since when.
        self.working: dict[ResourceRef, tuple[str, float]] = {}

    def _new_lister(self, kind: ResourceType) -> ListResync | NoListResync:
        """A list says something only to those who remember what was there before."""
        is_remembered = self._world.idle_cache is not None and self._world.listed_objects is not None
        if is_remembered and isinstance(kind, SupportsList):
            lister = ListResync(kind, self._world, self._heads, self.queue, self._convergence)
            lister.covers = self._scope.covers
            return lister
        return NoListResync()

    @property
    def workers(self) -> int:
        """How many steps may be taken at once."""
        return self._pool.size

    @property
    def processing(self) -> int:
        """How many steps are being taken."""
        return self._pool.in_use

    # --- What there is to do -----------------------------------------------------------------------------------------

    def hear(self, news: ResourceEvent) -> None:
        """A resource of this kind changed."""
        self.lister.hear(news)
        self.listener.hear(news)
        if news.after is None:
            self._forget(news.ref)
            return
        reason = trigger_for(news)
        if reason is None or not self._scope.covers(news.ref):
            return
        if reason.priority is Priority.EDIT:
            # The author did something about it: what failed before may not fail again.
            self._convergence.edited(news.ref)
            self.queue.forget(news.ref)
        self.call(news.ref, reason)

    def call(self, ref: ResourceRef, reason: ReconcileTrigger) -> None:
        """`ref` is to be looked at, if that is to be done here."""
        if not self._scope.covers(ref):
            return
        self.lister.invalidate(ref)
        self.queue.add(ref, *reason)
        if self._pool.release(ref):
            # It waited for its turn among those that fail: the queue has it again, with its new reason.
            self.queue.done(ref)

    def let_go(self, ref: ResourceRef) -> None:
        """`ref` is not looked at here any more; a step in work goes on."""
        self.lister.invalidate(ref)
        self.queue.discard(ref)
        if self._pool.release(ref):
            self.queue.done(ref)
        self._forget(ref)

    # --- Doing it ----------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Takes steps until the queue is shut down and everything in work is done."""
        async with asyncio.TaskGroup() as group:
            self.lister.start(group)
            self.listener.start(group)
            for _ in range(self._pool.size):
                group.create_task(self._work())

    def shut_down(self) -> None:
        """Begins no step any more."""
        self.queue.shut_down()
        self.lister.stop()
        self.listener.stop()
        for ref in self._pool.release_all():
            self.queue.done(ref)

    async def _work(self) -> None:
        steps = 0
        while (item := await self._next()) is not None:
            try:
                if not self.lister.takes(item):
                    await self._step(item)
            finally:
                self.queue.done(item.key)
            steps += 1
            if steps % _STEPS_BEFORE_YIELD == 0:
                # Neither the queue nor a step has to wait for anything: others would never have their turn.
                await asyncio.sleep(0)

    async def _next(self) -> QueueItem[ResourceRef] | None:
        """The next one to step; those that keep failing only while enough hands are left for the others."""
        while True:
            waiting = self._pool.next_failing()
            if waiting is not None:
                return waiting
            item = await self.queue.get()
            if isinstance(item, ShutDown):
                return None
            if self.queue.failures(item.key) == 0 or self._pool.has_worker_for_failing:
                return item
            self._pool.park(item)

    async def _step(self, item: QueueItem[ResourceRef]) -> None:
        ref, failed = item.key, self.queue.failures(item.key) > 0
        self.working[ref] = (item.trigger, self._world.clock.monotonic())
        self._pool.begin(failed=failed)
        self.lister.begin_step(ref)
        try:
            with on_behalf_of(ref, failed=failed):
                outcome = await self._scope.take(ref, lambda: step(ref, self._world, trigger=item.trigger))
        finally:
            self._pool.end(failed=failed)
            self.lister.end_step(ref)
            del self.working[ref]
        self.troubles.pop(ref, None)
        self._convergence.step_finished(ref, outcome)
        self._plan_next(ref, outcome)

    # --- What comes next ---------------------------------------------------------------------------------------------

    def _plan_next(self, ref: ResourceRef, outcome: StepOutcome) -> None:
        if not self._scope.covers(ref):
            # Its shard was handed over or lost meanwhile: whoever holds it plans the next look.
            self._forget(ref)
            return
        match outcome:
            case Gone():
                self._forget(ref)
            case Settled():
                self.queue.forget(ref)
                self._look_again(ref, is_done=outcome.ready.status == "True", at_the_latest=outcome.again)
            case Stopped(error):
                self._after(ref, error)

    def _after(self, ref: ResourceRef, error: SetpointError) -> None:
        if error.retry is Retry.STOP:
            self._scope.end(error)
        elif error.retry is Retry.ON_EDIT or isinstance(error, _WOKEN_BY_EVENT):
            # The author, or news of what it waits for, will call; the regular look is for what nobody tells us.
            self.queue.forget(ref)
            self._look_again(ref, is_done=False)
        else:
            what = "an operation" if isinstance(error, OperationRunning) else f"a retry after {type(error).__name__}"
            delay = self.queue.retry(ref, error, Priority.DRIFT, what)
            self.troubles[ref] = error
            _log.info("step to be retried", extra={"ref": str(ref), "why": str(error), "seconds": round(delay, 3)})

    def _look_again(self, ref: ResourceRef, *, is_done: bool, at_the_latest: float | None = None) -> None:
        head = self._heads.get(ref)
        mean = DEFAULT_RESYNC_SECONDS if head is None else head.mean
        if mean == 0:
            if is_done:
                return
            mean = DEFAULT_RESYNC_SECONDS
        seconds = jittered_resync(ref, mean)
        self.queue.schedule(ref, seconds if at_the_latest is None else min(seconds, at_the_latest), *RESYNC)

    def _forget(self, ref: ResourceRef) -> None:
        self.queue.forget(ref)
        self._convergence.forget(ref)
        self.troubles.pop(ref, None)
        if self._world.idle_cache is not None:
            self._world.idle_cache.drop(ref)
