"""Dry run of a step: it runs up to its first request that would write, and that request is recorded, not sent."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from setpoint.clients.http import current_interceptor
from setpoint.clients.write_guard import BlockedWrite, BlockedWrites, WriteGuard, capture_writes
from setpoint.core.values.json_types import Json, JsonObject
from setpoint.engine.capabilities import SupportsWriteGuard
from setpoint.engine.context import EngineContext
from setpoint.engine.kind import ResourceType
from setpoint.engine.owner import Owner
from setpoint.engine.ports import EventRecord
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.engine.step.preview import OverlayStore, PreviewFinding, PreviewResult, with_cookie
from setpoint.engine.step.reconcile import step
from setpoint.errors import Bug
from setpoint.replay.snapshot import STORE_CHANNEL

_WRITING_FINDINGS: Final = (PreviewFinding.WRITES, PreviewFinding.MASKED)


@dataclass(frozen=True, slots=True)
class WriteCaptureStore(OverlayStore):
    """A store for one step: what it notes of its own resource is forgotten, what it writes to others is on record.

    Both are kept as long as the step goes on, which sees what it wrote.
    """

    resources: dict[ResourceRef, Resource]
    blocks: BlockedWrites

    async def update_status(self, resource: Resource, status: JsonObject) -> Resource:
        """Noted."""
        return self._kept({**resource.document, "status": dict(status)})

    async def set_finalizers(self, resource: Resource, finalizers: tuple[str, ...]) -> Resource | None:
        """Noted."""
        held = self._with(resource, {"finalizers": list(finalizers)})
        return None if resource.is_deleting and not finalizers else held

    async def annotate(self, resource: Resource, annotations: Mapping[str, str | None]) -> Resource:
        """Noted."""
        said = {**resource.annotations, **annotations}
        return self._with(resource, {"annotations": {name: text for name, text in said.items() if text is not None}})

    async def note(self, note: EventRecord) -> None:
        """Nobody reads it."""

    async def create(self, document: JsonObject) -> Resource:
        """On record."""
        made = Resource({**document, "metadata": {"resourceVersion": "0", "uid": "", **_metadata(document)}})
        self._tell("create", made.ref, dict(document))
        return self._kept(made.document)

    async def replace(self, seen: Resource, document: JsonObject) -> Resource:
        """On record."""
        self._tell("replace", seen.ref, dict(document))
        metadata = {**_metadata(seen.document), **_metadata(document)}
        return self._kept({**document, "metadata": metadata, "status": dict(seen.status)})

    async def delete(self, ref: ResourceRef) -> Resource | None:
        """On record."""
        self._tell("delete", ref)
        return await self.get(ref)

    def _tell(self, verb: str, ref: ResourceRef, body: Json = None) -> None:
        # What to raise is of no use: in here it may go on as if it were done.
        _ = self.blocks.stop(STORE_CHANNEL, verb, str(ref), body)

    def _with(self, resource: Resource, metadata: Mapping[str, Json]) -> Resource:
        return self._kept({**resource.document, "metadata": {**_metadata(resource.document), **metadata}})

    def _kept(self, document: JsonObject) -> Resource:
        resource = Resource(document)
        self.resources[resource.ref] = resource
        return resource


def _metadata(document: JsonObject) -> dict[str, Any]:
    found = document.get("metadata")
    assert isinstance(found, Mapping)
    return dict(found)


def _supports_dry_run(sort: ResourceType) -> bool:
    """Owners write to the store alone, and of kinds we know by their word."""
    return isinstance(sort, Owner) or (isinstance(sort, SupportsWriteGuard) and sort.writes_through_clients)


async def dry_run_requests(
    found: PreviewResult, engine: EngineContext, blocks: BlockedWrites
) -> tuple[BlockedWrite, ...]:
    """What would be sent for it, in order, up to the first request that an answer is needed to go on from."""
    resource = await engine.store.get(found.ref) if found.finding in _WRITING_FINDINGS else None
    if resource is None or not _supports_dry_run(engine.resource_type_of(resource)):
        return ()
    if not isinstance(current_interceptor(), WriteGuard):
        raise Bug(f"{found.ref}: a step can be tried only where writes are stopped, and here they are not")
    start = with_cookie(resource, None) if found.finding is PreviewFinding.MASKED else resource
    scratch = WriteCaptureStore(engine.store, {found.ref: start}, blocks)
    with capture_writes() as requests:
        await step(found.ref, replace(engine, store=scratch))
    return tuple(requests)
