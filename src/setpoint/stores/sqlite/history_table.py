"""Rows of the histories of resources, by count and age. Called inside a transaction."""

import sqlite3
from collections.abc import Iterable
from typing import Final

from setpoint.core.values.canonical import canonical
from setpoint.engine.resource import ResourceRef
from setpoint.engine.step.reports import HistoryEntry, HistoryType, oldest_kept
from setpoint.stores.journal import StoreLimits
from setpoint.stores.records import decode

_OWN: Final = "grp = ? AND kind = ? AND namespace = ? AND name = ?"
# Of the oldest entries, so many are looked at in each transaction: few have just become too old.
_AGED_AT_ONCE: Final = 50


class HistoryTable:
    """The histories of resources over one connection."""

    def __init__(self, connection: sqlite3.Connection, limits: StoreLimits) -> None:
        self._execute = connection.execute
        self._limits = limits

    def add(self, ref: ResourceRef, entries: Iterable[HistoryEntry], now: str) -> None:
        """Adds entries, and drops what is beyond the limits."""
        key, is_new = tuple(ref), False
        for one in entries:
            self._execute(
                "INSERT INTO history (grp, kind, namespace, name, type, at, entry) VALUES (?, ?, ?, ?, ?, ?, ?)",
                (*key, one.type.value, one.at, canonical(one.data)),
            )
            is_new = True
        if is_new:
            self._trim(key, now)

    def _trim(self, key: tuple[str, ...], now: str) -> None:
        beyond = f"SELECT id FROM history WHERE {_OWN} ORDER BY id DESC LIMIT 1 OFFSET ?"
        self._execute(
            f"DELETE FROM history WHERE {_OWN} AND id <= ({beyond})", (*key, *key, self._limits.history_per_resource)
        )
        self._execute("DELETE FROM history WHERE id <= (SELECT max(id) FROM history) - ?", (self._limits.history,))
        since = oldest_kept(now, self._limits.history_days)
        first = self._execute("SELECT at FROM history ORDER BY id LIMIT 1").fetchone()
        if first is not None and first[0] < since:
            oldest = "SELECT id FROM history ORDER BY id LIMIT ?"
            self._execute(f"DELETE FROM history WHERE id IN ({oldest}) AND at < ?", (_AGED_AT_ONCE, since))

    def of(self, ref: ResourceRef, before: int | None, most: int) -> tuple[HistoryEntry, ...]:
        """The newest entries of a resource; none in a file of a version without histories."""
        if self._execute("SELECT 1 FROM sqlite_master WHERE name = 'history'").fetchone() is None:
            return ()
        where = _OWN if before is None else f"{_OWN} AND id < ?"
        values = (*ref, *(() if before is None else (before,)), most)
        rows = self._execute(f"SELECT id, type, at, entry FROM history WHERE {where} ORDER BY id DESC LIMIT ?", values)
        return tuple(HistoryEntry(HistoryType(type_), at, decode(entry), id_) for id_, type_, at, entry in rows)
