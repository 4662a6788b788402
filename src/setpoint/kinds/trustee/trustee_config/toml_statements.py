"""TOML as the statements it is written in: every byte of the text is in exactly one of them.

Only for text that is known to be TOML: whether it is, and what it means, is for the standard library to say.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

KeyPath: TypeAlias = tuple[str, ...]

_KEY: Final = r"""(?:[A-Za-z0-9_-]+|"(?:\\.|[^"\\\n])*"|'[^'\n]*')"""
_KEYS: Final = rf"{_KEY}(?:[ \t]*\.[ \t]*{_KEY})*"
_HEADER: Final = re.compile(rf"[ \t]*\[\[?[ \t]*(?P<keys>{_KEYS})[ \t]*\]")
_PAIR: Final = re.compile(rf"[ \t]*(?P<keys>{_KEYS})[ \t]*=[ \t]*")
_ONE_KEY: Final = re.compile(_KEY)
# What may stand in a value: texts and comments are passed over whole, brackets are counted.
_TOKEN: Final = re.compile(
    r'"""(?:\\.|[^\\])*?"""|' + r"'''.*?'''|" + r'"(?:\\.|[^"\\\n])*"|' + r"'[^'\n]*'|#[^\n]*|.", re.DOTALL
)
_DEEPER: Final = {"[": 1, "{": 1, "]": -1, "}": -1}


@dataclass(frozen=True, slots=True)
class Layout:
    """A comment or a blank line. `table` is the one that it stands in."""

    text: str
    table: KeyPath


@dataclass(frozen=True, slots=True)
class Header:
    """The start of a table."""

    text: str
    table: KeyPath


@dataclass(frozen=True, slots=True)
class Pair:
    """A key and its value. `before` is all up to the value, `after` all behind it: space, a comment, the line's end."""

    before: str
    value: str
    after: str
    table: KeyPath
    path: KeyPath

    @property
    def text(self) -> str:
        """The statement as it is written."""
        return f"{self.before}{self.value}{self.after}"


Statement: TypeAlias = Layout | Header | Pair


def statements(text: str) -> Iterator[Statement]:
    """The statements of a TOML text, in order."""
    table: KeyPath = ()
    position = 0
    while position < len(text):
        if header := _HEADER.match(text, position):
            end = _line_end(text, position)
            table = _path(header["keys"])
            yield Header(text[position:end], table)
        elif pair := _PAIR.match(text, position):
            value_end, end = _value_end(text, pair.end())
            path = (*table, *_path(pair["keys"]))
            yield Pair(text[position : pair.end()], text[pair.end() : value_end], text[value_end:end], table, path)
        else:
            end = _line_end(text, position)
            yield Layout(text[position:end], table)
        position = end


def _path(keys: str) -> KeyPath:
    return tuple(key.strip("\"'") for key in _ONE_KEY.findall(keys))


def _line_end(text: str, position: int) -> int:
    end = text.find("\n", position)
    return len(text) if end < 0 else end + 1


def _value_end(text: str, position: int) -> tuple[int, int]:
    """Where the value ends, and where the statement does: at the first line end outside of brackets and texts."""
    depth, last = 0, position
    for token in _TOKEN.finditer(text, position):
        found = token[0]
        if found == "\n" and not depth:
            return last, token.end()
        depth += _DEEPER.get(found, 0)
        if not found.isspace() and not found.startswith("#"):
            last = token.end()
    return last, len(text)
