"""Fences: checked right before a write is sent."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from math import inf

import pytest
from aiohttp import web

from setpoint.clients.fencing import FencedWrite, fenced_by, seconds_allowed, unfenced
from setpoint.clients.google.calls import GoogleCall, GoogleService
from setpoint.clients.google.client import GoogleAuth, GoogleClient, GoogleSettings
from setpoint.clients.http import HttpClient, HttpRequest, fenced_request
from setpoint.clients.ratelimit.circuit_breaker import BreakerState
from setpoint.clients.ratelimit.limiter import LimiterStats
from setpoint.errors import LeaseLost, RemoteUnavailable
from tests.clients.loopback_servers import http_server

WRITE = FencedWrite("POST", "/b")


@dataclass(slots=True)
class AllowingFence:
    """Allows every write, for `seconds`."""

    seconds: float = inf
    asked: list[str] = field(default_factory=list)

    def check(self, write: FencedWrite) -> float:
        self.asked.append(str(write))
        return self.seconds


@dataclass(slots=True)
class RefusingFence:
    """Refuses every write, and records it."""

    refused: list[str] = field(default_factory=list)

    def check(self, write: FencedWrite) -> float:
        self.refused.append(str(write))
        raise LeaseLost(f"{write}: not now")


def test_without_a_fence_every_write_is_allowed() -> None:
    assert seconds_allowed(WRITE) == inf


def test_every_fence_has_to_allow_a_write_and_the_shortest_time_counts() -> None:
    with fenced_by(AllowingFence(5.0)), fenced_by(AllowingFence(3.0), AllowingFence(9.0)):
        inside = seconds_allowed(WRITE)
    with fenced_by(RefusingFence()), fenced_by(AllowingFence()), pytest.raises(LeaseLost):
        seconds_allowed(WRITE)
    with fenced_by(AllowingFence()), fenced_by(RefusingFence()), pytest.raises(LeaseLost):
        seconds_allowed(WRITE)

    assert inside == 3.0
    assert seconds_allowed(WRITE) == inf


def test_a_fence_holds_for_tasks_started_inside_and_for_no_other_tasks() -> None:
    async def main() -> list[float]:
        before = asyncio.Event()

        async def ask() -> float:
            await before.wait()
            return seconds_allowed(WRITE)

        outside = asyncio.create_task(ask())
        with fenced_by(AllowingFence(5.0)):
            inside = asyncio.create_task(ask())
        before.set()
        return [await outside, await inside]

    assert asyncio.run(main()) == [inf, 5.0]


def test_unfenced_writes_pass_no_fence() -> None:
    with fenced_by(RefusingFence()):
        with unfenced():
            inside = seconds_allowed(WRITE)
        with pytest.raises(LeaseLost):
            seconds_allowed(WRITE)

    assert inside == inf


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_a_refused_write_is_not_sent(method: str) -> None:
    seen, fence = asyncio.run(_sent(method))

    assert seen == []
    assert fence.refused == [f"{method} /b/logs", f"{method} /b/logs"]


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_reads_pass_no_fence(method: str) -> None:
    seen, fence = asyncio.run(_sent(method))

    assert seen == [method, method]
    assert fence.refused == []


async def _sent(method: str) -> tuple[list[str], RefusingFence]:
    """Sends a request and a stream through a fence that refuses; the methods that arrived, and the fence."""
    seen, fence, client = list[str](), RefusingFence(), HttpClient()

    async def handler(request: web.BaseRequest) -> web.Response:
        seen.append(request.method)
        return web.Response(text="ok")

    async with http_server(handler) as url:
        request = HttpRequest(method, f"{url}/b/logs?key=secret")
        with fenced_by(fence):
            with suppress(LeaseLost):
                await client.send(request)
            with suppress(LeaseLost):
                (await client.open(request, 5.0)).close()
        await client.close()
    return seen, fence


def test_a_write_has_no_more_time_than_its_fence_allows() -> None:
    write = HttpRequest("PUT", "http://service/b", seconds=60.0)
    with fenced_by(AllowingFence(7.5)):
        cut, read = fenced_request(write), fenced_request(HttpRequest("GET", "http://service/b"))
    with fenced_by(AllowingFence(90.0)):
        whole = fenced_request(write)

    assert (cut.seconds, read.seconds, whole.seconds) == (7.5, 60.0, 60.0)


def test_a_write_that_outlives_its_fence_is_aborted() -> None:
    async def main() -> None:
        never, client = asyncio.Event(), HttpClient()

        async def handler(_request: web.BaseRequest) -> web.Response:
            await never.wait()
            return web.Response()

        async with http_server(handler) as url:
            try:
                with fenced_by(AllowingFence(0.01)):
                    await client.send(HttpRequest("PUT", url))
            finally:
                await client.close()

    with pytest.raises(RemoteUnavailable, match=r"no answer within 0\.01 s"):
        asyncio.run(main())


def test_a_fenced_off_write_does_not_count_against_the_service() -> None:
    async def main() -> LimiterStats:
        settings = GoogleSettings(storage="http://service", auth=GoogleAuth.ANONYMOUS)
        google = GoogleClient(HttpClient(), settings)
        with fenced_by(RefusingFence()), pytest.raises(LeaseLost):
            await google.post(GoogleCall(GoogleService.STORAGE, ("b",), {"project": "p"}), {"name": "logs"})
        await google.close()
        (limiter,) = google.budgets.snapshot().limiters
        return limiter

    limiter = asyncio.run(main())

    assert (limiter.in_flight, limiter.breaker, limiter.rejected) == (0, BreakerState.CLOSED, 0)
