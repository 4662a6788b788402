"""Selectors of labels, as kubectl has them: `team=web,tier!=db,env in (test,prod),!old`."""

import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Final

from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.errors import ManifestInvalid

_KEY: Final = re.compile(r"(?:[A-Za-z0-9.-]+/)?[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?")
_VALUE: Final = re.compile(r"(?:[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?)?")
_SPACE: Final = re.compile(r"\s*")
_SET_WORD: Final = re.compile(r"(in|notin)\s*\(")
_FORMS: Final = "write key=value, key!=value, key in (a,b), key notin (a,b), key or !key, with commas between"


class LabelOperator(StrEnum):
    """How a requirement compares."""

    IN = "in"
    NOT_IN = "notin"
    EXISTS = "exists"
    NOT_EXISTS = "!"


@dataclass(frozen=True, slots=True)
class LabelRequirement:
    """What one label has to be. A resource without the label is not in any set of values."""

    key: str
    operator: LabelOperator
    values: frozenset[str] = frozenset()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether these labels are as required."""
        match self.operator:
            case LabelOperator.IN:
                return labels.get(self.key) in self.values
            case LabelOperator.NOT_IN:
                return labels.get(self.key) not in self.values
            case LabelOperator.EXISTS:
                return self.key in labels
            case _:
                return self.key not in labels


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """Labels that a resource has to have: each requirement holds. Without any, it selects all."""

    requirements: tuple[LabelRequirement, ...] = ()

    @staticmethod
    def parse(text: str, option: str = "-l") -> "LabelSelector":
        """The selector written as `text`; ManifestInvalid names the character where it is wrong."""
        return LabelSelector(tuple(_Reader(text, option).requirements()))

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether a resource with these labels is selected."""
        return all(one.matches(labels) for one in self.requirements)


class _Reader:
    def __init__(self, text: str, option: str) -> None:
        self._text, self._option, self._at = text, option, 0

    def requirements(self) -> Iterator[LabelRequirement]:
        self._skip()
        if self._at == len(self._text):
            raise self._error("there is no label")
        yield self._requirement()
        while self._at < len(self._text):
            self._expect(",")
            yield self._requirement()

    def _requirement(self) -> LabelRequirement:
        self._skip()
        if self._took("!"):
            return LabelRequirement(self._word(_KEY, "the key of a label"), LabelOperator.NOT_EXISTS)
        key = self._word(_KEY, "the key of a label")
        found = _SET_WORD.match(self._text, self._at)
        if found is not None:
            self._at = found.end()
            return LabelRequirement(key, LabelOperator(found[1]), frozenset(self._values()))
        if self._took("!="):
            return LabelRequirement(key, LabelOperator.NOT_IN, frozenset({self._value()}))
        if self._took("==") or self._took("="):
            return LabelRequirement(key, LabelOperator.IN, frozenset({self._value()}))
        if self._at < len(self._text) and self._text[self._at] != ",":
            raise self._error(f"{self._text[self._at]!r} is not expected here")
        return LabelRequirement(key, LabelOperator.EXISTS)

    def _values(self) -> Iterator[str]:
        yield self._value()
        while self._took(","):
            yield self._value()
        self._expect(")")

    def _value(self) -> str:
        self._skip()
        return self._word(_VALUE, "the value of a label")

    def _word(self, pattern: re.Pattern[str], what: str) -> str:
        self._skip()
        found = pattern.match(self._text, self._at)
        if found is None:
            raise self._error(f"{what} is missing")
        self._at = found.end()
        self._skip()
        return found[0]

    def _took(self, sign: str) -> bool:
        if not self._text.startswith(sign, self._at):
            return False
        self._at += len(sign)
        return True

    def _expect(self, sign: str) -> None:
        self._skip()
        if not self._took(sign):
            raise self._error(f"{sign!r} is missing")
        self._skip()

    def _skip(self) -> None:
        found = _SPACE.match(self._text, self._at)
        self._at = found.end() if found else self._at

    def _error(self, problem: str) -> ManifestInvalid:
        return ManifestInvalid(f"{self._option} {self._text!r}: character {self._at + 1}: {problem}; {_FORMS}")
