"""Dry run of a step: it runs up to its first request that would write, and that request is recorded, not sent."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from setpoint.clients.http import current_interceptor
from setpoint.clients.write_guard import BlockedWrite, BlockedWrites, WriteGuard, capture_writes
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import Json, JsonObject
from setpoint.engine.capabilities import SupportsWriteGuard
from setpoint.engine.context import EngineContext
from setpoint.engine.kind import ResourceType
from setpoint.engine.owner import Owner
from setpoint.engine.ports import ChildWrite, EventRecord, ResourceUpdate
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.engine.step.preview import PreviewFinding, PreviewResult, with_cookie
from setpoint.engine.step.reconcile import step
from setpoint.engine.step.store_decorators import OverlayStore
from setpoint.errors import Bug
from setpoint.replay.snapshot import STORE_CHANNEL

_WRITING_FINDINGS: Final = (PreviewFinding.WRITES, PreviewFinding.MASKED)


@dataclass(frozen=True, slots=True)
class WriteCaptureStore(OverlayStore):
    """A store for the dry run of one step: writes go to memory, and writes to children are captured.

    The step reads back what it wrote; nothing outlives it.
    """

    resources: dict[ResourceRef, Resource]
    blocked_writes: BlockedWrites

    async def update(self, resource: Resource, update: ResourceUpdate) -> Resource | None:
        """Kept in memory; the events are dropped."""
        metadata = _metadata(resource.document)
        if update.finalizers is not None:
            metadata["finalizers"] = list(update.finalizers)
        if update.annotations is not None:
            edited = {**resource.annotations, **update.annotations}
            metadata["annotations"] = {name: text for name, text in edited.items() if text is not None}
        document = {**resource.document, "metadata": metadata}
        after = self._store(document if update.status is None else {**document, "status": dict(update.status)})
        is_gone = resource.is_deleting and update.finalizers is not None and not update.finalizers
        return None if is_gone else after

    async def write_children(self, writes: Sequence[ChildWrite]) -> tuple[Resource, ...]:
        """Captured, one after the other."""
        return tuple(
            [
                await (self.create(one.document) if one.seen is None else self.replace(one.seen, one.document))
                for one in writes
            ]
        )

    async def record_event(self, event: EventRecord) -> None:
        """Dropped."""

    async def create(self, document: JsonObject) -> Resource:
        """Captured."""
        made = Resource({**document, "metadata": {"resourceVersion": "0", "uid": "", **_metadata(document)}})
        self._capture("create", made.ref, dict(document))
        return self._store(made.document)

    async def replace(self, seen: Resource, document: JsonObject) -> Resource:
        """Captured."""
        self._capture("replace", seen.ref, dict(document))
        metadata = {**_metadata(seen.document), **_metadata(document)}
        return self._store({**document, "metadata": metadata, "status": dict(seen.status)})

    async def delete(self, ref: ResourceRef) -> Resource | None:
        """Captured."""
        self._capture("delete", ref)
        return await self.get(ref)

    def _capture(self, verb: str, ref: ResourceRef, body: Json = None) -> None:
        # The error is not raised: the step goes on as if the write had succeeded.
        _ = self.blocked_writes.stop(STORE_CHANNEL, verb, str(ref), body)

    def _store(self, document: JsonObject) -> Resource:
        resource = Resource(document)
        self.resources[resource.ref] = resource
        return resource


def _metadata(document: JsonObject) -> dict[str, Any]:
    metadata = document.get("metadata")
    assert isinstance(metadata, Mapping)
    return dict(metadata)


def _supports_dry_run(resource_type: ResourceType) -> bool:
    """Whether every write can be stopped: owners write to the store alone, and kinds say that they use our clients."""
    return isinstance(resource_type, Owner) or (
        isinstance(resource_type, SupportsWriteGuard) and resource_type.writes_through_clients
    )


async def dry_run_requests(
    preview: PreviewResult, engine: EngineContext, blocked_writes: BlockedWrites
) -> tuple[BlockedWrite, ...]:
    """The requests that a step would send, in order, up to the first one whose response the step needs."""
    resource = await engine.store.get(preview.ref) if preview.finding in _WRITING_FINDINGS else None
    if resource is None or not _supports_dry_run(engine.resource_type_of(resource)):
        return ()
    if not isinstance(current_interceptor(), WriteGuard):
        raise Bug(f"{preview.ref}: a step can be tried only where writes are stopped, and here they are not")
    start = with_cookie(resource, None) if preview.finding is PreviewFinding.MASKED else resource
    store = WriteCaptureStore(engine.store, {preview.ref: start}, blocked_writes)
    with capture_writes() as requests:
        await step(preview.ref, replace(engine, store=store))
    return tuple(requests)
