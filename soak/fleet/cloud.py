"""A local cloud that knows its writers: each process has an endpoint of its own."""

import time
from contextvars import ContextVar
from typing import Any, Final, NamedTuple

import msgspec
from aiohttp import web

from setpoint.localcloud.cloud import Cloud, CloudRequest
from setpoint.localcloud.journal import redacted
from setpoint.localcloud.routing import ServiceResponse
from setpoint.localcloud.server import LocalCloud

_READS: Final = ("GET", "HEAD")
_writer: Final = ContextVar("_writer", default="")


class Written(NamedTuple):
    """A write request: the writer, the body, and when it arrived. Without a status the connection was cut."""

    writer: str
    method: str
    path: str
    body: object
    status: int | None
    at: float


class MultiEndpointCloud(LocalCloud):
    """The local cloud with doors."""

    def __init__(self, operation_seconds: float = 0.3) -> None:
        super().__init__(operation_seconds=operation_seconds)
        # Everything since the start, in the order in which it was done.
        self.written: list[Written] = []
        self._endpoints: list[web.ServerRunner] = []

    async def open_endpoint(self, writer: str) -> str:
        """An address; its clients count as `writer`."""

        async def respond(incoming: web.BaseRequest) -> web.Response:
            _writer.set(writer)
            return await self._respond(incoming)

        endpoint = web.ServerRunner(web.Server(respond), shutdown_timeout=0.1)
        await endpoint.setup()
        await web.TCPSite(endpoint, "127.0.0.1", 0).start()
        self._endpoints.append(endpoint)
        return f"http://127.0.0.1:{endpoint.addresses[0][1]}"

    async def stop(self) -> None:
        """See LocalCloud."""
        for endpoint in self._endpoints:
            await endpoint.cleanup()
        await super().stop()

    def handle(self, request: CloudRequest) -> ServiceResponse | None:
        """See Cloud."""
        answer = super().handle(request)
        if request.method not in _READS and not request.path.startswith("/_local"):
            body = redacted(msgspec.json.decode(request.body)) if request.body else None
            status = None if answer is None else answer.status
            self.written.append(Written(_writer.get(), request.method, request.path, body, status, time.monotonic()))
        return answer

    def stored(self, path: str) -> dict[str, Any] | None:
        """The object at `path` now, without counting the read; None when there is none."""
        answer = self._guarded(CloudRequest("GET", path), Cloud._dispatch)
        return answer.body if answer.status == 200 and isinstance(answer.body, dict) else None

    def writes_to(self, path: str) -> list[Written]:
        """What was done to the object at `path`, and nothing that was refused."""
        done = (one for one in self.written if one.status is not None and one.status < 400)
        return [one for one in done if one.path == path]
