"""A listing, and what else goes on meanwhile: nothing is answered for that was not seen, and nothing is lost."""

import asyncio

import pytest

from setpoint.engine.idle_cache import ListedObject
from setpoint.engine.references import is_ready
from setpoint.engine.requeue import RESYNC_INTERVAL, jittered_resync
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.engine.state import RECONCILE_REQUESTED, StoredState
from setpoint.errors import WriteConflict
from tests.engine.gadgets import Fault, gadget_ref
from tests.engine.kind_fixture import Trouble
from tests.runtime.listed_rig import ListedRig, names_on, new_listed_rig, play_listed
from tests.runtime.rig import running
from tests.runtime.virtual_time import run

TWENTY = names_on("a", 20)


def _first_due(*names: str) -> str:
    return min(names, key=lambda name: jittered_resync(gadget_ref(name), 600.0))


def _list_in(seconds: float, listed: ListedRig) -> None:
    """From now on a page takes that long."""

    async def take_long() -> None:
        await listed.rig.clock.sleep(seconds)

    listed.kind.before_page = take_long


async def _until_listing(listed: ListedRig) -> float:
    """When the next listing begins."""
    listed.forget_looks()

    async def is_under_way() -> bool:
        return bool(listed.kind.pages_read)

    await listed.rig.until(is_under_way)
    return listed.kind.pages_read[0]


# --- Looks that waited in vain ---------------------------------------------------------------------------------------


def test_what_waited_for_a_listing_that_said_nothing_is_looked_at_as_soon_as_it_ends() -> None:
    async def scenario(listed: ListedRig) -> None:
        name = _first_due(*TWENTY)
        await listed.declare(*TWENTY)
        listed.kind.hidden.add(name)
        _list_in(20, listed)
        began = await _until_listing(listed)
        await listed.rig.clock.sleep(30)

        assert listed.rig.looks_at(name) == [pytest.approx(began + 20)]

    play_listed(scenario)


def test_what_waited_in_vain_waits_for_no_other_listing() -> None:
    async def scenario(listed: ListedRig) -> None:
        # The next listing pays again before this one is over.
        await listed.declare(*TWENTY, annotations={RESYNC_INTERVAL: "100"})
        name = _first_due(*TWENTY)
        listed.kind.hidden.add(name)
        _list_in(45, listed)
        began = await _until_listing(listed)
        await listed.rig.clock.sleep(46)

        assert listed.rig.looks_at(name) == [pytest.approx(began + 45)]

    play_listed(scenario)


def test_a_look_that_waited_for_a_hand_is_not_taken_once_a_list_has_answered() -> None:
    async def scenario(listed: ListedRig) -> None:
        names, busy = names_on("a", 200), [f"busy{number}" for number in range(10)]
        await listed.declare(*names, *busy)
        _list_in(50, listed)
        await _until_listing(listed)

        async def take_long(name: str) -> None:
            await listed.rig.clock.sleep(60 if name in busy else 0)

        listed.kind.before = take_long
        for name in busy:
            await listed.rig.apply(name, {"size": 2})
        await listed.rig.clock.sleep(200)

        assert listed.looks(*names) == [0] * 200
        assert listed.listings == [("complete", 200)]

    play_listed(scenario)


# --- Steps meanwhile -------------------------------------------------------------------------------------------------


def test_a_step_that_began_before_the_listing_is_not_answered_for() -> None:
    async def scenario(listed: ListedRig) -> None:
        rig = listed.rig

        async def take_long(name: str) -> None:
            await rig.clock.sleep(30 if name == "a-007" else 0)

        await listed.declare(*TWENTY)
        earliest = jittered_resync(gadget_ref(_first_due(*TWENTY)), 600.0)
        await rig.clock.sleep(earliest - 10)
        listed.kind.before = take_long
        await rig.apply("a-007", annotations={RECONCILE_REQUESTED: "now"})
        _list_in(40, listed)
        await _until_listing(listed)
        await rig.clock.sleep(60)

        assert listed.listings == [("complete", 19)]

    play_listed(scenario)


def test_what_was_shown_before_an_edit_is_not_gone_by() -> None:
    async def scenario(listed: ListedRig) -> None:
        await listed.declare(*TWENTY)
        _show(listed, "a-007")
        listed.forget_looks()
        # The same intent as before: nothing but the edit is a reason to look.
        await listed.rig.apply("a-007", annotations={"note": "for people"})
        await listed.rig.clock.sleep(10)

        assert listed.looks("a-007") == [1]

    play_listed(scenario)


def test_what_a_step_did_not_take_up_is_not_there_for_the_next() -> None:
    async def main() -> None:
        first = new_listed_rig()
        async with running(first.rig):
            await first.declare(*TWENTY)
        listed = new_listed_rig(first)
        read, troubles = listed.rig.store.get, [WriteConflict("somebody was faster")]

        async def trip(ref: ResourceRef) -> Resource | None:
            if ref.name == "a-007" and troubles:
                raise troubles.pop()
            return await read(ref)

        listed.rig.store.get = trip  # type: ignore[method-assign] # it breaks once
        async with running(listed.rig):
            await listed.rig.clock.sleep(10)

        assert listed.looks(*TWENTY) == [1 if name == "a-007" else 0 for name in TWENTY]

    run(main())


def _show(listed: ListedRig, name: str) -> None:
    """As if a listing had just shown it, as it is."""
    idle_cache, listed_objects = listed.rig.manager.engine.idle_cache, listed.rig.manager.engine.listed_objects
    assert idle_cache is not None
    assert listed_objects is not None
    rest = idle_cache.of(gadget_ref(name))
    assert rest is not None
    listed_objects.show(gadget_ref(name), ListedObject(rest.location, rest.state))


# --- What a list is no word on ---------------------------------------------------------------------------------------


def test_one_whose_look_failed_is_looked_at_until_it_succeeds() -> None:
    async def scenario(listed: ListedRig) -> None:
        rig = listed.rig
        rig.service.faults.append(Fault(Trouble.REFUSED, ["list"], 1))
        await listed.declare(*TWENTY)
        # For an hour there are no lists; then they come, and nothing else does.
        await rig.clock.sleep(3_700)
        rig.service.faults.append(Fault(Trouble.CUT, ["get"], 10**6))

        async def is_listed() -> bool:
            return listed.listings[-1][0] == "complete"

        await rig.until(is_listed)
        await rig.clock.sleep(1)
        failing = [name for name in TWENTY if rig.manager.last_error_of(gadget_ref(name)) is not None]
        _, looks = listed.listings[-1]
        rig.service.faults.clear()
        await rig.clock.sleep(121)

        assert 1 <= len(failing) == 20 - looks
        assert not any(rig.manager.last_error_of(gadget_ref(name)) for name in TWENTY)

    play_listed(scenario)


def test_what_is_to_be_forgotten_is_forgotten_in_its_time() -> None:
    async def scenario(listed: ListedRig) -> None:
        rig = listed.rig
        await listed.declare(*TWENTY)
        # Of this one, a look of its own comes later than the contest is to be forgotten.
        name = max(TWENTY, key=lambda one: jittered_resync(gadget_ref(one), 6 * 3_600.0))
        for _ in range(2):
            rig.service.objects[name]["size"] = 9
            await rig.apply(name, annotations={RECONCILE_REQUESTED: str(rig.clock.monotonic())})
            await rig.clock.sleep(10)
        during = await _contests(listed, name)
        await rig.clock.sleep(6 * 3_600 + 900)

        assert during == 1
        assert await _contests(listed, name) == 0

    play_listed(scenario)


async def _contests(listed: ListedRig, name: str) -> int:
    found = await listed.rig.store.get(gadget_ref(name))
    assert found is not None
    assert is_ready(found)
    return len(StoredState.of(found).oscillations.fields)


def test_of_two_that_claim_one_object_the_other_is_looked_at_by_itself() -> None:
    async def scenario(listed: ListedRig) -> None:
        await listed.declare(*TWENTY)
        await listed.rig.apply("twin", {"size": 1, "resourceID": "a-007"})
        await listed.rig.settled("twin")
        listed.forget_looks()
        await listed.rig.clock.sleep(1_800)

        assert set(listed.listings) == {("complete", 20)}
        assert 2 <= listed.looks("a-007")[0] <= 6

    play_listed(scenario)


def test_a_listing_goes_on_while_what_it_is_for_goes_away() -> None:
    async def scenario(listed: ListedRig) -> None:
        await listed.declare(*TWENTY)
        _list_in(20, listed)
        await _until_listing(listed)
        for name in TWENTY:
            await listed.rig.store.delete(gadget_ref(name))
        await listed.rig.clock.sleep(30)
        await asyncio.sleep(0)

        assert listed.listings == [("useless", 0)]
        assert listed.rig.service.objects == {}

    play_listed(scenario)
