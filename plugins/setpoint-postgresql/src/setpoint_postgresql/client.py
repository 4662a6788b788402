"""The client: few connections to each server, reads that share a query, and writes in one transaction each.

Reads go over connections whose transactions are read-only, so that a preview writes nothing. Concurrent reads of one
catalog become one query: a request that arrives while a query is under way is answered by the next one, never by that.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, Self

import psycopg
from psycopg import sql

from setpoint.kind import RemoteRefused
from setpoint_postgresql.catalogs import Catalog
from setpoint_postgresql.connections import Access, Connect, Connection, ConnectionPool, TlsFolder, open_connection
from setpoint_postgresql.failures import DatabaseNotFound, is_wrong_password, translated, translated_connection
from setpoint_postgresql.server import Server

Statement = sql.Composed | sql.SQL
# A query names so many objects at most.
_MAX_KEYS: Final = 2_000


class Login(Enum):
    """What became of a login that checks a password."""

    ACCEPTED = "the server accepts the password"
    WRONG = "the server refuses the password"
    UNKNOWN = "the server refused the login for another reason"


class PostgresClient:
    """The connections of one process. `queries` counts what was sent to read, for those who measure."""

    def __init__(self, *, is_read_only: bool = False, connect: Connect = open_connection) -> None:
        self.queries = 0
        self._connect = connect
        # In a preview nothing may be written.
        self._is_read_only = is_read_only
        self._pools: dict[tuple[Server, str, Access], ConnectionPool] = {}
        self._readers: dict[tuple[Server, str, str], _Reader] = {}
        self._files = TlsFolder()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes all connections."""
        for reader in self._readers.values():
            await reader.close()
        for pool in self._pools.values():
            await pool.close()
        self._readers.clear()
        self._pools.clear()
        self._files.close()

    # --- Reads -------------------------------------------------------------------------------------------------------

    async def read(self, server: Server, database: str, catalog: Catalog, key: str) -> bytes | None:
        """The row of the catalog with this key, as JSON; None where there is none.

        DatabaseNotFound where there is no such database.
        """
        at = (server, database, catalog.name)
        reader = self._readers.get(at)
        if reader is None:
            reader = self._readers[at] = _Reader(self, server, database, catalog)
        return await reader.get(key)

    async def version(self, server: Server) -> int:
        """The version of the server, such as 150004."""
        async with self.connected(server, server.database, Access.READ) as connection:
            return connection.info.server_version

    async def query(
        self, server: Server, database: str, texts: Mapping[int, str], keys: Sequence[str]
    ) -> Mapping[str, bytes]:
        """The rows of a query for these keys; `texts` has the query by the version from which on it is valid."""
        doing = f"read from {server}/{database}"
        async with self.connected(server, database, Access.READ, doing) as connection:
            text = _text_for(connection, texts)
            self.queries += 1
            try:
                # Every text here is one of `catalogs`; the keys are sent apart from it.
                cursor = await connection.execute(text.encode(), [list(keys)], prepare=False)
                rows = await cursor.fetchall()
            except psycopg.Error as error:
                raise translated(error, doing) from error
        return {str(row[0]): str(row[1]).encode() for row in rows}

    # --- Writes: three verbs that do the same, to be told apart in records and tests ----------------------------------

    async def create(self, server: Server, database: str, statements: Sequence[Statement], doing: str) -> None:
        """Executes what creates an object."""
        await self._write(server, database, statements, doing)

    async def update(self, server: Server, database: str, statements: Sequence[Statement], doing: str) -> None:
        """Executes what changes an object."""
        await self._write(server, database, statements, doing)

    async def delete(self, server: Server, database: str, statements: Sequence[Statement], doing: str) -> None:
        """Executes what deletes an object, or releases what depends on it."""
        await self._write(server, database, statements, doing)

    async def create_and_read(
        self, server: Server, statements: Sequence[Statement], row: "CatalogRow", doing: str
    ) -> bytes | None:
        """The same, and the row of the object as it is then: what the server made of it, before others change it."""
        return await self._write(server, row.database, statements, doing, row)

    async def update_and_read(
        self, server: Server, statements: Sequence[Statement], row: "CatalogRow", doing: str
    ) -> bytes | None:
        """The same for a change."""
        return await self._write(server, row.database, statements, doing, row)

    async def create_alone(self, server: Server, statement: Statement, doing: str, database: str = "") -> None:
        """Executes a statement that no transaction can contain, such as CREATE DATABASE."""
        await self._write_alone(server, statement, doing, database)

    async def update_alone(self, server: Server, statement: Statement, doing: str, database: str = "") -> None:
        """The same for a change, such as a move to another tablespace."""
        await self._write_alone(server, statement, doing, database)

    async def delete_alone(self, server: Server, statement: Statement, doing: str, database: str = "") -> None:
        """The same for DROP DATABASE."""
        await self._write_alone(server, statement, doing, database)

    async def _write(
        self,
        server: Server,
        database: str,
        statements: Sequence[Statement],
        doing: str,
        row: "CatalogRow | None" = None,
    ) -> bytes | None:
        async with self.connected(server, database, Access.WRITE, doing) as connection:
            try:
                async with connection.transaction():
                    for statement in statements:
                        await connection.execute(statement, prepare=False)
                    return None if row is None else await _read_row(connection, row)
            except psycopg.Error as error:
                raise translated(error, doing) from error

    async def _write_alone(self, server: Server, statement: Statement, doing: str, database: str) -> None:
        async with self.connected(server, database or server.database, Access.WRITE, doing) as connection:
            try:
                await connection.execute(statement, prepare=False)
            except psycopg.Error as error:
                raise translated(error, doing) from error

    async def release(self, server: Server, database: str) -> None:
        """Closes the unused connections to a database that is about to be dropped or used as a template."""
        for (of, name, _), pool in list(self._pools.items()):
            if (of.host, of.port, name) == (server.host, server.port, database):
                await pool.close_idle()

    # --- Passwords ---------------------------------------------------------------------------------------------------

    async def verifier(self, server: Server, role: str, password: str) -> str:
        """The SCRAM-SHA-256 verifier of a password, made here: the server never sees the password itself."""
        async with self.connected(server, server.database, Access.READ) as connection:
            made = connection.pgconn.encrypt_password(password.encode(), role.encode(), b"scram-sha-256")
        return made.decode()

    async def log_in(self, server: Server, role: str, password: str) -> Login:
        """Whether the server accepts the password of a role. The connection is closed at once."""
        target = Server(server.host, server.port, role, password, server.database, server.tls)
        try:
            connection = await open_connection(target, server.database, Access.READ, self._files)
        except psycopg.Error as error:
            return Login.WRONG if is_wrong_password(error) else Login.UNKNOWN
        # A server that trusts the client lets any password pass: that proves nothing.
        found = Login.ACCEPTED if connection.pgconn.used_password else Login.UNKNOWN
        await connection.close()
        return found

    # --- Connections -------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def connected(
        self, server: Server, database: str, access: Access, doing: str = ""
    ) -> AsyncIterator[Connection]:
        """A connection for as long as the context lasts."""
        if self._is_read_only and access is Access.WRITE:
            raise RemoteRefused(f"{doing}: this is a preview, which writes nothing")
        at = (server, database, access)
        pool = self._pools.get(at)
        if pool is None:
            pool = self._pools[at] = ConnectionPool(server, database, access, self._files, self._connect)
        try:
            connection = await pool.take()
        except psycopg.Error as error:
            doing = doing or f"connect to {server}/{database}"
            if database != server.database and not await self._has_database(server, database):
                raise DatabaseNotFound(f"{doing}: there is no database {database!r} at {server}") from error
            raise translated_connection(error, doing) from error
        try:
            yield connection
        finally:
            await pool.put_back(connection)

    async def _has_database(self, server: Server, database: str) -> bool:
        found = await self.query(server, server.database, _DATABASE_EXISTS, [database])
        return database in found


@dataclass(frozen=True, slots=True)
class CatalogRow:
    """A row of a catalog in a database."""

    database: str
    catalog: Catalog
    key: str


def _text_for(connection: Connection, texts: Mapping[int, str]) -> str:
    """The query for the version of the server."""
    return texts[max(since for since in texts if since <= connection.info.server_version)]


async def _read_row(connection: Connection, row: CatalogRow) -> bytes | None:
    text = _text_for(connection, row.catalog.texts)
    found = await (await connection.execute(text.encode(), [[row.key]], prepare=False)).fetchone()
    return None if found is None else str(found[1]).encode()


_DATABASE_EXISTS: Final = {0: "SELECT datname, '1' FROM pg_database WHERE datname = ANY(%s::text[])"}


@dataclass(slots=True)
class _Reader:
    """Reads of one catalog in one database, which share queries."""

    client: PostgresClient
    server: Server
    database: str
    catalog: Catalog
    _waiting: dict[str, list["asyncio.Future[bytes | None]"]] = field(default_factory=dict)
    _task: "asyncio.Task[None] | None" = None

    async def get(self, key: str) -> bytes | None:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[bytes | None] = loop.create_future()
        self._waiting.setdefault(key, []).append(future)
        if self._task is None:
            self._task = asyncio.ensure_future(self._answer())
        return await future

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _answer(self) -> None:
        """Answers what waits, until nothing does."""
        try:
            # The steps that are about to ask get into the same query.
            await asyncio.sleep(0)
            while self._waiting:
                batch = {key: self._waiting.pop(key) for key in list(self._waiting)[:_MAX_KEYS]}
                try:
                    await self._answer_batch(batch)
                except BaseException as error:
                    _fail(batch, error)
                    if not isinstance(error, Exception):
                        raise
        finally:
            self._task = None
            _fail(self._waiting, asyncio.CancelledError())

    async def _answer_batch(self, batch: Mapping[str, list["asyncio.Future[bytes | None]"]]) -> None:
        found = await self.client.query(self.server, self.database, self.catalog.texts, list(batch))
        for key, futures in batch.items():
            for future in futures:
                if not future.done():
                    future.set_result(found.get(key))


def _fail(batch: Mapping[str, list["asyncio.Future[bytes | None]"]], error: BaseException) -> None:
    for futures in batch.values():
        for future in futures:
            if not future.done():
                future.cancel() if isinstance(error, asyncio.CancelledError) else future.set_exception(error)
