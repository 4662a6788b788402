"""Responses that are read as they arrive, and requests through a proxy."""

import asyncio
import socket
from collections.abc import Awaitable, Callable

import pytest
from aiohttp import web

from setpoint.clients.http import HttpClient, HttpRequest, HttpResponse
from setpoint.clients.http_transport import ResponseStream
from setpoint.errors import RemoteUnavailable
from tests.clients.loopback_servers import Conversation, http_server, raw_server, sends

BEGUN = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


async def read_all(stream: ResponseStream) -> list[bytes]:
    """Every chunk, up to the end."""
    pieces = []
    while piece := await stream.read():
        pieces.append(piece)
    return pieces


async def echo(request: web.BaseRequest) -> web.Response:
    return web.Response(status=418, body=await request.read(), headers={"X-Seen": str(request.rel_url)})


async def never(_request: web.BaseRequest) -> web.Response:
    await asyncio.Event().wait()
    raise AssertionError


def test_a_stream_is_read_as_it_arrives() -> None:
    async def main() -> tuple[bytes, list[bytes]]:
        may_continue = asyncio.Event()

        async def handler(request: web.BaseRequest) -> web.StreamResponse:
            response = web.StreamResponse()
            await response.prepare(request)
            await response.write(b"first")
            await may_continue.wait()
            await response.write(b"second")
            return response

        async with http_server(handler) as url:
            client = HttpClient()
            stream = await client.open(HttpRequest("GET", url), idle_timeout=10)
            first = await stream.read()
            may_continue.set()
            rest = await read_all(stream)
            stream.close()
            await client.close()
            return first, rest

    assert asyncio.run(main()) == (b"first", [b"second"])


def test_a_stream_can_be_read_as_a_whole() -> None:
    async def main() -> HttpResponse:
        async with http_server(echo) as url:
            client = HttpClient()
            stream = await client.open(HttpRequest("POST", f"{url}/a", body=b"body"), idle_timeout=10)
            answer = HttpResponse(stream.status, stream.headers, await stream.whole())
            await client.close()
            assert client.counts["POST", url.removeprefix("http://"), "418"] == 1
            return answer

    answer = asyncio.run(main())

    assert (answer.status, answer.body, answer.headers["x-seen"]) == (418, b"body", "/a")


@pytest.mark.parametrize("read", [ResponseStream.read, ResponseStream.whole])
def test_a_stream_with_a_broken_chunk_ends(read: Callable[[ResponseStream], Awaitable[bytes]]) -> None:
    async def main() -> None:
        is_open = asyncio.Event()

        async def conversation(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(BEGUN.encode())
            await is_open.wait()
            writer.write(b"zz\r\n{}")
            await reader.read()

        async with raw_server(conversation) as place:
            client = HttpClient()
            stream = await client.open(HttpRequest("GET", f"http://{place}/a"), idle_timeout=0.1)
            is_open.set()
            try:
                await read(stream)
            finally:
                await client.close()

    with pytest.raises(RemoteUnavailable, match=r"GET /a: (no answer within 0\.1 s|that is not HTTP)"):
        asyncio.run(main())


def test_a_stream_has_tcp_keep_alive() -> None:
    async def main() -> int:
        async with raw_server(sends(f"{BEGUN}4\r\nhere\r\n")) as place:
            client = HttpClient()
            stream = await client.open(HttpRequest("GET", f"http://{place}/"), idle_timeout=10)
            opened: list[socket.socket] = []
            stream._response.configure(lambda transport: opened.append(transport.get_extra_info("socket")))
            is_kept_alive = opened[0].getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
            stream.close()
            await client.close()
            return is_kept_alive

    assert asyncio.run(main()) == 1


async def resets(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(f"{BEGUN}4\r\nhere\r\n".encode())
    await writer.drain()
    writer.transport.abort()


@pytest.mark.parametrize(
    "conversation",
    [
        resets,
        sends(f"{BEGUN}4\r\nhere\r\n"),
        sends(f"{BEGUN}4\r\nhere\r\n9\r\nhalf"),
        sends(f"{BEGUN}4\r\nhere\r\nno!"),
    ],
    ids=["reset", "closed", "closed in the middle", "not HTTP"],
)
def test_a_stream_that_breaks_is_unavailable(conversation: Conversation) -> None:
    async def main() -> None:
        client = HttpClient()
        async with raw_server(conversation) as place:
            try:
                await read_all(
                    await client.open(HttpRequest("GET", f"http://{place}/path?password=hunter2"), idle_timeout=10)
                )
            finally:
                await client.close()

    with pytest.raises(RemoteUnavailable, match=r"^GET /path: (?!.*hunter2)"):
        asyncio.run(main())


def test_an_idle_stream_times_out() -> None:
    async def silent(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"here")
        await asyncio.Event().wait()
        return response

    async def main() -> None:
        client = HttpClient()
        async with http_server(silent) as url:
            try:
                await read_all(await client.open(HttpRequest("GET", f"{url}/path"), idle_timeout=0.05))
            finally:
                await client.close()

    with pytest.raises(RemoteUnavailable, match=r"^GET /path: no answer within 0\.05 s$"):
        asyncio.run(main())


def test_a_response_that_does_not_begin_in_time_is_unavailable() -> None:
    async def main() -> None:
        client = HttpClient()
        async with http_server(never) as url:
            try:
                await client.open(HttpRequest("GET", f"{url}/path", seconds=0.05), idle_timeout=10)
            finally:
                await client.close()
                assert client.counts["GET", url.removeprefix("http://"), "<error>"] == 1

    with pytest.raises(RemoteUnavailable, match=r"^GET /path: no answer within 0\.05 s$"):
        asyncio.run(main())


def test_a_refused_connection_is_unavailable() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]

        async def main() -> None:
            client = HttpClient()
            try:
                await client.open(HttpRequest("GET", f"http://127.0.0.1:{port}/path"), idle_timeout=10)
            finally:
                await client.close()

        with pytest.raises(RemoteUnavailable, match=r"^GET /path: cannot connect to "):
            asyncio.run(main())


def test_requests_use_the_configured_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")
    asked: list[bytes] = []

    async def proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = await reader.readline()
        asked.append(line)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        await writer.drain()
        writer.close()

    async def main() -> HttpResponse:
        server = await asyncio.start_server(proxy, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        client = HttpClient(f"http://me:hunter2@127.0.0.1:{port}")
        async with server:
            answer = await client.send(HttpRequest("GET", "http://no-such-host.invalid/path"))
            await client.close()
        return answer

    assert asyncio.run(main()).body == b"ok"
    assert asked == [b"GET http://no-such-host.invalid/path HTTP/1.1\r\n"]
