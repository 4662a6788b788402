"""A store of an earlier version, which kept secret values in plain text: encrypted once, whatever happens meanwhile."""

import asyncio
import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import pytest

from setpoint.core.secret_fields import SecretFields
from setpoint.core.values.json_types import JsonObject
from setpoint.engine.ports import EventRecord
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.errors import StoreError
from setpoint.stores.sqlite.database_file import connect_to_write
from setpoint.stores.sqlite.encryption import SecretCipher
from setpoint.stores.sqlite.schema import MIGRATIONS, SecretSealing, migrate
from setpoint.stores.sqlite.store import OpenMode
from tests.security.embedded_stores import OTHER, PASSWORD, SECRETS, USER, in_child, kill_self, opened
from tests.security.secret_places import bytes_of, kubernetes_object, secret, traces, user
from tests.stores.audit import NOTHING_WRONG, audit


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state.db"


class _Blind(SecretFields):
    """An earlier version, to which nothing but Secrets was secret."""

    def redacted(self, document: JsonObject) -> JsonObject:
        return document


MANIFESTS: tuple[JsonObject, ...] = (
    user(PASSWORD, annotations={"kapp.k14s.io/original": json.dumps(secret(PASSWORD))}),
    kubernetes_object(f"kind: Secret\nstringData: {{a: {PASSWORD}}}"),
    secret(PASSWORD),
    {**user("a"), "metadata": {"name": "no-password"}, "spec": {"instanceRef": {"external": "main"}}},
)


async def _write_earlier_store(path: Path) -> tuple[Resource, ...]:
    """A store as the version before wrote it, and what it holds."""
    store = await opened(path, secrets=_Blind())
    for manifest in MANIFESTS[2:]:
        await store.apply(manifest)
    for manifest in MANIFESTS[:2]:
        resource = await store.apply(manifest)
        condition = {"type": "Ready", "status": "False", "message": f"refused: {PASSWORD}"}
        updated = await store.update_status(resource, {"conditions": [condition, {"type": "Other"}], "a": PASSWORD[:4]})
        for number, message in enumerate((PASSWORD, f"{PASSWORD}!", OTHER)):
            at = "2026-01-01T00:00:00Z"
            await store.record_event(EventRecord(updated.ref, updated.uid, "Normal", f"r{number}", message, at))
    await store.apply({**user(PASSWORD), "metadata": {"name": "gone"}})
    await store.delete(USER._replace(name="gone"))
    before = (await store.list()).resources
    await store.close()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA secure_delete = OFF").fetchall()
        connection.execute("PRAGMA user_version = 1")
        for table in ("history", "sets"):
            # Of later versions.
            connection.execute(f"DROP TABLE {table}")
        connection.execute("CREATE TABLE scratch (text)")
        connection.executemany("INSERT INTO scratch VALUES (?)", [(f"{PASSWORD}{number}",) for number in range(500)])
        connection.execute("DROP TABLE scratch")
    assert PASSWORD.encode() in path.read_bytes()
    return before


def _declared(resources: tuple[Resource, ...]) -> Mapping[ResourceRef, tuple[str, str, str, int]]:
    return {one.ref: (one.author_digest, one.uid, one.revision, one.generation) for one in resources}


def test_a_store_of_an_earlier_version_is_encrypted_when_it_is_opened_and_means_the_same(path: Path) -> None:
    async def scenario() -> tuple[tuple[Resource, ...], tuple[Resource, ...], list[Resource], list[str]]:
        before = await _write_earlier_store(path)
        store = await opened(path)
        after = (await store.list()).resources
        applied = [await store.apply(manifest) for manifest in MANIFESTS]
        events = [event.message for event in await store.events(USER)]
        await store.close()
        return before, after, applied, events

    before, after, applied, events = asyncio.run(scenario())

    assert traces(PASSWORD, bytes_of(path.parent)) == []
    assert _declared(after) == _declared(before)
    # To apply them again is no change.
    assert _declared(tuple(applied)) == _declared(before)
    assert [one.spec for one in after] == [one.spec for one in before]
    assert {one.ref: one.document.get("data") for one in after} == {one.ref: one.document.get("data") for one in before}
    found = next(one for one in after if one.ref == USER)
    assert found.annotations == {}
    assert found.status["conditions"] == [
        {"type": "Ready", "status": "False", "message": "refused: (redacted)"},
        {"type": "Other"},
    ]
    assert events == ["(redacted)", "(redacted)!", OTHER]
    assert audit(path) == NOTHING_WRONG


def test_a_reader_reads_a_store_of_an_earlier_version_as_it_is(path: Path) -> None:
    async def scenario() -> tuple[tuple[Resource, ...], tuple[Resource, ...]]:
        before = await _write_earlier_store(path)
        reader = await opened(path, OpenMode.READ)
        found = (await reader.list()).resources
        await reader.close()
        return before, found

    before, found = asyncio.run(scenario())

    assert found == before


def test_a_store_of_an_earlier_version_without_its_key_is_left_as_it_is(path: Path) -> None:
    async def scenario() -> bytes:
        await _write_earlier_store(path)
        path.with_name("state.db.key").unlink()
        before = path.read_bytes()
        with pytest.raises(StoreError, match=r"state\.db\.key is missing"):
            await opened(path)
        return before

    before = asyncio.run(scenario())

    assert path.read_bytes() == before
    assert not path.with_name("state.db.key").exists()


def _migrate_until(path: Path, statement: str) -> None:
    """Migrates an earlier store, and is killed before that statement, or at the end."""
    connection = connect_to_write(path)
    connection.set_trace_callback(lambda one: kill_self() if one.startswith(statement) else None)
    migrate(connection, path, seal=SecretSealing(connection, SecretCipher(path.with_name("state.db.key")), SECRETS).run)
    kill_self()


@pytest.mark.parametrize(
    ("statement", "version"),
    [
        ("UPDATE bodies SET body", 1),
        ("UPDATE OR REPLACE notes", 1),
        ("COMMIT", 1),
        ("VACUUM", 2),
        ("PRAGMA user_version = 3", 2),
        ("CREATE TABLE sets", 3),
        ("the end", len(MIGRATIONS)),
    ],
)
def test_a_migration_that_is_killed_is_completed_by_the_next(path: Path, statement: str, version: int) -> None:
    async def reopen() -> tuple[Resource, ...]:
        store = await opened(path)
        found = (await store.list()).resources
        await store.close()
        return found

    before = asyncio.run(_write_earlier_store(path))
    in_child(lambda: _migrate_until(path, statement))
    with closing(sqlite3.connect(path)) as connection:
        reached = connection.execute("PRAGMA user_version").fetchone()
    after = asyncio.run(reopen())

    assert reached == (version,)
    assert _declared(after) == _declared(before)
    assert traces(PASSWORD, bytes_of(path.parent)) == []
    assert audit(path) == NOTHING_WRONG
