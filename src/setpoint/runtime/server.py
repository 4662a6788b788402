"""The HTTP server of a running process: /healthz, /readyz, /metrics and the admin API."""

import logging
import socket
from collections.abc import Sequence
from typing import Final, Protocol

from aiohttp import web

from setpoint.runtime.limited_server import LimitedServer, ServerLimits
from setpoint.runtime.manager import Phase

_log: Final = logging.getLogger(__name__)


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

    @property
    def unserved_kinds(self) -> Sequence[str]:
        """The kinds that the store does not serve yet."""
        ...

    @property
    def outdated_kinds(self) -> Sequence[str]:
        """The kinds whose definition is older than the process."""
        ...


class MetricsSource(Protocol):
    """Renders the metrics page."""

    async def page(self, accept: str) -> tuple[bytes, str]:
        """The page in the best format that `accept` names, and its content type."""
        ...


class HttpServer(LimitedServer):
    """Serves /healthz, /readyz and /metrics, and `routes`. There is no authentication."""

    def __init__(
        self,
        health: HealthSource,
        telemetry: MetricsSource,
        routes: Sequence[web.RouteDef] = (),
        limits: ServerLimits | None = None,
    ) -> None:
        super().__init__(routes, limits)
        self._health = health
        self._telemetry = telemetry

    async def _serve(self, listening: socket.socket, address: str) -> None:
        await super()._serve(listening, address)
        _log.info("serving", extra={"address": address})

    def _pages(self) -> Sequence[web.RouteDef]:
        pages = {"/healthz": self._healthz, "/readyz": self._readyz, "/metrics": self._metrics}
        return [web.get(path, self.in_time(page)) for path, page in pages.items()]

    async def _healthz(self, request: web.Request) -> web.Response:
        failed_tasks = self._health.failed_tasks
        return _plain(503, f"not running any more: {', '.join(failed_tasks)}") if failed_tasks else _plain(200, "ok")

    async def _readyz(self, request: web.Request) -> web.Response:
        if not self._health.is_ready:
            return _plain(503, self._health.phase.value)
        missing, outdated = (", ".join(kinds) for kinds in (self._health.unserved_kinds, self._health.outdated_kinds))
        reasons = [f"for want of a CRD not for {missing}"] if missing else []
        reasons += [f"for a CRD that is too old not for {outdated}"] if outdated else []
        return _plain(200, f"ok, but {', and '.join(reasons)}" if reasons else "ok")

    async def _metrics(self, request: web.Request) -> web.Response:
        body, content_type = await self._telemetry.page(",".join(request.headers.getall("Accept", [])))
        return web.Response(body=body, headers={"Content-Type": content_type})


def _plain(status: int, text: str) -> web.Response:
    return web.Response(status=status, text=f"{text}\n", headers={"Cache-Control": "no-store"})
