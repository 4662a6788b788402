"""Stored state: what the engine keeps in a resource's status between two steps, apart from what people read there.

It has room in a status beside a spec that is nearly as large as a store allows. Every member has a bound that neither
the spec nor the live object decides: names, digests, times; lists and maps of fields up to a number of bytes, and in
another form beyond that.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from datetime import datetime
from sys import intern
from typing import Any, Final

from setpoint.core.decide import Cookie
from setpoint.core.redaction import holds_secret_object, redact_record
from setpoint.core.schema import annotations as known_annotations
from setpoint.core.step_record import bounded_record
from setpoint.core.values.canonical import canonical, digest, same
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import Json, JsonObject
from setpoint.core.write_attempt import MAX_FIELDS_BYTES, WriteAttempt
from setpoint.engine.contention.intent_flips import NO_FLIPS, IntentFlips
from setpoint.engine.contention.oscillation import NO_OSCILLATIONS, Oscillations
from setpoint.engine.kind import Location, RemoteOperation
from setpoint.engine.resource import Resource

COOKIE: Final = "lastModifiedCookie"
COOKIE_ANNOTATION: Final = known_annotations.LAST_CHANGED_COOKIE
SERVER_DEFAULTS: Final = "serverDefaults"
# An annotation that requests a reconcile by any new text; the step that handles it echoes the text in the status.
RECONCILE_REQUESTED: Final = known_annotations.RECONCILE_REQUESTED
RECONCILE_HANDLED: Final = "lastHandledReconcileAt"
# Everything else: for the engine alone.
ENGINE_STATE: Final = "setpoint"
# Among it, what of the Ready condition code goes by: see ReadyDetails.
READY_DETAILS: Final = "ready"
# Among it, the digest of the whole status beside it: what another writer changed while no process ran shows by it.
STATUS_DIGEST: Final = "digest"
# And the fields that other writers keep changing, with their values.
CONTESTS: Final = "contests"
_ENGINE_MEMBERS: Final = frozenset(
    {"conditions", "observedGeneration", COOKIE, SERVER_DEFAULTS, RECONCILE_HANDLED, ENGINE_STATE}
)


# A longer request to reconcile is echoed by its digest.
_MAX_REQUEST_BYTES: Final = 256


@dataclass(frozen=True, slots=True)
class AppliedIntent:
    """What is kept of the intent that was last applied, to tell what of it has changed.

    Of a type with cookies, the revision and a digest of what the author wrote. `named`: digests of the paths in the
    spec that would be retained if the spec left them out.
    """

    revision: int = 0
    authored: str = ""
    named: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WaitState:
    """A wait: the key for which it is satisfied, the object, the intent; since when it is under way, or when it ended.

    Of one that is under way: the reason and text that the Ready condition has, and when that text was set.
    """

    key: str
    uid: str
    intent: str
    since: str
    is_done: bool
    reason: str = ""
    text: str = ""
    reported_at: str = ""


@dataclass(frozen=True, slots=True)
class StoredState:
    """What the engine stores about one resource."""

    cookie: Cookie | None = None
    location: Location | None = None
    operation: RemoteOperation | None = None
    attempt: WriteAttempt | None = None
    # Unspecified fields that the service does not change, each with the digest of its live value; where they are many,
    # the first of them, and at FURTHER_DEFAULTS how many more there are and the digest of all.
    server_defaults: Mapping[str, str] = field(default_factory=dict)
    # The version of each secret when it was last sent.
    secrets: Mapping[str, str] = field(default_factory=dict)
    step: JsonObject | None = None
    # The last reconcile request that was handled.
    handled: str | None = None
    oscillations: Oscillations = NO_OSCILLATIONS
    # The digest of the bytes of the live object when the cookie was made: the same bytes need no decoding.
    body: str | None = None
    # The versions of the secrets that a creation under way sends; None when none is under way.
    creating: Mapping[str, str] | None = None
    wait: WaitState | None = None
    # Whether the output is unknown because the last read of the object failed.
    read_failed: bool = False
    # Of an owner: the generated state that is about to be written, as digests by child; None when nothing is.
    generating: JsonObject | None = None
    # The details of the Ready condition, as they were last written with it.
    ready_details: JsonObject | None = None
    # Whether the location is claimed, and another process may have claimed it first.
    is_claim_pending: bool = False
    applied: AppliedIntent | None = None
    # Whether there may be an object whose location another writer has wiped: without a location, it is not known.
    is_location_lost: bool = False
    # The intents that were applied one after the other, to tell when writers of the spec disagree.
    flips: IntentFlips = NO_FLIPS

    @staticmethod
    def of(resource: Resource) -> "StoredState":
        """The state in a resource's status and annotations; what cannot be read is dropped, never trusted."""
        status = resource.status
        cookie = Cookie.parse(status.get(COOKIE)) or Cookie.parse(resource.annotations.get(COOKIE_ANNOTATION))
        handled = status.get(RECONCILE_HANDLED)
        # A settled resource has few of the members: what is absent is not read.
        found = {
            reader[0]: reader[1](value)
            for name, value in _tree(status.get(ENGINE_STATE)).items()
            if value is not None and (reader := _READERS.get(name)) is not None
        }
        return StoredState(cookie, handled=handled if isinstance(handled, str) else None, **found)

    def into(self, status: JsonObject, *, with_cookie: bool) -> JsonObject:
        """`status` with this state in it; the cookie only where it is kept in the status."""
        kept = {
            name: value
            for name, value in status.items()
            if name not in (COOKIE, SERVER_DEFAULTS, RECONCILE_HANDLED, ENGINE_STATE)
        }
        if self.cookie is not None and with_cookie:
            kept[COOKIE] = str(self.cookie)
        if self.server_defaults:
            kept[SERVER_DEFAULTS] = [*shown_server_defaults(self.server_defaults)]
        if self.handled is not None:
            kept[RECONCILE_HANDLED] = self.handled
        ours = self._ours()
        return {**kept, ENGINE_STATE: ours} if ours else kept

    def _ours(self) -> dict[str, Json]:
        members: dict[str, Json] = {
            "location": self.location,
            "operation": None if self.operation is None else self.operation.name,
            "attempt": None if self.attempt is None else _attempt_data(self.attempt),
            "serverDefaults": bounded_server_defaults(self.server_defaults) or None,
            "secrets": self.secrets or None,
            # One of an earlier version may be of any size.
            "step": None if self.step is None else bounded_record(self.step),
            "body": self.body,
            CONTESTS: self.oscillations.to_data() if self.oscillations.fields else None,
            "creating": self.creating,
            "wait": None if self.wait is None else _wait_data(self.wait),
            "readFailed": self.read_failed or None,
            "generating": self.generating,
            READY_DETAILS: self.ready_details,
            "claimPending": self.is_claim_pending or None,
            "applied": None if self.applied is None else _applied_data(self.applied),
            "locationLost": self.is_location_lost or None,
            "intents": self.flips.to_data() if self.flips.sides else None,
        }
        return {name: value for name, value in members.items() if value is not None}


# No field has this path.
FURTHER_DEFAULTS: Final = ""


def bounded_server_defaults(found: Mapping[str, str]) -> Mapping[str, str]:
    """Server defaults as they are stored; of many, the first ones, and the number and digest of the others."""
    if not found or FURTHER_DEFAULTS in found or len(canonical(found)) <= MAX_FIELDS_BYTES:
        return found
    first, room = dict[str, str](), MAX_FIELDS_BYTES
    for path, value in found.items():
        room -= len(canonical({path: value}))
        if room < 0:
            break
        first[path] = value
    return {**first, FURTHER_DEFAULTS: f"{len(found) - len(first):,} {digest(found)}"}


def known_server_defaults(stored: Mapping[str, str], unspecified: Mapping[str, str]) -> Mapping[str, str]:
    """The server defaults among the unspecified fields that differ now: of many, all only if they are the same ones.

    Otherwise those that are not stored one by one are sent once more.
    """
    if FURTHER_DEFAULTS not in stored:
        return stored
    return unspecified if same(bounded_server_defaults(unspecified), stored) else stored


def shown_server_defaults(found: Mapping[str, str]) -> Iterator[str]:
    """The fields as people read them: the first ones, and how many more there are."""
    for path, value in bounded_server_defaults(found).items():
        yield path if path != FURTHER_DEFAULTS else f"… and {value.partition(' ')[0]} more fields"


def reconcile_request(annotations: Mapping[str, str]) -> str | None:
    """The reconcile request of an author, as a status echoes it; None when there is none."""
    request = annotations.get(RECONCILE_REQUESTED)
    if request is None or len(request.encode("utf-8", "surrogatepass")) <= _MAX_REQUEST_BYTES:
        return request
    return f"sha256:{digest(request)}"


def location_in(status: JsonObject) -> Location | None:
    """The location of the object, once it is on record."""
    ours = status.get(ENGINE_STATE)
    return _location(ours.get("location") if type(ours) is dict else _tree(ours).get("location"))


def _location(data: Json) -> Location | None:
    # Interned: the same text is kept in several caches.
    return Location(intern(data)) if type(data) is str else None


def is_claim_pending_in(status: JsonObject) -> bool:
    """Whether the location on record is a claim that another process may have made first."""
    return _tree(status.get(ENGINE_STATE)).get("claimPending") is True


def without_step_secrets(document: JsonObject) -> JsonObject:
    """The document of a resource without secret values in the record of its last step."""
    status = _tree(document.get("status"))
    ours = _tree(status.get(ENGINE_STATE))
    if "step" not in ours:
        return document
    step = redact_record(ours["step"], whole=holds_secret_object(document))
    return {**document, "status": {**status, ENGINE_STATE: {**ours, "step": step}}}


def without_step_record(status: JsonObject) -> JsonObject:
    """The status without the record of the last step: it is for people, and no step needs it but to correct drift."""
    ours = {name: value for name, value in _tree(status.get(ENGINE_STATE)).items() if name != "step"}
    rest = {name: value for name, value in status.items() if name != ENGINE_STATE}
    return {**rest, ENGINE_STATE: ours} if ours else rest


def with_status_digest(status: JsonObject) -> JsonObject:
    """`status` with the digest of everything else that is in it."""
    rest = without_status_digest(status)
    return {**rest, ENGINE_STATE: {**_tree(rest.get(ENGINE_STATE)), STATUS_DIGEST: digest(rest)}}


def without_status_digest(status: JsonObject) -> JsonObject:
    """`status` as it is without its digest."""
    ours = _tree(status.get(ENGINE_STATE))
    if STATUS_DIGEST not in ours:
        return status
    left = {name: value for name, value in ours.items() if name != STATUS_DIGEST}
    rest = {name: value for name, value in status.items() if name != ENGINE_STATE}
    return {**rest, ENGINE_STATE: left} if left else rest


def is_status_edited(status: JsonObject) -> bool:
    """Whether another writer changed the status since it got its digest; False for one that has none."""
    found = _tree(status.get(ENGINE_STATE)).get(STATUS_DIGEST)
    return found is not None and found != digest(without_status_digest(status))


def is_record_lost(status: JsonObject) -> bool:
    """Whether what the engine keeps in a status is missing, or not what it wrote: nothing follows from its silence."""
    return not _tree(status.get(ENGINE_STATE)) or is_status_edited(status)


def outputs_in(status: JsonObject) -> JsonObject:
    """The outputs in a status: everything that is not the engine's own."""
    return {name: value for name, value in status.items() if name not in _ENGINE_MEMBERS}


def _attempt(data: JsonObject) -> WriteAttempt | None:
    intent = data.get("intent")
    if not isinstance(intent, str):
        return None
    unconverged_at = Cookie.parse(data.get("stuckAt"))
    if unconverged_at is not None:
        return WriteAttempt(intent, unconverged_at=unconverged_at)
    sent, pending = _texts(data.get("sent")), _texts(data.get("pending"))
    return WriteAttempt(intent, sent, None, _texts(data.get("sentWrites")), pending)


def _attempt_data(attempt: WriteAttempt) -> Json:
    data: dict[str, Json] = {"intent": attempt.intent, "sent": list(attempt.sent)}
    if attempt.sent_writes:
        data["sentWrites"] = list(attempt.sent_writes)
    if attempt.pending:
        data["pending"] = list(attempt.pending)
    if attempt.unconverged_at is not None:
        data["stuckAt"] = str(attempt.unconverged_at)
    return data


def _applied(data: Json) -> AppliedIntent | None:
    if data is None or not isinstance(data, Mapping):
        return None
    match data.get("revision"), data.get("authored"):
        case int(revision), str(authored):
            return AppliedIntent(revision, authored, _texts(data.get("named")))
        case _:
            return AppliedIntent(named=_texts(data.get("named")))


def _applied_data(applied: AppliedIntent) -> Json:
    by_cookie: dict[str, Json] = {"revision": applied.revision, "authored": applied.authored}
    named: dict[str, Json] = {"named": list(applied.named)} if applied.named else {}
    return {**by_cookie, **named} if applied.authored else named


def _wait(data: JsonObject) -> WaitState | None:
    match data:
        case {"for": str(key), "uid": str(uid), "intent": str(intent), "since": str(since), "done": True}:
            return WaitState(key, uid, intent, since, is_done=True)
        case {"for": str(key), "uid": str(uid), "intent": str(intent), "since": str(since)}:
            # The version before kept both in one text, as `said`: then the wait is reported anew.
            reason, text, reported_at = (_text(data.get(name)) for name in ("reason", "text", "told"))
            if not (_is_time(since) and _is_time(reported_at)):
                return None
            return WaitState(key, uid, intent, since, False, reason, text, reported_at)
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
    if wait.is_done:
        return {**data, "done": True}
    return {**data, "reason": wait.reason, "text": wait.text, "told": wait.reported_at}


def _tree(value: Json) -> JsonObject:
    # The first two checks are for speed: nearly all are of that type, or absent.
    if type(value) is dict:
        return value
    return {} if value is None or not isinstance(value, Mapping) else value


def _texts_in(value: Json) -> Mapping[str, str]:
    return {name: one for name, one in _tree(value).items() if isinstance(one, str)}


def _texts(value: Json) -> tuple[str, ...]:
    return tuple(one for one in value if isinstance(one, str)) if isinstance(value, list | tuple) else ()


def _is_true(value: Json) -> bool:
    return value is True


# By the name of each member that the engine keeps in a status: the field of the state, and what is read from it.
_READERS: Final[Mapping[str, tuple[str, Callable[[Json], Any]]]] = {
    "location": ("location", _location),
    "operation": ("operation", lambda data: RemoteOperation(data) if isinstance(data, str) else None),
    "attempt": ("attempt", lambda data: _attempt(_tree(data))),
    "serverDefaults": ("server_defaults", _texts_in),
    "secrets": ("secrets", _texts_in),
    "step": ("step", lambda data: _tree(data) or None),
    CONTESTS: ("oscillations", Oscillations.of),
    "body": ("body", lambda data: data if isinstance(data, str) else None),
    "creating": ("creating", lambda data: _texts_in(data) if isinstance(data, Mapping) else None),
    "wait": ("wait", lambda data: _wait(_tree(data))),
    "readFailed": ("read_failed", _is_true),
    "generating": ("generating", lambda data: _tree(data) or None),
    READY_DETAILS: ("ready_details", lambda data: _tree(data) or None),
    "claimPending": ("is_claim_pending", _is_true),
    "applied": ("applied", _applied),
    "locationLost": ("is_location_lost", _is_true),
    "intents": ("flips", IntentFlips.of),
}
