"""Connections: how one is made, kept for a while and found dead; and certificates as the files that libpq wants."""

import asyncio
import os
import select
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, Final, TypeAlias

import psycopg
from psycopg.rows import tuple_row

from setpoint.kind import RemoteUnavailable
from setpoint_postgresql.server import Server, TlsFiles

Connection: TypeAlias = psycopg.AsyncConnection[tuple[object, ...]]
_CONNECT_SECONDS: Final = 10
_STATEMENT_MILLISECONDS: Final = 60_000
_LOCK_MILLISECONDS: Final = 10_000
# Connections to one database of one server: for reads, and for writes.
_MAX_CONNECTIONS: Final = 3
# An unused connection is closed: it would keep others from dropping the database.
_IDLE_SECONDS: Final = 20.0
# Names in statements are qualified; what is read from catalogs must not depend on the path.
_SESSION: Final = {
    "statement_timeout": _STATEMENT_MILLISECONDS,
    "lock_timeout": _LOCK_MILLISECONDS,
    "idle_in_transaction_session_timeout": _STATEMENT_MILLISECONDS,
    "search_path": "pg_catalog",
    # Texts of statements and times are compared: the server's own settings must not change them.
    "standard_conforming_strings": "on",
    "DateStyle": "ISO",
    "TimeZone": "UTC",
}


class Access(Enum):
    """What a connection may do."""

    READ = "on"
    WRITE = "off"


async def open_connection(
    server: Server, database: str, access: Access, files: "TlsFolder", *, of: type[Connection] = psycopg.AsyncConnection
) -> Connection:
    """A new connection, of this class of psycopg; its errors are those of the caller."""
    settings = {**_SESSION, "default_transaction_read_only": access.value}
    options = " ".join(f"-c {name}={value}" for name, value in settings.items())
    given: dict[str, Any] = {"password": _password(server), **files.options(server.tls)}
    return await of.connect(
        host=server.host,
        port=server.port,
        user=server.user,
        dbname=database,
        connect_timeout=_CONNECT_SECONDS,
        application_name="setpoint",
        options=options,
        autocommit=True,
        row_factory=tuple_row,
        **{name: value for name, value in given.items() if value},
    )


def _password(server: Server) -> str:
    """The password, or the token of the moment; RemoteUnavailable for a file that has none."""
    if not server.token_file:
        return server.password
    try:
        found = Path(server.token_file).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise RemoteUnavailable(f"the file with the token for {server} cannot be read: {error}") from error
    if not found:
        raise RemoteUnavailable(f"the file with the token for {server} is empty: see the program that renews it")
    return found


# How a pool gets a connection that it has not: `open_connection`, unless a test keeps some.
Connect: TypeAlias = Callable[[Server, str, Access, "TlsFolder"], Awaitable[Connection]]


@dataclass(slots=True)
class ConnectionPool:
    """A few connections to one database. The one that was used last is used next; an idle one is closed."""

    server: Server
    database: str
    access: Access
    files: "TlsFolder"
    connect: Connect = open_connection
    _idle: list[Connection] = field(default_factory=list)
    _room: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_MAX_CONNECTIONS))
    _timer: asyncio.TimerHandle | None = None
    _closing: set["asyncio.Task[None]"] = field(default_factory=set)

    async def take(self) -> Connection:
        """A connection that works; a new one where there is none."""
        try:
            async with asyncio.timeout(_CONNECT_SECONDS * 3):
                await self._room.acquire()
        except TimeoutError as error:
            raise RemoteUnavailable(f"all {_MAX_CONNECTIONS} connections to {self.server} are in use") from error
        try:
            while self._idle:
                connection = self._idle.pop()
                if await is_alive(connection):
                    return connection
            return await self.connect(self.server, self.database, self.access, self.files)
        except BaseException:
            self._room.release()
            raise

    async def put_back(self, connection: Connection) -> None:
        """The connection is not needed any more; one within a transaction is closed, which rolls it back."""
        self._room.release()
        if connection.closed or connection.pgconn.transaction_status != psycopg.pq.TransactionStatus.IDLE:
            await _close(connection)
            return
        self._idle.append(connection)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_IDLE_SECONDS, self._expire)

    def _expire(self) -> None:
        self._timer = None
        task = asyncio.ensure_future(self.close_idle())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def close_idle(self) -> None:
        """Closes the connections that are not in use."""
        while self._idle:
            await _close(self._idle.pop())

    async def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        await asyncio.gather(*self._closing, return_exceptions=True)
        await self.close_idle()


async def _close(connection: Connection) -> None:
    with suppress(psycopg.Error):
        await connection.close()


async def is_alive(connection: Connection) -> bool:
    """Whether the server has not ended the connection: to an idle one it sends nothing but that."""
    if not connection.closed and not _has_input(connection.fileno()):
        return True
    await _close(connection)
    return False


def _has_input(descriptor: int) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(0))


class TlsFolder:
    """Certificates as files, which only this user can read: libpq takes no others. They go with the client."""

    def __init__(self) -> None:
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._paths: dict[str, str] = {}

    def options(self, tls: TlsFiles) -> dict[str, str]:
        """The options of libpq."""
        return {
            "sslmode": tls.mode,
            "sslrootcert": self._file(tls.authority),
            "sslcert": self._file(tls.certificate),
            "sslkey": self._file(tls.key),
        }

    def close(self) -> None:
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None
            self._paths.clear()

    def _file(self, text: str) -> str:
        if not text:
            return ""
        if text not in self._paths:
            if self._folder is None:
                self._folder = tempfile.TemporaryDirectory(prefix="setpoint-postgresql-")
            path = Path(self._folder.name) / f"{len(self._paths)}.pem"
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
            self._paths[text] = str(path)
        return self._paths[text]
