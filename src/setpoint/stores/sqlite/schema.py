"""The tables of a SQLite store, and the migrations from one version of the file to the next."""

import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from itertools import takewhile
from pathlib import Path
from typing import Any, Final, TypeAlias

from setpoint.core.secret_fields import SecretFields, without_texts
from setpoint.core.values.canonical import canonical
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.engine.resource import ResourceRef
from setpoint.errors import StoreError
from setpoint.stores.manifests import redacted_body, without_secret_copies
from setpoint.stores.records import decode
from setpoint.stores.sqlite.encryption import SecretCipher
from setpoint.stores.sqlite.tables import SqlRow, associated_data

Migration: TypeAlias = tuple[str, ...]

# "setp": tells the files of setpoint from databases of other programs.
_APPLICATION: Final = 0x73657470

# Encrypts the secret values of specs, and drops superseded ones, as `SecretSealing` does. The tables are the same.
SEAL: Final[Migration] = ("SEAL",)
# Writes the whole file anew: no unused part of it holds what was deleted before.
SCRUB: Final[Migration] = ("VACUUM",)

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
    SEAL,
    SCRUB,
    (
        """CREATE TABLE history (
            id INTEGER PRIMARY KEY,
            grp TEXT NOT NULL, kind TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,
            type TEXT NOT NULL, at TEXT NOT NULL,
            entry BLOB NOT NULL
        )""",
        "CREATE INDEX history_of ON history (grp, kind, namespace, name, id)",
    ),
    # Sets of resources: the record of each, as JSON. Which resources are in it is on record in these.
    ("CREATE TABLE sets (name TEXT PRIMARY KEY, record BLOB NOT NULL)",),
)
# Files from this version on are read as they are; only a writer brings them up to date.
_READABLE: Final = 1


def migrate(
    connection: sqlite3.Connection,
    path: Path,
    steps: Sequence[Migration] = MIGRATIONS,
    *,
    seal: Callable[[], None] = lambda: None,
) -> None:
    """Brings the file to the newest version in one transaction: all missing migrations, or none.

    `seal` carries out SEAL. SCRUB is a transaction of its own: a process that is killed before it does so next time.
    """
    version = require_setpoint_file(connection, path, steps)
    if version == 0:
        # There is nothing to encrypt, and nothing was deleted.
        _migrate(connection, [step for step in steps if step not in (SEAL, SCRUB)], len(steps), seal)
        return
    while version < len(steps):
        if steps[version] is SCRUB:
            version += 1
            connection.execute("VACUUM")
            connection.execute(f"PRAGMA user_version = {version}")
            continue
        missing = list(takewhile(lambda step: step is not SCRUB, steps[version:]))
        version += len(missing)
        _migrate(connection, missing, version, seal)


def _migrate(connection: sqlite3.Connection, steps: Sequence[Migration], to: int, seal: Callable[[], None]) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        for step in steps:
            if step is SEAL:
                seal()
            else:
                for statement in step:
                    connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {_APPLICATION}")
        connection.execute(f"PRAGMA user_version = {to}")
        connection.execute("COMMIT")
    except (sqlite3.Error, StoreError):
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def require_readable(
    connection: sqlite3.Connection, path: Path, steps: Sequence[Migration] = MIGRATIONS, oldest: int = _READABLE
) -> None:
    """StoreError for a file that is older than `oldest`."""
    version = require_setpoint_file(connection, path, steps)
    if version < oldest:
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


# --- The migration SEAL -----------------------------------------------------------------------------------------------

_PAGE: Final = 500
_CURRENT: Final = """
    SELECT r.rowid, r.grp, r.kind, r.namespace, r.name, r.uid, b.id, b.body
    FROM resources r JOIN bodies b ON b.id = r.body WHERE b.sealed IS NULL AND r.rowid > ? ORDER BY r.rowid LIMIT ?"""
_SUPERSEDED: Final = "SELECT id, body FROM bodies WHERE superseded IS NOT NULL AND id > ? ORDER BY id LIMIT ?"
_JOURNALED: Final = """
    SELECT body, uid FROM journal UNION SELECT was_body, uid FROM journal WHERE was_body IS NOT NULL"""
# Where metadata and statuses are: table and column.
_METADATA: Final = (("resources", "metadata"), ("journal", "metadata"), ("journal", "was_metadata"))
_STATUSES: Final = (("resources", "status"), ("journal", "status"), ("journal", "was_status"))


@dataclass(frozen=True, slots=True)
class SecretSealing:
    """Encrypts what an earlier version kept in plain text; the digest of no spec changes by it."""

    connection: sqlite3.Connection
    cipher: SecretCipher
    secrets: SecretFields
    # The secret texts by the uid of their resource.
    _texts: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    def run(self) -> None:
        """Inside a transaction. StoreError when there are encrypted values already, and their key is missing."""
        execute = self.connection.execute
        encrypted = execute("SELECT sealed FROM bodies WHERE sealed IS NOT NULL LIMIT 1").fetchone()
        if encrypted is not None:
            self.cipher.require_key_of(encrypted[0])
        execute("UPDATE bodies SET sealed = NULL WHERE superseded IS NOT NULL")
        for _, *key, uid, id_, body in self._pages(_CURRENT):
            redacted = self._redacted(body, uid)
            if redacted:
                sealed = self.cipher.encrypt(body, associated_data(ResourceRef(*key), uid))
                execute("UPDATE bodies SET body = ?, sealed = ? WHERE id = ?", (redacted, sealed, id_))
        uids = dict(execute(_JOURNALED))
        for id_, body in self._pages(_SUPERSEDED):
            redacted = self._redacted(body, uids.get(id_, ""))
            if redacted:
                execute("UPDATE bodies SET body = ? WHERE id = ?", (redacted, id_))
        for table, column in _METADATA:
            self._rewrite(table, column, self._metadata)
        for table, column in _STATUSES:
            self._rewrite(table, column, self._status)
        self._rewrite("notes", "message", self._message)

    def _redacted(self, body: bytes, uid: str) -> bytes:
        document = decode(body)
        redacted = redacted_body(document, self.secrets)
        if redacted:
            self._texts[uid] |= self.secrets.texts(document)
        return redacted

    def _rewrite(self, table: str, column: str, change: Callable[[Any, str], Any]) -> None:
        select = f"SELECT rowid, {column}, uid FROM {table} WHERE rowid > ? ORDER BY rowid LIMIT ?"
        for rowid, before, uid in self._pages(select):
            after = change(before, uid) if before else before
            if after != before:
                # Of two event records that differed in a secret value alone, one is left.
                update = f"UPDATE OR REPLACE {table} SET {column} = ? WHERE rowid = ?"
                self.connection.execute(update, (after, rowid))

    def _metadata(self, metadata: bytes, _uid: str) -> bytes:
        if b"annotations" not in metadata:
            return metadata
        return canonical(without_secret_copies(decode(metadata), self.secrets))

    def _status(self, status: bytes, uid: str) -> bytes:
        """The messages of conditions are the only texts in a status that may repeat what a service answered."""
        if uid not in self._texts:
            return status
        tree = decode(status)
        conditions = [
            {**one, "message": self._message(one["message"], uid)} if "message" in one else one
            for one in tree.get("conditions", ())
        ]
        return canonical({**tree, "conditions": conditions} if conditions else tree)

    def _message(self, message: str, uid: str) -> str:
        found = without_texts(message, self._texts.get(uid, ()))
        assert isinstance(found, str)
        return found

    def _pages(self, select: str) -> Iterator[SqlRow]:
        """The rows, in pages: they are changed meanwhile."""
        after = -1
        while rows := self.connection.execute(select, (after, _PAGE)).fetchall():
            yield from rows
            after = rows[-1][0]
