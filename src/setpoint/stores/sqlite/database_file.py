"""The database file of a SQLite store: its lock, the connections to it, and SQLite's errors as StoreErrors."""

import fcntl
import os
import shlex
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from setpoint.errors import StoreError, StoreInUse

# By the prefix of SQLite's name for the error; the first match counts.
_MEANINGS: Final = (
    ("SQLITE_NOTADB", "is not a SQLite database: name another file, or move this one away"),
    ("SQLITE_CORRUPT", "is damaged: restore it from a copy, or move it away and apply everything again"),
    ("SQLITE_FULL", "cannot grow, the disk is full: make room and try again"),
    ("SQLITE_CANTOPEN", "cannot be opened: check that its folder exists and may be written to"),
    ("SQLITE_READONLY", "cannot be written: check the permissions of the file and its folder"),
    ("SQLITE_PERM", "cannot be opened: check the permissions of the file and its folder"),
    ("SQLITE_BUSY", "is locked by another program: close that program and try again"),
    ("SQLITE_IOERR", "cannot be read or written, the disk reports an error: check the system's log"),
)


def store_error(error: sqlite3.Error, path: Path) -> StoreError:
    """`error` as a StoreError that says what to do, followed by SQLite's own text."""
    name: str = getattr(error, "sqlite_errorname", "")
    meaning = next((words for start, words in _MEANINGS if name.startswith(start)), "failed")
    return StoreError(f"{path} {meaning} ({error})")


@contextmanager
def sqlite_errors(path: Path) -> Iterator[None]:
    """Every SQLite error inside becomes a StoreError about `path`."""
    try:
        yield
    except sqlite3.Error as error:
        raise store_error(error, path) from error


class FileLock:
    """Holds the lock on `<store>.lock` until `release` or the end of the process; StoreInUse names its holder."""

    def __init__(self, store: Path) -> None:
        path = store.with_name(f"{store.name}.lock")
        try:
            # Child processes do not inherit the descriptor, so none of them keeps the lock.
            self._file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+b", buffering=0)
        except OSError as error:
            raise StoreError(
                f"cannot write in {store.parent}: {error.strerror}; allow it, or name a store in another folder"
            ) from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = self._file.read(32).decode(errors="replace").strip() or "unknown"
            self._file.close()
            raise StoreInUse(
                f"{store} is in use by process {holder}: wait for it or stop it, or name another store"
            ) from error
        self._file.truncate(0)
        self._file.write(f"{os.getpid()}\n".encode())

    def release(self) -> None:
        """Releases the lock; a second call does nothing."""
        self._file.close()


# The only folder that is created. Any other has to exist: a typing error must not create a second, empty store.
OWN_FOLDER: Final = ".setpoint"

# FULL, not NORMAL. Either survives kill -9, because the log is with the operating system when the write is
# acknowledged. But NORMAL may lose it in a power failure, and with it the claim of a resource whose object the cloud
# has created: what is recorded before acting has to survive any crash. FULL costs one fsync for each commit, and group
# commit shares it among all writes in flight.
# With secure_delete, what is deleted is overwritten with zeros.
_FOR_WRITING: Final = ("journal_mode = WAL", "synchronous = FULL", "secure_delete = ON")
_BUSY_TIMEOUT: Final = "busy_timeout = 5000"
_FOR_ALL: Final = (_BUSY_TIMEOUT, "temp_store = MEMORY")
# Readers are done within a moment. One that is not must not hold up writers: the next commit tries again.
_TRUNCATE_MILLISECONDS: Final = 100


def prepare_file(path: Path) -> None:
    """Creates an empty file if there is none, with access for its owner only; the log beside it gets the same mode."""
    try:
        prepare_folder(path)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    except OSError as error:
        raise StoreError(
            f"cannot open the store {path}: {error.strerror}; allow it, or name a store in another folder"
        ) from error


def prepare_folder(path: Path) -> None:
    """Creates the folder of a store if it is the one that is created; StoreError when there is none."""
    if path.parent.name == OWN_FOLDER and path.parent.parent.is_dir():
        path.parent.mkdir(mode=0o700, exist_ok=True)
    _require_folder(path)


def require_file(path: Path) -> None:
    """StoreError when there is nothing to read; a folder that is not there may be a typing error, and is named."""
    _require_folder(path)
    require_store(path)


def require_store(path: Path) -> None:
    """StoreError without a file."""
    if not path.is_file():
        raise StoreError(f"there is no store at {path}: apply something first, or name another store")


def connect_to_write(path: Path) -> sqlite3.Connection:
    """A connection for the writer's thread."""
    return _connect(path, "rw", (*_FOR_ALL, *_FOR_WRITING))


def connect_to_read(path: Path) -> sqlite3.Connection:
    """A connection that cannot write."""
    return _connect(path, "ro", _FOR_ALL)


def truncate_log(connection: sqlite3.Connection) -> bool:
    """Moves the log into the file and empties it, with all earlier pages in it; False while a reader prevents that."""
    connection.execute(f"PRAGMA busy_timeout = {_TRUNCATE_MILLISECONDS}").fetchall()
    try:
        (busy, _, _) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    finally:
        connection.execute(f"PRAGMA {_BUSY_TIMEOUT}").fetchall()
    return not busy


def access_of_others(store: Path) -> str:
    """Which file of a store other users can read or write, and what to do; empty when there is none."""
    for suffix in ("", "-wal", "-shm", ".key"):
        path = store.with_name(f"{store.name}{suffix}")
        mode = _mode_of(path)
        verbs = [verb for verb, bits in (("read", 0o044), ("written", 0o022)) if mode & bits]
        if verbs:
            advice = f"run chmod 600 {shlex.quote(str(store))}*"
            return f"{path} can be {' and '.join(verbs)} by others (mode {mode:04o}): {advice}"
    return ""


def _mode_of(path: Path) -> int:
    """The permissions of a file; none for one that is not there, or is removed meanwhile."""
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except OSError:
        return 0


def _connect(path: Path, mode: str, settings: tuple[str, ...]) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{path.as_uri()}?mode={mode}", uri=True, isolation_level=None, check_same_thread=False
    )
    try:
        for setting in settings:
            connection.execute(f"PRAGMA {setting}").fetchall()
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _require_folder(path: Path) -> None:
    if not path.parent.is_dir():
        raise StoreError(f"there is no folder {path.parent}: make it, or name a store in another folder")
