"""Compares the CPU time per call of several candidates, so that load on the machine slows all of them alike.

Candidates take turns in rounds, in another order each time; the timing of a candidate is that of its best round.
Garbage is collected between batches and not timed; garbage that is collected within a batch is.
"""

import gc
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import repeat
from pathlib import Path
from typing import Final


class WrongResult(Exception):
    """A candidate returned a wrong result: the comparison would be of two different operations."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One implementation of an operation, and a check of its result. A call runs the operation `operations` times."""

    name: str
    call: Callable[[], object]
    is_correct: Callable[[object], bool]
    operations: int = 1


@dataclass(frozen=True, slots=True)
class Comparison:
    """Candidates for one operation on one object. The first is ours; ratios are relative to it.

    `clock` counts nanoseconds of CPU time, by default those of this process. `size` is empty if there is no object.
    """

    subject: str
    size: str
    candidates: tuple[Candidate, ...]
    clock: Callable[[], int] = time.process_time_ns


@dataclass(frozen=True, slots=True)
class Timing:
    """The CPU time of one operation of a candidate, and its ratio to that of the first candidate."""

    subject: str
    size: str
    candidate: str
    nanoseconds: float
    ratio: float


@dataclass(frozen=True, slots=True)
class BenchmarkSettings:
    """How long to measure: rounds of batches, fewer for a candidate that would take longer than `time_limit`.

    `batch` and `time_limit` are nanoseconds. `scale` is the share of the full number of resources, keys or requests.
    If `batch` is 0, every candidate is called twice, to show that it runs, and its timing means nothing.
    The group `growth` has fleets of these `sizes` in place of its own, measures at most so many `replicas` of each, and
    writes its plots to the folder `plots`.
    """

    rounds: int
    batch: int
    time_limit: int
    scale: float = 1.0
    sizes: tuple[int, ...] = ()
    replicas: int = 4
    plots: Path | None = None

    def scaled(self, count: int) -> int:
        """`count` times the scale, but at least 10, or `count` if that is less."""
        return max(min(count, _MIN_COUNT), round(count * self.scale))


_MIN_COUNT: Final = 10
THOROUGH: Final = BenchmarkSettings(rounds=25, batch=4_000_000, time_limit=1_500_000_000)
QUICK: Final = BenchmarkSettings(rounds=1, batch=0, time_limit=0, scale=0.001)
_MIN_ROUNDS: Final = 3


def check_results(comparison: Comparison) -> list[float]:
    """The CPU time of the second call of each candidate, in nanoseconds.

    WrongResult unless both calls return the right result: the first call must not change the result of the second.
    """
    # Peers first: a wrong result is more likely theirs.
    costs = [
        (_checked_call(candidate, comparison), _checked_call(candidate, comparison))[1]
        for candidate in reversed(comparison.candidates)
    ]
    return costs[::-1]


def _checked_call(candidate: Candidate, comparison: Comparison) -> float:
    start = comparison.clock()
    result = candidate.call()
    cost = comparison.clock() - start
    if not candidate.is_correct(result):
        where = f"{comparison.subject}, {comparison.size}".removesuffix(", ") + f": {candidate.name}"
        raise WrongResult(f"{where} answers {str(result)[:200]}, not what it has to")
    return cost


def measure(comparison: Comparison, settings: BenchmarkSettings) -> tuple[Timing, ...]:
    """The timing of each candidate, in their order; WrongResult when one returns a wrong result."""
    calls = check_results(comparison)
    if settings.batch:
        calls = _best_of_rounds(comparison, settings)
    best = [cost / candidate.operations for candidate, cost in zip(comparison.candidates, calls, strict=True)]
    return tuple(
        Timing(comparison.subject, comparison.size, candidate.name, cost, cost / best[0])
        for candidate, cost in zip(comparison.candidates, best, strict=True)
    )


def _best_of_rounds(comparison: Comparison, settings: BenchmarkSettings) -> list[float]:
    """Nanoseconds of CPU time per call of each candidate."""
    gc.collect()
    gc.freeze()
    try:
        return _costs(comparison, settings)
    finally:
        gc.unfreeze()


def _costs(comparison: Comparison, settings: BenchmarkSettings) -> list[float]:
    batches = [_Batch(candidate.call, comparison.clock).sized_for(settings) for candidate in comparison.candidates]
    best = [float("inf")] * len(batches)
    for round_number in range(settings.rounds):
        for index in _rotated(round_number, len(batches)):
            if round_number % batches[index].every == 0:
                best[index] = min(best[index], batches[index].cost())
    return best


def _rotated(round_number: int, count: int) -> Iterator[int]:
    """The indices 0 to `count`, rotated by the number of the round."""
    return ((round_number + offset) % count for offset in range(count))


@dataclass(frozen=True, slots=True)
class _Batch:
    """Calls that are timed together, in every round or in every n-th."""

    call: Callable[[], object]
    clock: Callable[[], int]
    calls: int = 1
    every: int = 1

    def sized_for(self, settings: BenchmarkSettings) -> "_Batch":
        """A batch of about `settings.batch` nanoseconds, at least one call. The call that this times is the warm-up."""
        once = self.cost()
        calls = max(1, round(settings.batch / once))
        rounds = max(_MIN_ROUNDS, int(settings.time_limit / (calls * once)))
        return replace(self, calls=calls, every=max(1, settings.rounds // rounds))

    def cost(self) -> float:
        """Nanoseconds of CPU time per call."""
        gc.collect()
        call = self.call
        start = self.clock()
        for _ in repeat(None, self.calls):
            call()
        return (self.clock() - start) / self.calls
