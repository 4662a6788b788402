"""Three-way merge per field: last generated, live and newly generated.

A table names the fields that may be edited, and how; every other field is managed and comes out as generated. Last
generated is stored as digests. Absent, null, "", [] and {} all count as empty and never differ from each other, except
that a map entry is present as soon as it is not null.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import is_
from typing import Final, TypeAlias, TypeGuard, assert_never

from setpoint.core.values.canonical import digest, same
from setpoint.core.values.json_types import MISSING, Json, Missing
from setpoint.core.values.paths import Path, Selector, scalar_text, value_below

# --- Which fields people may edit ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WholeValue:
    """One value, kept or replaced as a whole. Emptied it is handed back; one of `own` is never a person's."""

    own: tuple[Json, ...] = ()


@dataclass(frozen=True, slots=True)
class EntryMap:
    """An object whose entries are edited one by one."""


@dataclass(frozen=True, slots=True)
class EntryList:
    """A list whose entries are edited one by one: objects named by a member, or texts."""

    key: str | None = None


EditGranularity: TypeAlias = WholeValue | EntryMap | EntryList

# The steps of its paths are field names; a field below another one of the table is never looked at.
EditableFields: TypeAlias = Mapping[Path, EditGranularity]


def _require_field_names(table: EditableFields) -> None:
    wrong = [str(path) for path in table if not all(isinstance(step, str) for step in path.steps)]
    if wrong:
        raise ValueError(f"a table names fields, not elements: {', '.join(wrong)}")


# --- What was generated last time ---------------------------------------------------------------------------

# The digest of a value, or those of its members or entries by name; {} is the trace of emptiness.
DigestTree: TypeAlias = str | Mapping[str, "DigestTree"]

_VERSION: Final = "v1"
_DIGEST: Final = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class LastGenerated:
    """What was generated, as digests: by field, and by entry where entries are edited one by one."""

    digests: DigestTree


def remember(generated: Json, table: EditableFields) -> LastGenerated:
    """What the next merge has to know of `generated`."""
    _require_field_names(table)
    return LastGenerated(_digests(generated, Path(), table))


def last_generated_to_data(memory: LastGenerated) -> Json:
    """`memory` as JSON; `memory_from_data` reads it back."""
    return {"version": _VERSION, "digests": memory.digests}


def last_generated_from_data(data: object) -> LastGenerated | None:
    """The memory that `data` holds, or None: the next merge is then a first contact."""
    if not isinstance(data, Mapping) or data.get("version") != _VERSION:
        return None
    digests = data.get("digests")
    return LastGenerated(digests) if _are_digests(digests) else None


def recover_last_generated(
    last: LastGenerated | None, begun: LastGenerated, live: Json, table: EditableFields
) -> LastGenerated | None:
    """What was generated last, as far as `live` shows it, when the write of what `begun` tells may have happened.

    Where the live side is as it was about to be written it was, or a person came to the same; elsewhere `last` holds.
    """
    seen = remember(live, table)
    if last is None:
        return begun if same(seen.digests, begun.digests) else None
    return LastGenerated(_recover_digests(last.digests, begun.digests, seen.digests))


def _recover_digests(last: DigestTree, begun: DigestTree, seen: DigestTree) -> DigestTree:
    if same(seen, begun):
        return begun
    if not (isinstance(last, Mapping) and isinstance(begun, Mapping) and isinstance(seen, Mapping)):
        return last
    parts = {
        name: _recover_digests(*(side.get(name, {}) for side in (last, begun, seen))) for name in {**last, **begun}
    }
    return {name: digests for name, digests in parts.items() if digests}


def _are_digests(data: object) -> TypeGuard[DigestTree]:
    todo = [data]
    for node in todo:
        if isinstance(node, Mapping) and all(isinstance(name, str) for name in node):
            todo.extend(node.values())
        elif not (isinstance(node, str) and _DIGEST.fullmatch(node)):
            return False
    return True


def _digests(value: Json | Missing, path: Path, table: EditableFields) -> DigestTree:
    edits = table.get(path)
    parts = None if isinstance(edits, WholeValue) else _parts(value, edits)
    if parts is None:
        return _digest(value) or {}
    if edits is not None:
        return {name: digest(without_empty(entry)) for name, entry in parts.items()}
    below = {name: _digests(member, path / name, table) for name, member in parts.items()}
    return {name: digests for name, digests in below.items() if digests}


def _digest(value: Json | Missing) -> str | None:
    held = without_empty(value)
    return None if held is None else digest(held)


def without_empty(value: Json | Missing) -> Json:
    """`value` without empty members; None when that leaves nothing."""
    match value:
        case Mapping():
            members = {name: without_empty(member) for name, member in value.items()}
            return {name: member for name, member in members.items() if member is not None} or None
        case list() | tuple():
            return [without_empty(element) for element in value] or None
        case _:
            return None if value is MISSING or value == "" else value


# --- What a value is made of --------------------------------------------------------------------------------


def _parts(value: Json | Missing, edits: EntryMap | EntryList | None) -> Mapping[str, Json] | None:
    """The entries, or a managed object's members, by name; None for a value without such parts."""
    match edits, value:
        case EntryList(key=key), list() | tuple():
            return _first_of_each(_named(value, key))
        case EntryMap(), Mapping():
            return {name: entry for name, entry in value.items() if entry is not None}
        case None, Mapping():
            return value
        case _:
            return {} if without_empty(value) is None else None


def _named(entries: Sequence[Json], key: str | None) -> Iterator[tuple[str, Json]]:
    """Each entry with its name: the second x is x#2, so that no entry can hide another; a mere copy is x again."""
    named: dict[str, Json] = {}
    for entry in entries:
        name = wanted = _name(entry, key)
        count = 1
        while name in named and not same(without_empty(named[name]), without_empty(entry)):
            count += 1
            name = f"{wanted}#{count}"
        named.setdefault(name, entry)
        yield name, entry


def _first_of_each(entries: Iterable[tuple[str, Json]]) -> dict[str, Json]:
    """The entries by name: one stands for all its copies."""
    found: dict[str, Json] = {}
    for name, entry in entries:
        found.setdefault(name, entry)
    return found


def _name(entry: Json, key: str | None) -> str:
    """What `entry` is known by: its key, or its digest where it has none."""
    member = entry if key is None else value_below(entry, key)
    text = None if isinstance(member, Missing) else scalar_text(member)
    return digest(without_empty(entry)) if text is None else text


def _entry_path(path: Path, name: str, edits: EntryMap | EntryList) -> Path:
    if isinstance(edits, EntryList) and edits.key is not None:
        return path / Selector(((edits.key, name),))
    return path / name


# --- The merge ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MergeResult:
    """What the child should be, and what became of people's changes to it.

    `value` is the very `live` when nothing is left to write. `edits` are the places where a person's value,
    or its removal, was kept; `conflicts` those of them where the owner moved too; `removals` those where nothing
    is; `reverted` the managed places where a person's value was overwritten or, on first contact, any value;
    `retired` the places of what the owner made, nobody touched and the owner no longer makes.
    """

    value: Json
    edits: tuple[Path, ...]
    conflicts: tuple[Path, ...]
    reverted: tuple[Path, ...]
    removals: tuple[Path, ...] = ()
    retired: tuple[Path, ...] = ()


def merge(last: LastGenerated | None, live: Json, generated: Json, table: EditableFields) -> MergeResult:
    """`generated` with people's edits in `live` kept where `table` allows them.

    Without a memory a value that differs counts as an edit and a value that is missing does not; a list that
    is not empty counts as edited whole.
    """
    _require_field_names(table)
    merging = _Merger(table)
    value = merging.place(Path(), _Sides(None if last is None else last.digests, live, generated))
    assert not isinstance(value, Missing)
    told = (merging.edits, merging.conflicts, merging.reverted, merging.removals, merging.retired)
    # In one order, in whatever order the members of the three came.
    return MergeResult(value, *(tuple(sorted(paths, key=str)) for paths in told))


@dataclass(frozen=True, slots=True)
class _Sides:
    """The three versions of one place. `last` is None where nothing is known of it."""

    last: DigestTree | None
    live: Json | Missing
    generated: Json | Missing

    def below(self, name: str) -> "_Sides":
        # A digest says nothing of what lies below it: the table it was made with did not look that deep.
        last = self.last.get(name, {}) if isinstance(self.last, Mapping) else None
        return _Sides(last, value_below(self.live, name), value_below(self.generated, name))

    def share(
        self, merged: Mapping[str, Json], live: Mapping[str, Json], generated: Mapping[str, Json]
    ) -> Json | Missing:
        """The side that is made of the very parts of `merged`, or else `merged`."""
        if _same_parts(merged, live):
            return self.live
        return self.generated if _same_parts(merged, generated) else merged

    def listed(self, merged: Mapping[str, Json], key: str | None) -> Json | Missing:
        """`merged` as a list: in the live order, then what is new, each with its copies; or the very side it equals."""
        old, new = (list(_named(_entries(side), key)) for side in (self.live, self.generated))
        there = {name for name, _ in old}
        pairs = [*old, *((name, entry) for name, entry in new if name not in there)]
        firsts = _first_of_each(pairs)
        # A copy is kept as it is, but shares what becomes of the first.
        made = [entry if merged[name] is firsts[name] else merged[name] for name, entry in pairs if name in merged]
        for side in (self.live, self.generated):
            entries = _entries(side)
            if len(made) == len(entries) and all(map(is_, made, entries)):
                return side
        return made


def _entries(side: Json | Missing) -> Sequence[Json]:
    return side if isinstance(side, list | tuple) else ()


def _same_parts(a: Mapping[str, Json], b: Mapping[str, Json]) -> bool:
    return list(a) == list(b) and all(map(is_, a.values(), b.values()))


class _Merger:
    """One merge on its way through the tree, with what it has to report so far."""

    def __init__(self, table: EditableFields) -> None:
        self.table = table
        self.edits: list[Path] = []
        self.conflicts: list[Path] = []
        self.reverted: list[Path] = []
        self.removals: list[Path] = []
        self.retired: list[Path] = []

    def place(self, path: Path, sides: _Sides) -> Json | Missing:
        """What belongs at `path`."""
        edits = self.table.get(path)
        match edits:
            case None:
                return self.managed(path, sides)
            case WholeValue():
                return self.whole(path, sides, edits)
            case EntryMap() | EntryList():
                return self.entries(path, sides, edits)
            case _:
                assert_never(edits)

    def managed(self, path: Path, sides: _Sides) -> Json | Missing:
        live, generated = _parts(sides.live, None), _parts(sides.generated, None)
        if live is None or generated is None:
            return self.overwritten(path, sides)
        places: dict[str, Json | Missing] = {}
        for name in {**live, **generated}:
            places[name] = self.place(path / name, sides.below(name))
        return sides.share(_without_missing(places), live, generated)

    def overwritten(self, path: Path, sides: _Sides) -> Json | Missing:
        if same(without_empty(sides.live), without_empty(sides.generated)):
            return sides.live
        if sides.last is None or not same(_digests(sides.live, path, self.table), sides.last):
            self.reverted.append(path)
        elif without_empty(sides.generated) is None:
            self.retired.append(path)
        return sides.generated

    def whole(self, path: Path, sides: _Sides, edits: WholeValue) -> Json | Missing:
        held, live, generated = without_empty(sides.live), _digest(sides.live), _digest(sides.generated)
        last: str | None
        if held is None or any(same(held, value) for value in edits.own):
            last = live
        elif isinstance(sides.last, str):
            last = sides.last
        else:
            # Nothing known, or remembered under a table that looked deeper: any other value is a person's.
            last = None if sides.last == {} else generated
        return sides.live if self.keeps_live(path, last, live, generated) else sides.generated

    def entries(self, path: Path, sides: _Sides, edits: EntryMap | EntryList) -> Json | Missing:
        live, generated = _parts(sides.live, edits), _parts(sides.generated, edits)
        if live is None or generated is None:
            return self.overwritten(path, sides)
        last = _last_entries(sides.last, live, generated, edits)
        places: dict[str, Json | Missing] = {}
        for name in {**live, **generated}:
            mine, new = live.get(name, MISSING), generated.get(name, MISSING)
            if not isinstance(mine, Missing) and not isinstance(new, Missing) and same(mine, new):
                places[name] = mine
                continue
            at = _entry_path(path, name, edits)
            stands = self.keeps_live(at, last.get(name), _entry_digest(mine), _entry_digest(new))
            places[name] = mine if stands else new
        merged = _without_missing(places)
        return sides.listed(merged, edits.key) if isinstance(edits, EntryList) else sides.share(merged, live, generated)

    def keeps_live(self, path: Path, last: DigestTree | None, live: str | None, generated: str | None) -> bool:
        """Whether the live side stays, by the digests of all three; None is absence, and may be an edit."""
        if live == generated:
            return True
        if live == last:
            if generated is None:
                self.retired.append(path)
            return False
        self.edits.append(path)
        if live is None:
            self.removals.append(path)
        if generated != last:
            self.conflicts.append(path)
        return True


def _last_entries(
    last: DigestTree | None, live: Mapping[str, Json], generated: Mapping[str, Json], edits: EntryMap | EntryList
) -> Mapping[str, DigestTree]:
    """The entries on record; where there are none, those that make the rules of three sides those of two."""
    if isinstance(last, Mapping) and all(isinstance(entry, str) for entry in last.values()):
        return last
    if isinstance(edits, EntryList) and live:
        return {name: digest(without_empty(entry)) for name, entry in generated.items()}
    return {name: digest(without_empty(entry)) for name, entry in generated.items() if name in live}


def _entry_digest(entry: Json | Missing) -> str | None:
    return None if entry is MISSING else digest(without_empty(entry))


def _without_missing(places: Mapping[str, Json | Missing]) -> dict[str, Json]:
    return {name: value for name, value in places.items() if not isinstance(value, Missing)}
