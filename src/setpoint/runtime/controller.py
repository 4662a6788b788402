"""Steps for all resources of one kind, for ever: from the queue to a step, and from its outcome to the next look."""

import asyncio
import logging
from collections.abc import Callable
from typing import Final, Protocol

from setpoint.clients.callers import calling_for
from setpoint.core.decide import Decision
from setpoint.engine.cadence import MEAN_SECONDS, spread
from setpoint.engine.reconcile import step
from setpoint.engine.resource import ResourceRef
from setpoint.engine.scene import Gone, Outcome, Settled, Stopped, World
from setpoint.errors import Blocked, DependencyNotReady, OperationRunning, Retry, SetpointError
from setpoint.runtime.crew import Crew
from setpoint.runtime.heads import Heads
from setpoint.runtime.informer import News
from setpoint.runtime.priorities import Priority
from setpoint.runtime.reasons import RESYNC, Reason, reason_for
from setpoint.runtime.workqueue import Item, ShutDown, WorkQueue

_log: Final = logging.getLogger(__name__)
_STEPS_IN_A_ROW: Final = 16


class Measures(Protocol):
    """What is measured of a controller, besides its steps and its queue."""

    def converged(self, kind: str, seconds: float) -> None:
        """An edit was carried out that long after it was heard of."""
        ...

    def drifted(self, kind: str, seconds: float) -> None:
        """Drift was found at most that long after it came to be."""
        ...


class Controller:
    """The resources of one kind. `stop` is called when this process may not go on."""

    def __init__(
        self,
        crew: Crew,
        world: World,
        heads: Heads,
        measures: Measures,
        stop: Callable[[SetpointError], None],
    ) -> None:
        self.name = crew.name
        self.queue: WorkQueue[ResourceRef] = WorkQueue(world.clock)
        self._world = world
        self._heads = heads
        self._measures = measures
        self._stop = stop
        self._crew = crew
        # When the first edit was heard of that is not carried out yet; when a look last found everything in order.
        self._edited: dict[ResourceRef, float] = {}
        # Why each of those that are to be retried stopped; the status says so only where that is the resource's state.
        self.troubles: dict[ResourceRef, SetpointError] = {}
        # What is in work: why, and since when.
        self.working: dict[ResourceRef, tuple[str, float]] = {}
        self._in_order: dict[ResourceRef, float] = {}

    @property
    def workers(self) -> int:
        """How many steps may be taken at once."""
        return self._crew.size

    @property
    def in_work(self) -> int:
        """How many steps are being taken."""
        return self._crew.busy

    # --- What there is to do -----------------------------------------------------------------------------------------

    def hear(self, news: News) -> None:
        """A resource of this kind changed."""
        if news.after is None:
            self._forget(news.ref)
            return
        reason = reason_for(news)
        if reason is None:
            return
        if reason.priority is Priority.EDIT:
            # The author did something about it: what failed before may not fail again.
            self._edited.setdefault(news.ref, self._world.clock.monotonic())
            self.queue.forget(news.ref)
        self.call(news.ref, reason)

    def call(self, ref: ResourceRef, reason: Reason) -> None:
        """`ref` is to be looked at."""
        self.queue.add(ref, *reason)
        if self._crew.release(ref):
            # It waited for its turn among those that fail: the queue has it again, with its new reason.
            self.queue.done(ref)

    # --- Doing it ----------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Takes steps until the queue is shut down and everything in work is done."""
        async with asyncio.TaskGroup() as group:
            for _ in range(self._crew.size):
                group.create_task(self._work())

    def shut_down(self) -> None:
        """Begins no step any more."""
        self.queue.shut_down()
        for ref in self._crew.release_all():
            self.queue.done(ref)

    async def _work(self) -> None:
        steps = 0
        while (item := await self._next()) is not None:
            try:
                await self._step(item)
            finally:
                self.queue.done(item.key)
            steps += 1
            if steps % _STEPS_IN_A_ROW == 0:
                # Neither the queue nor a step has to wait for anything: others would never have their turn.
                await asyncio.sleep(0)

    async def _next(self) -> Item[ResourceRef] | None:
        """The next one to step; those that keep failing only while enough hands are left for the others."""
        while True:
            waiting = self._crew.next_failing()
            if waiting is not None:
                return waiting
            item = await self.queue.get()
            if isinstance(item, ShutDown):
                return None
            if self.queue.failures(item.key) == 0 or self._crew.has_hands_for_failing:
                return item
            self._crew.put_aside(item)

    async def _step(self, item: Item[ResourceRef]) -> None:
        ref, failed = item.key, self.queue.failures(item.key) > 0
        self.working[ref] = (item.trigger, self._world.clock.monotonic())
        self._crew.begin(failing=failed)
        try:
            with calling_for(ref, failed=failed):
                outcome = await step(ref, self._world, trigger=item.trigger)
        finally:
            self._crew.end(failing=failed)
            del self.working[ref]
        self.troubles.pop(ref, None)
        self._measure(ref, outcome)
        self._plan_next(ref, outcome)

    # --- What comes next ---------------------------------------------------------------------------------------------

    def _plan_next(self, ref: ResourceRef, outcome: Outcome) -> None:
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
            self._stop(error)
        elif error.retry is Retry.ON_EDIT or isinstance(error, DependencyNotReady | Blocked):
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
        mean = MEAN_SECONDS if head is None else head.mean
        if mean == 0:
            if is_done:
                return
            mean = MEAN_SECONDS
        seconds = spread(ref, mean)
        self.queue.schedule(ref, seconds if at_the_latest is None else min(seconds, at_the_latest), *RESYNC)

    def _forget(self, ref: ResourceRef) -> None:
        self.queue.forget(ref)
        self._edited.pop(ref, None)
        self._in_order.pop(ref, None)
        self.troubles.pop(ref, None)
        if self._world.rests is not None:
            self._world.rests.drop(ref)

    def _measure(self, ref: ResourceRef, outcome: Outcome) -> None:
        if not (isinstance(outcome, Settled) and outcome.ready.status == "True"):
            return
        now = self._world.clock.monotonic()
        edited = self._edited.pop(ref, None)
        if edited is not None:
            self._measures.converged(ref.kind, now - edited)
        seen = self._in_order.get(ref)
        if outcome.plan.decision is Decision.DRIFTED and seen is not None:
            self._measures.drifted(ref.kind, now - seen)
        self._in_order[ref] = now
