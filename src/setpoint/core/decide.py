"""The cookie and the decision: which of intent and live state changed since both last agreed."""

import re
from enum import StrEnum
from typing import Final

from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import MISSING, Missing

_DIGEST: Final = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Cookie:
    """The digests of intent and live state when both last agreed: `<intent>/<live>`, lower-case hex SHA-256."""

    intent: str
    live: str

    def __post_init__(self) -> None:
        for digest in (self.intent, self.live):
            if not _DIGEST.fullmatch(digest):
                raise ValueError(f"{digest!r} is not a SHA-256 digest in lower-case hex")

    @staticmethod
    def parse(text: object) -> "Cookie | None":
        """The cookie written as `text`; None for any other text, such as a cookie of another tool."""
        if not isinstance(text, str):
            return None
        intent, _, live = text.partition("/")
        try:
            return Cookie(intent, live)
        except ValueError:
            return None

    def __str__(self) -> str:
        return f"{self.intent}/{self.live}"


class Decision(StrEnum):
    """Why a step writes, or does not."""

    CREATE = "create"
    INTENT_CHANGED = "intent changed"
    DRIFTED = "drifted"
    BOTH = "both"
    # The revision of the kind changed, and nothing that the author declares.
    REVISED = "revised"
    # The same, and the live object reads differently: it changed, or the new revision reads it otherwise.
    REVISED_AND_CHANGED = "revised, live changed"
    FIRST_LOOK = "first look"
    # Of a kind without cookies: everything was compared, and something differs.
    DIFFERS = "differs"
    IN_SYNC = "in sync"


class DecisionReason(StrEnum):
    """What a decision does not say by itself."""

    # Of `create`: the object existed, and was deleted.
    DELETED = "deleted"
    # Of `first look`: the object existed before the first step of its resource.
    ADOPTED = "adopted"
    # Of `in sync` and `differs`: the kind has no cookies.
    COMPARED = "compared in full"


def decide(cookie: Cookie | None, intent: str, live: str | Missing, *, is_revised: bool = False) -> Decision:
    """The decision for the current digests; `live` is MISSING when the object does not exist.

    `is_revised`: a new digest of the intent is due to the revision of the kind alone.
    """
    if live is MISSING:
        return Decision.CREATE
    if cookie is None:
        return Decision.FIRST_LOOK
    if cookie.intent == intent:
        return Decision.IN_SYNC if cookie.live == live else Decision.DRIFTED
    if is_revised:
        return Decision.REVISED if cookie.live == live else Decision.REVISED_AND_CHANGED
    return Decision.INTENT_CHANGED if cookie.live == live else Decision.BOTH
