"""Methods of Google's services, before anything is sent."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final
from urllib.parse import quote, urlencode

_ALWAYS: Final = "alt=json&prettyPrint=false"
_PLAIN: Final = re.compile(r"[A-Za-z0-9_.~-]+").fullmatch


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
        path = f"{self.service.value}/{'/'.join(map(_quoted, self.parts))}?"
        return f"{path}{urlencode(self.query)}&{_ALWAYS}" if self.query else path + _ALWAYS


def _quoted(part: str) -> str:
    # Most names need no quotes, and to see that is cheaper than to find none.
    return part if _PLAIN(part) else quote(part, safe="")
