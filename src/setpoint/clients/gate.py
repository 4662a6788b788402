"""The way to one service: whoever wants to call takes a turn here, and waits only if there is something to wait for."""

import asyncio
from itertools import count
from math import inf
from types import TracebackType
from typing import Final, Self, assert_never

from setpoint.clients.breaker import Breaker, State
from setpoint.clients.callers import Caller
from setpoint.clients.clock import Alarm, Clock
from setpoint.clients.endings import ABANDONED, UNAVAILABLE, Abandoned, Answered, Ending, Throttled, Unavailable
from setpoint.clients.fair_queue import FairQueue, Share, next_queue
from setpoint.clients.rate import Pace, Rate
from setpoint.errors import RemoteUnavailable

# A longer pause is not waited for here: the caller is told when to come back, and has its hands free until then.
LONGEST_HOLD: Final = 10.0
# The part of the places that those whose last step failed leave to the others: a time-out holds a place for long.
KEPT_FOR_OTHERS: Final = 0.25


class Budget:
    """What one project may use of one quota of a service, and what it has used."""

    __slots__ = ("calls", "gate", "queue", "rate", "seconds_waited", "throttles")

    def __init__(self, gate: "Gate", pace: Pace) -> None:
        self.gate = gate
        self.rate = Rate(pace)
        self.queue: FairQueue[Turn] = FairQueue()
        self.calls = 0
        self.throttles = 0
        self.seconds_waited = 0.0


class Turn:
    """The right to make one call now: `with await gate.turn(budget, caller, what) as turn`.

    Whoever has it says in `ending` how the call ended. Left with RemoteUnavailable it was unavailable, left with
    anything else, or without a word, it was abandoned.
    """

    __slots__ = ("asked_at", "budget", "caller", "ending", "granted", "is_probe", "started", "what")

    def __init__(self, budget: Budget, caller: Caller, what: object, now: float) -> None:
        self.budget = budget
        self.caller = caller
        self.what = what
        self.asked_at = self.started = now
        self.is_probe = False
        self.ending: Ending = ABANDONED
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


class Gate:
    """Gives turns within the rate of each budget and the places of the service, fairly, while the service is there.

    For one event loop at a time. `where` is how the service is called in messages.
    """

    def __init__(self, where: str, places: int, clock: Clock, breaker: Breaker) -> None:
        self.breaker = breaker
        self.in_flight = 0
        self.turned_away = 0
        self._where = where
        self._places = places
        self._places_for_failed = max(int(places * (1 - KEPT_FOR_OTHERS)), 1)
        self._failed_in_flight = 0
        self._clock = clock
        # A dict for its order. Budgets for which somebody waits.
        self._waiting: dict[Budget, None] = {}
        self._share = Share()
        self._tickets = count()
        self._alarm: Alarm | None = None
        self._alarm_at = inf

    async def turn(self, budget: Budget, caller: Caller, what: object) -> Turn:
        """The caller's turn, as soon as it comes; RemoteUnavailable, with the time, when it will not come soon.

        `what` is how the call is named in messages.
        """
        now = self._clock.monotonic()
        turn = Turn(budget, caller, what, now)
        if self.breaker.state is not State.CLOSED:
            self._make_probe(turn, now)
        if not budget.queue and self._has_place(caller) and budget.rate.take(now):
            self._begin(turn, now)
            return turn
        return await self._wait(turn, now)

    def turn_at_once(self, budget: Budget, caller: Caller, what: object) -> Turn:
        """The turn of a call for which waiting is worse than one call too many: what comes of it is learnt from.

        Such calls have to be few, and to have a budget of their own.
        """
        now = self._clock.monotonic()
        turn = Turn(budget, caller, what, now)
        self._begin(turn, now)
        return turn

    def leave(self, turn: Turn) -> None:
        """The turn is over."""
        now = self._clock.monotonic()
        self._free_place(turn)
        self._learn_from(turn, now)
        if self._waiting:
            self._let_in(now)

    # --- Waiting -----------------------------------------------------------------------------------------------------

    async def _wait(self, turn: Turn, now: float) -> Turn:
        pause = turn.budget.rate.pause_left(now)
        if pause > LONGEST_HOLD:
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

    def _give_up(self, turn: Turn) -> None:
        """The caller was cancelled: before its turn came, or after, and before it could know."""
        granted = turn.granted
        if granted is not None and not granted.cancelled() and granted.done() and granted.result() is None:
            turn.budget.rate.give_back()
            turn.budget.calls -= 1
            self.leave(turn)
            return
        self._forget(turn)
        if turn.is_probe:
            self.breaker.probe_given_up()
        self._let_in(self._clock.monotonic())

    def _forget(self, turn: Turn) -> None:
        turn.budget.queue.rotation(failed=turn.caller.failed).remove(turn.caller.key, turn)
        self._forget_if_empty(turn.budget)

    def _forget_if_empty(self, budget: Budget) -> None:
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

    def _begin(self, turn: Turn, now: float) -> None:
        turn.started = now
        turn.budget.calls += 1
        turn.budget.seconds_waited += now - turn.asked_at
        self.in_flight += 1
        if turn.caller.failed:
            self._failed_in_flight += 1

    def _free_place(self, turn: Turn) -> None:
        self.in_flight -= 1
        if turn.caller.failed:
            self._failed_in_flight -= 1

    def _learn_from(self, turn: Turn, now: float) -> None:
        match turn.ending:
            case Answered():
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
                    self.breaker.probe_given_up()
            case _:
                assert_never(turn.ending)

    # --- Turning away ------------------------------------------------------------------------------------------------

    def _make_probe(self, turn: Turn, now: float) -> None:
        seconds = self.breaker.seconds_until_probe(now)
        if seconds > 0.0:
            raise self._is_down(turn, seconds)
        self.breaker.probe()
        turn.is_probe = True

    def _slow_down(self, turn: Turn, now: float, after: float | None) -> None:
        budget = turn.budget
        budget.throttles += 1
        budget.rate.throttled(turn.started, now, after)
        pause = budget.rate.pause_left(now)
        if pause > LONGEST_HOLD:
            for one in self._emptied(budget):
                self._refuse(one, self._asked_to_wait(one, pause))

    def _turn_all_away(self, now: float) -> None:
        seconds = self.breaker.seconds_until_probe(now)
        for budget in list(self._waiting):
            for turn in self._emptied(budget):
                self._refuse(turn, self._is_down(turn, seconds))

    def _emptied(self, budget: Budget) -> list[Turn]:
        self._waiting.pop(budget, None)
        return budget.queue.others.clear() + budget.queue.failed.clear()

    def _refuse(self, turn: Turn, refusal: RemoteUnavailable) -> None:
        if turn.granted is not None and not turn.granted.done():
            turn.granted.set_result(refusal)

    def _asked_to_wait(self, turn: Turn, seconds: float) -> RemoteUnavailable:
        self.turned_away += 1
        if turn.is_probe:
            self.breaker.probe_given_up()
        told = (
            f"{turn.what}: not sent: {self._where} asked for a pause in such calls; it is sent when the pause is over"
        )
        return RemoteUnavailable(told, seconds)

    def _is_down(self, turn: Turn, seconds: float) -> RemoteUnavailable:
        self.turned_away += 1
        told = (
            f"{turn.what}: not sent: {self._where} has not answered any call for a while; "
            "now and then one call is sent to see, and all are when it answers again"
        )
        return RemoteUnavailable(told, seconds)
