"""The controller of one kind: takes keys from the work queue, reconciles them, and schedules retries and resyncs.

Its worker pool limits how many workers failing resources may occupy.
"""

import asyncio
import logging
from typing import Final

from setpoint.clients.ratelimit.fair_queue import on_behalf_of
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


class WorkerPool:
    """So many hands for a kind, of which at most three quarters, and never all, are busy with what failed last time."""

    def __init__(self, kind: ResourceType, size: int) -> None:
        self.kind = kind
        self.size = size
        self.busy = 0
        self._most_failing = max(1, size * 3 // 4)
        self._failing = 0
        # A dict for its order: those that wait until there are hands for what fails.
        self._aside: dict[ResourceRef, QueueItem[ResourceRef]] = {}

    @property
    def has_worker_for_failing(self) -> bool:
        """Whether one more that failed may be taken on."""
        return self._failing < self._most_failing and not self._aside

    def park(self, item: QueueItem[ResourceRef]) -> None:
        """It waits until there are hands for it."""
        self._aside[item.key] = item

    def next_failing(self) -> QueueItem[ResourceRef] | None:
        """The one that was put aside first, when there are hands for it."""
        if not self._aside or self._failing >= self._most_failing:
            return None
        return self._aside.pop(next(iter(self._aside)))

    def release(self, ref: ResourceRef) -> bool:
        """Whether `ref` was waiting; it does not any more."""
        return self._aside.pop(ref, None) is not None

    def release_all(self) -> tuple[ResourceRef, ...]:
        """All that waited; none does any more."""
        waiting = tuple(self._aside)
        self._aside.clear()
        return waiting

    def begin(self, *, failing: bool) -> None:
        """One more hand is busy."""
        self.busy += 1
        self._failing += failing

    def end(self, *, failing: bool) -> None:
        """A hand is free again."""
        self.busy -= 1
        self._failing -= failing


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
        return self._pool.busy

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
        self._pool.begin(failing=failed)
        self.lister.begin_step(ref)
        try:
            with on_behalf_of(ref, failed=failed):
                outcome = await self._scope.take(ref, lambda: step(ref, self._world, trigger=item.trigger))
        finally:
            self._pool.end(failing=failed)
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
