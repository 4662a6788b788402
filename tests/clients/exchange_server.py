"""A server for the laws of the pool: it does what the path of a request says, and notices misused connections."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

# What the server does with a request. After all but the first two, the connection must not be used again.
KEPT: Final = ("ok", "chunked")
SPOILED: Final = ("close", "cut", "extra", "broken", "large-error", "gone", "until-close", "early")
BEHAVIOURS: Final = (*KEPT, *SPOILED)
OK: Final = b"HTTP/1.1 200 OK\r\n"


@dataclass
class ExchangeServer:
    """What it saw: requests by path, connections, and requests that came too early or on a connection that is over."""

    url: str = ""
    requests: Counter[str] = field(default_factory=Counter)
    connections: int = 0
    open_now: int = 0
    # Requests without a byte of their response. Connections would not do: that a client has closed one is noticed late.
    unanswered: int = 0
    most_unanswered: int = 0
    violations: list[str] = field(default_factory=list)
    # Set for requests with the behaviour "held" to be answered.
    may_answer: asyncio.Event = field(default_factory=asyncio.Event)
    # The order in which requests came.
    order: list[str] = field(default_factory=list)


class _ServerConnection(asyncio.Protocol):
    def __init__(self, server: ExchangeServer) -> None:
        self._server = server
        self._buffer = b""
        self._count = self._left = 0
        self._is_answering = self._is_spoiled = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._server.connections += 1
        self._server.open_now += 1

    def connection_lost(self, error: Exception | None) -> None:
        self._server.open_now -= 1

    def data_received(self, data: bytes) -> None:
        # The rest of a body that was answered before its end.
        taken = min(self._left, len(data))
        self._left -= taken
        data = data[taken:]
        if not data:
            return
        if self._is_answering or (self._is_spoiled and not self._buffer):
            self._server.violations.append(f"{data[:40]!r} on a connection that is in use, or over")
        self._buffer += data
        head, end, rest = self._buffer.partition(b"\r\n\r\n")
        if not end:
            return
        path = head.split(b" ")[1].decode()
        length = next((int(line[15:]) for line in head.split(b"\r\n") if line.startswith(b"content-length:")), 0)
        behaviour = path.split("/")[1]
        if len(rest) < length and behaviour != "early":
            return
        self._buffer = b""
        self._left = max(length - len(rest), 0)
        self._count += 1
        self._server.requests[path] += 1
        self._server.order.append(path)
        self._is_answering = True
        self._server.unanswered += 1
        self._server.most_unanswered = max(self._server.most_unanswered, self._server.unanswered)
        self._answering = asyncio.ensure_future(self._answer(behaviour, path.encode()))

    async def _answer(self, behaviour: str, body: bytes) -> None:
        if behaviour == "held":
            await self._server.may_answer.wait()
        self._is_spoiled = behaviour in SPOILED or (behaviour == "once" and self._count > 1)
        pieces, is_closed = _response(behaviour, body, is_reused=self._count > 1)
        self._server.unanswered -= 1
        for piece in pieces[:-1]:
            self._transport.write(piece)
            await asyncio.sleep(0)
        self._is_answering = False
        self._transport.write(pieces[-1])
        if is_closed:
            self._transport.close()


def _response(behaviour: str, body: bytes, *, is_reused: bool) -> tuple[list[bytes], bool]:
    """The pieces of a response, and whether the connection is closed after it."""
    length = b"Content-Length: %d\r\n" % len(body)
    plain = [OK + length, b"\r\n" + body[:3], body[3:]]
    others = {
        "chunked": [OK, b"Transfer-Encoding: chunked\r\n\r\n%x\r\n" % len(body), body, b"\r\n0\r\n\r\n"],
        "close": [OK + b"Connection: close\r\n" + length + b"\r\n", body],
        "until-close": [OK + b"\r\n" + body[:3], body[3:]],
        "cut": [OK + b"Content-Length: %d\r\n\r\n" % (len(body) + 9), body],
        "extra": [*plain[:2], body[3:] + b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nstolen"],
        "broken": [OK + b"Content-Length: x\r\n\r\n", body],
        "large-error": [b"HTTP/1.1 500 No\r\nContent-Length: 9000000\r\n\r\n", b"x" * 2_000_000],
        "early": [b"HTTP/1.1 413 No\r\nContent-Length: 2\r\n\r\n", b"no"],
    }
    is_gone = behaviour == "gone" or (behaviour == "once" and is_reused)
    pieces = [b""] if is_gone else others.get(behaviour, plain)
    return pieces, is_gone or behaviour in ("until-close", "cut")


@asynccontextmanager
async def exchange_server() -> AsyncIterator[ExchangeServer]:
    """A running server; `/ok/…` is answered with the path itself."""
    seen = ExchangeServer()
    running = await asyncio.get_running_loop().create_server(lambda: _ServerConnection(seen), "127.0.0.1", 0)
    seen.url = f"http://127.0.0.1:{running.sockets[0].getsockname()[1]}"
    try:
        yield seen
    finally:
        running.close()
