"""The overlay store: some resources replaced, and no writes. Previews read through it."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from setpoint.engine.ports import Store
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.engine.store_decorators.guarded_writes import StoreDecorator, StoreWrite, T
from setpoint.errors import StoreError


@dataclass(frozen=True, slots=True)
class OverlayStore(StoreDecorator):
    """A store with some resources replaced: reads them first, then the store behind. Writes are refused."""

    behind: Store
    resources: Mapping[ResourceRef, Resource]

    async def get(self, ref: ResourceRef) -> Resource | None:
        """The replaced resource, or that of the store."""
        return self.resources.get(ref) or await self.behind.get(ref)

    async def guard(self, write: StoreWrite, send: Callable[[Store], Awaitable[T]]) -> T:
        """Refused."""
        raise StoreError(f"{write.verb}: a plan writes nothing, and this was about to")
