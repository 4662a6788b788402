"""One connection: a request is written, and its response is parsed as it arrives.

llhttp parses without leniencies: what it takes for an error, and a head beyond the limits, ends the connection.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Final, cast

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from setpoint.clients.foreign_errors import ConnectionEnded, NotHttp, TransportError
from setpoint.clients.transport.messages import Headers

# The longest status line or header field, in bytes, and the most fields of a head or of trailers.
MAX_FIELD: Final = 8190
MAX_FIELDS: Final = 100
# The most interim responses (1xx) before the response.
_MAX_INTERIM: Final = 100
_BODY_FIELDS: Final = frozenset({b"content-encoding", b"content-length", b"transfer-encoding"})
_VERSIONS: Final = ("1.1", "1.0")
# Reading pauses when so many bytes of a body wait to be read.
_MAX_UNREAD: Final = 2**16
# A body is written in pieces of this size: TLS encrypts one at once.
_WRITE_PIECE: Final = 2**17


_NO_HEADERS: Final = Headers()


class _Violation(Exception):
    """A response that is parsed, and not to be read on. Raised and caught inside of the parser."""


class Exchange:
    """A request and its response. `begin` waits for the head, `read` for the body; `close` it when done.

    The callbacks of the parser are public: it calls them by name.
    """

    __slots__ = (
        "_connection",
        "_error",
        "_fields",
        "_has_length",
        "_interim",
        "_is_head_request",
        "_parser",
        "_pieces",
        "_received",
        "_since_progress",
        "_unread",
        "_waiter",
        "encoding",
        "headers",
        "is_begun",
        "is_complete",
        "is_in_order",
        "sent",
        "status",
    )

    def __init__(self, connection: "Connection", method: str) -> None:
        # The headers of the request.
        self.sent: Mapping[str, str] = _NO_HEADERS
        self.status = 0
        self.headers = _NO_HEADERS
        # The values of Content-Encoding in lower case.
        self.encoding = ""
        # Whether its head has arrived, and all of it.
        self.is_begun = self.is_complete = False
        # Whether the connection can be used again once the response is complete.
        self.is_in_order = True
        self._connection = connection
        self._is_head_request = method == "HEAD"
        self._parser: HttpResponseParser | None = HttpResponseParser(self)
        self._fields: list[tuple[bytes, bytes]] = []
        self._has_length = False
        self._interim = 0
        # Bytes since the parser last found something: of one line that has not ended.
        self._since_progress = 0
        self._received = 0
        self._pieces: list[bytes] = []
        self._unread = 0
        self._waiter: asyncio.Future[None] | None = None
        # Its class: an error that is raised holds on to the frames it passed.
        self._error: type[TransportError] | None = None

    # --- For the reader -----------------------------------------------------------------------------------------------

    async def begin(self) -> None:
        """Returns when status and headers are there. TransportError when they do not come."""
        while not self.is_begun:
            if self._error is not None:
                raise self._error()
            await self._wait()

    async def read(self) -> bytes:
        """The bytes of the body that have arrived, or arrive next; none at its end. TransportError when it breaks."""
        while not self._pieces:
            if self.is_complete:
                return b""
            if self._error is not None:
                raise self._error()
            await self._wait()
        found = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces.clear()
        self._unread = 0
        self._connection.resume(self)
        return found

    @property
    def whole(self) -> bytes | None:
        """The body, if it is complete and has arrived in one piece, as most have; else None. `read` has it, too."""
        return self._pieces[0] if self.is_complete and len(self._pieces) == 1 else None

    def close(self) -> None:
        """Aborts the connection unless the response is complete: TLS is not shut down in an orderly way."""
        if not self.is_complete:
            self._pieces.clear()
            self.fail(ConnectionEnded)
            self._connection.abandon(self)

    def configure(self, apply: Callable[[asyncio.BaseTransport], None]) -> None:
        """Calls `apply` with the transport, unless the response is complete."""
        self._connection.configure(self, apply)

    async def _wait(self) -> None:
        waiter = self._waiter = asyncio.get_running_loop().create_future()
        try:
            await waiter
        finally:
            self._waiter = None

    # --- For the connection -------------------------------------------------------------------------------------------

    @property
    def is_full(self) -> bool:
        """Whether no more of the body is to be received before some of it is read."""
        return self._unread > _MAX_UNREAD

    def feed(self, data: bytes) -> None:
        """Parses bytes that have arrived."""
        parser = self._parser
        if parser is None:
            return
        size = len(data)
        self._received += size
        self._since_progress += size
        try:
            parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade):
            # What comes after the response is not read, nor is anything else on this connection.
            self.is_in_order = False
            if not self.is_complete:
                self.fail(NotHttp)
        else:
            if self._since_progress > MAX_FIELD or len(self._fields) > MAX_FIELDS:
                self.fail(NotHttp)
        if self.is_complete:
            self._parser = None
        self._wake()

    def end(self) -> None:
        """No more bytes arrive: the end of a body without a length."""
        if self.is_begun and not self._has_length and not self.is_complete and self._error is None:
            self.is_complete, self.is_in_order, self._parser = True, False, None
        self.fail(ConnectionEnded)

    def fail(self, error: type[TransportError]) -> None:
        """The response does not become complete. Without effect when it is."""
        self.is_in_order = self.is_in_order and self.is_complete
        self._parser = None
        if not self.is_complete and self._error is None:
            self._error = error
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # --- For the parser -----------------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        """The first byte of a message: a second one after the response is none of ours."""
        if self.is_complete:
            raise _Violation

    def on_status(self, reason: bytes) -> None:
        """A part of the status line, after the code."""
        if len(reason) > MAX_FIELD:
            raise _Violation

    def on_header(self, name: bytes, value: bytes) -> None:
        """A field of the head, or of the trailers, which are dropped."""
        self._since_progress = 0
        # How long each is, and how many there are, is checked for all together.
        self._fields.append((name, value))

    def on_headers_complete(self) -> None:
        """The end of the head, of an interim response or of the response itself."""
        parser = cast("HttpResponseParser", self._parser)
        status = parser.get_status_code()
        if self.is_complete or parser.get_http_version() not in _VERSIONS or status < 100 or status == 101:
            raise _Violation
        self._since_progress = 0
        fields = self._take_fields()
        if status < 200:
            self._interim += 1
            if self._interim > _MAX_INTERIM:
                raise _Violation
            return
        self.status = status
        self.headers = Headers(received=fields)
        for name, value in fields:
            if name in _BODY_FIELDS:
                self._read_body_field(name, value)
        self.is_begun = True
        if self._is_head_request:
            self._complete()

    def on_body(self, piece: bytes) -> None:
        """Bytes of the body, without what frames them."""
        if self.is_complete:
            raise _Violation
        self._since_progress = 0
        self._pieces.append(piece)
        self._unread += len(piece)

    def on_message_complete(self) -> None:
        """The end of an interim response or of the response itself."""
        if self._fields:
            # Trailers.
            self._take_fields()
        if self.is_begun and not self.is_complete:
            self._complete()

    def _take_fields(self) -> list[tuple[bytes, bytes]]:
        """The fields that were found, with names in lower case."""
        fields, self._fields = self._fields, []
        if len(fields) > MAX_FIELDS:
            raise _Violation
        # Mostly all that has arrived is shorter than one field may be.
        if self._received > MAX_FIELD and any(len(name) + len(value) > MAX_FIELD for name, value in fields):
            raise _Violation
        return [(name.lower(), value) for name, value in fields]

    def _read_body_field(self, name: bytes, value: bytes) -> None:
        if name == b"content-encoding":
            self.encoding = f"{self.encoding}, " * bool(self.encoding) + value.decode("latin-1").strip().lower()
            return
        # Another transfer coding was not asked for, nor is one twice; the parser would take some for no length at all.
        if name == b"transfer-encoding" and (self._has_length or value.strip().lower() != b"chunked"):
            raise _Violation
        self._has_length = True

    def _complete(self) -> None:
        self.is_complete = True
        self.is_in_order = cast("HttpResponseParser", self._parser).should_keep_alive()


class Connection(asyncio.Protocol):
    """A connection for one exchange at a time. `on_end` is called at the end of each, and when the connection is lost.

    Bytes that arrive while there is no exchange belong to no request: the connection is aborted.
    """

    def __init__(self, on_end: Callable[["Connection"], None]) -> None:
        # Whether it has had an exchange before: the server may close it when the next one begins.
        self.is_reused = False
        # Whether a byte of the response to the last request has arrived.
        self.has_response_bytes = False
        self.idle_since = 0.0
        self._on_end = on_end
        self._transport: asyncio.Transport | None = None
        self._exchange: Exchange | None = None
        self._unsent: memoryview | None = None
        self._is_paused = self._is_write_paused = self._has_early_bytes = False

    @property
    def is_usable(self) -> bool:
        """Whether another exchange can begin."""
        transport = self._transport
        return transport is not None and not transport.is_closing() and self._exchange is None

    def start(self, method: str, head: bytes, body: bytes | None) -> Exchange:
        """Writes a request. A large body is written as fast as the server reads it, whatever it answers meanwhile."""
        transport = self._transport
        if self._has_early_bytes:
            raise NotHttp
        if transport is None or not self.is_usable:
            raise ConnectionEnded
        exchange = self._exchange = Exchange(self, method)
        self.has_response_bytes = False
        if not body or len(body) <= _WRITE_PIECE:
            transport.write(head + body if body else head)
        else:
            transport.write(head)
            self._unsent = memoryview(body)
            self._write_more()
        return exchange

    def abort(self) -> None:
        """Closes the connection at once."""
        transport = self._transport
        if transport is not None:
            transport.abort()
        if self._exchange is not None:
            self._exchange.fail(ConnectionEnded)

    def abandon(self, exchange: Exchange) -> None:
        """Aborts the connection if it is still that of `exchange`."""
        if self._exchange is exchange:
            self.abort()
            self._end_exchange()

    def resume(self, exchange: Exchange) -> None:
        """Receives more bytes for `exchange`."""
        if self._is_paused and self._exchange is exchange and self._transport is not None:
            self._is_paused = False
            self._transport.resume_reading()

    def configure(self, exchange: Exchange, apply: Callable[[asyncio.BaseTransport], None]) -> None:
        """Calls `apply` with the transport if it is still that of `exchange`."""
        if self._exchange is exchange and self._transport is not None:
            apply(self._transport)

    # --- asyncio.Protocol ---------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio.Protocol."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """See asyncio.Protocol."""
        exchange, transport = self._exchange, self._transport
        if exchange is None or transport is None:
            self._has_early_bytes = True
            self.abort()
            return
        self.has_response_bytes = True
        exchange.feed(data)
        if exchange.is_complete or not exchange.is_in_order:
            self._end_exchange()
        elif exchange.is_full and not self._is_paused:
            self._is_paused = True
            transport.pause_reading()

    def eof_received(self) -> None:
        """See asyncio.Protocol."""
        if self._exchange is not None:
            self._exchange.end()

    def connection_lost(self, error: Exception | None) -> None:
        """See asyncio.Protocol."""
        self._transport, self._unsent = None, None
        if self._exchange is not None:
            if error is None:
                self._exchange.end()
            else:
                self._exchange.fail(ConnectionEnded)
        self._end_exchange()

    def pause_writing(self) -> None:
        """See asyncio.Protocol."""
        self._is_write_paused = True

    def resume_writing(self) -> None:
        """See asyncio.Protocol."""
        self._is_write_paused = False
        self._write_more()

    def _write_more(self) -> None:
        """Writes the next piece of a body, and then lets others have their turn."""
        unsent, transport = self._unsent, self._transport
        if unsent is None or transport is None or transport.is_closing() or self._is_write_paused:
            return
        self._unsent = unsent[_WRITE_PIECE:] if len(unsent) > _WRITE_PIECE else None
        transport.write(unsent[:_WRITE_PIECE])
        if self._unsent is not None and not self._is_write_paused:
            asyncio.get_running_loop().call_soon(self._write_more)

    def _end_exchange(self) -> None:
        exchange, self._exchange = self._exchange, None
        transport = self._transport
        if exchange is not None and transport is not None:
            # The rest of a request that the server has answered already would be read as the next one.
            is_unsent = self._unsent is not None or transport.get_write_buffer_size() > 0
            if is_unsent or not exchange.is_in_order:
                transport.abort()
        self.is_reused = True
        self._on_end(self)
