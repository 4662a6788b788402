"""Connections that are kept and reused: one exchange at a time on each, and at most so many in use at once."""

import asyncio
from collections import deque
from collections.abc import Mapping
from functools import partial
from typing import Final, TypeAlias

from setpoint.clients.foreign_errors import ConnectionEnded
from setpoint.clients.transport.connection import Connection, Exchange
from setpoint.clients.transport.messages import encode_head
from setpoint.clients.transport.opening import Opener, ServerRoute, TlsOptions

# An idle connection is closed after so many seconds: servers and routers forget theirs, too.
IDLE_SECONDS: Final = 15.0
# Repeated when a connection that was reused ends before the response: twice has the same effect as once.
IDEMPOTENT_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"})


class ConnectionPool:
    """Sends requests on connections of `opener`, at most `limit` at once; 0 is no limit. Waiting ones go in order.

    `defaults` are the headers, by names in lower case, of requests that name no others.
    """

    def __init__(self, opener: Opener, limit: int, defaults: Mapping[str, str]) -> None:
        self._opener = opener
        self._defaults = defaults
        self._slots = asyncio.Semaphore(limit) if limit else None
        # Each holds a slot.
        self._in_use: set[Connection] = set()
        # The one that was used last is the last one, and the next to be used.
        self._idle: dict[_Key, deque[Connection]] = {}
        self._expiry: asyncio.TimerHandle | None = None
        self._is_closed = False

    async def request(
        self,
        route: ServerRoute,
        method: str,
        path: str,
        headers: Mapping[str, str],
        *,
        body: bytes | None = None,
        tls: TlsOptions | None = None,
        is_repeatable: bool = True,
    ) -> Exchange:
        """The response, once its head is there. `close` it when done. TransportError when there is none.

        Repeated once, on a new connection, when a reused one ends before the first byte of the response: the server
        may have closed it just then. What is not idempotent is not repeated: the server may have got it. Nor is what is
        not `is_repeatable`: a PUT that creates an object finds its own the second time.
        """
        target, authority = route.target_of(path), route.server.authority
        sent = headers if route.credentials is None else route.credentials.replaced(headers)
        head = encode_head(method, target, authority, sent, body, defaults=self._defaults)
        key = route, tls
        connection = await self._acquire(key)
        was_reused = connection.is_reused
        try:
            exchange = await self._exchange(key, connection, method, head, body)
        except ConnectionEnded:
            has_begun = connection.has_response_bytes
            is_idempotent = is_repeatable and method in IDEMPOTENT_METHODS
            if not was_reused or has_begun or self._is_closed or not is_idempotent:
                raise
            connection = await self._acquire(key, is_new=True)
            exchange = await self._exchange(key, connection, method, head, body)
        exchange.sent = sent
        return exchange

    def close(self) -> None:
        """Aborts all connections. Requests in flight fail, and so do those that wait."""
        self._is_closed = True
        if self._expiry is not None:
            self._expiry.cancel()
        for connection in [*self._in_use, *(one for idle in self._idle.values() for one in idle)]:
            connection.abort()
        self._idle.clear()

    # --- Connections in use -------------------------------------------------------------------------------------------

    async def _acquire(self, key: "_Key", *, is_new: bool = False) -> Connection:
        """A connection for one exchange, idle before or new. It holds a slot until `_ended`."""
        if self._slots is not None:
            await self._slots.acquire()
        try:
            connection = None if is_new else self._idle_connection(key)
            if connection is None:
                connection = await self._opener.open(*key, partial(self._ended, key))
            if self._is_closed:
                connection.abort()
                raise ConnectionEnded
        except BaseException:
            self._release_slot()
            raise
        self._in_use.add(connection)
        return connection

    async def _exchange(
        self, key: "_Key", connection: Connection, method: str, head: bytes, body: bytes | None
    ) -> Exchange:
        try:
            exchange = connection.start(method, head, body)
            await exchange.begin()
        except BaseException:
            self._discard(key, connection)
            raise
        return exchange

    def _discard(self, key: "_Key", connection: Connection) -> None:
        connection.abort()
        self._ended(key, connection)

    def _ended(self, key: "_Key", connection: Connection) -> None:
        """An exchange has ended, or an idle connection was lost. Called once more for a connection that is aborted."""
        if connection in self._in_use:
            self._in_use.discard(connection)
            self._release_slot()
        if connection.is_usable and not self._is_closed:
            self._keep(key, connection)
        elif (idle := self._idle.get(key)) is not None and connection in idle:
            idle.remove(connection)
            if not idle:
                del self._idle[key]

    def _release_slot(self) -> None:
        if self._slots is not None:
            self._slots.release()

    # --- Idle connections ---------------------------------------------------------------------------------------------

    def _idle_connection(self, key: "_Key") -> Connection | None:
        idle = self._idle.get(key)
        while idle:
            connection = idle.pop()
            # One that is being closed is still there until the event loop has closed it.
            if connection.is_usable:
                return connection
        return None

    def _keep(self, key: "_Key", connection: Connection) -> None:
        loop = asyncio.get_running_loop()
        connection.idle_since = loop.time()
        self._idle.setdefault(key, deque()).append(connection)
        if self._expiry is None:
            self._expiry = loop.call_later(IDLE_SECONDS, self._expire)

    def _expire(self) -> None:
        """Closes the connections that were idle for too long, and comes back for the next ones."""
        loop = asyncio.get_running_loop()
        before = loop.time() - IDLE_SECONDS
        for key, idle in tuple(self._idle.items()):
            while idle and idle[0].idle_since <= before:
                idle.popleft().abort()
            if not idle:
                del self._idle[key]
        oldest = min((idle[0].idle_since for idle in self._idle.values()), default=None)
        self._expiry = None if oldest is None else loop.call_at(oldest + IDLE_SECONDS, self._expire)


_Key: TypeAlias = tuple[ServerRoute, TlsOptions | None]
