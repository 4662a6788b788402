"""The control API below `/_local`: faults, clock, edits of live objects (drift), and the journal of requests.

None of it exists in the real cloud.
"""

import re
from collections import Counter, deque
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import msgspec
from msgspec import Struct

from setpoint.core.values.canonical import same
from setpoint.errors import UserError
from setpoint.localcloud import api_errors
from setpoint.localcloud.clock import timestamp
from setpoint.localcloud.faults import Fault
from setpoint.localcloud.routing import Route, ServiceCall, ServiceResponse, dispatch
from setpoint.localcloud.schema import OUTPUT, JsonBody, merge_patch, with_member
from setpoint.localcloud.sql.operations import SqlState, StoredInstance
from setpoint.localcloud.sql.schema import INSTANCE
from setpoint.localcloud.storage.buckets import StorageState, StoredBucket

if TYPE_CHECKING:
    from setpoint.localcloud.cloud import Cloud

ControlHandler: TypeAlias = "Callable[[Cloud, ServiceCall], ServiceResponse]"
_Body = TypeVar("_Body")


class ClockChange(msgspec.Struct, forbid_unknown_fields=True):
    """Moves the clock forward, holds it, or lets it run."""

    advance: float = 0.0
    held: bool | None = None


class LiveEdit(msgspec.Struct, forbid_unknown_fields=True):
    """Merges a patch into the live object at an API path."""

    path: str
    patch: dict[str, Any]


class PasswordCheck(msgspec.Struct, forbid_unknown_fields=True):
    """Whether a database user could log in with this password."""

    project: str
    instance: str
    name: str
    password: str
    host: str | None = None


def answer(cloud: "Cloud", call: ServiceCall) -> ServiceResponse:
    """The response to one request of the control API."""
    return dispatch(ROUTES, cloud, call)


def get_overview(cloud: "Cloud", call: ServiceCall) -> JsonBody:
    """`GET /_local`: an overview, with clock, counts and active faults."""
    about = "A local Cloud SQL and Cloud Storage for demos and tests. This is not Google."
    return {"about": about, "clock": _clock(cloud), "counts": cloud.journal.counts(), **list_faults(cloud, call)}


def list_faults(cloud: "Cloud", _: ServiceCall) -> JsonBody:
    """`GET /_local/faults`."""
    return {"faults": msgspec.to_builtins(cloud.faults.active)}


def add_fault(cloud: "Cloud", call: ServiceCall) -> JsonBody:
    """`POST /_local/faults`: one fault; its member `fault` is the type."""
    try:
        fault: Fault = msgspec.convert(call.body, type=Fault)
        cloud.inject(fault)
    except (msgspec.ValidationError, UserError) as error:
        raise api_errors.bad_json(str(error)) from error
    return list_faults(cloud, call)


def clear_faults(cloud: "Cloud", _: ServiceCall) -> None:
    """`DELETE /_local/faults`."""
    cloud.faults.clear()


def list_calls(cloud: "Cloud", _: ServiceCall) -> JsonBody:
    """`GET /_local/calls`."""
    return {"calls": msgspec.to_builtins(cloud.journal.entries), "counts": cloud.journal.counts()}


def clear_calls(cloud: "Cloud", _: ServiceCall) -> None:
    """`DELETE /_local/calls`."""
    cloud.journal.clear()


def get_clock(cloud: "Cloud", _: ServiceCall) -> JsonBody:
    """`GET /_local/clock`."""
    return _clock(cloud)


def set_clock(cloud: "Cloud", call: ServiceCall) -> JsonBody:
    """`POST /_local/clock`."""
    order = _convert_body(call, ClockChange)
    if order.held is not None:
        cloud.clock.hold() if order.held else cloud.clock.release()
    cloud.advance(order.advance)
    return _clock(cloud)


def edit(cloud: "Cloud", call: ServiceCall) -> None:
    """`POST /_local/edit`."""
    order = _convert_body(call, LiveEdit)
    cloud.edit(order.path, order.patch)


def check_password(cloud: "Cloud", call: ServiceCall) -> JsonBody:
    """`POST /_local/password`."""
    asked = _convert_body(call, PasswordCheck)
    matches = cloud.password_matches(asked.project, asked.instance, asked.name, asked.password, asked.host)
    return {"matches": matches}


def reset(cloud: "Cloud", _: ServiceCall) -> None:
    """`DELETE /_local/state`: empty, as after a first start."""
    cloud.reset()


ROUTES: Final[tuple[Route["Cloud"], ...]] = (
    Route("GET", "/_local", get_overview),
    Route("GET", "/_local/faults", list_faults),
    Route("POST", "/_local/faults", add_fault),
    Route("DELETE", "/_local/faults", clear_faults),
    Route("GET", "/_local/calls", list_calls),
    Route("DELETE", "/_local/calls", clear_calls),
    Route("GET", "/_local/clock", get_clock),
    Route("POST", "/_local/clock", set_clock),
    Route("POST", "/_local/edit", edit),
    Route("POST", "/_local/password", check_password),
    Route("DELETE", "/_local/state", reset),
)


def _clock(cloud: "Cloud") -> JsonBody:
    return {"held": cloud.clock.is_held, "now": timestamp(cloud.clock.now())}


def _convert_body(call: ServiceCall, type_: type[_Body]) -> _Body:
    try:
        return msgspec.convert(call.body, type=type_)
    except msgspec.ValidationError as error:
        raise api_errors.bad_json(str(error)) from error


_SQL_PATH: Final = re.compile(r"/sql/v1beta4/projects/([^/]+)/instances/([^/]+)(?:/databases/([^/]+))?")
_BUCKET_PATH: Final = re.compile(r"(?:/storage/v1)?/b/([^/]+)")


def edit_sql(state: SqlState, path: str, patch: JsonBody) -> bool:
    """Merges `patch` into the instance or database at `path`; False when the path is neither."""
    found = _SQL_PATH.fullmatch(path)
    if found is None:
        return False
    instance = state.instances.get(f"{found[1]}/{found[2]}")
    if instance is None:
        raise api_errors.no_instance()
    if found[3] is None:
        edit_instance(instance, patch)
    elif found[3] in instance.databases:
        instance.databases[found[3]] = merge_patch(instance.databases[found[3]], patch)
    else:
        raise api_errors.not_found()
    return True


def edit_instance(instance: StoredInstance, patch: JsonBody) -> None:
    """Merges `patch` into an instance; the settings version moves, as with an edit in the console."""
    decided = {name: value for name, value in patch.items() if INSTANCE.fields.get(name, OUTPUT) is not OUTPUT}
    edited = merge_patch(instance.resource, decided)
    if not same(edited, instance.resource):
        version = int(instance.resource["settings"]["settingsVersion"]) + 1
        instance.resource = with_member(edited, "settings.settingsVersion", str(version))
    # Outputs are computed again with every write; an edit of one is kept as an override.
    instance.overrides = {**instance.overrides, **{name: patch[name] for name in patch if name not in decided}}


def edit_bucket(state: StorageState, path: str, patch: JsonBody, now: datetime) -> bool:
    """Merges `patch` into the bucket at `path`; False when the path is no bucket."""
    found = _BUCKET_PATH.fullmatch(path)
    if found is None:
        return False
    bucket = state.buckets.get(found[1])
    if bucket is None:
        raise api_errors.no_bucket()
    edited = merge_patch(bucket.resource, patch)
    if not same(edited, bucket.resource):
        _replace_bucket(bucket, edited, now)
    return True


def _replace_bucket(bucket: StoredBucket, edited: JsonBody, now: datetime) -> None:
    metageneration = str(int(bucket.resource["metageneration"]) + 1)
    bucket.resource = {**edited, "metageneration": metageneration, "updated": timestamp(now)}


_SECRET_NAME: Final = re.compile(r"password$|clientkey$|secret", re.IGNORECASE)
_REDACTED: Final = "[redacted]"
_MAX_ENTRIES: Final = 10_000
_READS: Final = frozenset({"GET", "HEAD"})


class RecordedRequest(Struct, frozen=True):
    """One request in the journal. Without a status the connection was dropped."""

    method: str
    path: str
    query: dict[str, str]
    body: Any
    status: int | None
    at: str

    @property
    def is_write(self) -> bool:
        """Whether the request asked for a change."""
        return self.method not in _READS


class RequestJournal:
    """The last requests, oldest first, and the number of all requests."""

    def __init__(self) -> None:
        self._entries: deque[RecordedRequest] = deque(maxlen=_MAX_ENTRIES)
        self._methods: Counter[str] = Counter()
        self._statuses: Counter[str] = Counter()

    @property
    def entries(self) -> tuple[RecordedRequest, ...]:
        """The requests that are kept, oldest first."""
        return tuple(self._entries)

    def counts(self) -> dict[str, Any]:
        """The number of requests: in total, of writes, by method and by status."""
        writes = sum(count for method, count in self._methods.items() if method not in _READS)
        by_method, by_status = dict(sorted(self._methods.items())), dict(sorted(self._statuses.items()))
        return {"total": self._methods.total(), "writes": writes, "byMethod": by_method, "byStatus": by_status}

    def add(self, entry: RecordedRequest) -> None:
        """Adds a request, with its secrets redacted."""
        self._entries.append(
            RecordedRequest(entry.method, entry.path, entry.query, redacted(entry.body), entry.status, entry.at)
        )
        self._methods[entry.method] += 1
        self._statuses["dropped" if entry.status is None else str(entry.status)] += 1

    def clear(self) -> None:
        """Removes all requests and resets the counts."""
        self._entries.clear()
        self._methods.clear()
        self._statuses.clear()


def redacted(value: object) -> object:
    """`value` with every secret in it redacted."""
    if isinstance(value, Mapping):
        return {
            name: _REDACTED if _SECRET_NAME.search(name) and not isinstance(inner, dict | bool) else redacted(inner)
            for name, inner in value.items()
        }
    return [redacted(one) for one in value] if isinstance(value, list) else value
