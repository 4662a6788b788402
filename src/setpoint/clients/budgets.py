"""What we allow ourselves to ask of services: for each a gate, and for each project and quota a budget behind it."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

from setpoint.clients.breaker import Breaker, State
from setpoint.clients.clock import Clock, LoopClock
from setpoint.clients.gate import Budget, Gate
from setpoint.clients.rate import Pace

PLACES: Final = 64


class Charge(NamedTuple):
    """What a call is charged to. `project` is empty when the call does not say whose it is."""

    service: str
    project: str
    quota: str


@dataclass(frozen=True, slots=True)
class BudgetFigures:
    """One budget: calls a second it allows now, callers that wait, and what has happened since the start."""

    charge: Charge
    rate: float
    waiting: int
    calls: int
    throttles: int
    seconds_waited: float


@dataclass(frozen=True, slots=True)
class GateFigures:
    """One service: calls under way, whether it is there, and what has happened since the start."""

    service: str
    in_flight: int
    breaker: State
    openings: int
    turned_away: int


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All figures at one moment."""

    gates: tuple[GateFigures, ...]
    budgets: tuple[BudgetFigures, ...]


class Budgets:
    """Every gate and budget there is, each made by the first call that needs it. For one event loop at a time."""

    def __init__(
        self, clock: Clock | None = None, places: int = PLACES, jitter: Callable[[], float] = random.random
    ) -> None:
        self._clock = clock or LoopClock()
        self._places = places
        self._jitter = jitter
        self._gates: dict[str, Gate] = {}
        self._budgets: dict[Charge, Budget] = {}

    def find(self, charge: Charge) -> Budget | None:
        """The budget for a call; None when it has yet to be made."""
        return self._budgets.get(charge)

    def make(self, charge: Charge, pace: Pace, where: str) -> Budget:
        """A new budget. `where` is how its service is called in messages."""
        gate = self._gates.get(charge.service)
        if gate is None:
            gate = self._gates[charge.service] = Gate(where, self._places, self._clock, Breaker(self._jitter))
        budget = self._budgets[charge] = Budget(gate, pace)
        return budget

    def snapshot(self) -> Snapshot:
        """All figures now."""
        return Snapshot(
            tuple(_gate_figures(service, gate) for service, gate in self._gates.items()),
            tuple(_budget_figures(charge, budget) for charge, budget in self._budgets.items()),
        )


def _gate_figures(service: str, gate: Gate) -> GateFigures:
    return GateFigures(service, gate.in_flight, gate.breaker.state, gate.breaker.openings, gate.turned_away)


def _budget_figures(charge: Charge, budget: Budget) -> BudgetFigures:
    rate, waiting = budget.rate.per_second, len(budget.queue)
    return BudgetFigures(charge, rate, waiting, budget.calls, budget.throttles, budget.seconds_waited)
