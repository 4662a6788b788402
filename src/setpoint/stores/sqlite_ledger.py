"""Notes and leases in SQLite. Called inside a transaction."""

import sqlite3

from setpoint.engine.ports import Lease, Note
from setpoint.engine.resource import ResourceRef
from setpoint.stores.leases import acquired, released
from setpoint.stores.limits import Limits


class Ledger:
    """What is kept over one connection beside the resources."""

    def __init__(self, connection: sqlite3.Connection, limits: Limits) -> None:
        self._execute = connection.execute
        self._limits = limits

    def note(self, note: Note) -> None:
        """Adds `note` as the newest, with the count of the same before it; drops the oldest beyond the limits."""
        same = (note.uid, note.reason, note.message)
        where = "uid = ? AND reason = ? AND message = ?"
        old = self._execute(f"SELECT count FROM notes WHERE {where}", same).fetchone()
        if old is not None:
            self._execute(f"DELETE FROM notes WHERE {where}", same)
        ref = (note.ref.group, note.ref.kind, note.ref.namespace, note.ref.name)
        self._execute(
            "INSERT INTO notes (grp, kind, namespace, name, uid, severity, reason, message, at, count)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (*ref, note.uid, note.severity, note.reason, note.message, note.at, note.count + (old[0] if old else 0)),
        )
        if old is None:
            self._drop_oldest("WHERE uid = ?", (note.uid,), self._limits.notes_per_resource)
            self._drop_oldest("", (), self._limits.notes)

    def notes(self, ref: ResourceRef | None) -> tuple[Note, ...]:
        """The notes about `ref`, or all; oldest first."""
        where = "" if ref is None else "WHERE grp = ? AND kind = ? AND namespace = ? AND name = ?"
        values = () if ref is None else (ref.group, ref.kind, ref.namespace, ref.name)
        rows = self._execute(
            "SELECT grp, kind, namespace, name, uid, severity, reason, message, at, count"
            f" FROM notes {where} ORDER BY id",
            values,
        )
        return tuple(Note(ResourceRef(*row[:4]), *row[4:]) for row in rows)

    def acquire(self, asked: Lease, now: float) -> Lease | None:
        """The lease that `asked.holder` has from now on; None while another holds it."""
        lease = acquired(self._lease(asked.name), asked, now)
        if lease is not None:
            self._keep(lease)
        return lease

    def release(self, lease: Lease) -> None:
        """Gives `lease` back, if it is the one that is held."""
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

    def _drop_oldest(self, where: str, values: tuple[str, ...], kept: int) -> None:
        (count,) = self._execute(f"SELECT count(*) FROM notes {where}", values).fetchone()
        if count > kept:
            oldest = f"SELECT id FROM notes {where} ORDER BY id LIMIT ?"
            self._execute(f"DELETE FROM notes WHERE id IN ({oldest})", (*values, count - kept))

    def _lease(self, name: str) -> Lease | None:
        row = self._execute("SELECT name, holder, fence, expires FROM leases WHERE name = ?", (name,)).fetchone()
        return None if row is None else Lease(*row)

    def _keep(self, lease: Lease) -> None:
        values = (lease.name, lease.holder, lease.fence, lease.expires)
        self._execute("INSERT OR REPLACE INTO leases (name, holder, fence, expires) VALUES (?, ?, ?, ?)", values)
