"""What a process remembers of resources at rest."""

import asyncio
from collections.abc import Awaitable, Callable

from setpoint.core.decide import Decision
from setpoint.core.values.json_types import Json
from setpoint.engine.context import Settled, StepOutcome, Stopped
from setpoint.engine.state import RECONCILE_HANDLED, RECONCILE_REQUESTED
from setpoint.errors import RemoteRefused, RemoteUnavailable
from tests.engine.bench import Bench, bench_with
from tests.engine.gadget_stand import GadgetStand
from tests.engine.stand import Trouble


def _play(scenario: Callable[[Bench], Awaitable[None]]) -> None:
    async def play() -> None:
        async with bench_with(GadgetStand()) as bench:
            bench.go_on_for_ever()
            await scenario(bench)

    asyncio.run(play())


def _decision(outcome: StepOutcome) -> Decision:
    assert isinstance(outcome, Settled), outcome
    return outcome.plan.decision


def _rests(bench: Bench) -> bool:
    assert bench.idle_cache is not None
    return bench.idle_cache.of(bench.stand.ref) is not None


def test_what_rests_is_looked_at_and_not_read() -> None:
    async def scenario(bench: Bench) -> None:
        await bench.settle()
        before = len(bench.stand.calls)
        await bench.step()
        # From here on the store could not even be read.
        await bench.store.close()

        outcome = await bench_without_hearing(bench).step()

        assert _decision(outcome) is Decision.IN_SYNC
        assert bench.stand.calls[before:] == ["get", "get"]

    _play(scenario)


def bench_without_hearing(bench: Bench) -> Bench:
    """The same process, which hears no more news."""
    return Bench(bench.stand, bench.store, bench.clock, idle_cache=bench.idle_cache)


def test_drift_is_found_and_put_back() -> None:
    async def scenario(bench: Bench) -> None:
        await bench.settle()
        bench.stand.drift()

        assert _decision(await bench.step()) is Decision.DRIFTED
        assert bench.stand.writes == ["create", "update"]
        assert _decision(await bench.step()) is Decision.IN_SYNC
        assert _rests(bench)

    _play(scenario)


def test_a_secret_that_was_rotated_ends_the_rest() -> None:
    async def scenario(bench: Bench) -> None:
        await bench.secret({"password": "first"})
        await bench.settle(bench.stand.with_secret)
        await bench.step()
        assert _rests(bench)
        await bench.secret({"password": "second"})
        await bench.go_on()

        assert bench.stand.holds_secret("second")

    _play(scenario)


def test_what_is_asked_for_is_looked_at_closely() -> None:
    async def scenario(bench: Bench) -> None:
        await bench.settle()
        await bench.step()
        calls = len(bench.stand.calls)

        await bench.step(requested=True)

        assert bench.stand.calls[calls:] == ["get"]

    _play(scenario)


def test_an_outage_is_an_outage_and_costs_one_call() -> None:
    async def scenario(bench: Bench) -> None:
        await bench.settle()
        await bench.step()
        calls = len(bench.stand.calls)
        bench.stand.trouble(Trouble.CUT, ["get"])

        outcome = await bench.step()

        assert isinstance(outcome, Stopped)
        assert isinstance(outcome.error, RemoteUnavailable)
        assert len(bench.stand.calls) == calls + 1
        assert await bench.ready() == ("True", "UpToDate", "The resource is up to date")

    _play(scenario)


def test_a_refusal_is_put_on_record() -> None:
    async def scenario(bench: Bench) -> None:
        await bench.settle()
        await bench.step()
        bench.stand.trouble(Trouble.REFUSED, ["get"])

        outcome = await bench.step()

        assert isinstance(outcome, Stopped)
        assert isinstance(outcome.error, RemoteRefused)
        assert (await bench.ready())[:2] == ("False", "UpdateFailed")

    _play(scenario)


def test_a_request_for_a_look_is_taken_up_once_and_echoed() -> None:
    async def scenario(bench: Bench) -> None:
        await bench.settle()
        await bench.step()
        await bench.apply(annotations={RECONCILE_REQUESTED: "2026-01-01T00:00:00Z"})
        await bench.step()
        handled = (await bench.resource()).status[RECONCILE_HANDLED]
        revision = (await bench.resource()).revision
        await bench.step()

        assert handled == "2026-01-01T00:00:00Z"
        assert (await bench.resource()).revision == revision
        await bench.apply()
        await bench.step()
        assert RECONCILE_HANDLED not in (await bench.resource()).status

    _play(scenario)


def test_a_request_for_a_look_tries_again_what_the_service_would_not_follow() -> None:
    async def scenario(bench: Bench) -> None:
        await bench.settle()
        bench.stand.rewrite(bench.stand.field.member, bench.stand.field.first)
        await bench.change()
        await bench.go_on()
        assert (await bench.ready())[1] == "NotConverged"
        writes = len(bench.stand.writes)

        await bench.apply(bench.stand.spec(bench.stand.field.then), annotations={RECONCILE_REQUESTED: "now"})
        await bench.go_on()

        assert len(bench.stand.writes) == writes + 1

    _play(scenario)


def test_after_a_restart_the_same_bytes_need_no_decoding() -> None:
    async def scenario(bench: Bench) -> None:
        await bench.settle()
        await bench.restart()
        objects = _objects(bench)
        objects["g"] = _Undecodable(objects["g"])
        revision = (await bench.resource()).revision

        outcome = await bench.step()

        assert _decision(outcome) is Decision.IN_SYNC
        assert (await bench.resource()).revision == revision

    _play(scenario)


class _Undecodable(dict[str, Json]):
    """The same bytes, which nobody may take apart."""

    def get(self, *_: object) -> Json:
        raise AssertionError("decoded")


def _objects(bench: Bench) -> dict[str, dict[str, Json]]:
    assert isinstance(bench.stand, GadgetStand)
    return bench.stand.service.objects


def test_an_output_that_comes_back_is_told_again() -> None:
    async def scenario(bench: Bench) -> None:
        await bench.settle()
        bench.stand.edit("serial", "2")
        await bench.step()
        other = (await bench.resource()).status["serial"]
        await bench.restart()
        del _objects(bench)["g"]["serial"]
        await bench.step()

        assert (other, (await bench.resource()).status["serial"]) == ("2", "1")

    _play(scenario)
