"""`waitFor` of a manifest: the criteria, their parsing, and the key under which a wait stays satisfied.

To support another criterion, write its class, add it to `WaitCriterion`, and judge it in `judge.py`. The parser, the
CustomResourceDefinition, the Terraform schema and the reference pages are derived from the class.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Final, TypeAlias, get_args

from setpoint.core.conditions import ConditionStatus
from setpoint.core.schema.checks import Check, OneMember
from setpoint.core.schema.constraints import Constraint, HasEntries, IsTrue, Matches
from setpoint.core.unstructured import count_at, text_at, volatile_step
from setpoint.core.values.canonical import canonical, digest
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.durations import parse_duration
from setpoint.core.values.json_types import MISSING, Json, Missing
from setpoint.core.values.messages import FieldTerm, MemberTerm, Message, field_message, joined, message_of
from setpoint.core.values.paths import Path, nearest
from setpoint.errors import ManifestInvalid, UnknownField

_WAIT: Final = "waitFor"
# Every path has this form; more is said by its parser.
PATH_FORM: Final = Matches(
    r"[.]?(?:[A-Za-z0-9_$/@+-]+|\[.+\])(?:[.][A-Za-z0-9_$/@+-]+|\[.+\])*",
    "a path such as status.loadBalancer.ingress",
    or_empty=False,
)

# --- The criteria: `member` of `waitFor`, the types that it `accepts`, its `constraints` and `description` ------------


@dataclass(frozen=True, slots=True)
class FieldWait:
    """Until `path` has a value. The only wait that makes an output."""

    member: ClassVar[str] = "field"
    accepts: ClassVar[object] = str
    constraints: ClassVar[tuple[Constraint, ...]] = (PATH_FORM,)
    description: ClassVar[str] = (
        "Until there is something at this path, such as `status.loadBalancer.ingress`: it becomes the output."
    )

    path: Path

    @staticmethod
    def parse(data: Json) -> "FieldWait":
        """The criterion in a manifest; ManifestInvalid for a volatile field."""
        path = _path(data, "waitFor.field")
        step = volatile_step(path)
        if step is not None:
            why = f" is {path}: {step} changes without a change of state, and cannot be an output. "
            advice = Message("To wait for what it is to be, write ", MemberTerm(_WAIT, "fieldValue"))
            raise ManifestInvalid(Message(FieldTerm("waitFor.field"), why, advice))
        return FieldWait(path)

    def to_data(self) -> Json:
        """The value in a manifest."""
        return str(self.path)


@dataclass(frozen=True, slots=True)
class FieldValueWait:
    """Until every path has its value."""

    member: ClassVar[str] = "fieldValue"
    accepts: ClassVar[object] = dict[str, Any]
    constraints: ClassVar[tuple[Constraint, ...]] = (HasEntries('a map of paths, such as {"status.phase": "Running"}'),)
    description: ClassVar[str] = "Until each of these paths has its value."

    values: tuple[tuple[Path, Json], ...]

    @staticmethod
    def parse(data: Json) -> "FieldValueWait":
        """The criterion in a manifest; ManifestInvalid when it is no map of paths."""
        if not isinstance(data, Mapping) or not data:
            problem = f' is {data!r}: write a map of paths, such as {{"status.phase": "Running"}}'
            raise ManifestInvalid(field_message("waitFor.fieldValue", problem))
        values = {_path(text, "waitFor.fieldValue"): value for text, value in data.items()}
        if len(values) < len(data):
            twice = " names one path twice: give each path one value"
            raise ManifestInvalid(field_message("waitFor.fieldValue", twice))
        return FieldValueWait(tuple(values.items()))

    def to_data(self) -> Json:
        """The value in a manifest."""
        return {str(path): value for path, value in self.values}


_CONDITION_TYPE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_./-]*")


@dataclass(frozen=True, slots=True)
class ConditionWait:
    """Until the condition of this type has this status."""

    member: ClassVar[str] = "condition"
    accepts: ClassVar[object] = str | dict[str, Any]
    constraints: ClassVar[tuple[Constraint, ...]] = ()
    description: ClassVar[str] = (
        'Until this condition is `True`, such as `Ready`; or has another status, as `{type: Ready, status: "False"}`.'
    )

    type: str
    status: ConditionStatus = "True"

    @staticmethod
    def parse(data: Json) -> "ConditionWait":
        """The criterion in a manifest: a type, or a type with a status; ManifestInvalid for anything else."""
        members = {"type": data} if isinstance(data, str) else _members(data, "waitFor.condition", ("type", "status"))
        type_ = members.get("type")
        if not isinstance(type_, str) or not _CONDITION_TYPE.fullmatch(type_):
            no_type = f' is {type_!r}: write a type such as Ready, or {{type: Ready, status: "False"}}'
            raise ManifestInvalid(field_message("waitFor.condition.type", no_type))
        match members.get("status", "True"):
            case "True" | "False" | "Unknown" as status:
                return ConditionWait(type_, status)
            case bool() as status:
                # YAML reads an unquoted True as a boolean, and the meaning is clear.
                return ConditionWait(type_, "True" if status else "False")
            case other:
                no_status = f' is {other!r}: write "True", "False" or "Unknown"'
                raise ManifestInvalid(field_message("waitFor.condition.status", no_status))

    def to_data(self) -> Json:
        """The value in a manifest."""
        return {"type": self.type, "status": self.status}


@dataclass(frozen=True, slots=True)
class RolloutWait:
    """Until the rollout of the workload is complete."""

    member: ClassVar[str] = "rollout"
    accepts: ClassVar[object] = bool
    constraints: ClassVar[tuple[Constraint, ...]] = (IsTrue(),)
    description: ClassVar[str] = (
        "Until a Deployment, StatefulSet, DaemonSet or Job runs what its spec says and nothing older."
    )

    @staticmethod
    def parse(data: Json) -> "RolloutWait":
        """The criterion in a manifest; ManifestInvalid unless it is true."""
        if data is not True:
            raise ManifestInvalid(field_message("waitFor.rollout", f" is {data!r}: write true, or leave it out"))
        return RolloutWait()

    def to_data(self) -> Json:
        """The value in a manifest."""
        return True


# Every criterion, in the order of messages and reference pages.
WaitCriterion: TypeAlias = FieldWait | FieldValueWait | ConditionWait | RolloutWait
WAIT_CRITERIA: Final[tuple[type[WaitCriterion], ...]] = get_args(WaitCriterion)
_BY_MEMBER: Final = {one.member: one for one in WAIT_CRITERIA}
# For the `__checks__` of the type of `waitFor`.
ONE_CRITERION: Final = Check(OneMember(*_BY_MEMBER), f"give exactly one of {', '.join(_BY_MEMBER)}")


@dataclass(frozen=True, slots=True)
class WaitFor:
    """A wait, and the one timeout for all of it: until the object exists, is observed and satisfies the wait."""

    wait: WaitCriterion
    timeout_seconds: float = 600.0


# --- The manifest form -----------------------------------------------------------------------------------------------


def parse_wait(data: object) -> WaitFor:
    """The wait in a manifest's `waitFor`; ManifestInvalid or UnknownField names the wrong member."""
    members = _members(data, _WAIT, (*_BY_MEMBER, "timeout"))
    given = [name for name in _BY_MEMBER if name in members]
    if len(given) != 1:
        found = Message("it has ", _names(_WAIT, given, " and ")) if given else "it has none"
        raise ManifestInvalid(
            Message(FieldTerm("waitFor"), ": give exactly one of ", _names(_WAIT, _BY_MEMBER), "; ", found)
        )
    wait = _BY_MEMBER[given[0]].parse(members[given[0]])
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
    return digest({wait.member: wait.to_data()})
