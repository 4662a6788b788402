"""What a server may cost: bodies after decompression, what they hold, error bodies, headers and redirects."""

import asyncio
import gzip
import zlib
from collections.abc import Awaitable, Callable
from itertools import repeat
from typing import TypeVar

import msgspec
import pytest
from aiohttp import web

from setpoint.clients.google.calls import GoogleCall, GoogleService
from setpoint.clients.google.client import GoogleAuth, GoogleClient, GoogleSettings
from setpoint.clients.http import HttpClient, HttpRequest, HttpResponse
from setpoint.clients.http_transport import MIB, HttpLimits, limits_from
from setpoint.clients.response_bodies import decode_response, decode_tree
from setpoint.errors import RemoteUnavailable, ResponseTooLarge, UserError
from tests.clients.loopback_servers import Conversation, Handler, http_server, raw_server

T = TypeVar("T")
SMALL = HttpLimits(body=MIB)
BOMB = b"[" + b"0," * (32 * MIB)


def deflated(body: bytes) -> bytes:
    """Deflate without the header that belongs to it, as some servers send it."""
    compressor = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return compressor.compress(body) + compressor.flush()


async def with_client(url: str, use: Callable[[HttpClient, str], Awaitable[T]], limits: HttpLimits = SMALL) -> T:
    client = HttpClient(limits=limits)
    try:
        return await use(client, url)
    finally:
        await client.close()


async def get(client: HttpClient, url: str) -> HttpResponse:
    return await client.send(HttpRequest("GET", url, seconds=20))


def answered(handler: Handler) -> HttpResponse:
    """The response to one request."""

    async def main() -> HttpResponse:
        async with http_server(handler) as url:
            return await with_client(url, get)

    return asyncio.run(main())


def talked(conversation: Conversation) -> HttpResponse:
    """The response to one request, by a server that sends any bytes."""

    async def main() -> HttpResponse:
        async with raw_server(conversation) as place:
            return await with_client(f"http://{place}/", get)

    return asyncio.run(main())


def sends_bytes(*parts: bytes) -> Conversation:
    async def conversation(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.writelines(parts)
        await writer.drain()

    return conversation


def endless(head: str, part: bytes) -> Conversation:
    """Sends `part` until the client hangs up."""

    async def conversation(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(head.encode())
        try:
            for one in repeat(part):
                writer.write(one)
                await writer.drain()
        except ConnectionError:
            pass

    return conversation


# --- Bodies -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [200, 206])
def test_a_body_beyond_the_limit_is_refused_and_named(status: int) -> None:
    async def handler(_request: web.BaseRequest) -> web.Response:
        return web.Response(status=status, body=b"x" * (MIB + 1))

    with pytest.raises(
        ResponseTooLarge, match=r"^GET .*: the answer is larger than 1 MiB: .* SETPOINT_MAX_RESPONSE_MIB"
    ):
        answered(handler)


def test_a_body_of_the_limit_arrives() -> None:
    async def handler(_request: web.BaseRequest) -> web.Response:
        return web.Response(body=b"x" * MIB)

    assert answered(handler).body == b"x" * MIB


@pytest.mark.parametrize(
    "conversation",
    [
        endless("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"10000\r\n" + b"x" * 65536 + b"\r\n"),
        endless("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n" * 9999),
        endless("HTTP/1.1 200 OK\r\n\r\n", b"x" * 65536),
        endless("HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n", b"x" * 65536),
    ],
    ids=["chunked", "one byte a chunk", "until the end", "a length"],
)
def test_a_body_without_an_end_is_cut_at_the_limit(conversation: Conversation) -> None:
    with pytest.raises(ResponseTooLarge):
        talked(conversation)


@pytest.mark.parametrize(
    ("encoding", "compress"),
    [
        ("gzip", gzip.compress),
        ("GZIP", gzip.compress),
        ("x-gzip", gzip.compress),
        ("deflate", zlib.compress),
        ("deflate", deflated),
    ],
    ids=["gzip", "GZIP", "x-gzip", "deflate", "raw deflate"],
)
def test_a_bomb_is_stopped_while_it_is_decompressed(encoding: str, compress: Callable[[bytes], bytes]) -> None:
    body = compress(BOMB)
    assert len(body) < MIB // 4
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: {encoding}\r\nContent-Length: {len(body)}\r\n\r\n"

    with pytest.raises(ResponseTooLarge):
        talked(sends_bytes(head.encode(), body))


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "identity"])
def test_a_compressed_body_arrives(encoding: str) -> None:
    plain = b'{"a":1}' * 40_000
    body = {"gzip": gzip.compress(plain, mtime=0), "deflate": zlib.compress(plain)}.get(encoding, plain)
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: {encoding}\r\nContent-Length: {len(body)}\r\n\r\n"

    assert talked(sends_bytes(head.encode(), body)).body == plain


@pytest.mark.parametrize(
    ("encodings", "body", "why"),
    [
        (["gzip, gzip"], gzip.compress(gzip.compress(b"{}", mtime=0), mtime=0), "in a way that was not asked for"),
        (["gzip", "gzip"], gzip.compress(gzip.compress(b"{}", mtime=0), mtime=0), "in a way that was not asked for"),
        (["br"], b"\x0b\x02\x80{}\x03", "in a way that was not asked for"),
        (["zstd"], b"\x28\xb5\x2f\xfd", "in a way that was not asked for"),
        (["gzip"], b"{}", "cannot be decompressed"),
        (["deflate"], b"\x78\x9c\xff\xff", "cannot be decompressed"),
        (["gzip"], gzip.compress(b"{}" * 99, mtime=0)[:-9], "breaks off"),
        (["gzip"], gzip.compress(b"{}", mtime=0) * 2, "goes on after the end"),
    ],
)
def test_an_encoding_that_was_not_asked_for_or_is_damaged_is_refused(
    encodings: list[str], body: bytes, why: str
) -> None:
    named = "".join(f"Content-Encoding: {one}\r\n" for one in encodings)

    with pytest.raises(RemoteUnavailable, match=f"the answer is not what it should be: .*{why}"):
        talked(sends_bytes(f"HTTP/1.1 200 OK\r\n{named}Content-Length: {len(body)}\r\n\r\n".encode(), body))


def test_the_body_of_an_error_is_cut_and_its_status_counts() -> None:
    async def handler(_request: web.BaseRequest) -> web.Response:
        return web.Response(status=404, body=b"x" * (64 * MIB))

    async def main() -> HttpResponse:
        async with http_server(handler) as url:
            return await with_client(url, get, HttpLimits(body=16 * MIB))

    found = asyncio.run(main())

    assert found.status == 404
    assert len(found.body) <= MIB


def test_a_connection_with_the_rest_of_a_body_is_not_used_again() -> None:
    async def handler(request: web.BaseRequest) -> web.Response:
        return (
            web.Response(status=500, body=b"x" * (8 * MIB)) if request.path == "/large" else web.Response(text="next")
        )

    async def twice(client: HttpClient, url: str) -> bytes:
        await get(client, f"{url}/large")
        return (await get(client, url)).body

    async def main() -> bytes:
        async with http_server(handler) as url:
            return await with_client(url, twice)

    assert asyncio.run(main()) == b"next"


def test_the_limit_is_a_setting() -> None:
    assert limits_from({}).body == 16 * MIB
    assert limits_from({"SETPOINT_MAX_RESPONSE_MIB": "64"}).body == 64 * MIB


@pytest.mark.parametrize("text", ["0", "-1", "16MB", "1e3", "٣", "5000", "9" * 5000])
def test_a_limit_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(UserError, match=r"^SETPOINT_MAX_RESPONSE_MIB is .*: write how many MiB a response may have"):
        limits_from({"SETPOINT_MAX_RESPONSE_MIB": text})


# --- What a body holds ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"[" * 50_000, "is nested deeper than 254 levels"),
        (b"[" * 10_000_000, "has more than 100,000 values"),
        (b'{"a":' * 300 + b"1" + b"}" * 300, "is nested deeper than 254 levels"),
        (b"[" + b"[]," * 1_000_000 + b"0]", "has more than 100,000 values"),
        (b'"\xff"', "invalid start byte"),
        (b'{"a":"\\ud800"}', "not what it should be"),
    ],
    ids=["brackets", "many brackets", "objects", "values", "not UTF-8", "half a character"],
)
def test_a_body_that_would_be_too_large_or_deep_when_decoded_is_one_of_our_errors(body: bytes, why: str) -> None:
    with pytest.raises(RemoteUnavailable, match=why):
        decode_tree(msgspec.json.Decoder(), body, "GET /")


def test_a_body_with_a_type_is_one_of_our_errors_when_it_is_too_large_or_deep() -> None:
    decoder = msgspec.json.Decoder(list[msgspec.Raw])

    with pytest.raises(RemoteUnavailable, match="not what it should be: maximum recursion depth exceeded"):
        decode_response(decoder, b"[" * 50_000, "GET /")
    with pytest.raises(ResponseTooLarge, match="has more than 100,000 values"):
        decode_response(decoder, b"[" + b"[]," * 1_000_000 + b"0]", "GET /")


@pytest.mark.parametrize("status", [301, 404, 500])
def test_credentials_that_a_server_repeats_are_hidden(status: int) -> None:
    async def handler(request: web.BaseRequest) -> web.Response:
        return web.Response(status=status, text=f"you sent {request.headers['Authorization']}")

    async def main() -> HttpResponse:
        async with http_server(handler) as url:
            request = HttpRequest("GET", url, {"Authorization": "Bearer swordfish"})
            return await with_client(url, lambda client, _: client.send(request))

    assert asyncio.run(main()).body == b"you sent Bearer (hidden)"


# --- Headers and redirects --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.1 200 OK\r\nA: " + b"x" * 100_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"A: x\r\n" * 1_000 + b"\r\n",
        b"HTTP/1.1 200 " + b"O" * 100_000 + b"\r\n\r\n",
        b"A" * 1_000_000,
    ],
    ids=["long header", "many headers", "long status line", "no line at all"],
)
def test_too_large_headers_are_refused(head: bytes) -> None:
    with pytest.raises(RemoteUnavailable):
        talked(sends_bytes(head))


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_carries_no_credentials_anywhere(status: int) -> None:
    seen: list[str] = []

    async def elsewhere(request: web.BaseRequest) -> web.Response:
        seen.append(str(request.headers))
        return web.Response()

    async def main() -> HttpResponse:
        async with http_server(elsewhere) as other:

            async def handler(_request: web.BaseRequest) -> web.Response:
                return web.Response(status=status, headers={"Location": f"{other}/stolen"})

            async with http_server(handler) as url:
                request = HttpRequest("GET", url, {"Authorization": "Bearer secret"})
                return await with_client(url, lambda client, _: client.send(request))

    assert asyncio.run(main()).status == status
    assert seen == []


# --- Every client -----------------------------------------------------------------------------------------------------


def test_the_client_of_google_has_the_limit() -> None:
    async def handler(_request: web.BaseRequest) -> web.Response:
        return web.Response(body=gzip.compress(BOMB, mtime=0), headers={"Content-Encoding": "gzip"})

    async def main() -> None:
        async with http_server(handler) as url:
            google = GoogleClient(HttpClient(limits=SMALL), GoogleSettings(url, url, GoogleAuth.ANONYMOUS))
            try:
                await google.get(GoogleCall(GoogleService.STORAGE, ("b", "bucket")))
            finally:
                await google.close()

    with pytest.raises(ResponseTooLarge):
        asyncio.run(main())
