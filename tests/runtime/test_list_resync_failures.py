"""Which steps wait for a listing, and what happens when it fails. On virtual time."""

import logging

import pytest

from setpoint.engine.requeue import jittered_resync
from setpoint.engine.state import RECONCILE_REQUESTED
from setpoint.runtime.list_resync.lister import MAX_DEFER_SECONDS
from setpoint.testing.faults import OUTAGES, CallFault
from tests.engine.gadgets import Fault, gadget_ref
from tests.runtime.list_resync_harness import ListResyncHarness, names_in, play_list_resync

TWENTY = names_in("a", 20)
HALF, MOST = 300.0, 900.0


# --- Which steps wait ------------------------------------------------------------------------------------------------


def test_an_edit_does_not_wait_for_a_listing() -> None:
    async def scenario(listed: ListResyncHarness) -> None:
        await _hang(listed)
        began = listed.harness.clock.monotonic()
        await listed.harness.apply("a-007", {"size": 2})

        assert await listed.harness.settled("a-007") == pytest.approx(began, abs=0.1)
        assert listed.harness.service.objects["a-007"]["size"] == 2

    play_list_resync(scenario)


def test_a_requested_reconcile_does_not_wait_for_a_listing() -> None:
    async def scenario(listed: ListResyncHarness) -> None:
        await _hang(listed)
        listed.harness.service.objects["a-007"]["size"] = 9
        began = listed.harness.clock.monotonic()
        await listed.harness.apply("a-007", annotations={RECONCILE_REQUESTED: "now"})

        async def is_corrected() -> bool:
            return listed.harness.service.objects["a-007"]["size"] == 1

        assert await listed.harness.until(is_corrected) == pytest.approx(began, abs=0.1)

    play_list_resync(scenario)


def test_resyncs_wait_for_a_listing_for_a_limited_time() -> None:
    async def scenario(listed: ListResyncHarness) -> None:
        began = await _hang(listed)
        due = {name: jittered_resync(gadget_ref(name), 600.0) for name in TWENTY}
        listed.reset_counts()
        await listed.harness.clock.sleep(1_000)

        for name in TWENTY:
            (first, *_) = listed.harness.observations_of(name)
            assert first - max(began, due[name]) == pytest.approx(MAX_DEFER_SECONDS, abs=0.2)

    play_list_resync(scenario)


def test_resyncs_that_come_due_during_a_listing_are_answered_by_it() -> None:
    async def scenario(listed: ListResyncHarness) -> None:
        async def take_fifty_seconds() -> None:
            await listed.harness.clock.sleep(50)

        listed.kind.before_page = take_fifty_seconds
        names = names_in("a", 200)
        await listed.declare(*names)
        listed.reset_counts()
        await listed.harness.clock.sleep(HALF + 60)

        assert listed.observations(*names) == [0] * 200
        assert listed.listings == [("complete", 200)]

    play_list_resync(scenario)


async def _hang(listed: ListResyncHarness) -> float:
    """When a listing began that does not end."""

    async def never() -> None:
        await listed.harness.clock.sleep(10**6)

    await listed.declare(*TWENTY)
    listed.kind.before_page = never
    listed.reset_counts()

    async def is_under_way() -> bool:
        return bool(listed.kind.pages_read)

    await listed.harness.until(is_under_way)
    return listed.kind.pages_read[0]


# --- Steps during a listing ------------------------------------------------------------------------------------------


def test_a_list_from_before_an_edit_does_not_answer_for_the_resource() -> None:
    async def scenario(listed: ListResyncHarness) -> None:
        harness = listed.harness

        async def edit() -> None:
            if harness.service.objects["a-007"]["size"] == 1:
                await harness.apply("a-007", {"size": 2})
                await harness.settled("a-007")
                # As it was when the list was made, though not when it arrives.
                await harness.clock.sleep(5)

        await listed.declare(*TWENTY)
        await harness.clock.sleep(MOST)
        listed.kind.after_page = edit
        listed.reset_counts()
        await harness.clock.sleep(HALF)

        assert listed.listings == [("complete", 19)]
        # Before the write and after it: the list is no reason for another one.
        assert listed.observations("a-007") == [2]
        assert harness.writes("a-007") == ["create", "update"]

    play_list_resync(scenario)


def test_a_list_requested_before_a_step_does_not_answer_for_the_resource() -> None:
    async def scenario(listed: ListResyncHarness) -> None:
        harness = listed.harness
        asked = iter("ab")

        async def ask() -> None:
            word = next(asked, None)
            if word is not None:
                await harness.clock.sleep(10)
                await harness.apply("a-007", annotations={RECONCILE_REQUESTED: word})
                await harness.clock.sleep(10)

        await listed.declare(*TWENTY)
        await harness.clock.sleep(MOST)
        listed.kind.after_page = ask
        listed.reset_counts()
        await harness.clock.sleep(HALF)

        assert listed.listings == [("complete", 19)]

    play_list_resync(scenario)


# --- When it fails ---------------------------------------------------------------------------------------------------


def test_after_a_refused_listing_each_object_is_observed_and_listing_retried_an_hour_later(
    caplog: pytest.LogCaptureFixture,
) -> None:
    logger = "setpoint.runtime.list_resync.lister"
    caplog.set_level(logging.INFO, logger)

    async def scenario(listed: ListResyncHarness) -> None:
        listed.harness.service.faults.append(Fault(CallFault.REFUSED, ["list"], 1))
        await listed.declare(*TWENTY)
        listed.reset_counts()
        await listed.harness.clock.sleep(3_600)

        assert listed.listings == [("refused", 0)]
        assert all(4 <= count <= 12 for count in listed.observations(*TWENTY))
        assert all([await listed.harness.is_settled(name) for name in TWENTY])
        await listed.harness.clock.sleep(MOST)
        assert listed.listings[1:] == [("complete", 20)] * (len(listed.listings) - 1)
        assert len(listed.listings) >= 2

    play_list_resync(scenario)

    assert [record.message for record in caplog.records if record.name == logger] == ["not listed"]


@pytest.mark.parametrize("trouble", OUTAGES)
def test_a_failed_listing_is_retried_soon_and_resyncs_go_on(trouble: CallFault) -> None:
    async def scenario(listed: ListResyncHarness) -> None:
        listed.kind.size = 7
        await listed.declare(*TWENTY)
        await listed.harness.clock.sleep(MOST)
        listed.harness.service.faults.append(Fault(trouble, ["list"], 2))
        listed.reset_counts()
        await listed.harness.clock.sleep(MOST)

        assert listed.listings[:2] == [("unavailable", 0)] * 2
        assert set(listed.listings[2:]) == {("complete", 20)}
        # The resources that had a resync due when there was no list.
        assert 1 <= sum(listed.observations(*TWENTY)) <= 4
        assert all([await listed.harness.is_settled(name) for name in TWENTY])
        assert not any(listed.harness.manager.last_error_of(gadget_ref(name)) for name in TWENTY)

    play_list_resync(scenario)


def test_the_answers_of_earlier_pages_stand_when_a_later_page_fails() -> None:
    async def scenario(listed: ListResyncHarness) -> None:
        listed.kind.size = 10
        await listed.declare(*TWENTY)
        await listed.harness.clock.sleep(MOST)
        listed.reset_counts()

        async def break_off() -> None:
            if len(listed.kind.pages_read) == 2:
                listed.harness.service.faults.append(Fault(CallFault.CUT, ["list"], 1))

        listed.kind.before_page = break_off
        await listed.harness.clock.sleep(HALF - 50)

        assert listed.listings[0] == ("unavailable", 10)

    play_list_resync(scenario)


def test_a_bug_in_a_listing_is_logged_and_resyncs_go_on(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(listed: ListResyncHarness) -> None:
        async def trip() -> None:
            raise ZeroDivisionError

        listed.kind.before_page = trip
        await listed.declare(*TWENTY)
        listed.reset_counts()
        await listed.harness.clock.sleep(1_800)

        assert listed.listings == [("broken", 0)]
        assert all(count >= 2 for count in listed.observations(*TWENTY))

    play_list_resync(scenario)

    (record,) = [record for record in caplog.records if record.name == "setpoint.runtime.list_resync.lister"]
    assert record.message == "listing broke"
    assert record.exc_info is not None


def test_a_failed_resource_is_retried_although_lists_go_on() -> None:
    async def scenario(listed: ListResyncHarness) -> None:
        harness = listed.harness
        await listed.declare(*TWENTY)
        await harness.clock.sleep(MOST)
        harness.service.faults.append(Fault(CallFault.CUT, ["get"], 10**6))
        await harness.apply("a-007", annotations={RECONCILE_REQUESTED: "now"})
        await harness.clock.sleep(HALF)
        during = harness.manager.last_error_of(gadget_ref("a-007"))
        harness.service.faults.clear()
        await harness.clock.sleep(120)

        assert during is not None
        assert harness.manager.last_error_of(gadget_ref("a-007")) is None
        assert ("complete", 19) in listed.listings

    play_list_resync(scenario)


def test_a_deletion_does_not_wait_for_a_listing() -> None:
    async def scenario(listed: ListResyncHarness) -> None:
        harness = listed.harness
        await _hang(listed)
        for name in TWENTY:
            await harness.store.delete(gadget_ref(name))

        async def all_gone() -> bool:
            return not (await harness.store.list()).resources

        at = await harness.until(all_gone)

        assert at - listed.kind.pages_read[0] < 1
        assert harness.service.objects == {}

    play_list_resync(scenario)
