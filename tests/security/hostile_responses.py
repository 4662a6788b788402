"""Responses that no honest server sends, each described by a few small values."""

import gzip
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

from hypothesis import strategies as st

MIB: Final = 2**20
STATUS_LINES: Final = (
    "HTTP/1.1 200 OK",
    "HTTP/1.1 201 Created",
    "HTTP/1.1 204 No Content",
    "HTTP/1.1 301 Moved",
    "HTTP/1.1 307 Moved",
    "HTTP/1.1 304 Not Modified",
    "HTTP/1.1 400 Bad",
    "HTTP/1.1 401 Who",
    "HTTP/1.1 403 No",
    "HTTP/1.1 404 Not Found",
    "HTTP/1.1 409 Conflict",
    "HTTP/1.1 410 Gone",
    "HTTP/1.1 422 Invalid",
    "HTTP/1.1 429 Slow Down",
    "HTTP/1.1 500 Oh",
    "HTTP/1.1 503 Later",
    "HTTP/1.1 999 What",
    "HTTP/1.1 000 Zero",
    "HTTP/1.1 -12 Minus",
    "HTTP/1.1 99999 Many",
    "HTTP/1.1 101 Switching",
    "HTTP/1.0 200 OK",
    "HTTP/0.9 200 OK",
    "HTTP/2.0 200 OK",
    "HTTP/1.1 200 " + "O" * 20_000,
    "HTTP/1.1 200 {token}",
    "http/1.1 200 OK",
    "HTTP/1.1  200",
    "SSH-2.0-OpenSSH {token}",
    "",
)
HEADERS: Final = (
    "Content-Type: application/json",
    "Content-Type: application/json;as=APIGroupDiscoveryList;g=apidiscovery.k8s.io",
    "Content-Type: text/html",
    "Content-Type: text/plain",
    "Content-Type: application/json\udcff\udcfe",
    "Content-Type: ",
    "Retry-After: 1",
    "Retry-After: -5",
    "Retry-After: " + "9" * 4000,
    "Retry-After: ٣",
    "Retry-After: 1e999",
    "Retry-After: Mon, 01 Jan 0001 00:00:00 -9999",
    "Retry-After: Mon, 31 Dec 9999 23:59:59 -2359",
    "Retry-After: Mon, 99 Foo 99999999999999999999 99:99:99 GMT",
    "Retry-After: Fri, 31 Dec 1999 23:59:59 +99999999999999",
    "Location: http://127.0.0.1:1/{token}",
    "Location: //evil/{token}",
    "Set-Cookie: a={token}; Domain=.example.com",
    "Set-Cookie: " + "a" * 4000,
    "X-Echo: {token}",
    "X-Long: " + "x" * 7000,
    "X-Longer: " + "x" * 9000,
    "X-Folded: a\r\n b",
    "X-Null: a\x00b",
    "X-Escape: \x1b[31m",
    "No colon here",
    ": no name",
    "Content-Length: 5",
    "Content-Length: -1",
    "Content-Length: 99999999999999999999999",
    "Transfer-Encoding: gzip, chunked",
    "Transfer-Encoding: identity",
    "Upgrade: websocket\r\nConnection: upgrade",
    "Trailer: x",
)
ENCODINGS: Final = (
    "",
    "",
    "",
    "identity",
    "gzip",
    "x-gzip",
    "deflate",
    "br",
    "zstd",
    "gzip, gzip",
    "gzip, deflate",
    "GZip",
)
FRAMINGS: Final = ("length", "chunked", "close", "short", "long", "broken chunks", "huge chunk", "trailers", "none")
VERBS: Final = (
    "get",
    "list",
    "delete",
    "apply",
    "discover",
    "preferred",
    "watch",
    "google-get",
    "google-patch",
    "google-list",
    "token",
    "record",
)
_FRAGMENTS: Final[Mapping[str, bytes]] = {
    "empty": b"",
    "object": b'{"kind":"Pod","metadata":{"name":"a","resourceVersion":"1"}}',
    "status": b'{"kind":"Status","code":404,"reason":"NotFound","message":"{token}","details":{"name":"a"}}',
    "odd status": b'{"kind":"Status","code":"x","message":5,"details":{"retryAfterSeconds":"soon"}}',
    "huge numbers": b'{"kind":"Status","code":%d,"details":{"retryAfterSeconds":%d}}' % (10**30, 10**400),
    "many causes": b'{"kind":"Status","code":422,"details":{"causes":[' + b'{"field":"a"},' * 50_000 + b"{}]}}",
    "google error": b'{"error":{"message":"{token}","errors":[{"reason":"rateLimitExceeded"}]}}',
    "escapes": b'{"kind":"Status","message":"\\u001b[31m\\u0000\\u202e","reason":"\\ud83d\\ude00"}',
    "half a character": b'{"message":"\\ud800"}',
    "infinity": b'{"a":1e9999,"b":-1e9999,"c":NaN}',
    "digits": b'{"a":' + b"9" * 5_000 + b"}",
    "twice": b'{"a":1,"a":2,"metadata":{},"metadata":[]}',
    "not UTF-8": b'{"metadata":{"name":"\xff\xfe"}}',
    "zeros": b"\x00" * 1000,
    "HTML": b"<html>{token}</html>",
    "list": b'{"metadata":{"continue":"again","resourceVersion":"1"},"items":[{},{}]}',
    "google list": b'{"items":[{"name":"a"}],"nextPageToken":"again"}',
    "null items": b'{"metadata":null,"items":null}',
    "kinds": b'{"resources":[' + b'{"name":"pods","kind":"Pod","verbs":["get"]},' * 20_000 + b"{}]}",
    "groups": b'{"items":[{"metadata":{"name":"a"},"versions":[{"version":"v1","resources":[]}]}]}',
    "versions": b'{"versions":[' + b'"v1",' * 100 + b'"v1"]}',
    "event": b'{"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"2"}}}\n',
    "events": b'{"type":"MODIFIED","object":{"metadata":{"name":"a","resourceVersion":"2"}}}\n' * 2_000,
    "gone": b'{"type":"ERROR","object":{"kind":"Status","code":410,"message":"{token}"}}\n',
    "odd event": b'{"type":"NEW","object":[]}\n{"type":"ADDED","object":5}\n',
    "deep event": b'{"type":"ADDED","object":' + b"[" * 30_000 + b"]" * 30_000 + b"}\n",
    "lines": b"\n" * 10_000,
    "deep lists": b"[" * 100_000 + b"]" * 100_000,
    "deep objects": b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
    "300 levels": b'{"a":' * 300 + b"1" + b"}" * 300,
    "open brackets": b"[" * MIB,
    "quotes": b'"' + b'\\"' * MIB,
    "values": b'{"a":[' + b"[]," * MIB + b"0]}",
    "pairs": b'{"items":[' + b'{"a":1},' * MIB + b"{}]}",
    "numbers": b'{"items":[' + b"1," * (2 * MIB) + b"1]}",
    "large text": b'{"a":"' + b"x" * (3 * MIB) + b'"}',
    "larger text": b'{"a":"' + b"x" * (20 * MIB) + b'"}',
}
BODIES: Final = tuple(_FRAGMENTS)
_LARGE: Final = frozenset(name for name, body in _FRAGMENTS.items() if len(body) > MIB // 2)


@dataclass(frozen=True, slots=True)
class HostileResponse:
    """What a server sends on one connection. A body is repeated without an end, or the server stalls after it."""

    verb: str
    status_line: str
    headers: tuple[str, ...]
    encoding: str
    body: str
    framing: str
    informational: int = 0
    extra: int = 0
    is_endless: bool = False
    stalls: bool = False
    cut: int | None = None

    def parts(self, token: str) -> Iterator[bytes]:
        """The bytes, piece by piece."""
        yield b"HTTP/1.1 100 Continue\r\n\r\n" * self.informational
        body = _encoded(self.body, self.encoding).replace(b"{token}", token.encode())
        lines = [self.status_line, *self.headers]
        if self.encoding:
            lines.append(f"Content-Encoding: {self.encoding}")
        head = "\r\n".join([*lines, *_framing_headers(self.framing, len(body))]) + "\r\n\r\n"
        yield head.replace("{token}", token).encode(errors="surrogateescape")
        framed = _framed(self.framing, body)
        yield framed if self.cut is None else framed[: self.cut % (len(framed) + 1)]
        yield b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n" * self.extra
        while self.is_endless:
            yield framed or b"x"


def _framing_headers(framing: str, length: int) -> list[str]:
    match framing:
        case "length":
            return [f"Content-Length: {length}"]
        case "short":
            return [f"Content-Length: {length // 2}"]
        case "long":
            return [f"Content-Length: {length + 100}"]
        case "close" | "none":
            return ["Connection: close"] if framing == "close" else []
        case _:
            return ["Transfer-Encoding: chunked"]


def _framed(framing: str, body: bytes) -> bytes:
    match framing:
        case "chunked":
            return _chunked(body) + b"0\r\n\r\n"
        case "trailers":
            return _chunked(body) + b"0\r\n" + b"X-Trailer: a\r\n" * 1_000 + b"\r\n"
        case "broken chunks":
            return b"5;ext=" + b"x" * 100 + b"\r\nabc\r\nzz\r\n" + body
        case "huge chunk":
            return b"fffffffffffffff0\r\n" + body
        case _:
            return body


def _chunked(body: bytes) -> bytes:
    return b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in _slices(body))


def _slices(body: bytes) -> Iterator[bytes]:
    for start in range(0, len(body), 50_000):
        yield body[start : start + 50_000]


@cache
def _encoded(name: str, encoding: str) -> bytes:
    body = _FRAGMENTS[name]
    for one in encoding.lower().split(", "):
        match one:
            case "gzip" | "x-gzip":
                body = gzip.compress(body, 1)
            case "deflate":
                body = zlib.compress(body, 1)
            case _:
                pass
    return body


def responses() -> st.SearchStrategy[HostileResponse]:
    """Any response. Large bodies and those without an end are rarer: each takes as long as a hundred others."""
    rarely = st.sampled_from([False] * 30 + [True])
    small = st.sampled_from([name for name in BODIES if name not in _LARGE])
    return st.builds(
        HostileResponse,
        verb=st.sampled_from(VERBS),
        status_line=st.one_of(st.just(STATUS_LINES[0]), st.sampled_from(STATUS_LINES)),
        headers=st.lists(st.one_of(st.just(HEADERS[0]), st.sampled_from(HEADERS)), max_size=4).map(tuple),
        encoding=st.sampled_from(ENCODINGS),
        body=rarely.flatmap(lambda is_large: st.sampled_from(sorted(_LARGE)) if is_large else small),
        framing=st.one_of(st.just("length"), st.sampled_from(FRAMINGS)),
        informational=st.sampled_from([0] * 20 + [1, 3, 20_000]),
        extra=st.sampled_from([0] * 20 + [1, 20_000]),
        is_endless=rarely,
        stalls=st.sampled_from([False] * 200 + [True]),
        cut=st.one_of(st.none(), st.none(), st.none(), st.integers(0, 10**7)),
    )
