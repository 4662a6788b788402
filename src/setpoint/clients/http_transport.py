"""Responses within limits: bodies as they arrive, counted after decompression; and which clients of tenants are kept.

What is over a limit is not read: no body, however it is compressed and whether or not it ends, takes more memory than
its limit allows.
"""

import asyncio
import socket
import zlib
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from math import inf
from typing import Any, Final

from setpoint.clients.foreign_errors import TransportError
from setpoint.clients.transport.connection import Exchange
from setpoint.clients.transport.messages import Headers
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.errors import RemoteError, RemoteUnavailable, ResponseTooLarge, UserError

MIB: Final = 2**20
MAX_RESPONSE_VARIABLE: Final = "SETPOINT_MAX_RESPONSE_MIB"
_MAX_SETTING: Final = 4096
# Of a response that is an error no more is read; its status says what happened.
_MAX_ERROR_BODY: Final = MIB
# What is asked for, and the only encodings that are decompressed: others take more memory before the first byte.
ACCEPT_ENCODING: Final = "gzip, deflate"
_PLAIN: Final = ("", "identity")
_COMPRESSED: Final = ("gzip", "x-gzip", "deflate")
# In place of credentials, where an error repeats them; shorter ones would be found in any text.
_HIDDEN: Final = b"(hidden)"
_SHORTEST_SECRET: Final = 8
# The most that is decompressed at once.
_PIECE: Final = 2**16
# So many lengths of time limits are kept, even if none of them is in use.
_MANY_LENGTHS: Final = 64
# TCP keep-alive: after so many seconds without data the peer is probed, at this interval, so often.
_KEEP_ALIVE: Final = (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3))


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """Limits of one client: the bytes of a body or of a line of a watch, connections for requests, and for streams.

    With 0, the number of connections has no limit of its own: the rate limiter bounds the calls.
    """

    body: int = 16 * MIB
    connections: int = 0
    streams: int = 0

    def of_tenant(self) -> "HttpLimits":
        """The limits of a client for a server that a tenant named. No object of a cluster is as large as that."""
        return HttpLimits(self.body // 4, connections=4, streams=32)


def limits_from(environment: Mapping[str, str]) -> HttpLimits:
    """The limits that the environment sets; UserError for a size that is none."""
    text = environment.get(MAX_RESPONSE_VARIABLE, "").strip()
    if not text:
        return HttpLimits()
    if not (text.isascii() and text.isdecimal() and 1 <= int(text[:9]) <= _MAX_SETTING):
        raise UserError(
            f"{MAX_RESPONSE_VARIABLE} is {text[:40]!r}: write how many MiB a response may have, 1 to {_MAX_SETTING}"
        )
    return HttpLimits(int(text) * MIB)


class HeldBytes:
    """How many bytes of unfinished responses are held at once, by all clients that share this; at most `limit`."""

    def __init__(self, limit: float = inf) -> None:
        self.held = 0
        self._limit = limit

    def has_room_for(self, size: int) -> bool:
        """Whether so many more may be held."""
        return self.held + size <= self._limit

    def add(self, size: int, what: object) -> None:
        """More bytes are held; ResponseTooLarge when these would be too many."""
        if not self.has_room_for(size):
            raise ResponseTooLarge(
                f"{what}: the answers to the requests of one namespace are larger than {self._limit / MIB:g} MiB "
                "together: no more of them is read at once"
            )
        self.held += size

    def drop(self, size: int) -> None:
        """These bytes are not held any more."""
        self.held -= size


class ResponseBody:
    """The body of a response, decompressed as it arrives. `what` names the request in messages."""

    def __init__(self, what: object, response: Exchange, limits: HttpLimits, held: HeldBytes) -> None:
        self._what = what
        self._response = response
        self._is_error = not 200 <= response.status < 300
        self.limit = limits.body
        self.held = held
        self._encoding = response.encoding
        self._is_plain_success = not self._is_error and self._encoding in _PLAIN
        self._inflater: zlib._Decompress | None = None
        self._compressed = b""

    async def read(self) -> bytes:
        """The bytes that have arrived, or arrive next; none at the end."""
        if self._encoding in _PLAIN:
            return await self._response.read()
        if self._encoding not in _COMPRESSED:
            raise self._unusable("it is compressed in a way that was not asked for")
        while not (piece := self._inflate()):
            self._compressed = await self._response.read()
            if not self._compressed:
                self._require_end()
                break
            self._inflater = self._inflater or _inflater(self._encoding, self._compressed)
        return piece

    async def whole(self) -> bytes:
        """All of it; ResponseTooLarge when it is larger than the limit. That of an error is cut off."""
        found = self._response.whole if self._is_plain_success else None
        if found is not None and len(found) <= self.limit and self.held.has_room_for(len(found)):
            return found
        limit = min(self.limit, _MAX_ERROR_BODY) if self._is_error else self.limit
        size, pieces = 0, list[bytes]()
        try:
            while piece := await self.read():
                if size + len(piece) > limit:
                    if not self._is_error:
                        raise too_large(self._what, self.limit)
                    break
                self.held.add(len(piece), self._what)
                size += len(piece)
                pieces.append(piece)
            # Joined once: a buffer that grows by each piece is copied again and again.
            body = b"".join(pieces)
            return self.without_credentials(body) if self._is_error else body
        finally:
            self.held.drop(size)

    def without_credentials(self, text: bytes) -> bytes:
        """What the server says, without the credentials that it was sent, which do not get into our messages."""
        credentials = Headers.of(self._response.sent).get("Authorization", "").rpartition(" ")[2].encode()
        return text.replace(credentials, _HIDDEN) if len(credentials) >= _SHORTEST_SECRET else text

    def _inflate(self) -> bytes:
        """The next piece of what has arrived; none when all of that is decompressed."""
        if self._inflater is None:
            return b""
        try:
            piece = self._inflater.decompress(self._compressed, _PIECE)
        except zlib.error as error:
            raise self._unusable("it cannot be decompressed") from error
        self._compressed = self._inflater.unconsumed_tail
        if self._inflater.unused_data:
            raise self._unusable("it goes on after the end of what is compressed")
        return piece

    def _require_end(self) -> None:
        if self._inflater is not None and not self._inflater.eof:
            raise self._unusable("what is compressed breaks off")

    def _unusable(self, why: str) -> RemoteUnavailable:
        return RemoteUnavailable(f"{self._what}: the answer is not what it should be: {why}")


def too_large(what: object, limit: int) -> ResponseTooLarge:
    """The error for a body or a line beyond `limit` bytes."""
    return ResponseTooLarge(
        f"{what}: the answer is larger than {limit / MIB:g} MiB: the rest of it was not read. {MAX_RESPONSE_VARIABLE} "
        "sets how large one may be"
    )


def _inflater(encoding: str, start: bytes) -> "zlib._Decompress":
    if encoding != "deflate":
        return zlib.decompressobj(16 + zlib.MAX_WBITS)
    # Some servers send deflate without the header that belongs to it.
    return zlib.decompressobj(zlib.MAX_WBITS if start[0] & 0x0F == 8 else -zlib.MAX_WBITS)


class ResponseStream:
    """A response with a body that is read as it arrives. `close` it when no more of it is needed.

    It is one of the `opened` until then. `error_for` translates an error of the transport. `idle_timeout` seconds
    without a byte end it.
    """

    def __init__(
        self,
        response: Exchange,
        body: ResponseBody,
        opened: set["ResponseStream"],
        error_for: Callable[[Exception], RemoteError],
        idle_timeout: float,
    ) -> None:
        self.status = response.status
        self.headers: Mapping[str, str] = response.headers
        self.body = body
        self._response = response
        self._opened = opened
        self._error_for = error_for
        self._idle_timeout = idle_timeout
        opened.add(self)
        response.configure(_keep_alive)

    async def read(self) -> bytes:
        """The bytes that have arrived, or arrive next; none at the end. RemoteUnavailable when the stream breaks."""
        return await self._read(self.body.read())

    async def whole(self) -> bytes:
        """The whole body; ResponseTooLarge beyond its limit."""
        return await self._read(self.body.whole())

    def close(self) -> None:
        """Aborts the connection: the rest of the body is not read."""
        self._opened.discard(self)
        self._response.close()

    async def _read(self, reading: Awaitable[bytes]) -> bytes:
        try:
            async with asyncio.timeout(self._idle_timeout):
                return await reading
        except RemoteError:
            self.close()
            raise
        except (TransportError, OSError) as error:
            self.close()
            raise self._error_for(error) from error


def _keep_alive(transport: asyncio.BaseTransport) -> None:
    """Turns on TCP keep-alive: the system notices when the peer is gone."""
    opened = transport.get_extra_info("socket")
    if opened is not None:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _KEEP_ALIVE:
            # Not every system has these options.
            if option := getattr(socket, name, None):
                opened.setsockopt(socket.IPPROTO_TCP, option, value)


# --- Time limits ------------------------------------------------------------------------------------------------------


# Lengths that follow from other times are rounded down to multiples of this.
_LENGTH_STEP: Final = 0.25


def shared_length(seconds: float) -> float:
    """A time limit that is a little shorter, so that others have the same length, and share its timer."""
    return seconds // _LENGTH_STEP * _LENGTH_STEP if seconds > 2 * _LENGTH_STEP else seconds


class TimeLimits:
    """Time limits of blocks in the tasks of one event loop. Those of the same length share a timer.

    A block takes a microsecond, in which `asyncio.timeout` takes three: it sets a timer for each, and cancels it.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        # By length, in the order in which they are due.
        self._running: dict[float, dict[TimeLimit, None]] = {}
        self._timers: dict[float, asyncio.TimerHandle] = {}
        self._next_tidying = _MANY_LENGTHS

    @property
    def is_of_running_loop(self) -> bool:
        """Whether these can be used here."""
        return self._loop is asyncio.get_running_loop()

    @property
    def lengths(self) -> int:
        """How many lengths have a timer."""
        return len(self._timers)

    def of(self, seconds: float) -> "TimeLimit":
        """A block that takes at most so long: `with limits.of(60.0)`; TimeoutError when it takes longer."""
        running = self._running.get(seconds)
        if running is None:
            return self._first_of(seconds)
        return TimeLimit(running, self._loop.time() + seconds, self._loop)

    def _first_of(self, seconds: float) -> "TimeLimit":
        if len(self._running) >= self._next_tidying:
            self._tidy()
        limit = TimeLimit(self._running.setdefault(seconds, {}), self._loop.time() + seconds, self._loop)
        self._timers[seconds] = self._loop.call_at(limit.due, self._expire, seconds)
        return limit

    def _tidy(self) -> None:
        """Drops the timers of lengths that are not in use: those of writes follow from fences, and rarely return."""
        for seconds in [length for length, running in self._running.items() if not running]:
            self._timers.pop(seconds).cancel()
            del self._running[seconds]
        self._next_tidying = max(_MANY_LENGTHS, 2 * len(self._running))

    def _expire(self, seconds: float) -> None:
        """Ends the blocks that are due, and comes back for the next one."""
        running, now = self._running[seconds], self._loop.time()
        while running:
            limit = next(iter(running))
            if limit.due > now:
                self._timers[seconds] = self._loop.call_at(limit.due, self._expire, seconds)
                return
            limit.expire()
        del self._timers[seconds], self._running[seconds]


class TimeLimit:
    """The time limit of one block: its task is cancelled, which becomes a TimeoutError at the end of the block."""

    __slots__ = ("_cancelling", "_loop", "_running", "_task", "due", "is_expired")

    def __init__(self, running: dict["TimeLimit", None], due: float, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.due = due
        self.is_expired = False
        self._running = running
        self._task: asyncio.Task[Any] | None = None
        self._cancelling = 0

    def __enter__(self) -> None:
        task = self._task = asyncio.current_task(self._loop)
        assert task is not None
        # What was asked of the task before is not undone by the end of the block.
        self._cancelling = task.cancelling()
        self._running[self] = None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        self._running.pop(self, None)
        if self.is_expired and self._task is not None:
            is_only_ours = self._task.uncancel() <= self._cancelling
            if is_only_ours and kind is not None and issubclass(kind, asyncio.CancelledError):
                raise TimeoutError from error

    def expire(self) -> None:
        """The time is over."""
        del self._running[self]
        self.is_expired = True
        if self._task is not None:
            self._task.cancel()


# --- Clients of tenants -----------------------------------------------------------------------------------------------


class TenantQuota:
    """Which clients of tenants are kept: the most recently used, at most so many of all tenants and of one."""

    def __init__(self, most: int, most_of_one: int) -> None:
        self._most = most
        self._most_of_one = most_of_one
        # The tenant of each client, the least recently used first.
        self._tenants: dict[str, str] = {}

    def use(self, client: str, tenant: str) -> tuple[str, ...]:
        """The clients that have to go, now that `client` is used: of this tenant, or of the one with the most."""
        is_known = self._tenants.pop(client, None) == tenant
        self._tenants[client] = tenant
        return () if is_known else tuple(self._evicted())

    def _evicted(self) -> Iterator[str]:
        while True:
            (largest, count), *_ = Counter(self._tenants.values()).most_common(1)
            if count <= self._most_of_one and len(self._tenants) <= self._most:
                return
            oldest = next(client for client, tenant in self._tenants.items() if tenant == largest)
            del self._tenants[oldest]
            yield oldest
