"""Both services behind one door, without a network: a request in, an answer out."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl, urlsplit

import msgspec

from setpoint.localcloud import control, refusals, sql_service, storage_service
from setpoint.localcloud.bucket_state import CloudStorage
from setpoint.localcloud.clock import Clock, stamp
from setpoint.localcloud.edits import edit_bucket, edit_sql
from setpoint.localcloud.faults import Drop, Fail, Fault, Faults, Latency, Moment
from setpoint.localcloud.journal import Entry, Journal
from setpoint.localcloud.operations import CloudSql, Pace, settle
from setpoint.localcloud.refusals import Refusal
from setpoint.localcloud.routes import Answer, Call
from setpoint.localcloud.sql_users import default_host, find_user, password_matches
from setpoint.localcloud.sql_versions import engine_of
from setpoint.localcloud.state_file import CloudState, load, save
from setpoint.localcloud.trees import Tree

_SQL: Final = "/sql/v1beta4"
# Google's own clients leave the prefix out when they talk to an emulator.
_STORAGE: Final = re.compile(r"(?:(/upload)(?:/storage/v1)?|/storage/v1)?(/b(?:/.*)?)")
_PROJECT: Final = re.compile(r"/projects/([^/]+)")
_BUCKET: Final = re.compile(r"/b/([^/]+)")


@dataclass(frozen=True, slots=True)
class Request:
    """What came over the wire."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    content_type: str = ""


class Cloud:
    """The local cloud as an object. Faults, the clock, edits and the journal are at hand."""

    def __init__(
        self,
        *,
        clock: Clock | None = None,
        state_file: Path | None = None,
        operation_seconds: float = 0.5,
        name_reserved_seconds: float = 0.0,
        latency: float = 0.0,
    ) -> None:
        self.clock = clock or Clock()
        self.faults = Faults()
        self.journal = Journal()
        self._file = state_file
        self._pace = Pace(operation_seconds, name_reserved_seconds)
        if latency:
            self.faults.add(Latency(latency))
        self._remember(load(state_file) if state_file is not None else CloudState())

    # --- Requests ----------------------------------------------------------------------------------------------------

    def call(self, method: str, target: str, body: Tree | None = None) -> Answer:
        """The answer to a request made in this process; a cut connection is a ConnectionError."""
        parts = urlsplit(target)
        sent = b"" if body is None else msgspec.json.encode(body)
        answer = self.handle(Request(method, parts.path, dict(parse_qsl(parts.query)), sent, "application/json"))
        if answer is None:
            raise ConnectionError(f"{method} {target}: the local cloud was told to cut the connection")
        # A copy: the caller may do with it what it wants.
        copy = msgspec.json.decode(msgspec.json.encode(answer.body))
        return Answer(answer.status, copy, answer.headers)

    def handle(self, request: Request) -> Answer | None:
        """The answer to a request, with everything it changes; None when the connection is to be cut."""
        if request.path.split("/")[1:2] == ["_local"]:
            answer: Answer | None = self._guarded(request, control.answer)
        else:
            answer = self._served(request)
            self.journal.add(self._entry(request, answer))
        if request.method != "GET":
            self.save()
        return answer

    def latency(self, request: Request) -> float:
        """How long a request has to wait before it is handled."""
        is_control = request.path.split("/")[1:2] == ["_local"]
        return 0.0 if is_control else self.faults.latency(request.method, request.path)

    # --- Meddling ----------------------------------------------------------------------------------------------------

    def inject(self, fault: Fault) -> None:
        """Puts a fault in force."""
        self.faults.add(fault)

    def advance(self, seconds: float) -> None:
        """Moves the clock forward; operations that end meanwhile take effect."""
        self.clock.advance(seconds)
        settle(self.sql, self.clock.now())

    def edit(self, path: str, patch: Tree) -> None:
        """Merges `patch` into the instance, database or bucket at an API path, past every rule."""
        now = self.clock.now()
        settle(self.sql, now)
        if not (edit_sql(self.sql.state, path, patch) or edit_bucket(self.storage.state, path, patch, now)):
            raise refusals.no_such_method("edit", path)
        self.save()

    def password_matches(self, project: str, instance: str, name: str, password: str, host: str | None = None) -> bool:
        """Whether a database user could log in with this password."""
        found = self.sql.state.instances.get(f"{project}/{instance}")
        if found is None:
            raise refusals.no_instance()
        place = default_host(engine_of(found.resource["databaseVersion"])) if host is None else host
        return password_matches(find_user(found, name, place), password)

    def reset(self) -> None:
        """Forgets every object, fault and request. The clock goes on."""
        self.faults.clear()
        self.journal.clear()
        self._remember(CloudState())
        self.save()

    def save(self) -> None:
        """Writes the state to its file, if it has one."""
        if self._file is not None:
            save(self._file, CloudState(self.sql.state, self.storage.state, self.clock.now()))

    def _remember(self, state: CloudState) -> None:
        self.sql = CloudSql(state.sql, self.faults, self._pace)
        self.storage = CloudStorage(state.storage, self.faults)
        if state.saved_at is not None:
            # Time never runs backwards over a restart, not even if somebody had moved it forward.
            self.clock.advance((state.saved_at - self.clock.now()).total_seconds())

    def _served(self, request: Request) -> Answer | None:
        fault = self.faults.outcome(request.method, request.path, Moment.BEFORE)
        if fault is not None:
            return _faulty(fault)
        answer = self._guarded(request, Cloud._dispatch)
        fault = self.faults.outcome(request.method, request.path, Moment.AFTER)
        return answer if fault is None else _faulty(fault)

    def _guarded(self, request: Request, answer: "control.Answerer") -> Answer:
        try:
            return answer(self, self._call(request))
        except Refusal as refusal:
            return Answer(refusal.status, refusal.body(), refusal.headers)

    def _dispatch(self, call: Call) -> Answer:
        wait = self.faults.over_quota(self._project(call), call.now)
        if wait is not None:
            raise refusals.too_many_requests(wait)
        answer = self._service_answer(call)
        return answer if answer.body is None else Answer(answer.status, self.faults.grown(answer.body), answer.headers)

    def _service_answer(self, call: Call) -> Answer:
        if call.path.startswith(f"{_SQL}/"):
            return sql_service.answer(self.sql, _at(call, call.path.removeprefix(_SQL)))
        storage_path = _STORAGE.fullmatch(call.path)
        if storage_path is not None:
            return storage_service.answer(self.storage, _at(call, (storage_path[1] or "") + storage_path[2]))
        raise refusals.no_such_method(call.method, call.path)

    def _project(self, call: Call) -> str:
        if found := _PROJECT.search(call.path):
            return found[1]
        bucket = _BUCKET.search(call.path)
        owner = self.storage.state.buckets.get(bucket[1]) if bucket else None
        return owner.project if owner else call.query.get("project", "")

    def _call(self, request: Request) -> Call:
        is_upload = request.path.startswith("/upload/")
        body: object = None
        if request.body and not is_upload and request.method not in ("GET", "DELETE"):
            body = self.faults.shrunk(_parsed(request.body))
        return Call(
            method=request.method,
            path=request.path.rstrip("/"),
            now=self.clock.now(),
            query=request.query,
            body=body,
            media=request.body if is_upload else b"",
            content_type=request.content_type,
        )

    def _entry(self, request: Request, answer: Answer | None) -> Entry:
        try:
            body = msgspec.json.decode(request.body) if request.body else None
        except msgspec.DecodeError:
            body = f"{len(request.body)} bytes that are not JSON"
        status = None if answer is None else answer.status
        return Entry(request.method, request.path, dict(request.query), body, status, stamp(self.clock.now()))


def _parsed(body: bytes) -> object:
    try:
        return msgspec.json.decode(body)
    except msgspec.DecodeError as error:
        raise refusals.bad_json(str(error)) from error


def _faulty(fault: Fail | Drop) -> Answer | None:
    if isinstance(fault, Drop):
        return None
    headers = {} if fault.retry_after is None else {"Retry-After": str(fault.retry_after)}
    message = "The local cloud was told to fail this request."
    return Answer(fault.status, Refusal(fault.status, "backendError", message).body(), headers)


def _at(call: Call, path: str) -> Call:
    return Call(call.method, path, call.now, call.query, call.body, call.media, call.content_type)
