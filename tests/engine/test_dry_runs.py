"""Kinds with dry runs: the answer of the service is the plan."""

import asyncio

from setpoint.core.plan import Action
from setpoint.engine.step.outcomes import Settled
from tests.engine.runner_harness import RunnerHarness, play


def test_an_object_with_nothing_in_it_is_made_all_the_same() -> None:
    async def scenario(harness: RunnerHarness) -> None:
        await harness.apply("a", {})

        assert [write.action for write in (await harness.plan("a")).writes] == [Action.CREATE]
        assert isinstance(await harness.step("a"), Settled)
        assert harness.live("a") == {}

    play(scenario)


def test_the_dry_run_is_the_plan_and_drift_is_corrected() -> None:
    async def scenario(harness: RunnerHarness) -> None:
        await harness.apply("a", {"size": 1, "host": "x"})
        await harness.step("a")
        harness.service.put("a", {"size": 1, "host": "y"})

        plan = await harness.plan("a")

        assert [(str(one.path), one.before, one.after) for one in plan.changes] == [("spec.host", "y", "x")]
        assert isinstance(await harness.step("a"), Settled)
        assert harness.live("a") == {"size": 1, "host": "x"}
        calls = len(harness.service.calls)
        await asyncio.sleep(1)
        await harness.step("a")
        assert harness.service.calls[calls:] == [("get", "a")]

    play(scenario)


def test_an_unmanaged_field_is_not_reverted_whatever_the_dry_run_says() -> None:
    async def scenario(harness: RunnerHarness) -> None:
        await harness.apply("a", {"size": 1, "host": "x"}, annotations={"cnrm.cloud.google.com/unmanaged": "spec.host"})
        await harness.step("a")
        harness.service.put("a", {"size": 1, "host": "y"})

        assert isinstance(await harness.step("a"), Settled)
        assert harness.live("a") == {"size": 1, "host": "y"}

    play(scenario)
