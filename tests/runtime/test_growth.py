"""What one event costs does not grow with the number of resources: operations are counted, never time."""

import asyncio
import gc
import itertools
from collections.abc import Collection, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.core.values.json_types import JsonObject
from setpoint.engine.context import EngineContext
from setpoint.engine.resource import ResourceRef
from setpoint.runtime.index import ResourceIndex
from setpoint.runtime.manager import REFS_BEFORE_YIELD, Manager, freeze_index
from setpoint.runtime.sharding.replica import ControllerReplica
from setpoint.runtime.workqueue.queue import QueueItem, WorkQueue
from setpoint.runtime.workqueue.scheduling import Priority
from setpoint.runtime.workqueue.statistics import QueueSnapshot
from setpoint.stores.memory import MemoryStore
from simulation.virtual_time import VirtualClock, run
from tests.engine.gadget_fixture import gadget
from tests.engine.gadgets import GadgetKind, Service, gadget_ref
from tests.runtime.manager_harness import RecordingMetrics

# --- The work queue ---------------------------------------------------------------------------------------------------


class CountedTime(float):
    """A time that counts the differences that are taken of it."""

    taken = 0

    def __sub__(self, other: float) -> float:
        CountedTime.taken += 1
        return float(self) - other

    def __rsub__(self, other: float) -> float:
        CountedTime.taken += 1
        return other - float(self)


class CountedClock(VirtualClock):
    """The virtual time, as a number that counts."""

    def monotonic(self) -> float:
        return CountedTime(super().monotonic())


async def _snapshot_with(processing: int) -> int:
    """How many differences a snapshot takes while so many keys are processed."""
    queue: WorkQueue[int] = WorkQueue(CountedClock())
    for key in range(processing):
        queue.add(key, Priority.RESYNC, "resync")
        await queue.get()
    CountedTime.taken = 0
    assert queue.snapshot().processing == processing
    return CountedTime.taken


def test_a_snapshot_costs_the_same_for_many_parked_keys_as_for_a_few() -> None:
    assert run(_snapshot_with(1000)) == run(_snapshot_with(2))


@given(st.lists(st.tuples(st.floats(0.0, 100.0), st.booleans()), max_size=20))
def test_a_snapshot_has_the_sum_and_the_longest_of_all_processing_times(turns: list[tuple[float, bool]]) -> None:
    started: dict[int, float] = {}

    async def scenario() -> tuple[QueueSnapshot, float]:
        clock = VirtualClock()
        queue: WorkQueue[int] = WorkQueue(clock)
        for key, (pause, is_done) in enumerate(turns):
            queue.add(key, Priority.RESYNC, "resync")
            item = await queue.get()
            assert isinstance(item, QueueItem)
            started[item.key] = clock.monotonic()
            await clock.sleep(pause)
            if is_done:
                # The oldest, not the last one.
                queue.done(oldest := min(started))
                del started[oldest]
        return queue.snapshot(), clock.monotonic()

    snapshot, now = run(scenario())

    running = [now - at for at in started.values()]
    assert snapshot.processing == len(running)
    assert snapshot.unfinished_seconds == pytest.approx(sum(running))
    assert snapshot.longest_running_seconds == pytest.approx(max(running, default=0.0))


# --- Namespaces -------------------------------------------------------------------------------------------------------


def test_namespaces_that_change_together_cost_a_look_or_two_at_all_resources() -> None:
    async def scenario() -> tuple[int, int]:
        store = _store()
        names = [f"team-{number}" for number in range(50)]
        for name in names:
            await store.apply(gadget("g", {"size": 1}, namespace=name))
            await store.apply(_namespace(name, "before"))
        kind, metrics = GadgetKind(Service()), RecordingMetrics()
        engine = EngineContext(store, VirtualClock(), {(kind.group, kind.name): kind}, metrics=metrics)
        manager = Manager(engine, metrics)
        running = asyncio.create_task(manager.run())
        await VirtualClock().sleep(5)
        index = CountedIndex(manager.index)
        manager.index = index  # type: ignore[assignment] # all that is used of it
        (controller,) = manager.controllers.values()
        before = controller.queue.snapshot().adds
        for name in names:
            await store.apply(_namespace(name, "after"))
        await VirtualClock().sleep(5)
        adds = controller.queue.snapshot().adds - before
        manager.stop()
        await running
        return index.looks, adds

    looks, adds = run(scenario())

    assert looks <= 2
    assert adds == 50


class CountedIndex:
    """An index that counts how often all of it is looked at."""

    def __init__(self, index: ResourceIndex) -> None:
        self.looks = 0
        self._index = index

    def __iter__(self) -> Iterator[ResourceRef]:
        self.looks += 1
        return iter(self._index)

    def __getattr__(self, name: str) -> object:
        return getattr(self._index, name)


def _namespace(name: str, team: str) -> JsonObject:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {"team": team}}}


# --- Garbage collection -----------------------------------------------------------------------------------------------


def test_no_collection_looks_at_the_index_once_it_is_complete() -> None:
    async def scenario() -> tuple[int, int]:
        store = _store()
        await _filled(store, 500)
        kind, metrics = GadgetKind(Service()), RecordingMetrics()
        engine = EngineContext(store, VirtualClock(), {(kind.group, kind.name): kind}, metrics=metrics)
        manager = Manager(engine, metrics)
        running = asyncio.create_task(manager.run())
        await freeze_index(manager)
        frozen = {id(one) for one in manager.index} - {id(one) for one in gc.get_objects()}
        manager.stop()
        await running
        return len(manager.index), len(frozen)

    thresholds = gc.get_threshold()
    try:
        assert run(scenario()) == (500, 500)
        assert gc.get_threshold()[0] > thresholds[0]
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()


# --- The store in memory ----------------------------------------------------------------------------------------------


def test_pages_of_the_store_in_memory_go_through_its_resources_once() -> None:
    passes = 0

    class CountedRecords(dict[ResourceRef, object]):
        def __iter__(self) -> Iterator[ResourceRef]:
            nonlocal passes
            passes += 1
            return super().__iter__()

    async def scenario() -> list[int]:
        store = _store()
        await _filled(store, 30)
        store._records = CountedRecords(store._records)  # type: ignore[assignment] # a dictionary all the same
        return [len(page.resources) async for page in store.pages(size=4)]

    assert run(scenario()) == [4, 4, 4, 4, 4, 4, 4, 2]
    assert passes == 1


def test_a_resource_that_is_deleted_between_two_pages_is_left_out() -> None:
    async def scenario() -> list[list[str]]:
        store = _store()
        await _filled(store, 4)
        found = []
        async for page in store.pages(size=2):
            found.append([one.ref.name for one in page.resources])
            await store.delete(gadget_ref("n0002"))
        return found

    assert run(scenario()) == [["n0000", "n0001"], ["n0003"]]


# --- Shards -----------------------------------------------------------------------------------------------------------


class RecordedShards:
    """The callbacks of a replica, which records them."""

    def __init__(self) -> None:
        self.gained: list[set[int]] = []
        self.lost: list[set[int]] = []

    def shards_gained(self, shards: Collection[int]) -> None:
        self.gained.append(set(shards))

    def shards_lost(self, shards: Collection[int]) -> None:
        self.lost.append(set(shards))


def test_shards_that_are_left_together_are_reported_together() -> None:
    async def scenario() -> RecordedShards:
        clock, recorded = VirtualClock(), RecordedShards()
        replica = ControllerReplica(_store(), clock, "one", 16)
        running = asyncio.create_task(replica.run(recorded, 25.0))
        await clock.sleep(3)
        await replica.leave()
        running.cancel()
        return recorded

    recorded = run(scenario())

    every = set(range(16))
    assert (recorded.gained, recorded.lost) == ([every], [every])


def test_shards_whose_leases_expire_together_are_reported_together() -> None:
    async def scenario() -> RecordedShards:
        clock, recorded, store = VirtualClock(), RecordedShards(), _store()
        replica = ControllerReplica(store, clock, "one", 16, jitter=lambda: 0.5)
        running = asyncio.create_task(replica.run(recorded, 25.0))
        await clock.sleep(3)
        await store.close()
        await clock.sleep(60)
        running.cancel()
        return recorded

    recorded = run(scenario())

    assert recorded.lost == [set(range(16))]


def test_other_tasks_have_their_turn_while_the_resources_of_gained_shards_are_queued() -> None:
    count = 3 * REFS_BEFORE_YIELD

    async def scenario() -> list[int]:
        clock, store = VirtualClock(), _store()
        await _filled(store, count)
        kind, metrics = GadgetKind(Service()), RecordingMetrics()
        engine = EngineContext(store, clock, {(kind.group, kind.name): kind}, metrics=metrics)
        manager = Manager(engine, metrics, workers=1, replica=ControllerReplica(store, clock, "one", 4))
        running = asyncio.create_task(manager.run())
        adds = [0]
        while adds[-1] < count:
            await asyncio.sleep(0)
            adds.append(sum(one.queue.snapshot().adds for one in manager.controllers.values()))
        manager.stop()
        await running
        return adds

    adds = run(scenario())

    assert adds[-1] == count
    assert max(after - before for before, after in itertools.pairwise(adds)) <= REFS_BEFORE_YIELD


def _store() -> MemoryStore:
    numbers = itertools.count(1)
    return MemoryStore(VirtualClock(), lambda: f"uid-{next(numbers)}")


async def _filled(store: MemoryStore, count: int) -> None:
    for number in range(count):
        await store.apply(gadget(f"n{number:04d}", {"size": 1}))
