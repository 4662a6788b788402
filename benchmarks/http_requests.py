"""The group `http`: a GET of 4 KB by our clients, by aiohttp, and by a protocol that does nothing but parse.

The server is a process of its own, as small as it can be: its CPU time is not measured.
"""

import asyncio
from collections.abc import Awaitable, Callable, Generator
from contextlib import AsyncExitStack
from typing import Final, TypeAlias, cast
from urllib.parse import urlsplit

import aiohttp
from httptools import HttpResponseParser

from benchmarks.comparison import BenchmarkSettings, Candidate, Comparison
from benchmarks.peer_packages import Peers
from benchmarks.server_process import announce_until_parent_ends, running_server
from setpoint.clients.google.calls import GoogleCall, GoogleService, quota_key
from setpoint.clients.google.client import (
    AUTH_VARIABLE,
    STORAGE_ENDPOINT_VARIABLE,
    GoogleAuth,
    GoogleClient,
    settings_from,
)
from setpoint.clients.http import HttpClient, HttpRequest
from setpoint.clients.kubernetes.client import KubernetesClient
from setpoint.clients.kubernetes.kubeconfig import ClusterConnection
from setpoint.clients.kubernetes.requests import Endpoint
from setpoint.clients.ratelimit.limiter import QuotaBudgets, QuotaKey
from setpoint.clients.ratelimit.token_bucket import AimdSettings

SERIAL: Final = "HTTP: GET of 4 KB, one after another"
IN_FLIGHT: Final = "HTTP: GET of 4 KB, 20 at once"
OURS: Final = "ours: HttpClient.send"
KUBERNETES: Final = "ours: KubernetesClient.get, with credentials, rate limiter and errors"
GOOGLE: Final = "ours: GoogleClient.get, likewise"
AIOHTTP: Final = "aiohttp"
FLOOR: Final = "asyncio and llhttp alone: no pool, headers, limits, timeout"
GETS: Final = 400
_CONCURRENCY: Final = {SERIAL: 1, IN_FLIGHT: 20}
_BODY: Final = b'{"items":"' + b"x" * 4084 + b'"}'
_TOKEN: Final = {"Authorization": "Bearer token"}
_PATH: Final = "/storage/v1/b/logs?projection=full"
_CONFIG_MAP: Final = Endpoint("", "v1", "configmaps", "team-orders", "settings")
_BUCKET: Final = GoogleCall(GoogleService.STORAGE, ("b", "logs"), {"projection": "full"})
# Without a limit in effect: the calls are measured, not the wait for the rate limiter.
_UNLIMITED: Final = AimdSettings(start=1e6, burst=1e6, ceiling=1e6, growth=0.0)

_Get: TypeAlias = Callable[[], Awaitable[bytes]]


def benchmarks(_peers: Peers, settings: BenchmarkSettings) -> Generator[Comparison, None, None]:
    """One comparison for requests one after another, one for many at once."""
    gets = settings.scaled(GETS)
    with asyncio.Runner() as runner, running_server("benchmarks.http_requests") as address:
        stack = AsyncExitStack()
        candidates = runner.run(_candidates(address, stack))
        try:
            for subject, concurrency in _CONCURRENCY.items():
                yield Comparison(
                    subject,
                    "",
                    tuple(
                        Candidate(name, _get_all(runner, get, gets, concurrency), _is_complete(gets), gets)
                        for name, get in candidates.items()
                    ),
                )
        finally:
            runner.run(stack.aclose())


async def _candidates(address: str, stack: AsyncExitStack) -> dict[str, _Get]:
    url, ours = address + _PATH, HttpClient()
    stack.push_async_callback(ours.close)
    request = HttpRequest("GET", url, _TOKEN)
    session = await stack.enter_async_context(aiohttp.ClientSession())

    async def get_by_ours() -> bytes:
        return (await ours.send(request)).body

    async def get_by_aiohttp() -> bytes:
        async with session.get(url, headers=_TOKEN) as response:
            return await response.read()

    kubernetes, google = _kubernetes(address, ours), _google(address, ours)

    async def get_by_kubernetes() -> bytes:
        return await kubernetes.get(_CONFIG_MAP) or b""

    async def get_by_google() -> bytes:
        return await google.get(_BUCKET) or b""

    bare = _BareConnections(urlsplit(address).port or 0)
    stack.callback(bare.close)
    by_clients = {KUBERNETES: get_by_kubernetes, GOOGLE: get_by_google}
    return {OURS: get_by_ours, **by_clients, AIOHTTP: get_by_aiohttp, FLOOR: bare.get}


def _kubernetes(address: str, http: HttpClient) -> KubernetesClient:
    budgets = QuotaBudgets()
    budgets.make(QuotaKey(f"kubernetes {urlsplit(address).netloc}", "", "reads"), _UNLIMITED, address)
    return KubernetesClient(ClusterConnection("the server", address), http=http, budgets=budgets)


def _google(address: str, http: HttpClient) -> GoogleClient:
    budgets = QuotaBudgets()
    budgets.make(quota_key("GET", _BUCKET), _UNLIMITED, address)
    settings = settings_from({STORAGE_ENDPOINT_VARIABLE: address, AUTH_VARIABLE: GoogleAuth.ANONYMOUS.value})
    return GoogleClient(http, settings, budgets=budgets)


def _get_all(runner: asyncio.Runner, get: _Get, count: int, concurrency: int) -> Callable[[], int]:
    """How many of `count` GETs returned the body, `concurrency` of them at once."""

    async def get_all() -> int:
        remaining, complete = iter(range(count)), 0

        async def work() -> None:
            nonlocal complete
            for _ in remaining:
                body = await get()
                complete += body == _BODY

        await asyncio.gather(*(work() for _ in range(concurrency)))
        return complete

    return lambda: runner.run(get_all())


def _is_complete(count: int) -> Callable[[object], bool]:
    return lambda result: result == count


# --- The floor --------------------------------------------------------------------------------------------------------


class _BareConnections:
    def __init__(self, port: int) -> None:
        self._port = port
        self._idle: list[_BareConnection] = []

    async def get(self) -> bytes:
        loop = asyncio.get_running_loop()
        connection = self._idle.pop() if self._idle else None
        if connection is None:
            _, connection = await loop.create_connection(_BareConnection, "127.0.0.1", self._port)
        body = await connection.get(loop.create_future())
        self._idle.append(connection)
        return body

    def close(self) -> None:
        for connection in self._idle:
            connection.transport.abort()


class _BareConnection(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def get(self, response: asyncio.Future[bytes]) -> asyncio.Future[bytes]:
        self._pieces: list[bytes] = []
        self._parser, self._response = HttpResponseParser(self), response
        self.transport.write(b"GET %b HTTP/1.1\r\nhost: a\r\nauthorization: Bearer token\r\n\r\n" % _PATH.encode())
        return response

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_body(self, piece: bytes) -> None:
        self._pieces.append(piece)

    def on_message_complete(self) -> None:
        self._response.set_result(b"".join(self._pieces))


# --- The server -------------------------------------------------------------------------------------------------------

_RESPONSE: Final = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json; charset=UTF-8\r\nServer: stub\r\nVary: Origin\r\n"
    b"Date: Tue, 17 Nov 2026 18:00:00 GMT\r\nContent-Length: %d\r\n\r\n%b" % (len(_BODY), _BODY)
)


class _ServerConnection(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._received = b""

    def data_received(self, data: bytes) -> None:
        *requests, self._received = (self._received + data).split(b"\r\n\r\n")
        self._transport.write(_RESPONSE * len(requests))


async def _serve() -> None:
    server = await asyncio.get_running_loop().create_server(_ServerConnection, "127.0.0.1", 0)
    await announce_until_parent_ends(server.sockets[0].getsockname()[1])
    server.close()


if __name__ == "__main__":
    asyncio.run(_serve())
