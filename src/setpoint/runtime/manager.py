"""The manager: runs the informer, a controller for each kind and the replica, and shuts them down in order."""

import asyncio
import gc
import logging
from collections.abc import Callable, Collection, Coroutine, Iterable, Sequence
from datetime import datetime
from enum import Enum
from functools import partial
from typing import Any, Final

from setpoint.clients.admin_api import ResourceLook, ResourceName
from setpoint.core.unstructured import GroupKind
from setpoint.core.values.deferred_dataclass import replace
from setpoint.core.values.durations import rfc3339
from setpoint.engine.claims.object_claims import ObjectClaims
from setpoint.engine.contention.operation_queue import OperationQueues
from setpoint.engine.contention.status_edits import StatusEdits
from setpoint.engine.context import EngineContext
from setpoint.engine.idle_cache import IdleCache, ListedObjects
from setpoint.engine.ports import DefinedStore, unserved_kinds
from setpoint.engine.resource import ResourceRef
from setpoint.engine.tenancy.reference_grants import REFERENCE_GRANT
from setpoint.engine.tenancy.tenants import NAMESPACE
from setpoint.errors import SetpointError
from setpoint.runtime.controller import Controller
from setpoint.runtime.index import ResourceIndex
from setpoint.runtime.informer import Informer, ResourceEvent
from setpoint.runtime.metrics.convergence import ControllerMetrics
from setpoint.runtime.predicates import (
    CLAIM_RELEASED,
    DEFINITION_CHANGED,
    FOREIGN_CHANGE,
    GRANT_CHANGED,
    NAMESPACE_CHANGED,
    OPERATION_TURN,
    SHARD_ACQUIRED,
    ReconcileTrigger,
    affects_dependants,
    affects_owners,
    trigger_for_dependants,
)
from setpoint.runtime.sharding.fencing import FencedStore
from setpoint.runtime.sharding.replica import ControllerReplica

_log: Final = logging.getLogger(__name__)
# Less than the 30 s after which Kubernetes kills a pod.
GRACE_SECONDS: Final = 25.0
# For each kind: a step spends most of its time waiting for a service or its rate limiter.
WORKERS_PER_KIND: Final = 20
# Of all resources, so many are looked at before other tasks have their turn.
REFS_BEFORE_YIELD: Final = 1000
# How many objects are made before garbage is collected, and how often before older objects are looked at, too.
_COLLECTION_THRESHOLDS: Final = (10_000, 20, 20)


class Phase(Enum):
    """The lifecycle phase of the process."""

    STARTING = "starting"
    RUNNING = "running"
    DRAINING = "draining"
    ENDED = "ended"


class Manager:
    """Runs the informer and all controllers until `stop`. Running steps are finished; queued ones are left.

    With a `replica`, several processes share the store: each of them watches everything, and reconciles the resources
    of the shards that it holds. Without one, this process reconciles all of them.
    """

    # Is told of every change as well, and must not wait.
    observer: Callable[[ResourceEvent], None] | None = None

    def __init__(
        self,
        engine: EngineContext,
        metrics: ControllerMetrics,
        grace: float = GRACE_SECONDS,
        workers: int = WORKERS_PER_KIND,
        replica: ControllerReplica | None = None,
    ) -> None:
        self.index = ResourceIndex(engine.resource_types, engine.owners, collects=engine.store.collects)
        self.engine = replace(
            engine,
            store=engine.store if replica is None else FencedStore(engine.store),
            idle_cache=IdleCache(self.index),
            listed_objects=ListedObjects(),
            claims=ObjectClaims(self.index, is_shared=replica is not None),
            status_edits=StatusEdits(),
            definitions=engine.store.definitions if isinstance(engine.store, DefinedStore) else None,
            operations=OperationQueues(lambda ref: self._enqueue(ref, OPERATION_TURN)),
        )
        self.replica, self.phase = replica, Phase.STARTING
        # Of the kinds with resources, each made for the first one; and of those that were added.
        self.controllers: dict[GroupKind, Controller] = {}
        self._workers, self._metrics, self._resource_types = workers, metrics, engine.resource_types
        # Without fences, for what is only read.
        self._store = engine.store
        self._informer = Informer(engine.store, self.index, engine.clock, self.handle_event)
        self._grace, self._stopping = grace, asyncio.Event()
        self._because: SetpointError | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._group: asyncio.TaskGroup | None = None  # set by `run`
        self._are_started = False
        self._changed_namespaces, self._is_looking_at_namespaces = set[str](), False

    @property
    def is_ready(self) -> bool:
        """Whether the informer and the replica are in sync, and the process is not stopping."""
        return self.phase is Phase.RUNNING

    @property
    def failed_tasks(self) -> Sequence[str]:
        """The names of the tasks that ended while the process was to go on."""
        is_to_run = self.phase in (Phase.STARTING, Phase.RUNNING) and not self._stopping.is_set()
        return [task.get_name() for task in self._tasks if task.done()] if is_to_run else []

    @property
    def unserved_kinds(self) -> Sequence[str]:
        """The kinds that the store does not serve: their resources are reconciled once it does."""
        return sorted(kind for _, kind in unserved_kinds(self._store))

    @property
    def outdated_kinds(self) -> Sequence[str]:
        """The kinds whose definition is older than this process: nothing is done for them until it is updated."""
        return () if self.engine.definitions is None else sorted(kind for _, kind in self.engine.definitions.outdated)

    @property
    def processing(self) -> int:
        """How many steps are running."""
        return sum(one.processing for one in self.controllers.values())

    async def synced(self) -> None:
        """Returns when the index has every resource of the store."""
        await self._informer.synced.wait()

    def last_error_of(self, ref: ResourceRef) -> SetpointError | None:
        """The error of the last step of `ref`, when it is to be retried."""
        controller = self.controllers.get((ref.group, ref.kind))
        return None if controller is None else controller.last_errors.get(ref)

    def look_of(self, ref: ResourceRef) -> ResourceLook | None:
        """When the live object was last looked at, and is next; None where nothing is known of that."""
        controller = self.controllers.get((ref.group, ref.kind))
        ago, ahead = (None, None) if controller is None else controller.looks_of(ref)
        if ago is None and ahead is None:
            return None
        now = datetime.fromisoformat(self.engine.clock.now()).timestamp()
        last = "" if ago is None else rfc3339(int(now - ago))
        return ResourceLook(ResourceName(*ref), last, "" if ahead is None else rfc3339(int(now + ahead)))

    def stop(self) -> None:
        """Starts the shutdown. It ends when the running steps have finished, or after the grace period."""
        self._stopping.set()

    def handle_event(self, event: ResourceEvent) -> None:
        """A resource changed: queues it, its dependants and its owners, as the predicates say.

        So are resources that were refused an object that is released now, and all resources of a Namespace.
        """
        if self.observer is not None:
            self.observer(event)
        if self._is_reconciled(event.ref):
            self._controller_of(event.ref.group_kind).handle_event(event)
        if affects_dependants(event):
            self._handle_dependants(event)
        if event.owners and affects_owners(event):
            for ref in event.owners:
                self._enqueue(ref, trigger_for_dependants(event))
        self._handle_released_claims(event)
        self._handle_tenancy(event)

    def add_controllers(self, keys: Iterable[GroupKind]) -> None:
        """Adds the controllers of these kinds, which may have no resource yet: their series begin at zero."""
        for key in sorted(keys):
            self._controller_of(key)

    def _is_reconciled(self, ref: ResourceRef) -> bool:
        return ref.group_kind in self.controllers or ref.group_kind in self._resource_types

    def _controller_of(self, key: GroupKind) -> Controller:
        """The controller of a kind; one that is new runs at once if the others do."""
        if key not in self.controllers:
            kind = self._resource_types[key]
            self._metrics.add_kind(kind)
            self.controllers[key] = Controller(
                kind,
                self.engine,
                self.index,
                workers=self._workers,
                metrics=self._metrics,
                stop=self._stop_because,
                replica=self.replica,
            )
            if self._are_started:
                self._start_controller(self.controllers[key])
            if self.phase is Phase.DRAINING:
                self.controllers[key].shut_down()
        return self.controllers[key]

    def _start_controller(self, controller: Controller) -> None:
        assert self._group is not None, "`run` has to go on"
        self._tasks.append(self._group.create_task(controller.run(), name=controller.name))

    def _handle_dependants(self, event: ResourceEvent) -> None:
        for ref in self.index.dependants_of(event.ref):
            entry = self.index.get(ref)
            # Deletion goes by the location on record.
            if entry is None or not entry.is_deleting or entry.location is None:
                self._enqueue_because(ref, event)
        # A service may refuse to delete what others depend on: it is tried again once the last of them is gone.
        for ref in event.before.dependencies if event.before is not None and event.after is None else ():
            if self._is_deleting(ref) and not any(map(self._is_deleting, self.index.dependants_of(ref))):
                self._enqueue_because(ref, event)

    def _enqueue_because(self, ref: ResourceRef, event: ResourceEvent) -> None:
        trigger = FOREIGN_CHANGE if self.engine.is_foreign(event.ref, ref) else trigger_for_dependants(event)
        if event.after is not None and event.after.is_deleting:
            self._controller_of(ref.group_kind).enqueue_as_blocked(ref, trigger)
        else:
            self._enqueue(ref, trigger)

    def _is_deleting(self, ref: ResourceRef) -> bool:
        entry = self.index.get(ref)
        return entry is not None and entry.is_deleting and self._is_reconciled(ref)

    def _handle_tenancy(self, event: ResourceEvent) -> None:
        """What tenants were given may have changed: by a grant, or by an administrator."""
        if event.ref.group_kind == REFERENCE_GRANT and not event.is_initial:
            for ref in self.index.dependants_into(event.ref.namespace):
                self._enqueue(ref, GRANT_CHANGED)
        if event.ref.group_kind == NAMESPACE:
            self._handle_namespace(event)

    def _enqueue(self, ref: ResourceRef, trigger: ReconcileTrigger) -> None:
        self._controller_of(ref.group_kind).enqueue(ref, trigger)

    def _handle_released_claims(self, event: ResourceEvent) -> None:
        before = () if event.before is None else event.before.claim_keys
        after = () if event.after is None else event.after.claim_keys
        for ref in self.engine.claims.released(set(before) - set(after)) if before != after else ():
            self._enqueue(ref, CLAIM_RELEASED)

    def _handle_namespace(self, event: ResourceEvent) -> None:
        """What an administrator set up for a namespace may have changed."""
        if event.is_initial or (
            event.before and event.after and event.before.metadata_hash == event.after.metadata_hash
        ):
            return
        self._changed_namespaces.add(event.ref.name)
        if not self._is_looking_at_namespaces:
            self._is_looking_at_namespaces = True
            self._start(self._enqueue_changed_namespaces())

    async def _enqueue_changed_namespaces(self) -> None:
        """Looks at all resources once for every Namespace that changed meanwhile: they often change together."""
        while self._changed_namespaces:
            names, self._changed_namespaces = self._changed_namespaces, set()
            await self._enqueue_where(partial(_is_in_namespaces, names), NAMESPACE_CHANGED)
        self._is_looking_at_namespaces = False

    def shards_gained(self, shards: Collection[int]) -> None:
        """See ShardCallbacks."""
        replica, gained = self.replica, frozenset(shards)
        assert replica is not None
        self._start(self._enqueue_where(lambda ref: replica.shard_of(ref) in gained, SHARD_ACQUIRED))

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        assert self._group is not None, "`run` has to go on"
        self._group.create_task(work)

    async def _enqueue_where(self, is_wanted: Callable[[ResourceRef], bool], trigger: ReconcileTrigger) -> None:
        """Queues all such resources. To look at very many takes longer than a lease may wait for its renewal."""
        refs = tuple(self.index)
        for start in range(0, len(refs), REFS_BEFORE_YIELD):
            for ref in filter(is_wanted, refs[start : start + REFS_BEFORE_YIELD]):
                if self._is_reconciled(ref):
                    self._enqueue(ref, trigger)
            await asyncio.sleep(0)
            if self._stopping.is_set():
                return

    def shards_lost(self, shards: Collection[int]) -> None:
        """See ShardCallbacks."""
        assert self.replica is not None
        for ref in tuple(self.index):
            controller = self.controllers.get(ref.group_kind)
            if controller is not None and self.replica.shard_of(ref) in shards:
                controller.release(ref)

    async def run(self) -> None:
        """Returns after an orderly shutdown; raises the error that ended the process otherwise."""
        async with asyncio.TaskGroup() as group:
            self._group = group
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
        await self.synced()
        self._are_started = True
        for controller in self.controllers.values():
            self._start_controller(controller)
        self._tasks.append(group.create_task(self._follow_definitions(), name="definitions"))
        if self.replica is not None:
            self._tasks.append(group.create_task(self.replica.run(self, self._grace), name="replica"))
            # A process that may not access leases never gets ready, so a rolling update stops at it.
            await self.replica.leases.store_answered.wait()
        self.phase = Phase.RUNNING
        _log.info("running", extra={"resources": len(self.index), "kinds": len(self._resource_types)})

    async def _follow_definitions(self) -> None:
        if self.engine.definitions is None:
            # A task that ends is taken for one that failed.
            await self._stopping.wait()
            return
        async for kinds in self.engine.definitions.changes():
            await self._enqueue_where(partial(_is_of_kinds, kinds), DEFINITION_CHANGED)

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
        for controller in tuple(self.controllers.values()):
            await controller.queue.drained()

    async def _leave(self) -> None:
        if self.replica is not None:
            await self.replica.leave()

    def _stop_because(self, error: SetpointError) -> None:
        _log.error("stopping", extra={"why": str(error)})
        self._because = self._because or error
        self.stop()


def _is_in_namespaces(names: Collection[str], ref: ResourceRef) -> bool:
    return ref.namespace in names


def _is_of_kinds(kinds: Collection[GroupKind], ref: ResourceRef) -> bool:
    return ref.group_kind in kinds


async def freeze_index(manager: Manager) -> None:
    """Exempts what the index holds from garbage collection, once it is complete; for the manager of a whole process.

    With a million resources a full collection would stop the process for seconds, and leases wait for ten. What steps
    leave behind has few cycles: it is collected less often than by default, for a fortieth of the CPU time.
    """
    await manager.synced()
    gc.freeze()
    gc.set_threshold(*_COLLECTION_THRESHOLDS)
