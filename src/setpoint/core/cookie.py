"""The cookie: both digests as they were when intent and live last agreed."""

import re
from dataclasses import dataclass
from typing import Final

_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
_COOKIE: Final = re.compile(r"([0-9a-f]{64})/([0-9a-f]{64})")


@dataclass(frozen=True, slots=True)
class Cookie:
    """`<intent digest>/<live digest>`, two lower-case hex SHA-256: 129 characters."""

    intent: str
    live: str

    def __post_init__(self) -> None:
        for digest in (self.intent, self.live):
            if not _DIGEST.fullmatch(digest):
                raise ValueError(f"{digest!r} is not a SHA-256 digest in lower-case hex")

    @staticmethod
    def parse(text: object) -> "Cookie | None":
        """The cookie that `text` writes; None for anything else, another tool's cookie included: it is not trusted."""
        found = _COOKIE.fullmatch(text) if isinstance(text, str) else None
        return Cookie(found[1], found[2]) if found else None

    def __str__(self) -> str:
        return f"{self.intent}/{self.live}"
