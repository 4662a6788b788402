"""Lists, watches and reconciles a fleet with the parts of `setpoint run`.

The services behind the resources answer from memory. There are no leases: their cost does not depend on the number of
resources.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import msgspec

from benchmarks.comparison import WrongResult
from benchmarks.fleet import FLEET, Fleet, InMemoryServices, kinds_of
from benchmarks.list_watch_setpoint_client import client_for
from benchmarks.measured_process import Job, Usage, UsageMeter, signal_ready_and_wait
from benchmarks.process_memory import resident_bytes
from benchmarks.setpoint_process import samples_in
from setpoint.clients.google.calls import GoogleCall
from setpoint.clients.google.client import GoogleClient
from setpoint.clients.http import HttpClient, HttpRequest, HttpResponse
from setpoint.clients.kubernetes.client import KubernetesClient
from setpoint.core.decide import Decision
from setpoint.engine.context import EngineContext
from setpoint.engine.owner import SECRETS
from setpoint.engine.ports import EVERYTHING, ResourceChange, ResourceQuery, SystemClock
from setpoint.engine.resource import ResourceRef, Revision
from setpoint.runtime.informer import Informer, ResourceEvent
from setpoint.runtime.manager import Manager
from setpoint.runtime.metrics.telemetry import Telemetry
from setpoint.runtime.predicates import RESYNC
from setpoint.runtime.workqueue.scheduling import Priority
from setpoint.stores.kubernetes.cache import ObjectCache
from setpoint.stores.kubernetes.factory import SYSTEM_NAMESPACE, served_kinds
from setpoint.stores.kubernetes.served_kinds import ClusterScope
from setpoint.stores.kubernetes.store import KubernetesStore

# How often each resource is reconciled after the first time.
_LATER_RECONCILES: Final = 3
_POLL_SECONDS: Final = 0.02


class _CountingHttpClient(HttpClient):
    """Counts requests; watches are not counted."""

    def __init__(self) -> None:
        super().__init__()
        self.requests_sent = 0

    async def send(self, request: HttpRequest) -> HttpResponse:
        """See HttpClient."""
        self.requests_sent += 1
        return await super().send(request)


class _GatedServices(InMemoryServices):
    """Services that answer no request until the gate is open."""

    def __init__(self, fleet: Fleet) -> None:
        super().__init__(fleet)
        self.gate = asyncio.Event()

    async def get(self, call: GoogleCall) -> bytes | None:
        """See InMemoryServices."""
        if not self.gate.is_set():
            await self.gate.wait()
        return await super().get(call)


class _GatedStore(KubernetesStore):
    """A store whose watch reports no change until the gate is open."""

    def __init__(self, client: KubernetesClient, cluster_scope: ClusterScope) -> None:
        super().__init__(client, SystemClock(), cluster_scope, ObjectCache())
        self.gate = asyncio.Event()

    async def watch(self, since: Revision, query: ResourceQuery = EVERYTHING) -> AsyncIterator[ResourceChange]:
        """See Store."""
        await self.gate.wait()
        async for event in super().watch(since, query):
            yield event


class _SetpointProcess:
    """The parts of a setpoint process; none of them is started."""

    def __init__(self, job: Job, google: GoogleClient) -> None:
        self.http, clock, kinds = _CountingHttpClient(), SystemClock(), kinds_of(google)
        cluster_scope = ClusterScope(
            served_kinds((*kinds, SECRETS), long_running=True), SYSTEM_NAMESPACE, job.namespace
        )
        self.store = _GatedStore(client_for(job, self.http), cluster_scope)
        self.telemetry = Telemetry([google.budgets])
        engine = EngineContext(
            self.store, clock, {(kind.group, kind.name): kind for kind in kinds}, metrics=self.telemetry
        )
        self.manager = Manager(engine, self.telemetry)
        self.telemetry.watch(self.manager)

    @property
    def resources(self) -> tuple[ResourceRef, ...]:
        """The resources with a controller; the index has the namespaces, too."""
        return tuple(ref for ref in self.manager.index if ref.group_kind in self.manager.controllers)

    @asynccontextmanager
    async def synced(self, edits: int) -> AsyncIterator[asyncio.Event]:
        """Runs the informer alone, from the time it is synced; the event is set after `edits` edits."""
        received, all_received = 0, asyncio.Event()

        def handle_event(event: ResourceEvent) -> None:
            nonlocal received
            self.manager.handle_event(event)
            received += not event.is_initial
            if received == edits:
                all_received.set()

        informer = Informer(self.store, self.manager.index, SystemClock(), handle_event)
        task = asyncio.create_task(informer.run())
        try:
            await informer.synced.wait()
            yield all_received
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await self.store.close()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Runs the manager, from the time it is ready."""
        self.store.gate.set()
        task = asyncio.create_task(self.manager.run())
        while not self.manager.is_ready:
            await asyncio.sleep(_POLL_SECONDS)
        try:
            yield
        finally:
            self.manager.stop()
            await task
            await self.store.close()

    async def wait_until_idle(self) -> None:
        """Returns when every resource has been reconciled and is scheduled for its resync."""
        while not self._is_idle():
            await asyncio.sleep(_POLL_SECONDS)

    def _is_idle(self) -> bool:
        queues = [controller.queue.snapshot() for controller in self.manager.controllers.values()]
        has_no_work = not any(queue.processing or any(queue.depth.values()) for queue in queues)
        return has_no_work and sum(queue.delayed for queue in queues) == len(self.resources)

    def enqueue_all(self) -> None:
        """Enqueues every resource, as if its resync were due."""
        for ref in self.resources:
            self.manager.controllers[ref.group, ref.kind].enqueue(ref, RESYNC)

    async def require_in_sync(self, steps: int) -> None:
        """WrongResult unless there were `steps` steps, all of which decided that the resource is in sync."""
        page, _ = await self.telemetry.page()
        decisions = Counter[str]()
        for sample in samples_in(page, "setpoint_decisions_total"):
            decisions[sample.labels["decision"]] += int(sample.value)
        if decisions != Counter({Decision.IN_SYNC.value: steps}):
            raise WrongResult(f"{steps} steps, decided as {dict(decisions)}")


# --- What is measured -------------------------------------------------------------------------------------------------


async def start(job: Job) -> Usage:
    """From opening the store until the informer is synced and its index holds every resource."""
    google = InMemoryServices(_fleet(job))
    meter = UsageMeter()
    process = _SetpointProcess(job, google)
    async with process.synced(edits=0):
        return meter.read(len(process.resources), process.http.requests_sent)


async def first_reconcile(job: Job) -> Usage:
    """The first step of each resource, after the start."""
    google = _GatedServices(_fleet(job))
    google.prepare_responses()
    process = _SetpointProcess(job, google)
    async with process.running():
        meter, requests_sent = UsageMeter(), process.http.requests_sent
        google.gate.set()
        await process.wait_until_idle()
        number = len(process.resources)
        await process.require_in_sync(number)
        return meter.read(number, process.http.requests_sent - requests_sent)


async def later_reconcile(job: Job) -> Usage:
    """The best of some later steps of each resource; and the memory of the idle process, without the services."""
    google, before = InMemoryServices(_fleet(job)), resident_bytes()
    google.prepare_responses()
    services = resident_bytes() - before
    process = _SetpointProcess(job, google)
    async with process.running():
        await process.wait_until_idle()
        usages = [await _reconcile_again(process) for _ in range(_LATER_RECONCILES)]
        await process.require_in_sync(len(process.resources) * (1 + _LATER_RECONCILES))
    best = min(usages, key=lambda usage: usage.cpu)
    return msgspec.structs.replace(
        best, memory=usages[-1].memory - services, requests=sum(usage.requests for usage in usages)
    )


async def _reconcile_again(process: _SetpointProcess) -> Usage:
    meter, requests_sent = UsageMeter(), process.http.requests_sent
    process.enqueue_all()
    await process.wait_until_idle()
    return meter.read(len(process.resources), process.http.requests_sent - requests_sent)


async def watch_and_cache(job: Job) -> Usage:
    """From the bytes of the events to keys in the work queue."""
    process = _SetpointProcess(job, InMemoryServices(_fleet(job)))
    async with process.synced(job.events) as all_received:
        await signal_ready_and_wait()
        meter, requests_sent = UsageMeter(), process.http.requests_sent
        process.store.gate.set()
        await all_received.wait()
        queues = [controller.queue.snapshot() for controller in process.manager.controllers.values()]
        return meter.read(
            sum(queue.depth[Priority.EDIT] for queue in queues), process.http.requests_sent - requests_sent
        )


def _fleet(job: Job) -> Fleet:
    return Fleet.read(Path(job.folder, FLEET))
