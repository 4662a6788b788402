"""From news to steps, and from outcomes to the next look: on virtual time."""

import asyncio
import itertools

import pytest

from setpoint.engine.requeue import RESYNC_INTERVAL, jittered_resync
from setpoint.engine.state import RECONCILE_HANDLED, RECONCILE_REQUESTED
from setpoint.errors import LeaseLost, RemoteUnavailable
from tests.engine.gadgets import Fault, gadget_ref
from tests.engine.kind_fixture import EVERY_VERB, Trouble
from tests.runtime.rig import Rig, new_rig, play, running
from tests.runtime.virtual_time import run


def test_what_is_declared_is_made_and_rests() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.apply("a")
        await rig.settled("a")
        steps = len(rig.tally.steps)
        await rig.clock.sleep(200)

        assert rig.service.objects["a"]["size"] == 1
        # Its own status is no news to it.
        assert len(rig.tally.steps) == steps == 1

    play(scenario)


def test_an_edit_is_carried_out_at_once_and_that_is_measured() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.apply("a")
        await rig.settled("a")
        await rig.apply("a", {"size": 2})
        await rig.settled("a")

        assert rig.service.objects["a"]["size"] == 2
        assert rig.writes("a") == ["create", "update"]
        assert rig.tally.convergences == [0.0, 0.0]

    play(scenario)


def test_what_is_deleted_goes_and_is_forgotten() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.apply("a")
        await rig.settled("a")
        await rig.store.delete(gadget_ref("a"))

        async def is_gone() -> bool:
            return await rig.store.get(gadget_ref("a")) is None

        await rig.until(is_gone)
        looks = len(rig.kind.looks)
        await rig.clock.sleep(10_000)

        assert rig.service.objects == {}
        assert len(rig.kind.looks) == looks
        assert len(rig.manager.index) == 0

    play(scenario)


def test_a_resource_is_looked_at_again_between_half_the_mean_and_one_and_a_half() -> None:
    async def scenario(rig: Rig) -> None:
        names = [f"n{number}" for number in range(40)]
        for name in names:
            await rig.apply(name)
        await rig.settled(*names)
        await rig.clock.sleep(9_000)

        for name in names:
            looks = rig.looks_at(name)[2:]
            gaps = {round(after - before, 3) for before, after in itertools.pairwise(looks)}
            assert gaps == {round(jittered_resync(gadget_ref(name), 600.0), 3)}
            assert 300 <= gaps.pop() < 900
        assert len({jittered_resync(gadget_ref(name), 600.0) for name in names}) == 40

    play(scenario)


def test_the_author_says_how_often() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.apply("often", annotations={RESYNC_INTERVAL: "10"})
        await rig.apply("never", annotations={RESYNC_INTERVAL: "0"})
        await rig.settled("often", "never")
        never = len(rig.looks_at("never"))
        await rig.clock.sleep(1_000)

        assert 66 <= len(rig.looks_at("often")) <= 202
        assert len(rig.looks_at("never")) == never

    play(scenario)


def test_what_is_never_to_be_looked_at_again_is_not_even_at_the_start() -> None:
    async def main() -> None:
        first = new_rig()
        async with running(first):
            await first.apply("never", annotations={RESYNC_INTERVAL: "0"})
            await first.apply("usual")
            await first.settled("never", "usual")
        second = new_rig(first.store)
        second.service.objects = first.service.objects
        async with running(second):
            await second.clock.sleep(100)

            assert (len(second.looks_at("never")), len(second.looks_at("usual"))) == (0, 1)
            await second.apply("never", {"size": 3}, annotations={RESYNC_INTERVAL: "0"})
            await second.settled("never")
            assert second.service.objects["never"]["size"] == 3

    run(main())


def test_drift_is_found_by_the_next_regular_look_and_its_age_is_measured() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.apply("a")
        began = await rig.settled("a")
        await rig.clock.sleep(1)
        rig.service.objects["a"]["size"] = 9

        async def is_put_back() -> bool:
            return rig.service.objects["a"]["size"] == 1

        at = await rig.until(is_put_back)

        assert 300 <= at - began < 900
        assert [300 <= age < 900 for age in rig.tally.drifts] == [True]

    play(scenario)


def test_a_look_can_be_asked_for_and_is_echoed() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.apply("a")
        await rig.settled("a")
        rig.service.objects["a"]["size"] = 9
        await rig.apply("a", annotations={RECONCILE_REQUESTED: "2026-01-01T12:00:00Z"})

        async def is_handled() -> bool:
            return (await rig.status("a")).get(RECONCILE_HANDLED) == "2026-01-01T12:00:00Z"

        at = await rig.until(is_handled)

        assert rig.service.objects["a"]["size"] == 1
        assert at < 10

    play(scenario)


def test_dependants_go_as_soon_as_what_they_wait_for_is_ready() -> None:
    async def scenario(rig: Rig) -> None:
        async def slow_parent(name: str) -> None:
            await rig.clock.sleep(7 if name == "parent" else 0)

        rig.kind.before = slow_parent
        await rig.apply("child", {"size": 1, "parentRef": "parent"})
        await rig.clock.sleep(1)
        assert (await rig.status("child"))["conditions"][0]["reason"] == "DependencyNotFound"
        await rig.apply("parent")

        at = await rig.settled("child")

        # Two looks of seven seconds at the parent, and not one for the child's sake.
        assert 15 <= at < 16
        assert rig.looks_at("child")[0] >= 15

    play(scenario)


def test_a_rotated_secret_calls_those_that_use_it() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.secret("first")
        await rig.apply("a", {"size": 1, "passwordRef": "s"})
        await rig.settled("a")
        await rig.secret("second")

        async def has_the_new_one() -> bool:
            return rig.service.passwords == {"a": "second"}

        assert await rig.until(has_the_new_one) < 5

    play(scenario)


def test_an_operation_is_asked_about_until_it_is_over() -> None:
    async def scenario(rig: Rig) -> None:
        rig.service.slow = True
        await rig.apply("a")
        await rig.clock.sleep(100)
        polls = len(rig.tally.steps) - 1
        rig.service.finish()

        at = await rig.settled("a")

        assert 8 <= polls <= 20
        assert at <= 116
        assert rig.writes("a") == ["create"]

    play(scenario)


def test_an_outage_is_met_with_patience_and_an_edit_without() -> None:
    async def scenario(rig: Rig) -> None:
        rig.service.faults.append(Fault(Trouble.CUT, EVERY_VERB, 10**6))
        await rig.apply("a")
        await rig.clock.sleep(3_600)
        looks = len(rig.looks_at("a"))
        rig.service.faults.clear()
        await rig.apply("a", {"size": 2})
        at = await rig.settled("a")

        # 250 ms, doubled up to two minutes, with jitter.
        assert 30 <= looks <= 80
        assert at < 3_601

    play(scenario)


def test_a_service_that_asks_for_time_gets_it() -> None:
    async def scenario(rig: Rig) -> None:
        asked = RemoteUnavailable("GET: 429", after=77.0)

        async def refuse_once(name: str) -> None:
            if len(rig.looks_at(name)) == 1:
                raise asked

        rig.kind.before = refuse_once
        await rig.apply("a")
        await rig.settled("a")

        first, second = rig.looks_at("a")[:2]
        assert second - first >= 77.0

    play(scenario)


def test_what_keeps_failing_does_not_keep_the_rest_waiting() -> None:
    async def scenario(rig: Rig) -> None:
        async def take_a_minute(name: str) -> None:
            if name.startswith("bad"):
                await rig.clock.sleep(60)
                raise RemoteUnavailable(f"GET {name}: no answer within 60 s")
            await rig.clock.sleep(1)

        rig.kind.before = take_a_minute
        for number in range(600):
            await rig.apply(f"bad-{number}")
        await rig.clock.sleep(4_000)
        began = rig.clock.monotonic()
        for number in range(50):
            await rig.apply(f"good-{number}")
        at = await rig.settled(*(f"good-{number}" for number in range(50)))

        # Two looks of a second each, with the hands that are left for them.
        assert at - began < 120

    play(scenario)


def test_an_edit_brings_what_was_put_aside_to_the_front() -> None:
    async def scenario(rig: Rig) -> None:
        broken = {f"bad-{number}" for number in range(100)}

        async def takes_long(name: str) -> None:
            if name in broken:
                await rig.clock.sleep(60)
                raise RemoteUnavailable(f"GET {name}: no answer within 60 s")

        rig.kind.before = takes_long
        for name in sorted(broken):
            await rig.apply(name)
        await rig.clock.sleep(5_000)
        broken.discard("bad-7")
        began = rig.clock.monotonic()
        await rig.apply("bad-7", {"size": 2})

        assert await rig.settled("bad-7") - began < 1

    play(scenario)


def test_a_process_that_lost_its_lease_stops() -> None:
    async def main() -> None:
        rig = new_rig()
        lost = LeaseLost("another process has the lease")

        async def refuse(*_: object, **__: object) -> None:
            raise lost

        rig.store.update = refuse  # type: ignore[method-assign] # as if another process had it by now
        await rig.apply("a")
        with pytest.raises(LeaseLost, match="another process has the lease"):
            await rig.manager.run()

    run(main())


def test_a_bug_in_one_step_is_retried_and_leaves_the_others_alone() -> None:
    async def scenario(rig: Rig) -> None:
        broken = {"odd"}

        async def trip(name: str) -> None:
            if name in broken:
                raise ZeroDivisionError

        rig.kind.before = trip
        await rig.apply("odd")
        await rig.apply("even")
        await rig.settled("even")
        await rig.clock.sleep(60)
        assert len(rig.looks_at("odd")) > 3
        broken.clear()

        await rig.settled("odd")

    play(scenario)


def test_no_resource_is_stepped_twice_at_once() -> None:
    async def scenario(rig: Rig) -> None:
        inside: set[str] = set()

        async def alone(name: str) -> None:
            assert name not in inside
            inside.add(name)
            await rig.clock.sleep(2)
            inside.discard(name)

        rig.kind.before = alone
        for size in range(20):
            await rig.apply("a", {"size": size})
            await asyncio.sleep(0.5)
        await rig.settled("a")

        assert rig.service.objects["a"]["size"] == 19

    play(scenario)
