"""The SQLite store: one file, one writing process, any number of readers.

Its parts: schema (tables and migrations), tables (rows), writer (group commit), encryption (secret values) and
database_file (lock, connections, errors).
"""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from enum import Enum
from pathlib import Path
from typing import Final, TypeVar

from setpoint.core.secret_fields import NO_TYPES, SecretFields
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.engine.ports import EVERYTHING, Clock, EventRecord, Lease, ResourceChange, ResourceList, ResourceQuery
from setpoint.engine.resource import Resource, ResourceRef, Revision
from setpoint.engine.sets.resource_set import SetRecord
from setpoint.engine.step.reports import HistoryEntry
from setpoint.errors import StoreError
from setpoint.stores.journal import (
    DEFAULT_LIMITS,
    ChangeSignal,
    CommitSignal,
    JournaledChange,
    JournalPage,
    PollingSignal,
    RecentChanges,
    StoreLimits,
    follow_journal,
    matches,
)
from setpoint.stores.lease_rules import unix_seconds
from setpoint.stores.manifest_types import ANY_TYPE, ManifestTypes
from setpoint.stores.manifests import stored_ref
from setpoint.stores.mutations import Mutation
from setpoint.stores.record_store import RecordStore
from setpoint.stores.records import ResourceRecord, to_resource
from setpoint.stores.sqlite.database_file import (
    FileLock,
    connect_to_read,
    connect_to_write,
    prepare_file,
    require_file,
    sqlite_errors,
    store_error,
    truncate_log,
)
from setpoint.stores.sqlite.encryption import SecretCipher
from setpoint.stores.sqlite.history_table import HistoryTable
from setpoint.stores.sqlite.schema import SecretSealing, migrate, require_readable
from setpoint.stores.sqlite.tables import EventAndLeaseTables, ResourceTables, all_sets, keep_set
from setpoint.stores.sqlite.writer import GroupCommitWriter

T = TypeVar("T")

# A list yields to other tasks after so many resources.
_RESOURCES_BEFORE_YIELD: Final = 500
# How often a watch polls for commits of another process.
_POLL_SECONDS: Final = 0.25
# So many changes of this process are kept for its watches, which are rarely further behind; less of large resources.
_RECENT_CHANGES: Final = 64
_RECENT_BYTES: Final = 4_000_000
# The journal holds at most this share more than its limit.
_TRIMS_PER_LIMIT: Final = 64


class OpenMode(Enum):
    """What a store is opened for. One process at a time may write; any number may read."""

    READ = "read"
    WRITE = "write"


async def open_sqlite(
    path: Path,
    clock: Clock,
    new_uid: Callable[[], str],
    mode: OpenMode = OpenMode.WRITE,
    limits: StoreLimits = DEFAULT_LIMITS,
    *,
    secrets: SecretFields = NO_TYPES,
    types: ManifestTypes = ANY_TYPE,
) -> "SqliteStore":
    """The store in the file `path`, created if need be when opened for writing; `close` it when done.

    `secrets` finds the values that are encrypted; manifests of `types` are checked against them. StoreInUse while
    another process has it open for writing; StoreError says what is wrong with the file.
    """
    path = path.absolute().resolve()
    opened = _open_to_write(path, limits, secrets) if mode is OpenMode.WRITE else _open_to_read(path, limits)
    return SqliteStore(path, clock, new_uid, opened, secrets=secrets, types=types)


@dataclass(frozen=True, slots=True)
class _Connected:
    """One connection, and the tables over it."""

    connection: sqlite3.Connection
    tables: ResourceTables
    events_and_leases: EventAndLeaseTables
    history: HistoryTable


@dataclass(frozen=True, slots=True)
class _Writing:
    """What only the writing process has."""

    connected: _Connected
    writer: GroupCommitWriter
    commits: CommitSignal
    recent: RecentChanges
    lock: FileLock


@dataclass(frozen=True, slots=True)
class _Committed:
    """What a commit of resources answers."""

    records: tuple[ResourceRecord | None, ...]
    changes: Sequence[JournaledChange]


@dataclass(frozen=True, slots=True)
class _Opened:
    reading: _Connected
    writing: _Writing | None


class SqliteStore(RecordStore):
    """A Store in one file. Reads run in the event loop, from a snapshot; writes in the writer's thread."""

    def __init__(
        self,
        path: Path,
        clock: Clock,
        new_uid: Callable[[], str],
        opened: _Opened,
        *,
        secrets: SecretFields,
        types: ManifestTypes,
    ) -> None:
        super().__init__(clock, new_uid, secrets, types)
        self._path = path
        self._reading = opened.reading
        self._writing = opened.writing
        self._is_open = True

    async def get(self, ref: ResourceRef) -> Resource | None:
        self._require_open()
        try:
            record = self._reading.tables.find(stored_ref(ref))
        except sqlite3.Error as error:
            raise store_error(error, self._path) from error
        return None if record is None else to_resource(record)

    async def get_many(self, refs: Sequence[ResourceRef]) -> tuple[Resource | None, ...]:
        self._require_open()
        stored, records = [stored_ref(ref) for ref in refs], dict[ResourceRef, ResourceRecord]()
        for start in range(0, len(stored), _RESOURCES_BEFORE_YIELD):
            if start:
                await asyncio.sleep(0)
            with sqlite_errors(self._path):
                records |= self._reading.tables.find_many(stored[start : start + _RESOURCES_BEFORE_YIELD])
        return tuple(None if (found := records.get(ref)) is None else to_resource(found) for ref in stored)

    async def list(self, query: ResourceQuery = EVERYTHING) -> ResourceList:
        tables = self._reading.tables
        with self._snapshot():
            rows = tables.find_all(query)
            revision = Revision(str(tables.last_revision()))
        found: list[Resource] = []
        for start in range(0, len(rows), _RESOURCES_BEFORE_YIELD):
            if start:
                await asyncio.sleep(0)
            records = tables.records(rows[start : start + _RESOURCES_BEFORE_YIELD])
            found += (to_resource(one) for one in records if not query.labels or matches(one, query))
        return ResourceList(tuple(found), revision)

    async def pages(
        self, query: ResourceQuery = EVERYTHING, size: int = _RESOURCES_BEFORE_YIELD
    ) -> AsyncIterator[ResourceList]:
        tables = self._reading.tables
        after: ResourceRef | None = None
        with self._snapshot():
            first = Revision(str(tables.last_revision()))
        while True:
            with self._snapshot():
                rows = tables.find_some(query, after, size)
            records = list(tables.records(rows))
            yield ResourceList(tuple(to_resource(one) for one in records if matches(one, query)), first)
            if len(rows) < size:
                return
            after = records[-1].ref
            await asyncio.sleep(0)

    def watch(self, since: Revision, query: ResourceQuery = EVERYTHING) -> AsyncIterator[ResourceChange]:
        signal: ChangeSignal = (
            PollingSignal(self._clock, _POLL_SECONDS) if self._writing is None else self._writing.commits
        )
        return follow_journal(self._page, signal, since, query)

    async def record_event(self, event: EventRecord) -> None:
        await self._write(lambda connected: connected.events_and_leases.record_event(event))

    async def events(self, ref: ResourceRef | None = None) -> tuple[EventRecord, ...]:
        with self._snapshot():
            return self._reading.events_and_leases.events(ref)

    async def history(self, ref: ResourceRef, *, before: int | None = None, most: int = 100) -> Sequence[HistoryEntry]:
        """See HistoryStore."""
        with self._snapshot():
            return self._reading.history.of(ref, before, most)

    async def acquire(self, name: str, holder: str, seconds: float) -> Lease | None:
        # From the time of the request: a write that has to wait makes the lease shorter, never longer.
        now = unix_seconds(self._clock)
        asked = Lease(name, holder, 0, now + seconds)
        return await self._write(lambda connected: connected.events_and_leases.acquire(asked, now))

    async def release(self, lease: Lease) -> None:
        await self._write(lambda connected: connected.events_and_leases.release(lease))

    async def leases(self, prefix: str) -> tuple[Lease, ...]:
        with self._snapshot():
            return self._reading.events_and_leases.leases(prefix)

    async def sets(self) -> tuple[SetRecord, ...]:
        with self._snapshot():
            return all_sets(self._reading.connection)

    async def close(self) -> None:
        self._is_open = False
        # Before the writer's connection: the last one to close checkpoints the log, and only the writer's can.
        self._reading.connection.close()
        if self._writing is not None:
            self._writing.commits.notify()
            await self._writing.writer.close()
            self._writing.lock.release()

    async def _commit(
        self,
        changes: Sequence[tuple[ResourceRef, Mutation]],
        events: Sequence[EventRecord] = (),
        history: Sequence[HistoryEntry] = (),
        *,
        sets: Sequence[SetRecord] = (),
    ) -> tuple[ResourceRecord | None, ...]:
        now = self._clock.now() if history else ""

        def work(connected: _Connected) -> _Committed:
            journaled: list[JournaledChange] = []
            records = tuple([connected.tables.change(ref, mutation, journaled.append) for ref, mutation in changes])
            for event in events:
                connected.events_and_leases.record_event(event)
            if history:
                connected.history.add(changes[0][0], history, now)
            for one in sets:
                keep_set(connected.connection, one)
            return _Committed(records, journaled)

        return (await self._write(work)).records

    async def _write(self, work: Callable[[_Connected], T]) -> T:
        self._require_open()
        writing = self._writing
        if writing is None:
            raise StoreError(f"{self._path} was opened for reading: nothing can be written")
        return await writing.writer.run(lambda: work(writing.connected))

    def _page(self, since: int, query: ResourceQuery) -> JournalPage:
        self._require_open()
        recent = None if self._writing is None else self._writing.recent.since(since)
        if recent is not None:
            return recent
        with sqlite_errors(self._path):
            # Mostly there is a change: a commit has led to this.
            page = self._reading.tables.changes_found(since, query)
        if page is not None:
            return page
        with self._snapshot():
            return self._reading.tables.changes(since, query)

    @contextmanager
    def _snapshot(self) -> Iterator[None]:
        """Everything read inside is of one snapshot. Nothing inside may await: the connection is shared."""
        self._require_open()
        connection = self._reading.connection
        with sqlite_errors(self._path):
            connection.execute("BEGIN")
            try:
                yield
            finally:
                if connection.in_transaction:
                    connection.execute("COMMIT")

    def _require_open(self) -> None:
        if not self._is_open:
            raise StoreError("the store is closed: open it again")


def _open_to_write(path: Path, limits: StoreLimits, secrets: SecretFields) -> _Opened:
    prepare_file(path)
    with ExitStack() as undo, sqlite_errors(path):
        lock = FileLock(path)
        undo.callback(lock.release)
        connection = connect_to_write(path)
        undo.callback(connection.close)
        migrate(connection, path, seal=SecretSealing(connection, _cipher(path), secrets).run)
        connected = _connected(connection, path, limits)
        # A process that was killed may have left values in the log that it had dropped.
        connected.tables.has_dropped_secrets = not truncate_log(connection)
        second = connect_to_read(path)
        undo.callback(second.close)
        reading = _connected(second, path, limits)
        commits, recent = CommitSignal(), RecentChanges(min(_RECENT_CHANGES, limits.changes), _RECENT_BYTES)
        writer = GroupCommitWriter(
            connection,
            path,
            _JournalTrim(connected.tables, limits),
            _announcement(recent, commits),
            scrub=lambda: _scrub_log(connected),
            rolled_back=connected.events_and_leases.forget_count,
        )
        undo.pop_all()
    return _Opened(reading, _Writing(connected, writer, commits, recent, lock))


def _announcement(recent: RecentChanges, commits: CommitSignal) -> Callable[[Sequence[object]], None]:
    """Keeps the changes of a transaction for the watches of this process, and wakes them."""

    def announce(results: Sequence[object]) -> None:
        for result in results:
            for entry in result.changes if isinstance(result, _Committed) else ():
                recent.add(entry)
        commits.notify()

    return announce


def _open_to_read(path: Path, limits: StoreLimits) -> _Opened:
    require_file(path)
    with ExitStack() as undo, sqlite_errors(path):
        connection = connect_to_read(path)
        undo.callback(connection.close)
        require_readable(connection, path)
        connected = _connected(connection, path, limits)
        undo.pop_all()
    return _Opened(connected, None)


def _connected(connection: sqlite3.Connection, path: Path, limits: StoreLimits) -> _Connected:
    """StoreError when the store holds encrypted values and their key is missing."""
    cipher = _cipher(path)
    tables = ResourceTables(connection, cipher)
    encrypted = tables.any_encrypted()
    if encrypted is not None:
        cipher.require_key_of(encrypted)
    return _Connected(connection, tables, EventAndLeaseTables(connection, limits), HistoryTable(connection, limits))


def _cipher(path: Path) -> SecretCipher:
    return SecretCipher(path.with_name(f"{path.name}.key"))


def _scrub_log(connected: _Connected) -> None:
    """Empties the log if it may hold values that were dropped."""
    tables = connected.tables
    if tables.has_dropped_secrets and truncate_log(connected.connection):
        tables.has_dropped_secrets = False


class _JournalTrim:
    """Drops the oldest changes, many at once: to drop one in each transaction writes pages that it would not touch."""

    def __init__(self, tables: ResourceTables, limits: StoreLimits) -> None:
        self._tables = tables
        self._limit = limits.changes
        # Where a transaction was rolled back, the next trim is later.
        self._dropped_through = 0

    def __call__(self) -> None:
        beyond = self._tables.last_revision() - self._limit
        if beyond - self._dropped_through > self._limit // _TRIMS_PER_LIMIT:
            self._tables.drop_changes_through(beyond)
            self._dropped_through = beyond
