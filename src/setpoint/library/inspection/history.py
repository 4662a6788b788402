"""The history of one resource as a value: for programs, and for the commands and pages that show it."""

from collections.abc import Iterator

from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import Json
from setpoint.engine.resource import ResourceRef
from setpoint.engine.step.reports import HistoryEntry
from setpoint.library.declared import SessionValue


@dataclass(frozen=True, slots=True, eq=False)
class HistoryListing(SessionValue):
    """What happened to a resource, the newest first: steps, requests of writes, drift and refusals."""

    ref: ResourceRef
    entries: tuple[HistoryEntry, ...]

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
