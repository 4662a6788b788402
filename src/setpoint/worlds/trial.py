"""The requests of a step that is only tried: it goes as far as the first that would go out, and nothing does."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from setpoint.clients.http import tap_around
from setpoint.clients.read_only import BlockedWrite, Blocks, ReadOnly, tried_out
from setpoint.core.values import Json
from setpoint.engine.abilities import Stoppable
from setpoint.engine.drafts import Drafts
from setpoint.engine.kind import Sort
from setpoint.engine.owner import Owner
from setpoint.engine.ports import Note
from setpoint.engine.previews import Finding, Previewed, with_cookie
from setpoint.engine.reconcile import step
from setpoint.engine.resource import Resource, ResourceRef, Tree
from setpoint.engine.scene import World
from setpoint.errors import Bug
from setpoint.worlds.snapshot import WAY

_WRITING: Final = (Finding.WRITES, Finding.MASKED)


@dataclass(frozen=True, slots=True)
class Scratch(Drafts):
    """A store for one step: what it notes of its own resource is forgotten, what it writes to others is on record.

    Both are kept as long as the step goes on, which sees what it wrote.
    """

    resources: dict[ResourceRef, Resource]
    blocks: Blocks

    async def update_status(self, resource: Resource, status: Tree) -> Resource:
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

    async def note(self, note: Note) -> None:
        """Nobody reads it."""

    async def create(self, document: Tree) -> Resource:
        """On record."""
        made = Resource({**document, "metadata": {"resourceVersion": "0", "uid": "", **_metadata(document)}})
        self._tell("create", made.ref, dict(document))
        return self._kept(made.document)

    async def replace(self, seen: Resource, document: Tree) -> Resource:
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
        _ = self.blocks.stop(WAY, verb, str(ref), body)

    def _with(self, resource: Resource, metadata: Mapping[str, Json]) -> Resource:
        return self._kept({**resource.document, "metadata": {**_metadata(resource.document), **metadata}})

    def _kept(self, document: Tree) -> Resource:
        resource = Resource(document)
        self.resources[resource.ref] = resource
        return resource


def _metadata(document: Tree) -> dict[str, Any]:
    found = document.get("metadata")
    assert isinstance(found, Mapping)
    return dict(found)


def _can_be_stopped(sort: Sort) -> bool:
    """Owners write to the store alone, and of kinds we know by their word."""
    return isinstance(sort, Owner) or (isinstance(sort, Stoppable) and sort.writes_through_clients)


async def requests_of(found: Previewed, world: World, blocks: Blocks) -> tuple[BlockedWrite, ...]:
    """What would be sent for it, in order, up to the first request that an answer is needed to go on from."""
    resource = await world.store.get(found.ref) if found.finding in _WRITING else None
    if resource is None or not _can_be_stopped(world.sort_of(resource)):
        return ()
    if not isinstance(tap_around(), ReadOnly):
        raise Bug(f"{found.ref}: a step can be tried only where writes are stopped, and here they are not")
    start = with_cookie(resource, None) if found.finding is Finding.MASKED else resource
    scratch = Scratch(world.store, {found.ref: start}, blocks)
    with tried_out() as requests:
        await step(found.ref, replace(world, store=scratch))
    return tuple(requests)
