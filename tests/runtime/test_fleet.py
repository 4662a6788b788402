"""Several replicas over one store: which holds which shard, which takes over, and that every edit is executed once."""

import asyncio
from collections.abc import Callable

import pytest

from setpoint.clients.http import HttpRequest
from setpoint.runtime.sharding.assignment import shard_of, shard_winner
from tests.engine.gadgets import gadget_ref
from tests.runtime.fleet import LEASE, MARGIN, Fleet, Process, play
from tests.runtime.simulated_network import NetworkFault

pytestmark = pytest.mark.slow

NAMES = [f"g{number}" for number in range(12)]
# A poll of the leases, and a few answers.
SOON = 3.0


async def settle_all(fleet: Fleet) -> None:
    for name in NAMES:
        await fleet.edit(name)
    await fleet.settled(*NAMES)


def test_a_single_replica_holds_every_shard() -> None:
    async def scenario(fleet: Fleet) -> None:
        fleet.start("one")
        await settle_all(fleet)

        assert fleet.processes["one"].replica.held_shards == {0, 1, 2, 3}

    play(scenario)


def test_a_joining_replica_gets_its_share_at_once() -> None:
    async def scenario(fleet: Fleet) -> None:
        fleet.start("one")
        await settle_all(fleet)
        writes = len(fleet.writes)
        for name in ("two", "three"):
            fleet.start(name)
            await fleet.clock.sleep(SOON)

        members = ["one", "two", "three"]
        assert [fleet.holders(shard) for shard in range(16)] == [[shard_winner(shard, members)] for shard in range(16)]
        assert {name for shard in range(16) for name in fleet.holders(shard)} == set(members)
        assert len(fleet.writes) == writes

    play(scenario, shards=16)


def test_each_resource_is_reconciled_by_the_holder_of_its_shard_and_queued_nowhere_else() -> None:
    async def scenario(fleet: Fleet) -> None:
        for name in ("one", "two", "three"):
            fleet.start(name)
        await fleet.clock.sleep(SOON)
        adds = {name: _adds(fleet, name) for name in fleet.processes}
        await settle_all(fleet)

        assert {one.name: one.process for one in fleet.writes} == {name: fleet.holder_of(name) for name in NAMES}
        for name, process in fleet.processes.items():
            share = [one for one in NAMES if fleet.holder_of(one) == name]
            assert _adds(fleet, name) - adds[name] == len(share)
            assert len(process.manager.index) == len(NAMES)

    play(scenario, shards=16)


def _adds(fleet: Fleet, name: str) -> int:
    return sum(one.queue.snapshot().adds for one in fleet.processes[name].manager.controllers.values())


def test_a_standby_takes_over_from_a_killed_leader_and_reconciles_everything() -> None:
    async def scenario(fleet: Fleet) -> None:
        leader, stand_by = fleet.start("leader"), fleet.start("stand-by")
        await fleet.until_every_shard_is_held()
        if not leader.replica.held_shards:
            leader, stand_by = stand_by, leader
        await settle_all(fleet)
        fleet.kill(leader.name)
        for name in NAMES:
            await fleet.edit(name)
        seconds = await fleet.until_every_shard_is_held()
        carried_out = await fleet.settled(*NAMES)

        assert stand_by.replica.held_shards == {0}
        assert 9.0 < seconds < LEASE + MARGIN
        assert carried_out < SOON

    play(scenario, shards=1)


@pytest.mark.parametrize("number", [2, 3])
def test_after_twenty_kills_of_shard_holders_every_edit_was_executed_once(number: int) -> None:
    async def scenario(fleet: Fleet) -> None:
        names = [f"process-{one}" for one in range(number + 20)]
        for name in names[:number]:
            fleet.start(name)
        await settle_all(fleet)
        for name in names[number:]:
            for one in NAMES[::3]:
                await fleet.edit(one)
            await fleet.clock.sleep(fleet.random.uniform(0, 1))
            # The replica that was started last may just be handed its share.
            await fleet.until_every_shard_is_held()
            fleet.kill(fleet.holder_of(NAMES[0]))
            fleet.start(name)
            assert await fleet.until_every_shard_is_held() < LEASE + MARGIN
        await fleet.settled(*NAMES)

        assert fleet.has_executed_every_edit_once
        assert len(fleet.live) == number

    play(scenario)


def test_a_terminated_replica_hands_over_at_once() -> None:
    async def scenario(fleet: Fleet) -> None:
        fleet.start("one")
        fleet.start("two")
        await settle_all(fleet)
        await fleet.clock.sleep(SOON)
        leaver = fleet.holder_of(NAMES[0])
        await fleet.stop(leaver)

        assert await fleet.until_every_shard_is_held() < SOON
        assert {lease.holder for lease in await fleet.store.leases("setpoint-member-")} == {"", fleet.live[0].name}

    play(scenario)


def test_a_terminated_replica_finishes_running_steps_before_the_hand_over() -> None:
    async def scenario(fleet: Fleet) -> None:
        for name in ("one", "two"):
            fleet.start(name).link.seconds = lambda: 1.0
        await fleet.until_every_shard_is_held()
        await fleet.clock.sleep(5)
        await fleet.edit("a")
        holder = fleet.holder_of("a")
        await fleet.clock.sleep(5)
        await fleet.stop(holder)

        assert [one.process for one in fleet.writes] == [holder]
        assert await fleet.is_settled("a")
        assert await fleet.until_every_shard_is_held() < 10

    play(scenario)


def test_after_a_cancelled_step_its_shard_moves_when_the_lease_has_expired() -> None:
    async def scenario(fleet: Fleet) -> None:
        for name in ("one", "two"):
            process = fleet.start(name)
            process.link.fault = lambda request: NetworkFault.LOST if "cloud" in request.url else None
        await fleet.clock.sleep(SOON)
        await fleet.edit("a")
        await fleet.clock.sleep(1)
        holder = fleet.holder_of("a")
        began = fleet.clock.monotonic()
        await fleet.stop(holder)
        ended = fleet.clock.monotonic() - began

        assert 10 <= ended < 10 + SOON
        assert 5 < await fleet.until_every_shard_is_held() < LEASE + MARGIN

    play(scenario, grace=10.0)


def test_a_replica_that_was_paused_for_a_minute_writes_nothing_on_resume() -> None:
    async def scenario(fleet: Fleet) -> None:
        fleet.start("one")
        fleet.start("two")
        await settle_all(fleet)
        await fleet.clock.sleep(SOON)
        sleeper = fleet.holder_of(NAMES[0])
        observed = asyncio.Event()
        _on_observation(fleet.processes[sleeper], NAMES[0], observed.set)
        for name in NAMES:
            await fleet.edit(name)
        await observed.wait()
        fleet.pause(sleeper)
        await fleet.clock.sleep(60)
        assert all([await fleet.is_settled(name) for name in NAMES])
        writes = len(fleet.writes)
        fleet.resume(sleeper)
        await fleet.clock.sleep(60)

        assert len(fleet.writes) == writes
        # The step that had observed continued with the answer, and was refused at its first write.
        assert ("stop", "") in fleet.processes[sleeper].metrics.steps
        assert fleet.has_executed_every_edit_once
        assert {len(fleet.holders(shard)) for shard in range(4)} == {1}

    play(scenario)


def _on_observation(process: Process, name: str, notify: Callable[[], None]) -> None:
    """Calls `notify` when the process requests a gadget from the cloud."""

    def watch(request: HttpRequest) -> None:
        if str(request) == f"GET /{name}":
            notify()

    process.link.fault = watch


@pytest.mark.parametrize("how", list(NetworkFault))
def test_a_replica_without_a_store_loses_its_shards_in_time_and_recovers(how: NetworkFault) -> None:
    async def scenario(fleet: Fleet) -> None:
        fleet.start("one")
        fleet.start("two")
        await settle_all(fleet)
        await fleet.clock.sleep(SOON)
        lost = fleet.holder_of(NAMES[0])
        share = fleet.processes[lost].replica.held_shards
        fleet.disconnect(lost, how)
        await fleet.clock.sleep(10)
        after_ten = fleet.processes[lost].replica.held_shards
        for name in NAMES:
            await fleet.edit(name)
        seconds = await fleet.until_every_shard_is_held()
        await fleet.settled(*NAMES)
        fleet.reconnect(lost)
        await fleet.clock.sleep(2 * SOON)

        assert after_ten == frozenset()
        # A request without an answer is executed all the same.
        is_executed = how in (NetworkFault.UNANSWERED, NetworkFault.SLOW)
        assert seconds < LEASE + MARGIN + (4 if is_executed else -10)
        assert fleet.processes[lost].replica.held_shards == share
        assert not fleet.processes[lost].task.done()
        assert fleet.has_executed_every_edit_once

    play(scenario)


@pytest.mark.parametrize("seconds", [1.0, 4.0])
def test_a_short_outage_of_the_store_moves_no_shard(seconds: float) -> None:
    async def scenario(fleet: Fleet) -> None:
        fleet.start("one")
        fleet.start("two")
        await settle_all(fleet)
        await fleet.clock.sleep(SOON)
        before = await fleet.store.leases("setpoint-shard-")
        for _ in range(20):
            fleet.disconnect("one", NetworkFault.REFUSED)
            await fleet.clock.sleep(seconds)
            fleet.reconnect("one")
            await fleet.clock.sleep(fleet.random.uniform(2, 9))

        after = await fleet.store.leases("setpoint-shard-")
        assert [(one.holder, one.fence) for one in after] == [(one.holder, one.fence) for one in before]
        assert fleet.processes["one"].replica.leases.failures["shard"] > 0

    play(scenario)


def test_an_acquired_shard_is_reconciled_as_a_whole() -> None:
    async def scenario(fleet: Fleet) -> None:
        fleet.start("one")
        await settle_all(fleet)
        fleet.disconnect("one", NetworkFault.REFUSED)
        await fleet.clock.sleep(11)
        # There is no event for it: only an observation finds it.
        fleet.service.objects["g3"]["size"] = 99
        fleet.reconnect("one")
        await fleet.clock.sleep(SOON)

        assert fleet.service.objects["g3"]["size"] == fleet.edits["g3"][-1]

    play(scenario)


def test_dependants_in_other_shards_are_triggered_across_replicas() -> None:
    async def scenario(fleet: Fleet) -> None:
        for name in ("one", "two", "three"):
            fleet.start(name)
        await fleet.until_every_shard_is_held()
        await fleet.clock.sleep(SOON)
        parent = "p"
        children = [name for name in NAMES if shard_of(gadget_ref(name), 16) != shard_of(gadget_ref(parent), 16)]
        for name in children:
            await fleet.edit(name, parentRef=parent)
        await fleet.clock.sleep(SOON)
        assert fleet.writes == []
        await fleet.edit(parent)

        assert await fleet.settled(parent, *children) < SOON
        assert len({one.process for one in fleet.writes}) == 3

    play(scenario, shards=16)


def test_replicas_with_another_shard_count_wait_until_the_old_ones_are_gone() -> None:
    async def scenario(fleet: Fleet) -> None:
        fleet.start("old-1")
        fleet.start("old-2")
        await settle_all(fleet)
        new = fleet.start("new", shards=7)
        await fleet.clock.sleep(60)
        ready, held = new.manager.is_ready, new.replica.held_shards
        await fleet.stop("old-1")
        for name in NAMES:
            await fleet.edit(name)
        await fleet.settled(*NAMES)
        fleet.kill("old-2")
        await fleet.clock.sleep(LEASE + MARGIN)

        assert (ready, held) == (True, frozenset())
        assert new.replica.held_shards == frozenset(range(7))

    play(scenario)


def test_a_slow_write_never_arrives_after_another_replica_may_hold_the_shard() -> None:
    async def scenario(fleet: Fleet) -> None:
        for name in ("one", "two"):
            fleet.start(name)
        await fleet.until_every_shard_is_held()
        await fleet.clock.sleep(SOON)
        arrivals = [0.05]
        for process in fleet.processes.values():
            process.link.seconds = lambda: arrivals[0]
        for number in range(12):
            name = f"late-{number}"
            await fleet.edit(name)
            # The observation is answered at once, and the write arrives as late as it can.
            await fleet.clock.sleep(0.12)
            arrivals[0] = fleet.random.uniform(1, 20)
            await fleet.clock.sleep(0.12)
            arrivals[0] = 0.05
            holder = fleet.holder_of(name)
            fleet.disconnect(holder, NetworkFault.LOST)
            await fleet.clock.sleep(20)
            fleet.reconnect(holder)
            await fleet.settled(name)

        assert fleet.has_executed_every_edit_once

    play(scenario)


@pytest.mark.parametrize("offset", [1.0, 2.0, 3.0, 4.0])
def test_a_lost_shard_is_not_acquired_again_while_a_sent_write_may_arrive(offset: float) -> None:
    async def scenario(fleet: Fleet) -> None:
        process = fleet.start("one")
        await settle_all(fleet)
        await fleet.clock.sleep(5 + offset)
        process.link.fault = lambda request: NetworkFault.SLOW if str(request) == "PUT /g0" else None
        process.link.slow = 8.5
        await fleet.edit("g0")
        await fleet.clock.sleep(1)
        process.link.fault = lambda request: None
        fleet.disconnect("one", NetworkFault.REFUSED)
        while process.replica.held_shards:
            await fleet.clock.sleep(0.1)
        fleet.reconnect("one")
        await fleet.settled("g0")
        await fleet.clock.sleep(LEASE)

        assert fleet.has_executed_every_edit_once

    play(scenario, shards=1)
