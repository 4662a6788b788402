"""The outcome of a step as one word, one line, a colour and an exit code."""

from collections.abc import Iterable, Mapping
from enum import IntEnum

from setpoint.core.conditions import ConditionReason
from setpoint.core.plan import Action, Plan
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.engine.conditions import UNMANAGED_REASONS, retained_message
from setpoint.engine.step.finish import ADOPT
from setpoint.engine.step.outcomes import Gone, Settled, StepOutcome, Stopped
from setpoint.errors import Blocked, NotReady, RemoteUnavailable, Retry, SetpointError, WaitFailed, WaitTimedOut


class ExitCode(IntEnum):
    """The exit code of a command."""

    DONE = 0
    FAILED = 1
    CHANGES = 2
    WAITING = 3


@dataclass(frozen=True, slots=True)
class OutcomeSummary:
    """The outcome of a step for display: a word, the rest of the line, a colour, and the exit code it means."""

    word: str
    detail: str
    style: str
    code: ExitCode


ACTION_WORDS = {
    Action.CREATE: "created",
    Action.UPDATE: "updated",
    Action.REPLACE: "replaced",
    Action.DELETE: "deleted",
}
# What a step began, as a word once it is done.
BEGUN_WORDS: Mapping[str, str] = {ADOPT: "adopted", **{action.value: word for action, word in ACTION_WORDS.items()}}


# What a resource that is not ready means for the command, by its reason. Any other is an owner's: it has done its part.
_EXIT_CODES: Mapping[str, ExitCode] = {
    ConditionReason.NOT_CONVERGED: ExitCode.FAILED,
    ConditionReason.CONTESTED: ExitCode.WAITING,
}


def summarize_outcome(outcome: StepOutcome) -> OutcomeSummary:
    """The summary of a step's outcome."""
    match outcome:
        case Gone():
            return OutcomeSummary("deleted", "", "green", ExitCode.DONE)
        case Settled(plan, ready) if ready.status == "True":
            return OutcomeSummary(_word(plan), _detail(plan), "green", ExitCode.DONE)
        case Settled(plan, ready):
            code = _EXIT_CODES.get(ready.reason, ExitCode.DONE)
            word = "".join(f" {one.lower()}" if one.isupper() else one for one in ready.reason).strip()
            # Of an unmanaged resource the writes are those of an earlier step.
            if plan.writes and code is ExitCode.DONE and ready.reason not in UNMANAGED_REASONS:
                word = f"{ACTION_WORDS[plan.writes[0].action]}, {word}"
            return OutcomeSummary(word, ready.message, "red" if code is ExitCode.FAILED else "yellow", code)
        case Stopped(error):
            return _summarize_error(error)


def _word(plan: Plan) -> str:
    if plan.is_adoption:
        return BEGUN_WORDS[ADOPT]
    return ACTION_WORDS[plan.writes[0].action] if plan.writes else "unchanged"


def _detail(plan: Plan) -> str:
    """That the object was there before, and which fields stay although the spec leaves them out."""
    adopted = f"it was there before, and {'was updated' if plan.writes else 'nothing was changed'}"
    parts = ([adopted] if plan.is_adoption else []) + ([retained_message(plan.retained)] if plan.retained else [])
    return ". ".join(parts)


def _summarize_error(error: SetpointError) -> OutcomeSummary:
    match error:
        case Blocked():
            return OutcomeSummary("blocked", str(error), "magenta", ExitCode.WAITING)
        case WaitTimedOut():
            return OutcomeSummary("timed out", str(error), "yellow", ExitCode.WAITING)
        case WaitFailed():
            return OutcomeSummary("failed", str(error), "red", ExitCode.FAILED)
        case RemoteUnavailable():
            return OutcomeSummary("retrying", str(error), "yellow", ExitCode.WAITING)
        case _:
            is_waiting = isinstance(error, NotReady) or error.retry is Retry.STEP_AGAIN
            word, style, code = (
                ("waiting", "yellow", ExitCode.WAITING) if is_waiting else ("failed", "red", ExitCode.FAILED)
            )
            return OutcomeSummary(word, str(error), style, code)


def worst_exit_code(codes: Iterable[ExitCode]) -> ExitCode:
    """The exit code of several: failed before changes before waiting before done."""
    found = set(codes)
    return next(
        (code for code in (ExitCode.FAILED, ExitCode.CHANGES, ExitCode.WAITING) if code in found), ExitCode.DONE
    )
