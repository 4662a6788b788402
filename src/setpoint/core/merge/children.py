"""Children: objects that an owner generates, and what each live child should be after this step."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
from setpoint.core.values.canonical import same
from setpoint.core.values.json_types import Json, JsonObject, Missing
from setpoint.core.values.paths import Path, get_at, remove_at, set_at
from setpoint.errors import ImmutableFieldChanged


def contains_all(live: Json, wanted: Json) -> bool:
    """Whether `live` has every member of `wanted`, however deep; lists entry by entry, with none more and none less."""
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
    """`live` so that it covers `wanted`, with as much of the rest as can stay; the very same when it does already.

    Lists have the entries of `wanted` and no other. An entry keeps what was added to the live one of the same name.
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
    """Whether a member is missing in whose place there may be another one, such as another source of a volume.

    Both at once nobody would take.
    """
    return any(
        without_empty(live.get(name)) is None
        and without_empty(member) is not None
        and not isinstance(member, list | tuple)
        for name, member in wanted.items()
    )


def _entry_named_like(entries: Sequence[Json], wanted: Json) -> Json:
    """The entry that goes by the same name: so Kubernetes tells apart what has one."""
    name = wanted.get("name") if isinstance(wanted, Mapping) else None
    found = (one for one in entries if isinstance(one, Mapping) and name and same(one.get("name"), name))
    return next(found, None)


_LABELS: Final = Path(("metadata", "labels"))


class ChildUpdatePolicy(StrEnum):
    """What becomes of an object's contents once it is there."""

    MERGE = "follow the owner, people's edits kept"
    OVERWRITE = "follow the owner"
    APPLY_SUBSET = "follow the owner in what it says: the rest is the server's, or anybody's"
    CREATE_ONLY = "made once: from then on people's"


class MergeView(Protocol):
    """How an object is looked at when it is merged."""

    def read(self, object_: JsonObject) -> Json:
        """What of the object is the owner's business."""

    def write(self, live: JsonObject, generated: JsonObject, merged: Json) -> JsonObject:
        """`live` with `merged` in the place of what `read` found; the rest of it is nobody's business here."""


@dataclass(frozen=True, slots=True)
class FieldsView:
    """The fields at these paths, as they are."""

    paths: tuple[Path, ...]

    def read(self, object_: JsonObject) -> Json:
        cut: Json = {}
        for path in self.paths:
            value = get_at(object_, path)
            if not isinstance(value, Missing):
                cut = set_at(cut, path, value)
        return cut

    def write(self, live: JsonObject, generated: JsonObject, merged: Json) -> JsonObject:
        made: Json = live
        for path in self.paths:
            value = get_at(merged, path)
            made = remove_at(made, path) if isinstance(value, Missing) else set_at(made, path, value)
        assert isinstance(made, Mapping)
        return made


@dataclass(frozen=True, slots=True)
class Child:
    """One object that an owner makes: as it is now generated, whole, and who may change what of it.

    `lacks` names what has to be filled in by whoever creates it, such as keys that must be random. `fixed` are the
    places of what is covered that no server changes once the object is there.
    """

    object: JsonObject
    contents: ChildUpdatePolicy
    view: MergeView
    table: EditableFields
    lacks: str = ""
    fixed: tuple[Path, ...] = ()

    @property
    def key(self) -> str:
        """`ConfigMap/name`: tells the children of one owner apart."""
        return f"{text_at(self.object, 'kind')}/{text_at(self.object, 'metadata', 'name')}"

    @property
    def can_adopt(self) -> bool:
        """Whether one that is there and nobody's becomes the owner's.

        What people would have kept anyhow stays theirs: adopted, it would go when the owner goes.
        """
        return self.contents is not ChildUpdatePolicy.CREATE_ONLY


@dataclass(frozen=True, slots=True)
class ChildUpdate:
    """What a child that is there should be: the very live object when nothing is to be written; and why."""

    object: JsonObject
    findings: tuple[FieldResolution, ...] = ()


def child_update(child: Child, live: JsonObject, last: LastGenerated | None) -> ChildUpdate:
    """`live` as it should be now. Its owner reference is not looked at: whose it is, is settled before.

    ImmutableFieldChanged when it can never be so.
    """
    labelled = _with_labels(child, live)
    match child.contents:
        case ChildUpdatePolicy.CREATE_ONLY:
            return ChildUpdate(labelled)
        case ChildUpdatePolicy.OVERWRITE:
            return _overwrite_update(child, live, labelled)
        case ChildUpdatePolicy.APPLY_SUBSET:
            return _subset_update(child, labelled)
        case ChildUpdatePolicy.MERGE:
            return _merge_update(child, labelled, last)
        case _:
            assert_never(child.contents)


def _merge_update(child: Child, live: JsonObject, last: LastGenerated | None) -> ChildUpdate:
    seen = child.view.read(live)
    merged = merge(last, seen, child.view.read(child.object), child.table)
    made = live if merged.value is seen else child.view.write(live, child.object, merged.value)
    told = merge_report(display_name(live), merged)
    if same(made, live):
        # Nothing was to be put back or taken away after all.
        return ChildUpdate(live, persistent_resolutions(told))
    return ChildUpdate(made, told)


def _overwrite_update(child: Child, live: JsonObject, labelled: JsonObject) -> ChildUpdate:
    wanted = child.view.read(child.object)
    if same(child.view.read(live), wanted):
        return ChildUpdate(labelled)
    return ChildUpdate(child.view.write(labelled, child.object, wanted))


def _subset_update(child: Child, live: JsonObject) -> ChildUpdate:
    seen, wanted = child.view.read(live), child.view.read(child.object)
    if contains_all(seen, wanted):
        return ChildUpdate(live)
    stuck = tuple(str(path) for path in child.fixed if not contains_all(_at(live, path), _at(child.object, path)))
    if stuck:
        raise ImmutableFieldChanged(
            f"{display_name(live)}: {', '.join(stuck)} cannot change any more, and is not what is wanted: "
            "delete the object, "
            "and it is made anew",
            stuck,
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
    made = live if same(labels, found if isinstance(found, Mapping) else None) else set_at(live, _LABELS, labels)
    assert isinstance(made, Mapping)
    return made


# --- What an owner remembers of its children ------------------------------------------------------------------------


def last_generated_status(children: Sequence[Child]) -> Json:
    """What the next pass has to know of what was generated now: for the owner's status. Secrets leave no trace."""
    kept = (child for child in children if child.contents is ChildUpdatePolicy.MERGE)
    return {child.key: last_generated_to_data(remember(child.view.read(child.object), child.table)) for child in kept}


def read_last_generated(data: Json | Missing, child: Child) -> LastGenerated | None:
    """What is on record of `child`; None for a first contact."""
    return last_generated_from_data(data.get(child.key)) if isinstance(data, Mapping) else None


def resolve_last_generated(
    child: Child, live: JsonObject, last: Json, begun: Json, *, is_ours: bool
) -> LastGenerated | None:
    """What was generated of `child` before now, when `last` is on record and the write of `begun` may have happened.

    `is_ours`: the live object is the owner's already.
    """
    before, under_way = read_last_generated(last, child), read_last_generated(begun, child)
    if under_way is None:
        return before
    if before is None and is_ours:
        # Nothing but that write can have made it the owner's.
        return under_way
    return recover_last_generated(before, under_way, child.view.read(live), child.table)
