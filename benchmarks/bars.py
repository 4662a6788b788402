"""The bars that the design sets for the core, held against figures of one run."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from benchmarks import fast_path, start_up
from benchmarks.measuring import Figure

COOKIE: Final = "cookie"
COOKIE_LIMIT: Final = 129


@dataclass(frozen=True, slots=True)
class Verdict:
    """A bar, the figure beside it, and whether the figure meets it."""

    subject: str
    contestant: str
    bar: str
    figure: str
    is_met: bool

    def __str__(self) -> str:
        return f"{self.bar}: {self.figure}, {'met' if self.is_met else 'not met'}"


def verdicts(figures: Iterable[Figure], cookie_bytes: int) -> tuple[Verdict, ...]:
    """A verdict for each bar that was measured."""
    return (*_on_figures(figures), _on_the_cookie(cookie_bytes))


def _on_figures(figures: Iterable[Figure]) -> Iterator[Verdict]:
    for figure in figures:
        match figure:
            case Figure(fast_path.SUBJECT, "6 KB", fast_path.DEEPDIFF, ratio=times):
                yield _verdict(figure, "ours ≥ 200 × faster", times, is_met=times >= 200)
            case Figure(fast_path.SUBJECT, "6 KB", fast_path.FLOOR, ratio=share):
                yield _verdict(figure, "ours within 3 ×", 1 / share, is_met=1 / share <= 3)
            case Figure(start_up.SUBJECT, _, start_up.INTERPRETER, ratio=share):
                yield _verdict(figure, "ours < 2 ×", 1 / share, is_met=1 / share < 2)
            case _:
                continue


def _verdict(figure: Figure, bar: str, times: float, *, is_met: bool) -> Verdict:
    bar = f"{bar} at {figure.size}" if figure.size else bar
    return Verdict(figure.subject, figure.contestant, bar, f"{times:.3g} ×", is_met)


def _on_the_cookie(size: int) -> Verdict:
    return Verdict(COOKIE, COOKIE, f"≤ {COOKIE_LIMIT} bytes", f"{size} bytes", size <= COOKIE_LIMIT)
