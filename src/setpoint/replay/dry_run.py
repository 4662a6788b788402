"""Dry run of a step: it runs up to its first request that would write, and that request is recorded, not sent."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from setpoint.clients.http import current_interceptor
from setpoint.clients.write_guard import BlockedWrite, BlockedWrites, WriteGuard, capture_writes
from setpoint.core.values.json_types import Json, JsonObject
from setpoint.engine.capabilities import SupportsWriteGuard
from setpoint.engine.context import EngineContext
from setpoint.engine.kind import ResourceType
from setpoint.engine.owner import Owner
from setpoint.engine.ports import ChildWrite, EventRecord
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
    blocked_writes: BlockedWrites

    async def update(
        self,
        resource: Resource,
        *,
        status: JsonObject | None = None,
        finalizers: tuple[str, ...] | None = None,
        annotations: Mapping[str, str | None] | None = None,
        events: Sequence[EventRecord] = (),
    ) -> Resource | None:
        """Kept for the step alone; the events are dropped."""
        metadata = _metadata(resource.document)
        if finalizers is not None:
            metadata["finalizers"] = list(finalizers)
        if annotations is not None:
            edited = {**resource.annotations, **annotations}
            metadata["annotations"] = {name: text for name, text in edited.items() if text is not None}
        document = {**resource.document, "metadata": metadata}
        after = self._kept(document if status is None else {**document, "status": dict(status)})
        is_gone = resource.is_deleting and finalizers is not None and not finalizers
        return None if is_gone else after

    async def write_children(self, writes: Sequence[ChildWrite]) -> tuple[Resource, ...]:
        """On record, one after the other."""
        return tuple(
            [
                await (self.create(one.document) if one.seen is None else self.replace(one.seen, one.document))
                for one in writes
            ]
        )

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
        _ = self.blocked_writes.stop(STORE_CHANNEL, verb, str(ref), body)

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
    found: PreviewResult, engine: EngineContext, blocked_writes: BlockedWrites
) -> tuple[BlockedWrite, ...]:
    """What would be sent for it, in order, up to the first request that an answer is needed to go on from."""
    resource = await engine.store.get(found.ref) if found.finding in _WRITING_FINDINGS else None
    if resource is None or not _supports_dry_run(engine.resource_type_of(resource)):
        return ()
    if not isinstance(current_interceptor(), WriteGuard):
        raise Bug(f"{found.ref}: a step can be tried only where writes are stopped, and here they are not")
    start = with_cookie(resource, None) if found.finding is PreviewFinding.MASKED else resource
    scratch = WriteCaptureStore(engine.store, {found.ref: start}, blocked_writes)
    with capture_writes() as requests:
        await step(found.ref, replace(engine, store=scratch))
    return tuple(requests)
