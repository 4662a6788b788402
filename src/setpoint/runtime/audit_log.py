"""The audit log: who asked for which write, what was sent, and what came back, as one JSON object a line.

A line is handed to the system before the process goes on: it survives the process, however that ends. A write is on
record before its first request is sent; where it cannot be, nothing is sent.
"""

import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Final

import orjson

from setpoint.clients.http import HttpRequest, HttpResponse
from setpoint.clients.scoped_value import ScopedValue
from setpoint.clients.write_guard import decoded_body, is_server_dry_run
from setpoint.core.diff import FieldChange
from setpoint.core.redaction import redact_untyped
from setpoint.core.secret_fields import NO_TYPES
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import Json, Missing
from setpoint.engine.resource import ResourceRef
from setpoint.engine.step.reports import HistoryEntry, ReportedWrite, StepReporter, StepSubject
from setpoint.errors import RemoteError, SetpointError, StoreError, UserError
from setpoint.file_creation import PRIVATE_MODE

_log: Final = logging.getLogger(__name__)
STANDARD_OUTPUT: Final = "-"
# A longer value is given by its size and digest.
_MAX_VALUE_BYTES: Final = 2_048
_MAX_BODY_BYTES: Final = 32_768
_MAX_FIELDS: Final = 200
_APPEND: Final = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
# The writes that the requests of this task belong to.
_current_write: Final[ContextVar[str | None]] = ContextVar("current_write", default=None)


class AuditLog:
    """A file to which lines are appended. One that is renamed or removed, as logs are rotated, is made anew."""

    def __init__(self, path: str, now: Callable[[], str]) -> None:
        self._path = path
        self._now = now
        try:
            self._descriptor = self._opened()
        except OSError as error:
            raise UserError(
                f"--audit {path}: {error.strerror}: name a file in a folder that exists and may be written to"
            ) from error

    def append(self, event: str, members: Mapping[str, Json]) -> None:
        """Appends a line; OSError when that cannot be done."""
        line = orjson.dumps({"time": self._now(), "event": event, **members}) + b"\n"
        if self._path != STANDARD_OUTPUT and self._is_rotated():
            os.close(self._descriptor)
            self._descriptor = self._opened()
        while line:
            line = line[os.write(self._descriptor, line) :]

    def close(self) -> None:
        """Closes the file."""
        os.close(self._descriptor)

    def _opened(self) -> int:
        if self._path == STANDARD_OUTPUT:
            return os.dup(1)
        descriptor = os.open(self._path, _APPEND, PRIVATE_MODE)
        if not _ends_with_line(self._path):
            # A power failure cut the last line off: the next one begins on a line of its own.
            os.write(descriptor, b"\n")
        return descriptor

    def _is_rotated(self) -> bool:
        try:
            return not os.path.samestat(os.stat(self._path), os.fstat(self._descriptor))
        except FileNotFoundError:
            return True


def _ends_with_line(path: str) -> bool:
    file_path = Path(path)
    if not file_path.is_file():
        return True
    with file_path.open("rb") as file:
        if file.seek(0, os.SEEK_END) == 0:
            return True
        file.seek(-1, os.SEEK_END)
        return file.read() == b"\n"


@dataclass(slots=True)
class AuditedSteps:
    """Records what steps report, and passes it on. `name` tells the writes of one process from those of another."""

    log: AuditLog
    behind: StepReporter
    name: str
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))

    @contextmanager
    def writing(self, writes: Sequence[ReportedWrite]) -> Iterator[None]:
        """See StepReporter. StoreError when it cannot be put on record: then nothing is sent."""
        identity = f"{self.name}/{next(self._numbers)}"
        self._record_before(identity, writes)
        with self.behind.writing(writes), ScopedValue(_current_write, identity):
            try:
                yield
            except BaseException as error:
                # Without its text, which may repeat a secret: a refusal follows, with what may be shown of it.
                append_after(self.log, "failed", {"write": identity, "error": type(error).__name__})
                raise
        append_after(self.log, "written", {"write": identity})

    def _record_before(self, identity: str, writes: Sequence[ReportedWrite]) -> None:
        try:
            for write in writes:
                self.log.append("write", {"write": identity, **_write_data(write)})
        except OSError as error:
            raise StoreError(
                f"the audit log cannot be written: {error.strerror}: nothing is sent until it can be"
            ) from error

    def drift(self, subject: StepSubject, fields: Sequence[str], *, is_deleted: bool = False) -> None:
        """See StepReporter."""
        if fields or is_deleted:
            data: dict[str, Json] = {"fields": list(fields[:_MAX_FIELDS]), "deleted": is_deleted}
            append_after(self.log, "drift", {**_subject_data(subject), **data})
        self.behind.drift(subject, fields, is_deleted=is_deleted)

    def refused(self, subject: StepSubject, error: SetpointError) -> None:
        """See StepReporter."""
        data: dict[str, Json] = {"error": type(error).__name__, "message": str(error)}
        append_after(self.log, "refused", {**_subject_data(subject), **data})
        self.behind.refused(subject, error)

    def take_history(self, ref: ResourceRef) -> Sequence[HistoryEntry]:
        """See StepReporter."""
        return self.behind.take_history(ref)


@dataclass(frozen=True, slots=True)
class AuditedRequests:
    """An HTTP interceptor that records the requests of a write, and what came back. `service` names the client."""

    service: str
    log: AuditLog

    def on_request(self, request: HttpRequest) -> HttpResponse | None:
        """See HttpInterceptor."""
        write = _write_of(request)
        if write is not None:
            body = _shortened(_redacted(decoded_body(request.body)), _MAX_BODY_BYTES)
            append_after(
                self.log, "request", {"write": write, "service": self.service, "request": str(request), "body": body}
            )
        return None

    def on_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        """See HttpInterceptor."""
        write = _write_of(request)
        if write is not None:
            append_after(self.log, "response", {"write": write, "request": str(request), "status": response.status})
        return response

    def on_error(self, request: HttpRequest, error: RemoteError) -> None:
        """See HttpInterceptor."""
        write = _write_of(request)
        if write is not None:
            append_after(self.log, "response", {"write": write, "request": str(request), "error": type(error).__name__})


def append_after(log: AuditLog, event: str, members: Mapping[str, Json]) -> None:
    """Appends what cannot be undone: an audit log that cannot be written is an error in the log of the process."""
    try:
        log.append(event, members)
    except OSError as error:
        _log.error("audit log cannot be written", extra={"why": error.strerror, "lost": event})


def _write_of(request: HttpRequest) -> str | None:
    """The write that a request belongs to; None for a read, a dry run, and for requests outside of writes."""
    write = _current_write.get()
    return None if write is None or request.is_read or is_server_dry_run(request) else write


def _write_data(write: ReportedWrite) -> dict[str, Json]:
    return {
        **_subject_data(write.subject),
        "action": write.action.value,
        "target": write.target,
        "why": write.decision,
        "fields": [_change_data(change) for change in write.changes[:_MAX_FIELDS]],
        "fieldCount": len(write.changes),
    }


def _subject_data(subject: StepSubject) -> dict[str, Json]:
    ref = subject.ref
    resource: dict[str, Json] = {"group": ref.group, "kind": ref.kind, "namespace": ref.namespace, "name": ref.name}
    source: dict[str, Json] = {"source": subject.source} if subject.source else {}
    return {"resource": resource, "generation": subject.generation, "askedBy": subject.trigger, **source}


def _change_data(change: FieldChange) -> Json:
    sides = (("before", change.before), ("after", change.after))
    shown = {name: _shortened(side, _MAX_VALUE_BYTES) for name, side in sides if not isinstance(side, Missing)}
    return {"path": str(change.path), "rule": change.rule.value, **shown}


def _redacted(body: Json) -> Json:
    return redact_untyped(NO_TYPES.redacted(body) if isinstance(body, Mapping) else body)


def _shortened(value: Json, longest: int) -> Json:
    try:
        encoded = orjson.dumps(value)
    except TypeError:
        # A number or a text that is not for every JSON reader.
        encoded = repr(value).encode(errors="replace")
        value = encoded.decode()
    return value if len(encoded) <= longest else {"bytes": len(encoded), "sha256": sha256(encoded).hexdigest()}
