"""Backups of a SQLite store and their restore: under writes, after kills, of damaged files, with other keys."""

import asyncio
import os
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.core.secret_fields import NO_TYPES
from setpoint.errors import StoreError, StoreInUse, UserError
from setpoint.stores.sqlite.backup import checked_record, write_backup
from setpoint.stores.sqlite.restore import RestoredStore, restore_backup
from setpoint.stores.sqlite.schema import MIGRATIONS
from setpoint.stores.sqlite.store import SqliteStore, open_sqlite
from tests.engine.clock import FakeClock
from tests.stores.audit import NOTHING_WRONG, audit
from tests.stores.killed_backups import NOW, names_in
from tests.stores.samples import instance, secret
from tests.stores.scratch import scratch_folder

ROOT = Path(__file__).parents[2]
LOGIN = secret(stringData={"password": "hunter2"})
THEN = "2026-01-01T00:00:00Z"


class Store:
    """A store with named resources, in a folder."""

    def __init__(self, path: Path, loop: asyncio.Runner, clock: FakeClock, new_uid: Callable[[], str]) -> None:
        self.path, self._loop = path, loop
        self._arguments = (clock, new_uid)

    def open(self) -> SqliteStore:
        return self._loop.run(open_sqlite(self.path, *self._arguments))

    def add(self, *names: str, with_secret: bool = False) -> None:
        store = self.open()
        for name in names:
            self._loop.run(store.apply(instance(name)))
        if with_secret:
            self._loop.run(store.apply(LOGIN))
        self._loop.run(store.close())

    def back_up(self, name: str = "kept.db", *, replaces: bool = False) -> Path:
        write_backup(self.path, self.path.with_name(name), THEN, replaces=replaces)
        return self.path.with_name(name)

    def restore(self, backup: Path) -> RestoredStore:
        return restore_backup(backup, self.path, NOW, NO_TYPES)


@pytest.fixture
def store(tmp_path: Path, loop: asyncio.Runner, clock: FakeClock, new_uid: Callable[[], str]) -> Store:
    """A store with `a` and `b`."""
    made = Store(tmp_path / "state.db", loop, clock, new_uid)
    made.add("a", "b")
    return made


def test_a_restore_brings_back_what_was_backed_up_and_keeps_what_it_replaces(store: Store) -> None:
    backup = store.back_up()
    store.add("c")

    restored = store.restore(backup)

    assert names_in(store.path) == "a,b"
    assert audit(store.path) == NOTHING_WRONG
    assert restored.kept == store.path.with_name("state.db.replaced-20260102T000000Z")
    assert names_in(restored.kept) == "a,b,c"
    assert restored.record.resources == 2
    assert restored.record.made_at == THEN
    store.add("d")
    assert names_in(store.path) == "a,b,d"


def test_a_backup_is_whole_while_a_process_writes(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    command = [sys.executable, "-m", "tests.stores.child_writer", str(path), "0"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        try:
            for number in range(10):
                before = child.stdout.readline()
                steps: list[tuple[int, int]] = []
                to = tmp_path / f"{number}.db"
                record = write_backup(path, to, NOW, lambda *step, seen=steps: seen.append(step))

                assert before
                assert checked_record(to, to) == record
                assert [copied for copied, _ in steps] == sorted({copied for copied, _ in steps}), "it began again"
        finally:
            child.kill()


def test_a_restore_is_refused_while_a_process_holds_the_store(store: Store, loop: asyncio.Runner) -> None:
    backup = store.back_up()
    held = store.open()

    with pytest.raises(StoreInUse, match=f"is in use by process {os.getpid()}"):
        store.restore(backup)

    loop.run(held.close())
    assert names_in(store.path) == "a,b"


def test_only_the_owner_reads_a_backup_and_none_is_replaced_unless_it_is_said(store: Store) -> None:
    backup = store.back_up()
    before = backup.read_bytes()
    store.add("c")

    with pytest.raises(UserError, match="exists: name another file, or replace it with --force"):
        store.back_up()

    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    assert backup.read_bytes() == before
    store.back_up(replaces=True)
    assert names_in(backup) == "a,b,c"
    assert not list(store.path.parent.glob(".*"))


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda whole: whole[: len(whole) // 2], "damaged"),
        (lambda whole: whole[:100], "damaged"),
        (lambda _: b"", "is no backup"),
        (lambda _: b"no database at all" * 1000, "is no backup, or damaged"),
        (lambda whole: whole.replace(b'"name":"a"', b'"name":"z"'), "was changed since the backup was made"),
        (lambda whole: whole[:4096] + b"\x00" * 4096 + whole[8192:], "damaged"),
        # A value that an index has, too.
        (lambda whole: whole[::-1].replace(b"tluafed", b"tluafex", 1)[::-1], "nothing was replaced; name another"),
    ],
)
def test_what_is_no_whole_backup_is_refused_and_the_store_stands(
    store: Store, damage: Callable[[bytes], bytes], says: str
) -> None:
    backup = store.back_up()
    damaged = damage(backup.read_bytes())
    assert damaged != backup.read_bytes()
    backup.write_bytes(damaged)
    before, files = store.path.read_bytes(), {one.name for one in store.path.parent.iterdir()}

    with pytest.raises(StoreError, match=says) as caught:
        store.restore(backup)

    assert "kept.db" in str(caught.value)
    assert store.path.read_bytes() == before
    assert {one.name for one in store.path.parent.iterdir()} == files


def test_another_programs_database_and_a_store_that_is_no_backup_are_refused(store: Store, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "other.db")) as connection:
        connection.execute("CREATE TABLE other (x)")
    copy = tmp_path / "copy.db"
    copy.write_bytes(store.path.read_bytes())

    with pytest.raises(StoreError, match="is another program's database"):
        store.restore(tmp_path / "other.db")
    with pytest.raises(StoreError, match="is no backup: name a file that setpoint backup made"):
        store.restore(copy)
    with pytest.raises(UserError, match="there is no backup at"):
        store.restore(tmp_path / "none.db")
    with pytest.raises(UserError, match="is a folder: name a file in it"):
        store.restore(tmp_path)
    with pytest.raises(UserError, match="is the store itself"):
        store.restore(store.path)
    with pytest.raises(UserError, match="is the store itself"):
        write_backup(store.path, store.path, NOW, replaces=True)


def test_a_damaged_store_is_not_backed_up_and_can_be_replaced(store: Store) -> None:
    backup = store.back_up()
    whole = store.path.read_bytes()
    store.path.write_bytes(whole[:4096] + b"\xff" * 4096 + whole[8192:])

    with pytest.raises(StoreError, match=r"state\.db is damaged"):
        store.back_up(replaces=True)
    restored = store.restore(backup)

    assert names_in(backup) == "a,b"
    assert names_in(store.path) == "a,b"
    assert audit(store.path) == NOTHING_WRONG
    assert restored.kept is not None
    assert restored.kept.read_bytes() == whole[:4096] + b"\xff" * 4096 + whole[8192:]


def test_a_backup_of_an_earlier_version_is_brought_up_to_date(store: Store) -> None:
    with closing(sqlite3.connect(store.path)) as connection:
        connection.executescript("DROP TABLE sets; PRAGMA user_version = 4;")
    backup = store.back_up()

    restored = store.restore(backup)

    assert (restored.record.version, restored.version) == (4, len(MIGRATIONS))
    store.add("c")
    assert names_in(store.path) == "a,b,c"


def test_a_backup_of_a_newer_version_is_refused(store: Store) -> None:
    backup = store.back_up()
    with closing(sqlite3.connect(backup)) as connection:
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")

    with pytest.raises(StoreError, match="use the newer setpoint that wrote it"):
        store.restore(backup)


def test_encrypted_values_come_back_with_the_key_that_is_beside_the_backup(
    store: Store, tmp_path: Path, loop: asyncio.Runner, clock: FakeClock, new_uid: Callable[[], str]
) -> None:
    store.add(with_secret=True)
    backup = store.back_up()
    elsewhere = Store(tmp_path / ".setpoint" / "state.db", loop, clock, new_uid)

    elsewhere.restore(backup)

    opened = elsewhere.open()
    (found,) = [one for one in loop.run(opened.list()).resources if one.ref.kind == "Secret"]
    loop.run(opened.close())
    assert found.document["data"] == {"password": "aHVudGVyMg=="}
    assert stat.S_IMODE(backup.with_name("kept.db.key").stat().st_mode) == 0o600


def test_a_store_never_gets_values_of_another_key(
    store: Store, tmp_path: Path, loop: asyncio.Runner, clock: FakeClock, new_uid: Callable[[], str]
) -> None:
    store.add(with_secret=True)
    backup = store.back_up()
    other = Store(tmp_path / ".setpoint" / "state.db", loop, clock, new_uid)
    other.path.parent.mkdir()
    other.add("x", with_secret=True)

    with pytest.raises(StoreError, match=r"is not the key of this store.*move .* away"):
        other.restore(backup)
    with pytest.raises(UserError, match="is the key of another store: name another file for the backup"):
        write_backup(other.path, backup, NOW, replaces=True)
    backup.with_name("kept.db.key").unlink()
    store.path.with_name("state.db.key").unlink()
    with pytest.raises(StoreError, match="is missing, and the store holds values encrypted with it"):
        store.restore(backup)

    assert names_in(other.path) == "login,x"
    assert checked_record(backup, backup).made_at == THEN


def test_killed_at_any_moment_a_restore_leaves_the_old_store_or_the_new_one(store: Store) -> None:
    lines = killed("restore", store)

    old = "store a,b,c wrong [] kept {} then a,b"
    new = "store a,b wrong [] kept ['a,b,c'] then a,b"
    expected = {f"killed {old.format([])}", f"killed {old.format(['a,b,c'])}", f"killed {new}", f"ended {new}"}
    assert set(lines) == expected
    assert len(lines) > 20


def test_killed_at_any_moment_a_backup_leaves_the_last_one_or_the_new_one(store: Store) -> None:
    lines = killed("backup", store)

    last, new = f"backup {THEN} a,b store a,b,c", f"backup {NOW} a,b,c store a,b,c"
    assert set(lines) == {f"killed {last}", f"killed {new}", f"ended {new}"}
    assert len(lines) > 10


def killed(verb: str, store: Store) -> list[str]:
    """What `killed_backups` says of a store with `c` and an earlier backup without it."""
    store.back_up()
    store.add("c")
    folder = store.path.parent.with_name(f"{store.path.parent.name}-killed")
    folder.mkdir()
    store.path.parent.rename(folder / "world")
    command = [sys.executable, "-m", "tests.stores.killed_backups", verb, str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.laws
@given(st.data())
def test_no_byte_of_the_tables_changes_unnoticed(data: st.DataObject) -> None:
    with scratch_folder() as folder:
        path, to = folder / "state.db", folder / "kept.db"
        with asyncio.Runner() as loop:
            numbers = iter(range(1000))
            Store(path, loop, FakeClock(), lambda: str(next(numbers))).add("a", "b")
        write_backup(path, to, NOW)
        with closing(sqlite3.connect(to)) as connection:
            table = data.draw(st.sampled_from(["resources", "bodies", "journal"]))
            columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            column = data.draw(st.sampled_from([one for one in columns if one not in ("id", "revision")]))
            value = data.draw(st.one_of(st.integers(-(2**63), 2**63 - 1), st.text(), st.binary()))
            before = connection.execute(f"SELECT {column} FROM {table} WHERE rowid = 1").fetchone()
            connection.execute(f"UPDATE OR IGNORE {table} SET {column} = ? WHERE rowid = 1", (value,))
            connection.commit()
            after = connection.execute(f"SELECT {column} FROM {table} WHERE rowid = 1").fetchone()
        if after == before and type(after[0]) is type(before[0]):
            checked_record(to, to)
        else:
            with pytest.raises(StoreError, match=r"was changed|damaged"):
                checked_record(to, to)
