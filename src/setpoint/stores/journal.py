"""The journal: every committed change, in order, and what a watcher sees of it."""

from dataclasses import dataclass
from typing import Final

from setpoint.engine.ports import Change, Event, Query
from setpoint.engine.resource import Revision
from setpoint.errors import RevisionExpired
from setpoint.stores.records import Record, decode, to_resource

# More digits than any store ever counts.
_MAX_DIGITS: Final = 18


@dataclass(frozen=True, slots=True)
class Entry:
    """One change: the resource before it (None: not there), and after it (None: gone)."""

    revision: int
    before: Record | None
    after: Record | None


@dataclass(frozen=True, slots=True)
class Page:
    """Entries that may match a query, up to `reached`; the journal goes on to `last`."""

    entries: tuple[Entry, ...]
    reached: int
    last: int


def position(since: Revision) -> int:
    """Where in the journal `since` stands; RevisionExpired for what no journal has given out."""
    if not (since.isascii() and since.isdigit() and len(since) <= _MAX_DIGITS):
        raise RevisionExpired(f"{since!r} is no revision of this store: list again, then watch from there")
    return int(since)


def require_on_record(since: int, oldest: int, last: int) -> None:
    """RevisionExpired unless every change after `since` is on record; `oldest` is the first that is."""
    if since < oldest - 1:
        raise RevisionExpired(
            f"the changes after revision {since} are no longer on record, only those from {oldest} on: "
            "list again, then watch from there"
        )
    if since > last:
        raise RevisionExpired(
            f"revision {since} is not of this store, which is at {last}: list again, then watch from there"
        )


def matches(record: Record, query: Query) -> bool:
    """Whether `query` asks for this record."""
    ref = record.ref
    asked = ((query.group, ref.group), (query.kind, ref.kind), (query.namespace, ref.namespace))
    if any(want is not None and want != have for want, have in asked):
        return False
    if not query.labels:
        return True
    labels = labels_of(record)
    return all(labels.get(key) == text for key, text in query.labels.items())


def labels_of(record: Record) -> dict[str, str]:
    """The labels of one state of a resource."""
    labels: dict[str, str] = decode(record.metadata).get("labels", {})
    return labels


def seen_through(query: Query, entry: Entry) -> Event | None:
    """The event for a watcher of `query`, to whom a resource that stops matching is gone; None when it sees nothing."""
    before = entry.before if entry.before is not None and matches(entry.before, query) else None
    after = entry.after if entry.after is not None and matches(entry.after, query) else None
    revision = Revision(str(entry.revision))
    if after is not None:
        return Event(Change.ADDED if before is None else Change.MODIFIED, to_resource(after), revision)
    if before is not None:
        return Event(Change.DELETED, to_resource(before), revision)
    return None
