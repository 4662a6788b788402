"""What a look at both digests says: the one place where author, world and first contact are told apart."""

from enum import StrEnum

from setpoint.core.cookie import Cookie
from setpoint.core.values import MISSING, Missing


class Decision(StrEnum):
    """Why this step acts, or does not."""

    CREATE = "create"
    INTENT_CHANGED = "intent changed"
    DRIFTED = "drifted"
    BOTH = "both"
    FIRST_LOOK = "first look"
    IN_SYNC = "in sync"


def decide(cookie: Cookie | None, intent: str, live: str | Missing) -> Decision:
    """The decision for these digests of now, `live` being MISSING when the object is not there."""
    if live is MISSING:
        return Decision.CREATE
    if cookie is None:
        return Decision.FIRST_LOOK
    if cookie.intent != intent:
        return Decision.INTENT_CHANGED if cookie.live == live else Decision.BOTH
    return Decision.IN_SYNC if cookie.live == live else Decision.DRIFTED
