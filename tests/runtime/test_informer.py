"""Hearing of every change once: lists, watches that break off, lists again."""

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
from tests.engine.gadget_fixture import gadget
from tests.engine.gadgets import GadgetKind, Service, gadget_ref
from tests.runtime.virtual_time import VirtualClock, run


class Flaky(MemoryStore):
    """A store whose watches break off after some events, with what is next in `breaks`."""

    def __init__(self) -> None:
        numbers = itertools.count(1)
        super().__init__(VirtualClock(), lambda: f"uid-{next(numbers)}")
        self.breaks: list[tuple[int, StoreError]] = []
        self.watches: list[Revision] = []

    async def watch(self, since: Revision, query: ResourceQuery = EVERYTHING) -> AsyncIterator[ResourceChange]:
        self.watches.append(since)
        limit = self.breaks.pop(0) if self.breaks else None
        events = super().watch(since, query)
        heard = 0
        while limit is None or heard < limit[0]:
            yield await anext(events)
            heard += 1
        raise limit[1]


@dataclass(slots=True)
class Desk:
    """An informer at work."""

    store: Flaky = field(default_factory=Flaky)
    news: list[ResourceEvent] = field(default_factory=list)
    index: ResourceIndex = field(
        default_factory=lambda: ResourceIndex({("test.setpoint.dev", "Gadget"): GadgetKind(Service())})
    )

    async def put(self, name: str, size: int = 1, **spec: object) -> None:
        await self.store.apply(gadget(name, {"size": size, **spec}))

    def told(self) -> list[tuple[str, str]]:
        """What was heard, in a word."""
        return [(_word(one), one.ref.name) for one in self.news]


def _word(news: ResourceEvent) -> str:
    if news.after is None:
        return "gone"
    if news.before is None:
        return "first" if news.is_initial else "new"
    return "changed"


def _listen(scenario: Callable[[Desk], Awaitable[None]], *breaks: tuple[int, StoreError]) -> Desk:
    desk = Desk()
    desk.store.breaks = list(breaks)

    async def main() -> None:
        await desk.put("old")
        informer = Informer(desk.store, desk.index, VirtualClock(), desk.news.append)
        task = asyncio.create_task(informer.run())
        await informer.synced.wait()
        await scenario(desk)
        await asyncio.sleep(300)
        task.cancel()
        await asyncio.wait([task])

    run(main())
    return desk


async def _some_changes(desk: Desk) -> None:
    await desk.put("a")
    await asyncio.sleep(1)
    await desk.put("a", 2)
    await asyncio.sleep(1)
    await desk.store.delete(gadget_ref("old"))
    await asyncio.sleep(1)


ALL = [("first", "old"), ("new", "a"), ("changed", "a"), ("gone", "old")]


def test_everything_is_heard_once_and_in_order() -> None:
    desk = _listen(_some_changes)

    assert desk.told() == ALL
    assert len(desk.store.watches) == 1


def test_a_watch_that_breaks_off_is_taken_up_where_it_ended() -> None:
    desk = _listen(_some_changes, (1, StoreError("cut")), (0, StoreError("cut")), (1, StoreError("cut")))

    assert desk.told() == ALL
    assert desk.store.watches[1] == desk.store.watches[2] != desk.store.watches[0]


def test_what_is_no_longer_on_record_is_found_by_listing_again() -> None:
    async def behind_its_back(desk: Desk) -> None:
        await desk.put("a")
        await asyncio.sleep(0.01)
        # The watch has just broken off: all this happens while nobody listens.
        await desk.put("a", 2)
        await desk.put("b")
        await desk.put("brief")
        await desk.store.delete(gadget_ref("brief"))
        await desk.store.delete(gadget_ref("old"))

    desk = _listen(behind_its_back, (1, RevisionExpired("too old")))

    assert desk.told() == [("first", "old"), ("new", "a"), ("changed", "a"), ("new", "b"), ("gone", "old")]


def test_the_same_name_with_another_uid_is_another_resource() -> None:
    async def anew(desk: Desk) -> None:
        await desk.store.delete(gadget_ref("old"))
        await desk.put("old")

    desk = _listen(anew, (0, RevisionExpired("too old")))

    first, again = desk.news
    assert first.after is not None
    assert again.after is not None
    assert first.after.uid != again.after.uid


def test_a_store_that_stays_away_is_not_asked_in_a_hurry() -> None:
    async def wait(desk: Desk) -> None:
        await asyncio.sleep(3_000)

    desk = _listen(wait, *[(0, StoreError("away"))] * 1_000)

    assert 20 < len(desk.store.watches) < 80


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=8), st.lists(st.integers(0, 9), max_size=20))
def test_in_the_end_the_heads_are_those_of_the_store(breaks: list[tuple[int, bool]], changes: list[int]) -> None:
    async def change(desk: Desk) -> None:
        for number in changes:
            name, size = f"g{number % 3}", number
            if number > 6:
                await desk.store.delete(gadget_ref(name))
            else:
                await desk.put(name, size, **({"parentRef": f"g{number % 2}"} if number % 4 == 1 else {}))
            await asyncio.sleep(0.3 * (number % 2))
        await asyncio.sleep(1_000)

    errors = [(after, RevisionExpired("old") if expired else StoreError("cut")) for after, expired in breaks]
    desk = _listen(change, *errors)
    kept = {ref: desk.index.revision(ref) for ref in desk.index}

    async def stored() -> dict[object, object]:
        return {one.ref: one.revision for one in (await desk.store.list()).resources}

    assert kept == run(stored())
    told = {one.ref for one in desk.news if one.after is not None}
    assert set(kept) <= told
    waiting = {ref: set(desk.index.dependants_of(ref)) for ref in (gadget_ref("g0"), gadget_ref("g1"))}
    dependencies = {ref: head.dependencies for ref in desk.index if (head := desk.index.get(ref)) is not None}
    assert waiting == {
        dependency: {ref for ref, found in dependencies.items() if dependency in found} for dependency in waiting
    }
