"""A fake API server on the loopback interface, with scripted responses."""

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
    """Returns a new token after a refusal, `left` times."""

    left: int = 1
    held: ClusterIdentity = field(default_factory=lambda: ClusterIdentity({"Authorization": "Bearer t0"}))

    async def identity(self, refused: ClusterIdentity | None = None) -> ClusterIdentity:
        if refused is self.held and self.left:
            self.held = ClusterIdentity({"Authorization": f"Bearer t{self.left}"})
            self.left -= 1
        return self.held


@dataclass
class FakeApiServer:
    """Answers each request with the next reaction; the last one is repeated."""

    reactions: list[Reaction]
    requests: list[web.BaseRequest] = field(default_factory=list)
    # When each request came, by the time of the event loop.
    times: list[float] = field(default_factory=list)

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        self.requests.append(request)
        self.times.append(asyncio.get_running_loop().time())
        reaction = self.reactions.pop(0) if len(self.reactions) > 1 else self.reactions[0]
        return await reaction(request)

    @property
    def versions(self) -> list[str]:
        """The resource version that each watch started from."""
        return [one.rel_url.query["resourceVersion"] for one in self.requests]


@asynccontextmanager
async def fake_api_server(
    *reactions: Reaction, credentials: KubernetesCredentials | None = None
) -> AsyncIterator[tuple[FakeApiServer, KubernetesClient]]:
    """A fake API server with these reactions, and a client of it."""
    server = FakeApiServer(list(reactions))
    async with http_server(server.answer) as url:
        client = KubernetesClient(ClusterConnection("context test", url), credentials)
        try:
            yield server, client
        finally:
            await client.close()


# --- Reactions --------------------------------------------------------------------------------------------------------


def event(change: str, version: int | str, **more: Any) -> dict[str, Any]:
    return {"type": change, "object": {"metadata": {"resourceVersion": str(version)} | more}}


def error_event(code: int, reason: str) -> dict[str, Any]:
    return {"type": "ERROR", "object": {"kind": "Status", "code": code, "reason": reason, "message": "No."}}


async def started_stream(request: web.BaseRequest, *events: dict[str, Any]) -> web.StreamResponse:
    """A watch that has sent these events."""
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    await response.prepare(request)
    for one in events:
        await response.write(msgspec.json.encode(one) + b"\n")
    return response


def sends_events(*events: dict[str, Any], lasting: float = 0.0) -> Reaction:
    """A watch with these events, which the server ends after `lasting` seconds."""

    async def reaction(request: web.BaseRequest) -> web.StreamResponse:
        response = await started_stream(request, *events)
        await asyncio.sleep(lasting)
        return response

    return reaction


def sends_then_breaks(*events: dict[str, Any], half: bytes = b"") -> Reaction:
    """A watch with these events, and then a reset connection, with `half` in the middle of a line."""

    async def reaction(request: web.BaseRequest) -> web.StreamResponse:
        response = await started_stream(request, *events)
        await response.write(half or b"\n")
        assert request.transport is not None
        request.transport.abort()
        return response

    return reaction


def sends_then_idles(*events: dict[str, Any]) -> Reaction:
    """A watch with these events, and then no more data."""

    async def reaction(request: web.BaseRequest) -> web.StreamResponse:
        response = await started_stream(request, *events)
        await asyncio.Event().wait()
        return response

    return reaction


def refuses(code: int, reason: str, headers: dict[str, str] | None = None, message: str = "No.") -> Reaction:
    """An error response with a Status."""

    async def reaction(_request: web.BaseRequest) -> web.StreamResponse:
        status = {"kind": "Status", "code": code, "reason": reason, "message": message}
        return web.Response(
            status=code,
            body=msgspec.json.encode(status),
            headers={"Content-Type": "application/json", **(headers or {})},
        )

    return reaction


async def breaks_at_once(request: web.BaseRequest) -> web.StreamResponse:
    """Resets the connection without a response."""
    assert request.transport is not None
    request.transport.abort()
    return web.Response()
