"""The HTTP client: responses, and the errors of failed requests."""

import asyncio
import socket
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from aiohttp import web

from setpoint import __version__
from setpoint.clients.http import HttpClient, HttpRequest, HttpResponse
from setpoint.errors import RemoteUnavailable
from tests.clients.loopback_servers import Conversation, http_server, raw_server, sends


async def ask(request: HttpRequest) -> HttpResponse:
    client = HttpClient()
    try:
        return await client.send(request)
    finally:
        await client.close()


async def echo(request: web.BaseRequest) -> web.Response:
    return web.Response(status=418, body=await request.read(), headers={"X-Seen": str(request.rel_url)})


def test_returns_status_headers_and_body() -> None:
    async def main() -> HttpResponse:
        async with http_server(echo) as url:
            return await ask(HttpRequest("POST", f"{url}/a%2Fb?c=%25", body=b'{"d":1}'))

    answer = asyncio.run(main())

    assert (answer.status, answer.body, answer.headers["x-seen"]) == (418, b'{"d":1}', "/a%2Fb?c=%25")


def test_sends_its_user_agent() -> None:
    async def handler(request: web.BaseRequest) -> web.Response:
        return web.Response(text=request.headers["User-Agent"])

    async def main() -> HttpResponse:
        async with http_server(handler) as url:
            return await ask(HttpRequest("GET", url))

    assert asyncio.run(main()).body == f"setpoint/{__version__}".encode()


def test_uses_a_connection_again() -> None:
    async def handler(request: web.BaseRequest) -> web.Response:
        assert request.transport is not None
        return web.Response(text=str(request.transport.get_extra_info("peername")))

    async def main() -> set[bytes]:
        client = HttpClient()
        async with http_server(handler) as url:
            peers = {(await client.send(HttpRequest("GET", url))).body for _ in range(3)}
            await client.close()
            return peers

    assert len(asyncio.run(main())) == 1


def test_can_be_used_again_after_it_was_closed() -> None:
    async def main() -> list[int]:
        client = HttpClient()
        statuses = []
        async with http_server(echo) as url:
            for _ in range(2):
                statuses.append((await client.send(HttpRequest("GET", url))).status)
                await client.close()
        return statuses

    assert asyncio.run(main()) == [418, 418]


def test_a_post_without_a_body_has_content_length_zero() -> None:
    async def handler(request: web.BaseRequest) -> web.Response:
        return web.Response(text=request.headers["Content-Length"])

    async def main() -> HttpResponse:
        async with http_server(handler) as url:
            return await ask(HttpRequest("POST", url))

    assert asyncio.run(main()).body == b"0"


def test_does_not_follow_redirects() -> None:
    asked: list[str] = []

    async def handler(request: web.BaseRequest) -> web.Response:
        asked.append(request.path)
        return web.Response(status=307, headers={"Location": "/elsewhere"})

    async def main() -> HttpResponse:
        async with http_server(handler) as url:
            return await ask(HttpRequest("GET", f"{url}/here"))

    assert asyncio.run(main()).status == 307
    assert asked == ["/here"]


async def resets(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()


@pytest.mark.parametrize(
    "conversation",
    [
        resets,
        sends("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this"),
        sends("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nonly"),
        sends("this is not HTTP\r\n\r\n"),
        sends(""),
    ],
    ids=["reset", "truncated", "truncated chunk", "not HTTP", "closed"],
)
def test_a_broken_response_is_unavailable(conversation: Conversation) -> None:
    async def main() -> None:
        async with raw_server(conversation) as place:
            await ask(HttpRequest("GET", f"http://{place}/path?password=hunter2", {"Authorization": "Bearer hunter2"}))

    message = message_of(main)

    assert message.startswith("GET /path: ")
    assert "hunter2" not in message


def test_a_server_without_tls_is_unavailable() -> None:
    async def main() -> None:
        async with http_server(echo) as url:
            await ask(HttpRequest("GET", url.replace("http://", "https://") + "/path?password=hunter2"))

    message = message_of(main)

    assert message.startswith("GET /path: cannot connect to 127.0.0.1:")
    assert "hunter2" not in message


def test_a_refused_connection_is_unavailable() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]

        async def main() -> None:
            await ask(HttpRequest("PUT", f"http://127.0.0.1:{port}/path?password=hunter2", body=b"hunter2"))

        message = message_of(main)

    assert message.startswith(f"PUT /path: cannot connect to 127.0.0.1:{port}: ")
    assert "hunter2" not in message


@pytest.mark.parametrize("address", ["http://no-such-host.invalid/path", "http:///path"])
def test_an_invalid_address_is_unavailable(address: str) -> None:
    async def main() -> None:
        await ask(HttpRequest("GET", f"{address}?password=hunter2"))

    message = message_of(main)

    assert message.startswith("GET /path: ")
    assert "hunter2" not in message


def test_a_response_that_times_out_is_unavailable() -> None:
    async def main() -> None:
        never = asyncio.Event()

        async def handler(_request: web.BaseRequest) -> web.Response:
            await never.wait()
            raise AssertionError

        async with http_server(handler) as url:
            await ask(HttpRequest("GET", f"{url}/path", seconds=0.05))

    assert message_of(main) == "GET /path: no answer within 0.05 s"


def message_of(main: Callable[[], Coroutine[Any, Any, None]]) -> str:
    with pytest.raises(RemoteUnavailable) as caught:
        asyncio.run(main())
    return str(caught.value)
