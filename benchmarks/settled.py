"""A store on disk with settled buckets: one is settled by a step, the others are written as that step left it."""

import asyncio
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from benchmarks.buckets import Service, Size, body_of, manifest_of, name_of, ref_of
from setpoint.clients.google.client import GoogleClient
from setpoint.core.values.canonical import digest, sha256_hex
from setpoint.engine.context import EngineContext, Settled
from setpoint.engine.kind import AnyKind
from setpoint.engine.ports import SystemClock
from setpoint.engine.step.reconcile import step
from setpoint.kinds.gcp.storage_bucket import StorageBucketKind
from setpoint.kinds.gcp.storage_bucket.live import read_bucket
from setpoint.stores.journal import DEFAULT_LIMITS
from setpoint.stores.records import ResourceRecord
from setpoint.stores.sqlite.database_file import connect_to_write
from setpoint.stores.sqlite.encryption import SecretCipher
from setpoint.stores.sqlite.store import OpenMode, SqliteStore, open_sqlite
from setpoint.stores.sqlite.tables import ResourceTables

CLOCK: Final = SystemClock()


def service_of(count: int, size: Size, written: Callable[[str], None] = lambda _: None) -> Service:
    """A service in which all of them are as they should be, at hand."""
    bodies = {name: body_of(name, size) for name in map(name_of, range(count))}
    return Service(bodies.get, written)


def world_of(store: SqliteStore, google: GoogleClient) -> EngineContext:
    """The world with buckets alone."""
    kind: AnyKind = StorageBucketKind(google)
    return EngineContext(store, CLOCK, {(kind.group, kind.name): kind})


def settle(path: Path, count: int, size: Size) -> None:
    """Makes the store `path` with so many buckets, none of which has anything left to do."""
    asyncio.run(_settle_the_first(path, size))
    connection = connect_to_write(path)
    try:
        tables = ResourceTables(connection, SecretCipher(path.with_suffix(".key")))
        connection.execute("BEGIN IMMEDIATE")
        first = tables.find(ref_of(0))
        assert first is not None
        for record in _like(first, range(1, count), size):
            tables.change(record.ref, partial(_made, record))
        tables.drop_changes_through(tables.last_revision() - DEFAULT_LIMITS.changes)
        connection.execute("COMMIT")
    finally:
        connection.close()


async def open_store(path: Path, mode: OpenMode = OpenMode.WRITE) -> SqliteStore:
    """The store; whatever is made in it now is the first."""
    return await open_sqlite(path, CLOCK, lambda: _uid(0), mode)


async def _settle_the_first(path: Path, size: Size) -> None:
    store = await open_store(path)
    try:
        await store.apply(manifest_of(0, size))
        outcome = await step(ref_of(0), world_of(store, service_of(1, size)))
        assert isinstance(outcome, Settled)
        assert outcome.ready.status == "True"
    finally:
        await store.close()


def _like(first: ResourceRecord, numbers: Iterable[int], size: Size) -> Iterable[ResourceRecord]:
    """Other buckets, right after the same step."""
    old = (name_of(0).encode(), _uid(0).encode(), *_digests(0, size))
    for number in numbers:
        new = (name_of(number).encode(), _uid(number).encode(), *_digests(number, size))
        metadata, status = first.metadata, first.status
        for before, after in zip(old, new, strict=True):
            metadata, status = metadata.replace(before, after), status.replace(before, after)
        yield replace(first, ref=ref_of(number), uid=_uid(number), metadata=metadata, status=status)


def _made(record: ResourceRecord, _before: ResourceRecord | None) -> ResourceRecord:
    return record


def _uid(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012d}"


def _digests(number: int, size: Size) -> tuple[bytes, bytes]:
    """The second half of its cookie, and that of the bytes it came in: a bucket's name is a part of both."""
    name = name_of(number)
    body = body_of(name, size)
    return digest(read_bucket(body, name).bucket).encode(), sha256_hex(body).encode()
