"""A child: an object that an owner makes and people may change, and what is to be written of it now."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol, TypeAlias, assert_never

from setpoint.core.canonical import same
from setpoint.core.covering import covers, laid_over
from setpoint.core.fates import Finding, fates, standing
from setpoint.core.kubernetes import text_at, title
from setpoint.core.paths import Path, get_at, remove_at, set_at
from setpoint.core.threeway import Memory, Table, caught_up, memory_from_data, memory_to_data, merge, remember
from setpoint.core.values import Json, Missing
from setpoint.errors import ImmutableFieldChanged

Tree: TypeAlias = Mapping[str, Json]
_LABELS: Final = Path(("metadata", "labels"))


class Contents(StrEnum):
    """What becomes of an object's contents once it is there."""

    MERGED = "follow the owner, people's edits kept"
    COPIED = "follow the owner"
    COVERED = "follow the owner in what it says: the rest is the server's, or anybody's"
    ONCE = "made once: from then on people's"


class View(Protocol):
    """How an object is looked at when it is merged."""

    def read(self, object_: Tree) -> Json:
        """What of the object is the owner's business."""

    def write(self, live: Tree, generated: Tree, merged: Json) -> Tree:
        """`live` with `merged` in the place of what `read` found; the rest of it is nobody's business here."""


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields at these paths, as they are."""

    paths: tuple[Path, ...]

    def read(self, object_: Tree) -> Json:
        cut: Json = {}
        for path in self.paths:
            value = get_at(object_, path)
            if not isinstance(value, Missing):
                cut = set_at(cut, path, value)
        return cut

    def write(self, live: Tree, generated: Tree, merged: Json) -> Tree:
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

    object: Tree
    contents: Contents
    view: View
    table: Table
    lacks: str = ""
    fixed: tuple[Path, ...] = ()

    @property
    def key(self) -> str:
        """`ConfigMap/name`: tells the children of one owner apart."""
        return f"{text_at(self.object, 'kind')}/{text_at(self.object, 'metadata', 'name')}"

    @property
    def is_adopted(self) -> bool:
        """Whether one that is there and nobody's becomes the owner's.

        What people would have kept anyhow stays theirs: adopted, it would go when the owner goes.
        """
        return self.contents is not Contents.ONCE


@dataclass(frozen=True, slots=True)
class Renewal:
    """What a child that is there should be: the very live object when nothing is to be written; and why."""

    object: Tree
    findings: tuple[Finding, ...] = ()


def renewed(child: Child, live: Tree, last: Memory | None) -> Renewal:
    """`live` as it should be now. Its owner reference is not looked at: whose it is, is settled before.

    ImmutableFieldChanged when it can never be so.
    """
    labelled = _with_labels(child, live)
    match child.contents:
        case Contents.ONCE:
            return Renewal(labelled)
        case Contents.COPIED:
            return _copied(child, live, labelled)
        case Contents.COVERED:
            return _covered(child, labelled)
        case Contents.MERGED:
            return _merged(child, labelled, last)
        case _:
            assert_never(child.contents)


def _merged(child: Child, live: Tree, last: Memory | None) -> Renewal:
    seen = child.view.read(live)
    merged = merge(last, seen, child.view.read(child.object), child.table)
    made = live if merged.value is seen else child.view.write(live, child.object, merged.value)
    told = fates(title(live), merged)
    if same(made, live):
        # Nothing was to be put back or taken away after all.
        return Renewal(live, standing(told))
    return Renewal(made, told)


def _copied(child: Child, live: Tree, labelled: Tree) -> Renewal:
    wanted = child.view.read(child.object)
    if same(child.view.read(live), wanted):
        return Renewal(labelled)
    return Renewal(child.view.write(labelled, child.object, wanted))


def _covered(child: Child, live: Tree) -> Renewal:
    seen, wanted = child.view.read(live), child.view.read(child.object)
    if covers(seen, wanted):
        return Renewal(live)
    stuck = tuple(str(path) for path in child.fixed if not covers(_at(live, path), _at(child.object, path)))
    if stuck:
        raise ImmutableFieldChanged(
            f"{title(live)}: {', '.join(stuck)} cannot change any more, and is not what is wanted: delete the object, "
            "and it is made anew",
            stuck,
        )
    return Renewal(child.view.write(live, child.object, laid_over(seen, wanted)))


def _at(object_: Tree, path: Path) -> Json:
    value = get_at(object_, path)
    return None if isinstance(value, Missing) else value


def _with_labels(child: Child, live: Tree) -> Tree:
    wanted, found = get_at(child.object, _LABELS), get_at(live, _LABELS)
    if not isinstance(wanted, Mapping):
        return live
    labels = {**found, **wanted} if isinstance(found, Mapping) else dict(wanted)
    made = live if same(labels, found if isinstance(found, Mapping) else None) else set_at(live, _LABELS, labels)
    assert isinstance(made, Mapping)
    return made


# --- What an owner remembers of its children ------------------------------------------------------------------------


def memory_of_children(children: Sequence[Child]) -> Json:
    """What the next pass has to know of what was generated now: for the owner's status. Secrets leave no trace."""
    kept = (child for child in children if child.contents is Contents.MERGED)
    return {child.key: memory_to_data(remember(child.view.read(child.object), child.table)) for child in kept}


def remembered(data: Json | Missing, child: Child) -> Memory | None:
    """What is on record of `child`; None for a first contact."""
    return memory_from_data(data.get(child.key)) if isinstance(data, Mapping) else None


def known_of(child: Child, live: Tree, last: Json, begun: Json, *, is_ours: bool) -> Memory | None:
    """What was generated of `child` before now, when `last` is on record and the write of `begun` may have happened.

    `is_ours`: the live object is the owner's already.
    """
    before, under_way = remembered(last, child), remembered(begun, child)
    if under_way is None:
        return before
    if before is None and is_ours:
        # Nothing but that write can have made it the owner's.
        return under_way
    return caught_up(before, under_way, child.view.read(live), child.table)
