"""Many processes over one store: who looks after what, who takes over, and that nothing is done twice or forgotten."""

import asyncio
from collections.abc import Callable

import pytest

from setpoint.clients.http import HttpRequest
from setpoint.runtime.sharding.assignment import shard_of, shard_winner
from tests.engine.gadgets import gadget_ref
from tests.runtime.fleet import A_LITTLE, LEASE, Fleet, Process, play
from tests.runtime.wire import Trouble

pytestmark = pytest.mark.slow

NAMES = [f"g{number}" for number in range(12)]
# Soon: a look around, and a few answers.
SOON = 3.0


async def settle_all(fleet: Fleet) -> None:
    for name in NAMES:
        await fleet.edit(name)
    await fleet.settled(*NAMES)


def test_one_process_has_everything() -> None:
    async def scenario(fleet: Fleet) -> None:
        fleet.start("one")
        await settle_all(fleet)

        assert fleet.processes["one"].replica.held_shards == {0, 1, 2, 3}

    play(scenario)


def test_whoever_comes_gets_its_share_at_once() -> None:
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


def test_each_resource_is_stepped_by_the_holder_of_its_shard_and_queued_nowhere_else() -> None:
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
    (controller,) = fleet.processes[name].manager.controllers.values()
    return controller.queue.snapshot().adds


def test_a_stand_by_takes_over_when_the_leader_was_killed_and_looks_at_everything_at_once() -> None:
    async def scenario(fleet: Fleet) -> None:
        leader, stand_by = fleet.start("leader"), fleet.start("stand-by")
        await fleet.shared_out()
        if not leader.replica.held_shards:
            leader, stand_by = stand_by, leader
        await settle_all(fleet)
        fleet.kill(leader.name)
        for name in NAMES:
            await fleet.edit(name)
        seconds = await fleet.shared_out()
        carried_out = await fleet.settled(*NAMES)

        assert stand_by.replica.held_shards == {0}
        assert 9.0 < seconds < LEASE + A_LITTLE
        assert carried_out < SOON

    play(scenario, shards=1)


@pytest.mark.parametrize("number", [2, 3])
def test_killing_the_holder_of_a_shard_twenty_times_loses_nothing_and_does_nothing_twice(number: int) -> None:
    async def scenario(fleet: Fleet) -> None:
        names = [f"process-{one}" for one in range(number + 20)]
        for name in names[:number]:
            fleet.start(name)
        await settle_all(fleet)
        for name in names[number:]:
            for one in NAMES[::3]:
                await fleet.edit(one)
            await fleet.clock.sleep(fleet.random.uniform(0, 1))
            # Whoever was started last may just be handed its share.
            await fleet.shared_out()
            fleet.kill(fleet.holder_of(NAMES[0]))
            fleet.start(name)
            assert await fleet.shared_out() < LEASE + A_LITTLE
        await fleet.settled(*NAMES)

        assert fleet.is_done_once
        assert len(fleet.live) == number

    play(scenario)


def test_whoever_is_asked_to_end_hands_over_at_once() -> None:
    async def scenario(fleet: Fleet) -> None:
        fleet.start("one")
        fleet.start("two")
        await settle_all(fleet)
        await fleet.clock.sleep(SOON)
        leaver = fleet.holder_of(NAMES[0])
        await fleet.stop(leaver)

        assert await fleet.shared_out() < SOON
        assert {lease.holder for lease in await fleet.store.leases("setpoint-member-")} == {"", fleet.live[0].name}

    play(scenario)


def test_whoever_is_asked_to_end_finishes_what_it_began_before_another_has_it() -> None:
    async def scenario(fleet: Fleet) -> None:
        for name in ("one", "two"):
            fleet.start(name).wire.seconds = lambda: 1.0
        await fleet.shared_out()
        await fleet.clock.sleep(5)
        await fleet.edit("a")
        holder = fleet.holder_of("a")
        await fleet.clock.sleep(5)
        await fleet.stop(holder)

        assert [one.process for one in fleet.writes] == [holder]
        assert await fleet.is_settled("a")
        assert await fleet.shared_out() < 10

    play(scenario)


def test_a_step_that_does_not_end_is_cut_and_its_shard_is_another_s_when_the_lease_has_run_out() -> None:
    async def scenario(fleet: Fleet) -> None:
        for name in ("one", "two"):
            process = fleet.start(name)
            process.wire.trouble = lambda request: Trouble.LOST if "cloud" in request.url else None
        await fleet.clock.sleep(SOON)
        await fleet.edit("a")
        await fleet.clock.sleep(1)
        holder = fleet.holder_of("a")
        began = fleet.clock.monotonic()
        await fleet.stop(holder)
        ended = fleet.clock.monotonic() - began

        assert 10 <= ended < 10 + SOON
        assert 5 < await fleet.shared_out() < LEASE + A_LITTLE

    play(scenario, grace=10.0)


def test_a_process_that_did_not_run_for_a_minute_writes_nothing_when_it_wakes() -> None:
    async def scenario(fleet: Fleet) -> None:
        fleet.start("one")
        fleet.start("two")
        await settle_all(fleet)
        await fleet.clock.sleep(SOON)
        sleeper = fleet.holder_of(NAMES[0])
        looks = asyncio.Event()
        _on_look(fleet.processes[sleeper], NAMES[0], looks.set)
        for name in NAMES:
            await fleet.edit(name)
        await looks.wait()
        fleet.pause(sleeper)
        await fleet.clock.sleep(60)
        assert all([await fleet.is_settled(name) for name in NAMES])
        writes = len(fleet.writes)
        fleet.resume(sleeper)
        await fleet.clock.sleep(60)

        assert len(fleet.writes) == writes
        # The step that had looked went on with the answer, and was refused at its first write.
        assert ("stop", "") in fleet.processes[sleeper].tally.steps
        assert fleet.is_done_once
        assert {len(fleet.holders(shard)) for shard in range(4)} == {1}

    play(scenario)


def _on_look(process: Process, name: str, tell: Callable[[], None]) -> None:
    """Tells when the process asks the cloud for a gadget."""

    def watch(request: HttpRequest) -> None:
        if str(request) == f"GET /{name}":
            tell()

    process.wire.trouble = watch


@pytest.mark.parametrize("how", list(Trouble))
def test_a_process_that_cannot_reach_the_store_loses_its_shards_in_time_and_lives_on(how: Trouble) -> None:
    async def scenario(fleet: Fleet) -> None:
        fleet.start("one")
        fleet.start("two")
        await settle_all(fleet)
        await fleet.clock.sleep(SOON)
        lost = fleet.holder_of(NAMES[0])
        share = fleet.processes[lost].replica.held_shards
        fleet.cut_off(lost, how)
        await fleet.clock.sleep(10)
        after_ten = fleet.processes[lost].replica.held_shards
        for name in NAMES:
            await fleet.edit(name)
        seconds = await fleet.shared_out()
        await fleet.settled(*NAMES)
        fleet.mend(lost)
        await fleet.clock.sleep(2 * SOON)

        assert after_ten == frozenset()
        # A request without an answer is carried out all the same, as long as there are any.
        is_heard = how in (Trouble.UNANSWERED, Trouble.SLOW)
        assert seconds < LEASE + A_LITTLE + (4 if is_heard else -10)
        assert fleet.processes[lost].replica.held_shards == share
        assert not fleet.processes[lost].task.done()
        assert fleet.is_done_once

    play(scenario)


@pytest.mark.parametrize("seconds", [1.0, 4.0])
def test_a_short_outage_costs_nothing(seconds: float) -> None:
    async def scenario(fleet: Fleet) -> None:
        fleet.start("one")
        fleet.start("two")
        await settle_all(fleet)
        await fleet.clock.sleep(SOON)
        before = await fleet.store.leases("setpoint-shard-")
        for _ in range(20):
            fleet.cut_off("one", Trouble.REFUSED)
            await fleet.clock.sleep(seconds)
            fleet.mend("one")
            await fleet.clock.sleep(fleet.random.uniform(2, 9))

        after = await fleet.store.leases("setpoint-shard-")
        assert [(one.holder, one.fence) for one in after] == [(one.holder, one.fence) for one in before]
        assert fleet.processes["one"].replica.leases.failures["shard"] > 0

    play(scenario)


def test_when_a_shard_is_back_everything_in_it_is_looked_at_anew() -> None:
    async def scenario(fleet: Fleet) -> None:
        fleet.start("one")
        await settle_all(fleet)
        fleet.cut_off("one", Trouble.REFUSED)
        await fleet.clock.sleep(11)
        # Nobody tells of it: only a look can find it.
        fleet.service.objects["g3"]["size"] = 99
        fleet.mend("one")
        await fleet.clock.sleep(SOON)

        assert fleet.service.objects["g3"]["size"] == fleet.edits["g3"][-1]

    play(scenario)


def test_what_waits_for_a_resource_in_another_shard_hears_of_it_whoever_writes() -> None:
    async def scenario(fleet: Fleet) -> None:
        for name in ("one", "two", "three"):
            fleet.start(name)
        await fleet.shared_out()
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


def test_processes_with_another_number_of_shards_wait_until_the_last_of_the_others_is_gone() -> None:
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
        await fleet.clock.sleep(LEASE + A_LITTLE)

        assert (ready, held) == (True, frozenset())
        assert new.replica.held_shards == frozenset(range(7))

    play(scenario)


def test_a_write_that_takes_long_never_arrives_when_another_may_hold_the_shard() -> None:
    async def scenario(fleet: Fleet) -> None:
        for name in ("one", "two"):
            fleet.start(name)
        await fleet.shared_out()
        await fleet.clock.sleep(SOON)
        arrivals = [0.05]
        for process in fleet.processes.values():
            process.wire.seconds = lambda: arrivals[0]
        for number in range(12):
            name = f"late-{number}"
            await fleet.edit(name)
            # The look is answered at once, and the write arrives as late as it can.
            await fleet.clock.sleep(0.12)
            arrivals[0] = fleet.random.uniform(1, 20)
            await fleet.clock.sleep(0.12)
            arrivals[0] = 0.05
            victim = fleet.holder_of(name)
            fleet.cut_off(victim, Trouble.LOST)
            await fleet.clock.sleep(20)
            fleet.mend(victim)
            await fleet.settled(name)

        assert fleet.is_done_once

    play(scenario)


@pytest.mark.parametrize("offset", [1.0, 2.0, 3.0, 4.0])
def test_a_shard_that_was_lost_is_not_ours_again_while_something_that_we_sent_is_under_way(offset: float) -> None:
    async def scenario(fleet: Fleet) -> None:
        process = fleet.start("one")
        await settle_all(fleet)
        await fleet.clock.sleep(5 + offset)
        process.wire.trouble = lambda request: Trouble.SLOW if str(request) == "PUT /g0" else None
        process.wire.slow = 8.5
        await fleet.edit("g0")
        await fleet.clock.sleep(1)
        process.wire.trouble = lambda request: None
        fleet.cut_off("one", Trouble.REFUSED)
        while process.replica.held_shards:
            await fleet.clock.sleep(0.1)
        fleet.mend("one")
        await fleet.settled("g0")
        await fleet.clock.sleep(LEASE)

        assert fleet.is_done_once

    play(scenario, shards=1)
