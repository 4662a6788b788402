"""The bars that the design sets, held against figures of one run."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from benchmarks import cluster, fast_path, queue, runtime, runtime_latency, runtime_memory, runtime_passes, start_up
from benchmarks.buckets import USUAL
from benchmarks.measuring import Figure
from benchmarks.surveys import Reading

COOKIE: Final = "cookie"
COOKIE_LIMIT: Final = 129
_PASSES: Final = 20_000
_KOPF: Final = 40
_PLAN_SECONDS: Final = 1.0
_GET: Final = 1.3
_LISTS: Final = 5
_COLD_SECONDS: Final = 0.5
_BYTES_EACH: Final = 3_000
_BYTES: Final = 400e6


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


def verdicts(figures: Sequence[Figure], readings: Iterable[Reading], cookie_bytes: int) -> tuple[Verdict, ...]:
    """A verdict for each bar that was measured."""
    on_figures = (verdict for judge in _JUDGES for figure in figures for verdict in judge(figure))
    on_readings = (verdict for reading in readings for verdict in _on_reading(reading))
    return (*on_figures, *_on_operators(figures), *on_readings, _on_the_cookie(cookie_bytes))


# --- The core and the command -----------------------------------------------------------------------------------------


def _on_the_fast_path(figure: Figure) -> Iterator[Verdict]:
    match figure:
        case Figure(fast_path.SUBJECT, "6 KB", fast_path.DEEPDIFF, ratio=times):
            yield _verdict(figure, "ours ≥ 200 × faster", times, is_met=times >= 200)
        case Figure(fast_path.SUBJECT, "6 KB", fast_path.FLOOR, ratio=share):
            yield _verdict(figure, "ours within 3 ×", 1 / share, is_met=1 / share <= 3)
        case _:
            return


def _on_the_start_up(figure: Figure) -> Iterator[Verdict]:
    match figure:
        case Figure(start_up.SUBJECT, _, start_up.INTERPRETER, ratio=share):
            yield _verdict(figure, "ours < 2 ×", 1 / share, is_met=1 / share < 2)
        case _:
            return


def _verdict(figure: Figure, bar: str, times: float, *, is_met: bool) -> Verdict:
    bar = f"{bar} at {figure.size}" if figure.size else bar
    return Verdict(figure.subject, figure.contestant, bar, f"{times:.3g} ×", is_met)


def _on_the_cookie(size: int) -> Verdict:
    return Verdict(COOKIE, COOKIE, f"≤ {COOKIE_LIMIT} bytes", f"{size} bytes", size <= COOKIE_LIMIT)


# --- The process ------------------------------------------------------------------------------------------------------


def _on_the_queue(figure: Figure) -> Iterator[Verdict]:
    if queue.is_held_to_the_bar(figure):
        bar = f"≤ {queue.CYCLE_LIMIT / 1e3:g} µs at {figure.size}"
        is_met = figure.nanoseconds <= queue.CYCLE_LIMIT
        yield Verdict(figure.subject, figure.contestant, bar, f"{figure.nanoseconds / 1e3:.2f} µs", is_met)


def _on_passes(figure: Figure) -> Iterator[Verdict]:
    match figure:
        case Figure(runtime_passes.NO_NETWORK, _, runtime_passes.OURS, cost):
            bar, rate = f"≥ {_PASSES:,} per CPU-second", 1e9 / cost
            yield Verdict(figure.subject, figure.contestant, bar, f"{rate:,.0f}", rate >= _PASSES)
        case Figure(runtime_passes.UNCHANGED, _, runtime_passes.BARE, ratio=share):
            yield _verdict(figure, f"ours ≤ {_GET} ×", 1 / share, is_met=1 / share <= _GET)
        case Figure(runtime_passes.RESYNC, _, runtime_passes.BY_GETS, ratio=times):
            yield _verdict(figure, f"by lists ≥ {_LISTS} × less", times, is_met=times >= _LISTS)
        case Figure(runtime_passes.PLAN, USUAL.label, runtime_passes.PREVIEW, cost):
            seconds = cost * runtime.RESOURCES / 1e9
            bar = f"{runtime.RESOURCES:,} in < {_PLAN_SECONDS:g} s at {figure.size}"
            yield Verdict(figure.subject, figure.contestant, bar, f"{seconds:.2f} s", seconds < _PLAN_SECONDS)
        case _:
            return


def _on_operators(figures: Iterable[Figure]) -> Iterator[Verdict]:
    """Of the ways to measure another operator, the one that is best for it counts."""
    others = [figure for figure in figures if figure.subject == runtime_passes.NO_NETWORK][1:]
    if others:
        best = min(others, key=lambda figure: figure.ratio)
        yield _verdict(best, f"ours ≥ {_KOPF} × faster", best.ratio, is_met=best.ratio >= _KOPF)


def _on_reading(reading: Reading) -> Iterator[Verdict]:
    value = reading.value
    match (reading.subject, reading.name):
        case (runtime_memory.MEMORY, runtime_memory.EACH) | (cluster.MEMORY_EACH, cluster.OURS):
            is_met = value <= _BYTES_EACH
            yield Verdict(reading.subject, reading.name, "≤ 3 KB", f"{value / 1e3:.2f} KB", is_met)
        case (runtime_memory.MEMORY, runtime_memory.ALL):
            yield Verdict(reading.subject, reading.name, "< 400 MB", f"{value / 1e6:.0f} MB", value < _BYTES)
        case (runtime_latency.COLD_START, runtime_latency.COLD_CPU) | (cluster.START_CPU, cluster.BEYOND):
            is_met = value < _COLD_SECONDS
            yield Verdict(reading.subject, reading.name, "< 0.5 s", f"{value:.2f} s", is_met)
        case _:
            return


_JUDGES: Final[tuple[Callable[[Figure], Iterator[Verdict]], ...]] = (
    _on_the_fast_path,
    _on_the_start_up,
    _on_the_queue,
    _on_passes,
)
