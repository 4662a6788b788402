"""An HTTP server within limits: what clients may take of it, and what its log says of their requests."""

import asyncio
import errno
import logging
import re
import socket
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from time import monotonic
from typing import Final, NamedTuple, TypeAlias

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.typedefs import Middleware

from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.errors import UserError

# What the HTTP library logs of requests.
_request_log: Final = logging.getLogger(f"{__name__}.requests")
# How long requests may take to finish when the process ends.
_SHUTDOWN_SECONDS: Final = 1.0
_ADDRESS: Final = re.compile(r"(?:\[(?P<ipv6>[^\[\]]+)\]|(?P<host>[^\[\]:]*)):(?P<port>[0-9]{1,5})")
_ADDRESS_HINT: Final = "write :8080 for every address, or 127.0.0.1:8080, or [::1]:8080; port 0 takes any that is free"


Handler: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]


class ListenAddress(NamedTuple):
    """The address to listen on; an empty host stands for every address of this machine."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_listen_address(text: str) -> ListenAddress:
    """The address in `text`; UserError when it is not valid."""
    found = _ADDRESS.fullmatch(text)
    if found is None or int(found["port"]) > 65535:
        raise UserError(f"{text!r} is no address to listen on: {_ADDRESS_HINT}")
    return ListenAddress(found["ipv6"] or found["host"] or "", int(found["port"]))


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """What clients may take of a server: connections, seconds, and the size and number of their headers.

    A request has to be there in `idle_seconds`, and the page it asks for has to be taken in `page_seconds`.
    """

    connections: int = 64
    idle_seconds: float = 10.0
    page_seconds: float = 10.0
    header_bytes: int = 4096
    headers: int = 64
    logs_per_minute: int = 10


# The clients of a Unix socket are processes of one user.
_UNIX_LIMITS: Final = ServerLimits(connections=1000, idle_seconds=75.0)


class LimitedServer:
    """Serves `routes` within limits. There is no authentication but that of `middlewares`."""

    def __init__(
        self,
        routes: Sequence[web.RouteDef] = (),
        limits: ServerLimits | None = None,
        middlewares: Sequence[Middleware] = (),
    ) -> None:
        self._routes = routes
        self._middlewares = middlewares
        self._limits = limits or ServerLimits()
        self._is_default = limits is None
        # The connections with a request that is being handled.
        self._busy: set[asyncio.BaseProtocol] = set()
        self._log_filter = RequestLogFilter(self._limits.logs_per_minute)
        self._listener: asyncio.Server | None = None
        self._runner: web.AppRunner | None = None
        self._socket_file: Path | None = None
        self._address = ""

    @property
    def address(self) -> str:
        """The address it listens on: http://host:port, or the path of a socket; empty when closed."""
        return self._address

    async def start(self, host: str, port: int) -> None:
        """Listens on a port. UserError when that fails."""
        listening = _listen(ListenAddress(host, port))
        await self._serve(listening, f"http://{ListenAddress(*listening.getsockname()[:2])}")

    async def start_unix(self, path: Path) -> None:
        """Listens on a Unix socket with access for this user only. UserError when that fails."""
        listening = _listen_unix(path)
        self._socket_file = path
        self._limits = _UNIX_LIMITS if self._is_default else self._limits
        await self._serve(listening, str(path))

    async def close(self) -> None:
        """Stops listening; a second call does nothing."""
        runner, self._runner, self._address = self._runner, None, ""
        if self._listener is not None:
            self._listener.close()
        if runner is not None:
            await runner.cleanup()
            _request_log.removeFilter(self._log_filter)
        if self._socket_file is not None:
            self._socket_file.unlink(missing_ok=True)
            self._socket_file = None

    async def _serve(self, listening: socket.socket, address: str) -> None:
        application = web.Application(middlewares=[self._while_busy, *self._middlewares])
        application.add_routes([*self._pages(), *self._routes])
        limits = self._limits
        runner = self._runner = web.AppRunner(
            application,
            access_log=None,
            shutdown_timeout=_SHUTDOWN_SECONDS,
            # Counted from the start of a connection, and from the end of each response: also for a slow header.
            keepalive_timeout=limits.idle_seconds,
            max_line_size=limits.header_bytes,
            max_field_size=limits.header_bytes,
            max_headers=limits.headers,
            auto_decompress=False,
            logger=_request_log,
        )
        await runner.setup()
        _request_log.addFilter(self._log_filter)
        loop = asyncio.get_running_loop()
        # So many are accepted at once before they are known: never more than twice the limit are open.
        self._listener = await loop.create_server(
            lambda: self._accept(runner), sock=listening, backlog=limits.connections
        )
        self._address = address

    def _pages(self) -> Sequence[web.RouteDef]:
        """The pages that this server has besides its routes."""
        return ()

    def _accept(self, runner: web.AppRunner) -> asyncio.Protocol:
        """The protocol of a new connection. Beyond the limit the oldest idle ones are closed for it, then any."""
        server = runner.server
        assert server is not None
        too_many = len(server.connections) - self._limits.connections + 1
        # The oldest first, in each group.
        for one in sorted(server.connections, key=self._busy.__contains__)[: max(too_many, 0)]:
            if one.transport is not None:
                one.transport.abort()
        protocol: asyncio.Protocol = server()
        return protocol

    @web.middleware
    async def _while_busy(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        self._busy.add(request.protocol)
        try:
            return await handler(request)
        finally:
            self._busy.discard(request.protocol)

    def in_time(self, page: Callable[[web.Request], Awaitable[web.Response]]) -> Handler:
        """Sends a page, and closes the connection of a client that does not take it in time."""

        async def send(request: web.Request) -> web.StreamResponse:
            response = await page(request)
            try:
                async with asyncio.timeout(self._limits.page_seconds):
                    await response.prepare(request)
                    await response.write_eof()
            except TimeoutError:
                if request.transport is not None:
                    request.transport.abort()
            except ConnectionError:
                # The client is gone.
                pass
            return response

        return send


class RequestLogFilter(logging.Filter):
    """Passes so many records a minute. What a client did wrong is one line, without what it sent, or none."""

    def __init__(self, most: int, clock: Callable[[], float] = monotonic) -> None:
        super().__init__()
        self._most = most
        self._clock = clock
        self._began = clock()
        self._passed = self._left_out = 0

    def filter(self, record: logging.LogRecord) -> bool:
        """See logging.Filter."""
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, ConnectionError):
            # The client is gone.
            return False
        now = self._clock()
        if now - self._began >= 60.0:
            self._began, self._passed = now, 0
        if self._passed >= self._most:
            self._left_out += 1
            return False
        if isinstance(error, HttpProcessingError):
            record.msg, record.args, record.exc_info = "request refused: it is not HTTP, or too large", (), None
            record.levelno, record.levelname = logging.WARNING, "WARNING"
        if self._left_out:
            record.left_out = self._left_out
        self._passed, self._left_out = self._passed + 1, 0
        return True


# --- Sockets ----------------------------------------------------------------------------------------------------------


def _listen(address: ListenAddress) -> socket.socket:
    try:
        return _listen_everywhere(address.port) if not address.host else _listen_at(address)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise UserError(f"cannot listen on {address}: another process does; choose another port, or 0") from error
        raise UserError(f"cannot listen on {address}: {_reason(error)}; {_ADDRESS_HINT}") from error


def _listen_at(address: ListenAddress) -> socket.socket:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    return socket.create_server(address, family=family)


def _listen_everywhere(port: int) -> socket.socket:
    """One socket for IPv4 and IPv6, so that they share a port that the system chose; IPv4 alone without IPv6."""
    if socket.has_dualstack_ipv6():
        try:
            return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
        except OSError as error:
            if error.errno not in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
                raise
    return socket.create_server(("", port))


def _listen_unix(path: Path) -> socket.socket:
    listening = socket.socket(socket.AF_UNIX)
    try:
        if path.is_socket() and not _answers(path):
            # Left behind by a process that was killed.
            path.unlink()
        listening.bind(str(path))
        # Before `listen`, no connection is possible: the mode is set in time.
        path.chmod(0o600)
        listening.listen()
    except OSError as error:
        listening.close()
        raise UserError(f"cannot listen on {path}: {_reason(error)}; choose another path") from error
    return listening


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as asking:
        asking.settimeout(1.0)
        try:
            asking.connect(str(path))
        except ConnectionRefusedError:
            return False
    return True


def _reason(error: OSError) -> str:
    """The text of the error without the address that Python adds."""
    return (error.strerror or str(error)).partition(" (while")[0]
