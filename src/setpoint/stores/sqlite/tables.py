"""Rows of a SQLite store: resources, journal, event records, leases and sets. Called inside a transaction."""

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import msgspec
from msgspec.structs import replace

from setpoint.core.values.canonical import canonical
from setpoint.engine.ports import EventRecord, Lease, ResourceChangeType, ResourceQuery
from setpoint.engine.resource import ResourceRef
from setpoint.engine.sets.resource_set import SetRecord
from setpoint.stores.journal import JournaledChange, JournalPage, StoreLimits, labels_of, require_retained
from setpoint.stores.lease_rules import acquired, released
from setpoint.stores.manifests import is_secret
from setpoint.stores.mutations import Mutation
from setpoint.stores.records import ResourceRecord
from setpoint.stores.sqlite.encryption import SecretCipher

SqlRow: TypeAlias = Sequence[Any]

_PAGE_SIZE: Final = 500
_keys: Final = msgspec.json.Decoder(frozenset[str]).decode
_NO_KEYS: Final = b"[]"

_FIND: Final = """
    SELECT r.uid, r.revision, r.metadata, b.body, b.sealed, r.status, r.engine_keys, r.body
    FROM resources r JOIN bodies b ON b.id = r.body
    WHERE r.grp = ? AND r.kind = ? AND r.namespace = ? AND r.name = ?"""
_LIST: Final = """
    SELECT r.uid, r.revision, r.metadata, b.body, b.sealed, r.status, r.engine_keys, r.grp, r.kind, r.namespace, r.name
    FROM resources r JOIN bodies b ON b.id = r.body
    {where} ORDER BY r.grp, r.kind, r.namespace, r.name"""
# Two subqueries, each of which reads one row: together, the two functions would read all.
_BOUNDS: Final = "(SELECT min(revision) FROM journal), (SELECT max(revision) FROM journal)"
_CHANGES: Final = f"""
    SELECT j.uid, j.shown, j.metadata, b.body, b.sealed, j.status, '[]',
           j.uid, j.was, j.was_metadata, w.body, w.sealed, j.was_status, '[]',
           j.revision, j.change, j.grp, j.kind, j.namespace, j.name, {_BOUNDS}
    FROM journal j JOIN bodies b ON b.id = j.body LEFT JOIN bodies w ON w.id = j.was_body
    WHERE j.revision > ? {{where}} ORDER BY j.revision LIMIT ?"""
_RECORD_COLUMNS: Final = 7


class ResourceTables:
    """Resources and journal over one connection."""

    def __init__(self, connection: sqlite3.Connection, cipher: SecretCipher) -> None:
        self._execute = connection.execute
        self._cipher = cipher
        # Whether secret values were dropped that an earlier page of the file, or of its log, may still hold.
        self.has_dropped_secrets = False

    def find(self, ref: ResourceRef) -> ResourceRecord | None:
        """The record of `ref`, if there is one."""
        row = self._execute(_FIND, _key(ref)).fetchone()
        return None if row is None else self._record(ref, row)

    def find_many(self, refs: Sequence[ResourceRef]) -> Mapping[ResourceRef, ResourceRecord]:
        """The records of those that are there, by one statement; SQLite takes some thousand refs at once."""
        places = ", ".join(["(?, ?, ?, ?)"] * len(refs))
        where = f"WHERE (r.grp, r.kind, r.namespace, r.name) IN (VALUES {places})"
        rows = self._execute(_LIST.format(where=where), [part for ref in refs for part in _key(ref)]).fetchall()
        return {record.ref: record for record in self.records(rows)}

    def find_all(self, query: ResourceQuery) -> list[SqlRow]:
        """The rows that may match `query`, sorted by ref; records are made of them in slices."""
        where, values = _conditions(query, "r")
        return self._execute(_LIST.format(where=f"WHERE {where}" if where else ""), values).fetchall()

    def find_some(self, query: ResourceQuery, after: ResourceRef | None, most: int) -> list[SqlRow]:
        """The first rows after `after` that may match `query`, sorted by ref."""
        where, values = _conditions(query, "r")
        behind = "(r.grp, r.kind, r.namespace, r.name) > (?, ?, ?, ?)"
        conditions = " AND ".join(one for one in (where, behind if after else "") if one)
        sql = _LIST.format(where=f"WHERE {conditions}" if conditions else "") + " LIMIT ?"
        return self._execute(sql, (*values, *(_key(after) if after else ()), most)).fetchall()

    def records(self, rows: Sequence[SqlRow]) -> Iterator[ResourceRecord]:
        """The records that `find_all` found."""
        return (self._record(ResourceRef(*row[_RECORD_COLUMNS:]), row) for row in rows)

    def last_revision(self) -> int:
        """The revision of the last change; the newest row of the journal is never dropped."""
        (last,) = self._execute("SELECT max(revision) FROM journal").fetchone()
        return last or 0

    def changes(self, since: int, query: ResourceQuery) -> JournalPage:
        """The next changes after `since`; RevisionExpired when they are not retained. Called inside a transaction."""
        page = self.changes_found(since, query)
        if page is not None:
            return page
        oldest, newest = self._execute(f"SELECT {_BOUNDS}").fetchone()
        last = newest or 0
        require_retained(since, oldest or last + 1, last)
        return JournalPage((), last, last)

    def changes_found(self, since: int, query: ResourceQuery) -> JournalPage | None:
        """The same by one statement, which needs no transaction; None when there are none, or none are retained."""
        where, values = _conditions(query, "j")
        sql = _CHANGES.format(where=f"AND {where}" if where else "")
        rows = self._execute(sql, (since, *values, _PAGE_SIZE)).fetchall()
        if not rows:
            return None
        oldest, last = rows[0][-2:]
        require_retained(since, oldest, last)
        entries = tuple(map(self._entry, rows))
        return JournalPage(entries, entries[-1].revision if len(entries) == _PAGE_SIZE else last, last)

    def change(
        self, ref: ResourceRef, mutation: Mutation, journaled: Callable[[JournaledChange], None]
    ) -> ResourceRecord | None:
        """Applies a mutation and journals the change, which `journaled` is told; nothing when it changes nothing."""
        row = self._execute(_FIND, _key(ref)).fetchone()
        before = None if row is None else self._record(ref, row)
        after = mutation(before)
        if after is before:
            return before
        revision = self.last_revision() + 1
        if after is None:
            assert before is not None
            self._remove(before, row[-1], revision)
        else:
            after = replace(after, revision=revision)
            if before is None:
                self._add(after)
            else:
                self._replace(before, after, row[-1])
        journaled(JournaledChange(revision, before, after))
        return after

    def drop_changes_through(self, revision: int) -> None:
        """Drops the changes up to `revision`, and the bodies that only they refer to."""
        self._execute("DELETE FROM journal WHERE revision <= ?", (revision,))
        self._execute("DELETE FROM bodies WHERE superseded <= ?", (revision,))

    def any_encrypted(self) -> bytes | None:
        """Any encrypted value, if there is one."""
        row = self._execute("SELECT sealed FROM bodies WHERE sealed IS NOT NULL LIMIT 1").fetchone()
        return None if row is None else row[0]

    def _add(self, after: ResourceRecord) -> None:
        body = self._add_body(after)
        values = (*_key(after.ref), after.uid, after.revision, after.metadata, body, after.status, _packed(after))
        self._execute("INSERT INTO resources VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", values)
        self._add_to_journal(after.revision, ResourceChangeType.ADDED, after, body)

    def _replace(self, before: ResourceRecord, after: ResourceRecord, old_body: int) -> None:
        body = old_body
        if any(getattr(after, part) is not getattr(before, part) for part in ("body", "secret", "redacted")):
            body = self._add_body(after)
            self._supersede(old_body, after.revision, is_encrypted=before.holds_secrets)
        self._execute(
            "UPDATE resources SET revision = ?, metadata = ?, body = ?, status = ?, engine_keys = ?"
            " WHERE grp = ? AND kind = ? AND namespace = ? AND name = ?",
            (after.revision, after.metadata, body, after.status, _packed(after), *_key(after.ref)),
        )
        was: SqlRow = (None, None, None, None)
        if before.metadata != after.metadata and labels_of(before) != labels_of(after):
            was = (before.revision, before.metadata, old_body, before.status)
        self._add_to_journal(after.revision, ResourceChangeType.MODIFIED, after, body, was)

    def _remove(self, before: ResourceRecord, body: int, revision: int) -> None:
        where = "grp = ? AND kind = ? AND namespace = ? AND name = ?"
        self._execute(f"DELETE FROM resources WHERE {where}", _key(before.ref))
        self._supersede(body, revision, is_encrypted=before.holds_secrets)
        self._add_to_journal(revision, ResourceChangeType.DELETED, before, body)

    def _add_body(self, record: ResourceRecord) -> int:
        added = self._execute("INSERT INTO bodies (body, sealed) VALUES (?, ?)", self._body_columns(record))
        assert added.lastrowid is not None
        return added.lastrowid

    def _body_columns(self, record: ResourceRecord) -> tuple[bytes, bytes | None]:
        """The body without its secret values, and what is encrypted: the data of a Secret, or else the whole body."""
        if not record.holds_secrets:
            return record.body, None
        plain = record.secret or record.body
        return record.redacted or record.body, self._cipher.encrypt(plain, associated_data(record.ref, record.uid))

    def _supersede(self, body: int, revision: int, *, is_encrypted: bool) -> None:
        """The journal still shows it, without its secret values."""
        self._execute("UPDATE bodies SET superseded = ?, sealed = NULL WHERE id = ?", (revision, body))
        self.has_dropped_secrets |= is_encrypted

    def _add_to_journal(
        self,
        revision: int,
        change: ResourceChangeType,
        shown: ResourceRecord,
        body: int,
        was: SqlRow = (None, None, None, None),
    ) -> None:
        state = (shown.uid, shown.revision, shown.metadata, body, shown.status)
        self._execute(
            "INSERT INTO journal VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (revision, change.value, *_key(shown.ref), *state, *was),
        )

    def _record(self, ref: ResourceRef, row: SqlRow) -> ResourceRecord:
        uid, revision, metadata, body, encrypted, status, keys = row[:_RECORD_COLUMNS]
        if encrypted is None:
            return ResourceRecord(ref, uid, revision, metadata, body, b"", status, _keys(keys))
        plain = self._cipher.decrypt(encrypted, associated_data(ref, uid))
        if is_secret(ref):
            return ResourceRecord(ref, uid, revision, metadata, body, plain, status, _keys(keys))
        return ResourceRecord(ref, uid, revision, metadata, plain, b"", status, _keys(keys), body)

    def _entry(self, row: SqlRow) -> JournaledChange:
        revision, change, *key = row[2 * _RECORD_COLUMNS : -2]
        ref = ResourceRef(*key)
        shown = self._record(ref, row)
        match ResourceChangeType(change):
            case ResourceChangeType.ADDED:
                return JournaledChange(revision, None, shown)
            case ResourceChangeType.DELETED:
                return JournaledChange(revision, shown, None)
            case ResourceChangeType.MODIFIED:
                was = row[_RECORD_COLUMNS : 2 * _RECORD_COLUMNS]
                # With the same labels, it matches a query before as it does after.
                return JournaledChange(revision, shown if was[1] is None else self._record(ref, was), shown)


def _key(ref: ResourceRef) -> tuple[str, str, str, str]:
    return (ref.group, ref.kind, ref.namespace, ref.name)


def associated_data(ref: ResourceRef, uid: str) -> bytes:
    """The associated data of an encrypted value: copied to another resource, it cannot be decrypted."""
    return canonical([*_key(ref), uid])


def _packed(record: ResourceRecord) -> bytes:
    return canonical(sorted(record.engine_keys)) if record.engine_keys else _NO_KEYS


def _conditions(query: ResourceQuery, table: str) -> tuple[str, tuple[str, ...]]:
    """The part of `query` that SQLite checks: everything but the labels."""
    asked = (("grp", query.group), ("kind", query.kind), ("namespace", query.namespace))
    given = [(column, value) for column, value in asked if value is not None]
    return " AND ".join(f"{table}.{column} = ?" for column, _ in given), tuple(value for _, value in given)


class EventAndLeaseTables:
    """Event records (the table `notes`) and leases over one connection."""

    def __init__(self, connection: sqlite3.Connection, limits: StoreLimits) -> None:
        self._execute = connection.execute
        self._limits = limits
        # How many event records there are: to count them takes as long as there are many. None when it is not known.
        self._count: int | None = None

    def forget_count(self) -> None:
        """To be called when writes were rolled back: the event records are counted again."""
        self._count = None

    def record_event(self, event: EventRecord) -> None:
        """Adds `event` as the newest, with the count of equal ones before; drops the oldest beyond the limits."""
        same = (event.uid, event.reason, event.message)
        where = "uid = ? AND reason = ? AND message = ?"
        old = self._execute(f"SELECT count FROM notes WHERE {where}", same).fetchone()
        if old is not None:
            self._execute(f"DELETE FROM notes WHERE {where}", same)
        ref = (event.ref.group, event.ref.kind, event.ref.namespace, event.ref.name)
        self._execute(
            "INSERT INTO notes (grp, kind, namespace, name, uid, severity, reason, message, at, count)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                *ref,
                event.uid,
                event.severity,
                event.reason,
                event.message,
                event.at,
                event.count + (old[0] if old else 0),
            ),
        )
        if old is None:
            self._drop_oldest(event.uid)

    def events(self, ref: ResourceRef | None) -> tuple[EventRecord, ...]:
        """The event records of `ref`, or all; oldest first."""
        where = "" if ref is None else "WHERE grp = ? AND kind = ? AND namespace = ? AND name = ?"
        values = () if ref is None else (ref.group, ref.kind, ref.namespace, ref.name)
        rows = self._execute(
            "SELECT grp, kind, namespace, name, uid, severity, reason, message, at, count"
            f" FROM notes {where} ORDER BY id",
            values,
        )
        return tuple(EventRecord(ResourceRef(*row[:4]), *row[4:]) for row in rows)

    def acquire(self, asked: Lease, now: float) -> Lease | None:
        """The lease that `asked.holder` holds from now on; None while another holds it."""
        lease = acquired(self._lease(asked.name), asked, now)
        if lease is not None:
            self._keep(lease)
        return lease

    def release(self, lease: Lease) -> None:
        """Releases `lease`, if it is the one that is held."""
        held = self._lease(lease.name)
        free = released(held, lease)
        if free is not None and free is not held:
            self._keep(free)

    def leases(self, prefix: str) -> tuple[Lease, ...]:
        """Those whose name begins with `prefix`, sorted by name."""
        rows = self._execute(
            "SELECT name, holder, fence, expires FROM leases WHERE substr(name, 1, ?) = ? ORDER BY name",
            (len(prefix), prefix),
        )
        return tuple(Lease(*row) for row in rows)

    def _drop_oldest(self, uid: str) -> None:
        """Drops the oldest beyond the limits, after a new one of the resource `uid` was added."""
        total = self._counted() if self._count is None else self._count + 1
        own = self._counted("WHERE uid = ?", (uid,))
        total -= self._drop("WHERE uid = ?", (uid,), own - self._limits.notes_per_resource)
        self._count = total - self._drop("", (), total - self._limits.notes)

    def _counted(self, where: str = "", values: tuple[str, ...] = ()) -> int:
        (count,) = self._execute(f"SELECT count(*) FROM notes {where}", values).fetchone()
        return int(count)

    def _drop(self, where: str, values: tuple[str, ...], number: int) -> int:
        """Drops so many of the oldest; how many that was."""
        if number <= 0:
            return 0
        oldest = f"SELECT id FROM notes {where} ORDER BY id LIMIT ?"
        return self._execute(f"DELETE FROM notes WHERE id IN ({oldest})", (*values, number)).rowcount

    def _lease(self, name: str) -> Lease | None:
        row = self._execute("SELECT name, holder, fence, expires FROM leases WHERE name = ?", (name,)).fetchone()
        return None if row is None else Lease(*row)

    def _keep(self, lease: Lease) -> None:
        values = (lease.name, lease.holder, lease.fence, lease.expires)
        self._execute("INSERT OR REPLACE INTO leases (name, holder, fence, expires) VALUES (?, ?, ?, ?)", values)


# --- Sets -------------------------------------------------------------------------------------------------------------


def all_sets(connection: sqlite3.Connection) -> tuple[SetRecord, ...]:
    """The records of all sets, sorted by name; none in a file that a writer has not brought up to date."""
    if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'sets'").fetchone() is None:
        return ()
    rows = connection.execute("SELECT record FROM sets ORDER BY name").fetchall()
    return tuple(msgspec.json.decode(record, type=SetRecord) for (record,) in rows)


def keep_set(connection: sqlite3.Connection, one: SetRecord) -> None:
    """Replaces the record of a set."""
    connection.execute("INSERT OR REPLACE INTO sets (name, record) VALUES (?, ?)", (one.name, msgspec.json.encode(one)))
