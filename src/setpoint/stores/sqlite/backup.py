"""Backups of a store: a consistent copy while others write to it, with a record by which a restore checks it."""

import hashlib
import os
import secrets
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Final

import msgspec

from setpoint import __version__
from setpoint.errors import StoreError, UserError
from setpoint.file_creation import create_file
from setpoint.stores.sqlite.database_file import connect_to_read, require_store, sqlite_errors
from setpoint.stores.sqlite.schema import require_readable, require_setpoint_file

# The table of a backup that holds its record. A store has none.
RECORD_TABLE: Final = "backup_record"
# Pages that are copied between two calls of `progress`: 4 MB.
_PAGES: Final = 1024
_TABLES: Final = f"""
    SELECT name, sql FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name != '{RECORD_TABLE}'
    ORDER BY name"""

# Called with the pages that are copied, and all of them.
Progress = Callable[[int, int], None]


class BackupRecord(msgspec.Struct, frozen=True, rename="camel"):
    """What a backup says about itself; `digest` is that of every row of every table."""

    made_at: str
    setpoint: str
    # Of the store's file; a restore brings it up to date.
    version: int
    rows: Mapping[str, int]
    digest: str
    # Whether it holds encrypted values, which only the key of its store decrypts.
    is_encrypted: bool

    @property
    def resources(self) -> int:
        """How many resources it holds."""
        return self.rows.get("resources", 0)


def key_of(path: Path) -> Path:
    """The file with the key of a store, or of a backup."""
    return path.with_name(f"{path.name}.key")


def write_backup(
    store: Path, to: Path, now: str, progress: Progress = lambda *_: None, *, replaces: bool = False
) -> BackupRecord:
    """Copies the store into the file `to`, which appears when it is complete and checked. Only its owner can read it.

    Writes of other processes go on meanwhile; the copy is what was committed when it began. UserError when there is
    such a file, unless it `replaces` it.
    """
    require_store(store)
    _require_free(to, store, replaces=replaces)
    with _file_errors(to), _fresh_file(to) as fresh:
        with closing(_opened(store)) as source:
            _copy(source, fresh, progress)
        record = _complete(fresh, now, store)
        if record.is_encrypted:
            _copy_key(store, to)
        _put_in_place(fresh, to, replaces=replaces)
    return record


def checked_record(copy: Path, shown: Path) -> BackupRecord:
    """The record of the backup in the file `copy`; StoreError, about `shown`, for anything but a whole backup."""
    with _no_backup(shown), closing(_connect(copy)) as connection:
        version = require_setpoint_file(connection, shown)
        record = _record_in(connection, shown)
        require_whole(connection, shown, _other_backup(shown))
        digest, rows = content_digest(connection)
    if (digest, rows, version) != (record.digest, record.rows, record.version):
        raise StoreError(f"{shown} was changed since the backup was made: {_other_backup(shown)}")
    return record


def require_whole(connection: sqlite3.Connection, shown: Path, advice: str) -> None:
    """StoreError, with the advice, when SQLite finds damage."""
    with sqlite_errors(shown):
        found = [text for (text,) in connection.execute("PRAGMA integrity_check(3)")]
    if found != ["ok"]:
        raise StoreError(f"{shown} is damaged ({'; '.join(found)}): {advice}")


def content_digest(connection: sqlite3.Connection) -> tuple[str, Mapping[str, int]]:
    """The digest of all tables, and how many rows each of them has."""
    digest, rows, encode = hashlib.sha256(), dict[str, int](), msgspec.msgpack.Encoder().encode
    for name, sql in connection.execute(_TABLES).fetchall():
        digest.update(encode((name, sql)))
        number = 0
        for row in connection.execute(f'SELECT rowid, * FROM "{name}" ORDER BY rowid'):
            digest.update(encode(row))
            number += 1
        rows[name] = number
    return digest.hexdigest(), rows


def sync_folder(path: Path) -> None:
    """Puts the names of the files in a folder on disk."""
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


# --- Writing ----------------------------------------------------------------------------------------------------------


def _require_free(to: Path, store: Path, *, replaces: bool) -> None:
    with _file_errors(to):
        if to.is_dir():
            raise UserError(f"{to} is a folder: name a file in it")
        if to.exists() and to.samefile(store):
            raise UserError(f"{to} is the store itself: name another file")
        if to.exists() and not replaces:
            raise UserError(f"{to} exists: name another file, or replace it with --force")


@contextmanager
def _fresh_file(to: Path) -> Iterator[Path]:
    """An empty file beside `to`, which is removed at the end if it is still there."""
    fresh = to.with_name(f".{to.name}.{secrets.token_hex(4)}.partial")
    create_file(fresh, [])
    try:
        yield fresh
    finally:
        for path in (fresh, fresh.with_name(f"{fresh.name}-journal")):
            with suppress(OSError):
                path.unlink(missing_ok=True)


def _opened(store: Path) -> sqlite3.Connection:
    """A connection that keeps one snapshot: a commit of another process would make the copy start again."""
    with sqlite_errors(store):
        connection = connect_to_read(store)
        try:
            require_readable(connection, store)
            connection.execute("BEGIN")
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except BaseException:
            connection.close()
            raise
    return connection


def _copy(source: sqlite3.Connection, fresh: Path, progress: Progress) -> None:
    with sqlite_errors(fresh), closing(_connect(fresh)) as target:
        source.backup(target, pages=_PAGES, progress=lambda _, left, total: progress(total - left, total))
        # One file, that can be read where nothing may be written.
        target.execute("PRAGMA journal_mode = DELETE").fetchall()


def _complete(fresh: Path, now: str, store: Path) -> BackupRecord:
    """Checks the copy, and adds the record."""
    with sqlite_errors(store), closing(_connect(fresh)) as connection:
        require_whole(connection, store, "restore it from a backup")
        version = require_setpoint_file(connection, store)
        digest, rows = content_digest(connection)
        row = connection.execute("SELECT 1 FROM bodies WHERE sealed IS NOT NULL LIMIT 1").fetchone()
        record = BackupRecord(now, __version__, version, rows, digest, row is not None)
        connection.execute(f"CREATE TABLE {RECORD_TABLE} (record BLOB NOT NULL)")
        connection.execute(f"INSERT INTO {RECORD_TABLE} VALUES (?)", (msgspec.json.encode(record),))
    _sync_file(fresh)
    return record


def _copy_key(store: Path, to: Path) -> None:
    """Puts the key beside the backup; StoreError when the store has none, or there is another one."""
    source, target = key_of(store), key_of(to)
    if not source.exists():
        raise StoreError(f"{source} is missing, and the store holds values encrypted with it: put the key file back")
    key = source.read_bytes()
    if target.exists():
        if target.read_bytes() != key:
            raise UserError(f"{target} is the key of another store: name another file for the backup")
        return
    with _fresh_file(target) as fresh:
        fresh.unlink()
        create_file(fresh, [key])
        fresh.rename(target)


def _put_in_place(fresh: Path, to: Path, *, replaces: bool) -> None:
    if replaces:
        fresh.replace(to)
    else:
        # Unlike a rename it fails when there is a file by now.
        os.link(fresh, to)
        fresh.unlink()
    sync_folder(to.parent)


def _sync_file(path: Path) -> None:
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


@contextmanager
def _file_errors(to: Path) -> Iterator[None]:
    try:
        yield
    except FileExistsError as error:
        raise UserError(f"{to} exists: name another file, or replace it with --force") from error
    except OSError as error:
        raise UserError(f"{to}: {error.strerror}: name a file in a folder that you can write to") from error


# --- Reading ----------------------------------------------------------------------------------------------------------


def _connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.as_uri()}?mode=rw", uri=True, isolation_level=None)


@contextmanager
def _no_backup(shown: Path) -> Iterator[None]:
    """What SQLite says of a file that is no database, or half of one."""
    try:
        yield
    except sqlite3.Error as error:
        raise StoreError(f"{shown} is no backup, or damaged ({error}): {_other_backup(shown)}") from error


def _record_in(connection: sqlite3.Connection, shown: Path) -> BackupRecord:
    found = connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (RECORD_TABLE,)).fetchone()
    if found is None:
        raise StoreError(f"{shown} is no backup: name a file that setpoint backup made")
    row = connection.execute(f"SELECT record FROM {RECORD_TABLE}").fetchone()
    try:
        return msgspec.json.decode(b"" if row is None else row[0], type=BackupRecord)
    except (msgspec.MsgspecError, TypeError) as error:
        raise StoreError(f"{shown} has a record that cannot be read: {_other_backup(shown)}") from error


def _other_backup(shown: Path) -> str:
    return f"nothing was replaced; name another backup than {shown.name}"
