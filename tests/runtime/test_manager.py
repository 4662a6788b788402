"""The beginning and the end of a process: on virtual time."""

import asyncio

import pytest

from setpoint.engine.references import is_ready
from setpoint.runtime.manager import Phase
from simulation.virtual_time import run
from tests.engine.gadgets import gadget_ref
from tests.runtime.manager_harness import ManagerHarness, new_harness, running


async def _started(harness: ManagerHarness) -> asyncio.Task[None]:
    task = asyncio.create_task(harness.manager.run())
    while not harness.manager.is_ready:
        await asyncio.sleep(0)
    return task


def test_the_manager_is_ready_once_the_index_has_every_resource() -> None:
    async def main() -> None:
        harness = new_harness()
        for number in range(1_200):
            await harness.apply(f"n{number}")
        phases = [harness.manager.phase]

        task = await _started(harness)
        indexed = len(harness.manager.index)
        harness.manager.stop()
        await task

        phases.append(harness.manager.phase)

        assert indexed == 1_200
        assert phases == [Phase.STARTING, Phase.ENDED]

    run(main())


def test_a_shutdown_finishes_running_steps_and_starts_no_others() -> None:
    async def main() -> None:
        harness = new_harness()

        async def take_ten_seconds(_name: str) -> None:
            await harness.clock.sleep(10)

        harness.kind.before = take_ten_seconds
        task = await _started(harness)
        for number in range(30):
            await harness.apply(f"n{number:02}")
        await harness.clock.sleep(1)
        harness.manager.stop()
        await harness.clock.sleep(0.01)
        assert harness.manager.phase is Phase.DRAINING
        await task

        resources = (await harness.store.list()).resources
        # As many as there are workers; each took two observations.
        assert [one.ref.name for one in resources if is_ready(one)] == [f"n{number:02}" for number in range(10)]
        assert sorted(harness.service.objects) == [f"n{number:02}" for number in range(10)]
        assert harness.clock.monotonic() == pytest.approx(20, abs=1)

    run(main())


def test_a_step_that_does_not_end_is_cancelled_after_the_grace_period() -> None:
    async def main() -> None:
        harness = new_harness(grace=25.0)

        async def take_for_ever(_name: str) -> None:
            await harness.clock.sleep(10**6)

        harness.kind.before = take_for_ever
        task = await _started(harness)
        await harness.apply("a")
        await harness.clock.sleep(1)
        harness.manager.stop()
        await task

        assert harness.clock.monotonic() == 26.0
        assert harness.service.objects == {}

    run(main())


def test_the_next_process_continues_an_interrupted_operation() -> None:
    async def main() -> None:
        first = new_harness(grace=1.0)
        first.service.slow = True
        async with running(first):
            await first.apply("a")
            await first.clock.sleep(5)
        second = new_harness(first.store)
        second.service.objects, second.service.jobs = first.service.objects, first.service.jobs
        async with running(second):
            second.service.finish()
            await second.settled("a")

        assert second.writes("a") == []
        assert first.writes("a") == ["create"]

    run(main())


def test_an_edit_goes_before_the_reconciles_of_the_start_up() -> None:
    async def main() -> None:
        harness = new_harness()

        async def take_a_second(_name: str) -> None:
            await harness.clock.sleep(1)

        harness.kind.before = take_a_second
        for number in range(200):
            await harness.apply(f"old-{number}")
        task = await _started(harness)
        await harness.clock.sleep(2)
        began = harness.clock.monotonic()
        await harness.apply("edited")
        at = await harness.settled("edited")
        harness.manager.stop()
        await task

        # Its two observations, after at most one of the running steps.
        assert at - began < 5

    run(main())


def test_a_manager_that_is_stopped_before_it_is_ready_ends() -> None:
    async def main() -> None:
        harness = new_harness()
        harness.manager.stop()
        await harness.manager.run()

        assert harness.manager.phase is Phase.ENDED

    run(main())


def test_resources_without_a_controller_are_not_reconciled() -> None:
    async def main() -> None:
        harness = new_harness()
        async with running(harness):
            await harness.secret("x")
            await harness.store.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}})
            await harness.clock.sleep(1_000)

            assert harness.metrics.steps == []
            assert len(harness.manager.index) == 2
            assert harness.manager.index.get(gadget_ref("c")) is None

    run(main())
