"""A store as it would be with some manifests applied: for plans. Nothing can be written to it."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import NoReturn

from setpoint.engine.ports import EVERYTHING, Event, Lease, Listing, Note, Query, Store
from setpoint.engine.resource import Resource, ResourceRef, Revision, Tree
from setpoint.errors import StoreError


@dataclass(frozen=True, slots=True)
class Drafts:
    """Reads the drafts first, then the store behind them."""

    behind: Store
    resources: Mapping[ResourceRef, Resource]

    @property
    def collects(self) -> bool:
        """As the store does."""
        return self.behind.collects

    async def get(self, ref: ResourceRef) -> Resource | None:
        """The draft, or what the store has."""
        return self.resources.get(ref) or await self.behind.get(ref)

    async def list(self, query: Query = EVERYTHING) -> Listing:
        """What the store has."""
        return await self.behind.list(query)

    def pages(self, query: Query = EVERYTHING, size: int = 500) -> AsyncIterator[Listing]:
        """What the store has."""
        return self.behind.pages(query, size)

    def watch(self, since: Revision, query: Query = EVERYTHING) -> AsyncIterator[Event]:
        """What happens in the store."""
        return self.behind.watch(since, query)

    async def notes(self, ref: ResourceRef | None = None) -> tuple[Note, ...]:
        """What the store has."""
        return await self.behind.notes(ref)

    async def leases(self, prefix: str) -> tuple[Lease, ...]:
        """What the store has."""
        return await self.behind.leases(prefix)

    async def apply(self, manifest: Tree) -> Resource:
        """Refused."""
        _refuse("apply")

    async def create(self, document: Tree) -> Resource:
        """Refused."""
        _refuse("create")

    async def replace(self, seen: Resource, document: Tree) -> Resource:
        """Refused."""
        _refuse("replace")

    async def update_status(self, resource: Resource, status: Tree) -> Resource:
        """Refused."""
        _refuse("update_status")

    async def set_finalizers(self, resource: Resource, finalizers: tuple[str, ...]) -> Resource | None:
        """Refused."""
        _refuse("set_finalizers")

    async def annotate(self, resource: Resource, annotations: Mapping[str, str | None]) -> Resource:
        """Refused."""
        _refuse("annotate")

    async def delete(self, ref: ResourceRef) -> Resource | None:
        """Refused."""
        _refuse("delete")

    async def note(self, note: Note) -> None:
        """Refused."""
        _refuse("note")

    async def acquire(self, name: str, holder: str, seconds: float) -> Lease | None:
        """Refused."""
        _refuse("acquire")

    async def release(self, lease: Lease) -> None:
        """Refused."""
        _refuse("release")

    async def close(self) -> None:
        """The store behind is its opener's to close."""


def _refuse(what: str) -> NoReturn:
    raise StoreError(f"{what}: a plan writes nothing, and this was about to")
