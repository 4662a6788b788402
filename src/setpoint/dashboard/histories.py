"""Where timelines come from: the history of the store, the audit log of the process, and the other processes."""

from collections.abc import Sequence
from typing import Final
from urllib.parse import quote

import msgspec

from setpoint.core.redaction import holds_secret_object, redact_record
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.dashboard.api.resource_models import Entry, NextStep, Timeline
from setpoint.dashboard.peers import Peers
from setpoint.dashboard.views.audit_history import AuditHistory
from setpoint.dashboard.views.rows import id_of, text_in
from setpoint.dashboard.views.timeline import MAX_ENTRIES, entries_of, event_entry, timeline_of
from setpoint.engine.context import EngineContext
from setpoint.engine.history.memory_history import HistoryStore
from setpoint.engine.resource import ResourceRef
from setpoint.engine.state import StoredState
from setpoint.engine.step.reports import HistoryEntry, HistoryType


@dataclass(frozen=True, slots=True)
class HistorySources:
    """What there is beside the history of the store: an audit log, and other processes."""

    audit: AuditHistory | None = None
    peers: Peers | None = None


NO_SOURCES: Final = HistorySources()


@dataclass(frozen=True, slots=True)
class Histories:
    """The sources of the timelines of one dashboard."""

    engine: EngineContext
    # Where histories are kept; in a cluster, the store of the controllers of this process.
    kept: HistoryStore | None
    audit: AuditHistory | None = None
    peers: Peers | None = None

    @property
    def is_merged(self) -> bool:
        """Whether there are several sources, whose entries have no numbers in common."""
        return self.audit is not None or self.peers is not None

    async def page(self, ref: ResourceRef, before: int | None, most: int) -> Timeline:
        """A page of the history that is kept: of what is older than the entry of that number."""
        history = () if self.kept is None else await self.kept.history(ref, before=before, most=most + 1)
        # Events are shown once, beside the newest entries and those that follow.
        events = await self.engine.store.events(ref) if before is None else ()
        return timeline_of(history, events, most=most, now=self.engine.clock.now())

    async def entries(self, ref: ResourceRef, token: str | None, *, with_events: bool) -> Sequence[Entry]:
        """The entries of all sources; with the token of a user, the other processes are asked, too."""
        if token is not None and self.peers is not None:
            # This process is one of them.
            found = await self._of_peers(ref, token, self.peers)
        else:
            found = []
        own = await self._own(ref)
        seen = set(map(_key, own))
        events = await self.engine.store.events(ref) if with_events else ()
        return [*own, *(one for one in found if _key(one) not in seen), *map(event_entry, reversed(events))]

    async def _own(self, ref: ResourceRef) -> Sequence[Entry]:
        history = () if self.kept is None else await self.kept.history(ref, before=None, most=MAX_ENTRIES)
        older = () if self.audit is None else await self.audit.entries(ref, history[-1].at if history else "")
        return entries_of((*history, *older, *await self._last_step(ref, history)))

    async def _last_step(self, ref: ResourceRef, history: Sequence[HistoryEntry]) -> Sequence[HistoryEntry]:
        """The step that the status has on record, where no history has it: its process has ended since."""
        resource = await self.engine.store.get(ref)
        step = None if resource is None else StoredState.of(resource).step
        if resource is None or step is None or any(one.type is HistoryType.STEP for one in history):
            return ()
        record = redact_record(step, whole=holds_secret_object(resource.document))
        assert isinstance(record, dict)
        return [HistoryEntry(HistoryType.STEP, text_in(record, "at"), record)]

    async def _of_peers(self, ref: ResourceRef, token: str, peers: Peers) -> list[Entry]:
        answers = await peers.ask(f"{_path_of(ref)}/timeline?limit={MAX_ENTRIES}", token, Timeline)
        return [entry for one in answers for entry in one.entries]

    async def next_step_of(self, ref: ResourceRef, token: str) -> str | None:
        """When another process takes the next step of a resource; None when none says so."""
        found = [] if self.peers is None else await self.peers.ask(_path_of(ref), token, _Details)
        return next((one.next_step.time for one in found if one.next_step and one.next_step.time), None)


class _Details(msgspec.Struct, rename="camel"):
    """What is read of the details of a resource."""

    next_step: NextStep | None


def _path_of(ref: ResourceRef) -> str:
    return "/resources/" + "/".join(quote(part, safe="") for part in id_of(ref).split("/"))


def _key(entry: Entry) -> tuple[str, str, str]:
    return entry.time, entry.type, entry.text
