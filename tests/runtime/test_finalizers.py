"""A finalizer that another writer takes off is put back by one step, at once or at the start. On virtual time."""

from hypothesis import given
from hypothesis import strategies as st

from setpoint.engine.context import FINALIZER
from setpoint.engine.management import MANAGEMENT
from setpoint.engine.owners.reconcile import CHILDREN_FINALIZER
from setpoint.engine.requeue import RESYNC_INTERVAL
from setpoint.engine.resource import Resource
from simulation.virtual_time import run
from tests.engine.gadgets import gadget_ref
from tests.runtime import test_owners as owners
from tests.runtime.manager_harness import ManagerHarness, new_harness, play, running

NEVER = {RESYNC_INTERVAL: "0"}
OTHER = "example.com/other"


async def _found(harness: ManagerHarness) -> Resource:
    found = await harness.store.get(gadget_ref("a"))
    assert found is not None
    return found


async def _settled(harness: ManagerHarness) -> None:
    await harness.apply("a", annotations=NEVER)
    await harness.settled("a")
    await harness.clock.sleep(1)


@given(st.lists(st.sampled_from([(), (OTHER,), (FINALIZER,), (FINALIZER, OTHER)]), max_size=5))
def test_each_removal_is_followed_by_one_step_and_nothing_else_is_done(writes: list[tuple[str, ...]]) -> None:
    async def scenario(harness: ManagerHarness) -> None:
        await _settled(harness)
        steps, removals = len(harness.metrics.steps), 0
        for finalizers in writes:
            before = await _found(harness)
            await harness.store.set_finalizers(before, finalizers)
            removals += FINALIZER not in finalizers
            # Longer than edits count as belonging together.
            await harness.clock.sleep(250)
            assert set((await _found(harness)).finalizers) == {*finalizers, FINALIZER}

        assert len(harness.metrics.steps) - steps == removals
        assert harness.writes("a") == ["create"]

    play(scenario)


def test_a_writer_that_removes_it_again_and_again_is_answered_less_and_less_often() -> None:
    async def scenario(harness: ManagerHarness) -> None:
        await _settled(harness)
        steps = len(harness.metrics.steps)
        for _ in range(600):
            await harness.store.set_finalizers(await _found(harness), ())
            await harness.clock.sleep(1)

        assert 5 < len(harness.metrics.steps) - steps < 40

    play(scenario)


def test_the_start_of_a_process_puts_it_back_on_a_resource_without_resyncs() -> None:
    async def main() -> None:
        async with running(new_harness()) as first:
            await _settled(first)
        await first.store.set_finalizers(await _found(first), ())
        async with running(new_harness(first.store, kind=first.kind)) as second:
            await second.clock.sleep(1)

            assert (await _found(second)).finalizers == (FINALIZER,)
            assert second.writes("a") == ["create"]

    run(main())


def test_a_paused_resource_keeps_the_finalizers_that_it_is_left_with() -> None:
    async def scenario(harness: ManagerHarness) -> None:
        await _settled(harness)
        await harness.apply("a", annotations={**NEVER, MANAGEMENT: "paused"})
        await harness.clock.sleep(1)
        await harness.store.set_finalizers(await _found(harness), ())
        await harness.clock.sleep(1)
        assert (await _found(harness)).finalizers == ()

        await harness.apply("a", annotations=NEVER)
        await harness.clock.sleep(1)
        assert (await _found(harness)).finalizers == (FINALIZER,)

    play(scenario)


def test_the_finalizer_of_an_owner_is_put_back_as_well() -> None:
    async def scenario(harness: owners.ManagerHarness) -> None:
        website = await harness.get(owners.WEBSITE)
        assert website.finalizers == (CHILDREN_FINALIZER,)

        assert await harness.kinds_triggered_by(harness.store.set_finalizers(website, ())) == ["Website"]
        assert (await harness.get(owners.WEBSITE)).finalizers == (CHILDREN_FINALIZER,)

    owners.play(scenario)
