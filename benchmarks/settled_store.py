"""A SQLite store with settled buckets: one is settled by a step, the others are written as copies of it."""

import asyncio
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from benchmarks.buckets import InMemoryStorage, Size, body_of, manifest_of, name_of, ref_of
from setpoint.clients.google.client import GoogleClient, GoogleSettings
from setpoint.clients.http import HttpClient
from setpoint.core.values.canonical import digest, sha256_hex
from setpoint.engine.context import EngineContext
from setpoint.engine.kind import AnyKind, secret_fields_of
from setpoint.engine.ports import SystemClock
from setpoint.engine.step.outcomes import Settled
from setpoint.engine.step.reconcile import step
from setpoint.kinds.gcp.storage_bucket import StorageBucketKind
from setpoint.kinds.gcp.storage_bucket.live import read_bucket
from setpoint.stores.journal import DEFAULT_LIMITS, JournaledChange
from setpoint.stores.records import ResourceRecord
from setpoint.stores.sqlite.database_file import connect_to_write
from setpoint.stores.sqlite.encryption import SecretCipher
from setpoint.stores.sqlite.store import OpenMode, SqliteStore, open_sqlite
from setpoint.stores.sqlite.tables import ResourceTables

CLOCK: Final = SystemClock()


def in_sync_service(count: int, size: Size, on_write: Callable[[str], None] = lambda _: None) -> InMemoryStorage:
    """A service in which `count` buckets are in sync, with prepared responses."""
    bodies = {name: body_of(name, size) for name in map(name_of, range(count))}
    return InMemoryStorage(bodies.get, on_write)


def engine_context_for(store: SqliteStore, google: GoogleClient) -> EngineContext:
    """An engine context with the kind of buckets alone."""
    kind: AnyKind = StorageBucketKind(google)
    return EngineContext(store, CLOCK, {(kind.group, kind.name): kind})


def write_settled_store(path: Path, count: int, size: Size) -> None:
    """Creates the store `path` with `count` settled buckets."""
    asyncio.run(_settle_first_bucket(path, size))
    connection = connect_to_write(path)
    try:
        tables = ResourceTables(connection, SecretCipher(path.with_suffix(".key")))
        connection.execute("BEGIN IMMEDIATE")
        first = tables.find(ref_of(0))
        assert first is not None
        for record in _copies_of(first, range(1, count), size):
            tables.change(record.ref, partial(_insert, record), _forget)
        tables.drop_changes_through(tables.last_revision() - DEFAULT_LIMITS.changes)
        connection.execute("COMMIT")
    finally:
        connection.close()


async def open_store(path: Path, mode: OpenMode = OpenMode.WRITE) -> SqliteStore:
    """The store, with what is secret in a bucket. A resource that is created in it gets the uid of the first bucket."""
    kind = StorageBucketKind(GoogleClient(HttpClient(), GoogleSettings()))
    secrets = secret_fields_of({(kind.group, kind.name): kind})
    return await open_sqlite(path, CLOCK, lambda: _uid(0), mode, secrets=secrets)


async def _settle_first_bucket(path: Path, size: Size) -> None:
    store = await open_store(path)
    try:
        await store.apply(manifest_of(0, size))
        outcome = await step(ref_of(0), engine_context_for(store, in_sync_service(1, size)))
        assert isinstance(outcome, Settled)
        assert outcome.ready.status == "True"
    finally:
        await store.close()


def _copies_of(first: ResourceRecord, numbers: Iterable[int], size: Size) -> Iterable[ResourceRecord]:
    """Records of other buckets, with the state after the same step."""
    old = (name_of(0).encode(), _uid(0).encode(), *_digests(0, size))
    for number in numbers:
        new = (name_of(number).encode(), _uid(number).encode(), *_digests(number, size))
        metadata, status = first.metadata, first.status
        for before, after in zip(old, new, strict=True):
            metadata, status = metadata.replace(before, after), status.replace(before, after)
        yield replace(first, ref=ref_of(number), uid=_uid(number), metadata=metadata, status=status)


def _forget(_change: JournaledChange) -> None:
    """No watch reads it."""


def _insert(record: ResourceRecord, _before: ResourceRecord | None) -> ResourceRecord:
    return record


def _uid(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012d}"


def _digests(number: int, size: Size) -> tuple[bytes, bytes]:
    """The digest of the live state and that of the response body: both depend on the name of the bucket."""
    name = name_of(number)
    body = body_of(name, size)
    return digest(read_bucket(body, name).bucket).encode(), sha256_hex(body).encode()
