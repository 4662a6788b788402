"""What is no CPU time of a call: memory, and how long something takes from its beginning to its end."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from benchmarks.measuring import Contest


class Unit(StrEnum):
    """What a reading is counted in."""

    SECONDS = "seconds"
    BYTES = "bytes"
    NUMBER = "number"


@dataclass(frozen=True, slots=True)
class Reading:
    """One figure of a survey; and how often that is what ours takes, where there is something to compare."""

    subject: str
    name: str
    value: float
    unit: Unit
    ratio: float | None = None


@dataclass(frozen=True, slots=True)
class Survey:
    """Something to look at as a whole: `take` gives what it found; Disagreement when it was not what it has to be."""

    take: Callable[[], tuple[Reading, ...]]


@dataclass(frozen=True, slots=True)
class Unmeasured:
    """Something that cannot be looked at here, and why."""

    subject: str
    reason: str


Trial: TypeAlias = Contest | Survey | Unmeasured


def compared(subject: str, values: Mapping[str, float], unit: Unit) -> tuple[Reading, ...]:
    """The first is the measure of the others."""
    measure = next(iter(values.values()))
    return tuple(Reading(subject, name, value, unit, value / measure) for name, value in values.items())
