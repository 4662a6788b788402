"""Three-way merge per field: last generated, live and newly generated.

`EditableFields` names the fields that may be edited, and how; every other field is managed and comes out as generated.
Last generated is stored as digests. Absent, null, "", [] and {} all count as empty and never differ from each other,
except that a map entry is present as soon as it is not null.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import is_
from typing import Final, TypeAlias, TypeGuard, assert_never

from setpoint.core.values.canonical import digest, same
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import MISSING, Json, Missing
from setpoint.core.values.paths import Path, Selector, scalar_text, value_below

# --- Which fields may be edited --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WholeValue:
    """One value, kept or replaced as a whole. An empty one is no edit, and neither is one of `own`.

    `variant_of` recognises generated values, whichever version generated them: a live one of the variant that is
    generated now stays as it is, one of another variant is replaced. It is None for an edited value.
    """

    own: tuple[Json, ...] = ()
    variant_of: Callable[[Json], str | None] = lambda value: None


@dataclass(frozen=True, slots=True)
class EntryMap:
    """An object whose entries are edited one by one."""


@dataclass(frozen=True, slots=True)
class EntryList:
    """A list whose entries are edited one by one: objects identified by the member `key`, or texts."""

    key: str | None = None


EditGranularity: TypeAlias = WholeValue | EntryMap | EntryList

# All path steps are field names; a field below another editable one has no effect.
EditableFields: TypeAlias = Mapping[Path, EditGranularity]


def _require_field_names(editable: EditableFields) -> None:
    wrong = [str(path) for path in editable if not all(isinstance(step, str) for step in path.steps)]
    if wrong:
        raise ValueError(f"a table names fields, not elements: {', '.join(wrong)}")


# --- Last generated --------------------------------------------------------------------------------------------------

# The digest of a value, or the digests of its members or entries by name; {} stands for an empty value.
DigestTree: TypeAlias = str | Mapping[str, "DigestTree"]

_VERSION: Final = "v1"
_DIGEST: Final = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class LastGenerated:
    """Digests of what was last generated: by field, and by entry where entries are edited one by one."""

    digests: DigestTree


def remember(generated: Json, editable: EditableFields) -> LastGenerated:
    """The last generated for the next merge, when `generated` is written now."""
    _require_field_names(editable)
    return LastGenerated(_digests(generated, Path(), editable))


def last_generated_to_data(last: LastGenerated) -> Json:
    """`last` as JSON; `last_generated_from_data` reads it back."""
    return {"version": _VERSION, "digests": last.digests}


def last_generated_from_data(data: object) -> LastGenerated | None:
    """The last generated stored as `data`; None when it cannot be read, and the next merge is two-way."""
    if not isinstance(data, Mapping) or data.get("version") != _VERSION:
        return None
    digests = data.get("digests")
    return LastGenerated(digests) if _are_digests(digests) else None


def recover_last_generated(
    last: LastGenerated | None, started: LastGenerated, live: Json, editable: EditableFields
) -> LastGenerated | None:
    """The last generated after a crash: `last` is stored, and the write of `started` may or may not have happened.

    A field that is live as `started` has it was written, or edited to the same value; elsewhere `last` holds.
    """
    seen = remember(live, editable)
    if last is None:
        return started if same(seen.digests, started.digests) else None
    return LastGenerated(_recover_digests(last.digests, started.digests, seen.digests))


def _recover_digests(last: DigestTree, started: DigestTree, seen: DigestTree) -> DigestTree:
    if same(seen, started):
        return started
    if not (isinstance(last, Mapping) and isinstance(started, Mapping) and isinstance(seen, Mapping)):
        return last
    parts = {
        name: _recover_digests(*(side.get(name, {}) for side in (last, started, seen))) for name in {**last, **started}
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


def _digests(value: Json | Missing, path: Path, editable: EditableFields) -> DigestTree:
    edits = editable.get(path)
    parts = None if isinstance(edits, WholeValue) else _parts(value, edits)
    if parts is None:
        return _digest(value) or {}
    if edits is not None:
        return {name: digest(without_empty(entry)) for name, entry in parts.items()}
    below = {name: _digests(member, path / name, editable) for name, member in parts.items()}
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


# --- Parts of a value ------------------------------------------------------------------------------------------------


def _parts(value: Json | Missing, edits: EntryMap | EntryList | None) -> Mapping[str, Json] | None:
    """The entries of an editable value, or the members of a managed object, by name; None for a value without parts."""
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
    """Each entry with a unique name: a different entry of the same name x becomes x#2, an equal copy stays x."""
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
    """The entries by name, without copies."""
    found: dict[str, Json] = {}
    for name, entry in entries:
        found.setdefault(name, entry)
    return found


def _name(entry: Json, key: str | None) -> str:
    """The name of `entry`: the value of its key, or its digest where it has none."""
    member = entry if key is None else value_below(entry, key)
    text = None if isinstance(member, Missing) else scalar_text(member)
    return digest(without_empty(entry)) if text is None else text


def _entry_path(path: Path, name: str, edits: EntryMap | EntryList) -> Path:
    if isinstance(edits, EntryList) and edits.key is not None:
        return path / Selector(((edits.key, name),))
    return path / name


# --- The merge -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MergeResult:
    """The merged value, and the paths for the merge report. `value` is `live` itself when nothing changes.

    `edits`: the edited value, or its removal, was kept; `conflicts`: those of them where the generated value changed
    as well; `removals`: those where the edit removed the field; `reverted`: managed fields whose live value was
    overwritten; `retired`: unedited fields that are no longer generated and were removed.
    """

    value: Json
    edits: tuple[Path, ...]
    conflicts: tuple[Path, ...]
    reverted: tuple[Path, ...]
    removals: tuple[Path, ...] = ()
    retired: tuple[Path, ...] = ()


def merge(last: LastGenerated | None, live: Json, generated: Json, editable: EditableFields) -> MergeResult:
    """`generated`, with the edits in `live` kept where `editable` allows them.

    Without last generated the merge is two-way: a value that differs counts as an edit, an absent value does not, and
    a list that is not empty counts as edited as a whole.
    """
    _require_field_names(editable)
    merger = _Merger(editable)
    value = merger.field(Path(), _Sides(None if last is None else last.digests, live, generated))
    assert not isinstance(value, Missing)
    reported = (merger.edits, merger.conflicts, merger.reverted, merger.removals, merger.retired)
    # Sorted, so that the order of members in the inputs has no effect.
    return MergeResult(value, *(tuple(sorted(paths, key=str)) for paths in reported))


@dataclass(frozen=True, slots=True)
class _Sides:
    """The three versions of one field. `last` is None where no last generated is stored."""

    last: DigestTree | None
    live: Json | Missing
    generated: Json | Missing

    def below(self, name: str) -> "_Sides":
        # A digest says nothing about fields below: at that time the value was editable as a whole.
        last = self.last.get(name, {}) if isinstance(self.last, Mapping) else None
        return _Sides(last, value_below(self.live, name), value_below(self.generated, name))

    def share(
        self, merged: Mapping[str, Json], live: Mapping[str, Json], generated: Mapping[str, Json]
    ) -> Json | Missing:
        """The live or generated value if it consists of the same parts as `merged`, else `merged`."""
        if _same_parts(merged, live):
            return self.live
        return self.generated if _same_parts(merged, generated) else merged

    def listed(self, merged: Mapping[str, Json], key: str | None) -> Json | Missing:
        """`merged` as a list: in live order, then new entries, each with its copies; or the side that it equals."""
        old, new = (list(_named(_entries(side), key)) for side in (self.live, self.generated))
        there = {name for name, _ in old}
        pairs = [*old, *((name, entry) for name, entry in new if name not in there)]
        firsts = _first_of_each(pairs)
        # A copy stays, unless the entry that it repeats is replaced.
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
    """Walks the three trees, and collects the paths for the report."""

    def __init__(self, editable: EditableFields) -> None:
        self.editable = editable
        self.edits: list[Path] = []
        self.conflicts: list[Path] = []
        self.reverted: list[Path] = []
        self.removals: list[Path] = []
        self.retired: list[Path] = []

    def field(self, path: Path, sides: _Sides) -> Json | Missing:
        """The merged value of the field at `path`."""
        edits = self.editable.get(path)
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
        values: dict[str, Json | Missing] = {}
        for name in {**live, **generated}:
            values[name] = self.field(path / name, sides.below(name))
        return sides.share(_without_missing(values), live, generated)

    def overwritten(self, path: Path, sides: _Sides) -> Json | Missing:
        if same(without_empty(sides.live), without_empty(sides.generated)):
            return sides.live
        if sides.last is None or not same(_digests(sides.live, path, self.editable), sides.last):
            self.reverted.append(path)
        elif without_empty(sides.generated) is None:
            self.retired.append(path)
        return sides.generated

    def whole(self, path: Path, sides: _Sides, edits: WholeValue) -> Json | Missing:
        held, live, generated = without_empty(sides.live), _digest(sides.live), _digest(sides.generated)
        variant = edits.variant_of(held)
        if variant is not None and variant == edits.variant_of(without_empty(sides.generated)):
            return sides.live
        last: str | None
        if held is None or variant is not None or any(same(held, value) for value in edits.own):
            last = live
        elif isinstance(sides.last, str):
            last = sides.last
        else:
            # Nothing stored, or stored by entry: a value that differs counts as an edit.
            last = None if sides.last == {} else generated
        return sides.live if self.keeps_live(path, last, live, generated) else sides.generated

    def entries(self, path: Path, sides: _Sides, edits: EntryMap | EntryList) -> Json | Missing:
        live, generated = _parts(sides.live, edits), _parts(sides.generated, edits)
        if live is None or generated is None:
            return self.overwritten(path, sides)
        last = _last_entries(sides.last, live, generated, edits)
        values: dict[str, Json | Missing] = {}
        for name in {**live, **generated}:
            mine, new = live.get(name, MISSING), generated.get(name, MISSING)
            if not isinstance(mine, Missing) and not isinstance(new, Missing) and same(mine, new):
                values[name] = mine
                continue
            at = _entry_path(path, name, edits)
            is_kept = self.keeps_live(at, last.get(name), _entry_digest(mine), _entry_digest(new))
            values[name] = mine if is_kept else new
        merged = _without_missing(values)
        return sides.listed(merged, edits.key) if isinstance(edits, EntryList) else sides.share(merged, live, generated)

    def keeps_live(self, path: Path, last: DigestTree | None, live: str | None, generated: str | None) -> bool:
        """Whether the live value is kept, by the digests of all three; None is absence, which may be an edit."""
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
    """The stored digests of entries; without any, digests that turn the three-way rules into the two-way ones."""
    if isinstance(last, Mapping) and all(isinstance(entry, str) for entry in last.values()):
        return last
    if isinstance(edits, EntryList) and live:
        return {name: digest(without_empty(entry)) for name, entry in generated.items()}
    return {name: digest(without_empty(entry)) for name, entry in generated.items() if name in live}


def _entry_digest(entry: Json | Missing) -> str | None:
    return None if entry is MISSING else digest(without_empty(entry))


def _without_missing(values: Mapping[str, Json | Missing]) -> dict[str, Json]:
    return {name: value for name, value in values.items() if not isinstance(value, Missing)}
