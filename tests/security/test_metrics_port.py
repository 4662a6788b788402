"""The port of health and metrics is open to every pod: slow, many, large and broken requests cost little."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest
from aiohttp.http_exceptions import BadHttpMessage

from setpoint.runtime.limited_server import RequestLogFilter, ServerLimits
from setpoint.runtime.manager import Phase
from setpoint.runtime.metrics.telemetry import Telemetry
from setpoint.runtime.server import HttpServer

GET = b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"


@dataclass
class Healthy:
    """The health of a process that is well."""

    phase: Phase = Phase.RUNNING
    is_ready: bool = True
    failed_tasks: tuple[str, ...] = ()
    unserved_kinds: tuple[str, ...] = ()
    outdated_kinds: tuple[str, ...] = ()


class LargePage:
    """Metrics that no socket buffer holds."""

    async def page(self, _accept: str) -> tuple[bytes, str]:
        return b"x" * (32 * 2**20), "text/plain"


class Client:
    """A connection to the server."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def status(self, request: bytes = GET) -> int:
        """The status of the response; 0 when the connection is closed instead."""
        try:
            self.writer.write(request)
            await self.writer.drain()
            line = await self.reader.readline()
            while (await self.reader.readline()).strip():
                pass
        except ConnectionError:
            return 0
        return int(line.split()[1]) if line else 0

    async def until_closed(self) -> bytes:
        """What else arrives before the server closes the connection."""
        try:
            return await self.reader.read()
        except ConnectionError:
            return b""


Connect = Callable[[], Awaitable[Client]]


@asynccontextmanager
async def serving(limits: ServerLimits | None = None, telemetry: object = None) -> AsyncIterator[Connect]:
    server = HttpServer(Healthy(), telemetry or Telemetry(), limits=limits)  # type: ignore[arg-type] # any page
    await server.start("127.0.0.1", 0)
    clients: list[Client] = []

    async def connect() -> Client:
        address = server.address.removeprefix("http://")
        host, _, port = address.rpartition(":")
        clients.append(Client(*await asyncio.open_connection(host, int(port))))
        return clients[-1]

    try:
        yield connect
    finally:
        for client in clients:
            client.writer.transport.abort()
        await server.close()


@pytest.mark.parametrize("sent", [b"", b"GET /healthz HTTP/1.1\r\nHost: a\r\n", GET + b"GET /hea"])
def test_a_connection_without_a_complete_request_is_closed(sent: bytes) -> None:
    async def main() -> None:
        async with serving(ServerLimits(idle_seconds=0.05)) as connect:
            client = await connect()
            client.writer.write(sent)
            await client.until_closed()

    asyncio.run(main())


def test_a_header_that_trickles_does_not_keep_a_connection_open() -> None:
    async def main() -> None:
        async with serving(ServerLimits(idle_seconds=0.1)) as connect:
            client = await connect()
            closed = asyncio.ensure_future(client.until_closed())
            client.writer.write(b"GET /healthz HTTP/1.1\r\nA: ")
            while not closed.done():
                client.writer.write(b"b")
                await asyncio.wait([closed], timeout=0.01)

    asyncio.run(main())


def test_a_client_that_does_not_take_its_page_is_cut_off() -> None:
    async def main() -> int:
        async with serving(ServerLimits(page_seconds=0.05), LargePage()) as connect:
            client = await connect()
            client.writer.write(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n")
            # So much fits into the buffers of the sockets; then it reads no more until the server has given up.
            await client.reader.readexactly(1000)
            client.writer.transport.pause_reading()  # type: ignore[attr-defined] # it is a socket
            await asyncio.sleep(0.3)
            client.writer.transport.resume_reading()  # type: ignore[attr-defined] # it is a socket
            return len(await client.until_closed())

    assert asyncio.run(main()) < 32 * 2**20


def test_idle_connections_do_not_keep_a_probe_out() -> None:
    async def main() -> int:
        async with serving(ServerLimits(connections=4)) as connect:
            idle = [await connect() for _ in range(8)]
            for one in idle[4:]:
                # Once it was served it is known to the server.
                assert await one.status() == 200
            probe = await (await connect()).status()
            for one in idle[:5]:
                await one.until_closed()
            return probe

    assert asyncio.run(main()) == 200


@pytest.mark.parametrize(
    "request_",
    [
        b"GET /healthz HTTP/1.1\r\nHost: a\r\nA: " + b"x" * 5000 + b"\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: a\r\n" + b"A: b\r\n" * 100 + b"\r\n",
        b"GET /" + b"x" * 5000 + b" HTTP/1.1\r\nHost: a\r\n\r\n",
        b"\x16\x03\x01\x00\xff\xff",
        b"not HTTP\r\n\r\n",
    ],
    ids=["long header", "many headers", "long path", "TLS", "no HTTP"],
)
def test_a_broken_request_is_refused_and_others_are_served(request_: bytes) -> None:
    async def main() -> tuple[int, int]:
        async with serving() as connect:
            broken = await (await connect()).status(request_)
            return broken, await (await connect()).status()

    assert asyncio.run(main()) == (400, 200)


def test_broken_requests_are_logged_rarely_and_without_what_was_sent(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with serving(ServerLimits(logs_per_minute=3)) as connect:
            for _ in range(30):
                # The second request of a connection is logged by the library.
                client = await connect()
                assert await client.status(GET) == 200
                await client.reader.readexactly(3)
                assert await client.status(b"GET / HTTP/1.1\r\nA\x1b[31m: swordfish\r\n\r\n") == 400

    asyncio.run(main())

    found = [one for one in caplog.records if one.name.startswith("setpoint.runtime.limited_server.requests")]
    assert [one.getMessage() for one in found] == ["request refused: it is not HTTP, or too large"] * 3
    assert "swordfish" not in caplog.text
    assert not any(one.name.startswith("aiohttp") for one in caplog.records)


def test_the_log_says_how_much_was_left_out() -> None:
    now = [0.0]
    limit = RequestLogFilter(2, lambda: now[0])

    def record() -> logging.LogRecord:
        error = BadHttpMessage("secret")
        return logging.makeLogRecord({"msg": "error of %s", "args": ("a",), "exc_info": (type(error), error, None)})

    gone = ConnectionResetError("secret")
    assert not limit.filter(logging.makeLogRecord({"msg": "error", "exc_info": (type(gone), gone, None)}))
    passed = [limit.filter(record()) for _ in range(5)]
    now[0] = 60.0
    later = record()

    assert passed == [True, True, False, False, False]
    assert limit.filter(later)
    assert (later.getMessage(), later.exc_info, vars(later)["left_out"]) == (
        "request refused: it is not HTTP, or too large",
        None,
        3,
    )
