"""What may be a name: Kubernetes' rules, and how to say them."""

import re
from dataclasses import dataclass
from typing import Final

_PART: Final = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_PARTS: Final = rf"{_PART}(?:\.{_PART})*"
_WORD: Final = r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"


@dataclass(frozen=True, slots=True)
class NameRule:
    """A pattern, a length, and both in words."""

    pattern: re.Pattern[str]
    longest: int
    words: str

    def allows(self, text: str) -> bool:
        """Whether `text` keeps to the rule."""
        return len(text) <= self.longest and self.pattern.fullmatch(text) is not None

    def __str__(self) -> str:
        return f"{self.words}, at most {self.longest} characters"


def _rule(pattern: str, longest: int, words: str) -> NameRule:
    return NameRule(re.compile(pattern), longest, words)


NAME: Final = _rule(
    _PARTS, 253, 'lower-case letters, digits, "-" and ".", with a letter or digit at the ends of each part'
)
NAMESPACE: Final = _rule(_PART, 63, 'lower-case letters, digits and "-", with a letter or digit at both ends')
API_VERSION: Final = _rule(
    rf"(?:{_PARTS}/)?[a-z](?:[-a-z0-9]*[a-z0-9])?", 317, '"v1", or a group and a version such as "apps/v1"'
)
KIND: Final = _rule(r"[A-Za-z](?:[-A-Za-z0-9]*[A-Za-z0-9])?", 63, "letters and digits, such as SQLInstance")
KEY: Final = _rule(
    rf"(?:{_PARTS}/)?{_WORD}",
    317,
    'letters, digits, "-", "_" and "." (63 at most, a letter or digit at both ends), after an optional "domain/"',
)
LABEL_VALUE: Final = _rule(
    rf"(?:{_WORD})?", 63, 'letters, digits, "-", "_" and ".", with a letter or digit at both ends, or nothing'
)
DATA_KEY: Final = _rule(r"(?!\.{1,2}$)(?!\.\.)[-._A-Za-z0-9]+", 253, 'letters, digits, "-", "_" and "."')
