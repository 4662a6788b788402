"""Secret values in the file of an embedded store: encrypted wherever they stand, and gone once they are superseded."""

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from setpoint.app import StoreAccess, open_engine
from setpoint.core.redaction import REDACTED
from setpoint.core.values.json_types import JsonObject
from setpoint.engine.ports import EventRecord, Store
from setpoint.engine.resource import Resource, ResourceRef, Revision
from setpoint.stores.memory import MemoryStore
from tests.engine.clock import FakeClock
from tests.security.embedded_stores import OTHER, PASSWORD, SECRETS, USER, in_child, kill_self, opened
from tests.security.secret_places import (
    PLACES,
    bytes_of,
    kubernetes_object,
    places,
    secret,
    secret_values,
    settings_of,
    traces,
    user,
)
from tests.stores.audit import NOTHING_WRONG, audit
from tests.stores.samples import take
from tests.stores.scratch import scratch_folder

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


@pytest.fixture(scope="module", autouse=True)
def keeping_sqlite() -> Iterator[None]:
    """SQLite as it is by default: some systems build it so that it overwrites what is deleted."""
    connect = sqlite3.connect

    def connected(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*arguments, **options)
        connection.execute("PRAGMA secure_delete = OFF").fetchall()
        return connection

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sqlite3, "connect", connected)
        yield


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state.db"


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


@pytest.mark.parametrize("is_file", [True, False])
def test_a_watch_shows_what_is_superseded_without_its_secret_values(path: Path, is_file: bool) -> None:
    async def scenario() -> list[Resource]:
        numbers = count(1)
        memory = MemoryStore(FakeClock(), lambda: f"uid-{next(numbers)}", secrets=SECRETS)
        store: Store = await opened(path) if is_file else memory
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


@pytest.mark.parametrize(
    ("hook", "left"),
    [
        # Within the transaction, which is rolled back: the value is still in use.
        ("_tidy", [0]),
        # After the commit, before the log is emptied.
        ("_scrub", []),
        # After the answer.
        ("", []),
    ],
)
def test_a_deleted_value_is_gone_after_kill_9_and_reopening(path: Path, hook: str, left: list[int]) -> None:
    async def make() -> list[bytes]:
        store = await opened(path)
        await store.apply(user(PASSWORD))
        await store.close()
        return sealed_values(path)

    async def delete() -> None:
        store = await opened(path)
        assert store._writing is not None
        if hook:
            setattr(store._writing.writer, hook, kill_self)
        await store.delete(USER)
        kill_self()

    async def left_when_reopened() -> list[int]:
        store = await opened(path)
        found = left_of(old, path.parent)
        await store.close()
        return found

    old = asyncio.run(make())
    in_child(lambda: asyncio.run(delete()))

    assert asyncio.run(left_when_reopened()) == left
    assert audit(path) == NOTHING_WRONG


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
