"""managedFields: which field manager owns which fields (`fieldsV1`), and the values of owned fields.

`f:name` is a member of an object, `k:{"name":"x"}` a list element by its keys, `v:"x"` one by its value, `i:0` one by
its index; `.` is the field itself. A field set without anything below is owned as a whole.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import field
from functools import lru_cache
from hashlib import sha256
from typing import Final, TypeAlias

import msgspec

from setpoint.core.unstructured import text_at
from setpoint.core.values.canonical import same
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import MISSING, Json, Missing
from setpoint.core.values.paths import Path, PathStep, Selector, get_at, scalar_text
from setpoint.engine.resource import ResourceRef

FieldSet: TypeAlias = Mapping[str, "FieldSet"]
NO_FIELDS: Final[FieldSet] = {}
_SELF: Final = "."
# The longest step of a field set that is kept decoded.
_LONGEST_KEPT: Final = 512


@dataclass(frozen=True, slots=True)
class Projection:
    """The values of owned fields; and the order of the owned elements of each keyed list."""

    leaves: Mapping[Path, Json] = field(default_factory=dict)
    orders: Mapping[Path, tuple[PathStep, ...]] = field(default_factory=dict)

    def to_data(self) -> dict[str, Json]:
        """As JSON, by the text of each path."""
        orders = {str(path): [str(Path((step,))) for step in steps] for path, steps in self.orders.items()}
        return {"leaves": {str(path): value for path, value in self.leaves.items()}, "orders": orders}


def project(value: Json, fields: FieldSet, foreign: FieldSet = NO_FIELDS) -> Projection:
    """The values of `fields` in `value`. An owned empty object or list is still empty if `foreign` fields are below it.

    No manager owns an object as a whole: an empty field set has no values.
    """
    found = _OwnedValues({}, {})
    if _below(fields):
        found.collect(value, fields, foreign)
    return Projection(found.leaves, found.orders)


def union(one: FieldSet, other: FieldSet) -> FieldSet:
    """The fields in either set."""
    if not one or not other:
        return one or other
    both = {**one, **other}
    for step in one.keys() & other.keys():
        both[step] = union(one[step], other[step])
    return both


def owned_below(fields: FieldSet, value: Json, path: Path) -> FieldSet | None:
    """The part of `fields` at or below `path`: empty where a field above is owned as a whole; None if not owned."""
    if not _below(fields):
        return None
    for wanted in path.steps:
        below = _below(fields)
        if not below:
            return NO_FIELDS
        reached = next(((step, found) for step, found in _children(value, below) if _is_at(found, wanted)), None)
        if reached is None:
            return None
        fields, value = below[reached[0]], reached[1].value
    return fields


def own_value(value: Json, of: Json, path: Path, foreign: FieldSet) -> Json:
    """The value at `path` of an object; that of an object or list which others fill is empty, as in `project`."""
    below = owned_below(foreign, of, path) if isinstance(value, dict | list) else None
    return value if below is None else _whole(value, below)


def extract(value: Json, fields: FieldSet) -> Json:
    """`value` reduced to `fields`."""
    below = _below(fields)
    if not below:
        return value
    children = sorted(_children(value, below), key=lambda found: found[1].position)
    found = {step: extract(child.value, below[step]) for step, child in children}
    if isinstance(value, dict):
        return {step.removeprefix("f:"): one for step, one in found.items()}
    return [{**_keys(step), **one} if isinstance(one, dict) else one for step, one in found.items()]


def without_member(value: Json, member: Sequence[str], kept: Collection[tuple[str, ...]], depth: int = 0) -> Json:
    """`value` without the field at these steps of a field set, nor the objects and lists that get empty by it.

    An empty one at the steps of `kept` stays.
    """
    child = _child(value, member[depth])
    if child is None:
        return value
    is_last = depth + 1 == len(member)
    below: Json | Missing = MISSING if is_last else without_member(child.value, member, kept, depth + 1)
    if below is child.value:
        return value
    if below in ({}, []) and tuple(member[: depth + 1]) not in kept:
        below = MISSING
    if isinstance(value, dict):
        rest = {name: one for name, one in value.items() if name != child.step}
        return rest if isinstance(below, Missing) else {**value, str(child.step): below}
    assert isinstance(value, list)
    return [*value[: child.position], *([] if isinstance(below, Missing) else [below]), *value[child.position + 1 :]]


# --- Walking a value along a field set -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Child:
    """A child value: its path step, and its index in a list."""

    step: PathStep
    value: Json
    position: int = -1


@dataclass(frozen=True, slots=True)
class _OwnedValues:
    """Collects the values of a field set, and the orders of keyed lists: see Projection."""

    leaves: dict[Path, Json]
    orders: dict[Path, tuple[PathStep, ...]]

    def collect(self, value: Json, fields: FieldSet, foreign: FieldSet, at: tuple[PathStep, ...] = ()) -> None:
        """Adds what is at and below `at`. Most fields are members of objects, and have nothing below."""
        below = _below(fields)
        if not below:
            self.leaves[Path(at)] = _whole(value, foreign)
        elif isinstance(value, dict):
            for step, owned in below.items():
                name = step[2:]
                if name not in value or step[:2] != "f:":
                    continue
                others = foreign.get(step, NO_FIELDS) if foreign else NO_FIELDS
                if owned or others:
                    self.collect(value[name], owned, others, (*at, name))
                else:
                    self.leaves[Path((*at, name))] = value[name]
        else:
            self._collect_elements(value, below, foreign, at)

    def _collect_elements(self, value: Json, below: FieldSet, foreign: FieldSet, at: tuple[PathStep, ...]) -> None:
        keyed: dict[int, PathStep] = {}
        for step, child in _children(value, below):
            self.collect(child.value, below[step], foreign.get(step, NO_FIELDS), (*at, child.step))
            if step.startswith("k:"):
                keyed[child.position] = child.step
        if len(keyed) > 1:
            self.orders[Path(at)] = tuple(keyed[position] for position in sorted(keyed))


def _below(fields: FieldSet) -> FieldSet:
    return {step: one for step, one in fields.items() if step != _SELF} if _SELF in fields else fields


def _whole(value: Json, foreign: FieldSet) -> Json:
    if _below(foreign) and isinstance(value, dict | list):
        # Not atomic: otherwise the manager that writes below it would own all of it.
        return {} if isinstance(value, dict) else []
    return value


def _children(value: Json, below: FieldSet) -> Iterator[tuple[str, _Child]]:
    """The children of `value` that are in the field set."""
    for step in below:
        child = _child(value, step)
        if child is not None:
            yield step, child


def _child(value: Json, step: str) -> _Child | None:
    form, text = step[:2], step[2:]
    if isinstance(value, dict):
        found = value.get(text, MISSING) if form == "f:" else MISSING
        return None if isinstance(found, Missing) else _Child(text, found)
    if not isinstance(value, list) or form == "f:":
        return None
    position = _position(value, form, text)
    return None if position is None else _Child(_path_step(form, text), value[position], position)


def _position(elements: Sequence[Json], form: str, text: str) -> int | None:
    if form == "i:":
        return int(text) if text.isdecimal() and int(text) < len(elements) else None
    wanted = _decoded(text)
    matches = _has_keys if form == "k:" else same
    return next((index for index, one in enumerate(elements) if matches(one, wanted)), None)


def _has_keys(element: Json, wanted: Json) -> bool:
    return (
        isinstance(element, dict)
        and isinstance(wanted, dict)
        and all(name in element and same(element[name], value) for name, value in wanted.items())
    )


def _path_step(form: str, text: str) -> PathStep:
    if form == "i:":
        return int(text)
    value = _decoded(text)
    if form == "k:" and isinstance(value, dict):
        return Selector(tuple((name, scalar_text(one) or "") for name, one in value.items()))
    return scalar_text(value) or text


def _is_at(child: _Child, wanted: PathStep) -> bool:
    """Whether a path step of an author selects this child: by some of its keys, or by its index, too."""
    if isinstance(wanted, Selector):
        return wanted.matches(child.value)
    return child.step == wanted or (isinstance(wanted, int) and child.position == wanted)


def _keys(step: str) -> dict[str, Json]:
    found = _decoded(step[2:]) if step.startswith("k:") else {}
    return dict(found) if isinstance(found, dict) else {}


def _decoded(text: str) -> Json:
    # A long one is not kept: a server could fill the memory with such texts.
    return _decoded_short(text) if len(text) <= _LONGEST_KEPT else _decode(text)


@lru_cache(maxsize=4096)
def _decoded_short(text: str) -> Json:
    return _decode(text)


def _decode(text: str) -> Json:
    try:
        value: Json = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text
    return value


# --- Entries of managedFields ----------------------------------------------------------------------------------------

# Each KubernetesObject is a field manager of its own: this prefix, its namespace and its name.
PREFIX: Final = "setpoint/"
# In the place of a namespace: the field managers of patches, which own fields of objects that other writers made.
PATCHES: Final = "terraform-patch"
APPLY, UPDATE = "Apply", "Update"
_LONGEST: Final = 128
_MANAGED: Final = Path(("metadata", "managedFields"))


def is_patch_manager(manager: str) -> bool:
    """Whether it is the field manager of a patch: it owns some fields, and the rest of the object is another's."""
    return manager.startswith(f"{PREFIX}{PATCHES}/")


@dataclass(frozen=True, slots=True)
class ManagedFieldsEntry:
    """An entry of managedFields: a manager, its operation, and the fields that it owns."""

    manager: str
    operation: str
    fields: FieldSet
    subresource: str = ""

    @property
    def is_setpoint(self) -> bool:
        """Whether the manager is a KubernetesObject."""
        return self.manager.startswith(PREFIX) and self.operation == APPLY and not self.subresource

    @property
    def is_patch(self) -> bool:
        """Whether the manager is a patch, which owns some fields and not the object."""
        return is_patch_manager(self.manager)


def field_manager_of(ref: ResourceRef) -> str:
    """The field manager of a KubernetesObject; a name beyond the API's limit is shortened and ends in its digest."""
    name = f"{PREFIX}{ref.namespace}/{ref.name}"
    if len(name) <= _LONGEST:
        return name
    trace = sha256(name.encode()).hexdigest()[:16]
    return f"{name[: _LONGEST - len(trace) - 1]}~{trace}"


def managed_fields_of(live: Json) -> tuple[ManagedFieldsEntry, ...]:
    """The entries of managedFields."""
    return _ownership(live).entries


def _entries(live: Json) -> Iterator[ManagedFieldsEntry]:
    found = get_at(live, _MANAGED)
    for entry in found if isinstance(found, list) else ():
        fields = entry.get("fieldsV1") if isinstance(entry, dict) else None
        if isinstance(fields, dict):
            manager, operation = text_at(entry, "manager"), text_at(entry, "operation")
            yield ManagedFieldsEntry(manager, operation, fields, text_at(entry, "subresource"))


def setpoint_fields(live: Json) -> FieldSet:
    """The fields that KubernetesObjects own."""
    return _ownership(live).setpoint


def manager_fields(live: Json, manager: str) -> FieldSet | None:
    """The fields that one KubernetesObject owns; None if it never applied the object."""
    return next((one.fields for one in managed_fields_of(live) if one.is_setpoint and one.manager == manager), None)


def foreign_fields(live: Json) -> FieldSet:
    """The fields that other managers own."""
    return _ownership(live).foreign


def owners_at(live: Json, path: Path) -> tuple[ManagedFieldsEntry, ...]:
    """The managers of a field, of something below it, or of a field above it as a whole.

    An object that some manager has fields of is not owned as a whole, though another one may own it as empty.
    """
    everything = NO_FIELDS
    for owner in managed_fields_of(live):
        everything = union(everything, owner.fields)
    above = [Path(path.steps[:depth]) for depth in range(1, len(path.steps))]
    divided = [one for one in above if _below(owned_below(everything, live, one) or NO_FIELDS)]

    def is_owner(fields: FieldSet) -> bool:
        found = owned_below(fields, live, path)
        is_container = any(
            owned_below(fields, live, one) is not None and not _below_at(fields, live, one) for one in divided
        )
        return found is not None and not is_container

    return tuple(owner for owner in managed_fields_of(live) if is_owner(owner.fields))


def _below_at(fields: FieldSet, live: Json, path: Path) -> FieldSet:
    return _below(owned_below(fields, live, path) or NO_FIELDS)


def setpoint_projection(live: Json) -> Projection:
    """The values of the fields that KubernetesObjects own."""
    found = _ownership(live)
    if found.projection is None:
        found.projection = project(live, found.setpoint, found.foreign)
    return found.projection


@dataclass(slots=True)
class _Ownership:
    """Who owns what of an object. A step asks that of the same object several times; no object is ever changed."""

    live: Json
    entries: tuple[ManagedFieldsEntry, ...]
    setpoint: FieldSet
    foreign: FieldSet
    projection: Projection | None = None


def _ownership(live: Json) -> _Ownership:
    found = _ownerships.get(id(live))
    if found is None:
        while len(_ownerships) >= _MOST_OWNERSHIPS:
            _ownerships.pop(next(iter(_ownerships)))
        entries = tuple(_entries(live))
        ours, others = NO_FIELDS, NO_FIELDS
        for entry in entries:
            if entry.is_setpoint:
                ours = union(ours, entry.fields)
            else:
                others = union(others, entry.fields)
        found = _ownerships[id(live)] = _Ownership(live, entries, ours, others)
    return found


# Of the objects of the steps that run at once. With each object, because an id is unique only as long as it exists.
_MOST_OWNERSHIPS: Final = 64
_ownerships: Final[dict[int, _Ownership]] = {}
