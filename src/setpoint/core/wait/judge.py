"""Whether a live object satisfies a wait, may satisfy it later, or never will.

A failed object ends every wait at once; a status of an older generation satisfies none.
"""

from typing import TypeAlias, assert_never

from setpoint.core.conditions import ConditionStatus, find_condition
from setpoint.core.redaction import is_secret
from setpoint.core.secret_paths import secret_within
from setpoint.core.unstructured import (
    condition_lag,
    conditions_of,
    display_name,
    generation_lag,
    group_kind,
    observed_generation,
    text_at,
    without_volatile,
)
from setpoint.core.values.canonical import canonical, same
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import MISSING, Json, Missing
from setpoint.core.values.paths import Path, get_at, scalar_text
from setpoint.core.wait.rollout import rollout_pending
from setpoint.core.wait.wait_for import ConditionWait, FieldValueWait, FieldWait, RolloutWait, WaitCriterion
from setpoint.errors import NotJson


@dataclass(frozen=True, slots=True)
class Satisfied:
    """The wait is satisfied."""


@dataclass(frozen=True, slots=True)
class Unsatisfied:
    """Not satisfied yet; `missing` says what is missing."""

    missing: str


@dataclass(frozen=True, slots=True)
class Unsatisfiable:
    """The object failed: waiting longer changes nothing."""

    reason: str
    message: str


JudgeResult: TypeAlias = Satisfied | Unsatisfied | Unsatisfiable


@dataclass(frozen=True, slots=True)
class ObjectFound:
    """The live object."""

    live: Json


@dataclass(frozen=True, slots=True)
class ObjectNotFound:
    """The object does not exist; `what` is its name in messages."""

    what: str


@dataclass(frozen=True, slots=True)
class ReadFailed:
    """The object could not be read, and `why`."""

    why: str


@dataclass(frozen=True, slots=True)
class TimedOut:
    """The wait timed out; `why` says what was still missing."""

    why: str


WaitObservation: TypeAlias = ObjectFound | ObjectNotFound | ReadFailed | TimedOut


def judge(wait: WaitCriterion, live: Json) -> JudgeResult:
    """Whether `live` satisfies `wait`, may yet, or never will. ManifestInvalid for a rollout of a kind without one.

    A secret value satisfies none, whatever it is: the result would tell it.
    """
    refusal = secrecy_of(wait, live)
    if refusal is not None:
        return Unsatisfiable("SecretValue", refusal)
    missing = _missing(wait, live)
    if missing is None:
        return Satisfied()
    # After the wait itself: the failure of a Job may be what is waited for.
    return _failure(live) or Unsatisfied(missing)


def judge_observation(
    wait: WaitCriterion, observation: ObjectFound | ObjectNotFound, uid: str | Missing
) -> JudgeResult:
    """The result for the object that the wait began with: `uid` is its uid, `MISSING` if it never existed."""
    match observation:
        case ObjectNotFound(what) if uid is MISSING:
            return Unsatisfied(f"{what} does not exist yet")
        case ObjectNotFound(what):
            return Unsatisfiable("Deleted", f"{what} was deleted while it was waited for")
        case ObjectFound(live):
            now, result = text_at(live, "metadata", "uid"), judge(wait, live)
            # A recreated object that satisfies the wait is as good as the first one.
            if uid is not MISSING and now and now != uid and not isinstance(result, Satisfied):
                return Unsatisfiable(
                    "Recreated", f"{display_name(live)} was replaced by another while it was waited for"
                )
            return result
        case _:
            assert_never(observation)


def secrecy_of(wait: WaitCriterion, object_: Json) -> str | None:
    """Why a wait for the object, or for one with this manifest, is refused: it is about a secret value. None if not."""
    for path in _paths(wait):
        secret = secret_within(object_, path)
        if secret is not None:
            why = "secret values do not become outputs, nor are they compared: a status is not confidential"
            return f"{path} is, or contains, {secret}: {why}"
    return None


def _paths(wait: WaitCriterion) -> tuple[Path, ...]:
    match wait:
        case FieldWait(path):
            return (path,)
        case FieldValueWait(values):
            return tuple(path for path, _ in values)
        case _:
            return ()


def _missing(wait: WaitCriterion, live: Json) -> str | None:
    match wait:
        case FieldWait(path):
            return _field_missing(path, live)
        case FieldValueWait(values):
            each = (_value_missing(path, wanted, live) for path, wanted in values)
            return "; ".join(filter(None, each)) or None
        case ConditionWait():
            return _condition_missing(wait, live)
        case RolloutWait():
            return rollout_pending(live)
        case _:
            assert_never(wait)


def is_present(value: Json | Missing) -> bool:
    """Whether `value` satisfies a field wait: null, "", [] and {} do not, false and 0 do."""
    return bool(value) or isinstance(value, bool | int | float)


def is_present_at(live: Json, path: Path) -> bool:
    """Whether the value at `path` of `live` satisfies a field wait; volatile fields do not count."""
    found = get_at(live, path)
    return found is not MISSING and is_present(without_volatile(found, path))


def _field_missing(path: Path, live: Json) -> str | None:
    if not is_present_at(live, path):
        no_status = path.steps[:1] == ("status",) and not is_present(get_at(live, Path(("status",))))
        return f"{path} is not there yet{': the object has no status' if no_status else ''}"
    return _out_of_date(path, live)


def _value_missing(path: Path, wanted: Json, live: Json) -> str | None:
    current = get_at(live, path)
    if not _matches(wanted, current):
        show = _redacted if is_secret(live) else _shown
        return f"{path} is {show(current)}, wanted {show(wanted)}"
    return _out_of_date(path, live)


def _matches(wanted: Json, current: Json | Missing) -> bool:
    """Text also matches a number or boolean with the same text form, as in `kubectl wait`."""
    if current is MISSING:
        return False
    as_text = isinstance(wanted, str) and isinstance(current, bool | int | float)
    return same(wanted, scalar_text(current) if as_text else current)


def _condition_missing(wait: ConditionWait, live: Json) -> str | None:
    conditions = conditions_of(live)
    condition = find_condition(conditions, wait.type)
    if condition is None:
        there = ", ".join(condition.type for condition in conditions) or "none"
        return f"condition {wait.type} is not there yet (there: {there})"
    if condition.status != wait.status:
        why = ": ".join(filter(None, (condition.reason, condition.message)))
        return f"condition {wait.type} is {condition.status}, wanted {wait.status}{f' ({why})' if why else ''}"
    behind = condition_lag(live, condition)
    return f"condition {wait.type} is out of date: {behind}" if behind else None


def _out_of_date(path: Path, live: Json) -> str | None:
    behind = generation_lag(live, observed_generation(live)) if path.steps[:1] == ("status",) else None
    return f"{path} is out of date: {behind}" if behind else None


def _shown(value: Json | Missing) -> str:
    """A value in a message, truncated."""
    if value is MISSING:
        return "not there"
    try:
        text = canonical(value).decode()
    except NotJson:
        return "a value without a JSON form"
    return text if len(text) <= 80 else f"{text[:79]}…"


def _redacted(value: Json | Missing) -> str:
    return "not there" if value is MISSING else "(hidden)"


def _failure(live: Json) -> Unsatisfiable | None:
    phase = text_at(live, "status", "phase")
    match group_kind(live):
        case ("batch", "Job"):
            return _failed_condition(live, "Failed", "True")
        case ("apps", "Deployment"):
            failed = _failed_condition(live, "Progressing", "False")
            return failed if failed and failed.reason == "ProgressDeadlineExceeded" else None
        case ("", "Pod") if phase == "Failed":
            reason, message = text_at(live, "status", "reason"), text_at(live, "status", "message")
            return Unsatisfiable(reason or "PodFailed", message or f"{display_name(live)} has failed")
        case ("", "PersistentVolumeClaim") if phase == "Lost":
            return Unsatisfiable("ClaimLost", f"{display_name(live)} has lost its volume")
        case _:
            return None


def _failed_condition(live: Json, type_: str, status: ConditionStatus) -> Unsatisfiable | None:
    condition = find_condition(conditions_of(live), type_)
    if condition is None or condition.status != status or condition_lag(live, condition):
        return None
    return Unsatisfiable(condition.reason or type_, condition.message or f"{display_name(live)}: {type_} is {status}")
