"""What became of people's changes to a generated object, in words: whose value stands at each place, and why."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from setpoint.core.conditions import Condition
from setpoint.core.paths import Path
from setpoint.core.threeway import Merged


class Fate(StrEnum):
    """Who has the last word on a place."""

    PRESERVED = "preserved"
    CONFLICTING = "conflicting"
    REVERTED = "reverted"
    RETIRED = "retired"


@dataclass(frozen=True, slots=True)
class Finding:
    """One place of one object, and what became of it. `object` is the object as people name it."""

    object: str
    path: Path
    fate: Fate
    why: str

    @property
    def place(self) -> str:
        """Where it is, among all objects."""
        return f"{self.object} {self.path}"

    def __str__(self) -> str:
        return f"{self.place}: {self.why}"


_KEPT: Final = "a person's value is kept: this field is theirs to set"
_KEPT_AWAY: Final = "removed by a person, and stays so: this field is theirs to set"
_TORN: Final = (
    "a person's value is kept, but what is generated has changed, too: put the generated value there to take it over"
)
_TORN_AWAY: Final = (
    "removed by a person, and stays so, but what is generated has changed, too: look whether it is needed"
)
_REVERTED: Final = "put back to what is generated: this field is managed, so change the owner instead"
_RETIRED: Final = "no longer generated, and nobody had changed it: it is gone"


def fates(object_: str, merged: Merged) -> tuple[Finding, ...]:
    """A finding for each place where a person or the owner gave way; none for what the owner merely moved on."""
    return tuple(_findings(object_, merged))


def _findings(object_: str, merged: Merged) -> Iterator[Finding]:
    for path in merged.edits:
        is_gone = path in merged.removals
        if path in merged.conflicts:
            yield Finding(object_, path, Fate.CONFLICTING, _TORN_AWAY if is_gone else _TORN)
        else:
            yield Finding(object_, path, Fate.PRESERVED, _KEPT_AWAY if is_gone else _KEPT)
    for path in merged.reverted:
        yield Finding(object_, path, Fate.REVERTED, _REVERTED)
    for path in merged.retired:
        yield Finding(object_, path, Fate.RETIRED, _RETIRED)


def standing(findings: Sequence[Finding], torn: Collection[str] = ()) -> tuple[Finding, ...]:
    """The findings that hold from pass to pass: what a status shows. The others are told once, as they happen.

    A conflict lasts as long as the edit does, though the next pass knows what was generated last and sees none:
    `torn` are the places of the conflicts before. See `conflicts`.
    """
    held = (one for one in findings if one.fate in (Fate.PRESERVED, Fate.CONFLICTING))
    return tuple(_torn(one) if one.place in torn else one for one in held)


def _torn(one: Finding) -> Finding:
    return replace(one, fate=Fate.CONFLICTING, why=_TORN_AWAY if one.why in (_KEPT_AWAY, _TORN_AWAY) else _TORN)


def conflicts(findings: Sequence[Finding]) -> tuple[str, ...]:
    """The places of all conflicts: for the owner's status, and for `standing` in the next pass."""
    return tuple(one.place for one in findings if one.fate is Fate.CONFLICTING)


def edits_condition(findings: Sequence[Finding]) -> Condition:
    """What the findings that hold come to: `Edited`, and whether any edit is in conflict with what is generated."""
    if not findings:
        return Condition("Edited", "False", "AsGenerated", "everything is as it is generated")
    reason = "Conflicting" if conflicts(findings) else "EditsKept"
    return Condition("Edited", "True", reason, summary(findings))


def summary(findings: Sequence[Finding]) -> str:
    """All of it in a line, the most urgent first: `1 conflicting: KbsConfig a/b spec.x; 2 preserved: …`; or ""."""
    parts = []
    for fate in (Fate.CONFLICTING, Fate.REVERTED, Fate.PRESERVED, Fate.RETIRED):
        places = [one.place for one in findings if one.fate is fate]
        if places:
            parts.append(f"{len(places)} {fate}: {', '.join(places)}")
    return "; ".join(parts)
