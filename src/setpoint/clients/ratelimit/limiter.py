"""Rate limiter of a service: concurrency, the quota budgets of its projects, fair queueing and the circuit breaker."""

import asyncio
import random
from collections.abc import Callable, Iterator
from itertools import count
from math import inf
from types import TracebackType
from typing import Final, NamedTuple, Self, assert_never
from weakref import WeakValueDictionary

from setpoint.clients.clock import EventLoopClock, MonotonicClock, TimerHandle
from setpoint.clients.ratelimit.circuit_breaker import (
    ABANDONED,
    CLOSED,
    UNAVAILABLE,
    Abandoned,
    BreakerState,
    CallOutcome,
    CircuitBreaker,
    Responded,
    Throttled,
    Unavailable,
)
from setpoint.clients.ratelimit.fair_queue import Caller, ConcurrencyLimit, FailedShare, FairQueue, next_queue
from setpoint.clients.ratelimit.token_bucket import AimdSettings, AimdTokenBucket
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.errors import RemoteUnavailable

MAX_IN_FLIGHT: Final = 64
# A caller does not wait here for a longer pause: the error says when to retry, and its worker is free until then.
MAX_WAIT_SECONDS: Final = 10.0
# So many budgets are kept: tenants decide how many projects and clusters there are. Each takes a few kilobytes.
MAX_BUDGETS: Final = 1000


class QuotaBudget:
    """The calls of one project that count against one quota of a service: their rate, their queue, their figures."""

    __slots__ = ("_uses", "calls", "last_use", "limiter", "queue", "rate", "seconds_waited", "throttles")

    def __init__(self, limiter: "ServiceLimiter", settings: AimdSettings, uses: Iterator[int]) -> None:
        self.limiter = limiter
        self.rate = AimdTokenBucket(settings)
        self.queue: FairQueue[CallSlot] = FairQueue()
        self.calls = 0
        self.throttles = 0
        self.seconds_waited = 0.0
        # Calls of all budgets are numbered: the lowest last use is the one longest ago.
        self._uses, self.last_use = uses, next(uses)

    def begin(self, seconds_waited: float) -> None:
        """Counts a call that begins after so long a wait."""
        self.calls += 1
        self.seconds_waited += seconds_waited
        self.last_use = next(self._uses)


class CallSlot:
    """Permission for one call now: `with await limiter.acquire(budget, caller, what) as slot`.

    The holder sets `outcome`. A slot left with RemoteUnavailable has the outcome unavailable; left with any other
    error, or without an outcome, abandoned.
    """

    __slots__ = ("budget", "caller", "granted", "is_probe", "outcome", "requested_at", "started", "what")

    def __init__(self, budget: QuotaBudget, caller: Caller, what: object, now: float) -> None:
        self.budget = budget
        self.caller = caller
        self.what = what
        self.requested_at = self.started = now
        self.is_probe = False
        self.outcome: CallOutcome = ABANDONED
        # Set while the caller waits: the result is None once the call may be made, or the error why it may not.
        self.granted: asyncio.Future[RemoteUnavailable | None] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self.outcome = UNAVAILABLE if isinstance(error, RemoteUnavailable) else ABANDONED
        self.budget.limiter.release(self)


class ServiceLimiter:
    """Grants call slots within the rate of each budget and the concurrency of the service, fairly, while it is up.

    For one event loop at a time. `where` names the service in messages.
    """

    def __init__(self, where: str, max_in_flight: int, clock: MonotonicClock, breaker: CircuitBreaker) -> None:
        self.breaker = breaker
        self.rejected = 0
        self._where = where
        self._in_flight = ConcurrencyLimit(max_in_flight)
        self._clock = clock
        # Budgets with waiting callers; a dict for its order.
        self._waiting: dict[QuotaBudget, None] = {}
        self._share = FailedShare()
        self._tickets = count()
        self._timer: TimerHandle | None = None
        self._timer_at = inf

    @property
    def in_flight(self) -> int:
        """How many calls are in flight."""
        return self._in_flight.in_use

    async def acquire(self, budget: QuotaBudget, caller: Caller, what: object) -> CallSlot:
        """A slot as soon as one is free; RemoteUnavailable, with the time to retry, when that will not be soon.

        `what` names the call in messages.
        """
        slot = CallSlot(budget, caller, what, now := self._clock.monotonic())
        if self.breaker.state is not CLOSED:
            self._begin_probe(slot, now)
        is_first = not self._waiting or not budget.queue
        if is_first and self._in_flight.has_room(failed=caller.failed) and budget.rate.take(now):
            self._begin(slot, now)
            return slot
        return await self._wait(slot, now)

    def acquire_now(self, budget: QuotaBudget, caller: Caller, what: object) -> CallSlot:
        """A slot past all limits, for calls that must not wait, such as lease renewals. Their outcomes count.

        Such calls have to be few, and to have a budget of their own.
        """
        now = self._clock.monotonic()
        slot = CallSlot(budget, caller, what, now)
        self._begin(slot, now)
        return slot

    def release(self, slot: CallSlot) -> None:
        """The call has ended."""
        now = self._clock.monotonic()
        self._in_flight.end(failed=slot.caller.failed)
        self._learn_from(slot, now)
        if self._waiting:
            self._grant_all(now)

    # --- Waiting ------------------------------------------------------------------------------------------------------

    async def _wait(self, slot: CallSlot, now: float) -> CallSlot:
        pause = slot.budget.rate.pause_left(now)
        if pause > MAX_WAIT_SECONDS:
            raise self._pause_error(slot, pause)
        slot.granted = asyncio.get_running_loop().create_future()
        callers = slot.budget.queue.callers(failed=slot.caller.failed)
        callers.add(slot.caller.key, slot, next(self._tickets))
        self._waiting[slot.budget] = None
        self._grant_all(now)
        try:
            rejection = await slot.granted
        except asyncio.CancelledError:
            self._cancelled(slot)
            raise
        if rejection is not None:
            raise rejection
        return slot

    def _grant_all(self, now: float) -> None:
        """Grants every slot that can be granted now, and sets the timer for the next one."""
        while self._waiting and not self._in_flight.is_full and self._grant_one(now):
            pass
        self._set_timer(now)

    def _grant_one(self, now: float) -> bool:
        ready = [budget.queue for budget in self._waiting if budget.rate.seconds_until_token(now) <= 0.0]
        found = next_queue(ready, self._share, room_for_failed=self._in_flight.has_room_for_failed)
        if found is None:
            return False
        queue, callers = found
        slot = callers.next
        if slot.granted is None or slot.granted.done():
            # The caller was cancelled and has not run since: the slot goes to the next one.
            self._dequeue(slot)
            return True
        callers.take(next(self._tickets))
        self._forget_if_empty(slot.budget)
        queue.share.served(failed=slot.caller.failed)
        self._share.served(failed=slot.caller.failed)
        slot.budget.rate.take(now)
        self._begin(slot, now)
        slot.granted.set_result(None)
        return True

    def _cancelled(self, slot: CallSlot) -> None:
        """The caller was cancelled while it waited, or after its slot was granted and before it ran again."""
        granted = slot.granted
        if granted is not None and not granted.cancelled() and granted.done() and granted.result() is None:
            slot.budget.rate.give_back()
            slot.budget.calls -= 1
            self.release(slot)
            return
        self._dequeue(slot)
        if slot.is_probe:
            self.breaker.abandon_probe()
        self._grant_all(self._clock.monotonic())

    def _dequeue(self, slot: CallSlot) -> None:
        slot.budget.queue.callers(failed=slot.caller.failed).remove(slot.caller.key, slot)
        self._forget_if_empty(slot.budget)

    def _forget_if_empty(self, budget: QuotaBudget) -> None:
        if not budget.queue:
            self._waiting.pop(budget, None)

    def _set_timer(self, now: float) -> None:
        """For the next token of a budget. Without room for a call none is needed: a call that ends grants the next."""
        at = inf
        if self._waiting and not self._in_flight.is_full:
            seconds = (budget.rate.seconds_until_token(now) for budget in self._waiting)
            at = now + min((one for one in seconds if one > 0.0), default=inf)
        if self._timer is not None and (at == inf or at < self._timer_at):
            self._timer.cancel()
            self._timer = None
        if self._timer is None and at < inf:
            self._timer, self._timer_at = self._clock.call_later(at - now, self._on_timer), at

    def _on_timer(self) -> None:
        self._timer = None
        self._grant_all(self._clock.monotonic())

    # --- Calls in flight ----------------------------------------------------------------------------------------------

    def _begin(self, slot: CallSlot, now: float) -> None:
        slot.started = now
        slot.budget.begin(now - slot.requested_at)
        self._in_flight.begin(failed=slot.caller.failed)

    def _begin_probe(self, slot: CallSlot, now: float) -> None:
        seconds = self.breaker.seconds_until_probe(now)
        if seconds > 0.0:
            raise self._outage_error(slot, seconds)
        self.breaker.begin_probe()
        slot.is_probe = True

    def _learn_from(self, slot: CallSlot, now: float) -> None:
        match slot.outcome:
            case Responded():
                slot.budget.rate.succeeded(slot.started, now)
                self.breaker.responded(now)
            case Throttled(after):
                self.breaker.responded(now)
                self._slow_down(slot, now, after)
            case Unavailable(after):
                if after is not None:
                    self._slow_down(slot, now, after)
                if self.breaker.unanswered(now, slot.caller.key, is_probe=slot.is_probe):
                    self._reject_all(now)
            case Abandoned():
                if slot.is_probe:
                    self.breaker.abandon_probe()
            case _:
                assert_never(slot.outcome)

    def _slow_down(self, slot: CallSlot, now: float, after: float | None) -> None:
        budget = slot.budget
        budget.throttles += 1
        budget.rate.throttled(slot.started, now, after)
        pause = budget.rate.pause_left(now)
        if pause > MAX_WAIT_SECONDS:
            for one in self._emptied(budget):
                self._reject(one, self._pause_error(one, pause))

    # --- Rejecting ----------------------------------------------------------------------------------------------------

    def _reject_all(self, now: float) -> None:
        seconds = self.breaker.seconds_until_probe(now)
        for budget in list(self._waiting):
            for slot in self._emptied(budget):
                self._reject(slot, self._outage_error(slot, seconds))

    def _emptied(self, budget: QuotaBudget) -> list[CallSlot]:
        self._waiting.pop(budget, None)
        return budget.queue.clear()

    def _reject(self, slot: CallSlot, error: RemoteUnavailable) -> None:
        if slot.granted is not None and not slot.granted.done():
            slot.granted.set_result(error)

    def _pause_error(self, slot: CallSlot, seconds: float) -> RemoteUnavailable:
        self.rejected += 1
        if slot.is_probe:
            self.breaker.abandon_probe()
        message = (
            f"{slot.what}: not sent: {self._where} asked for a pause in such calls; it is sent when the pause is over"
        )
        return RemoteUnavailable(message, seconds)

    def _outage_error(self, slot: CallSlot, seconds: float) -> RemoteUnavailable:
        self.rejected += 1
        message = (
            f"{slot.what}: not sent: {self._where} has not answered any call for a while; "
            "now and then one call is sent to see, and all are when it answers again"
        )
        return RemoteUnavailable(message, seconds)


# --- All limiters of a process ----------------------------------------------------------------------------------------


class QuotaKey(NamedTuple):
    """What a call counts against. `project` is empty when the call does not name one.

    Budgets of one `service` share a limiter: concurrency, turns, breaker. What is called for a tenant, or at an address
    that a tenant named, is a service of its own: its answers stop that tenant alone.
    """

    service: str
    project: str
    quota: str


@dataclass(frozen=True, slots=True)
class BudgetStats:
    """One budget: calls a second that it allows now, callers that wait, and totals since the start."""

    key: QuotaKey
    rate: float
    waiting: int
    calls: int
    throttles: int
    seconds_waited: float


@dataclass(frozen=True, slots=True)
class LimiterStats:
    """One service: calls in flight, the state of its breaker, and totals since the start."""

    service: str
    in_flight: int
    breaker: BreakerState
    openings: int
    rejected: int


@dataclass(frozen=True, slots=True)
class LimiterSnapshot:
    """The figures of all limiters and budgets at one moment."""

    limiters: tuple[LimiterStats, ...]
    budgets: tuple[BudgetStats, ...]


class QuotaBudgets:
    """The limiters of all services and the budgets of all quotas, made on first use. For one event loop at a time.

    Beyond `MAX_BUDGETS` the one that is idle for longest is forgotten. A client that holds it goes on with it.
    """

    def __init__(
        self,
        clock: MonotonicClock | None = None,
        max_in_flight: int = MAX_IN_FLIGHT,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._clock = clock or EventLoopClock()
        self._max_in_flight = max_in_flight
        self._jitter = jitter
        # Kept by their budgets.
        self._limiters: WeakValueDictionary[str, ServiceLimiter] = WeakValueDictionary()
        self._budgets: dict[QuotaKey, QuotaBudget] = {}
        self._uses = count()

    def find(self, key: QuotaKey) -> QuotaBudget | None:
        """The budget of a quota; None when it has not been made yet."""
        return self._budgets.get(key)

    def make(self, key: QuotaKey, settings: AimdSettings, where: str) -> QuotaBudget:
        """A new budget. `where` names its service in messages."""
        limiter = self._limiters.get(key.service)
        if limiter is None:
            limiter = ServiceLimiter(where, self._max_in_flight, self._clock, CircuitBreaker(self._jitter))
            self._limiters[key.service] = limiter
        if len(self._budgets) >= MAX_BUDGETS:
            del self._budgets[min(self._budgets, key=lambda one: self._budgets[one].last_use)]
        budget = self._budgets[key] = QuotaBudget(limiter, settings, self._uses)
        return budget

    def snapshot(self) -> LimiterSnapshot:
        """All figures now."""
        return LimiterSnapshot(
            tuple(_limiter_stats(service, limiter) for service, limiter in self._limiters.items()),
            tuple(_budget_stats(key, budget) for key, budget in self._budgets.items()),
        )


def _limiter_stats(service: str, limiter: ServiceLimiter) -> LimiterStats:
    breaker = limiter.breaker
    return LimiterStats(service, limiter.in_flight, breaker.state, breaker.openings, limiter.rejected)


def _budget_stats(key: QuotaKey, budget: QuotaBudget) -> BudgetStats:
    rate, waiting = budget.rate.per_second, len(budget.queue)
    return BudgetStats(key, rate, waiting, budget.calls, budget.throttles, budget.seconds_waited)
