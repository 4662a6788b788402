"""A terminal emulator for the escape codes that our output uses."""

import re
from typing import Final

_ESCAPE: Final = re.compile(r"\x1b\[([0-9;?]*)([A-Za-z])")
_BEGUN_ESCAPE: Final = re.compile(r"\x1b(?:\[[0-9;?]*)?\Z")


class Screen:
    """Lines of text, those that scrolled away included. An escape code that it does not know is an AssertionError."""

    def __init__(self, columns: int, rows: int) -> None:
        self._columns, self._rows = columns, rows
        self._lines = [""]
        self._row = self._column = 0
        self._rest = ""
        self.is_cursor_hidden = False
        self.was_cursor_hidden = False
        # Restored when a program leaves the alternate screen.
        self._main_screen: tuple[list[str], int, int] | None = None

    @property
    def is_alternate(self) -> bool:
        """Whether the alternate screen is shown."""
        return self._main_screen is not None

    @property
    def lines(self) -> list[str]:
        """What can be read now, down to the last line that is not empty."""
        return "\n".join(line.rstrip() for line in self._lines).rstrip("\n").split("\n")

    def write(self, text: str) -> None:
        """Takes what a program writes, in pieces of any size."""
        text = self._rest + text
        begun = _BEGUN_ESCAPE.search(text)
        self._rest = begun[0] if begun else ""
        end, at = len(text) - len(self._rest), 0
        while at < end:
            escape = _ESCAPE.match(text, at)
            if escape is None:
                self._put(text[at])
                at += 1
            else:
                self._apply_escape(escape)
                at = escape.end()

    def _put(self, character: str) -> None:
        assert character.isprintable() or character in "\r\n", f"no text: {character!r}"
        if character == "\r":
            self._column = 0
            return
        # The last column is left only when something else is to be written.
        if character == "\n" or self._column == self._columns:
            self._row += 1
            self._column = self._column if character == "\n" else 0
            self._lines += [""] * (self._row + 1 - len(self._lines))
        if character != "\n":
            line = self._lines[self._row]
            self._lines[self._row] = line[: self._column].ljust(self._column) + character + line[self._column + 1 :]
            self._column += 1

    def _apply_escape(self, escape: re.Match[str]) -> None:
        match escape.groups():
            case (count, "A"):
                # What has scrolled away cannot be reached any more.
                self._row = max(len(self._lines) - self._rows, self._row - int(count or 1), 0)
            case ("2", "K"):
                self._lines[self._row] = ""
            case ("?25", "l" | "h" as letter):
                self.is_cursor_hidden = letter == "l"
                self.was_cursor_hidden |= self.is_cursor_hidden
            case ("?1049", "h"):
                self._main_screen = (self._lines, self._row, self._column)
                self._lines, self._row, self._column = [""], 0, 0
            case ("?1049", "l"):
                assert self._main_screen is not None
                (self._lines, self._row, self._column), self._main_screen = self._main_screen, None
            case ("", "H"):
                self._row, self._column = max(len(self._lines) - self._rows, 0), 0
            case (_, "m"):
                pass
            case _:
                raise AssertionError(f"unexpected escape code {escape[0]!r}")


def plain(written: str) -> str:
    """The text without escape codes, its lines ending in one character."""
    return _ESCAPE.sub("", written).replace("\r\n", "\n")


def colours(written: str) -> set[str]:
    """The colours that are switched on in `written`: red is 31."""
    switched = (part for parts, letter in _ESCAPE.findall(written) if letter == "m" for part in parts.split(";"))
    return {part for part in switched if re.fullmatch(r"[349][0-8]|10[0-7]", part)}
