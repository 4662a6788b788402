"""The restore of a backup: it replaces a store by one rename, and keeps what was there before."""

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from setpoint.core.secret_fields import SecretFields
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.errors import StoreError, UserError
from setpoint.file_creation import create_file
from setpoint.stores.sqlite.backup import RECORD_TABLE, BackupRecord, checked_record, key_of, sync_folder
from setpoint.stores.sqlite.database_file import (
    FileLock,
    connect_to_write,
    prepare_folder,
    sqlite_errors,
    store_error,
    truncate_log,
)
from setpoint.stores.sqlite.encryption import SecretCipher
from setpoint.stores.sqlite.schema import SecretSealing, migrate

_LOG_FILES: Final = ("-wal", "-shm")


@dataclass(frozen=True, slots=True)
class RestoredStore:
    """What was restored, and where the store is that it replaced: None where there was none."""

    record: BackupRecord
    version: int
    kept: Path | None


def restore_backup(backup: Path, store: Path, now: str, secrets: SecretFields) -> RestoredStore:
    """Replaces the store by the backup, brought up to date; StoreInUse while a process holds it.

    A process that is killed meanwhile leaves the old store or the new one. StoreError, and the store as it was, for
    anything but a whole backup, or one whose key is missing.
    """
    if backup.is_dir():
        raise UserError(f"{backup} is a folder: name a file in it")
    if not backup.is_file():
        raise UserError(f"there is no backup at {backup}: name a file that setpoint backup made")
    if store.exists() and store.samefile(backup):
        raise UserError(f"{backup} is the store itself: name a backup of it")
    with _file_errors(store):
        prepare_folder(store)
        lock = FileLock(store)
        try:
            with _staged(backup, store) as staged:
                record = checked_record(staged, backup)
                _install_key(backup, store, staged, record)
                version = _bring_up_to_date(staged, store, secrets)
                kept = _keep_aside(store, now)
                staged.replace(store)
                sync_folder(store.parent)
        finally:
            lock.release()
    return RestoredStore(record, version, kept)


@contextmanager
def _staged(backup: Path, store: Path) -> Iterator[Path]:
    """A copy of the backup beside the store. The lock keeps other processes out; a killed one may have left some."""
    staged = store.with_name(f".{store.name}.restoring")
    files = [staged.with_name(f"{staged.name}{suffix}") for suffix in ("", "-journal", *_LOG_FILES)]
    for path in files:
        path.unlink(missing_ok=True)
    try:
        create_file(staged, [])
        with backup.open("rb") as source, staged.open("wb") as target:
            shutil.copyfileobj(source, target, 1 << 20)
            target.flush()
            os.fsync(target.fileno())
        yield staged
    finally:
        for path in files:
            path.unlink(missing_ok=True)


def _install_key(backup: Path, store: Path, staged: Path, record: BackupRecord) -> None:
    """Sees that the key of the backup is that of the store. A store never changes its key: that takes two renames."""
    if not record.is_encrypted:
        return
    with closing(sqlite3.connect(staged)) as connection:
        (encrypted,) = connection.execute("SELECT sealed FROM bodies WHERE sealed IS NOT NULL LIMIT 1").fetchone()
    own, brought = key_of(store), key_of(backup)
    if own.exists():
        try:
            SecretCipher(own).require_key_of(encrypted)
        except StoreError as error:
            raise StoreError(
                f"{error}. The backup holds values encrypted with another key: move {store} and {own} away, "
                f"and restore with {brought} beside the backup"
            ) from error
        return
    SecretCipher(brought).require_key_of(encrypted)
    fresh = own.with_name(f"{own.name}.new")
    fresh.unlink(missing_ok=True)
    create_file(fresh, [brought.read_bytes()])
    fresh.rename(own)
    sync_folder(own.parent)


def _bring_up_to_date(staged: Path, store: Path, secrets: SecretFields) -> int:
    """The version of the file after all migrations; the record is taken out."""
    with sqlite_errors(staged), closing(connect_to_write(staged)) as connection:
        connection.execute(f"DROP TABLE {RECORD_TABLE}")
        migrate(connection, staged, seal=SecretSealing(connection, SecretCipher(key_of(store)), secrets).run)
        if not truncate_log(connection):
            raise StoreError(f"{staged} is read by another program: close that program and try again")
        (version,) = connection.execute("PRAGMA user_version").fetchone()
    return int(version)


def _keep_aside(store: Path, now: str) -> Path | None:
    """Gives the store a second name, and moves its log into it: from here on a rename replaces all of it."""
    if not store.exists():
        return None
    _empty_log(store)
    kept = _free_name(store, now)
    os.link(store, kept)
    if key_of(store).exists():
        os.link(key_of(store), key_of(kept))
    for suffix in _LOG_FILES:
        log = store.with_name(f"{store.name}{suffix}")
        if log.exists() and log.stat().st_size and suffix == "-wal":
            os.link(log, kept.with_name(f"{kept.name}{suffix}"))
        # What reads the old file goes on with the old log.
        log.unlink(missing_ok=True)
    sync_folder(store.parent)
    return kept


def _empty_log(store: Path) -> None:
    """A store that is damaged keeps its log, under the new name. StoreError while a reader prevents it."""
    try:
        with closing(connect_to_write(store)) as connection:
            if not truncate_log(connection):
                raise StoreError(f"{store} is read by another process: close it, and restore again")
    except sqlite3.DatabaseError as error:
        name = getattr(error, "sqlite_errorname", "")
        if not name.startswith(("SQLITE_NOTADB", "SQLITE_CORRUPT", "SQLITE_IOERR_SHORT_READ")):
            raise store_error(error, store) from error


def _free_name(store: Path, now: str) -> Path:
    """The name of a replaced store: by the time, and a number where there are several of one second."""
    start = f"{store.name}.replaced-{now.replace(':', '').replace('-', '')}"
    number, kept = 1, store.with_name(start)
    while kept.exists():
        number += 1
        kept = store.with_name(f"{start}-{number}")
    return kept


@contextmanager
def _file_errors(store: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        named = error.filename or store
        advice = "nothing was replaced; make that possible, and restore again"
        raise StoreError(f"{named}: {error.strerror}: {advice}") from error
