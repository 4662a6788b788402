"""Limits of encoded JSON, found without decoding and without recursion: how deep it is nested, how many values it has.

Decoded, a value takes up to a hundred times the space of its text, and one that is nested deeply exhausts the stack.
"""

import re
from collections.abc import Callable
from math import inf
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
# How much of a text is split into strings and what is between them at once.
_CHUNK: Final = 2**16
# From the last byte of a chunk on: no chunk ends within an escape.
_CHUNK_END: Final = re.compile(rb"\\*+.?", re.DOTALL)
_VALUE_MARKS: Final = b"[{,"
_NO_MARKS: Final = bytes(set(range(256)) - set(b"[]{},"))
_SAME_BRACKETS: Final = bytes.maketrans(b"{}", b"[]")
_OPENING: Final = (b"[", b"{")
_CLOSING: Final = (b"]", b"}")
# Up to the next mark outside of strings, or up to the end. Possessive, so that any text takes one pass and no stack; a
# string without an end goes up to the end.
_NEXT_MARK: Final = re.compile(
    rb'[^"\[\]{},]*+(?:"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)[^"\[\]{},]*+)*+([\[\]{},]|\Z)', re.DOTALL
)


def excess_of(text: bytes | bytearray, values: float = MAX_VALUES, depth: int = MAX_DEPTH) -> str:
    """What is too much in a JSON text, as the end of a sentence; empty for one within the limits."""
    return excess_of_values(text, values) or _excess_of_depth(text, depth)


def excess_of_values(text: bytes | bytearray, values: float = MAX_VALUES) -> str:
    """The same for the number of values alone."""
    # The usual cases: a value takes a byte at least, and few marks are few values, whatever of them is in strings.
    if len(text) <= values or len(text) - len(text.translate(None, _VALUE_MARKS)) < values:
        return ""
    # No more closing brackets than opening ones: with so many marks, there are too many values.
    marks = _marks(text, 2 * values)
    return f"has more than {values:,} values" if marks.count(b"[") + marks.count(b",") >= values else ""


def _excess_of_depth(text: bytes | bytearray, depth: int) -> str:
    if text.count(b"[") + text.count(b"{") <= depth:
        return ""
    brackets, left = _marks(text, inf).replace(b",", b""), depth
    # Each time without the innermost: what is nested in so many levels is empty after so many times.
    while brackets and left:
        brackets, left = brackets.replace(b"[]", b""), left - 1
    return f"is nested deeper than {depth} levels" if brackets else ""


def _marks(text: bytes | bytearray, most: float) -> bytearray:
    """The brackets, all as square ones, and the commas that are not in strings; of more than `most` not all."""
    marks, start, is_in_string = bytearray(), 0, 0
    while start < len(text) and len(marks) <= most:
        end = next(_CHUNK_END.finditer(text, start + _CHUNK - 1)).end()
        chunk = text[start:end]
        if b"\\" in chunk:
            chunk = chunk.replace(b"\\\\", b"").replace(b'\\"', b"")
        parts = chunk.split(b'"')
        marks += b"".join(parts[is_in_string::2]).translate(_SAME_BRACKETS, _NO_MARKS)
        is_in_string ^= (len(parts) - 1) % 2
        start = end
    return marks


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
