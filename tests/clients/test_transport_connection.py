"""One connection: responses are the same however they arrive, and what is no response is refused."""

import asyncio
from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from setpoint.clients.foreign_errors import ConnectionEnded, NotHttp, TransportError
from setpoint.clients.transport.connection import Connection, Exchange
from tests.clients.wire import MemoryTransport, WireResponse, cut, wire_responses

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"


class Wire:
    """A connection in memory, and the ends of its exchanges."""

    def __init__(self) -> None:
        self.ends = 0
        self.transport = MemoryTransport()
        self.connection = Connection(self._ended)
        self.connection.connection_made(self.transport)

    def _ended(self, _connection: Connection) -> None:
        self.ends += 1

    def start(self, method: str = "GET", body: bytes | None = None) -> Exchange:
        return self.connection.start(method, b"head", body)

    def lose(self, error: Exception | None = None) -> None:
        if error is None:
            self.connection.eof_received()
        self.connection.connection_lost(error)


async def whole(exchange: Exchange) -> tuple[int, bytes]:
    """Status and body."""
    await exchange.begin()
    body = b""
    while piece := await exchange.read():
        body += piece
    return exchange.status, body


def received(*pieces: bytes, method: str = "GET", is_lost: bool = False) -> tuple[int, bytes]:
    """Status and body of a response that arrives in these pieces; then the connection ends, if `is_lost`."""

    async def main() -> tuple[int, bytes]:
        wire = Wire()
        exchange = wire.start(method)
        for piece in pieces:
            wire.connection.data_received(piece)
        if is_lost:
            wire.lose()
        return await asyncio.wait_for(whole(exchange), 10)

    return asyncio.run(main())


@pytest.mark.laws
@given(response=wire_responses(), places=st.lists(st.integers(0, 10_000), max_size=8), by_bytes=st.booleans())
def test_a_response_is_the_same_wherever_it_is_cut(response: WireResponse, places: list[int], by_bytes: bool) -> None:
    async def main() -> None:
        wire = Wire()
        exchange = wire.start()
        for piece in cut(response.wire, range(len(response.wire)) if by_bytes else places):
            wire.connection.data_received(piece)
        assert exchange.is_complete is not response.is_until_close
        if response.is_until_close:
            wire.lose()

        assert await whole(exchange) == (response.status, response.body)
        assert list(exchange.headers.fields) == [(name.lower(), value) for name, value in response.fields]
        assert wire.connection.is_usable is response.is_kept
        assert wire.ends == 1

    asyncio.run(main())


@pytest.mark.laws
@given(response=wire_responses(), place=st.integers(0, 10_000), is_reset=st.booleans())
def test_a_response_that_breaks_off_is_never_taken_for_a_whole_one(
    response: WireResponse, place: int, is_reset: bool
) -> None:
    """Except for a body that ends with the connection: it has no other end."""
    cut_at = place % len(response.wire)
    is_begun = cut_at >= len(response.head)

    async def main() -> None:
        wire = Wire()
        exchange = wire.start()
        wire.connection.data_received(response.wire[:cut_at] or b"H")
        wire.lose(ConnectionResetError() if is_reset else None)

        if response.is_until_close and is_begun and not is_reset:
            assert (await whole(exchange))[1] == response.body[: cut_at - len(response.head)]
        elif exchange.is_complete:
            assert response.framed == b""
            assert is_begun
        else:
            with pytest.raises(ConnectionEnded):
                await whole(exchange)
        assert not wire.connection.is_usable

    asyncio.run(main())


@pytest.mark.laws
@given(data=st.binary(max_size=200), places=st.lists(st.integers(0, 10_000), max_size=4), prefix=st.booleans())
@example(data=b"HTTP/1.1 101 Switching\r\nUpgrade: a\r\nConnection: upgrade\r\n\r\n", places=[], prefix=False)
@example(data=b"0\r\n" + b"A: b\r\n" * 200 + b"\r\n", places=[], prefix=True)
def test_whatever_arrives_a_connection_ends_or_waits(data: bytes, places: list[int], prefix: bool) -> None:
    async def main() -> None:
        wire = Wire()
        exchange = wire.start()
        for piece in cut((CHUNKED if prefix else b"") + data, places):
            wire.connection.data_received(piece)
        wire.lose()
        with suppress(TransportError):
            await asyncio.wait_for(whole(exchange), 10)
        assert not wire.connection.is_usable

    asyncio.run(main())


REFUSED = {
    "length and chunks": OK + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunks and length": OK + b"Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n0\r\n\r\n",
    "two lengths": OK + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\nab",
    "the same length twice": OK + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\nab",
    "a list of lengths": OK + b"Content-Length: 2, 2\r\n\r\nab",
    "a signed length": OK + b"Content-Length: +2\r\n\r\nab",
    "a negative length": OK + b"Content-Length: -2\r\n\r\nab",
    "a length in hexadecimal": OK + b"Content-Length: 0x2\r\n\r\nab",
    "an empty length": OK + b"Content-Length:\r\n\r\n",
    "a length beyond 64 bits": OK + b"Content-Length: 99999999999999999999\r\n\r\n",
    "a coding before chunks": OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "a coding after chunks": OK + b"Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n",
    "the identity coding": OK + b"Transfer-Encoding: identity\r\n\r\nab",
    "chunks twice": OK + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a chunk without a size": CHUNKED + b"\r\nab\r\n",
    "a chunk with a signed size": CHUNKED + b"+2\r\nab\r\n0\r\n\r\n",
    "a chunk with a prefix": CHUNKED + b"0x2\r\nab\r\n0\r\n\r\n",
    "a chunk beyond 64 bits": CHUNKED + b"fffffffffffffffff\r\nab",
    "a chunk longer than its size": CHUNKED + b"2\r\nabc\r\n0\r\n\r\n",
    "a chunk that ends with a line feed": CHUNKED + b"2\nab\n0\n\n",
    "space after the size of a chunk": CHUNKED + b"2 \r\nab\r\n0\r\n\r\n",
    "an endless extension of a chunk": CHUNKED + b"2;a=" + b"x" * 20_000,
    "too many trailers": CHUNKED + b"0\r\n" + b"A: b\r\n" * 101 + b"\r\n",
    "a long trailer": CHUNKED + b"0\r\nA: " + b"x" * 9000 + b"\r\n\r\n",
    "an endless trailer": CHUNKED + b"0\r\nA: " + b"x" * 20_000,
    "a zero in a value": OK + b"A: b\x00c\r\n\r\n",
    "an escape in a value": OK + b"A: \x1b[2J\r\n\r\n",
    "a folded value": OK + b"A: b\r\n c\r\n\r\n",
    "a lone carriage return": OK + b"A: b\rB: c\r\n\r\n",
    "lines that end with a line feed": b"HTTP/1.1 200 OK\nContent-Length: 0\n\n",
    "space before the colon": OK + b"Content-Length : 0\r\n\r\n",
    "a field without a name": OK + b": a\r\n\r\n",
    "a field without a colon": OK + b"abc\r\n\r\n",
    "a name with a space": OK + b"A B: c\r\n\r\n",
    "a name that is not ASCII": OK + "É: c\r\n\r\n".encode(),
    "a long value": OK + b"A: " + b"x" * 9000 + b"\r\n\r\n",
    "a long name": OK + b"A" * 9000 + b": x\r\n\r\n",
    "an endless value": OK + b"A: " + b"x" * 9000,
    "too many fields": OK + b"A: b\r\n" * 101 + b"\r\n",
    "a long status line": b"HTTP/1.1 200 " + b"O" * 9000 + b"\r\n\r\n",
    "an endless status line": b"HTTP/1.1 200 " + b"O" * 9000,
    "empty lines without an end": b"\r\n" * 9000,
    "no status": b"HTTP/1.1 \r\n\r\n",
    "a status of two digits": b"HTTP/1.1 20 OK\r\n\r\n",
    "a status of four digits": b"HTTP/1.1 2000 OK\r\n\r\n",
    "a status below 100": b"HTTP/1.1 099 OK\r\nContent-Length: 0\r\n\r\n",
    "an upgrade": b"HTTP/1.1 101 OK\r\nUpgrade: a\r\nConnection: upgrade\r\n\r\n",
    "an upgrade to nothing": b"HTTP/1.1 101 OK\r\n\r\n",
    "HTTP/2": b"HTTP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n",
    "HTTP/0.9": b"HTTP/0.9 200 OK\r\nContent-Length: 0\r\n\r\n",
    "another protocol": b"SSH-2.0-OpenSSH\r\n",
    "a request": b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    "interim responses without an end": b"HTTP/1.1 100 Continue\r\n\r\n" * 101,
    "a line of TLS": b"\x15\x03\x01\x00\x02\x02\x16",
}


@pytest.mark.parametrize("is_cut", [False, True])
@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_response_is_refused(case: str, is_cut: bool) -> None:
    """It is refused at once: the connection is still open."""
    data = REFUSED[case]

    with pytest.raises(NotHttp):
        received(*cut(data, range(0, len(data), 7 if is_cut else 10_000)))


UNFINISHED = {
    "nothing": b"",
    "half a status line": b"HTTP/1.1 2",
    "half a head": OK + b"A: b\r\n",
    "an interim response": b"HTTP/1.1 100 Continue\r\n\r\n",
    "a short body": OK + b"Content-Length: 3\r\n\r\nab",
    "half a chunk": CHUNKED + b"3\r\nab",
    "chunks without the last": CHUNKED + b"2\r\nab\r\n",
    "chunks without the end": CHUNKED + b"2\r\nab\r\n0\r\n",
    "half the trailers": CHUNKED + b"0\r\nA: b\r\n",
}


@pytest.mark.parametrize("case", UNFINISHED)
def test_a_response_without_its_end_is_none(case: str) -> None:
    with pytest.raises(ConnectionEnded):
        received(UNFINISHED[case], is_lost=True)


ACCEPTED = {
    "a body until the end": (OK + b"\r\nab", (200, b"ab")),
    "no content, whatever its length": (b"HTTP/1.1 204 No\r\nContent-Length: 5\r\n\r\n", (204, b"")),
    "not modified, whatever its length": (b"HTTP/1.1 304 No\r\nContent-Length: 5\r\n\r\n", (304, b"")),
    "HTTP/1.0": (b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nab", (200, b"ab")),
    "the longest value": (OK + b"A: " + b"x" * 8189 + b"\r\nContent-Length: 0\r\n\r\n", (200, b"")),
    "the most fields": (OK + b"A: b\r\n" * 99 + b"Content-Length: 0\r\n\r\n", (200, b"")),
    "an offer of an upgrade": (OK + b"Upgrade: h2c\r\nConnection: upgrade\r\nContent-Length: 1\r\n\r\na", (200, b"a")),
}


@pytest.mark.parametrize("case", ACCEPTED)
def test_what_is_a_response_is_read(case: str) -> None:
    data, expected = ACCEPTED[case]

    assert received(data, is_lost=True) == expected


def test_the_response_to_head_has_no_body_whatever_its_length() -> None:
    assert received(OK + b"Content-Length: 5\r\n\r\n", method="HEAD") == (200, b"")
    assert received(CHUNKED, method="HEAD") == (200, b"")


@pytest.mark.parametrize("extra", [b"x", b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", b"H", b"\x00"])
@pytest.mark.parametrize("is_apart", [False, True])
def test_bytes_after_a_response_end_the_connection_and_not_the_response(extra: bytes, is_apart: bool) -> None:
    response = OK + b"Content-Length: 2\r\n\r\nab"

    async def main() -> tuple[tuple[int, bytes], bool]:
        wire = Wire()
        exchange = wire.start()
        for piece in (response, extra) if is_apart else (response + extra,):
            wire.connection.data_received(piece)
        return await whole(exchange), wire.connection.is_usable

    assert asyncio.run(main()) == ((200, b"ab"), False)


def test_the_body_of_a_response_to_head_ends_the_connection() -> None:
    async def main() -> tuple[tuple[int, bytes], bool]:
        wire = Wire()
        exchange = wire.start("HEAD")
        wire.connection.data_received(OK + b"Content-Length: 2\r\n\r\nab")
        return await whole(exchange), wire.connection.is_usable

    assert asyncio.run(main()) == ((200, b""), False)


def test_a_response_before_the_request_is_none() -> None:
    async def main() -> None:
        wire = Wire()
        wire.connection.data_received(OK + b"Content-Length: 0\r\n\r\n")
        assert wire.transport.is_aborted
        wire.start()

    with pytest.raises(NotHttp):
        asyncio.run(main())


def test_reading_pauses_while_a_body_is_not_read() -> None:
    async def main() -> list[bool]:
        wire = Wire()
        exchange = wire.start()
        wire.connection.data_received(OK + b"Content-Length: 200000\r\n\r\n" + b"x" * 65_536)
        seen = [wire.transport.is_paused]
        wire.connection.data_received(b"x")
        seen.append(wire.transport.is_paused)
        await exchange.read()
        seen.append(wire.transport.is_paused)
        return seen

    assert asyncio.run(main()) == [False, True, False]


def test_a_large_body_is_written_as_the_transport_takes_it() -> None:
    body = bytes(range(256)) * 4096

    async def main() -> tuple[int, bytes]:
        wire = Wire()
        wire.connection.pause_writing()
        wire.start("PUT", body)
        await asyncio.sleep(0)
        while_paused = len(wire.transport.written)
        wire.connection.resume_writing()
        while len(wire.transport.written) < len(body) + 4:
            await asyncio.sleep(0)
        return while_paused, bytes(wire.transport.written)

    assert asyncio.run(main()) == (4, b"head" + body)


@pytest.mark.parametrize("is_buffered", [False, True])
def test_a_response_before_the_end_of_the_request_is_read_and_the_connection_ends(is_buffered: bool) -> None:
    async def main() -> tuple[tuple[int, bytes], bool]:
        wire = Wire()
        if not is_buffered:
            wire.connection.pause_writing()
        wire.transport.unsent = 10 if is_buffered else 0
        exchange = wire.start("PUT", b"x" * 2**20 if not is_buffered else b"x")
        wire.connection.data_received(b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno")
        return await whole(exchange), wire.connection.is_usable

    assert asyncio.run(main()) == ((413, b"no"), False)


def test_an_exchange_that_is_closed_does_not_touch_the_next_one() -> None:
    async def main() -> bool:
        wire = Wire()
        first = wire.start()
        wire.connection.data_received(OK + b"Content-Length: 0\r\n\r\n")
        wire.start()
        first.close()
        return wire.transport.is_aborted

    assert asyncio.run(main()) is False
