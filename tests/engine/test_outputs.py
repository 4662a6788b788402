"""The output of a resource for its dependants: null, unknown or known, by its wait and the live object."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from setpoint.core.wait.outputs import Known, Null, OutputState, Unknown
from setpoint.engine.state import StoredState
from setpoint.engine.step.outcomes import Settled
from setpoint.errors import (
    RemoteUnavailable,
    StillWaiting,
)
from setpoint.stores.sqlite.store import open_sqlite
from simulation.virtual_time import VirtualClock, threaded
from tests.engine.runner_harness import (
    FOR_ADDRESS,
    NO_STATUS,
    NOT_THERE,
    READY,
    T0,
    RunnerHarness,
    error_of,
    play,
    settled,
)


def _at(seconds: int) -> str:
    return f"2026-01-01T00:{seconds // 60:02}:{seconds % 60:02}Z"


def test_without_a_wait_the_output_is_null() -> None:
    async def scenario(harness: RunnerHarness) -> None:
        await harness.apply("a")

        assert isinstance(await harness.step("a"), Settled)
        assert await harness.output("a") == Null()

    play(scenario)


@pytest.mark.parametrize(
    ("wait", "status"),
    [
        ({"condition": "Ready"}, READY),
        ({"fieldValue": {"status.phase": "Bound"}}, {"phase": "Bound"}),
    ],
)
def test_with_a_wait_that_is_no_field_wait_the_output_is_null_before_and_after(
    wait: dict[str, Any], status: dict[str, Any]
) -> None:
    async def scenario(harness: RunnerHarness) -> None:
        await harness.apply("a", waitFor=wait)
        assert isinstance(error_of(await harness.step("a")), StillWaiting)
        assert await harness.output("a") == Null()

        harness.service.set_status("a", **status)

        assert isinstance(await harness.step("a"), Settled)
        assert await harness.output("a") == Null()

    play(scenario)


def test_a_rollout_is_waited_for_and_offers_nothing() -> None:
    async def scenario(harness: RunnerHarness) -> None:
        harness.service.objects["a"] = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "a", "uid": "u", "generation": 2},
            "spec": {"replicas": 3},
            "status": {"observedGeneration": 2, "updatedReplicas": 3, "replicas": 3, "availableReplicas": 2},
        }
        await harness.apply("a", {"replicas": 3}, waitFor={"rollout": True})
        assert str(error_of(await harness.step("a"))) == "2 of 3 replicas available"

        harness.service.set_status("a", availableReplicas=3)

        assert isinstance(await harness.step("a"), Settled)
        assert await harness.output("a") == Null()

    play(scenario)


def test_a_field_that_is_there_is_known_and_nothing_beside_it() -> None:
    async def scenario(harness: RunnerHarness) -> None:
        await harness.apply("a", waitFor=FOR_ADDRESS)
        await harness.step("a")
        harness.service.set_status("a", address="10.0.0.1", observedGeneration=1, **READY)

        assert isinstance(await harness.step("a"), Settled)
        assert await harness.output("a") == Known({"status": {"address": "10.0.0.1"}})
        assert await harness.ready("a") == ("True", "UpToDate", "The resource is up to date")

    play(scenario)


def test_what_changes_by_itself_enters_no_output_however_much_is_asked_for() -> None:
    async def scenario(harness: RunnerHarness) -> None:
        await harness.apply("a", waitFor={"field": "status"})
        await harness.step("a")
        times = {"lastTransitionTime": T0, "lastUpdateTime": T0, "observedGeneration": 1}
        harness.service.set_status("a", observedGeneration=1)
        assert isinstance(error_of(await harness.step("a")), StillWaiting)

        harness.service.set_status("a", conditions=[{"type": "Ready", "status": "True", **times}])

        assert isinstance(await harness.step("a"), Settled)
        assert await harness.output("a") == Known({"status": {"conditions": [{"type": "Ready", "status": "True"}]}})

    play(scenario)


def test_no_status_yet_and_a_field_that_is_not_there_are_unknown_since_the_same_time() -> None:
    async def scenario(harness: RunnerHarness) -> None:
        await harness.apply("a", waitFor=FOR_ADDRESS)
        await harness.step("a")
        assert await harness.output("a") == Unknown(NO_STATUS, T0)
        await asyncio.sleep(20)
        harness.service.set_status("a", phase="Pending")

        await harness.step("a")

        assert await harness.output("a") == Unknown(NOT_THERE, T0)
        assert await harness.ready("a") == ("False", "Waiting", NOT_THERE)

    play(scenario)


def test_a_read_that_failed_makes_it_unknown_and_the_next_one_known_again() -> None:
    async def scenario(harness: RunnerHarness) -> None:
        await settled(harness)
        await asyncio.sleep(5)
        harness.service.down = "no route"

        outcome = await harness.step("a")

        known = {"status": {"address": "10.0.0.1"}}
        assert isinstance(error_of(outcome), RemoteUnavailable)
        assert await harness.output("a") == Unknown("the read failed: get a: no route", _at(5), known)
        harness.service.down = ""
        assert isinstance(await harness.step("a"), Settled)
        assert await harness.output("a") == Known(known)

    play(scenario)


def test_after_an_outage_the_same_bytes_are_decoded_again() -> None:
    async def scenario(harness: RunnerHarness) -> None:
        harness.service.put("a", {"size": 1})
        harness.service.set_status("a", address="10.0.0.1")
        await harness.apply("a", waitFor=FOR_ADDRESS)
        await harness.step("a")

        assert await _during_and_after_an_outage(harness) == (Unknown, Known)

    play(scenario)


async def _during_and_after_an_outage(harness: RunnerHarness) -> tuple[type[OutputState], type[OutputState]]:
    """The output after a read that failed, and after the next that did not."""
    harness.service.down = "no route"
    await harness.step("a")
    during = type(await harness.output("a"))
    harness.service.down = ""
    await harness.step("a")
    return during, type(await harness.output("a"))


def test_a_read_that_fails_is_seen_by_a_process_that_had_it_at_rest() -> None:
    async def scenario(harness: RunnerHarness) -> None:
        harness.run_continuously()
        await settled(harness)
        await harness.step("a")

        assert await _during_and_after_an_outage(harness) == (Unknown, Known)

    play(scenario)


def test_an_outage_is_written_down_once_however_it_shows() -> None:
    async def scenario(harness: RunnerHarness) -> None:
        await settled(harness)
        harness.service.down = "no route"
        await harness.step("a")
        before = await harness.revision("a")

        for trouble in ("reset", "timed out", "no route"):
            harness.service.down = trouble
            await asyncio.sleep(30)
            await harness.step("a")

        assert await harness.revision("a") == before

    play(scenario)


def test_a_write_that_is_not_answered_says_nothing_about_the_value() -> None:
    async def scenario(harness: RunnerHarness) -> None:
        await settled(harness)
        await harness.apply("a", {"size": 2}, waitFor=FOR_ADDRESS)
        harness.service.down, harness.service.down_for = "no route", ("update",)

        assert isinstance(error_of(await harness.step("a")), RemoteUnavailable)
        assert isinstance(await harness.output("a"), Known)

    play(scenario)


def test_a_value_that_vanishes_is_unknown_and_remembered_and_known_again_when_it_is_back() -> None:
    async def scenario(harness: RunnerHarness) -> None:
        await settled(harness)
        await asyncio.sleep(10)
        harness.service.set_status("a", address=None)

        assert isinstance(error_of(await harness.step("a")), StillWaiting)

        assert await harness.output("a") == Unknown("disappeared", _at(10), {"status": {"address": "10.0.0.1"}})
        harness.service.set_status("a", address="10.0.0.2")
        assert isinstance(await harness.step("a"), Settled)
        assert await harness.output("a") == Known({"status": {"address": "10.0.0.2"}})

    play(scenario)


def test_a_value_that_vanishes_after_a_long_time_has_all_of_the_time_to_come_back() -> None:
    async def scenario(harness: RunnerHarness) -> None:
        await settled(harness)
        await asyncio.sleep(1_000)
        harness.service.set_status("a", address=None)

        error = error_of(await harness.step("a"))

        assert isinstance(error, StillWaiting)
        assert error.left == 60

    play(scenario)


def test_outputs_and_waits_survive_storage() -> None:
    async def scenario(harness: RunnerHarness) -> None:
        await settled(harness)
        before = await harness.resource("a")

        assert StoredState.of(before).into(before.status, with_cookie=True) == before.status
        assert before.status["output"] == {"state": "known", "value": {"status": {"address": "10.0.0.1"}}}

    play(scenario)


def test_outputs_and_the_time_that_is_left_survive_a_restart(tmp_path: Path) -> None:
    async def opened(harness: RunnerHarness) -> None:
        harness.store = threaded(await open_sqlite(tmp_path / "state.db", VirtualClock(), lambda: "uid"))

    async def scenario(harness: RunnerHarness) -> None:
        await opened(harness)
        await harness.apply("a", waitFor=FOR_ADDRESS)
        await harness.step("a")
        await asyncio.sleep(40)
        await harness.store.close()
        await opened(harness)
        error = error_of(await harness.step("a"))
        assert isinstance(error, StillWaiting)
        assert error.left == 20
        assert await harness.output("a") == Unknown(NO_STATUS, T0)
        harness.service.set_status("a", address="10.0.0.1")
        await harness.step("a")
        before = await harness.revision("a")
        await harness.store.close()

        await opened(harness)

        assert await harness.output("a") == Known({"status": {"address": "10.0.0.1"}})
        assert isinstance(await harness.step("a"), Settled)
        assert await harness.revision("a") == before
        await harness.store.close()

    play(scenario)


def test_a_memory_that_cannot_be_read_is_forgotten() -> None:
    async def scenario(harness: RunnerHarness) -> None:
        await harness.apply("a", waitFor=FOR_ADDRESS)
        await harness.step("a")
        found: Any = dict((await harness.resource("a")).status)
        ours = {**found["setpoint"], "wait": {**found["setpoint"]["wait"], "since": "a while ago"}}
        await harness.store.update_status(await harness.resource("a"), {**found, "setpoint": ours})

        assert isinstance(error_of(await harness.step("a")), StillWaiting)

    play(scenario)


# --- Held back --------------------------------------------------------------------------------------------------------


def test_an_object_that_is_only_observed_is_waited_for_and_offers_what_it_has() -> None:
    async def scenario(harness: RunnerHarness) -> None:
        observe = {"setpoint.dev/management": "observe"}
        await harness.apply("a", annotations=observe, waitFor=FOR_ADDRESS)
        await harness.step("a")
        assert await harness.output("a") == Unknown("a does not exist yet", T0)

        harness.service.put("a", {"size": 1})
        assert isinstance(error_of(await harness.step("a")), StillWaiting)
        assert (await harness.ready("a"))[1] == "Waiting"

        harness.service.set_status("a", address="10.0.0.1")
        assert isinstance(await harness.step("a"), Settled)
        assert await harness.output("a") == Known({"status": {"address": "10.0.0.1"}})

        harness.service.remove("a")
        await harness.step("a")
        assert await harness.output("a") == Unknown("disappeared", T0, {"status": {"address": "10.0.0.1"}})
        assert harness.service.writes == []

    play(scenario)
