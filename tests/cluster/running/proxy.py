"""A proxy to an API server that records requests and injects network faults."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import aiohttp
import yaml
from aiohttp import web

from setpoint.clients.sockets import SocketFactory
from tests.cluster.access import Access
from tests.cluster.running.background_loop import BackgroundLoop

# Headers of one connection, and those that the proxy sets itself.
_NOT_FORWARDED: Final = {"host", "authorization", "connection", "transfer-encoding", "content-length", "keep-alive"}


@dataclass(slots=True)
class ProxiedRequest:
    """A request and the status of its response; 0 before the end of the response, and when it was cut off."""

    method: str
    path: str
    query: str
    accept: str
    status: int = 0

    @property
    def is_for_lease(self) -> bool:
        """Whether it reads or writes leases."""
        return "/leases" in self.path

    @property
    def is_watch(self) -> bool:
        """Whether it is a watch."""
        return "watch=true" in self.query


# The response to a request instead of forwarding it; None to forward it.
NetworkFault: TypeAlias = Callable[[web.BaseRequest], Awaitable[web.StreamResponse | None]]


async def no_fault(_: web.BaseRequest) -> web.StreamResponse | None:
    """Every request is forwarded."""
    return None


def _never(_: web.BaseRequest) -> bool:
    return False


class Proxy:
    """Serves plain HTTP, and forwards requests to the API server as the administrator."""

    def __init__(self, access: Access) -> None:
        self._access = access
        # All requests but those for leases.
        self.requests: list[ProxiedRequest] = []
        self.fault: NetworkFault = no_fault
        # Whether a request is forwarded, and its response is lost.
        self.loses_response: Callable[[web.BaseRequest], bool] = _never
        self._runner: web.ServerRunner | None = None
        self._session: aiohttp.ClientSession | None = None
        self._sockets = SocketFactory()
        self._open: dict[int, web.BaseRequest] = {}
        # The watches whose events are delayed until it is set, by the last part of their path.
        self._held_watches: dict[str, asyncio.Event] = {}
        self.url = ""

    async def start(self) -> None:
        """Starts to listen."""
        connector = aiohttp.TCPConnector(ssl=self._access.tls(), limit=0, socket_factory=self._sockets)
        self._session = aiohttp.ClientSession(connector=connector, auto_decompress=False, timeout=_NO_TIMEOUT)
        self._runner = web.ServerRunner(
            # A client that disconnects cancels its request to the API server.
            web.Server(self._respond, handler_cancellation=True),
            shutdown_timeout=0.1,
        )
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def stop(self) -> None:
        """Closes every connection."""
        assert self._runner is not None
        assert self._session is not None
        self.cut()
        await self._runner.cleanup()
        await self._session.close()
        await self._sockets.close_all()

    def write_kubeconfig(self, file: Path) -> Path:
        """The kubeconfig of clients that use this proxy."""
        content: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "tests", "cluster": {"server": self.url}}],
            "contexts": [{"name": "tests", "context": {"cluster": "tests"}}],
            "current-context": "tests",
        }
        file.write_text(yaml.safe_dump(content), encoding="utf-8")
        return file

    def hold_watches(self, plural: str) -> None:
        """Delays all events of watches of these objects."""
        self._held_watches[plural] = asyncio.Event()

    def release_watches(self, plural: str) -> None:
        """Delivers the delayed events."""
        self._held_watches.pop(plural).set()

    def cut(self) -> int:
        """Aborts every connection with an unfinished response; returns their number."""
        cut = tuple(self._open.values())
        for incoming in cut:
            if incoming.transport is not None:
                incoming.transport.abort()
        return len(cut)

    async def _respond(self, incoming: web.BaseRequest) -> web.StreamResponse:
        url = incoming.rel_url
        request = ProxiedRequest(
            incoming.method, url.raw_path, url.raw_query_string, incoming.headers.get("Accept", "")
        )
        # Leases are renewed all the time.
        if not request.is_for_lease:
            self.requests.append(request)
        self._open[id(incoming)] = incoming
        try:
            answer = await self.fault(incoming)
            if answer is None and self.loses_response(incoming):
                await self._execute(incoming)
                answer = await cut_off(incoming)
            answer = answer or await self._forward(incoming)
            request.status = answer.status
            return answer
        except (aiohttp.ClientError, OSError):
            # The client sees an aborted connection.
            if incoming.transport is not None:
                incoming.transport.abort()
            return web.Response(status=502)
        finally:
            del self._open[id(incoming)]

    async def _execute(self, incoming: web.BaseRequest) -> None:
        async with self._sent(incoming, await incoming.read()) as found:
            await found.read()

    async def _forward(self, incoming: web.BaseRequest) -> web.StreamResponse:
        async with self._sent(incoming, await incoming.read()) as found:
            kept = {name: text for name, text in found.headers.items() if name.lower() not in _NOT_FORWARDED}
            answer = web.StreamResponse(status=found.status, headers=kept)
            await answer.prepare(incoming)
            plural = incoming.rel_url.raw_path.rpartition("/")[2]
            async for piece in found.content.iter_any():
                if (held := self._held_watches.get(plural)) and "watch=true" in incoming.rel_url.raw_query_string:
                    await held.wait()
                await answer.write(piece)
            await answer.write_eof()
        return answer

    def _sent(self, incoming: web.BaseRequest, body: bytes) -> "aiohttp.client._RequestContextManager":
        assert self._session is not None
        headers = {name: text for name, text in incoming.headers.items() if name.lower() not in _NOT_FORWARDED}
        url = f"{self._access.url}{incoming.rel_url.raw_path_qs}"
        return self._session.request(incoming.method, url, headers=headers, data=body or None)


_NO_TIMEOUT: Final = aiohttp.ClientTimeout(total=None)


# --- Network faults ---------------------------------------------------------------------------------------------------


async def cut_off(incoming: web.BaseRequest) -> web.StreamResponse | None:
    """Aborts the connection."""
    assert incoming.transport is not None
    incoming.transport.abort()
    return web.Response(status=502)


def slow(seconds: float) -> NetworkFault:
    """Every request takes so much longer."""

    async def delay(_: web.BaseRequest) -> web.StreamResponse | None:
        await asyncio.sleep(seconds)
        return None

    return delay


def too_many_requests(retry_after: int) -> NetworkFault:
    """429 for every request, like an overloaded API server."""

    async def refuse(_: web.BaseRequest) -> web.StreamResponse | None:
        answer = _status(429, "TooManyRequests", "too many requests, please try again later")
        answer.headers["Retry-After"] = str(retry_after)
        return answer

    return refuse


async def no_events(incoming: web.BaseRequest) -> web.StreamResponse | None:
    """403 for new Events, like an API server for a namespace that is being deleted."""
    if incoming.method == "POST" and incoming.rel_url.raw_path.endswith("/events"):
        return _status(403, "Forbidden", "unable to create new content in namespace because it is being terminated")
    return None


def _status(code: int, reason: str, message: str) -> web.Response:
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code}
    return web.json_response({**status, "reason": reason, "message": message}, status=code)


def sometimes(fault: NetworkFault, part: float) -> NetworkFault:
    """The fault for that share of all requests, at random."""
    draw = random.Random(1)

    async def change(incoming: web.BaseRequest) -> web.StreamResponse | None:
        return await fault(incoming) if draw.random() < part else None

    return change


def lost_responses(part: float) -> Callable[[web.BaseRequest], bool]:
    """That share of all writes is forwarded, and their responses are lost."""
    draw = random.Random(1)
    return lambda incoming: incoming.method != "GET" and draw.random() < part


@contextmanager
def running_proxy(access: Access, background: BackgroundLoop, kubeconfig: Path) -> Iterator[Proxy]:
    """A proxy that runs until the end of the block; `kubeconfig` is written for its clients."""
    proxy = Proxy(access)
    background.run(proxy.start())
    try:
        proxy.write_kubeconfig(kubeconfig)
        yield proxy
    finally:
        background.run(proxy.stop())
