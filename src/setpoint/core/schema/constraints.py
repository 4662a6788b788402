"""Constraints on one value, written once: rules of a CustomResourceDefinition, and a check of any manifest.

A constraint stands in the annotation of a field, of the items of a list or of the keys of a map:

    class Window(Struct):
        hour: Annotated[int | UnsetType, Between(0, 23)] = UNSET
        track: Annotated[str | None | UnsetType, OneOf("canary", "stable")] = UNSET
        names: list[Annotated[str, Matches("[a-z]+", "lower-case letters")]] = []

A value that is left out, or null, satisfies every constraint.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cache
from typing import Final

from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.durations import DURATION_ADVICE, DURATION_PATTERN, MAX_SECONDS, parse_duration
from setpoint.core.values.json_types import Json
from setpoint.errors import ManifestInvalid

# The API server estimates the cost of a rule by the longest text that a field takes.
_MAX_TEXT: Final = 1024
_MAX_CHOICE: Final = 128


class Constraint(ABC):
    """What the value of a field has to be. `advice` goes on after "write"."""

    @property
    @abstractmethod
    def advice(self) -> str:
        """What to write instead of a value that is not allowed."""

    @abstractmethod
    def allows(self, value: Json) -> bool:
        """Whether a value of the field's type satisfies the constraint."""

    @abstractmethod
    def cel(self, subject: str) -> str:
        """The rule in CEL about the value of the expression `subject`; empty if the keywords say everything."""

    @property
    def keywords(self) -> Mapping[str, Json]:
        """The keywords of OpenAPI that say a part of it."""
        return {}

    @property
    def pattern_keyword(self) -> str:
        """The pattern of OpenAPI that says the same of a text as the rule in CEL; empty when none does."""
        return ""


@dataclass(frozen=True, slots=True, init=False)
class OneOf(Constraint):
    """Text that is one of a closed set. Empty text is allowed where it means to leave the field out."""

    values: tuple[str, ...]
    or_empty: bool
    ignore_case: bool

    def __init__(self, *values: str, or_empty: bool = True, ignore_case: bool = False) -> None:
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "or_empty", or_empty)
        object.__setattr__(self, "ignore_case", ignore_case)

    @property
    def advice(self) -> str:
        """See Constraint."""
        *most, last = self.values
        return f"{', '.join(most)} or {last}" if most else last

    def allows(self, value: Json) -> bool:
        """See Constraint."""
        text = value.upper() if self.ignore_case and isinstance(value, str) and value.isascii() else value
        return text in self._allowed

    def cel(self, subject: str) -> str:
        """See Constraint."""
        listed = ", ".join(map(_literal, self._allowed))
        return f"{subject}{'.upperAscii()' if self.ignore_case else ''} in [{listed}]"

    @property
    def keywords(self) -> Mapping[str, Json]:
        """See Constraint."""
        return {"maxLength": _MAX_CHOICE}

    @property
    def pattern_keyword(self) -> str:
        """See Constraint."""
        return f"^(?{'i' if self.ignore_case else ''}:{'|'.join(map(re.escape, self._allowed))})$"

    @property
    def _allowed(self) -> tuple[str, ...]:
        named = tuple(one.upper() for one in self.values) if self.ignore_case else self.values
        return ("", *named) if self.or_empty else named


@dataclass(frozen=True, slots=True)
class Matches(Constraint):
    """Text that matches a pattern as a whole, and not the one of `reserved` texts.

    The patterns are of RE2 and of Python: without look-around.
    """

    pattern: str
    advice: str
    max_length: int = _MAX_TEXT
    or_empty: bool = True
    reserved: str | None = None

    def allows(self, value: Json) -> bool:
        """See Constraint."""
        return (
            isinstance(value, str)
            and len(value) <= self.max_length
            and (_compiled(self.pattern).fullmatch(value) is not None or (self.or_empty and value == ""))
            and not (self.reserved is not None and _compiled(self.reserved).fullmatch(value))
        )

    def cel(self, subject: str) -> str:
        """See Constraint."""
        matches = f"{subject}.matches(r'^(?:{self.pattern}){'?' if self.or_empty else ''}$')"
        return matches if self.reserved is None else f"({matches} && !{subject}.matches(r'^(?:{self.reserved})$'))"

    @property
    def keywords(self) -> Mapping[str, Json]:
        """See Constraint."""
        return {"maxLength": self.max_length}

    @property
    def pattern_keyword(self) -> str:
        """See Constraint."""
        return "" if self.reserved is not None else f"^(?:{self.pattern}){'?' if self.or_empty else ''}$"


@dataclass(frozen=True, slots=True)
class Between(Constraint):
    """A number in a range, both ends included; with `or_zero`, 0 as well, where it has a meaning of its own."""

    low: int
    high: int | None = None
    or_zero: bool = False

    @property
    def advice(self) -> str:
        """See Constraint."""
        most = f"{self.low} or more" if self.high is None else f"{self.low} to {self.high}"
        return f"0, or {most}" if self.or_zero else f"a number of {most}"

    def allows(self, value: Json) -> bool:
        """See Constraint."""
        return isinstance(value, int | float) and (
            (self.or_zero and value == 0) or (self.low <= value and (self.high is None or value <= self.high))
        )

    def cel(self, subject: str) -> str:
        """See Constraint."""
        if not self.or_zero:
            return ""
        most = "" if self.high is None else f" && {subject} <= {self.high}"
        return f"{subject} == 0 || ({subject} >= {self.low}{most})"

    @property
    def keywords(self) -> Mapping[str, Json]:
        """See Constraint."""
        if self.or_zero:
            return {}
        return {"minimum": self.low, **({} if self.high is None else {"maximum": self.high})}


@dataclass(frozen=True, slots=True)
class IsTrue(Constraint):
    """A boolean that has one meaning only: true."""

    @property
    def advice(self) -> str:
        """See Constraint."""
        return "true, or leave it out"

    def allows(self, value: Json) -> bool:
        """See Constraint."""
        return value is True

    def cel(self, subject: str) -> str:
        """See Constraint."""
        return subject


@dataclass(frozen=True, slots=True)
class HasEntries(Constraint):
    """A map with one entry or more."""

    advice: str

    def allows(self, value: Json) -> bool:
        """See Constraint."""
        return bool(value)

    def cel(self, subject: str) -> str:
        """See Constraint."""
        return ""

    @property
    def keywords(self) -> Mapping[str, Json]:
        """See Constraint."""
        return {"minProperties": 1}


@dataclass(frozen=True, slots=True)
class NoneOf(Constraint):
    """Text that is none of these."""

    values: tuple[str, ...]
    advice: str

    def allows(self, value: Json) -> bool:
        """See Constraint."""
        return value not in self.values

    def cel(self, subject: str) -> str:
        """See Constraint."""
        return f"!({subject} in [{', '.join(_literal(one) for one in self.values)}])"


@dataclass(frozen=True, slots=True)
class IsDuration(Constraint):
    """A duration above 0, as text in Go's syntax or as a number of seconds."""

    @property
    def advice(self) -> str:
        """See Constraint."""
        return DURATION_ADVICE

    def allows(self, value: Json) -> bool:
        """See Constraint."""
        try:
            parse_duration(value)
        except ManifestInvalid:
            return False
        return True

    def cel(self, subject: str) -> str:
        """See Constraint."""
        number = f"(int({subject}) > 0 && int({subject}) < {int(MAX_SECONDS)})"
        text = (
            f"(string({subject}).size() <= 64 && string({subject}).matches(r'^(?:{DURATION_PATTERN})$')"
            f" && duration(string({subject})) > duration('0s'))"
        )
        return f"type({subject}) == int ? {number} : {text}"


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def _literal(text: str) -> str:
    return f"'{text}'"
