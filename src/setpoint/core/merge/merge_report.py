"""Merge report: for each field, which value was kept and why."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Final

from setpoint.core.conditions import Condition, ConditionReason, ConditionType
from setpoint.core.merge.threeway import MergeResult
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.paths import Path


class Resolution(StrEnum):
    """How the merge resolved a field on which the live object and the generated one disagree."""

    PRESERVED = "preserved"
    CONFLICTING = "conflicting"
    REVERTED = "reverted"
    RETIRED = "retired"


_EXPLANATIONS: Final = {
    Resolution.PRESERVED: "a person's value is kept: this field is theirs to set",
    Resolution.CONFLICTING: "a person's value is kept, but what is generated has changed, too: "
    "put the generated value there to take it over",
    Resolution.REVERTED: "put back to what is generated: this field is managed, so change the owner instead",
    Resolution.RETIRED: "no longer generated, and not edited: it is gone",
}
_EXPLANATIONS_OF_REMOVALS: Final = {
    Resolution.PRESERVED: "removed by a person, and stays so: this field is theirs to set",
    Resolution.CONFLICTING: "removed by a person, and stays so, but what is generated has changed, too: "
    "look whether it is needed",
}


@dataclass(frozen=True, slots=True)
class FieldResolution:
    """One field of one object, and how the merge resolved it. `object` is the object's name in messages.

    `is_removal`: the edit removed the field.
    """

    object: str
    path: Path
    resolution: Resolution
    is_removal: bool = False

    @property
    def location(self) -> str:
        """The object and the field: unique among all children."""
        return f"{self.object} {self.path}"

    @property
    def why(self) -> str:
        """The explanation for the operator, and what to do."""
        texts = _EXPLANATIONS_OF_REMOVALS if self.is_removal else _EXPLANATIONS
        return texts[self.resolution]

    def __str__(self) -> str:
        return f"{self.location}: {self.why}"


def merge_report(object_: str, merged: MergeResult) -> tuple[FieldResolution, ...]:
    """A resolution for each field where an edit or the generated value was overruled; none for plain updates."""
    edits = (
        FieldResolution(
            object_,
            path,
            Resolution.CONFLICTING if path in merged.conflicts else Resolution.PRESERVED,
            is_removal=path in merged.removals,
        )
        for path in merged.edits
    )
    reverted = (FieldResolution(object_, path, Resolution.REVERTED) for path in merged.reverted)
    retired = (FieldResolution(object_, path, Resolution.RETIRED) for path in merged.retired)
    return (*edits, *reverted, *retired)


def persistent_resolutions(
    resolutions: Sequence[FieldResolution], earlier_conflicts: Collection[str] = ()
) -> tuple[FieldResolution, ...]:
    """The resolutions that hold from step to step, as the status shows them. The others are reported once, as events.

    A conflict lasts as long as the edit, although the next merge compares with the newer last generated and finds
    none: `earlier_conflicts` are the `conflicting_fields` of the step before.
    """
    lasting = (one for one in resolutions if one.resolution in (Resolution.PRESERVED, Resolution.CONFLICTING))
    return tuple(
        replace(one, resolution=Resolution.CONFLICTING) if one.location in earlier_conflicts else one for one in lasting
    )


def conflicting_fields(resolutions: Sequence[FieldResolution]) -> tuple[str, ...]:
    """The locations of all conflicts: for the owner's status, and for `persistent_resolutions` in the next step."""
    return tuple(one.location for one in resolutions if one.resolution is Resolution.CONFLICTING)


def edits_condition(resolutions: Sequence[FieldResolution]) -> Condition:
    """The condition `Edited` for persistent resolutions, with a reason that says whether an edit conflicts."""
    if not resolutions:
        return Condition(
            ConditionType.EDITED, "False", ConditionReason.AS_GENERATED, "everything is as it is generated"
        )
    reason = ConditionReason.CONFLICTING if conflicting_fields(resolutions) else ConditionReason.EDITS_KEPT
    return Condition(ConditionType.EDITED, "True", reason, report_summary(resolutions))


def report_summary(resolutions: Sequence[FieldResolution]) -> str:
    """The report in one line, most urgent first: `1 conflicting: KbsConfig a/b spec.x; 2 preserved: …`; or ""."""
    parts = []
    for resolution in (Resolution.CONFLICTING, Resolution.REVERTED, Resolution.PRESERVED, Resolution.RETIRED):
        locations = [one.location for one in resolutions if one.resolution is resolution]
        if locations:
            parts.append(f"{len(locations)} {resolution}: {', '.join(locations)}")
    return "; ".join(parts)
