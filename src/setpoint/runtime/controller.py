"""Steps for all resources of one kind, for ever: from the queue to a step, and from its outcome to the next look."""

import asyncio
import logging
from typing import Final

from setpoint.clients.callers import calling_for
from setpoint.engine.abilities import Audible
from setpoint.engine.cadence import MEAN_SECONDS, spread
from setpoint.engine.kind import Sort
from setpoint.engine.reconcile import step
from setpoint.engine.resource import ResourceRef
from setpoint.engine.scene import Gone, Outcome, Settled, Stopped, World
from setpoint.engine.shelf import Listable
from setpoint.errors import (
    Blocked,
    DependencyNotReady,
    OperationRunning,
    Retry,
    SetpointError,
    WaitFailed,
    WaitTimedOut,
)
from setpoint.runtime.ages import Ages, Measures
from setpoint.runtime.crew import Crew
from setpoint.runtime.duty import Duty
from setpoint.runtime.heads import Heads
from setpoint.runtime.informer import News
from setpoint.runtime.listener import Deaf, Listener
from setpoint.runtime.lister import Lister, Unlisted
from setpoint.runtime.priorities import Priority
from setpoint.runtime.reasons import RESYNC, Reason, reason_for
from setpoint.runtime.workqueue import Item, ShutDown, WorkQueue

_log: Final = logging.getLogger(__name__)
# After these somebody tells when there is something new.
_TOLD_OF: Final = (Blocked, DependencyNotReady, WaitTimedOut, WaitFailed)
_STEPS_IN_A_ROW: Final = 16


class Controller:
    """The resources of one kind, as far as they are this process's to look at."""

    def __init__(self, crew: Crew, world: World, heads: Heads, measures: Measures, duty: Duty) -> None:
        self.name = crew.kind.name
        self.queue: WorkQueue[ResourceRef] = WorkQueue(world.clock)
        self._world = world
        self._heads = heads
        self._ages = Ages(self.name, measures, world.clock)
        self._duty = duty
        self._crew = crew
        self.lister = self._new_lister(crew.kind)
        kind = crew.kind
        self.listener = Listener(kind, world.clock, self.call) if isinstance(kind, Audible) else Deaf()
        # Why each of those that are to be retried stopped; the status says so only where that is the resource's state.
        self.troubles: dict[ResourceRef, SetpointError] = {}
        # What is in work: why, and since when.
        self.working: dict[ResourceRef, tuple[str, float]] = {}

    def _new_lister(self, kind: Sort) -> Lister | Unlisted:
        """A list says something only to those who remember what was there before."""
        is_remembered = self._world.rests is not None and self._world.sightings is not None
        if is_remembered and isinstance(kind, Listable):
            lister = Lister(kind, self._world, self._heads, self.queue, self._ages)
            lister.covers = self._duty.covers
            return lister
        return Unlisted()

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
        self.lister.hear(news)
        self.listener.hear(news)
        if news.after is None:
            self._forget(news.ref)
            return
        reason = reason_for(news)
        if reason is None or not self._duty.covers(news.ref):
            return
        if reason.priority is Priority.EDIT:
            # The author did something about it: what failed before may not fail again.
            self._ages.edited(news.ref)
            self.queue.forget(news.ref)
        self.call(news.ref, reason)

    def call(self, ref: ResourceRef, reason: Reason) -> None:
        """`ref` is to be looked at, if that is to be done here."""
        if not self._duty.covers(ref):
            return
        self.lister.disturb(ref)
        self.queue.add(ref, *reason)
        if self._crew.release(ref):
            # It waited for its turn among those that fail: the queue has it again, with its new reason.
            self.queue.done(ref)

    def let_go(self, ref: ResourceRef) -> None:
        """`ref` is not looked at here any more; a step in work goes on."""
        self.lister.disturb(ref)
        self.queue.discard(ref)
        if self._crew.release(ref):
            self.queue.done(ref)
        self._forget(ref)

    # --- Doing it ----------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Takes steps until the queue is shut down and everything in work is done."""
        async with asyncio.TaskGroup() as group:
            self.lister.start(group)
            self.listener.start(group)
            for _ in range(self._crew.size):
                group.create_task(self._work())

    def shut_down(self) -> None:
        """Begins no step any more."""
        self.queue.shut_down()
        self.lister.stop()
        self.listener.stop()
        for ref in self._crew.release_all():
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
        self.lister.begin_step(ref)
        try:
            with calling_for(ref, failed=failed):
                outcome = await self._duty.take(ref, lambda: step(ref, self._world, trigger=item.trigger))
        finally:
            self._crew.end(failing=failed)
            self.lister.end_step(ref)
            del self.working[ref]
        self.troubles.pop(ref, None)
        self._ages.stepped(ref, outcome)
        self._plan_next(ref, outcome)

    # --- What comes next ---------------------------------------------------------------------------------------------

    def _plan_next(self, ref: ResourceRef, outcome: Outcome) -> None:
        if not self._duty.covers(ref):
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
            self._duty.end(error)
        elif error.retry is Retry.ON_EDIT or isinstance(error, _TOLD_OF):
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
        self._ages.forget(ref)
        self.troubles.pop(ref, None)
        if self._world.rests is not None:
            self._world.rests.drop(ref)
