"""Text tables, text on one line, and the folding of similar entries."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Final, TypeVar

from rich.cells import cell_len
from rich.console import RenderableType
from rich.text import Text

_LINE_BREAK: Final = re.compile(r"\s*[\t\n\v\f\r\u2028\u2029]\s*")
# Escape codes begin with one of the first; the last ones reverse the direction of writing.
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


class TextTable:
    """A text table, with or without a header. A column is as wide as its widest cell so far.

    A cell longer than `limit` does not widen its column: it only moves the rest of its own line.
    """

    def __init__(self, *names: str, gap: int = 3, limit: int = 1_000) -> None:
        self._header = [(names, "bold")] if names else []
        self._gap = gap
        self._limit = limit
        self._widths: defaultdict[int, int] = defaultdict(int)

    def lines(self, rows: Iterable[tuple[Sequence[str], str]]) -> Text:
        """The rows, each with its style; the first call also prints the header."""
        shown = [*self._header, *((tuple(map(one_line, cells)), style) for cells, style in rows)]
        self._header = []
        for cells, _ in shown:
            for number, cell in enumerate(cells):
                if cell_len(cell) <= self._limit:
                    self._widths[number] = max(self._widths[number], cell_len(cell))
        return Text("\n").join(self._line(cells, style) for cells, style in shown)

    def _line(self, cells: Sequence[str], style: str) -> Text:
        line = Text()
        for number, cell in enumerate(cells):
            padding = " " * (self._widths[number] - cell_len(cell))
            line.append(cell + padding, style).append(" " * self._gap)
        line.rstrip()
        return line


def one_line(text: str) -> str:
    """Text from any origin on one line, without control characters that a terminal would interpret."""
    return _CONTROL.sub("�", _LINE_BREAK.sub(" ", text.strip()))


_T = TypeVar("_T")
_MAX_SHOWN: Final = 10


def fold_similar(
    each: Sequence[_T], lines: Callable[[_T], Iterator[RenderableType]], alike: Callable[[_T], Hashable]
) -> Iterator[RenderableType]:
    """The lines of each entry, in order; of similar entries only the first few, and how many more there are."""
    numbers, shown = Counter(map(alike, each)), Counter[Hashable]()
    for one in each:
        key = alike(one)
        shown[key] += 1
        if shown[key] <= _MAX_SHOWN:
            yield from lines(one)
        if shown[key] == _MAX_SHOWN < numbers[key]:
            yield Text(f"… and {numbers[key] - _MAX_SHOWN} more like this; -o json has all of them", style="dim")
