"""A local cloud that knows who writes: each process comes in by a door of its own."""

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
    """A request that asked for a change: whose it was, what it said, and when it came. No status: it was cut off."""

    writer: str
    method: str
    path: str
    body: object
    status: int | None
    at: float


class DoorCloud(LocalCloud):
    """The local cloud with doors."""

    def __init__(self, operation_seconds: float = 0.3) -> None:
        super().__init__(operation_seconds=operation_seconds)
        # Everything since the start, in the order in which it was done.
        self.written: list[Written] = []
        self._doors: list[web.ServerRunner] = []

    async def open_door(self, writer: str) -> str:
        """An address; its clients count as `writer`."""

        async def respond(incoming: web.BaseRequest) -> web.Response:
            _writer.set(writer)
            return await self._respond(incoming)

        door = web.ServerRunner(web.Server(respond), shutdown_timeout=0.1)
        await door.setup()
        await web.TCPSite(door, "127.0.0.1", 0).start()
        self._doors.append(door)
        return f"http://127.0.0.1:{door.addresses[0][1]}"

    async def stop(self) -> None:
        """See LocalCloud."""
        for door in self._doors:
            await door.cleanup()
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
