"""A service behind a rate limiter, which records its calls."""

import asyncio
from collections import defaultdict
from dataclasses import dataclass, field

from setpoint.clients.clock import MonotonicClock
from setpoint.clients.ratelimit.circuit_breaker import RESPONDED, BreakerState, CallOutcome, Throttled, Unavailable
from setpoint.clients.ratelimit.fair_queue import Caller
from setpoint.clients.ratelimit.limiter import QuotaBudget, QuotaBudgets, QuotaKey
from setpoint.clients.ratelimit.token_bucket import AimdSettings

FAST = AimdSettings(start=1000, burst=1000, ceiling=1000, growth=1)
ONE_A_SECOND = AimdSettings(start=1, burst=1, ceiling=1, growth=1)


@dataclass
class LimitedService:
    """A service behind a rate limiter, with the calls that it received."""

    settings: AimdSettings = FAST
    max_in_flight: int = 64
    clock: MonotonicClock | None = None
    started: list[Caller] = field(default_factory=list)
    # By project: when calls began, and the pauses that the service asked for, from and until.
    times: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    pauses: defaultdict[str, list[tuple[float, float]]] = field(default_factory=lambda: defaultdict(list))
    in_flight: int = 0
    max_concurrent: int = 0

    def __post_init__(self) -> None:
        self.budgets = QuotaBudgets(self.clock, self.max_in_flight, jitter=lambda: 1.0)

    def budget(self, project: str = "p") -> QuotaBudget:
        key = QuotaKey("sql", project, "reads")
        return self.budgets.find(key) or self.budgets.make(key, self.settings, "https://sql.test")

    async def call(
        self, caller: Caller, seconds: float = 0.0, outcome: CallOutcome | Exception = RESPONDED, project: str = "p"
    ) -> None:
        budget = self.budget(project)
        with await budget.limiter.acquire(budget, caller, "GET /x") as slot:
            self.started.append(caller)
            self.times[project].append(asyncio.get_running_loop().time())
            self.in_flight += 1
            self.max_concurrent = max(self.max_concurrent, self.in_flight)
            try:
                await asyncio.sleep(seconds)
            finally:
                self.in_flight -= 1
            if isinstance(outcome, Exception):
                raise outcome
            if isinstance(outcome, Throttled | Unavailable):
                now = asyncio.get_running_loop().time()
                self.pauses[project].append((now, now + (outcome.after or 0.0)))
            slot.outcome = outcome

    @property
    def waiting(self) -> int:
        return sum(one.waiting for one in self.budgets.snapshot().budgets)

    @property
    def breaker(self) -> BreakerState:
        return self.budgets.snapshot().limiters[0].breaker
