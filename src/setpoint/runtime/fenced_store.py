"""A store in which a step writes only what it has a permit for."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import TypeVar

from setpoint.clients.permits import Attempt, seconds_for
from setpoint.engine.ports import EVERYTHING, Event, Lease, Listing, Note, Query, Store
from setpoint.engine.resource import Resource, ResourceRef, Revision, Tree
from setpoint.errors import LeaseLost

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class FencedStore:
    """The store behind it. Each write asks the permits around it first, and is given up when its time is over.

    A store behind HTTP asks them as well, for each request. Whoever writes outside of a step needs no permit.
    """

    behind: Store

    @property
    def collects(self) -> bool:
        """See Store."""
        return self.behind.collects

    async def get(self, ref: ResourceRef) -> Resource | None:
        """See Store."""
        return await self.behind.get(ref)

    async def list(self, query: Query = EVERYTHING) -> Listing:
        """See Store."""
        return await self.behind.list(query)

    def pages(self, query: Query = EVERYTHING, size: int = 500) -> AsyncIterator[Listing]:
        """See Store."""
        return self.behind.pages(query, size)

    def watch(self, since: Revision, query: Query = EVERYTHING) -> AsyncIterator[Event]:
        """See Store."""
        return self.behind.watch(since, query)

    async def notes(self, ref: ResourceRef | None = None) -> tuple[Note, ...]:
        """See Store."""
        return await self.behind.notes(ref)

    async def apply(self, manifest: Tree) -> Resource:
        """See Store."""
        return await _fenced(Attempt("apply", _named(manifest)), lambda: self.behind.apply(manifest))

    async def create(self, document: Tree) -> Resource:
        """See Store."""
        return await _fenced(Attempt("create", _named(document)), lambda: self.behind.create(document))

    async def replace(self, seen: Resource, document: Tree) -> Resource:
        """See Store."""
        return await _fenced(Attempt("replace", str(seen.ref)), lambda: self.behind.replace(seen, document))

    async def update_status(self, resource: Resource, status: Tree) -> Resource:
        """See Store."""
        attempt = Attempt("update_status", str(resource.ref))
        return await _fenced(attempt, lambda: self.behind.update_status(resource, status))

    async def set_finalizers(self, resource: Resource, finalizers: tuple[str, ...]) -> Resource | None:
        """See Store."""
        attempt = Attempt("set_finalizers", str(resource.ref))
        return await _fenced(attempt, lambda: self.behind.set_finalizers(resource, finalizers))

    async def annotate(self, resource: Resource, annotations: Mapping[str, str | None]) -> Resource:
        """See Store."""
        attempt = Attempt("annotate", str(resource.ref))
        return await _fenced(attempt, lambda: self.behind.annotate(resource, annotations))

    async def delete(self, ref: ResourceRef) -> Resource | None:
        """See Store."""
        return await _fenced(Attempt("delete", str(ref)), lambda: self.behind.delete(ref))

    async def note(self, note: Note) -> None:
        """See Store."""
        return await _fenced(Attempt("note", str(note.ref)), lambda: self.behind.note(note))

    async def acquire(self, name: str, holder: str, seconds: float) -> Lease | None:
        """See Store. Permits come from leases: they cannot be needed for one."""
        return await self.behind.acquire(name, holder, seconds)

    async def release(self, lease: Lease) -> None:
        """See Store. The same."""
        return await self.behind.release(lease)

    async def leases(self, prefix: str) -> tuple[Lease, ...]:
        """See Store."""
        return await self.behind.leases(prefix)

    async def close(self) -> None:
        """See Store."""
        await self.behind.close()


async def _fenced(attempt: Attempt, write: Callable[[], Awaitable[T]]) -> T:
    seconds = seconds_for(attempt)
    if not isfinite(seconds):
        return await write()
    try:
        async with asyncio.timeout(seconds):
            return await write()
    except TimeoutError as error:
        raise LeaseLost(f"{attempt}: no answer while the lease was ours; its next holder goes on") from error


def _named(manifest: Tree) -> str:
    metadata = manifest.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return f"{manifest.get('kind')} {name}"
