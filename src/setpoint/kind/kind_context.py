"""What a kind is made with: environment, clock, tenant, and clients that are opened once and closed at the end."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager, nullcontext
from dataclasses import field, replace
from typing import Any, Final, Self, TypeVar

from setpoint.clients.http import HttpClient, HttpInterceptor
from setpoint.clients.http_transport import HttpLimits
from setpoint.clients.ratelimit.limiter import QuotaBudgets
from setpoint.clients.write_guard import exempt_from_guard
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.engine.kind import SecretKeyReference
from setpoint.engine.ports import Clock, SystemClock
from setpoint.engine.references import secret_value
from setpoint.engine.resource import DEFAULT_NAMESPACE, SECRET, Resource, ResourceRef
from setpoint.engine.tenancy.tenants import Tenant
from setpoint.errors import DependencyNotFound, NotRecorded, UserError

C = TypeVar("C")
_DEFAULT_LIMITS: Final = HttpLimits()


async def _no_secret(_ref: ResourceRef) -> Resource | None:
    """For a context without a store."""
    return None


def _not_intercepted(_service: str) -> HttpInterceptor | None:
    return None


class ClientPool:
    """The clients of all kinds of a process: each is opened when it is first asked for, and closed with the process.

    A client is an asynchronous context manager. It is entered and left by one task of its own, as some require.
    """

    def __init__(self) -> None:
        self._held: dict[Hashable, _HeldClient] = {}

    async def get(self, key: Hashable, factory: Callable[[], AbstractAsyncContextManager[C]]) -> C:
        """The client of that key, made by `factory` when there is none; the error of its opening, which is not kept."""
        held = self._held.get(key)
        if held is None or held.has_failed:
            held = self._held[key] = _HeldClient(factory)
        # Shielded: others may wait for it when this caller is cancelled.
        client: C = await asyncio.shield(held.opened)
        return client

    async def close(self) -> None:
        """Closes every client, the newest first; the first error of them is raised once all are closed."""
        held, self._held = list(self._held.values()), {}
        errors = [error for one in reversed(held) if (error := await one.close()) is not None]
        if errors:
            raise errors[0]


class _HeldClient:
    """A client that is open, and the task that closes it."""

    def __init__(self, factory: Callable[[], AbstractAsyncContextManager[Any]]) -> None:
        self.opened: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._closing = asyncio.Event()
        self._task = asyncio.create_task(self._hold(factory), name="client of a kind")

    @property
    def has_failed(self) -> bool:
        """Whether it could not be opened."""
        return self.opened.done() and (self.opened.cancelled() or self.opened.exception() is not None)

    async def close(self) -> Exception | None:
        """Closes it; the error of that, if any. One that is being opened is not waited for."""
        self._closing.set()
        if not self.opened.done():
            self._task.cancel()
        await asyncio.wait([self._task])
        # A task that had not begun has not told its callers either.
        self.opened.cancel()
        return None if self._task.cancelled() or self.has_failed else self._task_error()

    def _task_error(self) -> Exception | None:
        error = self._task.exception()
        return error if isinstance(error, Exception) else None

    async def _hold(self, factory: Callable[[], AbstractAsyncContextManager[Any]]) -> None:
        try:
            async with factory() as client:
                self.opened.set_result(client)
                await self._closing.wait()
        except BaseException as error:
            if self.opened.done():
                raise
            if isinstance(error, asyncio.CancelledError):
                self.opened.cancel()
                raise
            self.opened.set_exception(error)
            # Retrieved here as well: the caller may have been cancelled meanwhile.
            self.opened.exception()


@dataclass(slots=True)
class KindServices:
    """What the kinds of a process share: connections, rate limits, other clients, and the store's Secrets."""

    budgets: QuotaBudgets = field(default_factory=QuotaBudgets)
    clients: ClientPool = field(default_factory=ClientPool)
    limits: HttpLimits = _DEFAULT_LIMITS
    # Sees the requests of a service, by its name: to block, record or replay them.
    interceptor: Callable[[str], HttpInterceptor | None] = _not_intercepted
    # Takes the request counts of each client.
    counted: Callable[[Mapping[tuple[str, str, str], int]], None] = lambda _: None
    read_secret: Callable[[ResourceRef], Awaitable[Resource | None]] = _no_secret
    _http: dict[str, HttpClient] = field(default_factory=dict)

    def http(self, service: str) -> HttpClient:
        """The HTTP client of a service, by its name."""
        found = self._http.get(service)
        if found is None:
            found = self._http[service] = HttpClient(interceptor=self.interceptor(service), limits=self.limits)
            self.counted(found.counts)
        return found

    async def close(self) -> None:
        """Closes all of them."""
        try:
            await self.clients.close()
        finally:
            for one in self._http.values():
                await one.close()


@dataclass(frozen=True, slots=True)
class KindContext:
    """What a kind is made with. `async with KindContext({"SHOP_ENDPOINT": …})` is enough for a test.

    A kind is made anew for each tenant of a store in a cluster, with a context that is bound to that tenant; clients
    that are asked for by the same key are shared by all of them.
    """

    # Variables that are read here are kept when a world is recorded: tokens and passwords are read by `credential`.
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    clock: Clock = field(default_factory=SystemClock)
    services: KindServices = field(default_factory=KindServices, repr=False)
    # The tenant on whose behalf the kind acts; None for a store that belongs to one person.
    tenant: Tenant | None = None
    # Whether nothing may be written: in a plan or another preview. A client of your own has to see to it itself.
    is_read_only: bool = False
    # Whether the world is a recorded one, where no service is asked.
    is_recorded: bool = False
    # Where tokens and passwords are read, if not in `environment`.
    credentials: Mapping[str, str] | None = field(default=None, repr=False)

    def credential(self, variable: str) -> str:
        """The text of an environment variable that is secret: it is never recorded. Empty where it is not set."""
        source = self.environment if self.credentials is None else self.credentials
        return "" if self.is_recorded else source.get(variable, "")

    async def secret(self, name: str, key: str, namespace: str = "") -> str:
        """The value of a key of a Secret, as the store has it now; that of the tenant's own namespace without another.

        DependencyNotFound or DependencyInvalid when it is not there; UserError for a Secret of another tenant.
        A kind that asks for Secrets sets `reads_secrets`: then its controller may read them.
        """
        own = DEFAULT_NAMESPACE if self.tenant is None else self.tenant.namespace
        if self.tenant is not None and namespace not in ("", own):
            raise UserError(f"Secret {namespace}/{name} is not one of the namespace {own}: it is not read for it")
        ref = ResourceRef(*SECRET, namespace or own, name)
        found = await self.services.read_secret(ref)
        if found is None:
            raise DependencyNotFound(f"Secret {ref.namespace}/{ref.name} was not found")
        return secret_value(SecretKeyReference("", ref, key), found)

    async def client(self, key: Hashable, factory: Callable[[], AbstractAsyncContextManager[C]]) -> C:
        """The client of your own with that key: made by `factory` at the first call, closed when the engine is.

        The key names what the client is for, such as `("postgresql", host, port, user)`: every kind that asks for the
        same key has the same client. Where `is_read_only`, open it so that it cannot write, and call it inside
        `reading()`. A recorded world has no such client: NotRecorded.
        """
        if self.is_recorded:
            raise NotRecorded("a client of a kind's own cannot be replayed: only requests by HTTP are recorded")
        return await self.services.clients.get((key, self.is_read_only), factory)

    def reading(self) -> AbstractContextManager[None]:
        """Inside, a client of your own may connect though nothing may be written: what is done inside only reads."""
        return nullcontext() if self.is_recorded else exempt_from_guard()

    def for_tenant(self, tenant: Tenant) -> "KindContext":
        """The same on behalf of a tenant."""
        return replace(self, tenant=tenant)

    async def close(self) -> None:
        """Closes all clients; the engine does it for the contexts that it makes."""
        await self.services.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
