"""The result of a server-side apply, dry run or real: changed fields, conflicts with managers, immutable fields."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from setpoint.core.decide import Decision
from setpoint.core.diff import FieldChange, redact_changes
from setpoint.core.unstructured import text_at
from setpoint.core.values.canonical import same
from setpoint.core.values.json_types import MISSING, Json, Missing
from setpoint.core.values.paths import Path, Selector, get_at
from setpoint.errors import (
    HeldByOthers,
    ImmutableFieldChanged,
    ManifestInvalid,
    RemoteConflict,
    RemoteError,
    RemoteInvalid,
    RemoteRefused,
)
from setpoint.kinds.kubernetes_object.clusters import ObjectLocation
from setpoint.kinds.kubernetes_object.managed_fields import (
    PREFIX,
    UPDATE,
    FieldSet,
    Projection,
    foreign_fields,
    managed_fields_of,
    manager_fields,
    project,
    setpoint_fields,
    setpoint_projection,
    union,
)

# What Kubernetes says of a field that is fixed; `Forbidden` alone may mean anything.
_IMMUTABLE: Final = re.compile(
    r"immutable|updates? to \S.* (?:is|are) forbidden|may not change (?:once set|fields other than)"
    r"|cannot change roleRef",
    re.IGNORECASE,
)


def is_manual_change(error: HeldByOthers, live: Json, decision: Decision) -> bool:
    """Whether what is held was ours until somebody changed it: nothing else moved, and nobody else declares it.

    Whoever applies says what a field is to be, as we do; whoever updates has but changed it.
    """
    if decision is not Decision.DRIFTED:
        return False
    operations = {(owner.manager, owner.operation) for owner in managed_fields_of(live)}
    return bool(error.held) and all(
        {operation for name, operation in operations if name == manager} == {UPDATE} for _, manager in error.held
    )


def conflict_error(error: HeldByOthers, place: ObjectLocation, ignored_fields: Sequence[Path] = ()) -> RemoteError:
    """The conflict in the words of this kind: every field, who holds it, and what to do.

    Somebody who changed what is left to others, in this very moment, was faster.
    """
    fields = [parse_field_path(field) for field, _ in error.held]
    if fields and all(any(path.covers(field) for path in ignored_fields) for field in fields):
        return RemoteConflict(f"{place.title} was changed meanwhile: {error}")
    held = "; ".join(f"{field} is held by {manager}" for field, manager in error.held) or str(error)
    return HeldByOthers(
        f"{place.title}: {held}. Set spec.forceConflicts: true to take it over, list it in spec.ignoreFields to leave "
        "it to its holder, or leave it out of the manifest",
        error.held,
    )


def require_unclaimed(live: Json, manager: str, place: ObjectLocation) -> None:
    """RemoteRefused for an object that another KubernetesObject keeps, and this one never did."""
    keepers = [owner.manager for owner in managed_fields_of(live) if owner.is_setpoint]
    if manager in keepers or not keepers:
        return
    told = ", ".join(f"KubernetesObject {one.removeprefix(PREFIX)}" for one in keepers)
    raise RemoteRefused(
        f"{place.title} is kept by {told}: delete that one, with cnrm.cloud.google.com/deletion-policy: abandon if the "
        "object is to stay; or take it over with spec.forceConflicts: true"
    )


def immutable_fields_of(error: RemoteInvalid) -> tuple[str, ...]:
    """The fields that cannot change, when that is all that is wrong."""
    if error.causes and all(_IMMUTABLE.search(message) for _, message in error.causes):
        return tuple(dict.fromkeys(field for field, _ in error.causes))
    return ()


def immutable_error(error: RemoteInvalid, fields: Sequence[str], place: ObjectLocation) -> ImmutableFieldChanged:
    """The refusal of a change that only a new object could have."""
    why = "; ".join(f"{field}: {message}" for field, message in error.causes)
    return ImmutableFieldChanged(
        f"{place.title}: {why}. Put the old value back, or set spec.replace: true to have it deleted and made anew",
        tuple(fields),
    )


def parse_field_path(field: str) -> Path:
    """A field as a service names it."""
    try:
        return Path.parse(field.removeprefix("."))
    except ManifestInvalid:
        return Path((field,))


def creation_changes(made: Json) -> tuple[FieldChange, ...]:
    """Every field that is ours in a new object; the name of one that has none."""
    changes = _without_key_changes(
        tuple(FieldChange(path, MISSING, value) for path, value in setpoint_projection(made).leaves.items())
    )
    name = Path(("metadata", "name"))
    return redact_changes(changes or (FieldChange(name, MISSING, text_at(made, *name_steps(name))),), made)


def name_steps(path: Path) -> tuple[str, ...]:
    """The steps of a path that has but names."""
    return tuple(step for step in path.steps if isinstance(step, str))


def apply_changes(live: Json, after: Json, manager: str) -> tuple[FieldChange, ...]:
    """The fields of ours, before or after, that differ; when none does, what `manager` would own from then on."""
    fields = union(setpoint_fields(live), setpoint_fields(after))
    was, now = project(live, fields, foreign_fields(live)), project(after, fields, foreign_fields(after))
    found = _without_key_changes((*_leaves(was, now), *_orders(was, now)))
    return redact_changes(found or tuple(_ownership(live, after, manager)), live)


def immutable_changes(fields: Iterable[str], live: Json, wanted: Json) -> tuple[FieldChange, ...]:
    """The fields that a service names, which only it can compare."""
    paths = dict.fromkeys(parse_field_path(field) for field in fields)
    return redact_changes(tuple(FieldChange(path, get_at(live, path), get_at(wanted, path)) for path in paths), live)


def _without_key_changes(changes: tuple[FieldChange, ...]) -> tuple[FieldChange, ...]:
    """The changes without those that tell but by which key an element goes of which more is told."""
    rest = [one for one in changes if not _is_key(one.path)]
    told = {one.path.steps[:depth] for one in rest for depth in range(len(one.path.steps))}
    return tuple(one for one in changes if not _is_key(one.path) or one.path.parent.steps not in told)


def _is_key(path: Path) -> bool:
    holder = path.steps[-2] if len(path.steps) > 1 else None
    return isinstance(holder, Selector) and any(name == path.steps[-1] for name, _ in holder.pairs)


def _leaves(was: Projection, now: Projection) -> Iterator[FieldChange]:
    for path in {**was.leaves, **now.leaves}:
        before, after = was.leaves.get(path, MISSING), now.leaves.get(path, MISSING)
        if isinstance(before, Missing) or isinstance(after, Missing) or not same(before, after):
            yield FieldChange(path, before, after)


def _orders(was: Projection, now: Projection) -> Iterator[FieldChange]:
    """Lists whose elements are the same, and stand in another order."""
    for path in was.orders.keys() & now.orders.keys():
        both = set(was.orders[path]) & set(now.orders[path])
        before, after = ([str(step) for step in side.orders[path] if step in both] for side in (was, now))
        if before != after:
            yield FieldChange(path, before, after)


def _ownership(live: Json, after: Json, manager: str) -> Iterator[FieldChange]:
    """Nothing changes but whose fields they are; then whoever changes one of them is noticed."""
    was, now = manager_fields(live, manager), manager_fields(after, manager)
    if now is not None and (was is None or not same(was, now)):
        place = Path(("metadata", "managedFields", Selector((("manager", manager),))))
        yield FieldChange(place, _field_count(was, live), _field_count(now, after))


def _field_count(fields: FieldSet | None, of: Json) -> Json | Missing:
    if fields is None:
        return MISSING
    count = len(project(of, fields).leaves)
    return "1 field" if count == 1 else f"{count} fields"
