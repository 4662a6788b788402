"""The manager: runs the informer, a controller for each kind and the replica, and shuts them down in order."""

import asyncio
import logging
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from enum import Enum
from typing import Final

from setpoint.engine.context import EngineContext
from setpoint.engine.idle_cache import IdleCache, ListedObjects
from setpoint.engine.resource import ResourceRef
from setpoint.errors import SetpointError
from setpoint.runtime.controller import Controller, WorkerPool
from setpoint.runtime.index import ResourceIndex
from setpoint.runtime.informer import Informer, ResourceEvent
from setpoint.runtime.metrics.convergence import ControllerMetrics
from setpoint.runtime.predicates import SHARD_ACQUIRED, affects_dependants, affects_owners, trigger_for_dependants
from setpoint.runtime.sharding.fencing import FencedStore
from setpoint.runtime.sharding.replica import ControllerReplica, ReconcileScope

_log: Final = logging.getLogger(__name__)
# Less than the half minute after which Kubernetes loses patience.
GRACE_SECONDS: Final = 25.0
# For each kind: a step mostly waits for answers, and may have to wait for its turn to ask.
WORKERS_PER_KIND: Final = 20


class Phase(Enum):
    """How far the process has come."""

    STARTING = "starting"
    RUNNING = "running"
    DRAINING = "draining"
    ENDED = "ended"


class Manager:
    """Runs everything until `stop`. What is in work then is finished; what is not begun waits for the next process.

    With a `replica`, others do the same over the same store: all hear of everything, and each takes steps for the
    shards that it holds. Without one, everything is ours.
    """

    def __init__(
        self,
        engine: EngineContext,
        measures: ControllerMetrics,
        grace: float = GRACE_SECONDS,
        workers: int = WORKERS_PER_KIND,
        replica: ControllerReplica | None = None,
    ) -> None:
        self.heads = ResourceIndex(engine.resource_types, engine.owners)
        store = engine.store if replica is None else FencedStore(engine.store)
        self.engine = replace(engine, store=store, idle_cache=IdleCache(self.heads), listed_objects=ListedObjects())
        self.replica = replica
        self.phase = Phase.STARTING
        scope = ReconcileScope(self._stop_because, replica)
        self.controllers = {
            key: Controller(WorkerPool(engine.resource_types[key], workers), self.engine, self.heads, measures, scope)
            for key in sorted(engine.resource_types)
        }
        self._informer = Informer(engine.store, self.heads, engine.clock, self.hear)
        self._grace = grace
        self._stopping = asyncio.Event()
        self._because: SetpointError | None = None
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def is_ready(self) -> bool:
        """Whether everything that was there at the start has been heard of, and the end has not begun."""
        return self.phase is Phase.RUNNING

    @property
    def dead(self) -> Sequence[str]:
        """The parts that ended though nobody asked for the end."""
        is_going_on = self.phase in (Phase.STARTING, Phase.RUNNING) and not self._stopping.is_set()
        return [task.get_name() for task in self._tasks if task.done()] if is_going_on else []

    @property
    def processing(self) -> int:
        """How many steps are being taken."""
        return sum(one.processing for one in self.controllers.values())

    def last_error_of(self, ref: ResourceRef) -> SetpointError | None:
        """Why the last step of `ref` stopped, when it is to be taken again."""
        controller = self.controllers.get((ref.group, ref.kind))
        return None if controller is None else controller.troubles.get(ref)

    def stop(self) -> None:
        """Asks for the end. It comes when what is in work is done, or after the time of grace."""
        self._stopping.set()

    def hear(self, news: ResourceEvent) -> None:
        """A resource changed: it is looked at, and so are those that need it, and its owner."""
        controller = self.controllers.get((news.ref.group, news.ref.kind))
        if controller is not None:
            controller.hear(news)
        if affects_dependants(news):
            for ref in self.heads.dependants_of(news.ref):
                self.controllers[ref.group, ref.kind].call(ref, trigger_for_dependants(news))
        if news.owners and affects_owners(news):
            for ref in news.owners:
                self.controllers[ref.group, ref.kind].call(ref, trigger_for_dependants(news))

    def gained(self, shards: Collection[int]) -> None:
        """See replica.Keeper."""
        for ref, controller in self._in_shards(shards):
            controller.call(ref, SHARD_ACQUIRED)

    def lost(self, shard: int) -> None:
        """See replica.Keeper."""
        for ref, controller in self._in_shards((shard,)):
            controller.let_go(ref)

    async def run(self) -> None:
        """Returns after an orderly end; raises what ended everything otherwise."""
        async with asyncio.TaskGroup() as group:
            self._tasks = [group.create_task(self._informer.run(), name="informer")]
            ready = group.create_task(self._become_ready(group))
            await self._stopping.wait()
            ready.cancel()
            await self._drain()
            for task in self._tasks:
                task.cancel()
        self.phase = Phase.ENDED
        if self._because is not None:
            raise self._because

    async def _become_ready(self, group: asyncio.TaskGroup) -> None:
        await self._informer.synced.wait()
        self._tasks += [group.create_task(one.run(), name=one.name) for one in self.controllers.values()]
        if self.replica is not None:
            self._tasks.append(group.create_task(self.replica.run(self, self._grace), name="replica"))
            # Whoever is not allowed to have leases is never ready, and those that are go on until then.
            await self.replica.leases.answered.wait()
        self.phase = Phase.RUNNING
        _log.info("running", extra={"resources": len(self.heads), "kinds": len(self.controllers)})

    async def _drain(self) -> None:
        self.phase = Phase.DRAINING
        _log.info("stopping", extra={"in_work": self.processing})
        for controller in self.controllers.values():
            controller.shut_down()
        leaving = asyncio.create_task(self._leave())
        late = asyncio.create_task(self.engine.clock.sleep(self._grace))
        drained = asyncio.create_task(self._drained())
        await asyncio.wait([drained, late], return_when=asyncio.FIRST_COMPLETED)
        if not drained.done():
            _log.warning("steps were cut short", extra={"in_work": self.processing})
        for waiting in (drained, late):
            waiting.cancel()
        await asyncio.gather(drained, late, return_exceptions=True)
        await leaving

    async def _drained(self) -> None:
        for controller in self.controllers.values():
            await controller.queue.drained()

    async def _leave(self) -> None:
        if self.replica is not None:
            await self.replica.leave(self, self._grace)

    def _in_shards(self, shards: Collection[int]) -> Iterator[tuple[ResourceRef, Controller]]:
        """All resources of these shards, and who looks after them."""
        assert self.replica is not None
        for ref in tuple(self.heads):
            controller = self.controllers.get((ref.group, ref.kind))
            if controller is not None and self.replica.shard_of(ref) in shards:
                yield ref, controller

    def _stop_because(self, error: SetpointError) -> None:
        _log.error("stopping", extra={"why": str(error)})
        self._because = self._because or error
        self.stop()
