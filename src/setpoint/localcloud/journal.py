"""What was asked, and how it was answered. Passwords are not in it."""

import re
from collections import Counter, deque
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

_SECRET: Final = re.compile(r"password$|clientkey$|secret", re.IGNORECASE)
_REDACTED: Final = "[redacted]"
_KEPT: Final = 10_000
_READS: Final = frozenset({"GET", "HEAD"})


class Entry(Struct, frozen=True):
    """One request. No status means that the connection was cut."""

    method: str
    path: str
    query: dict[str, str]
    body: Any
    status: int | None
    at: str

    @property
    def is_write(self) -> bool:
        """Whether the request asked for a change."""
        return self.method not in _READS


class Journal:
    """The last requests, oldest first, and how many there have been."""

    def __init__(self) -> None:
        self._entries: deque[Entry] = deque(maxlen=_KEPT)
        self._methods: Counter[str] = Counter()
        self._statuses: Counter[str] = Counter()

    @property
    def entries(self) -> tuple[Entry, ...]:
        """What is still remembered, oldest first."""
        return tuple(self._entries)

    def counts(self) -> dict[str, Any]:
        """How many requests there have been, altogether, writes alone, by method and by status."""
        writes = sum(count for method, count in self._methods.items() if method not in _READS)
        by_method, by_status = dict(sorted(self._methods.items())), dict(sorted(self._statuses.items()))
        return {"total": self._methods.total(), "writes": writes, "byMethod": by_method, "byStatus": by_status}

    def add(self, entry: Entry) -> None:
        """Puts a request on record, its secrets blacked out."""
        self._entries.append(Entry(entry.method, entry.path, entry.query, redacted(entry.body), entry.status, entry.at))
        self._methods[entry.method] += 1
        self._statuses["dropped" if entry.status is None else str(entry.status)] += 1

    def clear(self) -> None:
        """Forgets everything, and counts from zero."""
        self._entries.clear()
        self._methods.clear()
        self._statuses.clear()


def redacted(value: object) -> object:
    """`value` with every secret in it blacked out."""
    if isinstance(value, Mapping):
        return {
            name: _REDACTED if _SECRET.search(name) and not isinstance(inner, dict | bool) else redacted(inner)
            for name, inner in value.items()
        }
    return [redacted(one) for one in value] if isinstance(value, list) else value
