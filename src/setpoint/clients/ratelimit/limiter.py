"""Rate limiter of a service: concurrency, the quota budgets of its projects, fair queueing and the circuit breaker."""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from math import inf
from types import TracebackType
from typing import Final, NamedTuple, Self, assert_never

from setpoint.clients.clock import EventLoopClock, MonotonicClock, TimerHandle
from setpoint.clients.ratelimit.circuit_breaker import (
    ABANDONED,
    UNAVAILABLE,
    Abandoned,
    BreakerState,
    CallOutcome,
    CircuitBreaker,
    Responded,
    Throttled,
    Unavailable,
)
from setpoint.clients.ratelimit.fair_queue import Caller, FailedShare, FairQueue, next_queue
from setpoint.clients.ratelimit.token_bucket import AimdSettings, AimdTokenBucket
from setpoint.errors import RemoteUnavailable

# A longer pause is not waited for here: the caller is told when to come back, and has its hands free until then.
MAX_WAIT_SECONDS: Final = 10.0
# The part of the places that those whose last step failed leave to the others: a time-out holds a place for long.
RESERVED_FOR_HEALTHY: Final = 0.25


class QuotaBudget:
    """What one project may use of one quota of a service, and what it has used."""

    __slots__ = ("calls", "gate", "queue", "rate", "seconds_waited", "throttles")

    def __init__(self, gate: "ServiceLimiter", pace: AimdSettings) -> None:
        self.gate = gate
        self.rate = AimdTokenBucket(pace)
        self.queue: FairQueue[CallSlot] = FairQueue()
        self.calls = 0
        self.throttles = 0
        self.seconds_waited = 0.0


class CallSlot:
    """The right to make one call now: `with await gate.turn(budget, caller, what) as turn`.

    Whoever has it says in `ending` how the call ended. Left with RemoteUnavailable it was unavailable, left with
    anything else, or without a word, it was abandoned.
    """

    __slots__ = ("asked_at", "budget", "caller", "ending", "granted", "is_probe", "started", "what")

    def __init__(self, budget: QuotaBudget, caller: Caller, what: object, now: float) -> None:
        self.budget = budget
        self.caller = caller
        self.what = what
        self.asked_at = self.started = now
        self.is_probe = False
        self.ending: CallOutcome = ABANDONED
        # For those that wait: None when the turn has come, or why it will not.
        self.granted: asyncio.Future[RemoteUnavailable | None] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self.ending = UNAVAILABLE if isinstance(error, RemoteUnavailable) else ABANDONED
        self.budget.gate.leave(self)


class ServiceLimiter:
    """Gives turns within the rate of each budget and the places of the service, fairly, while the service is there.

    For one event loop at a time. `where` is how the service is called in messages.
    """

    def __init__(self, where: str, places: int, clock: MonotonicClock, breaker: CircuitBreaker) -> None:
        self.breaker = breaker
        self.in_flight = 0
        self.rejected = 0
        self._where = where
        self._places = places
        self._places_for_failed = max(int(places * (1 - RESERVED_FOR_HEALTHY)), 1)
        self._failed_in_flight = 0
        self._clock = clock
        # A dict for its order. Budgets for which somebody waits.
        self._waiting: dict[QuotaBudget, None] = {}
        self._share = FailedShare()
        self._tickets = count()
        self._alarm: TimerHandle | None = None
        self._alarm_at = inf

    async def turn(self, budget: QuotaBudget, caller: Caller, what: object) -> CallSlot:
        """The caller's turn, as soon as it comes; RemoteUnavailable, with the time, when it will not come soon.

        `what` is how the call is named in messages.
        """
        now = self._clock.monotonic()
        turn = CallSlot(budget, caller, what, now)
        if self.breaker.state is not BreakerState.CLOSED:
            self._make_probe(turn, now)
        if not budget.queue and self._has_place(caller) and budget.rate.take(now):
            self._begin(turn, now)
            return turn
        return await self._wait(turn, now)

    def turn_at_once(self, budget: QuotaBudget, caller: Caller, what: object) -> CallSlot:
        """The turn of a call for which waiting is worse than one call too many: what comes of it is learnt from.

        Such calls have to be few, and to have a budget of their own.
        """
        now = self._clock.monotonic()
        turn = CallSlot(budget, caller, what, now)
        self._begin(turn, now)
        return turn

    def leave(self, turn: CallSlot) -> None:
        """The turn is over."""
        now = self._clock.monotonic()
        self._free_place(turn)
        self._learn_from(turn, now)
        if self._waiting:
            self._let_in(now)

    # --- Waiting -----------------------------------------------------------------------------------------------------

    async def _wait(self, turn: CallSlot, now: float) -> CallSlot:
        pause = turn.budget.rate.pause_left(now)
        if pause > MAX_WAIT_SECONDS:
            raise self._asked_to_wait(turn, pause)
        turn.granted = asyncio.get_running_loop().create_future()
        rotation = turn.budget.queue.rotation(failed=turn.caller.failed)
        rotation.add(turn.caller.key, turn, next(self._tickets))
        self._waiting[turn.budget] = None
        self._let_in(now)
        try:
            refusal = await turn.granted
        except asyncio.CancelledError:
            self._give_up(turn)
            raise
        if refusal is not None:
            raise refusal
        return turn

    def _let_in(self, now: float) -> None:
        """Gives all the turns that can be given now, and sees to it that the next ones are given in time."""
        while self._waiting and self.in_flight < self._places and self._let_one_in(now):
            pass
        self._set_alarm(now)

    def _let_one_in(self, now: float) -> bool:
        free = [budget.queue for budget in self._waiting if budget.rate.seconds_until_free(now) <= 0.0]
        room_for_failed = self._failed_in_flight < self._places_for_failed
        found = next_queue(free, self._share, room_for_failed=room_for_failed)
        if found is None:
            return False
        queue, rotation = found
        turn = rotation.next
        if turn.granted is None or turn.granted.done():
            # Cancelled, and about to notice: the turn is the next one's.
            self._forget(turn)
            return True
        rotation.take(next(self._tickets))
        self._forget_if_empty(turn.budget)
        queue.share.given(failed=turn.caller.failed)
        self._share.given(failed=turn.caller.failed)
        turn.budget.rate.take(now)
        self._begin(turn, now)
        turn.granted.set_result(None)
        return True

    def _give_up(self, turn: CallSlot) -> None:
        """The caller was cancelled: before its turn came, or after, and before it could know."""
        granted = turn.granted
        if granted is not None and not granted.cancelled() and granted.done() and granted.result() is None:
            turn.budget.rate.give_back()
            turn.budget.calls -= 1
            self.leave(turn)
            return
        self._forget(turn)
        if turn.is_probe:
            self.breaker.abandon_probe()
        self._let_in(self._clock.monotonic())

    def _forget(self, turn: CallSlot) -> None:
        turn.budget.queue.rotation(failed=turn.caller.failed).remove(turn.caller.key, turn)
        self._forget_if_empty(turn.budget)

    def _forget_if_empty(self, budget: QuotaBudget) -> None:
        if not budget.queue:
            self._waiting.pop(budget, None)

    def _set_alarm(self, now: float) -> None:
        """Rings when a budget has its next call to give; a free place needs no alarm, somebody leaves it."""
        at = inf
        if self._waiting and self.in_flight < self._places:
            seconds = (budget.rate.seconds_until_free(now) for budget in self._waiting)
            at = now + min((one for one in seconds if one > 0.0), default=inf)
        if self._alarm is not None and (at == inf or at < self._alarm_at):
            self._alarm.cancel()
            self._alarm = None
        if self._alarm is None and at < inf:
            self._alarm, self._alarm_at = self._clock.call_later(at - now, self._ring), at

    def _ring(self) -> None:
        self._alarm = None
        self._let_in(self._clock.monotonic())

    # --- Calls under way ---------------------------------------------------------------------------------------------

    def _has_place(self, caller: Caller) -> bool:
        if caller.failed and self._failed_in_flight >= self._places_for_failed:
            return False
        return self.in_flight < self._places

    def _begin(self, turn: CallSlot, now: float) -> None:
        turn.started = now
        turn.budget.calls += 1
        turn.budget.seconds_waited += now - turn.asked_at
        self.in_flight += 1
        if turn.caller.failed:
            self._failed_in_flight += 1

    def _free_place(self, turn: CallSlot) -> None:
        self.in_flight -= 1
        if turn.caller.failed:
            self._failed_in_flight -= 1

    def _learn_from(self, turn: CallSlot, now: float) -> None:
        match turn.ending:
            case Responded():
                turn.budget.rate.answered(turn.started, now)
                self.breaker.answered(now)
            case Throttled(after):
                self.breaker.answered(now)
                self._slow_down(turn, now, after)
            case Unavailable(after):
                if after is not None:
                    self._slow_down(turn, now, after)
                if self.breaker.unanswered(now, turn.caller.key, is_probe=turn.is_probe):
                    self._turn_all_away(now)
            case Abandoned():
                if turn.is_probe:
                    self.breaker.abandon_probe()
            case _:
                assert_never(turn.ending)

    # --- Turning away ------------------------------------------------------------------------------------------------

    def _make_probe(self, turn: CallSlot, now: float) -> None:
        seconds = self.breaker.seconds_until_probe(now)
        if seconds > 0.0:
            raise self._is_down(turn, seconds)
        self.breaker.probe()
        turn.is_probe = True

    def _slow_down(self, turn: CallSlot, now: float, after: float | None) -> None:
        budget = turn.budget
        budget.throttles += 1
        budget.rate.throttled(turn.started, now, after)
        pause = budget.rate.pause_left(now)
        if pause > MAX_WAIT_SECONDS:
            for one in self._emptied(budget):
                self._refuse(one, self._asked_to_wait(one, pause))

    def _turn_all_away(self, now: float) -> None:
        seconds = self.breaker.seconds_until_probe(now)
        for budget in list(self._waiting):
            for turn in self._emptied(budget):
                self._refuse(turn, self._is_down(turn, seconds))

    def _emptied(self, budget: QuotaBudget) -> list[CallSlot]:
        self._waiting.pop(budget, None)
        return budget.queue.others.clear() + budget.queue.failed.clear()

    def _refuse(self, turn: CallSlot, refusal: RemoteUnavailable) -> None:
        if turn.granted is not None and not turn.granted.done():
            turn.granted.set_result(refusal)

    def _asked_to_wait(self, turn: CallSlot, seconds: float) -> RemoteUnavailable:
        self.rejected += 1
        if turn.is_probe:
            self.breaker.abandon_probe()
        told = (
            f"{turn.what}: not sent: {self._where} asked for a pause in such calls; it is sent when the pause is over"
        )
        return RemoteUnavailable(told, seconds)

    def _is_down(self, turn: CallSlot, seconds: float) -> RemoteUnavailable:
        self.rejected += 1
        told = (
            f"{turn.what}: not sent: {self._where} has not answered any call for a while; "
            "now and then one call is sent to see, and all are when it answers again"
        )
        return RemoteUnavailable(told, seconds)


MAX_IN_FLIGHT: Final = 64


class QuotaKey(NamedTuple):
    """What a call is charged to. `project` is empty when the call does not say whose it is."""

    service: str
    project: str
    quota: str


@dataclass(frozen=True, slots=True)
class BudgetStats:
    """One budget: calls a second it allows now, callers that wait, and what has happened since the start."""

    charge: QuotaKey
    rate: float
    waiting: int
    calls: int
    throttles: int
    seconds_waited: float


@dataclass(frozen=True, slots=True)
class LimiterStats:
    """One service: calls under way, whether it is there, and what has happened since the start."""

    service: str
    in_flight: int
    breaker: BreakerState
    openings: int
    rejected: int


@dataclass(frozen=True, slots=True)
class LimiterSnapshot:
    """All figures at one moment."""

    limiters: tuple[LimiterStats, ...]
    budgets: tuple[BudgetStats, ...]


class QuotaBudgets:
    """Every gate and budget there is, each made by the first call that needs it. For one event loop at a time."""

    def __init__(
        self,
        clock: MonotonicClock | None = None,
        places: int = MAX_IN_FLIGHT,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._clock = clock or EventLoopClock()
        self._places = places
        self._jitter = jitter
        self._gates: dict[str, ServiceLimiter] = {}
        self._budgets: dict[QuotaKey, QuotaBudget] = {}

    def find(self, charge: QuotaKey) -> QuotaBudget | None:
        """The budget for a call; None when it has yet to be made."""
        return self._budgets.get(charge)

    def make(self, charge: QuotaKey, pace: AimdSettings, where: str) -> QuotaBudget:
        """A new budget. `where` is how its service is called in messages."""
        gate = self._gates.get(charge.service)
        if gate is None:
            gate = self._gates[charge.service] = ServiceLimiter(
                where, self._places, self._clock, CircuitBreaker(self._jitter)
            )
        budget = self._budgets[charge] = QuotaBudget(gate, pace)
        return budget

    def snapshot(self) -> LimiterSnapshot:
        """All figures now."""
        return LimiterSnapshot(
            tuple(_limiter_stats(service, gate) for service, gate in self._gates.items()),
            tuple(_budget_stats(charge, budget) for charge, budget in self._budgets.items()),
        )


def _limiter_stats(service: str, gate: ServiceLimiter) -> LimiterStats:
    return LimiterStats(service, gate.in_flight, gate.breaker.state, gate.breaker.openings, gate.rejected)


def _budget_stats(charge: QuotaKey, budget: QuotaBudget) -> BudgetStats:
    rate, waiting = budget.rate.per_second, len(budget.queue)
    return BudgetStats(charge, rate, waiting, budget.calls, budget.throttles, budget.seconds_waited)
