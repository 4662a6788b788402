"""Benchmarks whose result is not the CPU time of a call: memory, and the duration of a whole scenario."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from benchmarks.comparison import Comparison


class Unit(StrEnum):
    """The unit of a measurement."""

    SECONDS = "seconds"
    BYTES = "bytes"
    NUMBER = "number"
    PER_OBJECT = "per object"
    EXPONENT = "exponent"


@dataclass(frozen=True, slots=True)
class Measurement:
    """One value of a scenario; and its ratio to the first, where values are compared."""

    subject: str
    name: str
    value: float
    unit: Unit
    ratio: float | None = None


@dataclass(frozen=True, slots=True)
class Scenario:
    """A scenario that is measured as a whole by `measure`; WrongResult when the outcome is not the expected one."""

    measure: Callable[[], tuple[Measurement, ...]]


@dataclass(frozen=True, slots=True)
class Unmeasured:
    """A benchmark that cannot run on this machine, and the reason."""

    subject: str
    reason: str


Benchmark: TypeAlias = Comparison | Scenario | Unmeasured


def compared(subject: str, values: Mapping[str, float], unit: Unit) -> tuple[Measurement, ...]:
    """A measurement of each value, with its ratio to the first."""
    baseline = next(iter(values.values()))
    return tuple(
        Measurement(subject, name, value, unit, value / baseline if baseline else None)
        for name, value in values.items()
    )
