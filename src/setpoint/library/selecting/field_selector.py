"""Selectors of fields: `state=failed,kind=SQLInstance,spec.region!=europe-*`; a value may have wildcards."""

import re
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from typing import Final

from setpoint.core.conditions import ConditionReason, ConditionType
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import Missing
from setpoint.core.values.paths import Path, get_at, nearest, scalar_text
from setpoint.engine.conditions import condition_of
from setpoint.engine.dependency_graph import NodeState, state_of
from setpoint.engine.resource import Resource
from setpoint.errors import ManifestInvalid

_SIGN: Final = re.compile(r"!=|==?")
_ROOTS: Final = ("metadata", "spec", "status", "apiVersion")


def _reason(resource: Resource) -> str:
    ready = condition_of(resource, ConditionType.READY)
    return "" if ready is None else ready.reason


# What a resource shows by a short name.
FIELDS: Final[Mapping[str, Callable[[Resource], str]]] = {
    "kind": lambda one: one.ref.kind,
    "name": lambda one: one.ref.name,
    "namespace": lambda one: one.ref.namespace,
    "reason": _reason,
    "state": lambda one: state_of(one).value,
}
_ANY_CASE: Final = ("kind", "state", "reason")
# States of resources; the others are of objects beside them.
STATES: Final = tuple(
    one.value for one in NodeState if one not in (NodeState.MISSING, NodeState.THERE, NodeState.NOT_GRANTED)
)
_CHOICES: Final[Mapping[str, tuple[str, ...]]] = {
    "state": STATES,
    "reason": tuple(one.value for one in ConditionReason),
}


@dataclass(frozen=True, slots=True)
class FieldRequirement:
    """What one field has to be, or not to be. `field` is a short name, or a path."""

    field: str
    pattern: str
    is_negated: bool = False
    path: Path | None = None

    def matches(self, resource: Resource) -> bool:
        """Whether a resource is as required. A field that is not there is the empty text."""
        found = FIELDS[self.field](resource) if self.path is None else _text_at(resource, self.path)
        if self.field in _ANY_CASE:
            found = found.lower()
        return fnmatchcase(found, self.pattern) is not self.is_negated


def _text_at(resource: Resource, path: Path) -> str:
    found = get_at(dict(resource.document), path)
    return "" if isinstance(found, Missing) else scalar_text(found) or ""


@dataclass(frozen=True, slots=True)
class FieldSelector:
    """Fields that a resource has to have: each requirement holds. Without any, it selects all."""

    requirements: tuple[FieldRequirement, ...] = ()

    @staticmethod
    def parse(text: str, option: str = "--field-selector") -> "FieldSelector":
        """The selector written as `text`; ManifestInvalid says where it is wrong, and which field may be meant."""
        found, at = [], 0
        for part in text.split(","):
            found.append(_requirement(part, f"{option} {text!r}: character {at + 1}"))
            at += len(part) + 1
        return FieldSelector(tuple(found))

    def matches(self, resource: Resource) -> bool:
        """Whether a resource is selected."""
        return all(one.matches(resource) for one in self.requirements)


def _requirement(part: str, where: str) -> FieldRequirement:
    sign = _SIGN.search(part)
    if sign is None:
        raise ManifestInvalid(f"{where}: {part.strip()!r} compares nothing: write FIELD=VALUE or FIELD!=VALUE")
    name, value = part[: sign.start()].strip(), part[sign.end() :].strip()
    is_negated = sign[0] == "!="
    if name in FIELDS:
        _require_choice(name, value, where)
        return FieldRequirement(name, value.lower() if name in _ANY_CASE else value, is_negated)
    try:
        path = Path.parse(name.removeprefix("."))
    except ManifestInvalid as error:
        raise ManifestInvalid(f"{where}: {error}") from error
    if not path.steps or path.steps[0] not in _ROOTS:
        near = nearest(name, [*FIELDS, *_ROOTS])
        hint = f"did you mean {near[0]}? " if near else ""
        offered = f"{', '.join(FIELDS)}, or a path such as spec.region"
        raise ManifestInvalid(f"{where}: there is no field {name!r}; {hint}There is {offered}")
    return FieldRequirement(name, value, is_negated, path)


def _require_choice(name: str, value: str, where: str) -> None:
    """ManifestInvalid for a state or reason that no resource ever has."""
    choices = _CHOICES.get(name)
    if choices is None or any(fnmatchcase(one.lower(), value.lower()) for one in choices):
        return
    near = nearest(value, choices)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise ManifestInvalid(f"{where}: no {name} is {value!r}; {hint}There is {', '.join(choices)}")
