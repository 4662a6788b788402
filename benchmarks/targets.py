"""The performance targets of the design, checked against the timings and measurements of a run.

Reports print a target as a `bar`.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from benchmarks import (
    cluster,
    fast_path,
    runtime,
    runtime_latency,
    runtime_memory,
    runtime_reconcile,
    start_up,
    work_queue,
)
from benchmarks.buckets import USUAL
from benchmarks.comparison import Timing
from benchmarks.scenarios import Measurement

COOKIE: Final = "cookie"
COOKIE_LIMIT: Final = 129
_STEPS_PER_CPU_SECOND: Final = 20_000
_OPERATOR_FRAMEWORK_RATIO: Final = 40
_PLAN_SECONDS: Final = 1.0
_BARE_GET_RATIO: Final = 1.3
_LISTS_RATIO: Final = 5
_START_SECONDS: Final = 0.5
_BYTES_PER_RESOURCE: Final = 3_000
_PROCESS_BYTES: Final = 400e6


@dataclass(frozen=True, slots=True)
class TargetResult:
    """A target, the measured value, and whether the value meets the target."""

    subject: str
    candidate: str
    target: str
    measured: str
    is_met: bool

    def __str__(self) -> str:
        return f"{self.target}: {self.measured}, {'met' if self.is_met else 'not met'}"


def check_targets(
    timings: Sequence[Timing], measurements: Iterable[Measurement], cookie_bytes: int
) -> tuple[TargetResult, ...]:
    """The result of each target that was measured."""
    on_timings = (result for check in _TIMING_CHECKS for timing in timings for result in check(timing))
    on_measurements = (result for measurement in measurements for result in _check_measurement(measurement))
    return (*on_timings, *_check_operator_frameworks(timings), *on_measurements, _check_cookie(cookie_bytes))


# --- The core and the command -----------------------------------------------------------------------------------------


def _check_fast_path(timing: Timing) -> Iterator[TargetResult]:
    match timing:
        case Timing(fast_path.SUBJECT, "6 KB", fast_path.DEEPDIFF, ratio=ratio):
            yield _ratio_result(timing, "ours ≥ 200 × faster", ratio, is_met=ratio >= 200)
        case Timing(fast_path.SUBJECT, "6 KB", fast_path.FLOOR, ratio=ratio):
            yield _ratio_result(timing, "ours within 3 ×", 1 / ratio, is_met=1 / ratio <= 3)
        case _:
            return


def _check_start_up(timing: Timing) -> Iterator[TargetResult]:
    match timing:
        case Timing(start_up.SUBJECT, _, start_up.INTERPRETER, ratio=ratio):
            yield _ratio_result(timing, "ours < 2 ×", 1 / ratio, is_met=1 / ratio < 2)
        case _:
            return


def _ratio_result(timing: Timing, target: str, ratio: float, *, is_met: bool) -> TargetResult:
    target = f"{target} at {timing.size}" if timing.size else target
    return TargetResult(timing.subject, timing.candidate, target, f"{ratio:.3g} ×", is_met)


def _check_cookie(size: int) -> TargetResult:
    return TargetResult(COOKIE, COOKIE, f"≤ {COOKIE_LIMIT} bytes", f"{size} bytes", size <= COOKIE_LIMIT)


# --- The process ------------------------------------------------------------------------------------------------------


def _check_work_queue(timing: Timing) -> Iterator[TargetResult]:
    if work_queue.has_target(timing):
        target = f"≤ {work_queue.CYCLE_LIMIT / 1e3:g} µs at {timing.size}"
        is_met = timing.nanoseconds <= work_queue.CYCLE_LIMIT
        yield TargetResult(timing.subject, timing.candidate, target, f"{timing.nanoseconds / 1e3:.2f} µs", is_met)


def _check_reconcile(timing: Timing) -> Iterator[TargetResult]:
    match timing:
        case Timing(runtime_reconcile.NO_NETWORK, _, runtime_reconcile.OURS, cost):
            target, rate = f"≥ {_STEPS_PER_CPU_SECOND:,} per CPU-second", 1e9 / cost
            yield TargetResult(timing.subject, timing.candidate, target, f"{rate:,.0f}", rate >= _STEPS_PER_CPU_SECOND)
        case Timing(runtime_reconcile.UNCHANGED, _, runtime_reconcile.BARE, ratio=ratio):
            yield _ratio_result(timing, f"ours ≤ {_BARE_GET_RATIO} ×", 1 / ratio, is_met=1 / ratio <= _BARE_GET_RATIO)
        case Timing(runtime_reconcile.RESYNC, _, runtime_reconcile.BY_GETS, ratio=ratio):
            yield _ratio_result(timing, f"by lists ≥ {_LISTS_RATIO} × less", ratio, is_met=ratio >= _LISTS_RATIO)
        case Timing(runtime_reconcile.PLAN, USUAL.label, runtime_reconcile.PREVIEW, cost):
            seconds = cost * runtime.RESOURCES / 1e9
            target = f"{runtime.RESOURCES:,} in < {_PLAN_SECONDS:g} s at {timing.size}"
            yield TargetResult(timing.subject, timing.candidate, target, f"{seconds:.2f} s", seconds < _PLAN_SECONDS)
        case _:
            return


def _check_operator_frameworks(timings: Iterable[Timing]) -> Iterator[TargetResult]:
    """An operator framework is measured in several ways: its best timing counts."""
    peer_timings = [timing for timing in timings if timing.subject == runtime_reconcile.NO_NETWORK][1:]
    if peer_timings:
        best = min(peer_timings, key=lambda timing: timing.ratio)
        yield _ratio_result(
            best,
            f"ours ≥ {_OPERATOR_FRAMEWORK_RATIO} × faster",
            best.ratio,
            is_met=best.ratio >= _OPERATOR_FRAMEWORK_RATIO,
        )


def _check_measurement(measurement: Measurement) -> Iterator[TargetResult]:
    value = measurement.value
    match (measurement.subject, measurement.name):
        case (runtime_memory.MEMORY, runtime_memory.EACH) | (cluster.MEMORY_EACH, cluster.OURS):
            is_met = value <= _BYTES_PER_RESOURCE
            yield TargetResult(measurement.subject, measurement.name, "≤ 3 KB", f"{value / 1e3:.2f} KB", is_met)
        case (runtime_memory.MEMORY, runtime_memory.ALL):
            yield TargetResult(
                measurement.subject, measurement.name, "< 400 MB", f"{value / 1e6:.0f} MB", value < _PROCESS_BYTES
            )
        case (runtime_latency.COLD_START, runtime_latency.COLD_CPU) | (cluster.START_CPU, cluster.OURS_BEYOND_BARE):
            is_met = value < _START_SECONDS
            yield TargetResult(measurement.subject, measurement.name, "< 0.5 s", f"{value:.2f} s", is_met)
        case _:
            return


_TIMING_CHECKS: Final[tuple[Callable[[Timing], Iterator[TargetResult]], ...]] = (
    _check_fast_path,
    _check_start_up,
    _check_work_queue,
    _check_reconcile,
)
