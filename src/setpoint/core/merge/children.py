"""Children: objects that an owner generates, and what each live child should be after this step."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final, Protocol, assert_never

from setpoint.core.merge.merge_report import FieldResolution, merge_report, persistent_resolutions
from setpoint.core.merge.threeway import (
    EditableFields,
    LastGenerated,
    last_generated_from_data,
    last_generated_to_data,
    merge,
    recover_last_generated,
    remember,
    without_empty,
)
from setpoint.core.unstructured import display_name, text_at
from setpoint.core.values.canonical import canonical, same
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import Json, JsonObject, Missing
from setpoint.core.values.paths import Path, get_at, remove_at, set_at
from setpoint.errors import ImmutableFieldChanged

_LABELS: Final = Path(("metadata", "labels"))


class ChildUpdatePolicy(StrEnum):
    """How an existing child is updated."""

    MERGE = "three-way merge: edits are kept where they are allowed"
    OVERWRITE = "set as generated"
    APPLY_SUBSET = "generated fields are set, all other fields stay"
    CREATE_ONLY = "created once, never updated"


class MergeView(Protocol):
    """The part of an object that the owner generates and merges, as one value."""

    def read(self, object_: JsonObject) -> Json:
        """The part of `object_` that is merged."""

    def write(self, live: JsonObject, generated: JsonObject, merged: Json) -> JsonObject:
        """`live` with `merged` as the part that `read` returns; other fields stay as they are."""


@dataclass(frozen=True, slots=True)
class FieldsView:
    """The fields at these paths, unchanged."""

    paths: tuple[Path, ...]

    def read(self, object_: JsonObject) -> Json:
        cut: Json = {}
        for path in self.paths:
            value = get_at(object_, path)
            if not isinstance(value, Missing):
                cut = set_at(cut, path, value)
        return cut

    def write(self, live: JsonObject, generated: JsonObject, merged: Json) -> JsonObject:
        changed: Json = live
        for path in self.paths:
            value = get_at(merged, path)
            changed = remove_at(changed, path) if isinstance(value, Missing) else set_at(changed, path, value)
        assert isinstance(changed, Mapping)
        return changed


@dataclass(frozen=True, slots=True)
class Child:
    """One object that an owner generates, complete, and how it is updated. `editable` are the fields open to edits.

    `filled_on_create` names what is generated only at creation, such as random keys. `immutable` are the paths that
    the API server does not change after creation.
    """

    object: JsonObject
    update_policy: ChildUpdatePolicy
    view: MergeView
    editable: EditableFields
    filled_on_create: str = ""
    immutable: tuple[Path, ...] = ()

    @property
    def key(self) -> str:
        """`ConfigMap/name`: identifies a child within its owner."""
        return f"{text_at(self.object, 'kind')}/{text_at(self.object, 'metadata', 'name')}"

    @property
    def can_adopt(self) -> bool:
        """Whether an existing object without a controller is adopted.

        A CREATE_ONLY child is not: adopted, it would be garbage-collected with the owner.
        """
        return self.update_policy is not ChildUpdatePolicy.CREATE_ONLY


@dataclass(frozen=True, slots=True)
class ChildUpdate:
    """The desired state of an existing child, and the merge report. `object` is the live one when nothing changes."""

    object: JsonObject
    resolutions: tuple[FieldResolution, ...] = ()


def child_update(child: Child, live: JsonObject, last: LastGenerated | None) -> ChildUpdate:
    """The update of `live`, whose owner reference is already checked.

    ImmutableFieldChanged when no update can bring it to the generated state.
    """
    labelled = _with_labels(child, live)
    match child.update_policy:
        case ChildUpdatePolicy.CREATE_ONLY:
            return ChildUpdate(labelled)
        case ChildUpdatePolicy.OVERWRITE:
            return _overwrite_update(child, live, labelled)
        case ChildUpdatePolicy.APPLY_SUBSET:
            return _subset_update(child, labelled)
        case ChildUpdatePolicy.MERGE:
            return _merge_update(child, labelled, last)
        case _:
            assert_never(child.update_policy)


def _merge_update(child: Child, live: JsonObject, last: LastGenerated | None) -> ChildUpdate:
    seen = child.view.read(live)
    merged = merge(last, seen, child.view.read(child.object), child.editable)
    changed = live if merged.value is seen else child.view.write(live, child.object, merged.value)
    report = merge_report(display_name(live), merged)
    if same(changed, live):
        # The write would change nothing, so nothing is reverted or retired.
        return ChildUpdate(live, persistent_resolutions(report))
    return ChildUpdate(changed, report)


def _overwrite_update(child: Child, live: JsonObject, labelled: JsonObject) -> ChildUpdate:
    wanted = child.view.read(child.object)
    if same(child.view.read(live), wanted):
        return ChildUpdate(labelled)
    return ChildUpdate(child.view.write(labelled, child.object, wanted))


def _subset_update(child: Child, live: JsonObject) -> ChildUpdate:
    seen, wanted = child.view.read(live), child.view.read(child.object)
    if contains_all(seen, wanted):
        return ChildUpdate(live)
    immutable = tuple(
        str(path) for path in child.immutable if not contains_all(_at(live, path), _at(child.object, path))
    )
    if immutable:
        raise ImmutableFieldChanged(
            f"{display_name(live)}: {', '.join(immutable)} cannot change any more, and is not what is wanted: "
            "delete the object, and it is made anew",
            immutable,
        )
    return ChildUpdate(child.view.write(live, child.object, merge_subset(seen, wanted)))


def _at(object_: JsonObject, path: Path) -> Json:
    value = get_at(object_, path)
    return None if isinstance(value, Missing) else value


def _with_labels(child: Child, live: JsonObject) -> JsonObject:
    wanted, found = get_at(child.object, _LABELS), get_at(live, _LABELS)
    if not isinstance(wanted, Mapping):
        return live
    labels = {**found, **wanted} if isinstance(found, Mapping) else dict(wanted)
    changed = live if same(labels, found if isinstance(found, Mapping) else None) else set_at(live, _LABELS, labels)
    assert isinstance(changed, Mapping)
    return changed


# --- Subset merge: the generated fields are set, fields that the API server or other controllers added stay -----------


def contains_all(live: Json, wanted: Json) -> bool:
    """Whether `live` has every field of `wanted` at every depth; lists must have equally many, matching entries."""
    match wanted:
        case Mapping():
            return all(
                contains_all(live.get(name) if isinstance(live, Mapping) else None, member)
                for name, member in wanted.items()
            )
        case list() | tuple():
            found = live if isinstance(live, list | tuple) else ()
            return len(found) == len(wanted) and all(map(contains_all, found, wanted))
        case _:
            return same(live, wanted) or (without_empty(live) is None and without_empty(wanted) is None)


def merge_subset(live: Json, wanted: Json) -> Json:
    """`live` with every field of `wanted`, other fields kept where possible; `live` itself when it has them already.

    Lists get exactly the entries of `wanted`. An entry keeps the fields that were added to the live one of its name.
    """
    if contains_all(live, wanted):
        return live
    match wanted, live:
        case Mapping(), Mapping() if not _is_other_variant(live, wanted):
            lacking = {name: member for name, member in wanted.items() if not contains_all(live.get(name), member)}
            return {**live, **{name: merge_subset(live.get(name), member) for name, member in lacking.items()}}
        case list() | tuple(), list() | tuple():
            return [merge_subset(_entry_named_like(live, entry), entry) for entry in wanted]
        case _:
            return wanted


def _is_other_variant(live: Mapping[str, Json], wanted: Mapping[str, Json]) -> bool:
    """Whether `live` lacks a field of `wanted`, and may have an alternative to it, such as another volume source.

    The API server would refuse both at once, so such an object is replaced as a whole.
    """
    return any(
        without_empty(live.get(name)) is None
        and without_empty(member) is not None
        and not isinstance(member, list | tuple)
        for name, member in wanted.items()
    )


def _entry_named_like(entries: Sequence[Json], wanted: Json) -> Json:
    """The entry with the same `name`, by which Kubernetes identifies entries; None without one."""
    name = wanted.get("name") if isinstance(wanted, Mapping) else None
    found = (one for one in entries if isinstance(one, Mapping) and name and same(one.get("name"), name))
    return next(found, None)


# --- Last generated, as stored in the owner's status ------------------------------------------------------------------


# The most bytes of the digests of one child.
MAX_LAST_GENERATED_BYTES: Final = 32 * 1024


def last_generated_status(children: Sequence[Child]) -> Json:
    """What is generated now, by child, for the owner's status. Only merged children are in it: no Secret ever is.

    A child with more digests than a status has room for is left out, and is merged two-way.
    """
    merged = (child for child in children if child.update_policy is ChildUpdatePolicy.MERGE)
    found = {
        child.key: last_generated_to_data(remember(child.view.read(child.object), child.editable)) for child in merged
    }
    return {key: memory for key, memory in found.items() if len(canonical(memory)) <= MAX_LAST_GENERATED_BYTES}


def read_last_generated(data: Json | Missing, child: Child) -> LastGenerated | None:
    """The last generated of `child` that is stored; None when there is none."""
    return last_generated_from_data(data.get(child.key)) if isinstance(data, Mapping) else None


def resolve_last_generated(
    child: Child, live: JsonObject, last: Json, started: Json, *, is_ours: bool
) -> LastGenerated | None:
    """The last generated of `child`, when `last` is stored and the write of `started` may or may not have happened.

    `is_ours`: the live object already has the owner's reference.
    """
    before, in_flight = read_last_generated(last, child), read_last_generated(started, child)
    if in_flight is None:
        return before
    if before is None and is_ours:
        # Only that write can have set the owner reference.
        return in_flight
    return recover_last_generated(before, in_flight, child.view.read(live), child.editable)
