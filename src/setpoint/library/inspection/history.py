"""The history of one resource as a value: for programs, and for the commands and pages that show it."""

from collections.abc import Iterator
from typing import Final

from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import Json
from setpoint.engine.history.memory_history import HistoryStore
from setpoint.engine.ports import EventRecord, Store
from setpoint.engine.resource import ResourceRef
from setpoint.engine.step.reports import HistoryEntry, HistoryType, step_on_record
from setpoint.library.declared import SessionValue

# How many entries are read at once while a page is looked for.
_PAGE: Final = 200


@dataclass(frozen=True, slots=True, eq=False)
class HistoryListing(SessionValue):
    """What happened to a resource, the newest first: steps, requests of writes, drift and refusals."""

    ref: ResourceRef
    entries: tuple[HistoryEntry, ...]
    # False where the history itself is in the memory of other processes: then these are the last step and the events.
    is_complete: bool = True

    def __iter__(self) -> Iterator[HistoryEntry]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def __getitem__(self, index: int) -> HistoryEntry:
        return self.entries[index]

    def to_data(self) -> Json:
        """A list of entries, each with its type, its time and what it says."""
        return [
            {"number": one.number, "type": one.type.value, "at": one.at, **{name: one.data[name] for name in one.data}}
            for one in self.entries
        ]

    def __repr__(self) -> str:
        return f"<history of {self.ref}: {len(self)} entr{'y' if len(self) == 1 else 'ies'}>"

    def _repr_html_(self) -> str:
        from setpoint.library.inspection.notebook_html import history_html

        return history_html(self)


async def read_history(
    ref: ResourceRef, store: Store, *, before: int | None, most: int, since: str, is_shared: bool
) -> HistoryListing:
    """The newest entries of a resource, none older than `since`.

    A store in a cluster keeps histories in the memory of its controllers: for another process there are the record of
    the last step, and the Events.
    """
    found = list[HistoryEntry]()
    while isinstance(store, HistoryStore) and len(found) < most:
        page = await store.history(ref, before=before, most=min(_PAGE, most - len(found)))
        found += [one for one in page if one.at >= since]
        if not page or page[-1].at < since:
            break
        before = page[-1].number
    if found or not is_shared:
        return HistoryListing(ref, tuple(found))
    entries = [one for one in await _seen_from_outside(ref, store) if one.at >= since]
    return HistoryListing(ref, tuple(entries[:most]), is_complete=False)


async def _seen_from_outside(ref: ResourceRef, store: Store) -> list[HistoryEntry]:
    """What a cluster shows of a history, the newest first."""
    resource = await store.get(ref)
    step = None if resource is None else step_on_record(resource)
    entries = [_event_entry(one) for one in await store.events(ref)]
    return sorted([*entries, *([] if step is None else [step])], key=lambda one: one.at, reverse=True)


def _event_entry(event: EventRecord) -> HistoryEntry:
    data: dict[str, Json] = {
        "severity": event.severity,
        "reason": event.reason,
        "message": event.message,
        "count": event.count,
    }
    return HistoryEntry(HistoryType.EVENT, event.at, data)
