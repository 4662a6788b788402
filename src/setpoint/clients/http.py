"""HTTP client: requests, responses, streams, interceptors.

A transport failure raises RemoteUnavailable; a status of whatever class does not raise.
"""

import asyncio
import os
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import field
from typing import TYPE_CHECKING, Final, Protocol, TypeVar
from urllib.parse import urlsplit

from setpoint import __version__
from setpoint.clients.fencing import FencedWrite, seconds_allowed
from setpoint.clients.foreign_errors import (
    TransportError,
    transport_error,
)
from setpoint.clients.http_transport import (
    ACCEPT_ENCODING,
    HeldBytes,
    HttpLimits,
    ResponseBody,
    ResponseStream,
    TimeLimits,
    shared_length,
)
from setpoint.clients.scoped_value import ScopedValue
from setpoint.clients.sockets import AddressPolicy, SocketFactory
from setpoint.clients.transport.connection import Exchange
from setpoint.clients.transport.messages import ServerAddress, split_origin
from setpoint.clients.transport.opening import ServerRoute, TcpOpener, TlsOptions
from setpoint.clients.transport.pool import ConnectionPool
from setpoint.clients.url_path import refuse_dot_segments
from setpoint.core.values.deferred_dataclass import dataclass, replace
from setpoint.errors import Bug, ClientRetired, RemoteError, RemoteUnavailable

if TYPE_CHECKING:
    from setpoint.clients.ratelimit.circuit_breaker import CallOutcome
    from setpoint.clients.request_tracing import RequestTracer

T = TypeVar("T")

USER_AGENT = f"setpoint/{__version__}"
# Every other method may change something.
READ_METHODS: Final = ("GET", "HEAD")
DEFAULT_LIMITS: Final = HttpLimits()
# Of requests that name no others. In lower case: see ConnectionPool.
DEFAULT_HEADERS: Final = {"user-agent": USER_AGENT, "accept": "*/*", "accept-encoding": ACCEPT_ENCODING}
# How many hosts and counts a client keeps: tenants choose hosts, and hosts choose their status codes.
_MAX_KEPT: Final = 1000
_OTHER_COUNT: Final = ("<other>", "<other>", "<other>")


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request. `url` is complete and already quoted; `seconds` is the time limit for the whole response.

    Without `tls`, https means a certificate that this machine trusts.
    """

    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    seconds: float = 60.0
    tls: TlsOptions | None = None
    # Whether it may be sent twice, if its method is idempotent, when a connection ends before the response.
    is_repeatable: bool = True
    # Whether it only reads, whatever its method: some services have reads that are sent by POST.
    is_query: bool = False

    @property
    def is_read(self) -> bool:
        """Whether it changes nothing."""
        return self.is_query or self.method in READ_METHODS

    def __str__(self) -> str:
        """Method and path: the query and the body may hold secrets."""
        return f"{self.method} {_path_of(self.url)}"

    def __repr__(self) -> str:
        """The same: the headers hold a token."""
        return f"HttpRequest({self})"


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """A response. Header names are case-insensitive."""

    status: int
    headers: Mapping[str, str]
    body: bytes


# --- Interceptors -----------------------------------------------------------------------------------------------------


class HttpInterceptor(Protocol):
    """Sees every request of a client and every response to it: to block, record or replay them."""

    def on_request(self, request: HttpRequest) -> HttpResponse | None:
        """A response in place of the server's; None to send the request. Raises to block it."""
        ...

    def on_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        """The response that the caller gets."""
        ...

    def on_error(self, request: HttpRequest, error: RemoteError) -> None:
        """No usable response came."""
        ...


_interceptor: Final[ContextVar[HttpInterceptor | None]] = ContextVar("interceptor", default=None)


def intercepted_by(interceptor: HttpInterceptor) -> ScopedValue[HttpInterceptor | None]:
    """The interceptor, in this task and in those it starts, of clients that have none of their own."""
    return ScopedValue(_interceptor, interceptor)


def current_interceptor() -> HttpInterceptor | None:
    """The interceptor, in this task, of clients that have none of their own."""
    return _interceptor.get()


_tracers: Final[list["RequestTracer"]] = []


def install_request_tracer(tracer: "RequestTracer | None") -> None:
    """From now on the requests of all clients are told to this tracer, or to none."""
    _tracers[:] = [] if tracer is None else [tracer]


def request_tracer() -> "RequestTracer | None":
    """The tracer of this process."""
    return _tracers[0] if _tracers else None


# --- Retries of reads -------------------------------------------------------------------------------------------------


class ReadRetrier(Protocol):
    """Sends reads again, for commands that ask once."""

    async def send(
        self,
        send: "Callable[[HttpRequest], Awaitable[HttpResponse]]",
        request: HttpRequest,
        outcome_of: "Callable[[HttpResponse], CallOutcome]",
    ) -> HttpResponse:
        """The response to a read by `send`."""
        ...


_retrier: Final[ContextVar[ReadRetrier | None]] = ContextVar("read_retrier", default=None)


def reads_retried_by(retrier: ReadRetrier) -> ScopedValue[ReadRetrier | None]:
    """The retries of the reads of this task, and of those it starts."""
    return ScopedValue(_retrier, retrier)


def send_retried(
    send: Callable[[HttpRequest], Awaitable[HttpResponse]],
    request: HttpRequest,
    outcome_of: "Callable[[HttpResponse], CallOutcome]",
) -> Awaitable[HttpResponse]:
    """The response to a request by `send`; a read is sent again where this task has retries."""
    retrier = _retrier.get()
    return send(request) if retrier is None or not request.is_read else retrier.send(send, request, outcome_of)


# --- The client -------------------------------------------------------------------------------------------------------


class HttpClient:
    """Keeps connections and reuses them. Opened by the first request; `close` closes all of them.

    `proxy` is for every server; without it the environment names one, if any. `interceptor` sees every request. With
    `addresses`, connections are opened to these alone, and none by way of a proxy, which would choose the address.
    Unfinished responses count as `held`.
    """

    def __init__(
        self,
        proxy: str | None = None,
        interceptor: HttpInterceptor | None = None,
        *,
        addresses: AddressPolicy | None = None,
        limits: HttpLimits = DEFAULT_LIMITS,
        held: HeldBytes | None = None,
    ) -> None:
        # How many requests there were, by method, host and status, or "<error>" without a response.
        self.counts: Counter[tuple[str, str, str]] = Counter()
        self.limits = limits
        self.held = held or HeldBytes()
        # Streams that are open, or being opened; and requests in flight.
        self._streams: set[ResponseStream] = set()
        self._opening = self._in_flight = 0
        self._is_retired = False
        self._pool: ConnectionPool | None = None
        self._time_limits: TimeLimits | None = None
        self._sockets = SocketFactory(addresses)
        self._proxy = proxy
        self._is_direct = addresses is not None
        self._interceptor = interceptor
        # By origin, with the host that is counted: to find the proxy takes a walk through the environment.
        self._routes: dict[str, tuple[str, ServerRoute]] = {}

    async def send(self, request: HttpRequest) -> HttpResponse:
        """The whole response, whatever its status; RemoteUnavailable when there is none, or only a part of it.

        RemoteRefused when the server's certificate is not trusted. A write that a fence refuses is not sent.
        """
        request = fenced_request(request)
        interceptor = self._interceptor or _interceptor.get()
        if interceptor is not None:
            return await self._send_intercepted(interceptor, request)
        return await (self._send_traced(request) if _tracers else self._send(request))

    def report_unsent(self, request: HttpRequest, error: RemoteError) -> None:
        """Tells the interceptor of a request that was not sent, as there is no identity to send it with."""
        interceptor = self._interceptor or _interceptor.get()
        if interceptor is not None:
            interceptor.on_error(request, error)

    async def _send_intercepted(self, interceptor: HttpInterceptor, request: HttpRequest) -> HttpResponse:
        replayed = interceptor.on_request(request)
        if replayed is not None:
            return replayed
        try:
            response = await (self._send_traced(request) if _tracers else self._send(request))
        except RemoteError as error:
            interceptor.on_error(request, error)
            raise
        return interceptor.on_response(request, response)

    async def _send_traced(self, request: HttpRequest) -> HttpResponse:
        from setpoint.clients.request_tracing import send_traced

        return await send_traced(_tracers[0], request, self._send)

    async def _send(self, request: HttpRequest) -> HttpResponse:
        self._begin(request)
        host, status = "", "<error>"
        try:
            host, route, target = self._route_to(request.url)
            with self._limits_of_time().of(request.seconds):
                response = await self._request(request, route, target)
                try:
                    body = await ResponseBody(request, response, self.limits, self.held).whole()
                finally:
                    response.close()
            status = str(response.status)
            return HttpResponse(response.status, response.headers, body)
        except (TransportError, OSError) as error:
            raise transport_error(request, error, request.seconds) from error
        finally:
            self._end(request.method, host, status)

    async def open(self, request: HttpRequest, idle_timeout: float) -> ResponseStream:
        """The response as soon as it begins, within `request.seconds`; `idle_timeout` seconds without a byte end it.

        Errors are those of `send`.
        """
        request = fenced_request(request)
        interceptor = self._interceptor or _interceptor.get()
        if interceptor is not None and interceptor.on_request(request) is not None:
            raise Bug(f"{request}: a stream cannot be replayed by an interceptor")
        most = self.limits.streams
        if 0 < most <= len(self._streams) + self._opening:
            raise RemoteUnavailable(f"{request}: not sent: {most} watches of this server are open, which is the limit")
        self._begin(request)
        host, status = "", "<error>"
        self._opening += 1
        try:
            host, route, target = self._route_to(request.url)
            async with asyncio.timeout(request.seconds):
                response = await self._request(request, route, target)
            status = str(response.status)
            body = ResponseBody(request, response, self.limits, self.held)
            return ResponseStream(
                response, body, self._streams, lambda why: transport_error(request, why, idle_timeout), idle_timeout
            )
        except (TransportError, OSError) as error:
            raise transport_error(request, error, request.seconds) from error
        finally:
            self._opening -= 1
            self._end(request.method, host, status)

    def retire(self) -> None:
        """Ends its streams, and begins no further request: ClientRetired. `close` it once it is idle."""
        self._is_retired = True
        for stream in tuple(self._streams):
            stream.close()

    @property
    def is_idle(self) -> bool:
        """Whether no request is in flight and no stream is open."""
        return not (self._in_flight or self._streams)

    async def close(self) -> None:
        """Closes the connections; a later request opens new ones."""
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.close()
        await self._sockets.close_all()

    def _begin(self, request: HttpRequest) -> None:
        """A request is about to be sent; ClientRetired when none is sent any more."""
        if self._is_retired:
            raise ClientRetired(f"{request}: not sent: its connection was closed, as many others are in use")
        self._in_flight += 1

    def _end(self, method: str, host: str, status: str) -> None:
        self._in_flight -= 1
        key = method, host, status
        self.counts[key if key in self.counts or len(self.counts) < _MAX_KEPT else _OTHER_COUNT] += 1

    def _request(self, request: HttpRequest, route: ServerRoute, target: str) -> Awaitable[Exchange]:
        pool = self._pool = self._pool or self._new_pool()
        return pool.request(
            route,
            request.method,
            target,
            request.headers,
            body=request.body,
            tls=request.tls,
            is_repeatable=request.is_repeatable,
        )

    def _new_pool(self) -> ConnectionPool:
        # By default without a limit of its own: the rate limiter bounds concurrency, and a second queue would not be
        # fair.
        opener = TcpOpener(self._sockets, DEFAULT_HEADERS)
        return ConnectionPool(opener, self.limits.connections + self.limits.streams, DEFAULT_HEADERS)

    def _limits_of_time(self) -> TimeLimits:
        limits = self._time_limits
        if limits is None or not limits.is_of_running_loop:
            limits = self._time_limits = TimeLimits()
        return limits

    def _route_to(self, url: str) -> tuple[str, ServerRoute, str]:
        """The host that is counted, the way to it, and the request target."""
        origin, target = split_origin(url)
        found = self._routes.get(origin)
        if found is None:
            if len(self._routes) >= _MAX_KEPT:
                self._routes.clear()
            parts = urlsplit(origin)
            proxy = None if self._is_direct else self._proxy or _proxy_of_environment(parts.scheme, parts.netloc)
            route = ServerRoute(ServerAddress.of(origin), None if proxy is None else ServerAddress.of(proxy))
            found = self._routes[origin] = (parts.netloc, route)
        return *found, target


def _proxy_of_environment(scheme: str, netloc: str) -> str | None:
    # Where only variables name proxies, and none does: urllib.request takes as long to import as all the rest of this.
    if sys.platform == "linux" and not any(name.lower().endswith("_proxy") for name in os.environ):
        return None
    from urllib.request import getproxies, proxy_bypass

    return None if proxy_bypass(netloc) else getproxies().get(scheme)


def _path_of(url: str) -> str:
    """The path of a complete URL."""
    rest = url.partition("://")[2].partition("#")[0].partition("?")[0]
    return rest[rest.find("/") :] if "/" in rest else ""


def fenced_request(request: HttpRequest) -> HttpRequest:
    """The request, a write with no more time than its fences allow; a fence that refuses it raises.

    RemoteRefused for a path with a dot segment, wherever it comes from.
    """
    refuse_dot_segments(request.url)
    if request.is_read:
        return request
    seconds = seconds_allowed(FencedWrite(request.method, _path_of(request.url)))
    return request if seconds >= request.seconds else replace(request, seconds=shared_length(seconds))
