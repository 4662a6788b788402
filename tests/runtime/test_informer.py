"""The informer reports every change once: lists, broken watches, relists."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from setpoint.engine.ports import EVERYTHING, ResourceChange, ResourceQuery
from setpoint.engine.resource import Revision
from setpoint.errors import RevisionExpired, StoreError
from setpoint.runtime.index import ResourceIndex
from setpoint.runtime.informer import Informer, ResourceEvent
from setpoint.stores.memory import MemoryStore
from simulation.virtual_time import VirtualClock, run
from tests.engine.gadget_fixture import gadget
from tests.engine.gadgets import GadgetKind, Service, gadget_ref


class BreakingStore(MemoryStore):
    """A store that breaks its watches after some events, as `breaks` says."""

    def __init__(self) -> None:
        numbers = itertools.count(1)
        super().__init__(VirtualClock(), lambda: f"uid-{next(numbers)}")
        self.breaks: list[tuple[int, StoreError]] = []
        self.watches: list[Revision] = []

    async def watch(self, since: Revision, query: ResourceQuery = EVERYTHING) -> AsyncIterator[ResourceChange]:
        self.watches.append(since)
        limit = self.breaks.pop(0) if self.breaks else None
        events = super().watch(since, query)
        sent = 0
        while limit is None or sent < limit[0]:
            yield await anext(events)
            sent += 1
        raise limit[1]


@dataclass(slots=True)
class InformerHarness:
    """A running informer and its store."""

    store: BreakingStore = field(default_factory=BreakingStore)
    events: list[ResourceEvent] = field(default_factory=list)
    index: ResourceIndex = field(
        default_factory=lambda: ResourceIndex({("test.setpoint.dev", "Gadget"): GadgetKind(Service())})
    )

    async def put(self, name: str, size: int = 1, **spec: object) -> None:
        await self.store.apply(gadget(name, {"size": size, **spec}))

    def summary(self) -> list[tuple[str, str]]:
        """The type and name of each event."""
        return [(_change_type(one), one.ref.name) for one in self.events]


def _change_type(event: ResourceEvent) -> str:
    if event.after is None:
        return "gone"
    if event.before is None:
        return "first" if event.is_initial else "new"
    return "changed"


def _inform(scenario: Callable[[InformerHarness], Awaitable[None]], *breaks: tuple[int, StoreError]) -> InformerHarness:
    harness = InformerHarness()
    harness.store.breaks = list(breaks)

    async def main() -> None:
        await harness.put("old")
        informer = Informer(harness.store, harness.index, VirtualClock(), harness.events.append)
        task = asyncio.create_task(informer.run())
        await informer.synced.wait()
        await scenario(harness)
        await asyncio.sleep(300)
        task.cancel()
        await asyncio.wait([task])

    run(main())
    return harness


async def _some_changes(harness: InformerHarness) -> None:
    await harness.put("a")
    await asyncio.sleep(1)
    await harness.put("a", 2)
    await asyncio.sleep(1)
    await harness.store.delete(gadget_ref("old"))
    await asyncio.sleep(1)


ALL = [("first", "old"), ("new", "a"), ("changed", "a"), ("gone", "old")]


def test_every_change_is_reported_once_and_in_order() -> None:
    harness = _inform(_some_changes)

    assert harness.summary() == ALL
    assert len(harness.store.watches) == 1


def test_a_broken_watch_resumes_at_its_last_revision() -> None:
    harness = _inform(_some_changes, (1, StoreError("cut")), (0, StoreError("cut")), (1, StoreError("cut")))

    assert harness.summary() == ALL
    assert harness.store.watches[1] == harness.store.watches[2] != harness.store.watches[0]


def test_an_expired_revision_causes_a_relist_that_reports_the_differences() -> None:
    async def behind_its_back(harness: InformerHarness) -> None:
        await harness.put("a")
        await asyncio.sleep(0.01)
        # The watch has just broken: no watch sees these changes.
        await harness.put("a", 2)
        await harness.put("b")
        await harness.put("brief")
        await harness.store.delete(gadget_ref("brief"))
        await harness.store.delete(gadget_ref("old"))

    harness = _inform(behind_its_back, (1, RevisionExpired("too old")))

    assert harness.summary() == [("first", "old"), ("new", "a"), ("changed", "a"), ("new", "b"), ("gone", "old")]


def test_the_same_name_with_another_uid_is_another_resource() -> None:
    async def anew(harness: InformerHarness) -> None:
        await harness.store.delete(gadget_ref("old"))
        await harness.put("old")

    harness = _inform(anew, (0, RevisionExpired("too old")))

    first, again = harness.events
    assert first.after is not None
    assert again.after is not None
    assert first.after.uid != again.after.uid


def test_watches_of_an_unavailable_store_are_retried_with_backoff() -> None:
    async def wait(harness: InformerHarness) -> None:
        await asyncio.sleep(3_000)

    harness = _inform(wait, *[(0, StoreError("away"))] * 1_000)

    assert 20 < len(harness.store.watches) < 80


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=8), st.lists(st.integers(0, 9), max_size=20))
def test_the_index_ends_equal_to_the_store(breaks: list[tuple[int, bool]], changes: list[int]) -> None:
    async def change(harness: InformerHarness) -> None:
        for number in changes:
            name, size = f"g{number % 3}", number
            if number > 6:
                await harness.store.delete(gadget_ref(name))
            else:
                await harness.put(name, size, **({"parentRef": f"g{number % 2}"} if number % 4 == 1 else {}))
            await asyncio.sleep(0.3 * (number % 2))
        await asyncio.sleep(1_000)

    errors = [(after, RevisionExpired("old") if expired else StoreError("cut")) for after, expired in breaks]
    harness = _inform(change, *errors)
    kept = {ref: harness.index.revision(ref) for ref in harness.index}

    async def stored() -> dict[object, object]:
        return {one.ref: one.revision for one in (await harness.store.list()).resources}

    assert kept == run(stored())
    summary = {one.ref for one in harness.events if one.after is not None}
    assert set(kept) <= summary
    waiting = {ref: set(harness.index.dependants_of(ref)) for ref in (gadget_ref("g0"), gadget_ref("g1"))}
    dependencies = {ref: head.dependencies for ref in harness.index if (head := harness.index.get(ref)) is not None}
    assert waiting == {
        dependency: {ref for ref, found in dependencies.items() if dependency in found} for dependency in waiting
    }
