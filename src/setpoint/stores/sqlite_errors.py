"""What SQLite's failures mean for the owner of a store, and what to do about each."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from setpoint.errors import StoreError

# By the beginning of SQLite's own name for the failure; the first that fits.
_MEANINGS: Final = (
    ("SQLITE_NOTADB", "is not a SQLite database: name another file, or move this one away"),
    ("SQLITE_CORRUPT", "is damaged: restore it from a copy, or move it away and apply everything again"),
    ("SQLITE_FULL", "cannot grow, the disk is full: make room and try again"),
    ("SQLITE_CANTOPEN", "cannot be opened: look whether its folder is there and who may write in it"),
    ("SQLITE_READONLY", "cannot be written: look at the permissions of the file and its folder"),
    ("SQLITE_PERM", "cannot be opened: look at the permissions of the file and its folder"),
    ("SQLITE_BUSY", "is locked by another program: close that program and try again"),
    ("SQLITE_IOERR", "cannot be read or written, the disk reports an error: look at the system's log"),
)


def store_error(error: sqlite3.Error, path: Path) -> StoreError:
    """`error` in our words, with SQLite's behind them."""
    name: str = getattr(error, "sqlite_errorname", "")
    meaning = next((words for start, words in _MEANINGS if name.startswith(start)), "failed")
    return StoreError(f"{path} {meaning} ({error})")


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Every failure of SQLite inside becomes a StoreError about `path`."""
    try:
        yield
    except sqlite3.Error as error:
        raise store_error(error, path) from error
