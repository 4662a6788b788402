"""A store as it was at one moment: to record from, and to play back. Nothing can be written to it."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NoReturn

from setpoint.clients.read_only import Blocks
from setpoint.core.values import Json
from setpoint.engine.ports import EVERYTHING, Event, Lease, Listing, Note, Query, Store
from setpoint.engine.resource import Resource, ResourceRef, Revision, Tree
from setpoint.errors import NotRecorded, StoreError

WAY: Final = "store"


@dataclass(slots=True)
class Snapshot:
    """All that a store had. What it did not list is asked for `behind` it, once; without one, NotRecorded is raised.

    `absent` are those that were asked for and not there. `is_whole`: the store lists all that there is.
    """

    resources: dict[ResourceRef, Resource]
    revision: Revision
    blocks: Blocks
    collects: bool = False
    is_whole: bool = True
    absent: set[ResourceRef] = field(default_factory=set)
    # Those of the resources that the store did not list.
    besides: set[ResourceRef] = field(default_factory=set)
    behind: Store | None = None

    async def get(self, ref: ResourceRef) -> Resource | None:
        """What it was then."""
        found = self.resources.get(ref)
        if found is not None or ref in self.absent or self.is_whole:
            return found
        if self.behind is None:
            raise NotRecorded(f"{ref} was not asked for when this world was recorded: record it again")
        found = await self.behind.get(ref)
        if found is None:
            self.absent.add(ref)
        else:
            self.resources[ref] = found
            self.besides.add(ref)
        return found

    async def list(self, query: Query = EVERYTHING) -> Listing:
        """Those that the store listed then."""
        found = (one for ref, one in sorted(self.resources.items()) if ref not in self.besides and _fits(one, query))
        return Listing(tuple(found), self.revision)

    async def pages(self, query: Query = EVERYTHING, size: int = 500) -> AsyncIterator[Listing]:
        """The same in pieces."""
        whole = (await self.list(query)).resources
        for start in range(0, max(1, len(whole)), size):
            yield Listing(whole[start : start + size], self.revision)

    def watch(self, since: Revision, query: Query = EVERYTHING) -> AsyncIterator[Event]:
        """Nothing ever happens here."""
        raise StoreError("a moment that is past does not change: there is nothing to watch")

    async def notes(self, ref: ResourceRef | None = None) -> tuple[Note, ...]:
        """None: they are no part of a plan."""
        return ()

    async def leases(self, prefix: str) -> tuple[Lease, ...]:
        """None: nobody works here."""
        return ()

    async def apply(self, manifest: Tree) -> Resource:
        """Blocked."""
        self._block("apply", str(Resource(manifest).ref), dict(manifest))

    async def create(self, document: Tree) -> Resource:
        """Blocked."""
        self._block("create", str(Resource(document).ref), dict(document))

    async def replace(self, seen: Resource, document: Tree) -> Resource:
        """Blocked."""
        self._block("replace", str(seen.ref), dict(document))

    async def update_status(self, resource: Resource, status: Tree) -> Resource:
        """Blocked."""
        self._block("update_status", str(resource.ref), {"status": dict(status)})

    async def set_finalizers(self, resource: Resource, finalizers: tuple[str, ...]) -> Resource | None:
        """Blocked."""
        self._block("set_finalizers", str(resource.ref), {"metadata": {"finalizers": list(finalizers)}})

    async def annotate(self, resource: Resource, annotations: Mapping[str, str | None]) -> Resource:
        """Blocked."""
        self._block("annotate", str(resource.ref), {"metadata": {"annotations": dict(annotations)}})

    async def delete(self, ref: ResourceRef) -> Resource | None:
        """Blocked."""
        self._block("delete", str(ref))

    async def note(self, note: Note) -> None:
        """Blocked."""
        self._block("note", str(note.ref), {"reason": note.reason, "message": note.message})

    async def acquire(self, name: str, holder: str, seconds: float) -> Lease | None:
        """Blocked."""
        self._block("acquire", name)

    async def release(self, lease: Lease) -> None:
        """Blocked."""
        self._block("release", lease.name)

    async def close(self) -> None:
        """The store behind is its opener's to close."""

    def _block(self, verb: str, target: str, body: Json = None) -> NoReturn:
        raise self.blocks.stop(WAY, verb, target, body)


async def snapshot_of(store: Store, blocks: Blocks, *, is_whole: bool) -> Snapshot:
    """The store as it is now; what it does not list is read when it is asked for."""
    listing = await store.list(EVERYTHING)
    resources = {one.ref: one for one in listing.resources}
    return Snapshot(resources, listing.revision, blocks, store.collects, is_whole, behind=store)


def _fits(resource: Resource, query: Query) -> bool:
    ref = resource.ref
    return (
        query.group in (None, ref.group)
        and query.kind in (None, ref.kind)
        and query.namespace in (None, ref.namespace)
        and all(resource.labels.get(key) == text for key, text in query.labels.items())
    )
