"""Notes as Events of the cluster: what `kubectl describe` and `kubectl events` show."""

from dataclasses import dataclass
from typing import Final

import msgspec

from setpoint.core.canonical import digest
from setpoint.core.values import Json
from setpoint.engine.ports import Note
from setpoint.engine.resource import ResourceRef, Tree

COMPONENT: Final = "setpoint"
# Names of objects may have 253 characters: room for a dot and sixteen hex digits.
_LONGEST_NAME: Final = 236


class _Metadata(msgspec.Struct, rename="camel", gc=False):
    name: str = ""
    resource_version: str = ""


class _About(msgspec.Struct, rename="camel", gc=False):
    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""


class ClusterEvent(msgspec.Struct, rename="camel", gc=False):
    """An Event, as far as we read it."""

    metadata: _Metadata
    involved_object: _About
    type: str = ""
    reason: str = ""
    message: str = ""
    count: int | None = None
    first_timestamp: str | None = None
    last_timestamp: str | None = None
    event_time: str | None = None


event_in: Final = msgspec.json.Decoder(ClusterEvent).decode


@dataclass(frozen=True, slots=True)
class Told:
    """A note, and where it stands among others: resource versions of one kind are numbers that grow."""

    note: Note
    order: int


def name_of(note: Note) -> str:
    """The name of the Event for `note`: the same for the same again, so that it is counted and not told twice."""
    return f"{note.ref.name[:_LONGEST_NAME]}.{digest([note.uid, note.reason, note.message])[:16]}"


def event_for(note: Note, version: str) -> Tree:
    """A new Event. `version` is that of the resource's API group."""
    ref = note.ref
    about = {
        "apiVersion": f"{ref.group}/{version}" if ref.group else version,
        "kind": ref.kind,
        "namespace": ref.namespace,
        "name": ref.name,
        "uid": note.uid,
    }
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name_of(note), "namespace": ref.namespace},
        "involvedObject": about,
        "type": note.severity,
        "reason": note.reason,
        "message": note.message,
        "count": note.count,
        "firstTimestamp": note.at,
        "lastTimestamp": note.at,
        "source": {"component": COMPONENT},
        "reportingComponent": COMPONENT,
        "reportingInstance": COMPONENT,
    }


def counted_up(event: ClusterEvent, note: Note) -> Tree:
    """What changes of an Event when the same is told again; refused when somebody else changed it meanwhile."""
    changes: dict[str, Json] = {"count": (event.count or 1) + note.count, "lastTimestamp": note.at}
    return {"metadata": {"resourceVersion": event.metadata.resource_version}, **changes}


def told_by(event: ClusterEvent) -> Told:
    """The note that an Event is, whoever wrote it."""
    about = event.involved_object
    ref = ResourceRef(about.api_version.rpartition("/")[0], about.kind, about.namespace, about.name)
    at = event.last_timestamp or event.event_time or event.first_timestamp or ""
    note = Note(ref, about.uid, event.type, event.reason, event.message, at, event.count or 1)
    version = event.metadata.resource_version
    return Told(note, int(version) if version.isdigit() else 0)
