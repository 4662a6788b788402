"""A listing beside edits and steps: it answers only for what it showed, and no resync is lost."""

import asyncio

import pytest

from setpoint.engine.idle_cache import ListedObject
from setpoint.engine.references import is_ready
from setpoint.engine.requeue import RESYNC_INTERVAL, jittered_resync
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.engine.state import RECONCILE_REQUESTED, StoredState
from setpoint.errors import WriteConflict
from setpoint.runtime.list_resync.lister import MAX_LISTINGS
from setpoint.testing.faults import CallFault
from simulation.virtual_time import run
from tests.engine.gadgets import Fault, gadget_ref
from tests.runtime.list_resync_harness import ListResyncHarness, names_in, new_list_harness, play_list_resync
from tests.runtime.manager_harness import running

TWENTY = names_in("a", 20)


def _first_due(*names: str) -> str:
    return min(names, key=lambda name: jittered_resync(gadget_ref(name), 600.0))


def _list_in(seconds: float, listed: ListResyncHarness) -> None:
    """From now on a page takes that long."""

    async def take_long() -> None:
        await listed.harness.clock.sleep(seconds)

    listed.kind.before_page = take_long


async def _until_listing(listed: ListResyncHarness) -> float:
    """When the next listing begins."""
    listed.reset_counts()

    async def is_under_way() -> bool:
        return bool(listed.kind.pages_read)

    await listed.harness.until(is_under_way)
    return listed.kind.pages_read[0]


# --- Many scopes ------------------------------------------------------------------------------------------------------


def test_of_many_scopes_only_some_are_listed_at_once_and_each_in_its_turn() -> None:
    scopes = [names_in(f"s{number:02}", 10) for number in range(2 * MAX_LISTINGS)]
    under_way, most = 0, 0

    async def begin() -> None:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(5)

    async def end() -> None:
        nonlocal under_way
        under_way -= 1

    async def scenario(listed: ListResyncHarness) -> None:
        for names in scopes:
            await listed.declare(*names)
        listed.harness.manager.stop()
        restarted = new_list_harness(listed)
        restarted.kind.before_page, restarted.kind.after_page = begin, end
        async with running(restarted.harness):
            await restarted.harness.clock.sleep(30)

            assert most == MAX_LISTINGS
            assert len(restarted.kind.pages_read) == len(scopes)
            assert restarted.kind.observed == []

    play_list_resync(scenario)


# --- Resyncs that were not answered ----------------------------------------------------------------------------------


def test_a_resync_that_its_listing_did_not_answer_runs_when_the_listing_ends() -> None:
    async def scenario(listed: ListResyncHarness) -> None:
        name = _first_due(*TWENTY)
        await listed.declare(*TWENTY)
        listed.kind.hidden.add(name)
        _list_in(20, listed)
        began = await _until_listing(listed)
        await listed.harness.clock.sleep(30)

        assert listed.harness.observations_of(name) == [pytest.approx(began + 20)]

    play_list_resync(scenario)


def test_a_resync_that_was_not_answered_waits_for_no_other_listing() -> None:
    async def scenario(listed: ListResyncHarness) -> None:
        # The next listing pays again before this one is over.
        await listed.declare(*TWENTY, annotations={RESYNC_INTERVAL: "100"})
        name = _first_due(*TWENTY)
        listed.kind.hidden.add(name)
        _list_in(45, listed)
        began = await _until_listing(listed)
        await listed.harness.clock.sleep(46)

        assert listed.harness.observations_of(name) == [pytest.approx(began + 45)]

    play_list_resync(scenario)


def test_a_queued_resync_is_dropped_once_a_list_has_answered_it() -> None:
    async def scenario(listed: ListResyncHarness) -> None:
        names, busy = names_in("a", 200), [f"busy{number}" for number in range(10)]
        await listed.declare(*names, *busy)
        _list_in(50, listed)
        await _until_listing(listed)

        async def take_long(name: str) -> None:
            await listed.harness.clock.sleep(60 if name in busy else 0)

        listed.kind.before = take_long
        for name in busy:
            await listed.harness.apply(name, {"size": 2})
        await listed.harness.clock.sleep(200)

        assert listed.observations(*names) == [0] * 200
        assert listed.listings == [("complete", 200)]

    play_list_resync(scenario)


# --- Steps during a listing ------------------------------------------------------------------------------------------


def test_a_resource_with_a_running_step_is_not_answered_by_a_listing() -> None:
    async def scenario(listed: ListResyncHarness) -> None:
        harness = listed.harness

        async def take_long(name: str) -> None:
            await harness.clock.sleep(30 if name == "a-007" else 0)

        await listed.declare(*TWENTY)
        earliest = jittered_resync(gadget_ref(_first_due(*TWENTY)), 600.0)
        await harness.clock.sleep(earliest - 10)
        listed.kind.before = take_long
        await harness.apply("a-007", annotations={RECONCILE_REQUESTED: "now"})
        _list_in(40, listed)
        await _until_listing(listed)
        await harness.clock.sleep(60)

        assert listed.listings == [("complete", 19)]

    play_list_resync(scenario)


def test_a_listed_object_from_before_an_edit_is_not_used() -> None:
    async def scenario(listed: ListResyncHarness) -> None:
        await listed.declare(*TWENTY)
        _show(listed, "a-007")
        listed.reset_counts()
        # The same intent as before: only the edit triggers an observation.
        await listed.harness.apply("a-007", annotations={"note": "for operators"})
        await listed.harness.clock.sleep(10)

        assert listed.observations("a-007") == [1]

    play_list_resync(scenario)


def test_a_listed_object_is_offered_to_one_step_only() -> None:
    async def main() -> None:
        first = new_list_harness()
        async with running(first.harness):
            await first.declare(*TWENTY)
        listed = new_list_harness(first)
        read, conflicts = listed.harness.store.get, [WriteConflict("another write came first")]

        async def trip(ref: ResourceRef) -> Resource | None:
            if ref.name == "a-007" and conflicts:
                raise conflicts.pop()
            return await read(ref)

        listed.harness.store.get = trip  # type: ignore[method-assign] # it breaks once
        async with running(listed.harness):
            await listed.harness.clock.sleep(10)

        assert listed.observations(*TWENTY) == [1 if name == "a-007" else 0 for name in TWENTY]

    run(main())


def _show(listed: ListResyncHarness, name: str) -> None:
    """As if a listing had just shown its current state."""
    idle_cache, listed_objects = listed.harness.manager.engine.idle_cache, listed.harness.manager.engine.listed_objects
    assert idle_cache is not None
    assert listed_objects is not None
    idle = idle_cache.of(gadget_ref(name))
    assert idle is not None
    listed_objects.show(gadget_ref(name), ListedObject(idle.location, idle.state))


# --- Resources that lists do not answer for --------------------------------------------------------------------------


def test_a_failing_resource_is_retried_and_not_answered_by_lists() -> None:
    async def scenario(listed: ListResyncHarness) -> None:
        harness = listed.harness
        harness.service.faults.append(Fault(CallFault.REFUSED, ["list"], 1))
        await listed.declare(*TWENTY)
        # For an hour there are no lists; then they come, and nothing else does.
        await harness.clock.sleep(3_700)
        harness.service.faults.append(Fault(CallFault.CUT, ["get"], 10**6))

        async def is_listed() -> bool:
            return listed.listings[-1][0] == "complete"

        await harness.until(is_listed)
        await harness.clock.sleep(1)
        failing = [name for name in TWENTY if harness.manager.last_error_of(gadget_ref(name)) is not None]
        _, saved = listed.listings[-1]
        harness.service.faults.clear()
        await harness.clock.sleep(121)

        assert 1 <= len(failing) == 20 - saved
        assert not any(harness.manager.last_error_of(gadget_ref(name)) for name in TWENTY)

    play_list_resync(scenario)


def test_an_oscillation_expires_although_lists_answer_resyncs() -> None:
    async def scenario(listed: ListResyncHarness) -> None:
        harness = listed.harness
        await listed.declare(*TWENTY)
        # Its direct observation comes later than the oscillation expires.
        name = max(TWENTY, key=lambda one: jittered_resync(gadget_ref(one), 6 * 3_600.0))
        for _ in range(2):
            harness.service.objects[name]["size"] = 9
            await harness.apply(name, annotations={RECONCILE_REQUESTED: str(harness.clock.monotonic())})
            await harness.clock.sleep(10)
        during = await _oscillations(listed, name)
        await harness.clock.sleep(6 * 3_600 + 900)

        assert during == 1
        assert await _oscillations(listed, name) == 0

    play_list_resync(scenario)


async def _oscillations(listed: ListResyncHarness, name: str) -> int:
    found = await listed.harness.store.get(gadget_ref(name))
    assert found is not None
    assert is_ready(found)
    return len(StoredState.of(found).oscillations.fields)


def test_a_second_resource_of_an_object_does_not_keep_lists_from_answering_for_the_first() -> None:
    async def scenario(listed: ListResyncHarness) -> None:
        await listed.declare(*TWENTY)
        await listed.harness.apply("twin", {"size": 1, "resourceID": "a-007"})
        await listed.harness.clock.sleep(60)
        listed.reset_counts()
        await listed.harness.clock.sleep(1_800)

        assert set(listed.listings) == {("complete", 20)}
        assert listed.observations("a-007") == [0]
        assert not await listed.harness.is_settled("twin")

    play_list_resync(scenario)


def test_a_listing_survives_the_deletion_of_its_resources() -> None:
    async def scenario(listed: ListResyncHarness) -> None:
        await listed.declare(*TWENTY)
        _list_in(20, listed)
        await _until_listing(listed)
        for name in TWENTY:
            await listed.harness.store.delete(gadget_ref(name))
        await listed.harness.clock.sleep(30)
        await asyncio.sleep(0)

        assert listed.listings == [("useless", 0)]
        assert listed.harness.service.objects == {}

    play_list_resync(scenario)
