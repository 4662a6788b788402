"""Faults between a kind and its service: calls are counted, and fail as the services of this world do.

`FaultyClient` stands in front of any client with asynchronous methods: one of ours, psycopg behind a class of its
author, or an SDK. It says for each method what it does (get, create, update, delete), and how the client fails.
"""

import inspect
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field
from enum import StrEnum
from typing import Any, Final, TypeAlias

from setpoint.clients.http import HttpRequest, HttpResponse
from setpoint.clients.scoped_value import ScopedValue
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.errors import RemoteConflict, RemoteError, RemoteRefused, RemoteUnavailable
from setpoint.testing.awaiting import MaybeAwaitable, resolved

# What a call does. "get" is any read.
EVERY_VERB: Final = ("get", "create", "update", "delete")
WRITING_VERBS: Final = ("create", "update", "delete")
# What a method of a client does; None for one that does not reach the service. A function tells it from the arguments.
VerbOf: TypeAlias = str | None | Callable[..., str | None]
FOR_EVER: Final = 10**6


class CallFault(StrEnum):
    """How a call goes wrong."""

    UNAVAILABLE = "503"
    QUOTA = "429"
    CUT = "no answer, and nothing happened"
    LOST = "no answer, and all of it happened"
    REFUSED = "403"
    CONFLICT = "412"


OUTAGES: Final = (CallFault.UNAVAILABLE, CallFault.QUOTA, CallFault.CUT)
# Makes what a client raises, or returns, for a call with this fault.
FailureOf: TypeAlias = Callable[[CallFault, str], object]
_ERRORS: Final[Mapping[CallFault, Callable[[str], RemoteError]]] = {
    CallFault.REFUSED: RemoteRefused,
    CallFault.CONFLICT: RemoteConflict,
}
_STATUSES: Final = {
    CallFault.UNAVAILABLE: 503,
    CallFault.QUOTA: 429,
    CallFault.REFUSED: 403,
    CallFault.CONFLICT: 412,
}
_VERBS_OF_METHODS: Final = {"POST": "create", "PUT": "update", "PATCH": "update", "DELETE": "delete"}


def setpoint_failure(fault: CallFault, call: str) -> Exception:
    """For a client that raises the errors of setpoint."""
    return _ERRORS.get(fault, RemoteUnavailable)(f"{call}: {fault.value}")


def http_failure(fault: CallFault, call: str) -> object:
    """For an `HttpClient`: the response of a service that fails so, or RemoteUnavailable where there is none."""
    status = _STATUSES.get(fault)
    return RemoteUnavailable(f"{call}: {fault.value}") if status is None else HttpResponse(status, {}, b"{}")


def http_verb(request: HttpRequest) -> str:
    """What a request does, by its method: `FaultyClient(HttpClient(), {"send": http_verb}, failure=http_failure)`."""
    return "get" if request.is_read else _VERBS_OF_METHODS.get(request.method, "update")


@dataclass(slots=True)
class _PendingFault:
    fault: CallFault
    verbs: Collection[str]
    times: int


@dataclass(slots=True)
class _KindVerb:
    """A verb of the kind that is under way, and whether one of its writes is on record."""

    verb: str
    is_recorded: bool = False


_kind_verb: Final[ContextVar[_KindVerb | None]] = ContextVar("kind_verb", default=None)


@dataclass(slots=True)
class CallFaults:
    """The calls that were made, and the faults of those to come. It outlives the client: a process may restart.

    All writes during one verb of the kind count as one call of that verb: an update may take several statements. A
    write while the kind observes counts as what it is.
    """

    calls: list[str] = field(default_factory=list)
    _after_write: Callable[[], MaybeAwaitable[None]] | None = None
    _pending: list[_PendingFault] = field(default_factory=list)

    def fail(self, fault: CallFault, verbs: Sequence[str] = EVERY_VERB, times: int = FOR_EVER) -> None:
        """The next calls with these verbs go wrong, so many times."""
        self._pending.append(_PendingFault(fault, verbs, times))

    def override_writes(self, after_write: Callable[[], MaybeAwaitable[None]]) -> None:
        """From now on this is called after each creation and update: the service has it its own way."""
        self._after_write = after_write

    def clear(self) -> None:
        """Ends all faults."""
        self._pending.clear()
        self._after_write = None

    async def through(
        self, verb: str, call: str, work: Callable[[], Awaitable[object]], failure: FailureOf = setpoint_failure
    ) -> object:
        """What `work` returns, once the call is on record; or the failure of the call."""
        verb = self._record(verb)
        fault = next((one for one in self._pending if verb in one.verbs and one.times), None)
        if fault is None:
            return await self._carry_out(verb, work)
        fault.times -= 1
        if fault.fault is CallFault.LOST:
            await self._carry_out(verb, work)
        answer = failure(fault.fault, call)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    async def _carry_out(self, verb: str, work: Callable[[], Awaitable[object]]) -> object:
        answer = await work()
        # After a deletion there is nothing left to have its own way with.
        if verb in ("create", "update") and self._after_write is not None:
            await resolved(self._after_write())
        return answer

    def _record(self, verb: str) -> str:
        under_way = _kind_verb.get()
        if verb not in WRITING_VERBS or under_way is None:
            self.calls.append(verb)
            return verb
        if not under_way.is_recorded:
            under_way.is_recorded = True
            self.calls.append(under_way.verb)
        return under_way.verb


class FaultyClient:
    """Any object with asynchronous methods, whose calls are counted and can be made to fail.

    `verbs` says what each method does: "get", "create", "update", "delete"; None for one that does not reach the
    service; or a function of the arguments that returns one of these. A method that is not listed cannot be called,
    apart from `close` and `aclose`: it would be neither counted nor failed. `failure` makes what this client raises
    for a fault; an answer that is no exception is returned, as an HTTP client returns a response with a status.
    """

    def __init__(
        self,
        inner: Any,
        verbs: Mapping[str, VerbOf],
        faults: CallFaults | None = None,
        *,
        failure: FailureOf = setpoint_failure,
    ) -> None:
        self._inner = inner
        self._verbs = {"close": None, "aclose": None, **verbs}
        self._failure = failure
        self.faults = CallFaults() if faults is None else faults

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if name in self._verbs:
            return self._counted(name, found, self._verbs[name])
        if inspect.iscoroutinefunction(found):
            raise AssertionError(
                f"{type(self._inner).__name__}.{name} is called, and the FaultyClient does not know what it does: add "
                f"{name!r} to its `verbs` as one of {', '.join(EVERY_VERB)}, or as None if it reaches no service"
            )
        return found

    def _counted(self, name: str, found: Callable[..., Any], verb_of: VerbOf) -> Callable[..., Awaitable[Any]]:
        async def call(*arguments: Any, **named: Any) -> object:
            verb = verb_of(*arguments, **named) if callable(verb_of) else verb_of

            async def work() -> object:
                answer: object = await resolved(found(*arguments, **named))
                return answer

            if verb is None:
                return await work()
            return await self.faults.through(verb, f"{verb} ({name})", work, self._failure)

        return call


@contextmanager
def _during(verb: str) -> Iterator[None]:
    with ScopedValue(_kind_verb, _KindVerb(verb)):
        yield


class CountedKind:
    """A kind during whose verbs all writes of a `FaultyClient` count as one: see CallFaults."""

    def __init__(self, kind: Any) -> None:
        self._kind = kind

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._kind, name)
        if name not in WRITING_VERBS:
            return found

        async def counted(*arguments: Any, **named: Any) -> object:
            with _during(name):
                answer: object = await found(*arguments, **named)
                return answer

        return counted
