"""Event records as Events of the cluster, which `kubectl describe` and `kubectl events` show: written and read back."""

from typing import Final

import msgspec

from setpoint.clients.kubernetes.client import KubernetesClient
from setpoint.clients.kubernetes.requests import Endpoint, ObjectSelector, PatchType
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import JsonObject
from setpoint.engine.history.memory_history import MemoryHistory
from setpoint.engine.ports import Clock, EventRecord, ResourceUpdate
from setpoint.engine.resource import ResourceRef
from setpoint.errors import AlreadyExists, RemoteConflict
from setpoint.stores.kubernetes.event_queue import EventQueue, QueuedEvent, RecentlyUsed
from setpoint.stores.kubernetes.served_kinds import ClusterScope
from setpoint.stores.kubernetes.write_bodies import ENGINE_WRITE

COMPONENT: Final = "setpoint"


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


def event_for(event: QueuedEvent, version: str) -> JsonObject:
    """A new Event. `version` is that of the resource's API group."""
    note = event.record
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
        "metadata": {"name": event.name, "namespace": ref.namespace},
        "involvedObject": about,
        "type": note.severity,
        "reason": note.reason,
        "message": note.message,
        "count": note.count,
        "firstTimestamp": event.first_at,
        "lastTimestamp": note.at,
        "source": {"component": COMPONENT},
        "reportingComponent": COMPONENT,
        "reportingInstance": COMPONENT,
    }


def count_patch(note: EventRecord, count: int) -> JsonObject:
    """The patch of an Event that was recorded again, `count` times in all; of a combined one, with the newest text."""
    return {"count": count, "lastTimestamp": note.at, "message": note.message}


def event_record(event: ClusterEvent) -> OrderedEvent:
    """The event record of an Event, also of one that another component wrote."""
    about = event.involved_object
    ref = ResourceRef(about.api_version.rpartition("/")[0], about.kind, about.namespace, about.name)
    at = event.last_timestamp or event.event_time or event.first_timestamp or ""
    note = EventRecord(ref, about.uid, event.type, event.reason, event.message, at, event.count or 1)
    version = event.metadata.resource_version
    return OrderedEvent(note, int(version) if version.isdigit() else 0)


_EVENTS: Final = Endpoint("", "v1", "events")
_OWN_SOURCE: Final = f"source={COMPONENT}"


class EventRecorder:
    """Writes event records as Events, behind the work, and reads them back."""

    def __init__(self, client: KubernetesClient, cluster_scope: ClusterScope, clock: Clock) -> None:
        self._client = client
        self._scope = cluster_scope
        self._queue = EventQueue(self._write, clock)
        # How often each Event that this process wrote was recorded.
        self._counts: RecentlyUsed[tuple[str, str], int] = RecentlyUsed()
        # In memory: a cluster has no room for it.
        self.history = MemoryHistory()
        self._clock = clock

    def record_update(self, ref: ResourceRef, update: ResourceUpdate) -> None:
        """Queues the events of an update, and keeps its history."""
        for event in update.events:
            self.record(event)
        if update.history:
            self.history.add(ref, update.history, self._clock.now())

    def record(self, event: EventRecord) -> None:
        """Queues an event: see EventQueue."""
        self._queue.put(event)

    async def close(self) -> None:
        """Sends what is queued, as far as there is time."""
        await self._queue.close()

    async def _write(self, event: QueuedEvent) -> None:
        """Creates the Event, without asking whether it exists; counts one that does."""
        place = _EVENTS.named(event.name, event.record.ref.namespace)
        before = self._counts.get(event.key)
        if before is None:
            try:
                await self._client.create(place, event_for(event, self._version_of(event.record.ref)), ENGINE_WRITE)
                self._counts.put(event.key, event.record.count)
                return
            except AlreadyExists:
                # An earlier process wrote it, or another replica.
                raw = await self._client.get(place)
                before = 0 if raw is None else decode_event(raw).count or 1
        count = before + event.record.count
        try:
            await self._client.patch(place, count_patch(event.record, count), PatchType.MERGE, ENGINE_WRITE)
        except RemoteConflict:
            # API servers forget Events, after an hour as a rule.
            self._counts.drop(event.key)
            await self._client.create(place, event_for(event, self._version_of(event.record.ref)), ENGINE_WRITE)
            count = event.record.count
        self._counts.put(event.key, count)

    async def events(self, ref: ResourceRef | None) -> tuple[EventRecord, ...]:
        """The event records of one resource, or all, oldest first; those that still wait are sent before."""
        await self._queue.flush()
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
