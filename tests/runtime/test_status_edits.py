"""Edits of a status by another writer: one step restores it at once; further ones back off. On virtual time."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.core.values.canonical import same
from setpoint.core.values.json_types import JsonObject
from setpoint.engine.context import DELETION_POLICY
from setpoint.engine.ports import ResourceUpdate
from setpoint.engine.requeue import RESYNC_INTERVAL
from setpoint.engine.resource import Resource
from setpoint.engine.state import (
    StoredState,
    is_status_edited,
    outputs_in,
    with_status_digest,
    without_status_digest,
)
from setpoint.testing.faults import CallFault
from simulation.virtual_time import run
from tests.engine.gadgets import Fault, gadget_ref
from tests.runtime.manager_harness import ManagerHarness, new_harness, play, running

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


def _without_times(status: JsonObject) -> JsonObject:
    """The status without its conditions, and without the digest that covers them."""
    return {name: value for name, value in without_status_digest(status).items() if name != "conditions"}


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
        assert _without_times(after) == _without_times(before)
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


# --- Without a process, and after a failed step -----------------------------------------------------------------------


@pytest.mark.parametrize("resync", ["600", "0"])
@pytest.mark.parametrize("change", [{"url": "wrong"}, {"mine": 1}, {"setpoint": None}, {"conditions": None}], ids=str)
def test_what_was_edited_while_no_process_ran_is_restored_at_the_start(change: JsonObject, resync: str) -> None:
    """Also where the object is what it was, byte for byte."""

    async def main() -> None:
        async with running(new_harness()) as first:
            before = await _settled(first, annotations={RESYNC_INTERVAL: resync})
        await _edit(first, change)
        async with running(new_harness(first.store, kind=first.kind)) as second:
            await second.clock.sleep(A_MOMENT)

            after = await second.status("a")
            assert outputs_in(after) == outputs_in(before)
            assert StoredState.of(Resource({"metadata": {}, "status": after})).location == "a"
            assert await second.is_settled("a")
            assert second.writes("a") == ["create"]

    run(main())


def test_an_edit_is_restored_after_an_outage_as_well() -> None:
    async def scenario(harness: ManagerHarness) -> None:
        await _settled(harness)
        harness.service.faults.append(Fault(CallFault.UNAVAILABLE, ("get",), 3))
        await _edit(harness, {"url": "wrong"})
        await harness.clock.sleep(60)

        assert "url" not in await harness.status("a")

    play(scenario)


def test_a_start_with_statuses_of_an_earlier_version_writes_nothing() -> None:
    async def main() -> None:
        async with running(new_harness()) as first:
            await _settled(first)
        found = await first.store.get(gadget_ref("a"))
        assert found is not None
        earlier = await first.store.update(found, ResourceUpdate(status=without_status_digest(found.status)))
        async with running(new_harness(first.store, kind=first.kind)) as second:
            await second.clock.sleep(A_MOMENT)

            assert len(second.metrics.steps) == 1
            assert await second.store.get(gadget_ref("a")) == earlier

    run(main())


# --- A wiped record ---------------------------------------------------------------------------------------------------


async def _wipe(harness: ManagerHarness, name: str) -> None:
    found = await harness.store.get(gadget_ref(name))
    assert found is not None
    await harness.store.update(found, ResourceUpdate(status={}))


def test_a_resource_whose_status_is_wiped_keeps_its_object_against_another() -> None:
    async def scenario(harness: ManagerHarness) -> None:
        for name, size in (("first", 1), ("second", 2)):
            await harness.apply(name, {"size": size, "resourceID": "shared"})
            await harness.clock.sleep(1)
        await _wipe(harness, "first")
        await harness.clock.sleep(A_MOMENT)

        assert await harness.is_settled("first")
        assert not await harness.is_settled("second")
        assert harness.writes("shared") == ["create"]

    play(scenario)


def test_no_second_object_is_made_when_the_spec_names_another_meanwhile() -> None:
    async def scenario(harness: ManagerHarness) -> None:
        await _settled(harness)
        await harness.apply("a", {"size": 1, "resourceID": "b"})
        await harness.clock.sleep(1)
        await _wipe(harness, "a")
        await harness.clock.sleep(A_MOMENT)

        assert list(harness.service.objects) == ["a"]
        await harness.store.delete(gadget_ref("a"))
        await harness.clock.sleep(A_MOMENT)
        assert harness.service.objects == {}

    play(scenario)


def test_a_deletion_right_after_the_status_was_wiped_deletes_the_object() -> None:
    async def scenario(harness: ManagerHarness) -> None:
        await _settled(harness)
        await _wipe(harness, "a")
        await harness.store.delete(gadget_ref("a"))
        await harness.clock.sleep(A_MOMENT)

        assert harness.service.objects == {}
        assert await harness.store.get(gadget_ref("a")) is None

    play(scenario)


@pytest.mark.parametrize(("policy", "is_left"), [("abandon", True), ("delete", False)])
def test_without_any_record_of_its_object_a_deletion_waits_for_the_word_of_the_author(
    policy: str, is_left: bool
) -> None:
    async def main() -> None:
        async with running(new_harness()) as first:
            await _settled(first)
        await _wipe(first, "a")
        await first.store.delete(gadget_ref("a"))
        async with running(new_harness(first.store, kind=first.kind)) as second:
            await second.clock.sleep(A_MOMENT)
            (ready,) = (await second.status("a"))["conditions"]
            assert (ready["reason"], "its status was wiped" in ready["message"]) == ("DeleteFailed", True)
            assert list(second.service.objects) == ["a"]
            # It is still not known: what the step wrote meanwhile says nothing about the object.
            await second.clock.sleep(3600)
            assert list(second.service.objects) == ["a"]

            await second.apply("a", annotations={DELETION_POLICY: policy})
            await second.clock.sleep(A_MOMENT)
            assert (list(second.service.objects) == ["a"]) == is_left
            assert await second.store.get(gadget_ref("a")) is None

    run(main())


_values = st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists, max_leaves=4)
_statuses = st.dictionaries(st.sampled_from(["conditions", "url", "setpoint", "x"]), _values, max_size=3)


@given(_statuses, _statuses)
def test_a_status_is_edited_exactly_when_it_is_not_what_got_the_digest(status: JsonObject, edit: JsonObject) -> None:
    signed = with_status_digest({name: value for name, value in status.items() if name != "setpoint"})
    edited = {**signed, **{name: value for name, value in edit.items() if name != "setpoint"}}

    assert is_status_edited(edited) == (not same(edited, signed))
