"""What became of a resource, in one word, one line and one exit code."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum

from setpoint.core.plan import Action
from setpoint.engine.scene import Gone, Outcome, Settled, Stopped
from setpoint.errors import Blocked, NotReady, RemoteUnavailable, Retry, SetpointError, WaitFailed, WaitTimedOut


class Exit(IntEnum):
    """What a command tells its caller."""

    DONE = 0
    FAILED = 1
    CHANGES = 2
    WAITING = 3


@dataclass(frozen=True, slots=True)
class State:
    """A word for the table, the rest of the line, a colour, and what it means for the command."""

    word: str
    detail: str
    style: str
    code: Exit


DONE_WORDS = {Action.CREATE: "created", Action.UPDATE: "updated", Action.REPLACE: "replaced", Action.DELETE: "deleted"}


# What a resource that is not ready means for the command, by its reason. Any other is an owner's: it has done its part.
_CODES = {"NotConverged": Exit.FAILED, "Contested": Exit.WAITING}

# Nothing is written then: what was written is of long ago.
_HELD = ("Observed", "Paused")


def state_of(outcome: Outcome) -> State:
    """How it stands after `outcome`."""
    match outcome:
        case Gone():
            return State("deleted", "", "green", Exit.DONE)
        case Settled(plan, ready) if ready.status == "True":
            word = DONE_WORDS[plan.writes[0].action] if plan.writes else "unchanged"
            return State(word, "", "green", Exit.DONE)
        case Settled(plan, ready):
            code = _CODES.get(ready.reason, Exit.DONE)
            word = "".join(f" {one.lower()}" if one.isupper() else one for one in ready.reason).strip()
            if plan.writes and code is Exit.DONE and ready.reason not in _HELD:
                word = f"{DONE_WORDS[plan.writes[0].action]}, {word}"
            return State(word, ready.message, "red" if code is Exit.FAILED else "yellow", code)
        case Stopped(error):
            return _stopped(error)


def _stopped(error: SetpointError) -> State:
    match error:
        case Blocked():
            return State("blocked", str(error), "magenta", Exit.WAITING)
        case WaitTimedOut():
            return State("timed out", str(error), "yellow", Exit.WAITING)
        case WaitFailed():
            return State("failed", str(error), "red", Exit.FAILED)
        case RemoteUnavailable():
            return State("retrying", str(error), "yellow", Exit.WAITING)
        case _:
            is_waiting = isinstance(error, NotReady) or error.retry is Retry.STEP_AGAIN
            word, style, code = ("waiting", "yellow", Exit.WAITING) if is_waiting else ("failed", "red", Exit.FAILED)
            return State(word, str(error), style, code)


def worst(codes: Iterable[Exit]) -> Exit:
    """The one that counts when there are several: failed, then changes, then waiting, then done."""
    found = set(codes)
    return next((code for code in (Exit.FAILED, Exit.CHANGES, Exit.WAITING) if code in found), Exit.DONE)
