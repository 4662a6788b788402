"""CPU time per call, measured so that a busy neighbour slows every contestant alike.

Contestants take turns in rounds, in another order each time; the figure is the best round of each. Garbage is
collected between batches, outside the clock; what a contestant throws away within a batch is its own cost.
"""

import gc
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import repeat
from typing import Final


class Disagreement(Exception):
    """A contestant gave another answer than it has to: the comparison would be of two different things."""


@dataclass(frozen=True, slots=True)
class Contestant:
    """One way to do the job, and whether what it returned is the right answer. A call does the job `per` times."""

    name: str
    call: Callable[[], object]
    agrees: Callable[[object], bool]
    per: int = 1


@dataclass(frozen=True, slots=True)
class Contest:
    """Ways to do one job on one object. The first is ours, and the measure of the others.

    `clock` counts nanoseconds of CPU time, those of this process unless told otherwise. Where there is no object, its
    size is empty.
    """

    subject: str
    size: str
    contestants: tuple[Contestant, ...]
    clock: Callable[[], int] = time.process_time_ns


@dataclass(frozen=True, slots=True)
class Figure:
    """What it costs a contestant to do the job once, and how often that is what ours costs."""

    subject: str
    size: str
    contestant: str
    nanoseconds: float
    ratio: float


@dataclass(frozen=True, slots=True)
class Pace:
    """How long to measure: rounds of batches, fewer for a contestant that would take longer than `patience`.

    `share` is how much there is of whatever there should be many of. Without a `batch` every contestant is called
    twice, to see that it runs, and its figure means nothing.
    """

    rounds: int
    batch: int
    patience: int
    share: float = 1.0

    def number(self, whole: int) -> int:
        """So many instead of `whole`; a few at least."""
        return max(min(whole, _FEW), round(whole * self.share))


_FEW: Final = 10
THOROUGH: Final = Pace(rounds=25, batch=4_000_000, patience=1_500_000_000)
QUICK: Final = Pace(rounds=1, batch=0, patience=0, share=0.001)
_FEWEST_ROUNDS: Final = 3


def check_agreement(contest: Contest) -> list[float]:
    """Disagreement unless every contestant gives the right answer, twice: the first call must not spoil the second.

    What the second call of each cost, in nanoseconds of CPU time.
    """
    # Opponents first: it is they that may not agree.
    costs = [(_checked_call(one, contest), _checked_call(one, contest))[1] for one in reversed(contest.contestants)]
    return costs[::-1]


def _checked_call(contestant: Contestant, contest: Contest) -> float:
    start = contest.clock()
    answer = contestant.call()
    cost = contest.clock() - start
    if not contestant.agrees(answer):
        where = f"{contest.subject}, {contest.size}".removesuffix(", ") + f": {contestant.name}"
        raise Disagreement(f"{where} answers {str(answer)[:200]}, not what it has to")
    return cost


def measure(contest: Contest, pace: Pace) -> tuple[Figure, ...]:
    """What the job costs each contestant, in their order; Disagreement when one gives a wrong answer."""
    calls = check_agreement(contest)
    if pace.batch:
        calls = _best_of_rounds(contest, pace)
    best = [cost / contestant.per for contestant, cost in zip(contest.contestants, calls, strict=True)]
    return tuple(
        Figure(contest.subject, contest.size, contestant.name, cost, cost / best[0])
        for contestant, cost in zip(contest.contestants, best, strict=True)
    )


def _best_of_rounds(contest: Contest, pace: Pace) -> list[float]:
    """Nanoseconds of CPU time for a call of each."""
    gc.collect()
    gc.freeze()
    try:
        return _costs(contest, pace)
    finally:
        gc.unfreeze()


def _costs(contest: Contest, pace: Pace) -> list[float]:
    batches = [_Batch(one.call, contest.clock).fitting(pace) for one in contest.contestants]
    best = [float("inf")] * len(batches)
    for number in range(pace.rounds):
        for place in _in_turn(number, len(batches)):
            if number % batches[place].every == 0:
                best[place] = min(best[place], batches[place].cost())
    return best


def _in_turn(number: int, count: int) -> Iterator[int]:
    """The places 0 to `count`, each round beginning one further."""
    return ((number + offset) % count for offset in range(count))


@dataclass(frozen=True, slots=True)
class _Batch:
    """Calls that are timed together, in every round or in each of a few."""

    call: Callable[[], object]
    clock: Callable[[], int]
    calls: int = 1
    every: int = 1

    def fitting(self, pace: Pace) -> "_Batch":
        """A batch about as long as `pace` asks for; one call at least. The call that finds out is the warm-up."""
        once = self.cost()
        calls = max(1, round(pace.batch / once))
        rounds = max(_FEWEST_ROUNDS, int(pace.patience / (calls * once)))
        return replace(self, calls=calls, every=max(1, pace.rounds // rounds))

    def cost(self) -> float:
        """Nanoseconds of CPU time per call."""
        gc.collect()
        call = self.call
        start = self.clock()
        for _ in repeat(None, self.calls):
            call()
        return (self.clock() - start) / self.calls
