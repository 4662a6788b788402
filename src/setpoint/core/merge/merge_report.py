"""Merge report: for each field, whose value was kept and why."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, assert_never

from setpoint.core.conditions import Condition, ConditionReason, ConditionType
from setpoint.core.merge.threeway import (
    EditableFields,
    EditGranularity,
    EntryList,
    EntryMap,
    MergeResult,
    WholeValue,
    without_empty,
)
from setpoint.core.values.canonical import same
from setpoint.core.values.json_types import Json, Missing
from setpoint.core.values.paths import Path, get_at


class Resolution(StrEnum):
    """Who has the last word on a place."""

    PRESERVED = "preserved"
    CONFLICTING = "conflicting"
    REVERTED = "reverted"
    RETIRED = "retired"


@dataclass(frozen=True, slots=True)
class FieldResolution:
    """One place of one object, and what became of it. `object` is the object as people name it."""

    object: str
    path: Path
    resolution: Resolution
    why: str

    @property
    def place(self) -> str:
        """Where it is, among all objects."""
        return f"{self.object} {self.path}"

    def __str__(self) -> str:
        return f"{self.place}: {self.why}"


_PRESERVED: Final = "a person's value is kept: this field is theirs to set"
_PRESERVED_REMOVAL: Final = "removed by a person, and stays so: this field is theirs to set"
_CONFLICT: Final = (
    "a person's value is kept, but what is generated has changed, too: put the generated value there to take it over"
)
_CONFLICTING_REMOVAL: Final = (
    "removed by a person, and stays so, but what is generated has changed, too: look whether it is needed"
)
_REVERTED: Final = "put back to what is generated: this field is managed, so change the owner instead"
_RETIRED: Final = "no longer generated, and nobody had changed it: it is gone"


def merge_report(object_: str, merged: MergeResult) -> tuple[FieldResolution, ...]:
    """A finding for each place where a person or the owner gave way; none for what the owner merely moved on."""
    return tuple(_field_resolutions(object_, merged))


def _field_resolutions(object_: str, merged: MergeResult) -> Iterator[FieldResolution]:
    for path in merged.edits:
        is_gone = path in merged.removals
        if path in merged.conflicts:
            yield FieldResolution(object_, path, Resolution.CONFLICTING, _CONFLICTING_REMOVAL if is_gone else _CONFLICT)
        else:
            yield FieldResolution(object_, path, Resolution.PRESERVED, _PRESERVED_REMOVAL if is_gone else _PRESERVED)
    for path in merged.reverted:
        yield FieldResolution(object_, path, Resolution.REVERTED, _REVERTED)
    for path in merged.retired:
        yield FieldResolution(object_, path, Resolution.RETIRED, _RETIRED)


def persistent_resolutions(
    findings: Sequence[FieldResolution], torn: Collection[str] = ()
) -> tuple[FieldResolution, ...]:
    """The findings that hold from pass to pass: what a status shows. The others are told once, as they happen.

    A conflict lasts as long as the edit does, though the next pass knows what was generated last and sees none:
    `torn` are the places of the conflicts before. See `conflicts`.
    """
    held = (one for one in findings if one.resolution in (Resolution.PRESERVED, Resolution.CONFLICTING))
    return tuple(_as_conflict(one) if one.place in torn else one for one in held)


def _as_conflict(one: FieldResolution) -> FieldResolution:
    return replace(
        one,
        resolution=Resolution.CONFLICTING,
        why=_CONFLICTING_REMOVAL if one.why in (_PRESERVED_REMOVAL, _CONFLICTING_REMOVAL) else _CONFLICT,
    )


def conflicting_fields(findings: Sequence[FieldResolution]) -> tuple[str, ...]:
    """The places of all conflicts: for the owner's status, and for `standing` in the next pass."""
    return tuple(one.place for one in findings if one.resolution is Resolution.CONFLICTING)


def edits_condition(findings: Sequence[FieldResolution]) -> Condition:
    """What the findings that hold come to: `Edited`, and whether any edit is in conflict with what is generated."""
    if not findings:
        return Condition(
            ConditionType.EDITED, "False", ConditionReason.AS_GENERATED, "everything is as it is generated"
        )
    reason = ConditionReason.CONFLICTING if conflicting_fields(findings) else ConditionReason.EDITS_KEPT
    return Condition(ConditionType.EDITED, "True", reason, report_summary(findings))


def report_summary(findings: Sequence[FieldResolution]) -> str:
    """All of it in a line, the most urgent first: `1 conflicting: KbsConfig a/b spec.x; 2 preserved: …`; or ""."""
    parts = []
    for resolution in (Resolution.CONFLICTING, Resolution.REVERTED, Resolution.PRESERVED, Resolution.RETIRED):
        places = [one.place for one in findings if one.resolution is resolution]
        if places:
            parts.append(f"{len(places)} {resolution}: {', '.join(places)}")
    return "; ".join(parts)


def edited_fields(live: Json, generated: Json, table: EditableFields) -> tuple[Path, ...]:
    """The fields of `table` that hold something, and something else than `generated`; in the order of the table.

    Without a memory an owner's older value looks like a person's. An emptied field is never an edit; a map that lacks
    entries is one as long as it has any; so is a list in another order.
    """
    return tuple(
        path for path, edits in table.items() if _is_edited(get_at(live, path), get_at(generated, path), edits)
    )


def _is_edited(live: Json | Missing, generated: Json | Missing, edits: EditGranularity) -> bool:
    match edits:
        case WholeValue(own=own):
            held = without_empty(live)
            return held is not None and not any(same(held, value) for value in (without_empty(generated), *own))
        case EntryMap():
            entries = _entries(live)
            return bool(entries) and not same(entries, _entries(generated))
        case EntryList():
            held = without_empty(live)
            return held is not None and not same(held, without_empty(generated))
        case _:
            assert_never(edits)


def _entries(value: Json | Missing) -> Json:
    """The entries of a map: there as soon as they are not null."""
    if not isinstance(value, Mapping):
        return without_empty(value)
    return {name: entry for name, entry in value.items() if entry is not None} or None
