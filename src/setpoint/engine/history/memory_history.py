"""Histories in memory: of stores that keep none on disk, and what is to be stored with the next status."""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import field
from itertools import islice
from typing import Any, Final, Protocol, runtime_checkable

import msgspec

from setpoint.core.values.canonical import canonical
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import JsonObject
from setpoint.engine.resource import ResourceRef
from setpoint.engine.step.reports import HistoryEntry, HistoryType, oldest_kept

_MAX_REPORTS: Final = 20


@runtime_checkable
class HistoryStore(Protocol):
    """A store that keeps the history of its resources."""

    async def history(self, ref: ResourceRef, *, before: int | None = None, most: int = 100) -> Sequence[HistoryEntry]:
        """The newest entries of a resource, the newest first; with `before`, those with a smaller number."""
        ...


@dataclass(frozen=True, slots=True)
class HistoryLimits:
    """How much is kept: the newest of each resource, the newest of all, and nothing that is older than so many days."""

    per_resource: int = 200
    entries: int = 50_000
    days: int = 30


DEFAULT_HISTORY_LIMITS: Final = HistoryLimits()


class _KeptEntry(msgspec.Struct, frozen=True, gc=False):
    """An entry, encoded: that takes a third of the memory, and is nothing that garbage collection looks at."""

    number: int
    type: HistoryType
    at: str
    data: bytes

    def decoded(self) -> HistoryEntry:
        return HistoryEntry(self.type, self.at, _decode(self.data), self.number)


# msgspec, not orjson: orjson reads a whole number beyond 64 bits as a float and loses digits.
_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode
_encode: Final = msgspec.json.Encoder().encode


def _encoded(data: JsonObject) -> bytes:
    try:
        return _encode(data)
    except (TypeError, ValueError, OverflowError):
        # Numbers beyond 64 bits, and mappings of other types. The canonical form takes longer where there is a float.
        return canonical(data)


@dataclass(slots=True)
class MemoryHistory:
    """A history in memory, for stores that keep none on disk: gone with the process."""

    limits: HistoryLimits = DEFAULT_HISTORY_LIMITS
    _number: int = 0
    # The oldest first; the resource that was written last is the last one.
    _entries: dict[ResourceRef, deque[_KeptEntry]] = field(default_factory=dict)
    _count: int = 0

    def add(self, ref: ResourceRef, entries: Iterable[HistoryEntry], now: str) -> None:
        """Adds entries, and drops what is beyond the limits."""
        own = self._entries.pop(ref, None) or deque()
        self._count -= len(own)
        for one in entries:
            self._number += 1
            own.append(_KeptEntry(self._number, one.type, one.at, _encoded(one.data)))
        oldest = oldest_kept(now, self.limits.days)
        while own and (len(own) > self.limits.per_resource or own[0].at < oldest):
            own.popleft()
        if own:
            self._entries[ref] = own
            self._count += len(own)
        while self._count > self.limits.entries:
            # The resource that has been quiet for the longest time loses its oldest.
            quiet = next(iter(self._entries))
            self._entries[quiet].popleft()
            self._count -= 1
            if not self._entries[quiet]:
                del self._entries[quiet]

    def of(self, ref: ResourceRef, before: int | None, most: int) -> tuple[HistoryEntry, ...]:
        """See HistoryStore."""
        newest = reversed(self._entries.get(ref, ()))
        found = islice((one for one in newest if before is None or one.number < before), most)
        return tuple(one.decoded() for one in found)


@dataclass(slots=True)
class PendingHistory:
    """What was reported of resources, until it is stored with their next status; bounded for each, and in all."""

    most: int = 10_000
    _reported: dict[ResourceRef, list[HistoryEntry]] = field(default_factory=dict)

    def report(self, ref: ResourceRef, entry: HistoryEntry) -> None:
        """Keeps an entry; of one resource the newest few."""
        own = self._reported.setdefault(ref, [])
        own.append(entry)
        del own[:-_MAX_REPORTS]
        if len(self._reported) > self.most:
            self._reported.pop(next(iter(self._reported)))

    def take_history(self, ref: ResourceRef) -> Sequence[HistoryEntry]:
        """See HistorySource."""
        return self._reported.pop(ref, ())
