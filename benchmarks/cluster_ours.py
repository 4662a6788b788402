"""What `setpoint run` does with a fleet in a cluster, part by part.

The services behind the resources answer from memory. Leases are left out: a process renews them whatever it keeps.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import msgspec

from benchmarks.cluster_client import client_for
from benchmarks.errands import Found, Meter, Order, wait_for_word
from benchmarks.fleet import FLEET, Answers, Fleet, kinds_of
from benchmarks.measuring import Disagreement
from benchmarks.residence import resident
from benchmarks.running import samples_in
from setpoint.clients.google.calls import GoogleCall
from setpoint.clients.google.client import GoogleClient
from setpoint.clients.http import HttpClient, HttpRequest, HttpResponse
from setpoint.clients.kubernetes.client import KubernetesClient
from setpoint.core.decide import Decision
from setpoint.engine.context import EngineContext
from setpoint.engine.ports import EVERYTHING, ResourceChange, ResourceQuery, SystemClock
from setpoint.engine.resource import Revision
from setpoint.runtime.informer import Informer, ResourceEvent
from setpoint.runtime.manager import Manager
from setpoint.runtime.metrics.telemetry import Telemetry
from setpoint.runtime.predicates import RESYNC
from setpoint.runtime.workqueue.scheduling import Priority
from setpoint.stores.kubernetes.cache import ObjectCache
from setpoint.stores.kubernetes.factory import SYSTEM_NAMESPACE, served_kinds
from setpoint.stores.kubernetes.served_kinds import ClusterScope
from setpoint.stores.kubernetes.store import KubernetesStore

# How many further looks there are at each.
_LOOKS: Final = 3
_A_WHILE: Final = 0.02


class _Tally(HttpClient):
    """Counts what is asked for; a watch is not asked for, but listened to."""

    def __init__(self) -> None:
        super().__init__()
        self.sent = 0

    async def send(self, request: HttpRequest) -> HttpResponse:
        """See HttpClient."""
        self.sent += 1
        return await super().send(request)


class _Services(Answers):
    """Services that answer nobody before they are given the word."""

    def __init__(self, fleet: Fleet) -> None:
        super().__init__(fleet)
        self.word = asyncio.Event()

    async def get(self, call: GoogleCall) -> bytes | None:
        """See Answers."""
        if not self.word.is_set():
            await self.word.wait()
        return await super().get(call)


class _Held(KubernetesStore):
    """A store that tells of no change before it is given the word."""

    def __init__(self, client: KubernetesClient, cluster_scope: ClusterScope) -> None:
        super().__init__(client, SystemClock(), cluster_scope, ObjectCache())
        self.word = asyncio.Event()

    async def watch(self, since: Revision, query: ResourceQuery = EVERYTHING) -> AsyncIterator[ResourceChange]:
        """See Store."""
        await self.word.wait()
        async for event in super().watch(since, query):
            yield event


class _Process:
    """Its parts, put together, of which none does anything yet."""

    def __init__(self, order: Order, google: GoogleClient) -> None:
        self.http, clock, kinds = _Tally(), SystemClock(), kinds_of(google)
        cluster_scope = ClusterScope(served_kinds(kinds, long_running=True), SYSTEM_NAMESPACE, order.namespace)
        self.store = _Held(client_for(order, self.http), cluster_scope)
        self.telemetry = Telemetry([google.budgets])
        engine = EngineContext(
            self.store, clock, {(kind.group, kind.name): kind for kind in kinds}, metrics=self.telemetry
        )
        self.manager = Manager(engine, self.telemetry)
        self.telemetry.watch(self.manager)

    @asynccontextmanager
    async def informed(self, edits: int) -> AsyncIterator[asyncio.Event]:
        """Everything has been heard of, and nobody takes a step; the event comes after so many edits."""
        heard, enough = 0, asyncio.Event()

        def handle_event(news: ResourceEvent) -> None:
            nonlocal heard
            self.manager.handle_event(news)
            heard += not news.is_initial
            if heard == edits:
                enough.set()

        informer = Informer(self.store, self.manager.index, SystemClock(), handle_event)
        task = asyncio.create_task(informer.run())
        try:
            await informer.synced.wait()
            yield enough
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await self.store.close()

    @asynccontextmanager
    async def going_on(self) -> AsyncIterator[None]:
        """All of it is at work, and has everything in mind."""
        self.store.word.set()
        task = asyncio.create_task(self.manager.run())
        while not self.manager.is_ready:
            await asyncio.sleep(_A_WHILE)
        try:
            yield
        finally:
            self.manager.stop()
            await task
            await self.store.close()

    async def until_at_rest(self) -> None:
        """Everything has been looked at, and waits for its next look."""
        while not self._is_at_rest():
            await asyncio.sleep(_A_WHILE)

    def _is_at_rest(self) -> bool:
        queues = [one.queue.snapshot() for one in self.manager.controllers.values()]
        is_idle = not any(queue.processing or any(queue.depth.values()) for queue in queues)
        return is_idle and sum(queue.delayed for queue in queues) == len(self.manager.index)

    def look_at_all(self) -> None:
        """Every next regular look is due."""
        for ref in tuple(self.manager.index):
            self.manager.controllers[ref.group, ref.kind].enqueue(ref, RESYNC)

    async def require_in_sync(self, looks: int) -> None:
        """Disagreement unless there were so many looks, none of which found anything to do."""
        page, _ = await self.telemetry.page()
        found = Counter[str]()
        for sample in samples_in(page, "setpoint_decisions_total"):
            found[sample.labels["decision"]] += int(sample.value)
        if found != Counter({Decision.IN_SYNC.value: looks}):
            raise Disagreement(f"{looks} looks came to {dict(found)}")


# --- What is measured -------------------------------------------------------------------------------------------------


async def start(order: Order) -> Found:
    """From opening the store until everything was heard of and is in mind."""
    google = Answers(_fleet(order))
    meter = Meter()
    process = _Process(order, google)
    async with process.informed(edits=0):
        return meter.read(len(process.manager.index), process.http.sent)


async def first_look(order: Order) -> Found:
    """The first look at each, after the start."""
    google = _Services(_fleet(order))
    google.lay_out()
    process = _Process(order, google)
    async with process.going_on():
        meter, sent = Meter(), process.http.sent
        google.word.set()
        await process.until_at_rest()
        number = len(process.manager.index)
        await process.require_in_sync(number)
        return meter.read(number, process.http.sent - sent)


async def later_look(order: Order) -> Found:
    """The best of some further looks at each; and what a process at rest has in memory, without the services."""
    google, before = Answers(_fleet(order)), resident()
    google.lay_out()
    services = resident() - before
    process = _Process(order, google)
    async with process.going_on():
        await process.until_at_rest()
        looks = [await _look_again(process) for _ in range(_LOOKS)]
        await process.require_in_sync(len(process.manager.index) * (1 + _LOOKS))
    best = min(looks, key=lambda found: found.cpu)
    return msgspec.structs.replace(
        best, memory=looks[-1].memory - services, requests=sum(found.requests for found in looks)
    )


async def _look_again(process: _Process) -> Found:
    meter, sent = Meter(), process.http.sent
    process.look_at_all()
    await process.until_at_rest()
    return meter.read(len(process.manager.index), process.http.sent - sent)


async def storm(order: Order) -> Found:
    """From the bytes of events to keys in the queue."""
    process = _Process(order, Answers(_fleet(order)))
    async with process.informed(order.events) as enough:
        await wait_for_word()
        meter, sent = Meter(), process.http.sent
        process.store.word.set()
        await enough.wait()
        queues = [one.queue.snapshot() for one in process.manager.controllers.values()]
        return meter.read(sum(queue.depth[Priority.EDIT] for queue in queues), process.http.sent - sent)


def _fleet(order: Order) -> Fleet:
    return Fleet.read(Path(order.folder, FLEET))
