"""Many that are alike, told by a few of them: a fleet has thousands."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Final, TypeVar

from rich.console import RenderableType
from rich.text import Text

_T = TypeVar("_T")
_MOST: Final = 10


def told_by_a_few(
    each: Sequence[_T], lines: Callable[[_T], Iterator[RenderableType]], alike: Callable[[_T], Hashable]
) -> Iterator[RenderableType]:
    """The lines of each, in order; of those that are alike only the first, and how many more there are."""
    numbers, told = Counter(map(alike, each)), Counter[Hashable]()
    for one in each:
        key = alike(one)
        told[key] += 1
        if told[key] <= _MOST:
            yield from lines(one)
        if told[key] == _MOST < numbers[key]:
            yield Text(f"… and {numbers[key] - _MOST} more like this; -o json has all of them", style="dim")
