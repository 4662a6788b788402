"""Event records as Events of the cluster, which `kubectl describe` and `kubectl events` show: written and read back."""

import logging
from dataclasses import dataclass
from typing import Final

import msgspec

from setpoint.clients.kubernetes.client import KubernetesClient
from setpoint.clients.kubernetes.requests import Endpoint, ObjectSelector, PatchType
from setpoint.core.values.canonical import digest
from setpoint.core.values.json_types import Json, JsonObject
from setpoint.engine.ports import EventRecord
from setpoint.engine.resource import ResourceRef
from setpoint.errors import AlreadyExists, RemoteConflict, RemoteError
from setpoint.stores.kubernetes.served_kinds import ClusterScope
from setpoint.stores.kubernetes.write_bodies import ENGINE_WRITE

COMPONENT: Final = "setpoint"
# Names of objects may have 253 characters: room for a dot and sixteen hex digits.
_LONGEST_NAME: Final = 236


class _Metadata(msgspec.Struct, rename="camel", gc=False):
    name: str = ""
    resource_version: str = ""


class _InvolvedObject(msgspec.Struct, rename="camel", gc=False):
    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""


class ClusterEvent(msgspec.Struct, rename="camel", gc=False):
    """The members of an Event that are read."""

    metadata: _Metadata
    involved_object: _InvolvedObject
    type: str = ""
    reason: str = ""
    message: str = ""
    count: int | None = None
    first_timestamp: str | None = None
    last_timestamp: str | None = None
    event_time: str | None = None


decode_event: Final = msgspec.json.Decoder(ClusterEvent).decode


@dataclass(frozen=True, slots=True)
class OrderedEvent:
    """An event record and its order: resource versions of one kind are numbers that grow."""

    event: EventRecord
    order: int


def event_name(note: EventRecord) -> str:
    """The name of the Event for `note`: equal records get the same name, so that they are counted."""
    return f"{note.ref.name[:_LONGEST_NAME]}.{digest([note.uid, note.reason, note.message])[:16]}"


def event_for(note: EventRecord, version: str) -> JsonObject:
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
        "metadata": {"name": event_name(note), "namespace": ref.namespace},
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


def count_patch(event: ClusterEvent, note: EventRecord) -> JsonObject:
    """The patch that counts an equal record; rejected when another writer changed the Event meanwhile."""
    changes: dict[str, Json] = {"count": (event.count or 1) + note.count, "lastTimestamp": note.at}
    return {"metadata": {"resourceVersion": event.metadata.resource_version}, **changes}


def event_record(event: ClusterEvent) -> OrderedEvent:
    """The event record of an Event, also of one that another component wrote."""
    about = event.involved_object
    ref = ResourceRef(about.api_version.rpartition("/")[0], about.kind, about.namespace, about.name)
    at = event.last_timestamp or event.event_time or event.first_timestamp or ""
    note = EventRecord(ref, about.uid, event.type, event.reason, event.message, at, event.count or 1)
    version = event.metadata.resource_version
    return OrderedEvent(note, int(version) if version.isdigit() else 0)


_log: Final = logging.getLogger(__name__)
_EVENTS: Final = Endpoint("", "v1", "events")
_OWN_SOURCE: Final = f"source={COMPONENT}"
# Conflicts with another writer that counts the same Event are rare and short.
_WRITE_ATTEMPTS: Final = 5


class EventRecorder:
    """Writes event records as Events, and reads them back."""

    def __init__(self, client: KubernetesClient, cluster_scope: ClusterScope) -> None:
        self._client = client
        self._scope = cluster_scope

    async def record_event(self, event: EventRecord) -> None:
        """Writes a new Event, or counts an equal one.

        A rejected Event, such as in a namespace that is being deleted, is logged and dropped: the status says the same,
        and the step goes on.
        """
        try:
            await self._write(event)
        except RemoteError as error:
            _log.warning("event not written", extra={"ref": str(event.ref), "reason": event.reason, "why": str(error)})

    async def _write(self, event: EventRecord) -> None:
        place = _EVENTS.named(event_name(event), event.ref.namespace)
        for _ in range(_WRITE_ATTEMPTS):
            raw = await self._client.get(place)
            try:
                if raw is None:
                    await self._client.create(place, event_for(event, self._version_of(event.ref)), ENGINE_WRITE)
                else:
                    await self._client.patch(
                        place, count_patch(decode_event(raw), event), PatchType.MERGE, ENGINE_WRITE
                    )
            except (AlreadyExists, RemoteConflict):
                continue
            return

    async def events(self, ref: ResourceRef | None) -> tuple[EventRecord, ...]:
        """The event records of one resource, or all, oldest first."""
        place = self._scope.namespace if ref is None else ref.namespace
        endpoint = Endpoint("", "v1", "events", place)
        fields = _OWN_SOURCE
        if ref is not None:
            fields = f"{_OWN_SOURCE},involvedObject.kind={ref.kind},involvedObject.name={ref.name}"
        found: list[OrderedEvent] = []
        async for page in self._client.pages(endpoint, ObjectSelector(fields=fields)):
            found = [] if page.is_first else found
            found += [event_record(decode_event(item)) for item in page.items]
        found.sort(key=lambda one: (one.event.at, one.order))
        return tuple(one.event for one in found if ref is None or one.event.ref == ref)

    def _version_of(self, ref: ResourceRef) -> str:
        kind = self._scope.kinds.get((ref.group, ref.kind))
        return "v1" if kind is None else kind.version
