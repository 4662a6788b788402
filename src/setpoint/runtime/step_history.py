"""What a running process adds to the histories of resources: the requests of each write, drift, and refusals."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field
from time import monotonic
from typing import Final

from setpoint.clients.http import HttpInterceptor, HttpRequest, HttpResponse
from setpoint.clients.scoped_value import ScopedValue
from setpoint.clients.write_guard import is_server_dry_run
from setpoint.core.step_record import short_path
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import Json, JsonObject
from setpoint.core.values.shortening import shorten
from setpoint.engine.history.memory_history import PendingHistory
from setpoint.engine.resource import ResourceRef
from setpoint.engine.step.reports import HistoryEntry, HistoryType, ReportedWrite, StepReporter, StepSubject
from setpoint.errors import RemoteError, SetpointError

_MAX_REQUESTS: Final = 20
_MAX_FIELDS: Final = 50
# The requests of the write that this task sends.
_current: Final[ContextVar[list[Json] | None]] = ContextVar("requests of the current write", default=None)


@dataclass(slots=True)
class HistoryReports:
    """Keeps what steps report for the histories of their resources, and passes it on."""

    behind: StepReporter
    now: Callable[[], str]
    _pending: PendingHistory = field(default_factory=PendingHistory)

    @contextmanager
    def writing(self, writes: Sequence[ReportedWrite]) -> Iterator[None]:
        """See StepReporter."""
        requests = list[Json]()
        with self.behind.writing(writes), ScopedValue(_current, requests):
            try:
                yield
            except BaseException as error:
                # Without its text, which may repeat a secret.
                self._report_writes(writes, requests, type(error).__name__)
                raise
        self._report_writes(writes, requests)

    def _report_writes(self, writes: Sequence[ReportedWrite], requests: Sequence[Json], failure: str = "") -> None:
        for write in writes:
            # Without values: those are in the record of the step.
            changes: list[Json] = [
                {"path": short_path(str(one.path)), "rule": one.rule._value_} for one in write.changes[:_MAX_FIELDS]
            ]
            data: dict[str, Json] = {
                "action": write.action.value,
                "target": write.target,
                "decision": write.decision,
                "changes": changes,
                "requests": list(requests[:_MAX_REQUESTS]),
            }
            if failure:
                data["failure"] = failure
            self._report(write.subject, HistoryType.WRITE, data)

    def drift(self, subject: StepSubject, fields: Sequence[str], *, is_deleted: bool = False) -> None:
        """See StepReporter."""
        if fields or is_deleted:
            data: dict[str, Json] = {"fields": list(map(short_path, fields[:_MAX_FIELDS])), "deleted": is_deleted}
            self._report(subject, HistoryType.DRIFT, data)
        self.behind.drift(subject, fields, is_deleted=is_deleted)

    def refused(self, subject: StepSubject, error: SetpointError) -> None:
        """See StepReporter."""
        data: dict[str, Json] = {"error": type(error).__name__, "message": shorten(str(error))}
        self._report(subject, HistoryType.REFUSED, data)
        self.behind.refused(subject, error)

    def take_history(self, ref: ResourceRef) -> Sequence[HistoryEntry]:
        """See StepReporter."""
        return (*self.behind.take_history(ref), *self._pending.take_history(ref))

    def _report(self, subject: StepSubject, type_: HistoryType, data: JsonObject) -> None:
        entry = HistoryEntry(type_, self.now(), {"trigger": subject.trigger, **data})
        self._pending.report(subject.ref, entry)


@dataclass(slots=True)
class HistoryRequests:
    """An HTTP interceptor that notes the requests of a write: method, path, status and seconds, nothing else."""

    behind: HttpInterceptor | None = None
    _begun: dict[int, float] = field(default_factory=dict)

    def on_request(self, request: HttpRequest) -> HttpResponse | None:
        """See HttpInterceptor."""
        if _requests_of(request) is not None:
            self._begun[id(request)] = monotonic()
        return None if self.behind is None else self.behind.on_request(request)

    def on_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        """See HttpInterceptor."""
        self._note(request, {"status": response.status})
        return response if self.behind is None else self.behind.on_response(request, response)

    def on_error(self, request: HttpRequest, error: RemoteError) -> None:
        """See HttpInterceptor."""
        self._note(request, {"status": None, "error": type(error).__name__})
        if self.behind is not None:
            self.behind.on_error(request, error)

    def _note(self, request: HttpRequest, result: JsonObject) -> None:
        requests, begun = _requests_of(request), self._begun.pop(id(request), None)
        if requests is None or begun is None:
            return
        method, _, path = str(request).partition(" ")
        requests.append({"method": method, "url": path, "seconds": round(monotonic() - begun, 3), **result})


def _requests_of(request: HttpRequest) -> list[Json] | None:
    """Where the requests of this task's write are noted; None for a read, and outside of a write."""
    found = _current.get()
    return None if found is None or request.is_read or is_server_dry_run(request) else found
