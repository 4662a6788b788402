"""HTTP messages: header fields, URLs, and the head of a request as bytes. What no message can hold is refused."""

import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit

from setpoint.clients.foreign_errors import InvalidAddress, UnsendableRequest
from setpoint.core.values.deferred_dataclass import dataclass

DEFAULT_PORTS: Final = {"http": 80, "https": 443}
# Without a body, these have no length either (RFC 9110 section 8.6).
_BODILESS_METHODS: Final = ("GET", "HEAD", "OPTIONS", "TRACE", "CONNECT")
# Set here, each once.
_FRAMING: Final = ("host", "content-length", "transfer-encoding")
_TOKEN: Final = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_METHOD: Final = re.compile(_TOKEN).fullmatch
# Header lines: a line break in a value would begin another one.
_LINES: Final = re.compile(rf"(?:{_TOKEN}: [^\x00-\x08\x0a-\x1f\x7f]*\r\n)*").fullmatch
_TARGET: Final = re.compile(r"[!-~]+").fullmatch
_ORIGIN: Final = re.compile(r"https?://[^/?#]*", re.IGNORECASE).match
_HOST: Final = re.compile(r"[0-9A-Za-z_.~-]+|[0-9A-Fa-f]*:[0-9A-Fa-f:.]*(?:%[0-9A-Za-z_.~-]+)?").fullmatch


class Headers(Mapping[str, str]):
    """Header fields in their order. Names are case-insensitive; the values of a repeated field are joined by commas."""

    __slots__ = ("_fields", "_received", "_values", "lines")

    def __init__(self, fields: Iterable[tuple[str, str]] = (), received: Sequence[tuple[bytes, bytes]] = ()) -> None:
        self._fields = tuple(fields)
        # Decoded when they are looked at: of most responses no header is.
        self._received = received
        self._values: dict[str, str] | None = None
        # As they are sent, once they were: with the defaults that they were completed by.
        self.lines: tuple[Mapping[str, str], str] | None = None

    @staticmethod
    def of(headers: Mapping[str, str]) -> "Headers":
        """The same headers; repeated fields stay apart."""
        return headers if isinstance(headers, Headers) else Headers(headers.items())

    @property
    def fields(self) -> Sequence[tuple[str, str]]:
        """Names and values, repeated fields apart."""
        if self._received:
            self._fields = tuple((_decoded(name), _decoded(value)) for name, value in self._received)
            self._received = ()
        return self._fields

    def replaced(self, headers: Mapping[str, str]) -> "Headers":
        """With these fields in the place of all fields of the same names."""
        names = {name.lower() for name in headers}
        return Headers([*(one for one in self.fields if one[0].lower() not in names), *Headers.of(headers).fields])

    def without(self, prefix: str) -> "Headers":
        """Without the fields whose name begins with `prefix`."""
        return Headers(one for one in self.fields if not one[0].lower().startswith(prefix.lower()))

    def __getitem__(self, name: str) -> str:
        return self._joined()[name.lower()]

    def __iter__(self) -> Iterator[str]:
        # Of names that differ in case, the first.
        return iter({name.lower(): name for name, _ in reversed(self.fields)}.values())

    def __len__(self) -> int:
        return len(self._joined())

    def __repr__(self) -> str:
        """Names alone: the values hold tokens."""
        return f"Headers({', '.join(self)})"

    def _joined(self) -> dict[str, str]:
        values = self._values
        if values is None:
            values = self._values = {}
            for name, value in self.fields:
                key = name.lower()
                values[key] = f"{values[key]}, {value}" if key in values else value
        return values


def _decoded(text: bytes) -> str:
    return text.strip().decode("utf-8", "surrogateescape")


# --- URLs -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """The server of a URL. `authority` names host and port in messages; `authorization` is of user and password."""

    is_tls: bool
    host: str
    port: int
    authority: str
    authorization: str | None = None

    @staticmethod
    def of(url: str) -> "ServerAddress":
        """The server of `url`; InvalidAddress when it has none."""
        # urlsplit would leave out line breaks, and read another host.
        if not url.isprintable() or " " in url:
            raise InvalidAddress
        try:
            parts = urlsplit(url)
            scheme, host = parts.scheme, _ascii_host(parts.hostname or "")
            port = parts.port or DEFAULT_PORTS.get(scheme, 0)
        except ValueError as error:
            raise InvalidAddress from error
        if scheme not in DEFAULT_PORTS or not _HOST(host):
            raise InvalidAddress
        shown = f"[{host}]" if ":" in host else host
        authority = shown if port == DEFAULT_PORTS[scheme] else f"{shown}:{port}"
        return ServerAddress(scheme == "https", host, port, authority, _basic_authorization(parts))


def _ascii_host(host: str) -> str:
    return host if host.isascii() else host.encode("idna").decode("ascii")


def _basic_authorization(parts: SplitResult) -> str | None:
    if parts.username is None and parts.password is None:
        return None
    login = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
    return f"Basic {b64encode(login.encode()).decode()}"


def split_origin(url: str) -> tuple[str, str]:
    """The origin of a URL, and the request target: its path and query. InvalidAddress for what no request can hold."""
    found = _ORIGIN(url)
    if found is None:
        raise InvalidAddress
    target = url[found.end() :]
    if "#" in target:
        target = target.partition("#")[0]
    if target[:1] != "/":
        target = f"/{target}"
    if not _TARGET(target):
        raise InvalidAddress
    return found[0], target


# --- Requests ---------------------------------------------------------------------------------------------------------


def encode_head(
    method: str,
    target: str,
    authority: str,
    headers: Mapping[str, str],
    body: bytes | None = None,
    *,
    defaults: Mapping[str, str],
) -> bytes:
    """The head of a request. `defaults` are the headers, by names in lower case, that it has if it names no others.

    UnsendableRequest for a method or a header that would be read as something else, such as one with a line break, and
    for headers that are not the caller's to set.
    """
    if not _METHOD(method) or not _TARGET(target):
        raise UnsendableRequest
    lines = _lines_with(headers if isinstance(headers, Headers) else Headers(headers.items()), defaults)
    if body or method not in _BODILESS_METHODS:
        lines = f"{lines}content-length: {len(body or b'')}\r\n"
    try:
        return f"{method} {target} HTTP/1.1\r\nhost: {authority}\r\n{lines}\r\n".encode()
    except UnicodeEncodeError as error:
        raise UnsendableRequest from error


def _lines_with(headers: Headers, defaults: Mapping[str, str]) -> str:
    """The lines of all headers; made once for headers that are sent again."""
    if headers.lines is not None and headers.lines[0] is defaults:
        return headers.lines[1]
    fields = headers.fields
    named = {name.lower() for name, _ in fields}
    if not named.isdisjoint(_FRAMING):
        raise UnsendableRequest
    lines = [f"{name}: {value}\r\n" for name, value in fields]
    own = "".join(lines)
    # A line more than there are fields is a line break in one of them.
    if not _LINES(own) or own.count("\n") != len(lines):
        raise UnsendableRequest
    rest = "".join([f"{name}: {value}\r\n" for name, value in defaults.items() if name not in named])
    headers.lines = defaults, own + rest
    return own + rest
