"""The tables of a SQLite store, and the migrations from one version of the file to the next."""

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Final, TypeAlias

from setpoint.errors import StoreError

Migration: TypeAlias = tuple[str, ...]

# "setp": tells the files of setpoint from databases of other programs.
_APPLICATION: Final = 0x73657470

# One migration for each version of the file. A released migration never changes: the next version gets a new one.
MIGRATIONS: Final[tuple[Migration, ...]] = (
    (
        # What authors wrote. A body is immutable; resources and journal refer to it. It is dropped when the journal no
        # longer reaches back to the revision that superseded it.
        """CREATE TABLE bodies (
            id INTEGER PRIMARY KEY,
            body BLOB NOT NULL,
            sealed BLOB,
            superseded INTEGER
        )""",
        "CREATE INDEX bodies_superseded ON bodies (superseded) WHERE superseded IS NOT NULL",
        "CREATE INDEX bodies_sealed ON bodies (id) WHERE sealed IS NOT NULL",
        """CREATE TABLE resources (
            grp TEXT NOT NULL, kind TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,
            uid TEXT NOT NULL,
            revision INTEGER NOT NULL,
            metadata BLOB NOT NULL,
            body INTEGER NOT NULL,
            status BLOB NOT NULL,
            engine_keys BLOB NOT NULL,
            UNIQUE (grp, kind, namespace, name)
        )""",
        # `shown` to `status` are the resource after the change, or before it when it was deleted. `was…` is the one
        # before a change of labels: to a watch by labels it was added or deleted.
        """CREATE TABLE journal (
            revision INTEGER PRIMARY KEY,
            change TEXT NOT NULL,
            grp TEXT NOT NULL, kind TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,
            uid TEXT NOT NULL,
            shown INTEGER NOT NULL, metadata BLOB NOT NULL, body INTEGER NOT NULL, status BLOB NOT NULL,
            was INTEGER, was_metadata BLOB, was_body INTEGER, was_status BLOB
        )""",
        """CREATE TABLE notes (
            id INTEGER PRIMARY KEY,
            grp TEXT NOT NULL, kind TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,
            uid TEXT NOT NULL,
            severity TEXT NOT NULL, reason TEXT NOT NULL, message TEXT NOT NULL, at TEXT NOT NULL,
            count INTEGER NOT NULL,
            UNIQUE (uid, reason, message)
        )""",
        """CREATE TABLE leases (
            name TEXT PRIMARY KEY, holder TEXT NOT NULL, fence INTEGER NOT NULL, expires REAL NOT NULL
        )""",
    ),
)


def migrate(connection: sqlite3.Connection, path: Path, steps: Sequence[Migration] = MIGRATIONS) -> None:
    """Brings the file to the newest version in one transaction: all missing migrations, or none."""
    if require_setpoint_file(connection, path, steps) == len(steps):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        for step in steps[_version(connection) :]:
            for statement in step:
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {_APPLICATION}")
        connection.execute(f"PRAGMA user_version = {len(steps)}")
        connection.execute("COMMIT")
    except sqlite3.Error:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def require_current(connection: sqlite3.Connection, path: Path, steps: Sequence[Migration] = MIGRATIONS) -> None:
    """StoreError unless the file has the newest version."""
    version = require_setpoint_file(connection, path, steps)
    if version < len(steps):
        raise StoreError(
            f"{path} has version {version}, and this setpoint reads version {len(steps)}: "
            "any command that writes brings it up to date, such as setpoint apply"
        )


def require_setpoint_file(connection: sqlite3.Connection, path: Path, steps: Sequence[Migration] = MIGRATIONS) -> int:
    """The version of the file, 0 for an empty one; StoreError when another program made it, or a newer setpoint."""
    version = _version(connection)
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if application != _APPLICATION and (tables or version):
        raise StoreError(f"{path} is another program's database: name another file")
    if version > len(steps):
        raise StoreError(
            f"{path} has version {version}, and this setpoint knows versions up to {len(steps)}: "
            "use the newer setpoint that wrote it"
        )
    return version


def _version(connection: sqlite3.Connection) -> int:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return int(version)
