"""During a wait nothing is written that says nothing new."""

import asyncio
from typing import Any

import pytest

from setpoint.core.wait.outputs import Unknown
from setpoint.engine.step.outcomes import Settled
from tests.engine.runner_harness import (
    ADDRESS,
    FOR_ADDRESS,
    FOR_READY,
    NO_STATUS,
    NOT_THERE,
    T0,
    RunnerHarness,
    error_of,
    play,
    settled,
)

pytestmark = pytest.mark.slow


def test_a_wait_under_way_writes_nothing() -> None:
    async def scenario(harness: RunnerHarness) -> None:
        await harness.apply("a", waitFor={"field": "status.address", "timeout": "1h"})
        await harness.step("a")
        before = await harness.revision("a")

        for _ in range(100):
            await asyncio.sleep(10)
            await harness.step("a")

        assert await harness.revision("a") == before
        assert [verb for verb, _ in harness.service.calls].count("dry run") == 2

    play(scenario)


@pytest.mark.parametrize("wait", [None, FOR_ADDRESS, FOR_READY])
def test_a_status_that_changes_all_the_time_costs_no_write_no_dry_run_and_no_plan(wait: Any) -> None:
    async def scenario(harness: RunnerHarness) -> None:
        await settled(harness, wait)
        before, calls = await harness.revision("a"), len(harness.service.calls)

        for beat in range(1_000):
            await asyncio.sleep(1)
            harness.service.set_status("a", beat=beat, observedGeneration=1)
            assert (await harness.plan("a")).is_empty
            assert isinstance(await harness.step("a"), Settled)

        assert await harness.revision("a") == before
        assert {verb for verb, _ in harness.service.calls[calls:]} == {"get"}

    play(scenario)


@pytest.mark.parametrize("address", [None, "10.0.0.1"])
def test_a_status_that_makes_a_generation_with_each_change_costs_no_write_either(address: str | None) -> None:
    async def scenario(harness: RunnerHarness) -> None:
        await harness.apply("a", waitFor={"field": ADDRESS, "timeout": "1h"})
        await harness.step("a")
        harness.service.set_status("a", beat=0, address=address)
        await asyncio.sleep(10)
        await harness.step("a")
        before = await harness.revision("a")

        for beat in range(100):
            await asyncio.sleep(1)
            harness.service.set_status("a", beat=beat)
            harness.service.objects["a"]["metadata"]["generation"] += 1
            await harness.step("a")

        assert await harness.revision("a") == before

    play(scenario)


def test_a_text_that_changes_every_second_is_written_every_few_seconds_and_returned_at_once() -> None:
    async def scenario(harness: RunnerHarness) -> None:
        await harness.apply("a", waitFor={"fieldValue": {"status.done": 1_000}, "timeout": "1h"})
        await harness.step("a")
        revisions, messages = set(), []

        for done in range(100):
            await asyncio.sleep(1)
            harness.service.set_status("a", done=done)
            messages.append(str(error_of(await harness.step("a"))))
            revisions.add(await harness.revision("a"))

        assert messages == [f"status.done is {done}, wanted 1000" for done in range(100)]
        assert len(revisions) == 21
        assert (await harness.ready("a"))[2] == "status.done is 99, wanted 1000"

    play(scenario)


def test_a_text_that_is_held_back_is_that_of_the_output_too() -> None:
    async def scenario(harness: RunnerHarness) -> None:
        await harness.apply("a", waitFor=FOR_ADDRESS)
        await harness.step("a")
        harness.service.set_status("a", phase="Pending")

        assert str(error_of(await harness.step("a"))) == NOT_THERE

        assert (await harness.ready("a"))[2] == NO_STATUS
        assert await harness.output("a") == Unknown(NO_STATUS, T0)
        await asyncio.sleep(5)
        await harness.step("a")
        assert (await harness.ready("a"))[2] == NOT_THERE
        assert await harness.output("a") == Unknown(NOT_THERE, T0)

    play(scenario)


def test_a_wait_beside_something_that_differs_writes_nothing_either() -> None:
    async def scenario(harness: RunnerHarness) -> None:
        observe = {"setpoint.dev/management": "observe"}
        harness.service.put("a", {"size": 7})
        await harness.apply("a", annotations=observe, waitFor=FOR_ADDRESS)
        await harness.step("a")
        before = await harness.revision("a")
        assert (await harness.ready("a"))[1] == "Observed"

        for _ in range(30):
            await asyncio.sleep(1)
            await harness.step("a")

        assert await harness.revision("a") == before

    play(scenario)
