"""`waitFor` of a manifest: the criteria, their parsing, and the key under which a wait stays satisfied."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias, assert_never

from setpoint.core.conditions import ConditionStatus
from setpoint.core.unstructured import count_at, text_at, volatile_step
from setpoint.core.values.canonical import canonical, digest
from setpoint.core.values.durations import parse_duration
from setpoint.core.values.json_types import MISSING, Json, Missing
from setpoint.core.values.messages import FieldTerm, MemberTerm, Message, joined, message_of
from setpoint.core.values.paths import Path, nearest
from setpoint.errors import ManifestInvalid, UnknownField


@dataclass(frozen=True, slots=True)
class FieldWait:
    """Until `path` has a value. The only wait that makes an output."""

    path: Path


@dataclass(frozen=True, slots=True)
class FieldValueWait:
    """Until every path has its value."""

    values: tuple[tuple[Path, Json], ...]


@dataclass(frozen=True, slots=True)
class ConditionWait:
    """Until the condition of this type has this status."""

    type: str
    status: ConditionStatus = "True"


@dataclass(frozen=True, slots=True)
class RolloutWait:
    """Until the rollout of the workload is complete."""


WaitCriterion: TypeAlias = FieldWait | FieldValueWait | ConditionWait | RolloutWait


@dataclass(frozen=True, slots=True)
class WaitFor:
    """A wait, and the one timeout for all of it: until the object exists, is observed and satisfies the wait."""

    wait: WaitCriterion
    timeout_seconds: float = 600.0


_WAIT: Final = "waitFor"


# --- The manifest form -----------------------------------------------------------------------------------------------


def parse_wait(data: object) -> WaitFor:
    """The wait in a manifest's `waitFor`; ManifestInvalid or UnknownField names the wrong member."""
    members = _members(data, _WAIT, (*_READERS, "timeout"))
    given = [name for name in _READERS if name in members]
    if len(given) != 1:
        found = Message("it has ", _names(_WAIT, given, " and ")) if given else "it has none"
        raise ManifestInvalid(
            Message(FieldTerm("waitFor"), ": give exactly one of ", _names(_WAIT, _READERS), "; ", found)
        )
    wait = _READERS[given[0]](members[given[0]])
    return WaitFor(wait, _timeout(members["timeout"])) if "timeout" in members else WaitFor(wait)


def _members(data: object, at: str, known: tuple[str, ...]) -> Mapping[str, Json]:
    if not isinstance(data, Mapping):
        raise ManifestInvalid(Message(FieldTerm(at), f" is {data!r}: write a map with ", _names(at, known)))
    canonical(data)
    for name in data:
        if name not in known:
            near = nearest(name, known)
            guess = Message(": no such member; did you mean ", _names(at, near, " or "), "?")
            hint = guess if near else Message(": no such member; there is ", _names(at, known))
            raise UnknownField(Message(FieldTerm(f"{at}.{name}"), hint), near)
    return data


def _names(at: str, members: Iterable[str], separator: str = ", ") -> Message:
    return joined(separator, (MemberTerm(at, name) for name in members))


def _read_field(data: Json) -> WaitCriterion:
    path = _path(data, "waitFor.field")
    step = volatile_step(path)
    if step is not None:
        why = f" is {path}: {step} changes without a change of state, and cannot be an output. "
        advice = Message("To wait for what it is to be, write ", MemberTerm(_WAIT, "fieldValue"))
        raise ManifestInvalid(Message(FieldTerm("waitFor.field"), why, advice))
    return FieldWait(path)


def _read_field_value(data: Json) -> WaitCriterion:
    if not isinstance(data, Mapping) or not data:
        problem = f' is {data!r}: write a map of paths, such as {{"status.phase": "Running"}}'
        raise ManifestInvalid(Message(FieldTerm("waitFor.fieldValue"), problem))
    values = {_path(text, "waitFor.fieldValue"): value for text, value in data.items()}
    if len(values) < len(data):
        twice = " names one path twice: give each path one value"
        raise ManifestInvalid(Message(FieldTerm("waitFor.fieldValue"), twice))
    return FieldValueWait(tuple(values.items()))


_TYPE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_./-]*")


def _read_condition(data: Json) -> WaitCriterion:
    members = {"type": data} if isinstance(data, str) else _members(data, "waitFor.condition", ("type", "status"))
    type_ = members.get("type")
    if not isinstance(type_, str) or not _TYPE.fullmatch(type_):
        no_type = f' is {type_!r}: write a type such as Ready, or {{type: Ready, status: "False"}}'
        raise ManifestInvalid(Message(FieldTerm("waitFor.condition.type"), no_type))
    match members.get("status", "True"):
        case "True" | "False" | "Unknown" as status:
            return ConditionWait(type_, status)
        case bool() as status:
            # YAML reads an unquoted True as a boolean, and the meaning is clear.
            return ConditionWait(type_, "True" if status else "False")
        case other:
            no_status = f' is {other!r}: write "True", "False" or "Unknown"'
            raise ManifestInvalid(Message(FieldTerm("waitFor.condition.status"), no_status))


def _read_rollout(data: Json) -> WaitCriterion:
    if data is not True:
        raise ManifestInvalid(Message(FieldTerm("waitFor.rollout"), f" is {data!r}: write true, or leave it out"))
    return RolloutWait()


_READERS: Final[dict[str, Callable[[Json], WaitCriterion]]] = {
    "field": _read_field,
    "fieldValue": _read_field_value,
    "condition": _read_condition,
    "rollout": _read_rollout,
}


def _path(data: Json, at: str) -> Path:
    if not isinstance(data, str) or not data:
        raise ManifestInvalid(Message(FieldTerm(at), f" is {data!r}: write a path such as status.loadBalancer.ingress"))
    try:
        return Path.parse(data)
    except ManifestInvalid as error:
        raise ManifestInvalid(Message(FieldTerm(at), ": ", message_of(error))) from error


def _timeout(data: Json) -> float:
    try:
        return parse_duration(data)
    except ManifestInvalid as error:
        raise ManifestInvalid(Message(FieldTerm("waitFor.timeout"), ": ", message_of(error))) from error


# --- The key of a satisfied wait -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SatisfactionKey:
    """The scope of a satisfied wait: this object, this generation, this wait. Stored as its text."""

    uid: str
    generation: int
    wait_digest: str

    def __str__(self) -> str:
        return f"{self.uid}/{self.generation}/{self.wait_digest}"


def satisfaction_key(wait: WaitCriterion, live: Json) -> SatisfactionKey | Missing:
    """The key for `wait` on `live`; `MISSING` without a uid, since a new object of the same name would share the key.

    The timeout is not part of the key: a longer timeout does not make a satisfied wait unsatisfied. Kinds without a
    generation have 0, as Kubernetes' own types do.
    """
    uid = text_at(live, "metadata", "uid")
    if not uid:
        return MISSING
    return SatisfactionKey(uid, count_at(live, "metadata", "generation"), wait_digest(wait))


def wait_digest(wait: WaitCriterion) -> str:
    """The digest of the wait, without its timeout."""
    return digest(_wait_data(wait))


def _wait_data(wait: WaitCriterion) -> dict[str, Json]:
    match wait:
        case FieldWait(path):
            return {"field": str(path)}
        case FieldValueWait(values):
            return {"fieldValue": {str(path): value for path, value in values}}
        case ConditionWait(type_, status):
            return {"condition": {"type": type_, "status": status}}
        case RolloutWait():
            return {"rollout": True}
        case _:
            assert_never(wait)
