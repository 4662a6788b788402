"""The in-memory store: the reference implementation for the contract suite, and for tests."""

from collections.abc import AsyncIterator, Callable, MutableMapping, Sequence
from typing import TYPE_CHECKING

from msgspec import structs

from setpoint.core.secret_fields import SecretFields
from setpoint.core.values.deferred_dataclass import replace
from setpoint.engine.ports import EVERYTHING, Clock, EventRecord, Lease, ResourceChange, ResourceList, ResourceQuery
from setpoint.engine.resource import Resource, ResourceRef, Revision
from setpoint.engine.sets.resource_set import SetRecord
from setpoint.engine.step.reports import HistoryEntry
from setpoint.errors import StoreError
from setpoint.stores.journal import (
    DEFAULT_LIMITS,
    CommitSignal,
    JournaledChange,
    JournalPage,
    StoreLimits,
    follow_journal,
    matches,
    require_retained,
)
from setpoint.stores.lease_rules import acquired, released, unix_seconds
from setpoint.stores.manifest_types import ANY_TYPE, ManifestTypes
from setpoint.stores.manifests import stored_ref
from setpoint.stores.mutations import Mutation
from setpoint.stores.record_store import RecordStore
from setpoint.stores.records import ResourceRecord, to_resource

if TYPE_CHECKING:
    from setpoint.engine.history.memory_history import MemoryHistory


class MemoryStore(RecordStore):
    """A Store in dictionaries. No method awaits inside, so each is atomic for its callers."""

    def __init__(
        self,
        clock: Clock,
        new_uid: Callable[[], str],
        limits: StoreLimits = DEFAULT_LIMITS,
        *,
        secrets: SecretFields | None = None,
        types: ManifestTypes = ANY_TYPE,
    ) -> None:
        super().__init__(clock, new_uid, secrets, types)
        self._limits = limits
        self._commits = CommitSignal()
        self._is_open = True
        self._records: MutableMapping[ResourceRef, ResourceRecord] = {}
        self._journal: dict[int, JournaledChange] = {}
        self._last = 0
        self._events: dict[tuple[str, str, str], EventRecord] = {}
        self._history: MemoryHistory | None = None
        self._leases: dict[str, Lease] = {}
        self._sets: dict[str, SetRecord] = {}

    async def get(self, ref: ResourceRef) -> Resource | None:
        self._require_open()
        record = self._records.get(stored_ref(ref))
        return None if record is None else to_resource(record)

    async def list(self, query: ResourceQuery = EVERYTHING) -> ResourceList:
        self._require_open()
        found = (record for _, record in sorted(self._records.items()) if matches(record, query))
        return ResourceList(tuple(map(to_resource, found)), Revision(str(self._last)))

    async def pages(self, query: ResourceQuery = EVERYTHING, size: int = 500) -> AsyncIterator[ResourceList]:
        self._require_open()
        first, refs = self._last, sorted(self._records)
        # At least one page, if only for its revision.
        for start in range(0, max(1, len(refs)), size):
            self._require_open()
            # What is gone by now, a watch from that revision shows.
            left = (self._records.get(ref) for ref in refs[start : start + size])
            found = (record for record in left if record is not None and matches(record, query))
            yield ResourceList(tuple(map(to_resource, found)), Revision(str(first)))

    def watch(self, since: Revision, query: ResourceQuery = EVERYTHING) -> AsyncIterator[ResourceChange]:
        return follow_journal(self._page, self._commits, since, query)

    async def record_event(self, event: EventRecord) -> None:
        self._require_open()
        self._record_event(event)

    def _record_event(self, event: EventRecord) -> None:
        key = (event.uid, event.reason, event.message)
        old = self._events.pop(key, None)
        self._events[key] = event if old is None else replace(event, count=old.count + event.count)
        siblings = [key for key in self._events if key[0] == event.uid]
        for extra in siblings[: -self._limits.notes_per_resource]:
            del self._events[extra]
        for extra in list(self._events)[: -self._limits.notes]:
            del self._events[extra]

    async def events(self, ref: ResourceRef | None = None) -> tuple[EventRecord, ...]:
        self._require_open()
        return tuple(event for event in self._events.values() if ref is None or event.ref == ref)

    async def history(self, ref: ResourceRef, *, before: int | None = None, most: int = 100) -> Sequence[HistoryEntry]:
        """See HistoryStore."""
        self._require_open()
        return () if self._history is None else self._history.of(ref, before, most)

    async def acquire(self, name: str, holder: str, seconds: float) -> Lease | None:
        self._require_open()
        now = unix_seconds(self._clock)
        lease = acquired(self._leases.get(name), Lease(name, holder, 0, now + seconds), now)
        if lease is not None:
            self._leases[name] = lease
        return lease

    async def release(self, lease: Lease) -> None:
        self._require_open()
        free = released(self._leases.get(lease.name), lease)
        if free is not None:
            self._leases[lease.name] = free

    async def leases(self, prefix: str) -> tuple[Lease, ...]:
        self._require_open()
        return tuple(lease for name, lease in sorted(self._leases.items()) if name.startswith(prefix))

    async def sets(self) -> tuple[SetRecord, ...]:
        self._require_open()
        return tuple(one for _, one in sorted(self._sets.items()))

    async def close(self) -> None:
        self._is_open = False
        self._commits.notify()

    async def _commit(
        self,
        changes: Sequence[tuple[ResourceRef, Mutation]],
        events: Sequence[EventRecord] = (),
        history: Sequence[HistoryEntry] = (),
        *,
        sets: Sequence[SetRecord] = (),
    ) -> tuple[ResourceRecord | None, ...]:
        self._require_open()
        staged: dict[ResourceRef, ResourceRecord | None] = {}
        results: list[ResourceRecord | None] = []
        journaled: list[JournaledChange] = []
        for ref, mutation in changes:
            before = staged[ref] if ref in staged else self._records.get(ref)
            after = mutation(before)
            if after is not before:
                revision = self._last + len(journaled) + 1
                after = None if after is None else structs.replace(after, revision=revision)
                journaled.append(JournaledChange(revision, before, after))
            staged[ref] = after
            results.append(after)
        self._keep(journaled)
        for event in events:
            self._record_event(event)
        if history:
            self._keep_history(changes[0][0], history)
        self._sets.update((one.name, one) for one in sets)
        return tuple(results)

    def _keep_history(self, ref: ResourceRef, history: Sequence[HistoryEntry]) -> None:
        # Not imported by commands that only read.
        from setpoint.engine.history.memory_history import HistoryLimits, MemoryHistory

        if self._history is None:
            limits = self._limits
            self._history = MemoryHistory(
                HistoryLimits(limits.history_per_resource, limits.history, limits.history_days)
            )
        self._history.add(ref, history, self._clock.now())

    def _keep(self, journaled: Sequence[JournaledChange]) -> None:
        for change in journaled:
            if change.after is not None:
                self._records[change.after.ref] = change.after
            elif change.before is not None:
                del self._records[change.before.ref]
            self._last = change.revision
            self._journal[self._last] = change
            self._drop_superseded_secrets(change)
            self._journal.pop(self._last - self._limits.changes, None)
        if journaled:
            self._commits.notify()

    def _drop_superseded_secrets(self, change: JournaledChange) -> None:
        """The journal shows only the secret values that a resource has now."""
        before, after = change.before, change.after
        if before is None or not before.holds_secrets or (after is not None and _has_parts_of(before, after)):
            return

        def trimmed(record: ResourceRecord | None) -> ResourceRecord | None:
            is_old = record is not None and record.uid == before.uid and _has_parts_of(before, record)
            return record.without_secrets() if record is not None and is_old else record

        for revision, one in self._journal.items():
            self._journal[revision] = JournaledChange(revision, trimmed(one.before), trimmed(one.after))

    def _page(self, since: int, query: ResourceQuery) -> JournalPage:
        self._require_open()
        require_retained(since, max(1, self._last - self._limits.changes + 1), self._last)
        entries = tuple(self._journal[revision] for revision in range(since + 1, self._last + 1))
        return JournalPage(entries, self._last, self._last)

    def _require_open(self) -> None:
        if not self._is_open:
            raise StoreError("the store is closed: open it again")


def _has_parts_of(before: ResourceRecord, record: ResourceRecord) -> bool:
    """Whether the author's part is the very one of `before`, and no equal one that was written later."""
    return record.body is before.body and record.secret is before.secret
