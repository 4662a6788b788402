"""Reads that are sent again when a service is unavailable for the moment: for commands that ask once, and then end.

A step that fails is taken again after a backoff. A plan and an import have no second step: one response of 503, or a
quota that is used up for a second, would be their result.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Final

from setpoint.clients.foreign_errors import ConnectionEnded
from setpoint.clients.http import HttpRequest, HttpResponse, ReadRetrier, reads_retried_by
from setpoint.clients.ratelimit.circuit_breaker import CallOutcome, Throttled, Unavailable
from setpoint.clients.scoped_value import ScopedValue
from setpoint.core.backoff import Backoff
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.errors import RemoteUnavailable

FIRST_DELAY, LONGEST_DELAY = 0.25, 8.0
# How often a read is sent at most. A service that asks for fewer calls is up: it is waited for longer.
MOST_SENT: Final = 5
MOST_SENT_WHEN_THROTTLED: Final = 10
# A service that asks for a longer pause than this is not waited for.
LONGEST_PAUSE: Final = 30.0


@dataclass(slots=True)
class ReadRetries:
    """The retries of one command.

    Once a read was sent in vain until the end, others are sent once each: a service that is down is waited for once,
    and not for each of its objects. The next read that succeeds after all changes that again.
    """

    jitter: Callable[[], float] = random.random
    _has_given_up: bool = False

    async def send(
        self,
        send: Callable[[HttpRequest], Awaitable[HttpResponse]],
        request: HttpRequest,
        outcome_of: Callable[[HttpResponse], CallOutcome],
    ) -> HttpResponse:
        """The response to a read; the last one, or the last error, when the service stays unavailable."""
        backoff, is_throttled = Backoff(FIRST_DELAY, LONGEST_DELAY, self.jitter), False
        while True:
            response = error = None
            try:
                response = await send(request)
            except RemoteUnavailable as raised:
                after, is_passing, error = raised.after, _is_passing(raised), raised
            else:
                after, is_passing, is_throttled = _reading_of(outcome_of(response))
            if is_passing and self._may_repeat(backoff.failures + 1, after, is_throttled=is_throttled):
                await asyncio.sleep(backoff.next(after))
                _is_repeated.set(True)
                continue
            _is_repeated.set(False)
            if is_passing or backoff.failures:
                self._has_given_up = is_passing
            if error is not None:
                raise error
            assert response is not None
            return response

    def _may_repeat(self, sent: int, after: float | None, *, is_throttled: bool) -> bool:
        most = MOST_SENT_WHEN_THROTTLED if is_throttled else MOST_SENT
        return not self._has_given_up and sent < most and (after or 0.0) <= LONGEST_PAUSE


def _is_passing(error: RemoteUnavailable) -> bool:
    """Whether a pause has an end that is known, or a connection broke.

    Where none can be opened, or there is no answer for as long as a request may take, asking again does not help soon.
    """
    return error.after is not None or isinstance(error.__cause__, ConnectionEnded | ConnectionResetError)


def _reading_of(outcome: CallOutcome) -> tuple[float | None, bool, bool]:
    """The pause that a service asks for; whether it is unavailable for the moment; whether it asks for fewer calls."""
    match outcome:
        case Throttled(after):
            return after, True, True
        case Unavailable(after):
            return after, True, False
        case _:
            return None, False, False


_is_repeated: Final[ContextVar[bool]] = ContextVar("is_repeated", default=False)


def reads_retried() -> ScopedValue[ReadRetrier | None]:
    """Retries of the reads of this task, and of those it starts."""
    return reads_retried_by(ReadRetries())


def is_repeated() -> bool:
    """Whether the request that this task sends was answered before, by a service that was unavailable."""
    return _is_repeated.get()
