"""The beginning and the end of a process: on virtual time."""

import asyncio

import pytest

from setpoint.engine.references import is_ready
from setpoint.runtime.manager import Phase
from tests.engine.gadgets import gadget_ref
from tests.runtime.rig import Rig, new_rig, running
from tests.runtime.virtual_time import run


async def _started(rig: Rig) -> asyncio.Task[None]:
    task = asyncio.create_task(rig.manager.run())
    while not rig.manager.is_ready:
        await asyncio.sleep(0)
    return task


def test_is_ready_once_everything_has_been_heard_of() -> None:
    async def main() -> None:
        rig = new_rig()
        for number in range(1_200):
            await rig.apply(f"n{number}")
        phases = [rig.manager.phase]

        task = await _started(rig)
        heard = len(rig.manager.index)
        rig.manager.stop()
        await task

        phases.append(rig.manager.phase)

        assert heard == 1_200
        assert phases == [Phase.STARTING, Phase.ENDED]

    run(main())


def test_what_is_in_work_is_finished_and_nothing_new_is_begun() -> None:
    async def main() -> None:
        rig = new_rig()

        async def take_ten_seconds(_name: str) -> None:
            await rig.clock.sleep(10)

        rig.kind.before = take_ten_seconds
        task = await _started(rig)
        for number in range(30):
            await rig.apply(f"n{number:02}")
        await rig.clock.sleep(1)
        rig.manager.stop()
        await rig.clock.sleep(0.01)
        assert rig.manager.phase is Phase.DRAINING
        await task

        resources = (await rig.store.list()).resources
        # As many as there are hands; each took two looks.
        assert [one.ref.name for one in resources if is_ready(one)] == [f"n{number:02}" for number in range(10)]
        assert sorted(rig.service.objects) == [f"n{number:02}" for number in range(10)]
        assert rig.clock.monotonic() == pytest.approx(20, abs=1)

    run(main())


def test_a_step_that_does_not_end_is_cut_after_the_time_of_grace() -> None:
    async def main() -> None:
        rig = new_rig(grace=25.0)

        async def take_for_ever(_name: str) -> None:
            await rig.clock.sleep(10**6)

        rig.kind.before = take_for_ever
        task = await _started(rig)
        await rig.apply("a")
        await rig.clock.sleep(1)
        rig.manager.stop()
        await task

        assert rig.clock.monotonic() == 26.0
        assert rig.service.objects == {}

    run(main())


def test_the_next_process_goes_on_where_the_last_was_cut() -> None:
    async def main() -> None:
        first = new_rig(grace=1.0)
        first.service.slow = True
        async with running(first):
            await first.apply("a")
            await first.clock.sleep(5)
        second = new_rig(first.store)
        second.service.objects, second.service.jobs = first.service.objects, first.service.jobs
        async with running(second):
            second.service.finish()
            await second.settled("a")

        assert second.writes("a") == []
        assert first.writes("a") == ["create"]

    run(main())


def test_at_the_start_everything_is_looked_at_after_what_people_do_meanwhile() -> None:
    async def main() -> None:
        rig = new_rig()

        async def take_a_second(_name: str) -> None:
            await rig.clock.sleep(1)

        rig.kind.before = take_a_second
        for number in range(200):
            await rig.apply(f"old-{number}")
        task = await _started(rig)
        await rig.clock.sleep(2)
        began = rig.clock.monotonic()
        await rig.apply("edited")
        at = await rig.settled("edited")
        rig.manager.stop()
        await task

        # Its two looks, after at most one step of those in work.
        assert at - began < 5

    run(main())


def test_what_is_stopped_before_it_is_ready_ends_all_the_same() -> None:
    async def main() -> None:
        rig = new_rig()
        rig.manager.stop()
        await rig.manager.run()

        assert rig.manager.phase is Phase.ENDED

    run(main())


def test_what_nobody_handles_is_left_alone() -> None:
    async def main() -> None:
        rig = new_rig()
        async with running(rig):
            await rig.secret("x")
            await rig.store.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}})
            await rig.clock.sleep(1_000)

            assert rig.tally.steps == []
            assert len(rig.manager.index) == 2
            assert rig.manager.index.get(gadget_ref("c")) is None

    run(main())
