"""HTTP client: requests, responses, streams, interceptors.

A transport failure raises RemoteUnavailable; a status of whatever class does not raise.
"""

import asyncio
import socket
import ssl
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from contextvars import ContextVar, Token
from dataclasses import dataclass, field, replace
from math import inf
from typing import Final, Protocol
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass
from weakref import WeakSet

import aiohttp
from aiohttp import AddrInfoType
from yarl import URL

from setpoint import __version__
from setpoint.clients.fencing import FencedWrite, seconds_allowed
from setpoint.errors import Bug, RemoteError, RemoteRefused, RemoteUnavailable

# How often it is seen whether they are closed, and what is between two looks: mostly the first one finds them so.
_CLOSE_CHECKS: Final = 200
_CLOSE_INTERVAL: Final = 0.005


class ClientSocket(socket.socket):
    """One that every request through it was seen before."""

    __slots__ = ()


class SocketFactory:
    """Makes them, and ends them."""

    def __init__(self) -> None:
        self._made: WeakSet[socket.socket] = WeakSet()

    def __call__(self, address: AddrInfoType) -> socket.socket:
        """A new one."""
        family, kind, protocol, *_ = address
        made = ClientSocket(family, kind, protocol)
        self._made.add(made)
        return made

    async def end(self) -> None:
        """No goodbye is waited for any more; over once the loop has let go of every socket."""
        for look in range(_CLOSE_CHECKS):
            left = [one for one in self._made if one.fileno() != -1]
            if not left:
                return
            for one in left:
                # One that is not connected has nothing to end: who connects it lets go of it.
                with suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)
            await asyncio.sleep(_CLOSE_INTERVAL if look else 0)


USER_AGENT = f"setpoint/{__version__}"
# Whatever else is asked may change something.
_READ_METHODS: Final = ("GET", "HEAD")
# A peer that is gone without a word is asked, after so many seconds of silence, so often, whether it is there.
_KEEP_ALIVE: Final = (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3))


@dataclass(frozen=True, slots=True)
class TlsOptions:
    """Whom to trust, and who we are; `server_name` is the name in the server's certificate, if it is not its host's."""

    context: ssl.SSLContext
    server_name: str | None = None


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """What is asked. `url` is complete and already quoted; `seconds` is all the time that the answer may take.

    Without `tls`, https means a server that this machine trusts.
    """

    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    seconds: float = 60.0
    tls: TlsOptions | None = None

    def __str__(self) -> str:
        """Method and path: the query and the body may hold what nobody should read."""
        return f"{self.method} {urlsplit(self.url).path}"

    def __repr__(self) -> str:
        """The same: the headers hold a token."""
        return f"Request({self})"


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """What came back. Names of headers are found in any case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class HttpInterceptor(Protocol):
    """What stands between us and every server of one way out: it sees all that is asked, and all that is answered."""

    def on_request(self, request: HttpRequest) -> HttpResponse | None:
        """An answer in the server's place, which is not asked then; None to ask it. What may not be asked is raised."""
        ...

    def on_response(self, request: HttpRequest, answer: HttpResponse) -> HttpResponse:
        """The server answered; what whoever asked is given."""
        ...

    def on_error(self, request: HttpRequest, error: RemoteError) -> None:
        """No answer came, or none that can be used."""
        ...


_interceptor: Final[ContextVar[HttpInterceptor | None]] = ContextVar("around", default=None)


class intercepted_by:  # noqa: N801 - a context manager is called like a function
    """What a client without a tap of its own sends inside, in this task and in those it starts, meets this one."""

    __slots__ = ("_tap", "_token")

    def __init__(self, interceptor: HttpInterceptor) -> None:
        self._tap = interceptor
        self._token: Token[HttpInterceptor | None] | None = None

    def __enter__(self) -> None:
        self._token = _interceptor.set(self._tap)

    def __exit__(self, *_: object) -> None:
        assert self._token is not None
        _interceptor.reset(self._token)


def current_interceptor() -> HttpInterceptor | None:
    """The one that clients without a tap of their own meet here."""
    return _interceptor.get()


class ResponseStream:
    """An answer whose body is read as it comes. `close` it when it is not wanted any more."""

    def __init__(self, request: HttpRequest, response: aiohttp.ClientResponse, idle_timeout: float) -> None:
        self.status = response.status
        self.headers: Mapping[str, str] = response.headers
        self._request = request
        self._response = response
        self._idle_timeout = idle_timeout

    async def read(self) -> bytes:
        """What has come by now, or comes next; nothing at the end. RemoteUnavailable when it breaks off before that."""
        try:
            return await self._response.content.readany()
        except (aiohttp.ClientError, OSError) as error:
            self.close()
            raise _failure(self._request, error, self._idle_timeout) from error

    async def whole(self) -> HttpResponse:
        """All of it, as an answer."""
        parts = []
        while part := await self.read():
            parts.append(part)
        return HttpResponse(self.status, self.headers, b"".join(parts))

    def close(self) -> None:
        """What is still to come is not read, and the other side is not asked whether it agrees."""
        if (transport := _transport_of(self._response)) is not None:
            transport.abort()
        self._response.close()


class HttpClient:
    """Keeps connections and uses them again. Opened by the first request; `close` lets go of everything.

    `proxy` is the way to every server; without it the environment says which one it is, if any. Every request meets
    `tap` first.
    """

    def __init__(self, proxy: str | None = None, interceptor: HttpInterceptor | None = None) -> None:
        # How many requests there were, by method, host and what came of them: a status, or "<error>" without an answer.
        self.counts: Counter[tuple[str, str, str]] = Counter()
        self._session: aiohttp.ClientSession | None = None
        self._sockets = SocketFactory()
        self._proxy = proxy
        self._tap = interceptor
        # Host and proxy by origin: finding out takes a walk through the environment.
        self._ways: dict[str, tuple[str, str | None]] = {}

    async def send(self, request: HttpRequest) -> HttpResponse:
        """The whole answer, whatever its status; RemoteUnavailable when there is none, or only a part of it.

        RemoteRefused when the server is not who it should be. What no permit allows is not sent: see clients.permits.
        """
        request = fenced_request(request)
        interceptor = self._tap or _interceptor.get()
        return await (self._sent(request) if interceptor is None else self._sent_past(interceptor, request))

    async def _sent_past(self, interceptor: HttpInterceptor, request: HttpRequest) -> HttpResponse:
        instead = interceptor.on_request(request)
        if instead is not None:
            return instead
        try:
            answer = await self._sent(request)
        except RemoteError as error:
            interceptor.on_error(request, error)
            raise
        return interceptor.on_response(request, answer)

    async def _sent(self, request: HttpRequest) -> HttpResponse:
        host, proxy = self._way_to(request.url)
        code = "<error>"
        try:
            # Exactly: rounded up, as it would be otherwise, a write could outlive what permits it.
            timeout = aiohttp.ClientTimeout(total=request.seconds, ceil_threshold=inf)
            async with self._asked(request, proxy, timeout) as response:
                answer = HttpResponse(response.status, response.headers, await response.read())
                code = str(response.status)
                return answer
        except (aiohttp.ClientError, OSError) as error:
            raise _failure(request, error, request.seconds) from error
        finally:
            self.counts[request.method, host, code] += 1

    async def open(self, request: HttpRequest, idle_timeout: float) -> ResponseStream:
        """The answer as soon as it begins, which has to be in time; `silence` seconds without a byte end it after that.

        Errors are those of `send`.
        """
        request = fenced_request(request)
        interceptor = self._tap or _interceptor.get()
        if interceptor is not None and interceptor.on_request(request) is not None:
            raise Bug(f"{request}: an answer that comes bit by bit cannot be given in the server's place")
        host, proxy = self._way_to(request.url)
        code = "<error>"
        try:
            timeout = aiohttp.ClientTimeout(total=None, sock_read=idle_timeout)
            async with asyncio.timeout(request.seconds):
                response = await self._asked(request, proxy, timeout)
            code = str(response.status)
            _keep_alive(response)
            return ResponseStream(request, response, idle_timeout)
        except (aiohttp.ClientError, OSError) as error:
            raise _failure(request, error, request.seconds) from error
        finally:
            self.counts[request.method, host, code] += 1

    async def close(self) -> None:
        """Closes the connections; a later request opens new ones."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()
        await self._sockets.end()

    def _asked(
        self, request: HttpRequest, proxy: str | None, timeout: aiohttp.ClientTimeout
    ) -> aiohttp.client._RequestContextManager:
        session = self._session = self._session or _new_session(self._sockets)
        tls = request.tls
        return session.request(
            request.method,
            URL(request.url, encoded=True),
            data=request.body,
            headers=request.headers,
            proxy=proxy,
            ssl=True if tls is None else tls.context,
            server_hostname=None if tls is None else tls.server_name,
            # Whoever we are sent to may not be meant to see our credentials.
            allow_redirects=False,
            timeout=timeout,
        )

    def _way_to(self, url: str) -> tuple[str, str | None]:
        """The host, and the proxy that leads there."""
        # To the slash after "https://host": cheaper than to take the whole address apart.
        origin = url[: url.find("/", 8)]
        found = self._ways.get(origin)
        if found is None:
            parts = urlsplit(url)
            from_environment = None if proxy_bypass(parts.netloc) else getproxies().get(parts.scheme)
            proxy = self._proxy or from_environment
            found = self._ways[origin] = (parts.netloc, proxy)
        return found


def fenced_request(request: HttpRequest) -> HttpRequest:
    """The request, with no more time than the permits around it leave to a write; what refuses it is raised."""
    if request.method in _READ_METHODS:
        return request
    seconds = seconds_allowed(FencedWrite(request.method, urlsplit(request.url).path))
    return request if seconds >= request.seconds else replace(request, seconds=seconds)


def _new_session(sockets: SocketFactory) -> aiohttp.ClientSession:
    headers = {"User-Agent": USER_AGENT}
    # How many calls are under way is decided where turns are shared out: a second line here would be nobody's turn.
    connector = aiohttp.TCPConnector(limit=0, socket_factory=sockets)
    return aiohttp.ClientSession(headers=headers, connector=connector, cookie_jar=aiohttp.DummyCookieJar())


def _keep_alive(response: aiohttp.ClientResponse) -> None:
    """Has the system notice, on this connection, that the other side is gone."""
    transport = _transport_of(response)
    opened = None if transport is None else transport.get_extra_info("socket")
    if opened is not None:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _KEEP_ALIVE:
            # Not every system has them.
            if option := getattr(socket, name, None):
                opened.setsockopt(socket.IPPROTO_TCP, option, value)


def _transport_of(response: aiohttp.ClientResponse) -> asyncio.Transport | None:
    """What the answer comes through; nothing when all of it has come."""
    return response.connection.transport if response.connection else None


def _failure(request: HttpRequest, error: Exception, seconds: float) -> RemoteError:
    if isinstance(error, TimeoutError):
        return RemoteUnavailable(f"{request}: no answer within {seconds:g} s")
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        why = getattr(error.certificate_error, "verify_message", "") or error.certificate_error
        return RemoteRefused(
            f"{request}: {error.host}:{error.port} shows a certificate that is not to be trusted: {why}. "
            "Check the address, and which certificate authority is named for it"
        )
    return RemoteUnavailable(f"{request}: {_reason(error)}")


def _reason(error: Exception) -> str:
    """What went wrong, without the address: that has the query in it."""
    match error:
        case aiohttp.InvalidURL():
            return "that is not an address"
        case aiohttp.ClientResponseError():
            return f"that is not HTTP: {error.message}"
        case aiohttp.ClientConnectorError():
            why = f"{error.strerror or error.os_error}: see whether it runs, and whether the address is right"
            return f"cannot connect to {error.host}:{error.port}: {why}"
        case _:
            return str(error) or type(error).__name__
