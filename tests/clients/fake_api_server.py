"""A made-up API server on the loopback interface, which answers what a test has written down."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec
from aiohttp import web

from setpoint.clients.kubernetes.client import KubernetesClient, KubernetesCredentials
from setpoint.clients.kubernetes.credentials import ClusterIdentity
from setpoint.clients.kubernetes.kubeconfig import ClusterConnection
from tests.clients.loopback_servers import http_server

Reaction = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


@dataclass
class FakeCredentials:
    """A new token whenever the last one was refused, while there are any."""

    left: int = 1
    held: ClusterIdentity = field(default_factory=lambda: ClusterIdentity({"Authorization": "Bearer t0"}))

    async def identity(self, refused: ClusterIdentity | None = None) -> ClusterIdentity:
        if refused is self.held and self.left:
            self.held = ClusterIdentity({"Authorization": f"Bearer t{self.left}"})
            self.left -= 1
        return self.held


@dataclass
class FakeCluster:
    """Each request is one scene, in order; the last one again and again."""

    scenes: list[Reaction]
    requests: list[web.BaseRequest] = field(default_factory=list)
    # When each came, by the loop's time.
    times: list[float] = field(default_factory=list)

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        self.requests.append(request)
        self.times.append(asyncio.get_running_loop().time())
        context = self.scenes.pop(0) if len(self.scenes) > 1 else self.scenes[0]
        return await context(request)

    @property
    def versions(self) -> list[str]:
        """From which resource version each watch began."""
        return [one.rel_url.query["resourceVersion"] for one in self.requests]


@asynccontextmanager
async def serving(
    *scenes: Reaction, credentials: KubernetesCredentials | None = None
) -> AsyncIterator[tuple[FakeCluster, KubernetesClient]]:
    """A cluster with these scenes, and a client of it."""
    cluster = FakeCluster(list(scenes))
    async with http_server(cluster.answer) as url:
        client = KubernetesClient(ClusterConnection("context test", url), credentials)
        try:
            yield cluster, client
        finally:
            await client.close()


# --- Scenes -----------------------------------------------------------------------------------------------------------


def event(change: str, version: int | str, **more: Any) -> dict[str, Any]:
    return {"type": change, "object": {"metadata": {"resourceVersion": str(version)} | more}}


def error_event(code: int, reason: str) -> dict[str, Any]:
    return {"type": "ERROR", "object": {"kind": "Status", "code": code, "reason": reason, "message": "No."}}


async def started_stream(request: web.BaseRequest, *events: dict[str, Any]) -> web.StreamResponse:
    """A watch that has told these events."""
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    await response.prepare(request)
    for one in events:
        await response.write(msgspec.json.encode(one) + b"\n")
    return response


def sends_events(*events: dict[str, Any], lasting: float = 0.0) -> Reaction:
    """A watch with these events, which ends in good order after so many seconds."""

    async def context(request: web.BaseRequest) -> web.StreamResponse:
        response = await started_stream(request, *events)
        await asyncio.sleep(lasting)
        return response

    return context


def sends_then_breaks(*events: dict[str, Any], half: bytes = b"") -> Reaction:
    """The same, but its connection is reset, maybe in the middle of a line."""

    async def context(request: web.BaseRequest) -> web.StreamResponse:
        response = await started_stream(request, *events)
        await response.write(half or b"\n")
        assert request.transport is not None
        request.transport.abort()
        return response

    return context


def sends_then_idles(*events: dict[str, Any]) -> Reaction:
    """The same, but nothing more comes, and no end."""

    async def context(request: web.BaseRequest) -> web.StreamResponse:
        response = await started_stream(request, *events)
        await asyncio.Event().wait()
        return response

    return context


def refuses(code: int, reason: str, headers: dict[str, str] | None = None, message: str = "No.") -> Reaction:
    """A clear no."""

    async def context(_request: web.BaseRequest) -> web.StreamResponse:
        said = {"kind": "Status", "code": code, "reason": reason, "message": message}
        return web.Response(
            status=code, body=msgspec.json.encode(said), headers={"Content-Type": "application/json", **(headers or {})}
        )

    return context


async def breaks_at_once(request: web.BaseRequest) -> web.StreamResponse:
    """No answer at all."""
    assert request.transport is not None
    request.transport.abort()
    return web.Response()
