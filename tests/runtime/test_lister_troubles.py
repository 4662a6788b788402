"""Who waits for a listing and who does not, and what happens when it fails. On virtual time."""

import logging

import pytest

from setpoint.engine.requeue import jittered_resync
from setpoint.engine.state import RECONCILE_REQUESTED
from setpoint.runtime.list_resync.lister import MAX_DEFER_SECONDS
from tests.engine.gadgets import Fault, gadget_ref
from tests.engine.kind_fixture import OUTAGES, Trouble
from tests.runtime.listed_rig import ListedRig, names_on, play_listed

TWENTY = names_on("a", 20)
HALF, MOST = 300.0, 900.0


# --- Who waits, and who does not -------------------------------------------------------------------------------------


def test_an_edit_does_not_wait_for_a_listing() -> None:
    async def scenario(listed: ListedRig) -> None:
        await _hang(listed)
        began = listed.rig.clock.monotonic()
        await listed.rig.apply("a-007", {"size": 2})

        assert await listed.rig.settled("a-007") == pytest.approx(began, abs=0.1)
        assert listed.rig.service.objects["a-007"]["size"] == 2

    play_listed(scenario)


def test_a_look_that_is_asked_for_does_not_wait_for_a_listing() -> None:
    async def scenario(listed: ListedRig) -> None:
        await _hang(listed)
        listed.rig.service.objects["a-007"]["size"] = 9
        began = listed.rig.clock.monotonic()
        await listed.rig.apply("a-007", annotations={RECONCILE_REQUESTED: "now"})

        async def is_put_back() -> bool:
            return listed.rig.service.objects["a-007"]["size"] == 1

        assert await listed.rig.until(is_put_back) == pytest.approx(began, abs=0.1)

    play_listed(scenario)


def test_looks_wait_for_a_listing_but_not_for_long() -> None:
    async def scenario(listed: ListedRig) -> None:
        began = await _hang(listed)
        due = {name: jittered_resync(gadget_ref(name), 600.0) for name in TWENTY}
        listed.forget_looks()
        await listed.rig.clock.sleep(1_000)

        for name in TWENTY:
            (first, *_) = listed.rig.looks_at(name)
            assert first - max(began, due[name]) == pytest.approx(MAX_DEFER_SECONDS, abs=0.2)

    play_listed(scenario)


def test_looks_that_come_due_during_a_listing_are_answered_by_it() -> None:
    async def scenario(listed: ListedRig) -> None:
        async def take_fifty_seconds() -> None:
            await listed.rig.clock.sleep(50)

        listed.kind.before_page = take_fifty_seconds
        names = names_on("a", 200)
        await listed.declare(*names)
        listed.forget_looks()
        await listed.rig.clock.sleep(HALF + 60)

        assert listed.looks(*names) == [0] * 200
        assert listed.listings == [("complete", 200)]

    play_listed(scenario)


async def _hang(listed: ListedRig) -> float:
    """When a listing began that does not end."""

    async def never() -> None:
        await listed.rig.clock.sleep(10**6)

    await listed.declare(*TWENTY)
    listed.kind.before_page = never
    listed.forget_looks()

    async def is_under_way() -> bool:
        return bool(listed.kind.pages_read)

    await listed.rig.until(is_under_way)
    return listed.kind.pages_read[0]


# --- What a step does meanwhile --------------------------------------------------------------------------------------


def test_a_list_that_shows_what_was_before_an_edit_says_nothing_of_it() -> None:
    async def scenario(listed: ListedRig) -> None:
        rig = listed.rig

        async def edit() -> None:
            if rig.service.objects["a-007"]["size"] == 1:
                await rig.apply("a-007", {"size": 2})
                await rig.settled("a-007")
                # As it was when the list was made, though not when it arrives.
                await rig.clock.sleep(5)

        await listed.declare(*TWENTY)
        await rig.clock.sleep(MOST)
        listed.kind.after_page = edit
        listed.forget_looks()
        await rig.clock.sleep(HALF)

        assert listed.listings == [("complete", 19)]
        # Before the write and after it: the list is no reason for another one.
        assert listed.looks("a-007") == [2]
        assert rig.writes("a-007") == ["create", "update"]

    play_listed(scenario)


def test_a_list_that_was_asked_for_before_a_look_does_not_put_off_the_next_one() -> None:
    async def scenario(listed: ListedRig) -> None:
        rig = listed.rig
        asked = iter("ab")

        async def ask() -> None:
            word = next(asked, None)
            if word is not None:
                await rig.clock.sleep(10)
                await rig.apply("a-007", annotations={RECONCILE_REQUESTED: word})
                await rig.clock.sleep(10)

        await listed.declare(*TWENTY)
        await rig.clock.sleep(MOST)
        listed.kind.after_page = ask
        listed.forget_looks()
        await rig.clock.sleep(HALF)

        assert listed.listings == [("complete", 19)]

    play_listed(scenario)


# --- When it fails ---------------------------------------------------------------------------------------------------


def test_where_nobody_may_list_every_object_is_looked_at_and_an_hour_later_it_is_tried_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "setpoint.runtime.list_resync.lister")

    async def scenario(listed: ListedRig) -> None:
        listed.rig.service.faults.append(Fault(Trouble.REFUSED, ["list"], 1))
        await listed.declare(*TWENTY)
        listed.forget_looks()
        await listed.rig.clock.sleep(3_600)

        assert listed.listings == [("refused", 0)]
        assert all(4 <= looks <= 12 for looks in listed.looks(*TWENTY))
        assert all([await listed.rig.is_settled(name) for name in TWENTY])
        await listed.rig.clock.sleep(MOST)
        assert listed.listings[1:] == [("complete", 20)] * (len(listed.listings) - 1)
        assert len(listed.listings) >= 2

    play_listed(scenario)

    assert [record.message for record in caplog.records] == ["not listed"]


@pytest.mark.parametrize("trouble", OUTAGES)
def test_a_list_that_does_not_come_is_tried_again_soon_and_looks_go_on(trouble: Trouble) -> None:
    async def scenario(listed: ListedRig) -> None:
        listed.kind.size = 7
        await listed.declare(*TWENTY)
        await listed.rig.clock.sleep(MOST)
        listed.rig.service.faults.append(Fault(trouble, ["list"], 2))
        listed.forget_looks()
        await listed.rig.clock.sleep(MOST)

        assert listed.listings[:2] == [("unavailable", 0)] * 2
        assert set(listed.listings[2:]) == {("complete", 20)}
        # Those whose look was due when there was no list.
        assert 1 <= sum(listed.looks(*TWENTY)) <= 4
        assert all([await listed.rig.is_settled(name) for name in TWENTY])
        assert not any(listed.rig.manager.last_error_of(gadget_ref(name)) for name in TWENTY)

    play_listed(scenario)


def test_what_the_first_pages_said_stands_when_a_later_one_does_not_come() -> None:
    async def scenario(listed: ListedRig) -> None:
        listed.kind.size = 10
        await listed.declare(*TWENTY)
        await listed.rig.clock.sleep(MOST)
        listed.forget_looks()

        async def break_off() -> None:
            if len(listed.kind.pages_read) == 2:
                listed.rig.service.faults.append(Fault(Trouble.CUT, ["list"], 1))

        listed.kind.before_page = break_off
        await listed.rig.clock.sleep(HALF - 50)

        assert listed.listings[0] == ("unavailable", 10)

    play_listed(scenario)


def test_a_bug_in_listing_is_logged_and_looks_go_on(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(listed: ListedRig) -> None:
        async def trip() -> None:
            raise ZeroDivisionError

        listed.kind.before_page = trip
        await listed.declare(*TWENTY)
        listed.forget_looks()
        await listed.rig.clock.sleep(1_800)

        assert listed.listings == [("broken", 0)]
        assert all(looks >= 2 for looks in listed.looks(*TWENTY))

    play_listed(scenario)

    (record,) = [record for record in caplog.records if record.name == "setpoint.runtime.list_resync.lister"]
    assert record.message == "listing broke"
    assert record.exc_info is not None


def test_one_that_failed_is_looked_at_again_whatever_a_list_shows() -> None:
    async def scenario(listed: ListedRig) -> None:
        rig = listed.rig
        await listed.declare(*TWENTY)
        await rig.clock.sleep(MOST)
        rig.service.faults.append(Fault(Trouble.CUT, ["get"], 10**6))
        await rig.apply("a-007", annotations={RECONCILE_REQUESTED: "now"})
        await rig.clock.sleep(HALF)
        during = rig.manager.last_error_of(gadget_ref("a-007"))
        rig.service.faults.clear()
        await rig.clock.sleep(120)

        assert during is not None
        assert rig.manager.last_error_of(gadget_ref("a-007")) is None
        assert ("complete", 19) in listed.listings

    play_listed(scenario)


def test_what_is_deleted_meanwhile_is_forgotten() -> None:
    async def scenario(listed: ListedRig) -> None:
        rig = listed.rig
        await _hang(listed)
        for name in TWENTY:
            await rig.store.delete(gadget_ref(name))

        async def all_gone() -> bool:
            return not (await rig.store.list()).resources

        at = await rig.until(all_gone)

        assert at - listed.kind.pages_read[0] < 1
        assert rig.service.objects == {}

    play_listed(scenario)
