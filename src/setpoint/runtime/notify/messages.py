"""Messages about problems: as JSON for a webhook, as text for Slack, and as CloudEvents 1.0; and their signature."""

import hashlib
import hmac
from collections.abc import Mapping
from enum import StrEnum
from typing import Final
from urllib.parse import quote

from setpoint.core.redaction import REDACTED, holds_secret_object
from setpoint.core.values.canonical import canonical, digest
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import Json, JsonObject
from setpoint.core.values.messages import printable
from setpoint.core.values.shortening import shorten
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.runtime.notify.problems import Problem, condition_with

SIGNATURE_HEADER: Final = "Setpoint-Signature"
DEFAULT_SOURCE: Final = "/setpoint"
_VERSION: Final = "1"
_MAX_MESSAGE_BYTES: Final = 2_000
# In a header of a binary CloudEvent these are written as they are; anything else is percent-encoded.
_HEADER_SAFE: Final = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) not in '"%')


class MessageFormat(StrEnum):
    """How a receiver wants its messages."""

    WEBHOOK = "webhook"
    SLACK = "slack"
    # Structured mode: the event is the body.
    CLOUDEVENTS = "cloudevents"
    # Binary mode: the attributes are headers.
    CLOUDEVENTS_BINARY = "cloudevents-binary"


class MessageType(StrEnum):
    """Whether a problem has begun or is over."""

    RAISED = "raised"
    RESOLVED = "resolved"


@dataclass(frozen=True, slots=True)
class Incident:
    """A problem of a resource from its first message to its last. `id` is the same in every process that finds it."""

    ref: ResourceRef
    problem: Problem
    uid: str
    since: str
    id: str

    @staticmethod
    def of(resource: Resource, problem: Problem) -> "Incident":
        """The incident of a problem that was found just now; it began with the transition of its condition."""
        condition = condition_with(resource)
        since = "" if condition is None else condition.last_transition_time
        identity = digest([*resource.ref, resource.uid, problem.value, since])[:32]
        return Incident(resource.ref, problem, resource.uid, since, identity)

    def to_data(self) -> JsonObject:
        """The incident as JSON."""
        return {
            "ref": list(self.ref),
            "problem": self.problem.value,
            "uid": self.uid,
            "since": self.since,
            "id": self.id,
        }

    @staticmethod
    def from_data(data: Mapping[str, Json]) -> "Incident":
        """The incident in JSON; KeyError, TypeError or ValueError for anything else."""
        ref, texts = data["ref"], [data[name] for name in ("problem", "uid", "since", "id")]
        if not isinstance(ref, list | tuple) or not all(isinstance(one, str) for one in (*ref, *texts)):
            raise TypeError("an incident has texts")
        problem, uid, since, identity = map(str, texts)
        return Incident(ResourceRef(*map(str, ref)), Problem(problem), uid, since, identity)


@dataclass(frozen=True, slots=True)
class Notification:
    """One message: of an incident that began, or that is over; `reason` and `text` are those of now."""

    type: MessageType
    incident: Incident
    at: str
    reason: str = ""
    text: str = ""

    @staticmethod
    def of(type_: MessageType, incident: Incident, resource: Resource | None, at: str) -> "Notification":
        """The message with what the condition says; of what holds a Secret, without its text."""
        if resource is None:
            return Notification(type_, incident, at, "Deleted", "the resource is gone")
        condition = condition_with(resource)
        if condition is None:
            return Notification(type_, incident, at)
        text = REDACTED if holds_secret_object(resource.document) else shorten(condition.message, _MAX_MESSAGE_BYTES)
        return Notification(type_, incident, at, condition.reason, text)

    @property
    def id(self) -> str:
        """The same for every time that this message is sent: a receiver can tell repetitions by it."""
        return f"{self.incident.id}-{self.type.value}"

    def to_data(self) -> dict[str, Json]:
        """The message as JSON."""
        ref = self.incident.ref
        resource: dict[str, Json] = {**ref._asdict(), "uid": self.incident.uid}
        return {
            "version": _VERSION,
            "id": self.id,
            "type": self.type.value,
            "problem": self.incident.problem.value,
            "problemId": self.incident.id,
            "resource": resource,
            "reason": self.reason,
            "message": self.text,
            "since": self.incident.since,
            "at": self.at,
        }


@dataclass(frozen=True, slots=True)
class EncodedMessage:
    """What is sent: a body, and the headers that say what it is."""

    headers: Mapping[str, str]
    body: bytes


def encode(message: Notification, format_: MessageFormat, source: str = DEFAULT_SOURCE) -> EncodedMessage:
    """The message in the form that a receiver wants."""
    match format_:
        case MessageFormat.WEBHOOK:
            return _json(message.to_data())
        case MessageFormat.SLACK:
            return _json({"text": _slack_text(message)})
        case MessageFormat.CLOUDEVENTS:
            attributes = _attributes(message, source)
            event: JsonObject = {**attributes, "datacontenttype": "application/json", "data": message.to_data()}
            return _json(event, "application/cloudevents+json; charset=utf-8")
        case MessageFormat.CLOUDEVENTS_BINARY:
            plain = _json(message.to_data())
            named = {f"ce-{name}": header_value(text) for name, text in _attributes(message, source).items()}
            return EncodedMessage({**plain.headers, **named}, plain.body)


def _json(value: JsonObject, content_type: str = "application/json") -> EncodedMessage:
    return EncodedMessage({"content-type": content_type}, canonical(value))


def _attributes(message: Notification, source: str) -> dict[str, str]:
    """The context attributes of a CloudEvent; none is empty, as its specification asks."""
    ref = message.incident.ref
    return {
        "specversion": "1.0",
        "id": message.id,
        "source": source,
        "type": f"dev.setpoint.problem.{message.incident.problem.value.lower()}.{message.type.value}",
        "subject": "/".join(part for part in (ref.kind, ref.namespace, ref.name) if part),
        "time": message.at,
    }


def header_value(text: str) -> str:
    """A text as the HTTP binding of CloudEvents has it in a header: UTF-8, percent-encoded where it has to be."""
    return quote(text, safe=_HEADER_SAFE)


def _slack_text(message: Notification) -> str:
    incident, is_raised = message.incident, message.type is MessageType.RAISED
    head = (
        f":red_circle: *{incident.problem.value}*"
        if is_raised
        else f":large_green_circle: *no longer {incident.problem.value}*"
    )
    rest = ": ".join(part for part in (message.reason, message.text) if part)
    quoted = f"\n> {_slack_escaped(rest)}" if rest else ""
    return f"{head} {_slack_escaped(str(incident.ref))}{quoted}"


def _slack_escaped(text: str) -> str:
    """Text that Slack shows as it is: no mention, no link, no mark-up of another line."""
    plain = " ".join(printable(text).split())
    return plain.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def signature(body: bytes, secret: bytes, at: int) -> str:
    """The value of the signature header: the time in seconds, and HMAC-SHA256 of `time.body` with the secret."""
    mac = hmac.new(secret, b"%d.%b" % (at, body), hashlib.sha256).hexdigest()
    return f"t={at},v1={mac}"
