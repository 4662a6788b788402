"""Secret values in the file of an embedded store: encrypted wherever they stand, and gone once they are superseded."""

import asyncio
import json
import os
import signal
import sqlite3
from collections.abc import Callable, Coroutine, Mapping
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from setpoint.app import StoreAccess, open_engine
from setpoint.core.redaction import REDACTED, SecretFields
from setpoint.core.values.json_types import JsonObject
from setpoint.engine.kind import secret_fields_of
from setpoint.engine.ports import EventRecord, Store
from setpoint.engine.resource import Resource, ResourceRef, Revision
from setpoint.errors import StoreError
from setpoint.stores.sqlite.database_file import connect_to_write
from setpoint.stores.sqlite.encryption import SecretCipher
from setpoint.stores.sqlite.schema import SecretSealing, migrate
from setpoint.stores.sqlite.store import OpenMode, SqliteStore, open_sqlite
from setpoint.stores.sqlite.writer import GroupCommitWriter
from tests.engine.clock import FakeClock
from tests.security.secret_places import (
    PLACES,
    bytes_of,
    kubernetes_object,
    places,
    resource_types,
    secret,
    secret_values,
    settings_of,
    traces,
    user,
)
from tests.stores.audit import NOTHING_WRONG, audit
from tests.stores.samples import take
from tests.stores.scratch import scratch_folder

SECRETS = secret_fields_of(resource_types().values())
USER = ResourceRef("sql.cnrm.cloud.google.com", "SQLUser", "default", "app")
PASSWORD = "correct horse battery staple"
OTHER = "Sesame, öffne dich"


# --- Laws ------------------------------------------------------------------------------------------------------------


@pytest.mark.laws
@pytest.mark.parametrize("place", sorted(PLACES))
@settings(max_examples=3)
@given(secret_values, secret_values)
def test_no_secret_value_of_any_kind_is_in_a_file_of_a_store(place: str, text: str, other: str) -> None:
    with scratch_folder() as folder:
        while_open = asyncio.run(_lifetime(folder, PLACES[place], text, other))

        for content in (while_open, bytes_of(folder)):
            assert traces(text, content) == []
            assert traces(other, content) == []


async def _lifetime(folder: Path, place: Callable[[str], JsonObject], text: str, other: str) -> bytes:
    """Everything that is done with a resource; what the files hold before the store is closed."""
    async with open_engine(settings_of(folder), StoreAccess.WRITE) as engine:
        store = engine.store
        created = await store.apply(place(text))
        event = EventRecord(created.ref, created.uid, "Normal", "Created", "created", "2026-01-01T00:00:00Z")
        await store.record_event(event)
        held = await store.set_finalizers(await store.update_status(created, {"seen": True}), ("x.dev/f",))
        assert held is not None
        changed = await store.apply(place(other))
        replaced = await store.replace(changed, {**place(text), "metadata": changed.document["metadata"]})
        await store.delete(replaced.ref)
        await store.set_finalizers(await _present(store, replaced.ref), ())
        made = await store.create(place(text))

        assert made.uid != created.uid
        return bytes_of(folder)


async def _present(store: Store, ref: ResourceRef) -> Resource:
    found = await store.get(ref)
    assert found is not None
    return found


@pytest.mark.laws
@given(places, secret_values)
def test_a_resource_reads_as_it_was_written(place: str, text: str) -> None:
    async def scenario(folder: Path) -> tuple[Resource, Resource | None, Resource]:
        async with open_engine(settings_of(folder), StoreAccess.WRITE) as engine:
            written = await engine.store.apply(PLACES[place](text))
            again = await engine.store.apply(PLACES[place](text))
        async with open_engine(settings_of(folder), StoreAccess.READ) as engine:
            return written, await engine.store.get(written.ref), again

    with scratch_folder() as folder:
        written, read, again = asyncio.run(scenario(folder))
    plain = Resource({**PLACES[place](text), "metadata": {}})

    assert read == written == again
    if written.ref.kind != "Secret":
        # The intent digest covers this: that of a store before encryption is the same.
        assert read.author_digest == plain.author_digest


# --- Values that are changed or deleted ------------------------------------------------------------------------------


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state.db"


def opened(
    path: Path, mode: OpenMode = OpenMode.WRITE, secrets: SecretFields = SECRETS
) -> Coroutine[Any, Any, SqliteStore]:
    numbers = count(1)
    return open_sqlite(path, FakeClock(), lambda: f"uid-{next(numbers)}", mode, secrets=secrets)


def sealed_values(path: Path) -> list[bytes]:
    """The encrypted values, in the order of their bodies."""
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
        return [value for (value,) in connection.execute("SELECT sealed FROM bodies WHERE sealed IS NOT NULL")]


def left_of(values: list[bytes], folder: Path) -> list[int]:
    """Which of these encrypted values are in a file, even in part."""
    content = bytes_of(folder)
    return [number for number, value in enumerate(values) if value[9:25] in content or value[-16:] in content]


@pytest.mark.parametrize("manifest", [user, secret, lambda text: kubernetes_object(secret(text))])
def test_an_encrypted_value_is_in_no_file_once_it_is_changed_or_deleted(
    path: Path, manifest: Callable[[str], JsonObject]
) -> None:
    async def scenario() -> tuple[list[bytes], list[int], list[int]]:
        store = await opened(path)
        first = await store.apply(manifest(PASSWORD))
        old = sealed_values(path)
        await store.update_status(first, {"seen": True})
        await store.apply(manifest(OTHER))
        changed = left_of(old, path.parent)
        old += sealed_values(path)
        await store.delete(first.ref)
        deleted = left_of(old, path.parent)
        await store.close()
        return old, changed, deleted

    old, changed, deleted = asyncio.run(scenario())

    assert len(old) == 2
    assert (changed, deleted, left_of(old, path.parent)) == ([], [], [])


def test_a_watch_shows_what_is_superseded_without_its_secret_values(path: Path) -> None:
    async def scenario() -> list[Resource]:
        store = await opened(path)
        for text in (PASSWORD, OTHER):
            await store.apply(user(text))
            await store.apply(secret(text))
        await store.delete(USER)
        await store.apply(user(PASSWORD))
        events = await take(store.watch(Revision("0")), 6)
        await store.close()
        return [event.resource for event in events]

    first, old_secret, second, new_secret, deleted, present = asyncio.run(scenario())

    assert [one.spec["password"] for one in (first, second, deleted)] == [{"value": REDACTED}] * 3
    assert present.spec["password"] == {"value": PASSWORD}
    assert "data" not in old_secret.document
    assert new_secret.document["data"] == {"password": "U2VzYW1lLCDDtmZmbmUgZGljaA=="}


def test_a_reader_that_holds_a_snapshot_only_delays_that_the_log_is_emptied(path: Path) -> None:
    async def scenario() -> tuple[list[int], list[int]]:
        store = await opened(path)
        await store.apply(user(PASSWORD))
        old = sealed_values(path)
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, isolation_level=None)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM resources").fetchall()
            await store.delete(USER)
            meanwhile = left_of(old, path.parent)
        await store.apply(user(OTHER))
        afterwards = left_of(old, path.parent)
        await store.close()
        return meanwhile, afterwards

    meanwhile, afterwards = asyncio.run(scenario())

    assert (meanwhile, afterwards) == ([0], [])


def _in_child(work: Callable[[], None]) -> None:
    """Runs a function in a forked process, which kills itself."""
    child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(9)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), status


def _kill_self() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("moment", ["before the log is emptied", "after the answer"])
def test_a_deleted_value_is_gone_after_kill_9_and_reopening(
    path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    async def make() -> list[bytes]:
        store = await opened(path)
        await store.apply(user(PASSWORD))
        await store.apply(secret(PASSWORD))
        await store.close()
        return sealed_values(path)

    async def delete_both() -> None:
        store = await opened(path)
        await store.delete(ResourceRef("", "Secret", "default", "login"))
        if moment == "before the log is emptied":
            monkeypatch.setattr(GroupCommitWriter, "_attempt", _then_kill(GroupCommitWriter._attempt))
        await store.delete(USER)
        _kill_self()

    old = asyncio.run(make())
    _in_child(lambda: asyncio.run(delete_both()))

    async def reopen() -> None:
        await (await opened(path)).close()

    asyncio.run(reopen())

    assert len(old) == 2
    gone = left_of(old, path.parent)
    # The transaction that was under way is rolled back: its value is still in use.
    assert gone == ([0] if moment == "before the log is emptied" else [])
    assert audit(path) == NOTHING_WRONG


def _then_kill(attempt: Callable[..., Any]) -> Callable[..., Any]:
    def killed(*arguments: Any) -> Any:
        attempt(*arguments)
        _kill_self()

    return killed


programs = st.lists(
    st.tuples(st.sampled_from(("apply", "status", "delete")), st.integers(0, 5), st.integers(0, 3000)), max_size=40
)


@pytest.mark.laws
@given(programs)
def test_no_superseded_value_is_left_whatever_is_written_meanwhile(program: list[tuple[str, int, int]]) -> None:
    async def scenario(folder: Path) -> set[bytes]:
        store, seen = await opened(folder / "state.db"), set[bytes]()
        for verb, name, size in program:
            ref = USER._replace(name=f"app-{name}")
            present = await store.get(ref)
            if verb == "apply":
                await store.apply({**user("x" * (size + 1)), "metadata": {"name": ref.name}})
            elif verb == "delete":
                await store.delete(ref)
            elif present is not None:
                await store.update_status(present, {"text": "y" * size})
            seen |= set(sealed_values(folder / "state.db"))
        await store.close()
        return seen

    with scratch_folder() as folder:
        seen = asyncio.run(scenario(folder))
        current = set(sealed_values(folder / "state.db"))
        superseded = sorted(seen - current)

        assert left_of(superseded, folder) == []
        assert left_of(sorted(current), folder) == list(range(len(current)))


# --- A store of an earlier version -----------------------------------------------------------------------------------


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
    connection.set_trace_callback(lambda one: _kill_self() if one.startswith(statement) else None)
    migrate(connection, path, seal=SecretSealing(connection, SecretCipher(path.with_name("state.db.key")), SECRETS).run)
    _kill_self()


@pytest.mark.parametrize(
    ("statement", "version"),
    [
        ("UPDATE bodies SET body", 1),
        ("UPDATE OR REPLACE notes", 1),
        ("COMMIT", 1),
        ("VACUUM", 2),
        ("PRAGMA user_version = 3", 2),
        ("the end", 3),
    ],
)
def test_a_migration_that_is_killed_is_completed_by_the_next(path: Path, statement: str, version: int) -> None:
    async def reopen() -> tuple[Resource, ...]:
        store = await opened(path)
        found = (await store.list()).resources
        await store.close()
        return found

    before = asyncio.run(_write_earlier_store(path))
    _in_child(lambda: _migrate_until(path, statement))
    with closing(sqlite3.connect(path)) as connection:
        reached = connection.execute("PRAGMA user_version").fetchone()
    after = asyncio.run(reopen())

    assert reached == (version,)
    assert _declared(after) == _declared(before)
    assert traces(PASSWORD, bytes_of(path.parent)) == []
    assert audit(path) == NOTHING_WRONG
