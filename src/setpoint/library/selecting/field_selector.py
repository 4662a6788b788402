"""Selectors of fields: `state=failed,kind=SQLInstance,spec.region!=europe-*`; a value may have wildcards."""

import re
from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Final

from setpoint.core.conditions import ConditionReason, ConditionType
from setpoint.core.schema.shape import Field, Leaf, ObjectShape, field_below, item_field, paths_of
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import Missing
from setpoint.core.values.paths import Path, Selector, get_at, nearest, scalar_text
from setpoint.engine.conditions import condition_of
from setpoint.engine.dependency_graph import NodeState, state_of
from setpoint.engine.resource import Resource
from setpoint.errors import ManifestInvalid, UnknownField

# Neither is looked for in brackets: `spec.rules[port=80].action=allow`.
_SIGN: Final = re.compile(r"\[[^]]*\]|(?P<sign>!=|==?)")
_COMMA: Final = re.compile(r",(?![^[]*\])")
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
    # The selector that it is a part of, and its place there.
    where: str = ""

    def matches(self, resource: Resource) -> bool:
        """Whether a resource is as required. A field that is not there is the empty text."""
        found = FIELDS[self.field](resource) if self.path is None else _text_at(resource, self.path)
        if self.field in _ANY_CASE:
            found = found.lower()
        return fnmatchcase(found, self.pattern) is not self.is_negated

    def require_known(self, shapes: Iterable[ObjectShape]) -> None:
        """UnknownField for a path below `spec` that none of these types has."""
        if self.path is None or self.path.steps[0] != "spec":
            return
        known = list(shapes)
        if not known or any(_has(shape, self.path) for shape in known):
            return
        near = nearest(str(self.path), list(dict.fromkeys(path for shape in known for path in paths_of(shape))))
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        raise UnknownField(f"{self.where}: no kind here has a field {self.path}{hint}", near)


def _has(shape: ObjectShape, path: Path) -> bool:
    """Whether a type has the field. An element of any list is one, and what is below a value of any form."""
    here: Field | None = Field(shape)
    for step in path.steps:
        if here is None or isinstance(here.shape, Leaf):
            break
        is_item = isinstance(step, int | Selector) and not isinstance(here.shape, ObjectShape)
        here = item_field(here) if is_item else field_below(here, step)
    return here is not None


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
        for part in _COMMA.split(text):
            found.append(_requirement(part, f"{option} {text!r}: character {at + 1}"))
            at += len(part) + 1
        return FieldSelector(tuple(found))

    def require_known(self, shapes: Iterable[ObjectShape]) -> None:
        """UnknownField for a path below `spec` that no type has: it would select nothing, or everything with `!=`."""
        paths = [one for one in self.requirements if one.path is not None]
        known = list(shapes) if paths else []
        for one in paths:
            one.require_known(known)

    def matches(self, resource: Resource) -> bool:
        """Whether a resource is selected."""
        return all(one.matches(resource) for one in self.requirements)


def _requirement(part: str, where: str) -> FieldRequirement:
    sign = next((one for one in _SIGN.finditer(part) if one["sign"]), None)
    if sign is None:
        raise ManifestInvalid(f"{where}: {part.strip()!r} compares nothing: write FIELD=VALUE or FIELD!=VALUE")
    name, value = part[: sign.start()].strip(), part[sign.end() :].strip()
    is_negated = sign[0] == "!="
    if name in FIELDS:
        _require_choice(name, value, where)
        return FieldRequirement(name, value.lower() if name in _ANY_CASE else value, is_negated, where=where)
    try:
        path = Path.parse(name.removeprefix("."))
    except ManifestInvalid as error:
        raise ManifestInvalid(f"{where}: {error}") from error
    if not path.steps or path.steps[0] not in _ROOTS:
        near = nearest(name, [*FIELDS, *_ROOTS])
        hint = f"did you mean {near[0]}? " if near else ""
        offered = f"{', '.join(FIELDS)}, or a path such as spec.region"
        raise ManifestInvalid(f"{where}: there is no field {name!r}; {hint}There is {offered}")
    return FieldRequirement(name, value, is_negated, path, where)


def _require_choice(name: str, value: str, where: str) -> None:
    """ManifestInvalid for a state or reason that no resource ever has."""
    choices = _CHOICES.get(name)
    if choices is None or any(fnmatchcase(one.lower(), value.lower()) for one in choices):
        return
    near = nearest(value, choices)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise ManifestInvalid(f"{where}: no {name} is {value!r}; {hint}There is {', '.join(choices)}")
