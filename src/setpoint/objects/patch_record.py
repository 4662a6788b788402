"""The record of a patch: what was there before it; and how the fields of a patch go back to that."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Final

import msgspec

from setpoint.core.unstructured import text_at
from setpoint.core.values.canonical import canonical, digest
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import MISSING, Json, Missing
from setpoint.core.values.paths import Path, Selector, get_at, remove_at, scalar_text, set_at
from setpoint.errors import ManifestInvalid, UnknownField
from setpoint.kinds.kubernetes_object.managed_fields import APPLY, owners_at
from setpoint.objects.object_fields import value_at

_MANAGED: Final = Path(("metadata", "managedFields"))


@dataclass(frozen=True, slots=True)
class PatchRecord:
    """The fields of a patch: the values before it, MISSING where there was none, and digests of what it wrote.

    `roots`: of a field that was not there, the topmost part of its path that was not there either. `uid` is that of the
    object: another one of the same name has other values.
    """

    uid: str = ""
    before: Mapping[Path, Json | Missing] = field(default_factory=dict)
    roots: Mapping[Path, Path] = field(default_factory=dict)
    written: Mapping[Path, str] = field(default_factory=dict)

    def of_fields(self, live: Json, paths: Sequence[Path]) -> "PatchRecord":
        """The record of these fields: what is there now counts as the value before for those that are new."""
        before = {path: self.before[path] if path in self.before else value_at(live, path) for path in paths}
        new = [path for path in paths if path not in self.before and before[path] is MISSING]
        roots = {path: self.roots[path] for path in paths if path in self.roots}
        roots |= {path: _missing_root(live, path) for path in new}
        return PatchRecord(text_at(live, "metadata", "uid"), before, roots, self.written)

    def only(self, fields: Iterable["ReleasedField"]) -> "PatchRecord":
        """The record of some of its fields."""
        return replace(self, before={one.path: self.before[one.path] for one in fields})

    def with_written(self, live: Json) -> "PatchRecord":
        """The record once the fields are written."""
        return replace(self, written={path: _digest(value_at(live, path)) for path in self.before})

    def is_unchanged(self, live: Json, path: Path, manager: str) -> bool:
        """Whether a field is as the patch wrote it. Of a write that did not finish, the field manager tells."""
        value = value_at(live, path)
        if path in self.written:
            return self.written[path] == _digest(value)
        is_owner = any(one.manager == manager for one in owners_at(live, path))
        return isinstance(value, Missing) or is_owner or _digest(value) == _digest(self.before[path])

    def is_of(self, live: Json) -> bool:
        """Whether it is the record of this object, and not of an earlier one of the same name."""
        return self.uid in ("", text_at(live, "metadata", "uid"))

    # --- As text: values apart, since they may be secret -------------------------------------------------------------

    def values(self) -> dict[str, str | None]:
        """The values before, as JSON by path; None where there was none."""
        return {
            str(path): None if isinstance(value, Missing) else canonical(value).decode()
            for path, value in self.before.items()
        }

    def marks(self) -> dict[str, tuple[str, str]]:
        """The digest and the root of each field: everything but values."""
        return {str(path): (self.written.get(path, ""), str(self.roots.get(path, ""))) for path in self.before}

    @staticmethod
    def of(uid: str, values: Mapping[str, str | None], marks: Mapping[str, tuple[str, str]]) -> "PatchRecord":
        """The record of what `values` and `marks` returned."""
        before: dict[Path, Json | Missing] = {}
        roots: dict[Path, Path] = {}
        written: dict[Path, str] = {}
        for text, encoded in values.items():
            path = _parsed(text)
            before[path] = MISSING if encoded is None else msgspec.json.decode(encoded)
            mark, root = marks.get(text, ("", ""))
            written |= {path: mark} if mark else {}
            roots |= {path: _parsed(root)} if root else {}
        return PatchRecord(uid, before, roots, written)


NO_RECORD: Final = PatchRecord()


def _parsed(text: str) -> Path:
    try:
        return Path.parse(text)
    except ManifestInvalid:
        # Of another version of setpoint.
        return Path((text,))


def _digest(value: Json | Missing) -> str:
    return "absent" if isinstance(value, Missing) else digest([value])


def _missing_root(live: Json, path: Path) -> Path:
    above = (Path(path.steps[:depth]) for depth in range(1, len(path.steps)))
    return next((one for one in above if isinstance(value_at(live, one), Missing)), path)


# --- Release ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ReleasedField:
    """A field that a patch gives up: its value now, and the one that it goes back to; or why it stays as it is."""

    path: Path
    now: Json | Missing
    before: Json | Missing
    kept_because: str = ""


@dataclass(frozen=True, slots=True)
class PatchRelease:
    """An object after some fields of a patch went back to what they were, and what became of each field."""

    tree: Json
    fields: tuple[ReleasedField, ...] = ()


def released(live: Json, record: PatchRecord, paths: Iterable[Path], manager: str) -> PatchRelease:
    """The object with the values before the patch. A field that another writer has changed or declares stays."""
    tree, fields = live, []
    for path in paths:
        now, before = value_at(live, path), record.before[path]
        reason = _reason_to_keep(live, record, path, manager)
        if not reason:
            try:
                tree = _put_back(tree, live, record, path, manager)
            except UnknownField:
                reason = "what it was part of is gone"
        fields.append(ReleasedField(path, now, before, reason))
    return PatchRelease(tree, tuple(fields))


def unpatched(live: Json, record: PatchRecord) -> Json:
    """The object as it would be without the patch, whichever field changed since: what a patch is evaluated against."""
    tree = live
    for path, before in record.before.items():
        try:
            gone = record.roots.get(path, path)
            tree = _without(tree, gone) if isinstance(before, Missing) else set_at(tree, path, before)
        except UnknownField:
            continue
    return tree


def _reason_to_keep(live: Json, record: PatchRecord, path: Path, manager: str) -> str:
    owners = [one for one in owners_at(live, path) if one.manager != manager]
    if not record.is_unchanged(live, path, manager):
        names = ", ".join(dict.fromkeys(one.manager for one in owners)) or "another writer"
        return f"it was changed by {names} since"
    appliers = ", ".join(dict.fromkeys(one.manager for one in owners if one.operation == APPLY))
    if appliers and not is_key(path) and value_at(live, path) is not MISSING:
        return f"{appliers} declares it, too"
    return ""


def _put_back(tree: Json, live: Json, record: PatchRecord, path: Path, manager: str) -> Json:
    before = record.before[path]
    if not isinstance(before, Missing):
        return (
            tree if isinstance(value_at(tree, path), Missing) and _is_member(tree, path) else _set(tree, path, before)
        )
    root = record.roots.get(path, path)
    if isinstance(value_at(live, path), Missing):
        # The patch wants none, and there is none: at most the empty objects above are its own.
        return _without(tree, root) if _is_hollow(value_at(tree, root)) else tree
    if all(one.manager == manager for one in owners_at(live, root)):
        # With what the API server has filled in there.
        return _without(tree, root)
    return tree if is_key(path) else _without(tree, path)


def _is_hollow(value: Json | Missing) -> bool:
    return isinstance(value, Mapping) and all(map(_is_hollow, value.values()))


def _set(tree: Json, path: Path, value: Json) -> Json:
    return tree if _is_member(tree, path) else set_at(tree, path, value)


def _is_member(tree: Json, path: Path) -> bool:
    """Whether the path is that of an element of a set, by its value."""
    return isinstance(path.steps[-1], str) and isinstance(get_at(tree, path.parent), list | tuple)


def _without(tree: Json, path: Path) -> Json:
    if not _is_member(tree, path):
        return remove_at(tree, path)
    elements = get_at(tree, path.parent)
    assert isinstance(elements, list | tuple)
    return set_at(tree, path.parent, [one for one in elements if scalar_text(one) != path.steps[-1]])


def is_key(path: Path) -> bool:
    """Whether it is the key of an element of a list: every manager of a part of the element has it."""
    holder = path.steps[-2] if len(path.steps) > 1 else None
    return isinstance(holder, Selector) and any(name == path.steps[-1] for name, _ in holder.pairs)


def without_manager(tree: Json, manager: str, operation: str = "") -> Json:
    """The object without the entries of a field manager, of one operation or of all."""
    found = get_at(tree, _MANAGED)
    entries = [one for one in found if isinstance(one, Mapping)] if isinstance(found, list | tuple) else []
    left: list[Json] = [
        one for one in entries if one.get("manager") != manager or (operation and one.get("operation") != operation)
    ]
    # An empty list is taken for one that a client does not know; an empty entry clears it.
    return tree if len(left) == len(entries) else set_at(tree, _MANAGED, left or [{}])
