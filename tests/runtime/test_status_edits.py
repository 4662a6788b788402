"""Edits of a status by another writer: one step restores it at once; further ones back off. On virtual time."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.core.values.json_types import JsonObject
from setpoint.engine.ports import ResourceUpdate
from setpoint.engine.requeue import RESYNC_INTERVAL
from tests.engine.gadgets import gadget_ref
from tests.runtime.manager_harness import ManagerHarness, play

READY = {"type": "Ready", "status": "False", "reason": "Wrong", "message": "no"}
# Shorter than any resync.
A_MOMENT = 5.0


async def _edit(harness: ManagerHarness, change: JsonObject) -> None:
    """Another writer sets members of the status; None removes one."""
    found = await harness.store.get(gadget_ref("a"))
    assert found is not None
    merged = {**found.status, **change}
    status = {name: value for name, value in merged.items() if value is not None}
    await harness.store.update(found, ResourceUpdate(status=status))


async def _settled(harness: ManagerHarness, **metadata: Any) -> JsonObject:
    await harness.apply("a", **metadata)
    await harness.settled("a")
    await harness.clock.sleep(1)
    return await harness.status("a")


@pytest.mark.parametrize(
    "change",
    [{"conditions": None}, {"conditions": [READY]}, {"observedGeneration": None}, {"url": "wrong"}, {"mine": 1}],
    ids=lambda change: next(iter(change)),
)
def test_an_edit_of_a_status_is_restored_by_one_step(change: JsonObject) -> None:
    async def scenario(harness: ManagerHarness) -> None:
        before, steps = await _settled(harness), len(harness.metrics.steps)
        await _edit(harness, change)
        await harness.clock.sleep(A_MOMENT)

        after = await harness.status("a")
        assert {name: value for name, value in after.items() if name != "conditions"} == {
            name: value for name, value in before.items() if name != "conditions"
        }
        assert [(one["type"], one["status"], one["reason"]) for one in after["conditions"]] == [
            ("Ready", "True", "UpToDate")
        ]
        assert len(harness.metrics.steps) == steps + 1
        # Nothing is left to do for the object itself.
        assert harness.writes("a") == ["create"]

    play(scenario)


def test_a_resource_without_resyncs_is_restored_as_well() -> None:
    async def scenario(harness: ManagerHarness) -> None:
        await _settled(harness, annotations={RESYNC_INTERVAL: "0"})
        await _edit(harness, {"conditions": None})
        await harness.settled("a")

        assert len(harness.metrics.steps) == 2

    play(scenario)


def test_a_writer_that_edits_again_and_again_is_answered_less_and_less_often() -> None:
    async def scenario(harness: ManagerHarness) -> None:
        await _settled(harness)
        steps = len(harness.metrics.steps)
        for _ in range(600):
            await _edit(harness, {"conditions": None})
            await harness.clock.sleep(1)

        # At once, after 0.25 s, and so on to two minutes; not 600 times.
        assert 5 < len(harness.metrics.steps) - steps < 40
        await harness.settled("a")

    play(scenario)


def test_after_a_calm_time_an_edit_is_answered_at_once_again() -> None:
    async def scenario(harness: ManagerHarness) -> None:
        await _settled(harness, annotations={RESYNC_INTERVAL: "1000000"})
        for _ in range(8):
            await _edit(harness, {"conditions": None})
            await harness.settled("a")
        await harness.clock.sleep(241)
        await _edit(harness, {"conditions": None})
        edited = harness.clock.monotonic()

        assert await harness.settled("a") - edited < 0.2

    play(scenario)


@given(st.lists(st.sampled_from(["spec", "status", "label"]), max_size=6))
def test_each_change_of_another_writer_is_followed_by_one_step_and_our_own_writes_by_none(changes: list[str]) -> None:
    async def scenario(harness: ManagerHarness) -> None:
        never = {RESYNC_INTERVAL: "0"}
        await _settled(harness, annotations=never)
        size, labels = 1, dict[str, str]()
        for number, change in enumerate(changes):
            if change == "status":
                await _edit(harness, {"mine": number})
            else:
                size, labels = (number + 2, labels) if change == "spec" else (size, {"number": str(number)})
                await harness.apply("a", {"size": size}, labels=labels, annotations=never)
            # Longer than edits count as belonging together.
            await harness.clock.sleep(250)

        assert await harness.is_settled("a")
        assert len(harness.metrics.steps) == 1 + len(changes)

    play(scenario)
