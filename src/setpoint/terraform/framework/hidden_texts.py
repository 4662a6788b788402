"""Texts that no diagnostic may repeat: values of a configuration that may be secret.

Terraform removes its marks of sensitive values before it calls a provider. A resource says which of its values may be
secret; whatever a message repeats of them, whole or in part, is redacted.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import field
from typing import Final

from setpoint.core.redaction import REDACTED
from setpoint.core.secret_fields import secret_texts
from setpoint.core.values.deferred_dataclass import dataclass

# A piece of this length, of a longer text, is redacted wherever it is: messages are cut, and quote parts.
_PIECE: Final = 12
# A shorter text than this is part of many words by chance: it is redacted as a word of its own.
_WORD: Final = 8
# A shorter one than this is redacted in quotes alone; and so much of the beginning or end of a text that is cut.
_SHORT: Final = 4
_QUOTES: Final = "\"'`"
_UNPRINTABLE: Final = "\ufffd"


@dataclass(frozen=True, slots=True)
class HiddenTexts:
    """Texts that are redacted in messages; `shown` are texts that may stay although they are part of one of them."""

    hidden: frozenset[str] = field(default=frozenset(), repr=False)
    shown: frozenset[str] = frozenset()

    def __or__(self, other: "HiddenTexts") -> "HiddenTexts":
        return HiddenTexts(self.hidden | other.hidden, self.shown | other.shown)

    def redacted(self, message: str) -> str:
        """`message` without any of the hidden texts, in any form in which a message may have them."""
        if not self.hidden or not message:
            return message
        covered = bytearray(len(message))
        pieces = _pieces(message)
        for text in self.hidden - self.shown:
            for form in _forms(text):
                for start, end in _found(form, message, pieces):
                    covered[start:end] = b"\1" * (end - start)
        return "".join(self._parts(message, covered))

    def _parts(self, message: str, covered: bytearray) -> Iterator[str]:
        for run in re.finditer(rb"\x00+|\x01+", covered):
            text = message[run.start() : run.end()]
            is_hidden = run[0][0] == 1 and not self._is_shown(text)
            yield REDACTED if is_hidden else text

    def _is_shown(self, run: str) -> bool:
        return run in self.shown or (len(run) >= _PIECE and any(run in one for one in self.shown))


NO_TEXTS: Final = HiddenTexts()


def _forms(text: str) -> frozenset[str]:
    """A text as it is, in JSON, in base64 and decoded from it, on one line, and without unprintable characters."""
    whole = text.strip()
    plain = "".join(one if one.isprintable() else _UNPRINTABLE for one in whole)
    return frozenset({text, whole, plain, " ".join(whole.split())}) | secret_texts(text) | secret_texts(whole)


def _pieces(message: str) -> dict[str, list[int]]:
    """Where each piece of a message is."""
    found: dict[str, list[int]] = {}
    for start in range(len(message) - _PIECE + 1):
        found.setdefault(message[start : start + _PIECE], []).append(start)
    return found


def _found(text: str, message: str, pieces: dict[str, list[int]]) -> Iterator[tuple[int, int]]:
    """Where a message has this text, or a part of it."""
    length = len(text)
    if length >= _PIECE:
        for position in range(length - _PIECE + 1):
            for start in pieces.get(text[position : position + _PIECE], ()):
                yield start, start + _PIECE
    elif length >= _SHORT:
        is_word = length < _WORD
        yield from _occurrences(re.escape(text), message, is_word=is_word)
    elif length:
        yield from (
            (start + 1, end - 1) for start, end in _occurrences(f"(?P<q>[\"'`]){re.escape(text)}(?P=q)", message)
        )
    if length >= _SHORT:
        yield from _cut(text, message)


def _occurrences(pattern: str, message: str, *, is_word: bool = False) -> Iterable[tuple[int, int]]:
    bounded = rf"(?<![^\W_]){pattern}(?![^\W_])" if is_word else pattern
    return (one.span() for one in re.finditer(bounded, message))


def _cut(text: str, message: str) -> Iterator[tuple[int, int]]:
    """The beginning of a text after a quote, and the end of one before it: what is left of a value that was cut."""
    for position, one in enumerate(message):
        if one in _QUOTES:
            ahead = _common(text, message[position + 1 : position + 1 + len(text)])
            behind = _common(text[::-1], message[max(0, position - len(text)) : position][::-1])
            if ahead >= _SHORT:
                yield position + 1, position + 1 + ahead
            if behind >= _SHORT:
                yield position - behind, position


def _common(one: str, other: str) -> int:
    """The length of the common beginning."""
    length = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        length += 1
    return length
