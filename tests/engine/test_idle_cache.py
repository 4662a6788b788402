"""What a process remembers of resources at rest."""

import asyncio
from collections.abc import Awaitable, Callable

from setpoint.core.decide import Decision
from setpoint.core.values.json_types import Json
from setpoint.engine.state import RECONCILE_HANDLED, RECONCILE_REQUESTED
from setpoint.engine.step.observe import idle_step
from setpoint.engine.step.outcomes import Settled, StepOutcome, Stopped
from setpoint.errors import RemoteRefused, RemoteUnavailable
from setpoint.testing.faults import CallFault
from setpoint.testing.harness import ContractHarness, contract_harness
from tests.engine.gadget_fixture import GadgetFixture


def _play(scenario: Callable[[ContractHarness], Awaitable[None]]) -> None:
    async def play() -> None:
        async with contract_harness(GadgetFixture()) as harness:
            harness.run_continuously()
            await scenario(harness)

    asyncio.run(play())


def _decision(outcome: StepOutcome) -> Decision:
    assert isinstance(outcome, Settled), outcome
    return outcome.plan.decision


def _rests(harness: ContractHarness) -> bool:
    assert harness.idle_cache is not None
    return harness.idle_cache.of(harness.ref) is not None


def test_an_idle_resource_is_observed_and_not_read() -> None:
    async def scenario(harness: ContractHarness) -> None:
        await harness.settle()
        before = len(harness.calls)
        await harness.step()
        # From here on the store could not even be read.
        await harness.store.close()

        outcome = await bench_without_hearing(harness).step()

        assert _decision(outcome) is Decision.IN_SYNC
        assert harness.calls[before:] == ["get", "get"]

    _play(scenario)


def bench_without_hearing(harness: ContractHarness) -> ContractHarness:
    """The same process with an index that is not updated any more."""
    return ContractHarness(harness.fixture, harness.store, harness.clock, idle_cache=harness.idle_cache)


def test_drift_is_found_and_corrected() -> None:
    async def scenario(harness: ContractHarness) -> None:
        await harness.settle()
        await harness.drift()

        assert _decision(await harness.step()) is Decision.DRIFTED
        assert harness.writes == ["create", "update"]
        assert _decision(await harness.step()) is Decision.IN_SYNC
        assert _rests(harness)

    _play(scenario)


def test_what_has_changed_is_observed_once_more_and_no_oftener() -> None:
    async def scenario(harness: ContractHarness) -> None:
        await harness.settle()
        await harness.step()
        await harness.drift()
        before = len(harness.calls)

        await harness.step()

        assert harness.calls[before:] == ["get", "get", "update", "get"]

    _play(scenario)


def test_what_has_changed_is_observed_by_no_second_idle_step() -> None:
    async def scenario(harness: ContractHarness) -> None:
        await harness.settle()
        await harness.step()
        await harness.drift()
        before = len(harness.calls)

        outcomes = [await idle_step(harness.ref, harness.engine) for _ in range(2)]

        assert outcomes == [None, None]
        assert harness.calls[before:] == ["get"]

    _play(scenario)


def test_a_secret_that_was_rotated_ends_the_rest() -> None:
    async def scenario(harness: ContractHarness) -> None:
        await harness.secret({"password": "first"})
        await harness.settle(harness.fixture.with_secret)
        await harness.step()
        assert _rests(harness)
        await harness.secret({"password": "second"})
        await harness.go_on()

        assert await harness.holds_secret("second")

    _play(scenario)


def test_a_requested_reconcile_is_a_full_step() -> None:
    async def scenario(harness: ContractHarness) -> None:
        await harness.settle()
        await harness.step()
        calls = len(harness.calls)

        await harness.step(requested=True)

        assert harness.calls[calls:] == ["get"]

    _play(scenario)


def test_an_outage_is_an_outage_and_costs_one_call() -> None:
    async def scenario(harness: ContractHarness) -> None:
        await harness.settle()
        await harness.step()
        calls = len(harness.calls)
        await harness.fail_next_calls(CallFault.CUT, ["get"])

        outcome = await harness.step()

        assert isinstance(outcome, Stopped)
        assert isinstance(outcome.error, RemoteUnavailable)
        assert len(harness.calls) == calls + 1
        assert await harness.ready() == ("True", "UpToDate", "The resource is up to date")

    _play(scenario)


def test_a_refusal_is_put_on_record() -> None:
    async def scenario(harness: ContractHarness) -> None:
        await harness.settle()
        await harness.step()
        await harness.fail_next_calls(CallFault.REFUSED, ["get"])

        outcome = await harness.step()

        assert isinstance(outcome, Stopped)
        assert isinstance(outcome.error, RemoteRefused)
        assert (await harness.ready())[:2] == ("False", "UpdateFailed")

    _play(scenario)


def test_a_reconcile_request_is_handled_once_and_echoed() -> None:
    async def scenario(harness: ContractHarness) -> None:
        await harness.settle()
        await harness.step()
        await harness.apply(annotations={RECONCILE_REQUESTED: "2026-01-01T00:00:00Z"})
        await harness.step()
        handled = (await harness.resource()).status[RECONCILE_HANDLED]
        revision = (await harness.resource()).revision
        await harness.step()

        assert handled == "2026-01-01T00:00:00Z"
        assert (await harness.resource()).revision == revision
        await harness.apply()
        await harness.step()
        assert RECONCILE_HANDLED not in (await harness.resource()).status

    _play(scenario)


def test_a_reconcile_request_sends_unconverged_fields_again() -> None:
    async def scenario(harness: ContractHarness) -> None:
        await harness.settle()
        await harness.rewrite(harness.fixture.field.member, harness.fixture.field.first)
        await harness.change()
        await harness.go_on()
        assert (await harness.ready())[1] == "NotConverged"
        writes = len(harness.writes)

        await harness.apply(harness.fixture.spec(harness.fixture.field.then), annotations={RECONCILE_REQUESTED: "now"})
        await harness.go_on()

        assert len(harness.writes) == writes + 1

    _play(scenario)


def test_after_a_restart_the_same_bytes_need_no_decoding() -> None:
    async def scenario(harness: ContractHarness) -> None:
        await harness.settle()
        await harness.restart()
        objects = _objects(harness)
        objects["g"] = _Undecodable(objects["g"])
        revision = (await harness.resource()).revision

        outcome = await harness.step()

        assert _decision(outcome) is Decision.IN_SYNC
        assert (await harness.resource()).revision == revision

    _play(scenario)


class _Undecodable(dict[str, Json]):
    """The same bytes, which must not be decoded."""

    def get(self, *_: object) -> Json:
        raise AssertionError("decoded")


def _objects(harness: ContractHarness) -> dict[str, dict[str, Json]]:
    assert isinstance(harness.fixture, GadgetFixture)
    return harness.fixture.service.objects


def test_an_output_that_returns_is_reported_again() -> None:
    async def scenario(harness: ContractHarness) -> None:
        await harness.settle()
        await harness.edit("serial", "2")
        await harness.step()
        other = (await harness.resource()).status["serial"]
        await harness.restart()
        del _objects(harness)["g"]["serial"]
        await harness.step()

        assert (other, (await harness.resource()).status["serial"]) == ("2", "1")

    _play(scenario)
