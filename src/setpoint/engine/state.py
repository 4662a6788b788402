"""Stored state: what the engine keeps in a resource's status between two steps, apart from what people read there."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from sys import intern
from typing import Final

from setpoint.core.decide import Cookie
from setpoint.core.values.json_types import Json, JsonObject
from setpoint.engine.kind import Location, RemoteOperation
from setpoint.engine.oscillation import NO_OSCILLATIONS, Oscillations
from setpoint.engine.resource import Resource

COOKIE: Final = "lastModifiedCookie"
COOKIE_ANNOTATION: Final = "cnrm.cloud.google.com/last-changed-cookie"
SERVER_DEFAULTS: Final = "serverDefaults"
# Set by whoever wants a look now, to any text that is new; echoed in the status by the step that takes it up.
RECONCILE_REQUESTED: Final = "setpoint.dev/reconcile-requested-at"
RECONCILE_HANDLED: Final = "lastHandledReconcileAt"
# Everything else that only the engine reads.
ENGINE_STATE: Final = "setpoint"
# Among it, what of the Ready condition code goes by: see ReadyDetails.
READY_DETAILS: Final = "ready"
_ENGINE_MEMBERS: Final = frozenset(
    {"conditions", "observedGeneration", COOKIE, SERVER_DEFAULTS, RECONCILE_HANDLED, ENGINE_STATE}
)


@dataclass(frozen=True, slots=True)
class WriteAttempt:
    """The fields sent so far for one intent; once none is left to send, the cookie at which some still differed."""

    intent: str
    sent: tuple[str, ...] = ()
    unconverged_at: Cookie | None = None


@dataclass(frozen=True, slots=True)
class WaitState:
    """A wait: what it is satisfied for, the object, the intent; since when it goes on, or when it was done.

    `said` is what was last put on record of one that goes on, its reason first, and `told` is when that was.
    """

    key: str
    uid: str
    intent: str
    since: str
    is_done: bool
    said: str = ""
    told: str = ""


@dataclass(frozen=True, slots=True)
class StoredState:
    """The engine's memory of one resource."""

    cookie: Cookie | None = None
    location: Location | None = None
    operation: RemoteOperation | None = None
    attempt: WriteAttempt | None = None
    # The fields on which the service insists, each with the digest of the value that it has there.
    server_defaults: Mapping[str, str] = field(default_factory=dict)
    # The version of each secret that was sent last.
    secrets: Mapping[str, str] = field(default_factory=dict)
    step: JsonObject | None = None
    # The last request for a look that was taken up.
    handled: str | None = None
    contests: Oscillations = NO_OSCILLATIONS
    # The digest of the bytes that the live object came in when the cookie was made: the same again need no decoding.
    body: str | None = None
    # The versions of the secrets that a creation under way hands over; None when there is none under way.
    creating: Mapping[str, str] | None = None
    wait: WaitState | None = None
    # Of an owner: what is about to be written of its children, as digests; None when nothing is.
    generating: JsonObject | None = None
    # The details of the Ready condition, as they were last written with it.
    ready_details: JsonObject | None = None

    @staticmethod
    def of(resource: Resource) -> "StoredState":
        """The memory in a resource's status, or annotation; what cannot be read is forgotten, never trusted."""
        status = resource.status
        ours = _tree(status.get(ENGINE_STATE))
        cookie = Cookie.parse(status.get(COOKIE)) or Cookie.parse(resource.annotations.get(COOKIE_ANNOTATION))
        operation = ours.get("operation")
        return StoredState(
            cookie,
            location_in(status),
            RemoteOperation(operation) if isinstance(operation, str) else None,
            _attempt(_tree(ours.get("attempt"))),
            _texts_in(ours.get("serverDefaults")),
            _texts_in(ours.get("secrets")),
            _tree(ours.get("step")) or None,
            handled if isinstance(handled := status.get(RECONCILE_HANDLED), str) else None,
            Oscillations.of(ours.get("contests")),
            body if isinstance(body := ours.get("body"), str) else None,
            _texts_in(ours["creating"]) if isinstance(ours.get("creating"), Mapping) else None,
            _wait(_tree(ours.get("wait"))),
            _tree(ours.get("generating")) or None,
            _tree(ours.get(READY_DETAILS)) or None,
        )

    def into(self, status: JsonObject, *, with_cookie: bool) -> JsonObject:
        """`status` with this memory in it; the cookie only where the status is its place."""
        kept = {
            name: value
            for name, value in status.items()
            if name not in (COOKIE, SERVER_DEFAULTS, RECONCILE_HANDLED, ENGINE_STATE)
        }
        if self.cookie is not None and with_cookie:
            kept[COOKIE] = str(self.cookie)
        if self.server_defaults:
            kept[SERVER_DEFAULTS] = list(self.server_defaults)
        if self.handled is not None:
            kept[RECONCILE_HANDLED] = self.handled
        ours = self._ours()
        return {**kept, ENGINE_STATE: ours} if ours else kept

    def _ours(self) -> dict[str, Json]:
        members: dict[str, Json] = {
            "location": self.location,
            "operation": None if self.operation is None else self.operation.name,
            "attempt": None if self.attempt is None else _attempt_data(self.attempt),
            "serverDefaults": self.server_defaults or None,
            "secrets": self.secrets or None,
            "step": self.step,
            "body": self.body,
            "contests": self.contests.to_data() if self.contests.fields else None,
            "creating": self.creating,
            "wait": None if self.wait is None else _wait_data(self.wait),
            "generating": self.generating,
            READY_DETAILS: self.ready_details,
        }
        return {name: value for name, value in members.items() if value is not None}


def location_in(status: JsonObject) -> Location | None:
    """Where the object is, once that is on record."""
    location = _tree(status.get(ENGINE_STATE)).get("location")
    # One text, however many keep it.
    return Location(intern(location)) if isinstance(location, str) else None


def outputs_in(status: JsonObject) -> JsonObject:
    """What a status shows of the live object: everything that is not the engine's own."""
    return {name: value for name, value in status.items() if name not in _ENGINE_MEMBERS}


def _attempt(data: JsonObject) -> WriteAttempt | None:
    intent = data.get("intent")
    if not isinstance(intent, str):
        return None
    return WriteAttempt(intent, _texts(data.get("sent")), Cookie.parse(data.get("stuckAt")))


def _attempt_data(attempt: WriteAttempt) -> Json:
    data: dict[str, Json] = {"intent": attempt.intent, "sent": list(attempt.sent)}
    if attempt.unconverged_at is not None:
        data["stuckAt"] = str(attempt.unconverged_at)
    return data


def _wait(data: JsonObject) -> WaitState | None:
    match data:
        case {"for": str(key), "uid": str(uid), "intent": str(intent), "since": str(since), "done": True}:
            return WaitState(key, uid, intent, since, is_done=True)
        case {"for": str(key), "uid": str(uid), "intent": str(intent), "since": str(since)}:
            said, told = _text(data.get("said")), _text(data.get("told"))
            is_time = _is_time(since) and _is_time(told)
            return WaitState(key, uid, intent, since, is_done=False, said=said, told=told) if is_time else None
        case _:
            return None


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""


def _is_time(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


def _wait_data(wait: WaitState) -> Json:
    data: dict[str, Json] = {"for": wait.key, "uid": wait.uid, "intent": wait.intent, "since": wait.since}
    return {**data, "done": True} if wait.is_done else {**data, "said": wait.said, "told": wait.told}


def _tree(value: Json) -> JsonObject:
    return value if isinstance(value, Mapping) else {}


def _texts_in(value: Json) -> Mapping[str, str]:
    return {name: one for name, one in _tree(value).items() if isinstance(one, str)}


def _texts(value: Json) -> tuple[str, ...]:
    return tuple(one for one in value if isinstance(one, str)) if isinstance(value, list | tuple) else ()
