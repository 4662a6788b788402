"""All services in one process, without a network: a request in, a response out; and their state in a JSON file."""

import os
import re
import tempfile
from collections.abc import Mapping
from dataclasses import field, replace
from datetime import datetime
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl, urlsplit

import msgspec

from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.errors import UserError
from setpoint.localcloud import api_errors, api_methods, control
from setpoint.localcloud.api_errors import CloudApiError
from setpoint.localcloud.clock import CloudClock, timestamp
from setpoint.localcloud.faults import AddLatency, DropConnection, FailRequest, Fault, Faults, FaultTiming
from setpoint.localcloud.google.operations import CatalogueState, finish_due
from setpoint.localcloud.google.reads import CatalogueServices
from setpoint.localcloud.google.service import answer_google, edit_catalogue_object, waiting_seconds
from setpoint.localcloud.journal import RecordedRequest, RequestJournal
from setpoint.localcloud.live_edits import edit_bucket, edit_sql
from setpoint.localcloud.routing import ServiceCall, ServiceResponse
from setpoint.localcloud.schema import JsonBody
from setpoint.localcloud.sql.operations import CloudSql, OperationTiming, SqlState, finish_due_operations
from setpoint.localcloud.sql.rules import engine_of
from setpoint.localcloud.sql.users import default_host, find_user, password_matches
from setpoint.localcloud.storage.buckets import CloudStorage, StorageState

_FORMAT: Final = 1


class CloudState(msgspec.Struct):
    """The state of all services, and when it was saved."""

    sql: SqlState = msgspec.field(default_factory=SqlState)
    storage: StorageState = msgspec.field(default_factory=StorageState)
    google: CatalogueState = msgspec.field(default_factory=CatalogueState)
    saved_at: datetime | None = None
    format: int = _FORMAT


def load_state(file: Path) -> CloudState:
    """The state in the file; an empty one when there is no file."""
    if not file.exists():
        return CloudState()
    try:
        state = msgspec.json.decode(file.read_bytes(), type=CloudState)
    except msgspec.DecodeError as error:
        raise UserError(
            f"{file} is not a state of the local cloud ({error}): remove it, or name another file"
        ) from error
    if state.format != _FORMAT:
        raise UserError(f"{file} is of format {state.format}, this is {_FORMAT}: remove it, or name another file")
    return state


def save_state(file: Path, state: CloudState) -> None:
    """Replaces the file atomically: a reader sees the old state or the new one. UserError when it cannot be written."""
    try:
        _replace_state(file, state)
    except OSError as error:
        raise UserError(f"{file}: {error.strerror}: name a file in a folder that you can write to") from error


def _replace_state(file: Path, state: CloudState) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(msgspec.json.encode(state))
        Path(name).replace(file)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


_SQL: Final = "/sql/v1beta4"
# Google's own clients leave the prefix out when they talk to an emulator.
_STORAGE: Final = re.compile(r"(?:(/upload)(?:/storage/v1)?|/storage/v1)?(/b(?:/.*)?)")
# What the catalogue serves of Cloud Storage, below buckets that the hand-written part has.
_CATALOGUE_STORAGE: Final = re.compile(r"/b/[^/]+/(?:acl|iam|notificationConfigs)(?:/|$)")
_HAND_WRITTEN_HOST: Final = re.compile(r"/(?:sqladmin|storage|www)\.googleapis\.com(?=/(?:sql|storage|upload)/)")
_PROJECT: Final = re.compile(r"/projects/([^/]+)")
_BUCKET: Final = re.compile(r"/b/([^/]+)")


@dataclass(frozen=True, slots=True)
class CloudRequest:
    """An HTTP request."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    content_type: str = ""
    if_match: str = ""


class Cloud:
    """The local cloud in one process, with its faults, clock, edits and request journal."""

    def __init__(
        self,
        *,
        clock: CloudClock | None = None,
        state_file: Path | None = None,
        operation_seconds: float = 0.5,
        name_reserved_seconds: float = 0.0,
        latency: float = 0.0,
        check_references: bool = False,
    ) -> None:
        self.clock = clock or CloudClock()
        self.faults = Faults()
        self.journal = RequestJournal()
        self._file = state_file
        self._timing = OperationTiming(operation_seconds, name_reserved_seconds)
        # Whether objects of the catalogue may only refer to objects that exist, as Google has it.
        self._check_references = check_references
        if latency:
            self.faults.add(AddLatency(latency))
        self._restore(load_state(state_file) if state_file is not None else CloudState())

    # --- Requests ----------------------------------------------------------------------------------------------------

    def call(self, method: str, target: str, body: JsonBody | None = None) -> ServiceResponse:
        """The response to a request made in this process; a dropped connection is a ConnectionError."""
        parts = urlsplit(target)
        sent = b"" if body is None else msgspec.json.encode(body)
        answer = self.handle(CloudRequest(method, parts.path, dict(parse_qsl(parts.query)), sent, "application/json"))
        if answer is None:
            raise ConnectionError(f"{method} {target}: the local cloud was told to cut the connection")
        # A copy: the caller may change it.
        copy = msgspec.json.decode(msgspec.json.encode(answer.body))
        return ServiceResponse(answer.status, copy, answer.headers)

    def handle(self, request: CloudRequest) -> ServiceResponse | None:
        """Handles a request and returns the response; None when the connection is to be dropped."""
        if request.path.split("/")[1:2] == ["_local"]:
            answer: ServiceResponse | None = self._guarded(request, control.answer)
        else:
            answer = self._respond_with_faults(request)
            self.journal.add(self._entry(request, answer))
        if request.method != "GET":
            self.save()
        return answer

    def latency(self, request: CloudRequest) -> float:
        """How long a request has to wait before it is handled."""
        if request.path.split("/")[1:2] == ["_local"]:
            return 0.0
        call = ServiceCall(request.method, request.path, self.clock.now(), request.query)
        return self.faults.latency(request.method, request.path) + waiting_seconds(self.google, call)

    # --- Control ------------------------------------------------------------------------------------------------------

    def inject(self, fault: Fault) -> None:
        """Activates a fault."""
        self.faults.add(fault)

    def advance(self, seconds: float) -> None:
        """Moves the clock forward; operations that end meanwhile take effect."""
        self.clock.advance(seconds)
        finish_due_operations(self.sql, self.clock.now())
        finish_due(self.google.state, self.clock.now())

    def edit(self, path: str, patch: JsonBody) -> None:
        """Merges `patch` into the live object at an API path, without validation (drift)."""
        now = self.clock.now()
        finish_due_operations(self.sql, now)
        hand_written = _without_host(path)
        if not (
            edit_sql(self.sql.state, hand_written, patch)
            or edit_bucket(self.storage.state, hand_written, patch, now)
            or edit_catalogue_object(self.google, path, patch, now)
        ):
            raise api_errors.no_such_method("edit", path)
        self.save()

    def password_matches(self, project: str, instance: str, name: str, password: str, host: str | None = None) -> bool:
        """Whether a database user could log in with this password."""
        found = self.sql.state.instances.get(f"{project}/{instance}")
        if found is None:
            raise api_errors.no_instance()
        if host is None:
            host = default_host(engine_of(found.resource["databaseVersion"]))
        return password_matches(find_user(found, name, host), password)

    def reset(self) -> None:
        """Removes every object, fault and recorded request. The clock goes on."""
        self.faults.clear()
        self.journal.clear()
        self._restore(CloudState())
        self.save()

    def save(self) -> None:
        """Writes the state to its file, if it has one."""
        if self._file is not None:
            save_state(self._file, CloudState(self.sql.state, self.storage.state, self.google.state, self.clock.now()))

    def _restore(self, state: CloudState) -> None:
        self.sql = CloudSql(state.sql, self.faults, self._timing)
        self.storage = CloudStorage(state.storage, self.faults)
        self.google = CatalogueServices(
            state.google, self.faults, self._timing.operation_seconds, self._has_bucket, self._check_references
        )
        if state.saved_at is not None:
            # Time never runs backwards over a restart, not even if the clock had been advanced.
            self.clock.advance((state.saved_at - self.clock.now()).total_seconds())

    def _respond_with_faults(self, request: CloudRequest) -> ServiceResponse | None:
        fault = self.faults.outcome(request.method, request.path, FaultTiming.BEFORE)
        if fault is not None:
            return _fault_response(fault)
        answer = self._guarded(request, Cloud._dispatch)
        fault = self.faults.outcome(request.method, request.path, FaultTiming.AFTER)
        return answer if fault is None else _fault_response(fault)

    def _guarded(self, request: CloudRequest, handler: "control.ControlHandler") -> ServiceResponse:
        try:
            return handler(self, self._call(request))
        except CloudApiError as error:
            return ServiceResponse(error.status, error.body(), error.headers)

    def _dispatch(self, call: ServiceCall) -> ServiceResponse:
        wait = self.faults.over_quota(self._project(call), call.now)
        if wait is not None:
            raise api_errors.too_many_requests(wait)
        answer = self._service_answer(call)
        if answer.body is None:
            return answer
        return ServiceResponse(answer.status, self.faults.with_added_fields(answer.body), answer.headers)

    def _service_answer(self, call: ServiceCall) -> ServiceResponse:
        path = _without_host(call.path)
        if path.startswith(f"{_SQL}/"):
            return api_methods.answer_sql(self.sql, _with_path(call, path.removeprefix(_SQL)))
        storage_path = _STORAGE.fullmatch(path)
        if storage_path is not None and not _CATALOGUE_STORAGE.search(path):
            return api_methods.answer_storage(self.storage, _with_path(call, (storage_path[1] or "") + storage_path[2]))
        answer = answer_google(self.google, call)
        if answer is None:
            raise api_errors.no_such_method(call.method, call.path)
        return answer

    def _has_bucket(self, name: str) -> bool:
        return name.removeprefix("b/") in self.storage.state.buckets

    def _project(self, call: ServiceCall) -> str:
        if found := _PROJECT.search(call.path):
            return found[1]
        bucket = _BUCKET.search(call.path)
        owner = self.storage.state.buckets.get(bucket[1]) if bucket else None
        return owner.project if owner else call.query.get("project", "")

    def _call(self, request: CloudRequest) -> ServiceCall:
        is_upload = request.path.startswith("/upload/")
        body: object = None
        if request.body and not is_upload and request.method not in ("GET", "DELETE"):
            body = self.faults.without_added_fields(_parsed(request.body))
        return ServiceCall(
            method=request.method,
            path=request.path.rstrip("/"),
            now=self.clock.now(),
            query=request.query,
            body=body,
            media=request.body if is_upload else b"",
            content_type=request.content_type,
            if_match=request.if_match,
        )

    def _entry(self, request: CloudRequest, answer: ServiceResponse | None) -> RecordedRequest:
        try:
            body = msgspec.json.decode(request.body) if request.body else None
        except msgspec.DecodeError:
            body = f"{len(request.body)} bytes that are not JSON"
        status = None if answer is None else answer.status
        return RecordedRequest(
            request.method, request.path, dict(request.query), body, status, timestamp(self.clock.now())
        )


def _parsed(body: bytes) -> object:
    try:
        return msgspec.json.decode(body)
    except msgspec.DecodeError as error:
        raise api_errors.bad_json(str(error)) from error


def _fault_response(fault: FailRequest | DropConnection) -> ServiceResponse | None:
    if isinstance(fault, DropConnection):
        return None
    headers = {} if fault.retry_after is None else {"Retry-After": str(fault.retry_after)}
    message = "The local cloud was told to fail this request."
    return ServiceResponse(fault.status, CloudApiError(fault.status, "backendError", message).body(), headers)


def _without_host(path: str) -> str:
    """A path without the host before it, when that is one of the hand-written services."""
    return _HAND_WRITTEN_HOST.sub("", path, count=1)


def _with_path(call: ServiceCall, path: str) -> ServiceCall:
    return replace(call, path=path)
