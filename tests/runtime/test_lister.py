"""Regular looks by lists: when one is read, and what it answers for. On virtual time."""

import pytest

from setpoint.engine.context import MANAGEMENT
from setpoint.engine.requeue import RESYNC_INTERVAL, jittered_resync
from setpoint.runtime.list_resync.lister import MAX_DEFER_SECONDS
from tests.engine.gadgets import gadget_ref
from tests.runtime.listed_rig import ListedRig, names_on, play_listed

TEN, TWENTY = names_on("a", 10), names_on("a", 20)
HALF, MOST = 300.0, 900.0


# --- What a list stands for ------------------------------------------------------------------------------------------


def test_one_list_stands_for_a_look_at_each() -> None:
    async def scenario(listed: ListedRig) -> None:
        await listed.declare(*TWENTY)
        listed.forget_looks()
        await listed.rig.clock.sleep(3_600)

        assert listed.looks(*TWENTY) == [0] * 20
        # The first look is due after half of ten minutes, and a list answers for all: again and again.
        assert 10 <= len(listed.kind.pages_read) <= 12
        assert set(listed.listings) == {("complete", 20)}
        assert len(listed.rig.tally.steps) == 20

    play_listed(scenario)


def test_every_page_is_read() -> None:
    async def scenario(listed: ListedRig) -> None:
        listed.kind.size = 7
        await listed.declare(*TWENTY)
        listed.forget_looks()
        await listed.rig.clock.sleep(HALF + 100)

        assert len(listed.kind.pages_read) == 3
        assert listed.listings == [("complete", 20)]

    play_listed(scenario)


def test_each_shelf_is_listed_for_itself() -> None:
    async def scenario(listed: ListedRig) -> None:
        await listed.declare(*TEN, *names_on("b", 10), "alone")
        listed.forget_looks()
        await listed.rig.clock.sleep(HALF + 200)

        assert listed.listings == [("complete", 10)] * 2
        assert listed.looks(*TEN, *names_on("b", 10)) == [0] * 20

    play_listed(scenario)


def test_an_item_of_the_same_bytes_is_not_decoded_again() -> None:
    async def scenario(listed: ListedRig) -> None:
        await listed.declare(*TWENTY)
        await listed.rig.clock.sleep(HALF + 100)
        first = list(listed.kind.decoded)
        await listed.rig.clock.sleep(1_800)

        assert sorted(first) == list(TWENTY)
        assert listed.kind.decoded == first

    play_listed(scenario)


def test_an_item_of_other_bytes_that_means_the_same_is_no_reason_to_look() -> None:
    async def scenario(listed: ListedRig) -> None:
        await listed.declare(*TWENTY)
        listed.forget_looks()
        listed.kind.shown = lambda name, members: {**members, "etag": str(listed.rig.clock.monotonic())}
        await listed.rig.clock.sleep(3_600)

        assert listed.looks(*TWENTY) == [0] * 20
        assert len(listed.kind.decoded) == 20 * len(listed.kind.pages_read)

    play_listed(scenario)


def test_the_next_look_counts_from_when_the_page_was_asked_for() -> None:
    async def scenario(listed: ListedRig) -> None:
        async def take_long() -> None:
            await listed.rig.clock.sleep(20)

        listed.kind.after_page = take_long
        await listed.declare(*TWENTY)
        listed.forget_looks()
        await listed.rig.clock.sleep(2_000)

        earliest = min(jittered_resync(gadget_ref(name), 600.0) for name in TWENTY)
        first, second = listed.kind.pages_read[:2]
        assert second - first == pytest.approx(earliest)

    play_listed(scenario)


# --- What it is no word on -------------------------------------------------------------------------------------------


def test_drift_that_a_list_shows_is_looked_at_and_put_back() -> None:
    async def scenario(listed: ListedRig) -> None:
        rig = listed.rig
        await listed.declare(*TWENTY)
        await rig.clock.sleep(MOST)
        began = rig.clock.monotonic()
        rig.service.objects["a-007"]["size"] = 9
        listed.forget_looks()

        async def is_put_back() -> bool:
            return rig.service.objects["a-007"]["size"] == 1

        at = await rig.until(is_put_back)

        # Not when its own look was due, but when the first of all was.
        earliest = min(jittered_resync(gadget_ref(name), 600.0) for name in TWENTY)
        assert at - began <= earliest + 0.1 < jittered_resync(gadget_ref("a-007"), 600.0)
        assert rig.writes("a-007") == ["create", "update"]
        assert rig.tally.drifts == [pytest.approx(earliest)]
        assert sum(listed.looks(*TWENTY)) == listed.looks("a-007")[0] == 3

    play_listed(scenario)


def test_what_a_list_leaves_out_is_looked_at_when_its_own_time_comes() -> None:
    async def scenario(listed: ListedRig) -> None:
        rig = listed.rig
        await listed.declare(*TWENTY)
        await rig.clock.sleep(MOST)
        listed.kind.hidden.add("a-007")
        began = rig.clock.monotonic()
        rig.service.objects["a-007"]["size"] = 9

        async def is_put_back() -> bool:
            return rig.service.objects["a-007"]["size"] == 1

        at = await rig.until(is_put_back)

        assert at - began <= MOST + MAX_DEFER_SECONDS
        assert rig.writes("a-007") == ["create", "update"]

    play_listed(scenario)


def test_an_object_that_is_gone_from_a_list_is_made_again_only_after_a_look_that_says_so() -> None:
    async def scenario(listed: ListedRig) -> None:
        rig = listed.rig
        await listed.declare(*TWENTY)
        await rig.clock.sleep(MOST)
        listed.kind.hidden.add("a-003")
        del rig.service.objects["a-007"]
        await rig.clock.sleep(MOST + MAX_DEFER_SECONDS)

        assert rig.writes("a-003") == ["create"]
        assert rig.writes("a-007") == ["create", "create"]

    play_listed(scenario)


@pytest.mark.parametrize("members", [{"unreadable": True}, {"size": "not a number"}, {"size": 2}, {"serial": "2"}])
def test_an_item_that_is_never_as_the_object_costs_a_look_each_time(members: dict[str, object]) -> None:
    async def scenario(listed: ListedRig) -> None:
        await listed.declare(*TWENTY)
        listed.forget_looks()
        listed.kind.shown = lambda name, shown: {**shown, **(members if name == "a-007" else {})}  # type: ignore[dict-item] # any JSON
        await listed.rig.clock.sleep(3_600)

        (looks,) = listed.looks("a-007")
        # As often as without lists, and nothing was written.
        assert 4 <= looks <= 12
        assert sum(listed.looks(*TWENTY)) == looks
        assert listed.rig.writes("a-007") == ["create"]

    play_listed(scenario)


def test_what_nobody_declared_is_nobodys_business() -> None:
    async def scenario(listed: ListedRig) -> None:
        await listed.declare(*TWENTY)
        listed.rig.service.objects["a-stranger"] = {"size": 3}
        listed.forget_looks()
        await listed.rig.clock.sleep(HALF + 100)

        assert listed.listings == [("complete", 20)]
        assert listed.rig.service.objects["a-stranger"] == {"size": 3}

    play_listed(scenario)


def test_each_object_is_looked_at_by_itself_now_and_then() -> None:
    async def scenario(listed: ListedRig) -> None:
        await listed.declare(*TWENTY)
        listed.forget_looks()
        await listed.rig.clock.sleep(48 * 3_600)

        # About every six hours, each at its own time.
        assert all(5 <= looks <= 16 for looks in listed.looks(*TWENTY))
        assert len({at for at, _ in listed.kind.looks}) > 100

    play_listed(scenario)


@pytest.mark.parametrize("word", ["observe", "paused"])
def test_what_is_not_kept_as_declared_is_not_answered_for(word: str) -> None:
    async def scenario(listed: ListedRig) -> None:
        await listed.declare(*TWENTY)
        await listed.rig.apply("a-007", annotations={MANAGEMENT: word})
        await listed.rig.clock.sleep(1)
        listed.forget_looks()
        before = len(listed.rig.tally.steps)
        await listed.rig.clock.sleep(1_800)

        assert set(listed.listings) == {("complete", 19)}
        # Steps of this one alone, as often as ever.
        assert 2 <= len(listed.rig.tally.steps) - before <= 6

    play_listed(scenario)


def test_what_its_author_wants_no_looks_at_is_left_alone_whatever_a_list_shows() -> None:
    async def scenario(listed: ListedRig) -> None:
        await listed.declare(*TWENTY)
        await listed.declare("a-never", annotations={RESYNC_INTERVAL: "0"})
        await listed.rig.clock.sleep(MOST)
        listed.rig.service.objects["a-never"]["size"] = 9
        listed.forget_looks()
        await listed.rig.clock.sleep(3_600)

        assert listed.looks("a-never") == [0]
        assert listed.rig.service.objects["a-never"]["size"] == 9
        assert set(listed.listings) == {("complete", 20)}

    play_listed(scenario)


# --- When it pays ----------------------------------------------------------------------------------------------------


def test_a_few_are_looked_at_one_by_one() -> None:
    async def scenario(listed: ListedRig) -> None:
        await listed.declare(*names_on("a", 9))
        listed.forget_looks()
        await listed.rig.clock.sleep(3_600)

        assert listed.kind.pages_read == []
        assert all(4 <= looks <= 12 for looks in listed.looks(*names_on("a", 9)))

    play_listed(scenario)


def test_a_shelf_full_of_strangers_is_not_read_to_its_end_and_not_again_for_an_hour() -> None:
    async def scenario(listed: ListedRig) -> None:
        listed.kind.size = 25
        for number in range(500):
            listed.rig.service.objects[f"a-{number:03}-theirs"] = {"size": 1}
        await listed.declare(*TWENTY)
        listed.forget_looks()
        await listed.rig.clock.sleep(3_600)

        # Five strangers for each of ours, and the page on which that was seen.
        assert len(listed.kind.pages_read) == 5
        assert [ending for ending, _ in listed.listings] == ["useless"]
        assert all(4 <= looks <= 12 for looks in listed.looks(*TWENTY))
        await listed.rig.clock.sleep(900)
        assert len(listed.listings) == 2

    play_listed(scenario)


def test_one_that_is_looked_at_often_does_not_bring_a_list_of_all() -> None:
    async def scenario(listed: ListedRig) -> None:
        await listed.declare(*names_on("a", 200))
        await listed.declare("a-often", annotations={RESYNC_INTERVAL: "10"})
        listed.forget_looks()
        await listed.rig.clock.sleep(3_600)

        assert len(listed.kind.pages_read) <= 18
        assert 3_600 / 15 - 40 <= listed.looks("a-often")[0] <= 3_600 / 5
        assert listed.looks(*names_on("a", 200)) == [0] * 200

    play_listed(scenario)


def test_a_shelf_is_not_listed_while_too_little_on_it_is_at_rest() -> None:
    async def scenario(listed: ListedRig) -> None:
        await listed.declare(*names_on("a", 9))
        for name in names_on("a", 20)[9:]:
            await listed.rig.apply(name, {"size": 1, "parentRef": "missing"})
        listed.forget_looks()
        await listed.rig.clock.sleep(1_800)

        assert listed.kind.pages_read == []

    play_listed(scenario)
