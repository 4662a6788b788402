"""What is left in a process of a shard that it lost or handed over: nothing."""

import asyncio
from typing import Any

import pytest

from setpoint.clients.http import HttpRequest
from setpoint.engine.context import EngineContext
from setpoint.engine.resource import ResourceRef
from setpoint.engine.step.outcomes import StepOutcome
from setpoint.errors import LeaseLost, SetpointError, StoreInUse
from setpoint.runtime.controller import Controller
from setpoint.runtime.index import ResourceIndex
from setpoint.runtime.predicates import RESYNC
from setpoint.runtime.sharding.assignment import shard_of, shard_winner
from setpoint.runtime.sharding.fencing import StepCall
from setpoint.stores.memory import MemoryStore
from simulation.virtual_time import VirtualClock, run
from tests.engine.gadget_fixture import gadget
from tests.engine.gadgets import GadgetKind, Service, gadget_ref
from tests.runtime.fleet import LEASE, Fleet, Process, play
from tests.runtime.manager_harness import RecordingMetrics
from tests.runtime.simulated_network import NetworkFault

NAMES = [f"g{number}" for number in range(12)]


def hang(request: HttpRequest) -> NetworkFault | None:
    """The cloud does not answer."""
    return NetworkFault.LOST if "//cloud/" in request.url else None


def queued(process: Process) -> tuple[int, int, int]:
    """How many wait, are to come, and are in work."""
    (controller,) = process.manager.controllers.values()
    snapshot = controller.queue.snapshot()
    return sum(snapshot.depth.values()), snapshot.delayed, snapshot.processing


def test_the_loss_of_a_shard_cancels_its_steps_and_removes_its_keys_from_the_queue() -> None:
    async def scenario(fleet: Fleet) -> None:
        process = fleet.start("one")
        process.link.fault = hang
        await fleet.until_every_shard_is_held()
        for name in NAMES:
            await fleet.edit(name)
        await fleet.clock.sleep(1)
        before = queued(process), process.manager.processing
        fleet.disconnect("one", NetworkFault.REFUSED)
        await fleet.clock.sleep(11)

        assert before == ((8, 0, 4), 4)
        assert (queued(process), process.manager.processing) == ((0, 0, 0), 0)

    play(scenario)


def test_the_loss_of_a_shard_drops_its_resources_from_the_idle_cache() -> None:
    async def scenario(fleet: Fleet) -> None:
        process = fleet.start("one")
        for name in NAMES:
            await fleet.edit(name)
        await fleet.settled(*NAMES)
        await fleet.clock.sleep(5)
        idle_cache = process.manager.engine.idle_cache
        assert idle_cache is not None
        before = [idle_cache.of(gadget_ref(name)) is not None for name in NAMES]
        fleet.disconnect("one", NetworkFault.REFUSED)
        await fleet.clock.sleep(11)

        assert before == [True] * len(NAMES)
        assert [idle_cache.of(gadget_ref(name)) for name in NAMES] == [None] * len(NAMES)
        assert queued(process) == (0, 0, 0)

    play(scenario)


def test_a_step_that_ends_during_the_hand_over_of_its_shard_schedules_no_resync() -> None:
    async def scenario(fleet: Fleet) -> None:
        one = fleet.start("one")
        one.link.seconds = lambda: 0.4
        await fleet.until_every_shard_is_held()
        for name in NAMES[:4]:
            await fleet.edit(name)
        await fleet.clock.sleep(1)
        fleet.start("two")
        await fleet.clock.sleep(LEASE)
        ours = [name for name in NAMES[:4] if fleet.holder_of(name) == "one"]

        assert 0 < len(ours) < 4
        assert queued(one) == (0, len(ours), 0)

    play(scenario, shards=16)


def test_dependants_are_queued_only_by_the_holder_of_their_shard() -> None:
    async def scenario(fleet: Fleet) -> None:
        for name in ("one", "two"):
            fleet.start(name)
        await fleet.until_every_shard_is_held()
        await fleet.clock.sleep(3)
        children = [name for name in NAMES if shard_winner(shard_of(gadget_ref(name), 16), ["one", "two"]) == "one"]
        for name in children:
            await fleet.edit(name, parentRef="p")
        await fleet.clock.sleep(3)
        (controller,) = fleet.processes["two"].manager.controllers.values()
        before = controller.queue.snapshot().adds
        await fleet.edit("p")
        await fleet.settled(*children)
        parent = fleet.holder_of("p") == "two"

        assert controller.queue.snapshot().adds - before == (1 if parent else 0)

    play(scenario, shards=16)


def test_a_released_resource_leaves_the_queue() -> None:
    async def main() -> list[int]:
        clock, kind = VirtualClock(), GadgetKind(Service())
        engine = EngineContext(MemoryStore(clock, lambda: "uid"), clock, {(kind.group, kind.name): kind})
        controller = Controller(
            kind, engine, ResourceIndex(engine.kinds), workers=2, metrics=RecordingMetrics(), stop=lambda error: None
        )
        for name in NAMES:
            controller.enqueue(gadget_ref(name), RESYNC)
        depths = [sum(controller.queue.snapshot().depth.values())]
        for name in NAMES[:5]:
            controller.release(gadget_ref(name))
        return [*depths, sum(controller.queue.snapshot().depth.values())]

    assert run(main()) == [12, 7]


@pytest.mark.parametrize("tenths", range(0, 60, 3))
def test_a_process_that_shuts_down_gracefully_holds_no_lease_afterwards(tenths: int) -> None:
    async def scenario(fleet: Fleet) -> None:
        process = fleet.start("one")
        process.link.seconds = lambda: 0.4
        await fleet.clock.sleep(tenths / 10)
        await fleet.stop("one")
        await fleet.clock.sleep(1)

        held = [one.name for one in await fleet.store.leases("") if one.is_held(fleet.clock.now())]
        assert [name for name in held if name != "setpoint-layout"] == []

    play(scenario)


class HoldsEveryShard:
    """A replica that holds every shard, whatever happens."""

    def holds(self, ref: ResourceRef) -> bool:
        return True

    async def run_step(self, ref: ResourceRef, step: StepCall) -> StepOutcome:
        return await step()


@pytest.mark.parametrize(
    ("error", "replica", "is_stopped"),
    [
        (LeaseLost("lost"), None, True),
        (LeaseLost("lost"), HoldsEveryShard(), False),
        (StoreInUse("in use"), None, True),
        (StoreInUse("in use"), HoldsEveryShard(), True),
    ],
)
def test_a_lost_lease_ends_a_single_process_and_only_the_shard_of_a_replica(
    error: SetpointError, replica: Any, is_stopped: bool
) -> None:
    async def refuse(*_: object, **__: object) -> None:
        raise error

    async def main() -> list[SetpointError]:
        clock, kind, stopped = VirtualClock(), GadgetKind(Service()), list[SetpointError]()
        store = MemoryStore(clock, lambda: "uid")
        store.update = refuse  # type: ignore[method-assign] # every step stops with the error
        engine = EngineContext(store, clock, {(kind.group, kind.name): kind})
        index = ResourceIndex(engine.kinds)
        controller = Controller(
            kind, engine, index, workers=1, metrics=RecordingMetrics(), stop=stopped.append, replica=replica
        )
        await store.apply(gadget("a", {"size": 1}))
        controller.enqueue(gadget_ref("a"), RESYNC)
        running = asyncio.create_task(controller.run())
        await clock.sleep(1)
        controller.shut_down()
        await running
        return stopped

    assert run(main()) == ([error] if is_stopped else [])
