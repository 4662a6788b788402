"""The file of a SQLite store: opening, locking and errors."""

import asyncio
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Coroutine
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from setpoint.core.values.canonical import canonical
from setpoint.engine.ports import EventRecord
from setpoint.engine.resource import Revision
from setpoint.errors import StoreError, StoreInUse
from setpoint.stores.journal import DEFAULT_LIMITS, StoreLimits
from setpoint.stores.sqlite.store import OpenMode, SqliteStore, open_sqlite
from tests.engine.clock import FakeClock
from tests.stores.audit import NOTHING_WRONG, audit
from tests.stores.samples import REF, brief, instance, take
from tests.stores.scratch import scratch_folder


@dataclass
class Opener:
    """Opens stores in one loop, with one clock and one source of ids."""

    loop: asyncio.Runner
    clock: FakeClock
    new_uid: Callable[[], str]

    def __call__(
        self, path: Path, mode: OpenMode = OpenMode.WRITE, limits: StoreLimits = DEFAULT_LIMITS
    ) -> SqliteStore:
        return self.loop.run(open_sqlite(path, self.clock, self.new_uid, mode, limits))


@pytest.fixture
def opened(loop: asyncio.Runner, clock: FakeClock, new_uid: Callable[[], str]) -> Opener:
    return Opener(loop, clock, new_uid)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state.db"


def test_everything_is_kept_when_the_store_is_reopened(path: Path, opened: Opener, loop: asyncio.Runner) -> None:
    store = opened(path)
    kept = loop.run(store.annotate(loop.run(store.apply(instance())), {"cookie": "c"}))
    event = EventRecord(REF, kept.uid, "Normal", "r", "m", "2026-01-01T00:00:00Z")
    loop.run(store.record_event(event))
    lease = loop.run(store.acquire("shard", "me", 15))
    loop.run(store.close())

    store = opened(path)
    listing = loop.run(store.list())
    events = loop.run(take(store.watch(Revision("0")), 2))
    same = loop.run(store.apply(instance()))

    assert listing.resources == (kept,)
    assert brief(events) == [("added", "db"), ("modified", "db")]
    assert same == kept
    assert loop.run(store.events()) == (event,)
    assert lease is not None
    assert loop.run(store.acquire("shard", "me", 15)) == lease
    loop.run(store.close())


def test_the_bytes_of_a_spec_are_those_that_were_applied_however_often_its_status_changes(
    opened: Opener, loop: asyncio.Runner
) -> None:
    manifest = instance(spec={"b": 1.0, "a": [True, None, 2**70], "é": "\U0001f600"})
    with scratch_folder() as folder:
        store = opened(folder / "state.db")
        resource = loop.run(store.apply(manifest))
        for number in range(1_000):
            resource = loop.run(store.update_status(resource, {"observed": number}))
        loop.run(store.close())
        with closing(sqlite3.connect(folder / "state.db")) as connection:
            bodies = connection.execute("SELECT body FROM bodies").fetchall()

    ((body,),) = bodies
    assert b'"spec":' + canonical(manifest["spec"]) in body
    assert body == canonical({name: manifest[name] for name in ("apiVersion", "kind", "spec")})


def test_a_second_writer_is_refused_with_the_holder_of_the_store(
    path: Path, opened: Opener, loop: asyncio.Runner
) -> None:
    store = opened(path)

    with pytest.raises(StoreInUse, match=rf"state\.db is in use by process {os.getpid()}: wait for it or stop it"):
        opened(path)

    loop.run(store.close())
    loop.run(opened(path).close())


def test_a_second_process_is_refused_with_the_holder_of_the_store(
    path: Path, opened: Opener, loop: asyncio.Runner
) -> None:
    store = opened(path)
    imports = "from pathlib import Path; from setpoint.stores.sqlite.database_file import FileLock"
    script = f"{imports}; FileLock(Path({str(path)!r}))"

    other = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    loop.run(store.close())

    assert f"StoreInUse: {path} is in use by process {os.getpid()}" in other.stderr


def test_a_reader_sees_concurrent_writes_and_cannot_write(path: Path, opened: Opener, loop: asyncio.Runner) -> None:
    writer = opened(path)
    reader = opened(path, OpenMode.READ)

    created = loop.run(writer.apply(instance()))
    loop.run(writer.record_event(EventRecord(REF, "u", "Normal", "r", "m", "")))

    assert loop.run(reader.get(REF)) == created
    assert loop.run(reader.list()).resources == (created,)
    assert len(loop.run(reader.events())) == 1
    refused: tuple[Coroutine[Any, Any, object], ...] = (
        reader.apply(instance()),
        reader.delete(REF),
        reader.acquire("a", "b", 1),
    )
    for write in refused:
        with pytest.raises(StoreError, match=r"state\.db was opened for reading: nothing can be written"):
            loop.run(write)
    loop.run(reader.close())
    loop.run(writer.close())


def test_the_watch_of_a_reader_polls_for_commits_of_another_process(
    path: Path, opened: Opener, loop: asyncio.Runner, clock: FakeClock
) -> None:
    writer, reader = opened(path), opened(path, OpenMode.READ)

    async def scenario() -> list[tuple[str, str]]:
        watcher = asyncio.create_task(take(reader.watch(Revision("0")), 1))
        await asyncio.sleep(0)
        await writer.apply(instance())
        return brief(await watcher)

    assert loop.run(scenario()) == [("added", "db")]
    assert clock.seconds > 0
    loop.run(reader.close())
    loop.run(writer.close())


def test_a_reader_opens_a_store_without_a_writer(path: Path, opened: Opener, loop: asyncio.Runner) -> None:
    writer = opened(path)
    created = loop.run(writer.apply(instance()))
    loop.run(writer.close())

    reader = opened(path, OpenMode.READ)

    assert loop.run(reader.get(REF)) == created
    loop.run(reader.close())


def test_folder_and_file_are_accessible_to_their_owner_only(
    tmp_path: Path, opened: Opener, loop: asyncio.Runner
) -> None:
    path = tmp_path / ".setpoint" / "state.db"

    loop.run(opened(path).close())

    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_link_to_a_store_is_that_store(path: Path, opened: Opener, loop: asyncio.Runner) -> None:
    store = opened(path)
    link = path.with_name("link.db")
    link.symlink_to(path)

    with pytest.raises(StoreInUse):
        opened(link)
    loop.run(store.close())


@pytest.mark.parametrize("mode", list(OpenMode))
def test_a_folder_that_is_not_there_is_named(tmp_path: Path, opened: Opener, mode: OpenMode) -> None:
    with pytest.raises(StoreError, match=r"there is no folder .*/typo: make it, or name a store in another folder"):
        opened(tmp_path / "typo" / "state.db", mode)


def test_a_reader_needs_a_store(path: Path, opened: Opener) -> None:
    with pytest.raises(StoreError, match=r"there is no store at .*state\.db: apply something first"):
        opened(path, OpenMode.READ)

    assert not path.exists()


@pytest.mark.skipif(not Path("/sys/kernel").is_dir(), reason="needs a folder that not even root can write in")
def test_a_folder_that_cannot_be_written_is_named(opened: Opener) -> None:
    with pytest.raises(StoreError, match=r"cannot open the store /sys/kernel/state\.db: .*; allow it, or name"):
        opened(Path("/sys/kernel/state.db"))


def test_a_folder_instead_of_a_file_is_named(tmp_path: Path, opened: Opener) -> None:
    with pytest.raises(StoreError, match="Is a directory"):
        opened(tmp_path)


@pytest.mark.parametrize("mode", list(OpenMode))
def test_a_file_that_is_no_database_is_left_alone(path: Path, opened: Opener, mode: OpenMode) -> None:
    path.write_bytes(b"apiVersion: v1\n" * 100)

    with pytest.raises(
        StoreError, match=r"state\.db is not a SQLite database: name another file, or move this one away"
    ):
        opened(path, mode)

    assert path.read_bytes() == b"apiVersion: v1\n" * 100


@pytest.mark.parametrize("mode", list(OpenMode))
def test_a_truncated_file_is_reported_as_damaged(
    path: Path, opened: Opener, loop: asyncio.Runner, mode: OpenMode
) -> None:
    store = opened(path)
    for number in range(20):
        loop.run(store.apply(instance(f"db-{number}")))
    loop.run(store.close())
    os.truncate(path, path.stat().st_size // 2 // 4096 * 4096)

    with pytest.raises(StoreError, match=r"state\.db is damaged: restore it from a copy"):
        opened(path, mode)


def test_a_corrupt_page_is_reported_as_damaged_when_it_is_read(
    path: Path, opened: Opener, loop: asyncio.Runner
) -> None:
    store = opened(path)
    for number in range(50):
        loop.run(store.apply(instance(f"db-{number}", spec={"text": "x" * 500})))
    loop.run(store.close())
    content = bytearray(path.read_bytes())
    half = len(content) // 2
    content[half:] = b"\xa5" * (len(content) - half)
    path.write_bytes(content)

    store = opened(path, OpenMode.READ)
    with pytest.raises(StoreError, match=r"state\.db is damaged: restore it from a copy"):
        loop.run(store.list())
    loop.run(store.close())


def test_another_program_s_database_is_left_alone(path: Path, opened: Opener) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE bookmarks (url)")
        connection.commit()

    with pytest.raises(StoreError, match=r"state\.db is another program's database: name another file"):
        opened(path)


@pytest.mark.parametrize("mode", list(OpenMode))
def test_a_newer_file_is_left_alone(path: Path, opened: Opener, loop: asyncio.Runner, mode: OpenMode) -> None:
    loop.run(opened(path).close())
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 99")

    with pytest.raises(StoreError, match=r"has version 99, and this setpoint knows versions up to 5: use the newer"):
        opened(path, mode)


def test_a_failed_open_releases_the_lock(path: Path, opened: Opener, loop: asyncio.Runner) -> None:
    path.write_bytes(b"not a database" * 100)
    with pytest.raises(StoreError, match="is not a SQLite database"):
        opened(path)
    path.unlink()

    loop.run(opened(path).close())

    assert audit(path) == NOTHING_WRONG
