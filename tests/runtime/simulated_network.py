"""The network between a process and its store and cloud, with latency and faults, as HTTP has them.

A request that was sent arrives even if its process is paused or killed, unless it would arrive after the timeout of
the request. On arrival it is executed at one moment, and every write is reported to a WriteObserver.
"""

import asyncio
import contextvars
import inspect
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeVar, cast

from setpoint.clients.http import HttpRequest, fenced_request
from setpoint.core.plan import PlannedWrite
from setpoint.core.values.json_types import JsonObject
from setpoint.engine.kind import Absent, Intent, Location, Present, RemoteOperation, Unchanged
from setpoint.engine.ports import EVERYTHING, ResourceChange, ResourceQuery, Store
from setpoint.engine.resource import Resource, ResourceRef, Revision
from setpoint.errors import RemoteUnavailable, StoreError
from setpoint.stores.memory import MemoryStore
from tests.engine.gadgets import Gadget, GadgetKind, gadget_ref

T = TypeVar("T")
# Called with process, verb and resource of each write.
WriteObserver = Callable[[str, str, ResourceRef], None]

READS = ("get", "list", "events", "leases")
LEASES = ("acquire", "release")


class NetworkFault(Enum):
    """A fault of one request."""

    REFUSED = "the connection is refused"
    LOST = "it does not arrive"
    UNANSWERED = "it arrives, and the answer does not"
    SLOW = "it arrives much later"


@dataclass(slots=True)
class NetworkLink:
    """The connections of one process. `fault` returns the fault of a request, if it has any."""

    process: str
    seconds: Callable[[], float]
    fault: Callable[[HttpRequest], NetworkFault | None] = lambda request: None
    # Set while the store cannot be reached.
    outage: NetworkFault | None = None
    slow: float = 4.0

    async def call(self, request: HttpRequest, execute: Callable[[], T]) -> T:
        """The result of `execute` at the server; RemoteUnavailable when no answer arrives in time."""
        request = fenced_request(request)
        fault = self.outage if "//store/" in request.url and self.outage else self.fault(request)
        if fault is NetworkFault.REFUSED:
            raise RemoteUnavailable(f"{request}: connection refused")
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()
        there = self.slow if fault is NetworkFault.SLOW else self.seconds()
        if fault is not NetworkFault.LOST and there < request.seconds:
            arriving = _RequestArrival(execute, answer, None if fault is NetworkFault.UNANSWERED else self.seconds())
            # A context of its own: the server continues when this process is paused.
            loop.call_later(there, arriving.arrive, context=contextvars.Context())
        try:
            async with asyncio.timeout(request.seconds):
                return await answer
        except TimeoutError as error:
            raise RemoteUnavailable(f"{request}: no answer within {request.seconds:g} s") from error


@dataclass(slots=True)
class _RequestArrival:
    """A request at the server, and the seconds that its answer takes; None without an answer."""

    execute: Callable[[], Any]
    answer: "asyncio.Future[Any]"
    back: float | None

    def arrive(self) -> None:
        try:
            found, error = self.execute(), None
        except Exception as raised:  # noqa: BLE001 - it is the answer
            found, error = None, raised
        if self.back is not None:
            loop = self.answer.get_loop()
            loop.call_later(self.back, self._respond, found, error, context=contextvars.Context())

    def _respond(self, found: Any, error: Exception | None) -> None:
        if self.answer.done():
            return
        if error is None:
            self.answer.set_result(found)
        else:
            self.answer.set_exception(error)


def at_once(coroutine: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that does not wait."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return cast(T, end.value)
    raise AssertionError("it waited")


def remote_store(store: MemoryStore, link: NetworkLink, on_write: WriteObserver) -> Store:
    """`store`, reached over `link`."""
    return cast(Store, _RemoteStore(store, link, on_write))


class _RemoteStore:
    def __init__(self, store: MemoryStore, link: NetworkLink, on_write: WriteObserver) -> None:
        self._store = store
        self._wire = link
        self._on_write = on_write

    async def watch(self, since: Revision, query: ResourceQuery = EVERYTHING) -> AsyncIterator[ResourceChange]:
        async for event in self._store.watch(since, query):
            await asyncio.sleep(self._wire.seconds())
            while self._wire.outage is not None:
                await asyncio.sleep(0.5)
            yield event

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        if not inspect.iscoroutinefunction(found):
            return found

        async def sent(*args: Any, **parts: Any) -> Any:
            def execute() -> Any:
                if name not in (*READS, *LEASES):
                    self._on_write(self._wire.process, name, args[0].ref)
                return at_once(found(*args, **parts))

            request = HttpRequest("GET" if name in READS else "PUT", f"http://store/{name}")
            try:
                return await self._wire.call(request, execute)
            except RemoteUnavailable as error:
                raise StoreError(str(error)) from error

        return sent


@dataclass(slots=True)
class RemoteGadgetKind(GadgetKind):
    """Gadgets, reached over `link`."""

    link: NetworkLink = field(default_factory=lambda: NetworkLink("", lambda: 0.0))
    on_write: WriteObserver = lambda process, verb, ref: None

    async def observe(self, location: Location, known: str | None = None) -> Absent | Present[Gadget] | Unchanged:
        request = HttpRequest("GET", f"http://cloud/{location}")
        return await self.link.call(request, lambda: at_once(GadgetKind.observe(self, location, known)))

    async def create(self, intent: Intent, wanted: JsonObject) -> RemoteOperation | None:
        return await self._write("create", intent.location, lambda: GadgetKind.create(self, intent, wanted))

    async def update(
        self, intent: Intent, wanted: JsonObject, write: PlannedWrite, before: Present[Gadget]
    ) -> RemoteOperation | None:
        return await self._write(
            "update", intent.location, lambda: GadgetKind.update(self, intent, wanted, write, before)
        )

    async def delete(self, location: Location, before: Present[Gadget], resource: Resource) -> RemoteOperation | None:
        return await self._write("delete", location, lambda: GadgetKind.delete(self, location, before, resource))

    async def _write(self, verb: str, name: str, write: Callable[[], Coroutine[Any, Any, T]]) -> T:
        def execute() -> T:
            answer = at_once(write())
            self.on_write(self.link.process, verb, gadget_ref(name))
            return answer

        return await self.link.call(HttpRequest("PUT", f"http://cloud/{name}"), execute)
