"""Waits: what satisfies them, how long they last, and what ends them."""

import asyncio
from typing import Any

import pytest

from setpoint.core.wait.outputs import Known, Unknown
from setpoint.engine.step.outcomes import Settled
from setpoint.errors import (
    StillWaiting,
    WaitFailed,
    WaitTimedOut,
)
from tests.engine.runner_harness import (
    FOR_ADDRESS,
    FOR_READY,
    NO_STATUS,
    READY,
    T0,
    UNREADY,
    RunnerHarness,
    error_of,
    play,
    settled,
)

# --- What a wait is satisfied for -------------------------------------------------------------------------------------


def test_a_condition_that_flips_later_leaves_the_wait_satisfied() -> None:
    async def scenario(harness: RunnerHarness) -> None:
        await settled(harness, FOR_READY)
        before = await harness.revision("a")
        harness.service.set_status("a", **UNREADY)

        assert isinstance(await harness.step("a"), Settled)
        assert await harness.revision("a") == before

    play(scenario)


def test_a_new_generation_is_waited_for_again() -> None:
    async def scenario(harness: RunnerHarness) -> None:
        await settled(harness, FOR_READY)
        harness.service.set_status("a", observedGeneration=1)
        await harness.apply("a", {"size": 2}, waitFor=FOR_READY)

        outcome = await harness.step("a")

        behind = "it speaks of generation 1, and the object is at generation 2"
        assert str(error_of(outcome)) == f"condition Ready is out of date: {behind}"
        harness.service.set_status("a", observedGeneration=2)
        assert isinstance(await harness.step("a"), Settled)

    play(scenario)


def test_a_changed_timeout_does_not_wait_again_and_a_changed_wait_does() -> None:
    async def scenario(harness: RunnerHarness) -> None:
        await settled(harness, FOR_READY)
        harness.service.set_status("a", **UNREADY)

        await harness.apply("a", waitFor={**FOR_READY, "timeout": "5m"})
        assert isinstance(await harness.step("a"), Settled)

        await harness.apply("a", waitFor={"condition": {"type": "Ready", "status": "Unknown"}})
        assert isinstance(error_of(await harness.step("a")), StillWaiting)

    play(scenario)


def test_an_object_without_a_uid_is_never_satisfied_for_good_and_its_time_is_one_budget_all_the_same() -> None:
    async def scenario(harness: RunnerHarness) -> None:
        await harness.apply("a", waitFor=FOR_READY)
        await harness.step("a")
        harness.service.objects["a"]["metadata"]["uid"] = ""
        harness.service.set_status("a", **READY)
        assert isinstance(await harness.step("a"), Settled)
        harness.service.set_status("a", **UNREADY)
        assert isinstance(error_of(await harness.step("a")), StillWaiting)

        await asyncio.sleep(60)

        assert isinstance(error_of(await harness.step("a")), WaitTimedOut)

    play(scenario)


# --- Time -------------------------------------------------------------------------------------------------------------


def test_the_time_is_one_budget_over_all_steps_and_processes() -> None:
    async def scenario(harness: RunnerHarness) -> None:
        await harness.apply("a", waitFor=FOR_ADDRESS)
        for left in (60, 40, 20):
            error = error_of(await harness.step("a"))
            assert isinstance(error, StillWaiting)
            assert error.left == left
            await asyncio.sleep(20)

        outcome = await harness.step("a")

        message = (
            f"not within 60 s: {NO_STATUS}. Thing a stays as it is; the next apply goes on waiting, "
            "with all of the time again"
        )
        assert isinstance(error_of(outcome), WaitTimedOut)
        assert await harness.ready("a") == ("False", "WaitTimedOut", message)
        assert await harness.output("a") == Unknown(f"the wait timed out: not within 60 s: {NO_STATUS}", T0)
        assert harness.service.writes == [("create", "a")]

    play(scenario)


def test_a_generation_of_another_writer_does_not_restart_the_timeout() -> None:
    async def scenario(harness: RunnerHarness) -> None:
        await harness.apply("a", waitFor=FOR_ADDRESS)
        for _ in range(6):
            assert isinstance(error_of(await harness.step("a")), StillWaiting)
            await asyncio.sleep(10)
            harness.service.objects["a"]["metadata"]["generation"] += 1

        assert isinstance(error_of(await harness.step("a")), WaitTimedOut)

    play(scenario)


def test_a_new_spec_has_all_of_the_time_again() -> None:
    async def scenario(harness: RunnerHarness) -> None:
        await harness.apply("a", waitFor=FOR_ADDRESS)
        await harness.step("a")
        await asyncio.sleep(100)
        assert isinstance(error_of(await harness.step("a")), WaitTimedOut)
        await harness.apply("a", {"size": 2}, waitFor=FOR_ADDRESS)

        error = error_of(await harness.step("a"))

        assert isinstance(error, StillWaiting)
        assert error.left == 60

    play(scenario)


def test_success_after_the_end_of_the_time_counts() -> None:
    async def scenario(harness: RunnerHarness) -> None:
        await harness.apply("a", waitFor=FOR_ADDRESS)
        await harness.step("a")
        await asyncio.sleep(100)
        assert isinstance(error_of(await harness.step("a")), WaitTimedOut)

        harness.service.set_status("a", address="10.0.0.1")

        assert isinstance(await harness.step("a"), Settled)
        assert isinstance(await harness.output("a"), Known)

    play(scenario)


@pytest.mark.parametrize("how", [{"restart_wait": True}, {"requested": True}])
def test_a_request_after_the_end_of_the_time_has_all_of_it_again(how: dict[str, bool]) -> None:
    async def scenario(harness: RunnerHarness) -> None:
        await harness.apply("a", waitFor=FOR_ADDRESS)
        await harness.step("a")
        await asyncio.sleep(100)
        assert isinstance(error_of(await harness.step("a")), WaitTimedOut)

        error = error_of(await harness.step("a", **how))

        assert isinstance(error, StillWaiting)
        assert error.left == 60

    play(scenario)


@pytest.mark.parametrize("how", [{"restart_wait": True}, {"requested": True}])
def test_a_reconcile_request_before_the_timeout_has_the_rest_of_it(how: dict[str, bool]) -> None:
    async def scenario(harness: RunnerHarness) -> None:
        await harness.apply("a", waitFor=FOR_ADDRESS)
        await harness.step("a")
        await asyncio.sleep(40)

        error = error_of(await harness.step("a", **how))

        assert isinstance(error, StillWaiting)
        assert error.left == 20

    play(scenario)


def test_more_time_is_more_of_the_same_time() -> None:
    async def scenario(harness: RunnerHarness) -> None:
        await harness.apply("a", waitFor=FOR_ADDRESS)
        await harness.step("a")
        await asyncio.sleep(40)
        await harness.apply("a", waitFor={**FOR_ADDRESS, "timeout": "90s"})

        error = error_of(await harness.step("a"))

        assert isinstance(error, StillWaiting)
        assert error.left == 50

    play(scenario)


def test_a_clock_that_was_set_back_makes_no_wait_longer_than_the_time() -> None:
    async def scenario(harness: RunnerHarness) -> None:
        await harness.apply("a", waitFor=FOR_ADDRESS)
        await harness.step("a")
        found: Any = dict((await harness.resource("a")).status)
        later = {**found["setpoint"]["wait"], "since": "2026-01-02T00:00:00Z", "told": "2026-01-02T00:00:00Z"}
        changed = {**found, "setpoint": {**found["setpoint"], "wait": later}}
        await harness.store.update_status(await harness.resource("a"), changed)

        first = error_of(await harness.step("a"))

        assert isinstance(first, StillWaiting)
        assert first.left == 60
        await asyncio.sleep(60)
        assert isinstance(error_of(await harness.step("a")), WaitTimedOut)

    play(scenario)


def test_a_started_write_is_reported_by_the_step_that_sent_it() -> None:
    async def scenario(harness: RunnerHarness) -> None:
        await harness.apply("a", waitFor=FOR_ADDRESS)
        first, second = error_of(await harness.step("a")), error_of(await harness.step("a"))
        await harness.apply("a", {"size": 2}, waitFor=FOR_ADDRESS)
        third = error_of(await harness.step("a"))

        assert [one.begun for one in (first, second, third) if isinstance(one, StillWaiting)] == [
            "create",
            "",
            "update",
        ]

    play(scenario)


# --- Failure ----------------------------------------------------------------------------------------------------------


def test_a_failure_ends_a_wait_at_once_and_says_why() -> None:
    async def scenario(harness: RunnerHarness) -> None:
        harness.service.objects["a"] = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "a", "uid": "u"},
            "spec": {"size": 1},
        }
        await harness.apply("a", waitFor={"rollout": True})
        await harness.step("a")
        failed = {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "too many failures"}
        harness.service.set_status("a", conditions=[failed])

        outcome = await harness.step("a")

        assert isinstance(error_of(outcome), WaitFailed)
        assert await harness.ready("a") == ("False", "WaitFailed", "BackoffLimitExceeded: too many failures")

    play(scenario)


@pytest.mark.parametrize("is_back", [False, True])
def test_an_object_that_is_deleted_or_replaced_during_its_wait_fails_once_and_the_next_step_continues(
    is_back: bool,
) -> None:
    async def scenario(harness: RunnerHarness) -> None:
        await harness.apply("a", waitFor=FOR_ADDRESS)
        await harness.step("a")
        await asyncio.sleep(10)
        harness.service.remove("a")
        if is_back:
            harness.service.put("a", {"size": 1})

        outcome = await harness.step("a")

        message = "Recreated: Thing a was replaced by another while it was waited for"
        assert isinstance(error_of(outcome), WaitFailed)
        assert await harness.ready("a") == ("False", "WaitFailed", message)
        assert harness.live("a") == {"size": 1}
        error = error_of(await harness.step("a"))
        assert isinstance(error, StillWaiting)
        assert error.left == 60

    play(scenario)


def test_a_replaced_object_that_satisfies_the_wait_is_accepted() -> None:
    async def scenario(harness: RunnerHarness) -> None:
        await harness.apply("a", waitFor=FOR_ADDRESS)
        await harness.step("a")
        harness.service.remove("a")
        harness.service.put("a", {"size": 1})
        harness.service.set_status("a", address="10.0.0.1")

        assert isinstance(await harness.step("a"), Settled)

    play(scenario)


def test_an_object_that_its_author_replaces_during_its_wait_is_a_new_wait() -> None:
    async def scenario(harness: RunnerHarness) -> None:
        await harness.apply("a", {"zone": "x"}, waitFor=FOR_ADDRESS, replace=True)
        await harness.step("a")
        await harness.apply("a", {"zone": "y"}, waitFor=FOR_ADDRESS, replace=True)

        await harness.step("a")
        outcome = await harness.step("a")

        assert isinstance(error_of(outcome), StillWaiting)
        assert harness.live("a") == {"zone": "y"}

    play(scenario)
