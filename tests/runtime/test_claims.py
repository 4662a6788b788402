"""One live object has one resource: in one process, and in several that share a store."""

import itertools
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from setpoint.core.conditions import find_condition
from setpoint.core.unstructured import conditions_of
from setpoint.engine.resource import ResourceRef
from setpoint.engine.state import StoredState
from simulation.virtual_time import run
from tests.engine.gadget_fixture import gadget
from tests.engine.gadgets import gadget_ref
from tests.runtime.fleet import Fleet, Written, play
from tests.runtime.manager_harness import ManagerHarness, new_harness, running

OBJECT = "shared"
CONFLICT = (
    "shared is managed by Gadget default/{} already, and one object has one resource: delete one of the two, or let "
    "this one name another object"
)


def claimant(name: str, size: int) -> dict[str, Any]:
    """A gadget that claims the same object as every other, and wants a size of its own."""
    return gadget(name, {"size": size, "resourceID": OBJECT})


async def reason_of(harness: ManagerHarness | Fleet, name: str) -> str:
    found = await harness.store.get(gadget_ref(name))
    ready = None if found is None else find_condition(conditions_of(found.document), "Ready")
    return "" if ready is None else ready.reason


async def message_of(harness: ManagerHarness, name: str) -> str:
    found = await harness.store.get(gadget_ref(name))
    ready = None if found is None else find_condition(conditions_of(found.document), "Ready")
    return "" if ready is None else ready.message


# --- One process ------------------------------------------------------------------------------------------------------


def test_a_second_resource_of_an_object_is_refused_and_told_the_first() -> None:
    async def main() -> tuple[str, list[str], str | None]:
        async with running(new_harness()) as harness:
            await harness.store.apply(claimant("first", 1))
            await harness.settled("first")
            await harness.store.apply(claimant("second", 2))
            await harness.until(lambda: _has_reason(harness, "second", "ManagementConflict"))
            second = await harness.store.get(gadget_ref("second"))
            assert second is not None
            return await message_of(harness, "second"), harness.writes(OBJECT), StoredState.of(second).location

    assert run(main()) == (CONFLICT.format("first"), ["create"], None)


def test_the_second_gets_the_object_when_the_first_lets_go_of_it() -> None:
    async def main() -> dict[str, Any]:
        async with running(new_harness()) as harness:
            await harness.store.apply(claimant("first", 1))
            await harness.settled("first")
            await harness.store.apply(claimant("second", 2))
            await harness.until(lambda: _has_reason(harness, "second", "ManagementConflict"))
            began = harness.clock.monotonic()
            await harness.store.apply(
                gadget(
                    "first",
                    {"size": 1, "resourceID": OBJECT},
                    annotations={"cnrm.cloud.google.com/deletion-policy": "abandon"},
                )
            )
            await harness.store.delete(gadget_ref("first"))
            await harness.settled("second")
            # Long before the next resync.
            assert harness.clock.monotonic() - began < 60
            return dict(harness.service.objects[OBJECT])

    assert run(main())["size"] == 2


def test_resources_that_come_at_the_same_moment_make_one_object() -> None:
    names = [f"one-{number}" for number in range(6)]

    async def main() -> tuple[list[str], list[str]]:
        async with running(new_harness()) as harness:
            for size, name in enumerate(names):
                await harness.store.apply(claimant(name, size + 1))
            await harness.until(lambda: _are_decided(harness, names))
            return sorted([await reason_of(harness, name) for name in names]), harness.writes(OBJECT)

    assert run(main()) == (["ManagementConflict"] * 5 + ["UpToDate"], ["create"])


def test_an_object_that_exists_is_adopted_by_one_resource_alone() -> None:
    async def main() -> tuple[list[str], list[str]]:
        harness = new_harness()
        harness.service.objects[OBJECT] = {"size": 1}
        async with running(harness):
            for name in ("first", "second"):
                await harness.store.apply(claimant(name, 1))
            await harness.until(lambda: _are_decided(harness, ["first", "second"]))
            return sorted([await reason_of(harness, name) for name in ("first", "second")]), harness.writes(OBJECT)

    reasons, writes = run(main())
    assert reasons == ["ManagementConflict", "UpToDate"]
    assert "create" not in writes


def test_the_deletion_of_a_refused_resource_leaves_the_object() -> None:
    async def main() -> tuple[list[str], bool]:
        async with running(new_harness()) as harness:
            await harness.store.apply(claimant("first", 1))
            await harness.settled("first")
            await harness.store.apply(claimant("second", 2))
            await harness.until(lambda: _has_reason(harness, "second", "ManagementConflict"))
            await harness.store.delete(gadget_ref("second"))
            await harness.until(lambda: _is_gone(harness, "second"))
            return harness.writes(OBJECT), await harness.is_settled("first")

    assert run(main()) == (["create"], True)


def test_of_two_that_have_the_object_on_record_the_older_one_keeps_it() -> None:
    """As an earlier version may have left them."""

    async def main() -> tuple[str, str, list[str]]:
        harness = new_harness()
        harness.service.objects[OBJECT] = {"size": 9}
        for name, size in (("older", 1), ("younger", 2)):
            applied = await harness.store.apply(claimant(name, size))
            await harness.store.update_status(applied, {"setpoint": {"location": OBJECT}})
            await harness.clock.sleep(5)
        async with running(harness):
            await harness.until(lambda: _are_decided(harness, ["older", "younger"]))
            await harness.settled("older")
            await harness.store.delete(gadget_ref("younger"))
            await harness.until(lambda: _is_gone(harness, "younger"))
            return (
                await reason_of(harness, "older"),
                str(harness.service.objects[OBJECT]["size"]),
                harness.writes(OBJECT),
            )

    reason, size, writes = run(main())
    assert (reason, size) == ("UpToDate", "1")
    assert "delete" not in writes


async def _has_reason(harness: ManagerHarness | Fleet, name: str, reason: str) -> bool:
    return await reason_of(harness, name) == reason


async def _are_decided(harness: ManagerHarness | Fleet, names: list[str]) -> bool:
    reasons = [await reason_of(harness, name) for name in names]
    return reasons.count("UpToDate") == 1 and reasons.count("ManagementConflict") == len(names) - 1


async def _is_gone(harness: ManagerHarness, name: str) -> bool:
    return await harness.store.get(gadget_ref(name)) is None


# --- Several processes ------------------------------------------------------------------------------------------------


@dataclass
class ClaimingFleet(Fleet):
    """Replicas whose gadgets claim one object. `writers` are the sizes that were written, each of one resource."""

    writers: list[int] = field(default_factory=list)

    def _on_cloud_write(self, process: str, verb: str, ref: ResourceRef) -> None:
        # The shard is that of the resource, which the object does not name.
        self.writes.append(Written(self.clock.monotonic(), process, verb, ref.name))
        if verb != "delete":
            size = self.service.objects[ref.name]["size"]
            assert isinstance(size, int)
            self.writers.append(size)

    async def until_balanced(self) -> None:
        """Waits until every process holds a shard."""

        async def is_balanced() -> bool:
            return self.is_every_shard_held and all(one.replica.held_shards for one in self.processes.values())

        await self.until(is_balanced)

    def names_held_by(self, processes: list[str]) -> list[str]:
        """A name for each of these processes, of a gadget that it reconciles."""
        names: list[str] = []
        for process in processes:
            every = (f"g{number}" for number in itertools.count())
            names.append(next(one for one in every if one not in names and self.holder_of(one) == process))
        return names


@given(
    seed=st.integers(0, 2**32),
    holders=st.lists(st.sampled_from(["p0", "p1", "p2"]), min_size=2, max_size=5),
    killed=st.lists(st.tuples(st.floats(0, 0.4), st.sampled_from(["p0", "p1"])), max_size=2),
    exists=st.booleans(),
)
@example(seed=0, holders=["p0", "p1"], killed=[], exists=True)
@example(seed=1, holders=["p0", "p1", "p2"], killed=[(0.1, "p0")], exists=True)
@example(seed=0, holders=["p0", "p0", "p1", "p0"], killed=[(0.25, "p0")], exists=False)
@settings(deadline=None)
@pytest.mark.laws
@pytest.mark.slow
def test_of_resources_in_several_processes_one_alone_ever_writes_to_the_object(
    seed: int, holders: list[str], killed: list[tuple[float, str]], exists: bool
) -> None:
    async def scenario(fleet: Fleet) -> None:
        assert isinstance(fleet, ClaimingFleet)
        if exists:
            fleet.service.objects[OBJECT] = {"size": 100}
        for process in ("p0", "p1", "p2"):
            fleet.start(process)
        await fleet.until_balanced()
        names = fleet.names_held_by(holders)
        for number, name in enumerate(names):
            await fleet.store.apply(claimant(name, number + 1))
        for seconds, process in killed:
            await fleet.clock.sleep(seconds)
            fleet.kill(process)
        await fleet.until(lambda: _are_decided(fleet, names))

    fleet = play(scenario, ClaimingFleet, seed=seed, shards=12)
    assert isinstance(fleet, ClaimingFleet)
    assert len(set(fleet.writers)) == 1
    assert [one.verb for one in fleet.writes].count("create") == (0 if exists else 1)
    assert "delete" not in [one.verb for one in fleet.writes]
