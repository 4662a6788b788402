"""The journal of requests, for tests and the control API. Passwords and keys are redacted."""

import re
from collections import Counter, deque
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

_SECRET_NAME: Final = re.compile(r"password$|clientkey$|secret", re.IGNORECASE)
_REDACTED: Final = "[redacted]"
_MAX_ENTRIES: Final = 10_000
_READS: Final = frozenset({"GET", "HEAD"})


class RecordedRequest(Struct, frozen=True):
    """One request in the journal. Without a status the connection was dropped."""

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


class RequestJournal:
    """The last requests, oldest first, and the number of all requests."""

    def __init__(self) -> None:
        self._entries: deque[RecordedRequest] = deque(maxlen=_MAX_ENTRIES)
        self._methods: Counter[str] = Counter()
        self._statuses: Counter[str] = Counter()

    @property
    def entries(self) -> tuple[RecordedRequest, ...]:
        """The requests that are kept, oldest first."""
        return tuple(self._entries)

    def counts(self) -> dict[str, Any]:
        """The number of requests: in total, of writes, by method and by status."""
        writes = sum(count for method, count in self._methods.items() if method not in _READS)
        by_method, by_status = dict(sorted(self._methods.items())), dict(sorted(self._statuses.items()))
        return {"total": self._methods.total(), "writes": writes, "byMethod": by_method, "byStatus": by_status}

    def add(self, entry: RecordedRequest) -> None:
        """Adds a request, with its secrets redacted."""
        self._entries.append(
            RecordedRequest(entry.method, entry.path, entry.query, redacted(entry.body), entry.status, entry.at)
        )
        self._methods[entry.method] += 1
        self._statuses["dropped" if entry.status is None else str(entry.status)] += 1

    def clear(self) -> None:
        """Removes all requests and resets the counts."""
        self._entries.clear()
        self._methods.clear()
        self._statuses.clear()


def redacted(value: object) -> object:
    """`value` with every secret in it redacted."""
    if isinstance(value, Mapping):
        return {
            name: _REDACTED if _SECRET_NAME.search(name) and not isinstance(inner, dict | bool) else redacted(inner)
            for name, inner in value.items()
        }
    return [redacted(one) for one in value] if isinstance(value, list) else value
