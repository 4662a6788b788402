"""Outputs: the value that a resource offers to its dependants, in three states that survive storage.

Only a `field` wait makes an output: the object pruned to the path that was waited for.
"""

from collections.abc import Mapping
from enum import Enum, auto
from typing import Final, NamedTuple, TypeAlias, assert_never

from setpoint.core.unstructured import without_volatile
from setpoint.core.values.canonical import canonical, same
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import MISSING, Json, Missing
from setpoint.core.values.paths import Path, PathStep, Selector, get_at, value_below
from setpoint.core.values.shortening import shorten
from setpoint.core.wait.judge import (
    ObjectFound,
    ObjectNotFound,
    ReadFailed,
    Satisfied,
    TimedOut,
    Unsatisfiable,
    Unsatisfied,
    WaitObservation,
    is_present_at,
    judge,
    secrecy_of,
)
from setpoint.core.wait.wait_for import FieldWait, WaitCriterion
from setpoint.errors import Blocked, ManifestInvalid, NotJson

# The most bytes of an output: it is in the status of the resource, beside a spec that may be large.
MAX_OUTPUT_BYTES: Final = 256 * 1024


class UnknownCause(Enum):
    """Why a value is unknown; for code, where `Unknown.reason` is for people."""

    NOT_FOUND = auto()
    # The value was known, and is gone.
    DISAPPEARED = auto()
    UNSATISFIED = auto()
    UNSATISFIABLE = auto()
    READ_FAILED = auto()
    TIMED_OUT = auto()
    NOT_STORABLE = auto()


@dataclass(frozen=True, slots=True)
class Null:
    """Not tracked: the resource has no `field` wait."""


@dataclass(frozen=True, slots=True, eq=False)
class Unknown:
    """Tracked, and without a value: dependants are blocked.

    `since` is when it became unknown, and stays while `reason` changes; "" when that is not known. `last` is the value
    that was known before, to be shown; dependants never get it. `cause` is not stored.
    """

    reason: str
    since: str
    last: Json | Missing = MISSING
    cause: UnknownCause | None = None

    # Compared as JSON: for Python, Unknown(…, 1) equals Unknown(…, True).
    def __eq__(self, other: object) -> bool:
        return isinstance(other, Unknown) and same(to_data(self), to_data(other))


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """The value: the object pruned to the path that was waited for."""

    value: Json

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Known) and same(self.value, other.value)


OutputState: TypeAlias = Null | Unknown | Known


def to_data(output: OutputState) -> dict[str, Json]:
    """`output` as JSON, as it is stored."""
    match output:
        case Null():
            return {"state": "null"}
        case Unknown(reason, since, last):
            stored: dict[str, Json] = {"state": "unknown", "reason": shorten(reason), "since": since}
            return stored if last is MISSING else {**stored, "last": last}
        case Known(value):
            return {"state": "known", "value": value}
        case _:
            assert_never(output)


def from_data(data: object) -> OutputState:
    """The output stored by `to_data`. Unreadable data is Unknown: dependants are blocked and the wait runs again."""
    if not isinstance(data, Mapping):
        return _unreadable("it is not a map")
    try:
        canonical(data)
    except NotJson as error:
        return _unreadable(str(error))
    match data:
        case {"state": "null"}:
            return Null()
        case {"state": "unknown", "reason": str(reason), "since": str(since)}:
            return Unknown(reason, since, data.get("last", MISSING))
        case {"state": "known", "value": value}:
            return Known(value)
        case _:
            return _unreadable("it is none of null, unknown with reason and since, known with value")


def _unreadable(why: str) -> Unknown:
    return Unknown(f"the stored output cannot be read: {why}", "")


# --- Pruning ---------------------------------------------------------------------------------------------------------


def prune(tree: Json, path: Path) -> Json | Missing:
    """`tree` pruned to `path`: `get_at` finds the same value in both; `MISSING` when it finds none.

    An element keeps its position, with null for the elements before it; a selected one keeps its key fields.
    """
    parents: list[Json] = []
    pruned = tree
    for step in path.steps:
        below = value_below(pruned, step)
        if below is MISSING:
            return MISSING
        parents.append(pruned)
        pruned = below
    for parent, step in zip(reversed(parents), reversed(path.steps), strict=True):
        pruned = _wrap(pruned, step, parent)
    return pruned


def _wrap(pruned: Json, step: PathStep, parent: Json) -> Json:
    match step:
        case str():
            return {step: pruned}
        case int():
            return [*(None for _ in range(step)), pruned]
        case Selector(pairs):
            element = value_below(parent, step)
            assert isinstance(element, Mapping)
            assert isinstance(pruned, Mapping)
            return [{**{name: element[name] for name, _ in pairs}, **pruned}]
        case _:
            assert_never(step)


# --- From an observation to an output --------------------------------------------------------------------------------


class _Why(NamedTuple):
    """Why a value is unknown: for code, and for people."""

    cause: UnknownCause
    reason: str


_DISAPPEARED: Final = _Why(UnknownCause.DISAPPEARED, "disappeared")


def output_of(wait: WaitCriterion | None, observation: WaitObservation, previous: OutputState, now: str) -> OutputState:
    """The output of a resource after this observation; `previous` is its output before."""
    if not isinstance(wait, FieldWait):
        return Null()
    last = _last_value(previous, wait.path)
    if secrecy_of(wait, observation.live if isinstance(observation, ObjectFound) else None) is not None:
        # From before the value was known to be secret.
        last = MISSING
    found: Known | _Why
    match observation:
        case ObjectFound(live):
            found = _found(wait, live, last)
        case ObjectNotFound(what):
            found = _Why(UnknownCause.NOT_FOUND, f"{what} does not exist yet") if last is MISSING else _DISAPPEARED
        case ReadFailed(why):
            found = _Why(UnknownCause.READ_FAILED, f"the read failed: {why}")
        case TimedOut(why):
            found = _Why(UnknownCause.TIMED_OUT, f"the wait timed out: {why}")
        case _:
            assert_never(observation)
    if isinstance(found, Known):
        return found
    since = previous.since if isinstance(previous, Unknown) else now
    return Unknown(found.reason, since or now, last, found.cause)


def _found(wait: FieldWait, live: Json, last: Json | Missing) -> Known | _Why:
    """The value, or why it is unknown."""
    match judge(wait, live):
        case Satisfied():
            return _storable(prune(live, wait.path))
        case Unsatisfiable(reason, message):
            return _Why(UnknownCause.UNSATISFIABLE, f"{reason}: {message}")
        case Unsatisfied(missing):
            gone = last is not MISSING and not is_present_at(live, wait.path)
            return _DISAPPEARED if gone else _Why(UnknownCause.UNSATISFIED, missing)
        case result:
            assert_never(result)


def _storable(value: Json | Missing) -> Known | _Why:
    assert value is not MISSING
    known = Known(without_volatile(value, Path(())))
    try:
        size = len(canonical(to_data(known)))
    except NotJson as error:
        return _Why(UnknownCause.NOT_STORABLE, f"the value cannot be stored: {error}")
    if size > MAX_OUTPUT_BYTES:
        why = f"it has {size:,} bytes, and a status has room for {MAX_OUTPUT_BYTES:,}: wait for a field within it"
        return _Why(UnknownCause.NOT_STORABLE, f"the value cannot be stored: {why}")
    return known


def _last_value(previous: OutputState, path: Path) -> Json | Missing:
    """The value known before; `MISSING` when it was pruned to another path."""
    match previous:
        case Null():
            return MISSING
        case Known(value) | Unknown(last=value):
            return MISSING if get_at(value, path) is MISSING else value
        case _:
            assert_never(previous)


def value_at(output: OutputState, path: Path, source: str) -> Json:
    """The value at `path` for a dependant of `source`. Blocked while it is unknown; ManifestInvalid when not tracked.

    A null in the value counts as unknown: it may stand for an element that was pruned.
    """
    match output:
        case Null():
            raise ManifestInvalid(
                f"{path} of {source} is not tracked: add waitFor.field to {source}, such as waitFor: {{field: {path}}}"
            )
        case Unknown(reason, since):
            for_how_long = f", unknown since {since}" if since else ""
            raise Blocked(f"waiting for {path} of {source}{for_how_long}: {reason}")
        case Known(value):
            found = get_at(value, path)
            if found is MISSING or found is None:
                raise Blocked(
                    f"waiting for {path} of {source}: it is not in the value that {source} waits for; "
                    f"if it never comes, wait for it there (waitFor.field)"
                )
            return found
        case _:
            assert_never(output)
