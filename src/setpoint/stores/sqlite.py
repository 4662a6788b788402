"""The embedded store: one SQLite file, one process that writes, any number that read.

The parts: sqlite_schema (tables), sqlite_tables and sqlite_ledger (rows), sqlite_writer (group commit),
sealing (Secrets), file_lock (one writing process).
"""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Final, TypeVar

from setpoint.engine.ports import EVERYTHING, Clock, Event, Lease, Listing, Note, Query
from setpoint.engine.resource import Resource, ResourceRef, Revision
from setpoint.errors import StoreError
from setpoint.stores.documents import Rule
from setpoint.stores.file_lock import FileLock
from setpoint.stores.journal import Page, matches
from setpoint.stores.leases import wall_seconds
from setpoint.stores.limits import DEFAULT_LIMITS, Limits
from setpoint.stores.manifests import kept_at
from setpoint.stores.records import LightResource, Record, to_resource, to_resources
from setpoint.stores.sealing import Seal
from setpoint.stores.sqlite_connections import connect_to_read, connect_to_write, prepare_file, require_file
from setpoint.stores.sqlite_errors import translated
from setpoint.stores.sqlite_ledger import Ledger
from setpoint.stores.sqlite_schema import migrate, require_current
from setpoint.stores.sqlite_tables import Tables
from setpoint.stores.sqlite_writer import Writer
from setpoint.stores.watching import Alarm, Bell, Lookout, follow
from setpoint.stores.writes import ResourceWrites

T = TypeVar("T")

# A list gives way to others after so many resources.
_SLICE: Final = 500
# How often a watch looks for what another process wrote.
_LOOK_SECONDS: Final = 0.25


class OpenMode(Enum):
    """What a store is opened for. One process at a time may write; reading is always possible."""

    READ = "read"
    WRITE = "write"


async def open_sqlite(
    path: Path,
    clock: Clock,
    new_uid: Callable[[], str],
    mode: OpenMode = OpenMode.WRITE,
    limits: Limits = DEFAULT_LIMITS,
) -> "SqliteStore":
    """The store in the file `path`, made when it is opened for writing and not there; `close` it when done.

    StoreInUse while another process has it open for writing; StoreError says what is wrong with the file.
    """
    path = path.absolute().resolve()
    opened = _open_to_write(path, limits) if mode is OpenMode.WRITE else _open_to_read(path, limits)
    return SqliteStore(path, clock, new_uid, opened)


@dataclass(frozen=True, slots=True)
class _Side:
    """One connection, and what is kept over it."""

    connection: sqlite3.Connection
    tables: Tables
    ledger: Ledger


@dataclass(frozen=True, slots=True)
class _Writing:
    """What only the writing process has."""

    side: _Side
    writer: Writer
    bell: Bell
    lock: FileLock


@dataclass(frozen=True, slots=True)
class _Opened:
    reading: _Side
    writing: _Writing | None


class SqliteStore(ResourceWrites):
    """A Store in one file. Reads run in the event loop, from a snapshot; writes in the writer's thread."""

    def __init__(self, path: Path, clock: Clock, new_uid: Callable[[], str], opened: _Opened) -> None:
        super().__init__(clock, new_uid)
        self._path = path
        self._reading = opened.reading
        self._writing = opened.writing
        self._is_open = True

    async def get(self, ref: ResourceRef) -> Resource | None:
        self._require_open()
        with translated(self._path):
            record = self._reading.tables.find(kept_at(ref))
        return None if record is None else to_resource(record)

    async def list(self, query: Query = EVERYTHING) -> Listing:
        tables = self._reading.tables
        with self._snapshot():
            rows = tables.find_all(query)
            revision = Revision(str(tables.last_revision()))
        found: list[Resource] = []
        for start in range(0, len(rows), _SLICE):
            if start:
                await asyncio.sleep(0)
            records = tables.records(rows[start : start + _SLICE])
            found += to_resources(one for one in records if not query.labels or matches(one, query))
        return Listing(tuple(found), revision)

    async def pages(self, query: Query = EVERYTHING, size: int = _SLICE) -> AsyncIterator[Listing]:
        tables = self._reading.tables
        after: ResourceRef | None = None
        with self._snapshot():
            first = Revision(str(tables.last_revision()))
        while True:
            with self._snapshot():
                rows = tables.find_some(query, after, size)
            records = list(tables.records(rows))
            yield Listing(tuple(LightResource(one) for one in records if matches(one, query)), first)
            if len(rows) < size:
                return
            after = records[-1].ref
            await asyncio.sleep(0)

    def watch(self, since: Revision, query: Query = EVERYTHING) -> AsyncIterator[Event]:
        alarm: Alarm = Lookout(self._clock, _LOOK_SECONDS) if self._writing is None else self._writing.bell
        return follow(self._page, alarm, since, query)

    async def note(self, note: Note) -> None:
        await self._write(lambda side: side.ledger.note(note))

    async def notes(self, ref: ResourceRef | None = None) -> tuple[Note, ...]:
        with self._snapshot():
            return self._reading.ledger.notes(ref)

    async def acquire(self, name: str, holder: str, seconds: float) -> Lease | None:
        # By the time of asking: a write that has to wait makes the lease shorter, never longer.
        now = wall_seconds(self._clock)
        asked = Lease(name, holder, 0, now + seconds)
        return await self._write(lambda side: side.ledger.acquire(asked, now))

    async def release(self, lease: Lease) -> None:
        await self._write(lambda side: side.ledger.release(lease))

    async def leases(self, prefix: str) -> tuple[Lease, ...]:
        with self._snapshot():
            return self._reading.ledger.leases(prefix)

    async def close(self) -> None:
        self._is_open = False
        # Before the writer's: the last connection to go empties the log into the file, and only the writer's can.
        self._reading.connection.close()
        if self._writing is not None:
            self._writing.bell.ring()
            await self._writing.writer.close()
            self._writing.lock.release()

    async def _change(self, ref: ResourceRef, rule: Rule) -> Record | None:
        return await self._write(lambda side: side.tables.change(ref, rule))

    async def _write(self, work: Callable[[_Side], T]) -> T:
        self._require_open()
        writing = self._writing
        if writing is None:
            raise StoreError(f"{self._path} was opened for reading: nothing can be written")
        return await writing.writer.run(lambda: work(writing.side))

    def _page(self, since: int, query: Query) -> Page:
        with self._snapshot():
            return self._reading.tables.changes(since, query)

    @contextmanager
    def _snapshot(self) -> Iterator[None]:
        """Everything read inside is of one moment. Nothing inside may wait: the connection is shared."""
        self._require_open()
        connection = self._reading.connection
        with translated(self._path):
            connection.execute("BEGIN")
            try:
                yield
            finally:
                if connection.in_transaction:
                    connection.execute("COMMIT")

    def _require_open(self) -> None:
        if not self._is_open:
            raise StoreError("the store is closed: open it again")


def _open_to_write(path: Path, limits: Limits) -> _Opened:
    prepare_file(path)
    with ExitStack() as undo, translated(path):
        lock = FileLock(path)
        undo.callback(lock.release)
        connection = connect_to_write(path)
        undo.callback(connection.close)
        migrate(connection, path)
        side = _side(connection, path, limits)
        second = connect_to_read(path)
        undo.callback(second.close)
        reading = _side(second, path, limits)
        bell = Bell()
        writer = Writer(connection, path, lambda: _forget_the_oldest(side.tables, limits), bell.ring)
        undo.pop_all()
    return _Opened(reading, _Writing(side, writer, bell, lock))


def _open_to_read(path: Path, limits: Limits) -> _Opened:
    require_file(path)
    with ExitStack() as undo, translated(path):
        connection = connect_to_read(path)
        undo.callback(connection.close)
        require_current(connection, path)
        side = _side(connection, path, limits)
        undo.pop_all()
    return _Opened(side, None)


def _side(connection: sqlite3.Connection, path: Path, limits: Limits) -> _Side:
    """StoreError when there are Secrets in the store, and their key is not beside it."""
    seal = Seal(path.with_name(f"{path.name}.key"))
    tables = Tables(connection, seal)
    sealed = tables.any_sealed()
    if sealed is not None:
        seal.require_key_of(sealed)
    return _Side(connection, tables, Ledger(connection, limits))


def _forget_the_oldest(tables: Tables, limits: Limits) -> None:
    beyond = tables.last_revision() - limits.changes
    if beyond > 0:
        tables.drop_changes_through(beyond)
