"""Limits of encoded JSON, found without decoding and without recursion: how deep it is nested, how many values it has.

Decoded, a value takes up to a hundred times the space of its text, and one that is nested deeply exhausts the stack.
"""

import re
from collections.abc import Callable
from typing import Final, TypeVar

import msgspec

from setpoint.core.values.canonical import MAX_DEPTH

T = TypeVar("T")

# Of one JSON text: decoded, that many take about 10 MB.
MAX_VALUES: Final = 100_000
# Of a list whose items are decoded one by one.
MAX_LIST_VALUES: Final = 4 * MAX_VALUES
# Where a text is cut: deeper than any that is accepted, so that what is left of it is not accepted, either.
_CUT_DEPTH: Final = MAX_DEPTH + 16
_OPENING: Final = (b"[", b"{")
_CLOSING: Final = (b"]", b"}")
# Up to the next mark outside of strings, or up to the end. Possessive, so that any text takes one pass and no stack; a
# string without an end goes up to the end.
_NEXT_MARK: Final = re.compile(
    rb'[^"\[\]{},]*+(?:"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)[^"\[\]{},]*+)*+([\[\]{},]|\Z)', re.DOTALL
)


def excess_of(text: bytes | bytearray, values: float = MAX_VALUES, depth: int = MAX_DEPTH) -> str:
    """What is too much in a JSON text, as the end of a sentence; empty for one within the limits."""
    opened = text.count(b"[") + text.count(b"{")
    if opened <= depth and opened + text.count(b",") < values:
        # The usual case, whatever of it is in strings.
        return ""
    level, found = 0, 1
    for match in _NEXT_MARK.finditer(text):
        mark = match[1]
        if mark in _CLOSING:
            level -= 1
            continue
        level += mark in _OPENING
        found += bool(mark)
        if level > depth:
            return f"is nested deeper than {depth} levels"
        if found > values:
            return f"has more than {values:,} values"
    return ""


def decode_cut(decode: Callable[[bytes | msgspec.Raw], T], text: bytes | msgspec.Raw) -> T:
    """The decoded text; one that is nested too deeply for the stack is cut first, below any depth that is accepted."""
    try:
        return decode(text)
    except RecursionError:
        return decode(cut_nesting(bytes(text), _CUT_DEPTH))


def cut_nesting(text: bytes, depth: int) -> bytes:
    """The same JSON text with null in place of everything that is nested deeper than `depth` levels."""
    kept, start, level = bytearray(), 0, 0
    for match in _NEXT_MARK.finditer(text):
        mark = match[1]
        if mark in _OPENING:
            level += 1
            if level == depth + 1:
                kept += text[start : match.end() - 1] + b"null"
        elif mark in _CLOSING:
            if level == depth + 1:
                start = match.end()
            level -= 1
    return bytes(kept + text[start:] if level <= depth else kept)
