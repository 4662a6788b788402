"""Resync by LIST: when a scope is listed, and for which resources a list answers. On virtual time."""

import pytest

from setpoint.engine.management import MANAGEMENT
from setpoint.engine.requeue import RESYNC_INTERVAL, jittered_resync
from setpoint.runtime.list_resync.lister import MAX_DEFER_SECONDS
from tests.engine.gadgets import gadget_ref
from tests.runtime.list_resync_harness import ListResyncHarness, names_in, play_list_resync

TEN, TWENTY = names_in("a", 10), names_in("a", 20)
HALF, MOST = 300.0, 900.0


# --- Resyncs that a list replaces ------------------------------------------------------------------------------------


def test_one_list_replaces_the_resync_of_each_resource() -> None:
    async def scenario(listed: ListResyncHarness) -> None:
        await listed.declare(*TWENTY)
        listed.reset_counts()
        await listed.harness.clock.sleep(3_600)

        assert listed.observations(*TWENTY) == [0] * 20
        # The first resync is due after half of ten minutes, and a list answers for all of them, each time.
        assert 10 <= len(listed.kind.pages_read) <= 12
        assert set(listed.listings) == {("complete", 20)}
        assert len(listed.harness.metrics.steps) == 20

    play_list_resync(scenario)


def test_every_page_of_a_list_is_read() -> None:
    async def scenario(listed: ListResyncHarness) -> None:
        listed.kind.size = 7
        await listed.declare(*TWENTY)
        listed.reset_counts()
        await listed.harness.clock.sleep(HALF + 100)

        assert len(listed.kind.pages_read) == 3
        assert listed.listings == [("complete", 20)]

    play_list_resync(scenario)


def test_each_scope_has_its_own_listing() -> None:
    async def scenario(listed: ListResyncHarness) -> None:
        await listed.declare(*TEN, *names_in("b", 10), "alone")
        listed.reset_counts()
        await listed.harness.clock.sleep(HALF + 200)

        assert listed.listings == [("complete", 10)] * 2
        assert listed.observations(*TEN, *names_in("b", 10)) == [0] * 20

    play_list_resync(scenario)


def test_of_an_item_that_a_list_has_shown_before_not_even_the_location_is_decoded() -> None:
    async def scenario(listed: ListResyncHarness) -> None:
        await listed.declare(*TWENTY)
        await listed.harness.clock.sleep(3_600)
        listed.reset_counts()
        listed.harness.service.objects["a-other"] = {"size": 1}
        listed.harness.service.objects["a-007"]["colour"] = "blue"
        await listed.harness.clock.sleep(1_800)

        # Of an object that is not managed here, as often as it is listed; of one that has changed, once more.
        listings = len(listed.kind.pages_read)
        assert listings == len(listed.listings) >= 2
        assert sorted(set(listed.kind.located)) == ["a-007", "a-other"]
        assert listed.kind.located.count("a-other") == listings
        assert listed.kind.located.count("a-007") == 1

    play_list_resync(scenario)


def test_a_page_that_a_list_has_shown_before_is_not_looked_through() -> None:
    async def scenario(listed: ListResyncHarness) -> None:
        listed.kind.size = 10
        await listed.declare(*TWENTY)
        await listed.harness.clock.sleep(3_600)
        listed.reset_counts()
        await listed.harness.clock.sleep(1_800)
        unchanged, asked = listed.kind.pages_found, len(listed.kind.pages_read)
        listed.harness.service.objects["a-007"]["colour"] = "blue"
        await listed.harness.clock.sleep(1_800)

        assert (unchanged, asked >= 4) == (0, True)
        # Of the page that has changed, once; the step that follows settles the resource again.
        assert listed.kind.pages_found == 1
        assert set(listed.listings) <= {("complete", 20), ("complete", 19)}

    play_list_resync(scenario)


def test_an_item_with_the_same_bytes_is_not_decoded_again() -> None:
    async def scenario(listed: ListResyncHarness) -> None:
        await listed.declare(*TWENTY)
        await listed.harness.clock.sleep(HALF + 100)
        first = list(listed.kind.decoded)
        await listed.harness.clock.sleep(1_800)

        assert sorted(first) == list(TWENTY)
        assert listed.kind.decoded == first

    play_list_resync(scenario)


def test_an_item_with_other_bytes_and_the_same_state_needs_no_observation() -> None:
    async def scenario(listed: ListResyncHarness) -> None:
        await listed.declare(*TWENTY)
        listed.reset_counts()
        listed.kind.shown = lambda name, members: {**members, "etag": str(listed.harness.clock.monotonic())}
        await listed.harness.clock.sleep(3_600)

        assert listed.observations(*TWENTY) == [0] * 20
        assert len(listed.kind.decoded) == 20 * len(listed.kind.pages_read)

    play_list_resync(scenario)


def test_the_next_resync_counts_from_the_request_of_the_page() -> None:
    async def scenario(listed: ListResyncHarness) -> None:
        async def take_long() -> None:
            await listed.harness.clock.sleep(20)

        listed.kind.after_page = take_long
        await listed.declare(*TWENTY)
        listed.reset_counts()
        await listed.harness.clock.sleep(2_000)

        earliest = min(jittered_resync(gadget_ref(name), 600.0) for name in TWENTY)
        first, second = listed.kind.pages_read[:2]
        assert second - first == pytest.approx(earliest)

    play_list_resync(scenario)


# --- Resyncs that it does not replace --------------------------------------------------------------------------------


def test_drift_in_a_list_is_observed_and_corrected() -> None:
    async def scenario(listed: ListResyncHarness) -> None:
        harness = listed.harness
        await listed.declare(*TWENTY)
        await harness.clock.sleep(MOST)
        began = harness.clock.monotonic()
        harness.service.objects["a-007"]["size"] = 9
        listed.reset_counts()

        async def is_corrected() -> bool:
            return harness.service.objects["a-007"]["size"] == 1

        at = await harness.until(is_corrected)

        # Not when its own resync was due, but when the first of all was.
        earliest = min(jittered_resync(gadget_ref(name), 600.0) for name in TWENTY)
        assert at - began <= earliest + 0.1 < jittered_resync(gadget_ref("a-007"), 600.0)
        assert harness.writes("a-007") == ["create", "update"]
        assert harness.metrics.drifts == [pytest.approx(earliest)]
        assert sum(listed.observations(*TWENTY)) == listed.observations("a-007")[0] == 3

    play_list_resync(scenario)


def test_an_object_that_a_list_omits_is_observed_at_its_own_resync() -> None:
    async def scenario(listed: ListResyncHarness) -> None:
        harness = listed.harness
        await listed.declare(*TWENTY)
        await harness.clock.sleep(MOST)
        listed.kind.hidden.add("a-007")
        began = harness.clock.monotonic()
        harness.service.objects["a-007"]["size"] = 9

        async def is_corrected() -> bool:
            return harness.service.objects["a-007"]["size"] == 1

        at = await harness.until(is_corrected)

        assert at - began <= MOST + MAX_DEFER_SECONDS
        assert harness.writes("a-007") == ["create", "update"]

    play_list_resync(scenario)


def test_an_object_missing_from_a_list_is_created_only_after_an_observation() -> None:
    async def scenario(listed: ListResyncHarness) -> None:
        harness = listed.harness
        await listed.declare(*TWENTY)
        await harness.clock.sleep(MOST)
        listed.kind.hidden.add("a-003")
        del harness.service.objects["a-007"]
        await harness.clock.sleep(MOST + MAX_DEFER_SECONDS)

        assert harness.writes("a-003") == ["create"]
        assert harness.writes("a-007") == ["create", "create"]

    play_list_resync(scenario)


@pytest.mark.parametrize("members", [{"unreadable": True}, {"size": "not a number"}, {"size": 2}, {"serial": "2"}])
def test_an_item_that_never_matches_its_object_costs_an_observation_each_time(members: dict[str, object]) -> None:
    async def scenario(listed: ListResyncHarness) -> None:
        await listed.declare(*TWENTY)
        listed.reset_counts()
        listed.kind.shown = lambda name, shown: {**shown, **(members if name == "a-007" else {})}  # type: ignore[dict-item] # any JSON
        await listed.harness.clock.sleep(3_600)

        (count,) = listed.observations("a-007")
        # As often as without lists, and nothing was written.
        assert 4 <= count <= 12
        assert sum(listed.observations(*TWENTY)) == count
        assert listed.harness.writes("a-007") == ["create"]

    play_list_resync(scenario)


def test_an_undeclared_object_in_a_list_is_ignored() -> None:
    async def scenario(listed: ListResyncHarness) -> None:
        await listed.declare(*TWENTY)
        listed.harness.service.objects["a-undeclared"] = {"size": 3}
        listed.reset_counts()
        await listed.harness.clock.sleep(HALF + 100)

        assert listed.listings == [("complete", 20)]
        assert listed.harness.service.objects["a-undeclared"] == {"size": 3}

    play_list_resync(scenario)


def test_each_object_is_observed_directly_every_few_hours() -> None:
    async def scenario(listed: ListResyncHarness) -> None:
        await listed.declare(*TWENTY)
        listed.reset_counts()
        await listed.harness.clock.sleep(48 * 3_600)

        # About every six hours, each at its own time.
        assert all(5 <= count <= 16 for count in listed.observations(*TWENTY))
        assert len({at for at, _ in listed.kind.observed}) > 100

    play_list_resync(scenario)


@pytest.mark.parametrize("word", ["observe", "paused"])
def test_observed_and_paused_resources_are_not_answered_by_lists(word: str) -> None:
    async def scenario(listed: ListResyncHarness) -> None:
        await listed.declare(*TWENTY)
        await listed.harness.apply("a-007", annotations={MANAGEMENT: word})
        await listed.harness.clock.sleep(1)
        listed.reset_counts()
        before = len(listed.harness.metrics.steps)
        await listed.harness.clock.sleep(1_800)

        assert set(listed.listings) == {("complete", 19)}
        # Steps of this one alone, as often as ever.
        assert 2 <= len(listed.harness.metrics.steps) - before <= 6

    play_list_resync(scenario)


def test_drift_in_a_list_of_a_resource_without_a_resync_is_ignored() -> None:
    async def scenario(listed: ListResyncHarness) -> None:
        await listed.declare(*TWENTY)
        await listed.declare("a-never", annotations={RESYNC_INTERVAL: "0"})
        await listed.harness.clock.sleep(MOST)
        listed.harness.service.objects["a-never"]["size"] = 9
        listed.reset_counts()
        await listed.harness.clock.sleep(3_600)

        assert listed.observations("a-never") == [0]
        assert listed.harness.service.objects["a-never"]["size"] == 9
        assert set(listed.listings) == {("complete", 20)}

    play_list_resync(scenario)


# --- When a scope is listed ------------------------------------------------------------------------------------------


def test_a_scope_with_few_members_is_not_listed() -> None:
    async def scenario(listed: ListResyncHarness) -> None:
        await listed.declare(*names_in("a", 9))
        listed.reset_counts()
        await listed.harness.clock.sleep(3_600)

        assert listed.kind.pages_read == []
        assert all(4 <= count <= 12 for count in listed.observations(*names_in("a", 9)))

    play_list_resync(scenario)


def test_a_listing_of_mostly_undeclared_objects_is_stopped_and_not_repeated_for_an_hour() -> None:
    async def scenario(listed: ListResyncHarness) -> None:
        listed.kind.size = 25
        for number in range(500):
            listed.harness.service.objects[f"a-{number:03}-theirs"] = {"size": 1}
        await listed.declare(*TWENTY)
        listed.reset_counts()
        await listed.harness.clock.sleep(3_600)

        # Five undeclared objects for each member, and the page on which that was seen.
        assert len(listed.kind.pages_read) == 5
        assert [ending for ending, _ in listed.listings] == ["useless"]
        assert all(4 <= count <= 12 for count in listed.observations(*TWENTY))
        await listed.harness.clock.sleep(900)
        assert len(listed.listings) == 2

    play_list_resync(scenario)


def test_one_short_resync_interval_does_not_cause_frequent_listings() -> None:
    async def scenario(listed: ListResyncHarness) -> None:
        await listed.declare(*names_in("a", 200))
        await listed.declare("a-often", annotations={RESYNC_INTERVAL: "10"})
        listed.reset_counts()
        await listed.harness.clock.sleep(3_600)

        assert len(listed.kind.pages_read) <= 18
        assert 3_600 / 15 - 40 <= listed.observations("a-often")[0] <= 3_600 / 5
        assert listed.observations(*names_in("a", 200)) == [0] * 200

    play_list_resync(scenario)


def test_a_scope_with_few_idle_members_is_not_listed() -> None:
    async def scenario(listed: ListResyncHarness) -> None:
        await listed.declare(*names_in("a", 9))
        for name in names_in("a", 20)[9:]:
            await listed.harness.apply(name, {"size": 1, "parentRef": "missing"})
        listed.reset_counts()
        await listed.harness.clock.sleep(1_800)

        assert listed.kind.pages_read == []

    play_list_resync(scenario)
