"""Methods of Google's services, before anything is sent."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from urllib.parse import quote, urlencode


class Service(StrEnum):
    """A service, by the path its methods start with."""

    SQL = "/sql/v1beta4"
    STORAGE = "/storage/v1"


@dataclass(frozen=True, slots=True)
class Call:
    """A method of a service: the parts of its path as they are meant, unquoted, and its query."""

    service: Service
    parts: tuple[str, ...]
    query: Mapping[str, str] = field(default_factory=dict)

    @property
    def path(self) -> str:
        """The path with its query, quoted."""
        parts = "/".join(quote(part, safe="") for part in self.parts)
        query = urlencode({**self.query, "alt": "json", "prettyPrint": "false"})
        return f"{self.service.value}/{parts}?{query}"
