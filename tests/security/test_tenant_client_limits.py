"""What a server that a tenant named may cost: connections, streams, lines of a watch, and responses together."""

import asyncio

import pytest
from aiohttp import web

from setpoint.clients.http import HttpClient, HttpRequest
from setpoint.clients.http_transport import MIB, HeldBytes, HttpLimits
from setpoint.clients.kubernetes.watch import WatchEventReader
from setpoint.errors import ClientRetired, RemoteUnavailable, ResponseTooLarge
from tests.clients.loopback_servers import http_server
from tests.security.test_response_limits import SMALL, get, with_client

# --- Clients of tenants -----------------------------------------------------------------------------------------------


def test_the_responses_of_a_tenant_are_limited_together() -> None:
    async def main() -> tuple[list[object], int]:
        held, may_end = HeldBytes(MIB), asyncio.Event()

        async def handler(request: web.BaseRequest) -> web.StreamResponse:
            response = web.StreamResponse()
            await response.prepare(request)
            await response.write(b"x" * (MIB // 2))
            await may_end.wait()
            return response

        clients = [HttpClient(limits=SMALL, held=held) for _ in range(4)]
        async with http_server(handler) as url:
            left = {asyncio.ensure_future(get(one, url)) for one in clients}
            refused: list[object] = []
            while len(refused) < 2:
                done, left = await asyncio.wait(left, return_when=asyncio.FIRST_COMPLETED)
                refused += [type(one.exception()) for one in done]
            may_end.set()
            statuses = [(await one).status for one in left]
            for client in clients:
                await client.close()
        return [*refused, *statuses], held.held

    assert asyncio.run(main()) == ([ResponseTooLarge, ResponseTooLarge, 200, 200], 0)


def test_connections_to_a_server_of_a_tenant_are_limited() -> None:
    open_now: list[int] = [0]
    most: list[int] = [0]

    async def handler(_request: web.BaseRequest) -> web.Response:
        open_now[0] += 1
        most[0] = max(most[0], open_now[0])
        await asyncio.sleep(0.01)
        open_now[0] -= 1
        return web.Response()

    async def many(client: HttpClient, url: str) -> int:
        return len(await asyncio.gather(*(get(client, url) for _ in range(20))))

    async def main() -> int:
        async with http_server(handler) as url:
            return await with_client(url, many, HttpLimits(connections=3))

    assert asyncio.run(main()) == 20
    assert most[0] == 3


def test_streams_are_limited_apart_from_requests() -> None:
    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        if request.path == "/":
            return web.Response()
        response = web.StreamResponse()
        await response.prepare(request)
        await asyncio.Event().wait()
        return response

    async def main(client: HttpClient, url: str) -> tuple[str, int]:
        opened = [await client.open(HttpRequest("GET", f"{url}/w"), 10) for _ in range(2)]
        with pytest.raises(RemoteUnavailable) as refused:
            await client.open(HttpRequest("GET", f"{url}/w"), 10)
        status = (await get(client, url)).status
        opened[0].close()
        (await client.open(HttpRequest("GET", f"{url}/w"), 10)).close()
        opened[1].close()
        return str(refused.value), status

    async def served() -> tuple[str, int]:
        async with http_server(handler) as url:
            return await with_client(url, main, HttpLimits(connections=1, streams=2))

    assert asyncio.run(served()) == ("GET /w: not sent: 2 watches of this server are open, which is the limit", 200)


def test_a_retired_client_ends_its_streams_and_lets_requests_finish() -> None:
    begun, may_end = asyncio.Event(), asyncio.Event()

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        if request.path == "/slow":
            begun.set()
            await may_end.wait()
            return web.Response(text="done")
        response = web.StreamResponse()
        await response.prepare(request)
        await asyncio.Event().wait()
        return response

    async def main(client: HttpClient, url: str) -> tuple[bytes, bool, bool]:
        stream = await client.open(HttpRequest("GET", f"{url}/w"), 10)
        reading = asyncio.ensure_future(stream.read())
        running = asyncio.ensure_future(get(client, f"{url}/slow"))
        await begun.wait()
        client.retire()
        was_idle = client.is_idle
        with pytest.raises(ClientRetired, match="its connection was closed, as many others are in use"):
            await get(client, url)
        with pytest.raises(RemoteUnavailable):
            await reading
        may_end.set()
        return (await running).body, was_idle, client.is_idle

    async def served() -> tuple[bytes, bool, bool]:
        async with http_server(handler) as url:
            return await with_client(url, main)

    assert asyncio.run(served()) == (b"done", False, True)


# --- Watches ----------------------------------------------------------------------------------------------------------


def test_a_line_of_a_watch_is_limited() -> None:
    held = HeldBytes()
    reader = WatchEventReader("watch /pods", 100, held)
    reader.feed(b'{"type":"ADDED"}\n' * 50 + b"x" * 99)

    with pytest.raises(ResponseTooLarge, match=r"^watch /pods: the answer is larger than"):
        reader.feed(b"xx")

    reader.close()
    assert held.held == 0


def test_an_incomplete_line_counts_as_held() -> None:
    held = HeldBytes(150)
    one, other = WatchEventReader("a", 100, held), WatchEventReader("b", 100, held)
    one.feed(b"x" * 90)

    with pytest.raises(ResponseTooLarge, match="of one namespace are larger than"):
        other.feed(b"x" * 90)
