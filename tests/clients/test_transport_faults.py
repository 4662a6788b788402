"""A request that is cancelled at whatever await leaves no socket open, and a client that can be used again."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from types import coroutine
from typing import Any, TypeVar

import pytest
from aiohttp import web

from setpoint.clients.http import HttpClient, HttpRequest
from setpoint.clients.http_transport import HttpLimits
from setpoint.clients.transport.opening import TlsOptions
from setpoint.errors import RemoteRefused, RemoteUnavailable
from tests.clients.loopback_servers import http_server
from tests.cluster.certificates import Authority

pytestmark = pytest.mark.slow
T = TypeVar("T")
# More than the sockets of both ends hold: it is written in many turns of the event loop.
LARGE = b"x" * 8_000_000
SIGNER = Authority()


@coroutine
def cancelled_at(work: Coroutine[Any, Any, T], place: int) -> Generator[Any, Any, T]:
    """Runs `work`, and cancels this task when it awaits for the `place`-th time, counted from 0."""
    awaits = 0
    while True:
        try:
            waits_for = work.send(None)
        except StopIteration as end:
            result: T = end.value
            return result
        if awaits == place:
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
        awaits += 1
        try:
            yield waits_for
        except BaseException as error:  # noqa: BLE001 - whatever is thrown in, the work has to see it
            try:
                waits_for = work.throw(error)
            except StopIteration as end:
                result = end.value
                return result
            raise AssertionError("it awaits after it was cancelled") from None


async def echo(request: web.BaseRequest) -> web.StreamResponse:
    """The length of the request, in two pieces."""
    received = 0
    async for piece in request.content.iter_any():
        received += len(piece)
    response = web.StreamResponse()
    await response.prepare(request)
    await response.write(b"got ")
    await asyncio.sleep(0)
    await response.write(str(received).encode())
    return response


def tls_contexts(folder: Path) -> tuple[ssl.SSLContext, TlsOptions]:
    """Those of a server at the loopback interface, and of a client that trusts it."""
    pair = SIGNER.for_server("localhost")
    (folder / "pair.pem").write_bytes(pair.certificate + pair.key)
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server.load_cert_chain(folder / "pair.pem")
    client = ssl.create_default_context(cadata=SIGNER.certificate.decode())
    client.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return server, TlsOptions(client, "localhost")


@asynccontextmanager
async def tunnelling_proxy(tls: ssl.SSLContext | None = None, login: bytes = b"") -> AsyncIterator[str]:
    """The address of a proxy that leads CONNECT to wherever it is asked; 407 without the login that it expects."""

    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, OSError):
            writer.close()
            return
        if login not in head:
            writer.write(b"HTTP/1.1 407 Who\r\nContent-Length: 0\r\n\r\n")
            writer.close()
            return
        host, _, port = head.split()[1].decode().rpartition(":")
        there, back = await asyncio.open_connection(host.strip("[]"), int(port))
        writer.write(b"HTTP/1.1 200 Connected\r\n\r\n")
        await asyncio.gather(forward(reader, back), forward(there, writer))

    server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=tls)
    try:
        yield f"{'https' if tls else 'http'}://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


class Setup:
    """Servers, and a client for them that has one connection at a time."""

    def __init__(self, stack: AsyncExitStack, folder: Path) -> None:
        self.folder = folder
        self._stack = stack

    async def make(self, way: str) -> tuple[HttpClient, HttpRequest]:
        server_tls, tls = tls_contexts(self.folder)
        is_tls = way in ("TLS", "tunnel", "tunnel in TLS", "large over TLS")
        url = await self._stack.enter_async_context(http_server(echo, server_tls if is_tls else None))
        proxy = None
        if way.startswith("tunnel"):
            tls = TlsOptions(_anywhere(tls.context), None)
            proxy_tls = server_tls if way == "tunnel in TLS" else None
            proxy = await self._stack.enter_async_context(tunnelling_proxy(proxy_tls))
        if way == "a name":
            url = url.replace("127.0.0.1", "several.test")
        body = LARGE if way.startswith("large") else b"{}"
        client = HttpClient(proxy, limits=HttpLimits(connections=1))
        return client, HttpRequest("PUT", f"{url}/a", body=body, tls=tls if is_tls else None, seconds=30)


def _anywhere(context: ssl.SSLContext) -> ssl.SSLContext:
    context.check_hostname = False
    return context


WAYS = ("plain", "a name", "TLS", "tunnel", "tunnel in TLS", "large", "large over TLS")


@pytest.fixture(autouse=True)
def several_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name with two addresses, at the first of which there is no server."""
    resolve = socket.getaddrinfo

    def lead(host: str, *rest: Any, **more: Any) -> Any:
        hosts = ("127.0.0.9", "127.0.0.1") if host == "several.test" else (host,)
        return [found for one in hosts for found in resolve(one, *rest, **more)]

    monkeypatch.setattr("socket.getaddrinfo", lead)


def open_sockets(client: HttpClient) -> list[str]:
    """The sockets that the client has made and that are open."""
    return [repr(one) for one in client._sockets._made if one.fileno() != -1]


@pytest.mark.parametrize("is_stream", [False, True], ids=["send", "open"])
@pytest.mark.parametrize("way", WAYS)
def test_cancelled_at_any_await_nothing_is_left_open_and_the_client_goes_on(
    way: str, is_stream: bool, tmp_path: Path
) -> None:
    async def body_of(client: HttpClient, request: HttpRequest) -> bytes:
        if not is_stream:
            return (await client.send(request)).body
        stream = await client.open(request, 30)
        try:
            return await stream.whole()
        finally:
            stream.close()

    async def main() -> int:
        async with AsyncExitStack() as stack:
            client, request = await Setup(stack, tmp_path).make(way)
            expected = f"got {len(request.body or b'')}".encode()
            for place in range(10_000):
                try:
                    found = await cancelled_at(body_of(client, request), place)
                except asyncio.CancelledError:
                    task = asyncio.current_task()
                    assert task is not None
                    task.uncancel()
                    assert client.is_idle
                    # The event loop closes sockets in its next turns.
                    for _ in range(3):
                        await asyncio.sleep(0)
                    assert open_sockets(client) == []
                    # It has one connection at a time: were its slot lost, this would have no end.
                    assert await asyncio.wait_for(body_of(client, request), 30) == expected
                    await client.close()
                    assert open_sockets(client) == []
                else:
                    assert found == expected
                    await client.close()
                    return place
        raise AssertionError("it has no end")

    assert asyncio.run(main()) >= 2


@pytest.mark.parametrize("way", WAYS)
def test_a_connection_that_is_used_again_leaves_nothing_open_either(way: str, tmp_path: Path) -> None:
    async def main() -> int:
        async with AsyncExitStack() as stack:
            client, request = await Setup(stack, tmp_path).make(way)
            for place in range(10_000):
                await client.send(request)
                try:
                    await cancelled_at(client.send(request), place)
                except asyncio.CancelledError:
                    task = asyncio.current_task()
                    assert task is not None
                    task.uncancel()
                    for _ in range(3):
                        await asyncio.sleep(0)
                    assert (client.is_idle, open_sockets(client)) == (True, [])
                else:
                    await client.close()
                    return place
        raise AssertionError("it has no end")

    assert asyncio.run(main()) >= 1


# --- Proxies ----------------------------------------------------------------------------------------------------------


def asked(make: Callable[[AsyncExitStack], Awaitable[tuple[HttpClient, HttpRequest]]]) -> bytes:
    """The body of the response to one request."""

    async def main() -> bytes:
        async with AsyncExitStack() as stack:
            client, request = await make(stack)
            try:
                return (await client.send(request)).body
            finally:
                await client.close()

    return asyncio.run(main())


@pytest.mark.parametrize("is_tls", [False, True], ids=["http proxy", "https proxy"])
@pytest.mark.parametrize("login", ["", "me:hunter2@"])
def test_the_credentials_for_a_proxy_are_sent_to_it_alone(is_tls: bool, login: str, tmp_path: Path) -> None:
    seen: list[str] = []

    async def handler(request: web.BaseRequest) -> web.Response:
        seen.append(str(request.headers))
        return web.Response(text="here")

    async def make(stack: AsyncExitStack) -> tuple[HttpClient, HttpRequest]:
        server_tls, tls = tls_contexts(tmp_path)
        tls = TlsOptions(_anywhere(tls.context), None)
        url = await stack.enter_async_context(http_server(handler, server_tls))
        expected = b"proxy-authorization: Basic bWU6aHVudGVyMg==\r\n"
        proxy = await stack.enter_async_context(tunnelling_proxy(server_tls if is_tls else None, expected))
        return HttpClient(proxy.replace("://", f"://{login}")), HttpRequest("GET", f"{url}/a", tls=tls)

    if login:
        assert asked(make) == b"here"
        assert not any("bWU6aHVudGVyMg==" in one for one in seen)
    else:
        with pytest.raises(RemoteUnavailable, match=r"^GET /a: the proxy does not lead there: it answers 407$"):
            asked(make)


def test_a_proxy_whose_certificate_is_not_trusted_is_refused(tmp_path: Path) -> None:
    async def make(stack: AsyncExitStack) -> tuple[HttpClient, HttpRequest]:
        proxy = await stack.enter_async_context(tunnelling_proxy(tls_contexts(tmp_path)[0]))
        return HttpClient(proxy), HttpRequest("GET", "https://a.test/a")

    with pytest.raises(RemoteRefused, match="shows a certificate that is not to be trusted"):
        asked(make)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\nmore", "that is not HTTP"),
        (b"SSH-2.0-OpenSSH\r\n\r\n", "that is not HTTP"),
        (b"x" * 100_000, "that is not HTTP"),
        (b"", "the connection ended before the answer did"),
        (b"HTTP/1.1 200 OK\r\n", "the connection ended before the answer did"),
        (b"HTTP/1.1 502 No\r\n\r\n", "the proxy does not lead there: it answers 502"),
    ],
)
def test_a_proxy_that_opens_no_tunnel_is_reported(answer: bytes, why: str) -> None:
    async def answers(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        writer.close()

    async def make(stack: AsyncExitStack) -> tuple[HttpClient, HttpRequest]:
        server = await stack.enter_async_context(await asyncio.start_server(answers, "127.0.0.1", 0))
        port = server.sockets[0].getsockname()[1]
        return HttpClient(f"http://127.0.0.1:{port}"), HttpRequest("GET", "https://a.test/a")

    with pytest.raises(RemoteUnavailable) as caught:
        asked(make)

    assert str(caught.value) == f"GET /a: {why}"


# --- Addresses --------------------------------------------------------------------------------------------------------


def test_a_server_is_reached_at_any_of_its_addresses() -> None:
    async def make(stack: AsyncExitStack) -> tuple[HttpClient, HttpRequest]:
        url = await stack.enter_async_context(http_server(echo))
        return HttpClient(), HttpRequest("PUT", url.replace("127.0.0.1", "several.test"), body=b"abc")

    assert asked(make) == b"got 3"


def test_a_server_is_reached_by_ipv6() -> None:
    async def make(stack: AsyncExitStack) -> tuple[HttpClient, HttpRequest]:
        runner = web.ServerRunner(web.Server(echo))
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        try:
            await web.TCPSite(runner, "::1", 0).start()
        except OSError:
            pytest.skip("this machine has no IPv6")
        return HttpClient(), HttpRequest("PUT", f"http://[::1]:{runner.addresses[0][1]}/", body=b"abc")

    assert asked(make) == b"got 3"
