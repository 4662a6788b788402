"""How often the claims on record are read."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar

from setpoint.engine.context import EngineContext
from setpoint.engine.ports import EVERYTHING, ResourceList, ResourceQuery, Store
from setpoint.engine.step.outcomes import Settled
from setpoint.engine.step.reconcile import step
from setpoint.engine.step.store_decorators import StoreDecorator, StoreWrite
from setpoint.stores.memory import MemoryStore
from tests.engine.clock import FakeClock
from tests.engine.gadget_fixture import gadget
from tests.engine.gadgets import GadgetKind, Service, gadget_ref

T = TypeVar("T")


@dataclass(slots=True)
class _PagedStore(StoreDecorator):
    """Reads a few at a time, as a store that is large does, and notes what is read."""

    behind: Store
    queries: list[ResourceQuery] = field(default_factory=list)

    async def pages(self, query: ResourceQuery = EVERYTHING, size: int = 500) -> AsyncIterator[ResourceList]:
        self.queries.append(query)
        async for page in self.behind.pages(query, 3):
            yield page
            await asyncio.sleep(0)

    async def guard(self, write: StoreWrite, send: Callable[[Store], Awaitable[T]]) -> T:
        return await send(self.behind)


def test_steps_at_the_same_moment_read_the_claims_on_record_once() -> None:
    refs = [gadget_ref(f"g{number}") for number in range(20)]

    async def main() -> tuple[int, int]:
        numbers = iter(range(1000))
        store = _PagedStore(MemoryStore(FakeClock(), lambda: f"uid-{next(numbers)}"))
        kind = GadgetKind(Service())
        engine = EngineContext(store, FakeClock(), {(kind.group, kind.name): kind})
        for ref in refs:
            await store.behind.apply(gadget(ref.name, {"size": 1}))
        outcomes = await asyncio.gather(*(step(ref, engine) for ref in refs))
        return sum(isinstance(one, Settled) for one in outcomes), len(store.queries)

    assert asyncio.run(main()) == (len(refs), 1)
