"""The file of a SQLite store and the connections to it."""

import os
import sqlite3
from pathlib import Path
from typing import Final

from setpoint.errors import StoreError

# The folder that is ours to make. Any other has to be there: a typing error must not found a second, empty store.
OWN_FOLDER: Final = ".setpoint"

# FULL, not NORMAL. Either survives kill -9, because the log is with the system by the time of the answer. But NORMAL
# leaves it in the system's memory, and a power failure right after the claim of a resource would forget the claim
# while the cloud made the object: what is written down before acting has to be there after any crash. FULL costs one
# fsync per commit, and group commit shares it among all writes in flight.
_FOR_WRITING: Final = ("journal_mode = WAL", "synchronous = FULL")
_FOR_ALL: Final = ("busy_timeout = 5000", "temp_store = MEMORY")


def prepare_file(path: Path) -> None:
    """An empty file when there is none, for its owner only; the log beside it takes over the mode."""
    try:
        if path.parent.name == OWN_FOLDER and path.parent.parent.is_dir():
            path.parent.mkdir(mode=0o700, exist_ok=True)
        _require_folder(path)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    except OSError as error:
        raise StoreError(
            f"cannot open the store {path}: {error.strerror}; allow it, or name a store in another folder"
        ) from error


def require_file(path: Path) -> None:
    """StoreError when there is nothing to read."""
    _require_folder(path)
    if not path.is_file():
        raise StoreError(f"there is no store at {path}: apply something first, or name another store")


def connect_to_write(path: Path) -> sqlite3.Connection:
    """A connection that the writer's thread will use."""
    return _connect(path, "rw", (*_FOR_ALL, *_FOR_WRITING))


def connect_to_read(path: Path) -> sqlite3.Connection:
    """A connection that cannot write."""
    return _connect(path, "ro", _FOR_ALL)


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
