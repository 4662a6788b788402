"""From events to steps, and from outcomes to the next step: on virtual time."""

import asyncio
import itertools
from typing import Any

import pytest

from setpoint.engine.requeue import RESYNC_INTERVAL, jittered_resync
from setpoint.engine.state import ENGINE_STATE, RECONCILE_HANDLED, RECONCILE_REQUESTED
from setpoint.errors import LeaseLost, RemoteUnavailable
from setpoint.testing.faults import EVERY_VERB, CallFault
from simulation.virtual_time import run
from tests.engine.gadgets import Fault, gadget_ref
from tests.runtime.manager_harness import ManagerHarness, new_harness, play, running


def test_a_declared_object_is_created_once_and_then_idle() -> None:
    async def scenario(harness: ManagerHarness) -> None:
        await harness.apply("a")
        await harness.settled("a")
        steps = len(harness.metrics.steps)
        await harness.clock.sleep(200)

        assert harness.service.objects["a"]["size"] == 1
        # Its own status does not trigger it.
        assert len(harness.metrics.steps) == steps == 1

    play(scenario)


def test_an_edit_is_executed_at_once_and_its_convergence_measured() -> None:
    async def scenario(harness: ManagerHarness) -> None:
        await harness.apply("a")
        await harness.settled("a")
        await harness.apply("a", {"size": 2})
        await harness.settled("a")

        assert harness.service.objects["a"]["size"] == 2
        assert harness.writes("a") == ["create", "update"]
        assert harness.metrics.convergences == [0.0, 0.0]

    play(scenario)


def test_a_deleted_resource_is_removed_and_never_reconciled_again() -> None:
    async def scenario(harness: ManagerHarness) -> None:
        await harness.apply("a")
        await harness.settled("a")
        await harness.store.delete(gadget_ref("a"))

        async def is_gone() -> bool:
            return await harness.store.get(gadget_ref("a")) is None

        await harness.until(is_gone)
        observations = len(harness.kind.observed)
        await harness.clock.sleep(10_000)

        assert harness.service.objects == {}
        assert len(harness.kind.observed) == observations
        assert len(harness.manager.index) == 0

    play(scenario)


def test_resyncs_are_between_half_the_mean_interval_and_one_and_a_half() -> None:
    async def scenario(harness: ManagerHarness) -> None:
        names = [f"n{number}" for number in range(40)]
        for name in names:
            await harness.apply(name)
        await harness.settled(*names)
        await harness.clock.sleep(9_000)

        for name in names:
            observations = harness.observations_of(name)[2:]
            gaps = {round(after - before, 3) for before, after in itertools.pairwise(observations)}
            assert gaps == {round(jittered_resync(gadget_ref(name), 600.0), 3)}
            assert 300 <= gaps.pop() < 900
        assert len({jittered_resync(gadget_ref(name), 600.0) for name in names}) == 40

    play(scenario)


def test_the_author_sets_the_resync_interval() -> None:
    async def scenario(harness: ManagerHarness) -> None:
        await harness.apply("often", annotations={RESYNC_INTERVAL: "10"})
        await harness.apply("never", annotations={RESYNC_INTERVAL: "0"})
        await harness.settled("often", "never")
        never = len(harness.observations_of("never"))
        await harness.clock.sleep(1_000)

        assert 66 <= len(harness.observations_of("often")) <= 202
        assert len(harness.observations_of("never")) == never

    play(scenario)


def test_a_settled_resource_without_a_resync_is_not_reconciled_at_the_start() -> None:
    async def main() -> None:
        first = new_harness()
        async with running(first):
            await first.apply("never", annotations={RESYNC_INTERVAL: "0"})
            await first.apply("usual")
            await first.settled("never", "usual")
        second = new_harness(first.store)
        second.service.objects = first.service.objects
        async with running(second):
            await second.clock.sleep(100)

            assert (len(second.observations_of("never")), len(second.observations_of("usual"))) == (0, 1)
            await second.apply("never", {"size": 3}, annotations={RESYNC_INTERVAL: "0"})
            await second.settled("never")
            assert second.service.objects["never"]["size"] == 3

    run(main())


def test_drift_is_found_by_the_next_resync_and_its_age_measured() -> None:
    async def scenario(harness: ManagerHarness) -> None:
        await harness.apply("a")
        began = await harness.settled("a")
        await harness.clock.sleep(1)
        harness.service.objects["a"]["size"] = 9

        async def is_corrected() -> bool:
            return harness.service.objects["a"]["size"] == 1

        at = await harness.until(is_corrected)

        assert 300 <= at - began < 900
        assert [300 <= age < 900 for age in harness.metrics.drifts] == [True]

    play(scenario)


def test_a_requested_reconcile_is_acknowledged_in_the_status() -> None:
    async def scenario(harness: ManagerHarness) -> None:
        await harness.apply("a")
        await harness.settled("a")
        harness.service.objects["a"]["size"] = 9
        await harness.apply("a", annotations={RECONCILE_REQUESTED: "2026-01-01T12:00:00Z"})

        async def is_handled() -> bool:
            return (await harness.status("a")).get(RECONCILE_HANDLED) == "2026-01-01T12:00:00Z"

        at = await harness.until(is_handled)

        assert harness.service.objects["a"]["size"] == 1
        assert at < 10
        ours: Any = (await harness.status("a"))[ENGINE_STATE]
        by = "an operator, requested by annotation setpoint.dev/reconcile-requested-at"
        assert (ours["step"]["trigger"], ours["step"]["decision"]) == (by, "drifted")

    play(scenario)


def test_a_rotated_secret_triggers_its_dependants() -> None:
    async def scenario(harness: ManagerHarness) -> None:
        await harness.secret("first")
        await harness.apply("a", {"size": 1, "passwordRef": "s"})
        await harness.settled("a")
        await harness.secret("second")

        async def has_the_new_one() -> bool:
            return harness.service.passwords == {"a": "second"}

        assert await harness.until(has_the_new_one) < 5

    play(scenario)


def test_a_running_operation_is_polled_until_it_ends() -> None:
    async def scenario(harness: ManagerHarness) -> None:
        harness.service.slow = True
        await harness.apply("a")
        await harness.clock.sleep(100)
        polls = len(harness.metrics.steps) - 1
        harness.service.finish()

        at = await harness.settled("a")

        assert 8 <= polls <= 20
        assert at <= 116
        assert harness.writes("a") == ["create"]

    play(scenario)


def test_an_outage_backs_off_and_an_edit_resets_the_backoff() -> None:
    async def scenario(harness: ManagerHarness) -> None:
        harness.service.faults.append(Fault(CallFault.CUT, EVERY_VERB, 10**6))
        await harness.apply("a")
        await harness.clock.sleep(3_600)
        observations = len(harness.observations_of("a"))
        harness.service.faults.clear()
        await harness.apply("a", {"size": 2})
        at = await harness.settled("a")

        # 250 ms, doubled up to two minutes, with jitter.
        assert 30 <= observations <= 80
        assert at < 3_601

    play(scenario)


def test_retry_after_of_a_service_is_honoured() -> None:
    async def scenario(harness: ManagerHarness) -> None:
        asked = RemoteUnavailable("GET: 429", after=77.0)

        async def refuse_once(name: str) -> None:
            if len(harness.observations_of(name)) == 1:
                raise asked

        harness.kind.before = refuse_once
        await harness.apply("a")
        await harness.settled("a")

        first, second = harness.observations_of("a")[:2]
        assert second - first >= 77.0

    play(scenario)


def test_failing_resources_leave_workers_for_the_rest() -> None:
    async def scenario(harness: ManagerHarness) -> None:
        async def take_a_minute(name: str) -> None:
            if name.startswith("bad"):
                await harness.clock.sleep(60)
                raise RemoteUnavailable(f"GET {name}: no answer within 60 s")
            await harness.clock.sleep(1)

        harness.kind.before = take_a_minute
        for number in range(600):
            await harness.apply(f"bad-{number}")
        await harness.clock.sleep(4_000)
        began = harness.clock.monotonic()
        for number in range(50):
            await harness.apply(f"good-{number}")
        at = await harness.settled(*(f"good-{number}" for number in range(50)))

        # Two observations of a second each, by the workers that are left for them.
        assert at - began < 120

    play(scenario)


def test_an_edit_unparks_a_failing_resource() -> None:
    async def scenario(harness: ManagerHarness) -> None:
        broken = {f"bad-{number}" for number in range(100)}

        async def takes_long(name: str) -> None:
            if name in broken:
                await harness.clock.sleep(60)
                raise RemoteUnavailable(f"GET {name}: no answer within 60 s")

        harness.kind.before = takes_long
        for name in sorted(broken):
            await harness.apply(name)
        await harness.clock.sleep(5_000)
        broken.discard("bad-7")
        began = harness.clock.monotonic()
        await harness.apply("bad-7", {"size": 2})

        assert await harness.settled("bad-7") - began < 1

    play(scenario)


def test_a_single_process_that_lost_its_lease_stops() -> None:
    async def main() -> None:
        harness = new_harness()
        lost = LeaseLost("another process has the lease")

        async def refuse(*_: object, **__: object) -> None:
            raise lost

        harness.store.update = refuse  # type: ignore[method-assign] # as if another process had it by now
        await harness.apply("a")
        with pytest.raises(LeaseLost, match="another process has the lease"):
            await harness.manager.run()

    run(main())


def test_a_bug_in_one_step_is_retried_and_does_not_affect_other_resources() -> None:
    async def scenario(harness: ManagerHarness) -> None:
        broken = {"odd"}

        async def trip(name: str) -> None:
            if name in broken:
                raise ZeroDivisionError

        harness.kind.before = trip
        await harness.apply("odd")
        await harness.apply("even")
        await harness.settled("even")
        await harness.clock.sleep(60)
        assert len(harness.observations_of("odd")) > 3
        broken.clear()

        await harness.settled("odd")

    play(scenario)


def test_no_two_steps_of_a_resource_run_at_once() -> None:
    async def scenario(harness: ManagerHarness) -> None:
        inside: set[str] = set()

        async def alone(name: str) -> None:
            assert name not in inside
            inside.add(name)
            await harness.clock.sleep(2)
            inside.discard(name)

        harness.kind.before = alone
        for size in range(20):
            await harness.apply("a", {"size": size})
            await asyncio.sleep(0.5)
        await harness.settled("a")

        assert harness.service.objects["a"]["size"] == 19

    play(scenario)
