"""Findings of the doctor, as data: what was found, where, and what to do."""

from collections import Counter
from collections.abc import Iterable, Sequence
from enum import StrEnum

from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import Json
from setpoint.errors import SetpointError


class Level(StrEnum):
    """How bad a finding is. Only an error makes the exit code 1."""

    OK = "ok"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    level: Level
    what: str
    where: str = ""
    advice: str = ""
    # The check that found it.
    check: str = ""

    def to_data(self) -> dict[str, Json]:
        """The finding as JSON."""
        return {
            "check": self.check,
            "level": self.level.value,
            "what": self.what,
            "where": self.where,
            "advice": self.advice,
        }


def ok(what: str, where: str = "") -> Finding:
    """Something that is as it should be."""
    return Finding(Level.OK, what, where)


def warning(what: str, where: str = "", advice: str = "") -> Finding:
    """Something that works, and will not for ever."""
    return Finding(Level.WARNING, what, where, advice)


def failure(what: str, where: str = "", advice: str = "") -> Finding:
    """Something that does not work."""
    return Finding(Level.ERROR, what, where, advice)


def failure_of(error: SetpointError, where: str = "") -> Finding:
    """One of our errors; what follows its last colon says what to do."""
    what, _, advice = str(error).rpartition(": ")
    return failure(what or advice, where, advice if what else "")


def counted(number: int, noun: str) -> str:
    """A number of things: `1 error`, `2 errors`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def findings_data(findings: Sequence[Finding]) -> dict[str, Json]:
    """All findings, and how many there are of each level."""
    counts = counts_of(findings)
    return {
        "findings": [one.to_data() for one in findings],
        "summary": {level.value: counts[level] for level in Level},
    }


def counts_of(findings: Iterable[Finding]) -> "Counter[Level]":
    """How many findings there are of each level."""
    return Counter(one.level for one in findings)
