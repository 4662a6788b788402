"""A reconcile request: the text of an annotation, in which a command says when it asked, and which command it is."""

from datetime import datetime
from enum import StrEnum

from setpoint.core.values.json_types import Json, JsonObject
from setpoint.engine.resource import Resource
from setpoint.engine.state import RECONCILE_REQUESTED, StoredState, reconcile_request


class CommandTrigger(StrEnum):
    """The command that requests steps. The value is the trigger in the record of each step."""

    APPLY = "setpoint apply"
    RECONCILE = "setpoint reconcile"
    DELETE = "setpoint delete"
    PRUNE = "setpoint apply --prune"
    # Of the library alone.
    WAIT = "wait"


def request_text(at: str, command: CommandTrigger) -> str:
    """The text of a request that was made at the time `at`, which may have a suffix that makes it unique."""
    return f"{at}/{command.value}"


def requesting_command(text: str) -> CommandTrigger | None:
    """The command that made the request; None for any other text, such as that of `kubectl annotate`."""
    word = text.rpartition("/")[2]
    return CommandTrigger(word) if word in tuple(CommandTrigger) else None


def request_trigger(text: str, *, is_in_cluster: bool) -> str:
    """The trigger of the step that handles the request; in a cluster with the annotation, which any client may set."""
    command = requesting_command(text)
    if command is not None and not is_in_cluster:
        return command.value
    who = "an operator" if command is None else command.value
    return f"{who}, requested by annotation {RECONCILE_REQUESTED}"


def latest_request(resource: Resource) -> dict[str, Json] | None:
    """The request that is open, or was handled last without a new record of a step; None when there is none."""
    state, text = StoredState.of(resource), reconcile_request(resource.annotations)
    if text is None:
        return None
    is_handled = state.handled == text
    at, command = text.partition("/")[0], requesting_command(text)
    if is_handled and _is_recorded(at, command, state.step or {}):
        return None
    return {"at": at, "by": None if command is None else command.value, "handled": is_handled}


def _is_recorded(at: str, command: CommandTrigger | None, step: JsonObject) -> bool:
    """Whether a step after the request is on record; times are compared by the second."""
    recorded, trigger = step.get("at"), str(step.get("trigger"))
    try:
        asked = datetime.fromisoformat(at).replace(microsecond=0)
        since = datetime.fromisoformat(str(recorded)) - asked
    except (TypeError, ValueError):
        # No time, or one without a zone.
        return True
    is_same_command = command is None or trigger.startswith(command.value)
    return since.total_seconds() > 0 or (since.total_seconds() == 0 and is_same_command)
