"""The journal: every committed change in order, how many are retained, and the watch that follows them.

Secret values leave it when they are superseded: an earlier entry then shows the resource without them.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Final, Protocol, TypeAlias

from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.engine.ports import Clock, ResourceChange, ResourceChangeType, ResourceQuery
from setpoint.engine.resource import Revision
from setpoint.errors import RevisionExpired
from setpoint.stores.records import ResourceRecord, decode, to_resource


@dataclass(frozen=True, slots=True)
class StoreLimits:
    """How much a store retains: the newest of each. `changes` is how far a watch can go back, at the least."""

    changes: int = 10_000
    notes: int = 10_000
    notes_per_resource: int = 50
    history: int = 50_000
    history_per_resource: int = 200
    history_days: int = 30

    def __post_init__(self) -> None:
        if min(self.changes, self.notes, self.notes_per_resource) < 1:
            raise ValueError(f"a store keeps at least one of everything: {self}")


DEFAULT_LIMITS: Final = StoreLimits()


# More digits than any store ever counts.
_MAX_DIGITS: Final = 18


@dataclass(frozen=True, slots=True)
class JournaledChange:
    """One change: the record before it (None: did not exist), and after it (None: removed)."""

    revision: int
    before: ResourceRecord | None
    after: ResourceRecord | None


@dataclass(frozen=True, slots=True)
class JournalPage:
    """Entries that may match a query, up to `reached`; the journal goes on to `last`."""

    entries: tuple[JournaledChange, ...]
    reached: int
    last: int


def journal_position(since: Revision) -> int:
    """The position of `since` in the journal; RevisionExpired for a text that is no revision of a journal."""
    if not (since.isascii() and since.isdigit() and len(since) <= _MAX_DIGITS):
        raise RevisionExpired(f"{since!r} is no revision of this store: list again, then watch from there")
    return int(since)


def require_retained(since: int, oldest: int, last: int) -> None:
    """RevisionExpired unless every change after `since` is retained; `oldest` is the first that is."""
    if since < oldest - 1:
        raise RevisionExpired(
            f"the changes after revision {since} are no longer on record, only those from {oldest} on: "
            "list again, then watch from there"
        )
    if since > last:
        raise RevisionExpired(
            f"revision {since} is not of this store, which is at {last}: list again, then watch from there"
        )


def matches(record: ResourceRecord, query: ResourceQuery) -> bool:
    """Whether this record matches `query`."""
    ref = record.ref
    asked = ((query.group, ref.group), (query.kind, ref.kind), (query.namespace, ref.namespace))
    if any(want is not None and want != have for want, have in asked):
        return False
    if not query.labels:
        return True
    labels = labels_of(record)
    return all(labels.get(key) == text for key, text in query.labels.items())


def labels_of(record: ResourceRecord) -> dict[str, str]:
    """The labels of one state of a resource."""
    labels: dict[str, str] = decode(record.metadata).get("labels", {})
    return labels


def change_for(query: ResourceQuery, entry: JournaledChange) -> ResourceChange | None:
    """The change as a watch of `query` sees it: what stops matching is deleted. None when it does not match at all."""
    before = entry.before if entry.before is not None and matches(entry.before, query) else None
    after = entry.after if entry.after is not None and matches(entry.after, query) else None
    revision = Revision(str(entry.revision))
    if after is not None:
        return ResourceChange(
            ResourceChangeType.ADDED if before is None else ResourceChangeType.MODIFIED, to_resource(after), revision
        )
    if before is not None:
        return ResourceChange(ResourceChangeType.DELETED, to_resource(before), revision)
    return None


class RecentChanges:
    """The last changes that this process committed: a watch that keeps up reads them without a statement.

    They are so many at most, and take so many bytes. None holds secret values: these leave a journal when they are
    superseded.
    """

    def __init__(self, most: int, most_bytes: int) -> None:
        self._most = most
        self._most_bytes = most_bytes
        # Each follows the one before it.
        self._entries: deque[JournaledChange] = deque()
        self._bytes = 0

    def add(self, entry: JournaledChange) -> None:
        """Adds the next change."""
        records = [record for record in (entry.before, entry.after) if record is not None]
        if any(record.holds_secrets for record in records):
            self._clear()
            return
        if self._entries and entry.revision != self._entries[-1].revision + 1:
            self._clear()
        self._entries.append(entry)
        self._bytes += _bytes_of(entry)
        while len(self._entries) > self._most or self._bytes > self._most_bytes:
            self._bytes -= _bytes_of(self._entries.popleft())

    def _clear(self) -> None:
        self._entries.clear()
        self._bytes = 0

    def since(self, since: int) -> JournalPage | None:
        """Every change after `since`; None when there is none here, or one between them is not."""
        entries = self._entries
        if not entries or not entries[0].revision <= since + 1 <= entries[-1].revision:
            return None
        last = entries[-1].revision
        return JournalPage(tuple(entry for entry in entries if entry.revision > since), last, last)


def _bytes_of(entry: JournaledChange) -> int:
    records = [record for record in (entry.before, entry.after) if record is not None]
    return sum([len(record.metadata) + len(record.body) + len(record.status) for record in records])


# The changes after a position that may match a query.
ReadJournal: TypeAlias = Callable[[int, ResourceQuery], JournalPage]


class Waitable(Protocol):
    """Something to wait for."""

    async def wait(self) -> object:
        """Returns when there may be changes."""
        ...


class ChangeSignal(Protocol):
    """Wakes a watch when there may be changes."""

    def listen(self) -> Waitable:
        """What to wait for: it covers everything that is committed from now on."""
        ...


class CommitSignal:
    """Set after every commit of this process. Watches do not register, so none can be leaked."""

    def __init__(self) -> None:
        self._next = asyncio.Event()

    def listen(self) -> Waitable:
        """The next commit."""
        return self._next

    def notify(self) -> None:
        """Wakes all waiting watches."""
        self._next.set()
        self._next = asyncio.Event()


class PollingSignal:
    """For commits of another process: polls."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self._seconds = seconds

    def listen(self) -> Waitable:
        """The next poll."""
        return self

    async def wait(self) -> None:
        """Returns when the next poll is due."""
        await self._clock.sleep(self._seconds)


async def follow_journal(
    read: ReadJournal, signal: ChangeSignal, since: Revision, query: ResourceQuery
) -> AsyncIterator[ResourceChange]:
    """Every change for `query` after `since`, in order, without an end."""
    at = journal_position(since)
    while True:
        # Before reading: a commit in between is not missed, at the cost of one read in vain.
        pending = signal.listen()
        page = read(at, query)
        for entry in page.entries:
            change = change_for(query, entry)
            if change is not None:
                yield change
        at = page.reached
        if at < page.last:
            await asyncio.sleep(0)
        else:
            await pending.wait()
