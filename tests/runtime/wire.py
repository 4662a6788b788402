"""The way from a process to the store and to the cloud, as HTTP is: it takes time, and it breaks.

What has left the process arrives, whatever becomes of the process meanwhile, unless it would arrive after the process
has given the request up. What arrives is carried out at one moment, and a witness sees it.
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
# By process, what is done, and to what.
Witness = Callable[[str, str, ResourceRef], None]

READS = ("get", "list", "events", "leases")
LEASES = ("acquire", "release")


class Trouble(Enum):
    """What may happen to a request."""

    REFUSED = "nobody is there"
    LOST = "it does not arrive"
    UNANSWERED = "it arrives, and the answer does not"
    SLOW = "it arrives much later"


@dataclass(slots=True)
class Wire:
    """For one process. `trouble` gives the trouble of a request, if it has any."""

    process: str
    seconds: Callable[[], float]
    trouble: Callable[[HttpRequest], Trouble | None] = lambda request: None
    # Set while nothing gets through to the store.
    outage: Trouble | None = None
    slow: float = 4.0

    async def call(self, request: HttpRequest, land: Callable[[], T]) -> T:
        """What `land` comes to at the other end; RemoteUnavailable when no answer comes in time."""
        request = fenced_request(request)
        trouble = self.outage if "//store/" in request.url and self.outage else self.trouble(request)
        if trouble is Trouble.REFUSED:
            raise RemoteUnavailable(f"{request}: nobody is there")
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()
        there = self.slow if trouble is Trouble.SLOW else self.seconds()
        if trouble is not Trouble.LOST and there < request.seconds:
            arriving = _Arrival(land, answer, None if trouble is Trouble.UNANSWERED else self.seconds())
            # A context of its own: the other end goes on when this process does not.
            loop.call_later(there, arriving.arrive, context=contextvars.Context())
        try:
            async with asyncio.timeout(request.seconds):
                return await answer
        except TimeoutError as error:
            raise RemoteUnavailable(f"{request}: no answer within {request.seconds:g} s") from error


@dataclass(slots=True)
class _Arrival:
    """A request at the other end, and the seconds that its answer takes; None when there is none."""

    land: Callable[[], Any]
    answer: "asyncio.Future[Any]"
    back: float | None

    def arrive(self) -> None:
        try:
            found, error = self.land(), None
        except Exception as raised:  # noqa: BLE001 - it is the answer
            found, error = None, raised
        if self.back is not None:
            loop = self.answer.get_loop()
            loop.call_later(self.back, self._tell, found, error, context=contextvars.Context())

    def _tell(self, found: Any, error: Exception | None) -> None:
        if self.answer.done():
            return
        if error is None:
            self.answer.set_result(found)
        else:
            self.answer.set_exception(error)


def at_once(coroutine: Coroutine[Any, Any, T]) -> T:
    """What a coroutine that need not wait comes to."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return cast(T, end.value)
    raise AssertionError("it waited")


def wired(store: MemoryStore, wire: Wire, witness: Witness) -> Store:
    """`store` at the other end of `wire`."""
    return cast(Store, _WiredStore(store, wire, witness))


class _WiredStore:
    def __init__(self, store: MemoryStore, wire: Wire, witness: Witness) -> None:
        self._store = store
        self._wire = wire
        self._witness = witness

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
            def land() -> Any:
                if name not in (*READS, *LEASES):
                    self._witness(self._wire.process, name, args[0].ref)
                return at_once(found(*args, **parts))

            request = HttpRequest("GET" if name in READS else "PUT", f"http://store/{name}")
            try:
                return await self._wire.call(request, land)
            except RemoteUnavailable as error:
                raise StoreError(str(error)) from error

        return sent


@dataclass(slots=True)
class WiredKind(GadgetKind):
    """Gadgets at the other end of `wire`."""

    wire: Wire = field(default_factory=lambda: Wire("", lambda: 0.0))
    witness: Witness = lambda process, verb, ref: None

    async def observe(self, location: Location, known: str | None = None) -> Absent | Present[Gadget] | Unchanged:
        request = HttpRequest("GET", f"http://cloud/{location}")
        return await self.wire.call(request, lambda: at_once(GadgetKind.observe(self, location, known)))

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
        def land() -> T:
            answer = at_once(write())
            self.witness(self.wire.process, verb, gadget_ref(name))
            return answer

        return await self.wire.call(HttpRequest("PUT", f"http://cloud/{name}"), land)
