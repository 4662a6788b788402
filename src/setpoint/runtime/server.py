"""The HTTP server of a running process: /healthz, /readyz, /metrics and the admin API."""

import errno
import logging
import re
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from aiohttp import web

from setpoint.errors import UserError
from setpoint.runtime.manager import Phase

_log: Final = logging.getLogger(__name__)
# How long requests may take to finish when the process ends.
_SHUTDOWN_SECONDS: Final = 1.0
_ADDRESS: Final = re.compile(r"(?:\[(?P<ipv6>[^\[\]]+)\]|(?P<host>[^\[\]:]*)):(?P<port>[0-9]{1,5})")
_ADDRESS_HINT: Final = "write :8080 for every address, or 127.0.0.1:8080, or [::1]:8080; port 0 takes any that is free"


class HealthSource(Protocol):
    """The health of a process."""

    @property
    def phase(self) -> Phase:
        """The lifecycle phase."""
        ...

    @property
    def is_ready(self) -> bool:
        """Whether it is ready."""
        ...

    @property
    def failed_tasks(self) -> Sequence[str]:
        """The names of the tasks that ended unexpectedly; none before the start and during shutdown."""
        ...


class MetricsSource(Protocol):
    """Renders the metrics page."""

    async def page(self, accept: str) -> tuple[bytes, str]:
        """The page in the best format that `accept` names, and its content type."""
        ...


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


class HttpServer:
    """Serves /healthz, /readyz and /metrics, and `routes`. There is no authentication."""

    def __init__(self, health: HealthSource, telemetry: MetricsSource, routes: Sequence[web.RouteDef] = ()) -> None:
        self._health = health
        self._telemetry = telemetry
        self._routes = routes
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
        await self._serve(listening, str(path))

    async def close(self) -> None:
        """Stops listening; a second call does nothing."""
        runner, self._runner, self._address = self._runner, None, ""
        if runner is not None:
            await runner.cleanup()
        if self._socket_file is not None:
            self._socket_file.unlink(missing_ok=True)
            self._socket_file = None

    async def _serve(self, listening: socket.socket, address: str) -> None:
        application = web.Application()
        application.add_routes(
            [
                web.get("/healthz", self._healthz),
                web.get("/readyz", self._readyz),
                web.get("/metrics", self._metrics),
                *self._routes,
            ]
        )
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=_SHUTDOWN_SECONDS)
        await self._runner.setup()
        await web.SockSite(self._runner, listening).start()
        self._address = address
        _log.info("serving", extra={"address": address})

    async def _healthz(self, request: web.Request) -> web.Response:
        failed_tasks = self._health.failed_tasks
        return _plain(503, f"not running any more: {', '.join(failed_tasks)}") if failed_tasks else _plain(200, "ok")

    async def _readyz(self, request: web.Request) -> web.Response:
        return _plain(200, "ok") if self._health.is_ready else _plain(503, self._health.phase.value)

    async def _metrics(self, request: web.Request) -> web.Response:
        body, content_type = await self._telemetry.page(",".join(request.headers.getall("Accept", [])))
        return web.Response(body=body, headers={"Content-Type": content_type})


def _plain(status: int, text: str) -> web.Response:
    return web.Response(status=status, text=f"{text}\n", headers={"Cache-Control": "no-store"})


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
