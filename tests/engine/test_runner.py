"""Steps for many until each is settled, blocked or failed."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from setpoint.engine.drivers.runner import StepRunner
from setpoint.engine.references import is_ready
from setpoint.engine.resource import ResourceRef
from setpoint.engine.step.outcomes import Gone, Settled, StepOutcome, Stopped
from setpoint.errors import (
    Bug,
    DependencyNotFound,
    DependencyNotReady,
    ManifestInvalid,
    OperationRunning,
    RemoteUnavailable,
)
from setpoint.testing.faults import CallFault
from setpoint.testing.harness import ContractHarness, contract_harness
from setpoint.testing.kind_parts import Spec
from tests.engine.gadget_fixture import GadgetFixture, gadget


def _play(scenario: Callable[[ContractHarness, GadgetFixture], Awaitable[None]]) -> None:
    async def play() -> None:
        fixture = GadgetFixture()
        async with contract_harness(fixture) as harness:
            await scenario(harness, fixture)

    asyncio.run(play())


async def _apply(harness: ContractHarness, **specs: Spec) -> list[ResourceRef]:
    """The refs of gadgets with these names and specs."""
    return [(await harness.store.apply(gadget(name, spec))).ref for name, spec in specs.items()]


async def _run(run: StepRunner, refs: list[ResourceRef], timeout: float = 60) -> Mapping[str, StepOutcome]:
    return {ref.name: outcome for ref, outcome in (await run.until_done(refs, timeout)).items()}


def test_dependants_settle_after_what_they_need_whatever_the_order() -> None:
    async def scenario(harness: ContractHarness, fixture: GadgetFixture) -> None:
        refs = await _apply(harness, a={"parentRef": "b"}, b={"parentRef": "c"}, c={})

        outcomes = await _run(StepRunner(harness.engine), refs)

        assert all(isinstance(outcome, Settled) for outcome in outcomes.values())
        assert [name for verb, name in fixture.service.calls if verb == "create"] == ["c", "b", "a"]

    _play(scenario)


def test_what_waits_for_something_that_never_comes_is_blocked_and_the_rest_is_done() -> None:
    async def scenario(harness: ContractHarness, _: GadgetFixture) -> None:
        refs = await _apply(harness, a={"parentRef": "nowhere"}, b={"parentRef": "a"}, c={})

        outcomes = await _run(StepRunner(harness.engine), refs)

        assert isinstance(outcomes["c"], Settled)
        assert isinstance(outcomes["a"], Stopped)
        assert isinstance(outcomes["a"].error, DependencyNotFound)
        assert isinstance(outcomes["b"], Stopped)
        assert isinstance(outcomes["b"].error, DependencyNotReady)

    _play(scenario)


def test_a_cycle_is_blocked_not_hung() -> None:
    async def scenario(harness: ContractHarness, _: GadgetFixture) -> None:
        refs = await _apply(harness, a={"parentRef": "b"}, b={"parentRef": "a"})

        outcomes = await _run(StepRunner(harness.engine), refs)

        assert all(isinstance(outcome, Stopped) for outcome in outcomes.values())

    _play(scenario)


def test_a_deletion_that_is_refused_is_tried_again_once_another_is_gone() -> None:
    async def scenario(harness: ContractHarness, fixture: GadgetFixture) -> None:
        refs = await _apply(harness, a={}, b={})
        await _run(StepRunner(harness.engine), refs)
        for ref in refs:
            await harness.store.delete(ref)
        fixture.fail_next_calls(CallFault.REFUSED, ["delete"], times=1)
        reported: list[tuple[str, type[StepOutcome]]] = []

        await StepRunner(harness.engine, lambda ref, outcome: reported.append((ref.name, type(outcome)))).until_done(
            refs, 60
        )

        assert sorted(reported) == [("a", Gone), ("b", Gone)]

    _play(scenario)


def test_a_deletion_that_is_refused_for_good_is_reported_when_nothing_else_progresses() -> None:
    async def scenario(harness: ContractHarness, fixture: GadgetFixture) -> None:
        refs = await _apply(harness, a={}, b={})
        await _run(StepRunner(harness.engine), refs)
        for ref in refs:
            await harness.store.delete(ref)
        fixture.fail_next_calls(CallFault.REFUSED, ["delete"])

        outcomes = await _run(StepRunner(harness.engine), refs)

        assert [type(outcome) for outcome in outcomes.values()] == [Stopped, Stopped]

    _play(scenario)


def test_an_unknown_kind_is_reported_and_the_rest_is_done() -> None:
    async def scenario(harness: ContractHarness, _: GadgetFixture) -> None:
        refs = await _apply(harness, c={})
        widget: dict[str, Any] = {"apiVersion": "test.setpoint.dev/v1", "kind": "Widget", "metadata": {"name": "w"}}
        refs.append((await harness.store.apply(widget)).ref)

        outcomes = await _run(StepRunner(harness.engine), refs)

        assert isinstance(outcomes["c"], Settled)
        assert isinstance(outcomes["w"], Stopped)
        assert isinstance(outcomes["w"].error, ManifestInvalid)

    _play(scenario)


def test_an_operation_is_followed_to_its_end() -> None:
    async def scenario(harness: ContractHarness, fixture: GadgetFixture) -> None:
        fixture.make_slow()
        refs = await _apply(harness, a={"size": 1})

        outcomes = await _run(StepRunner(harness.engine), refs)

        assert isinstance(outcomes["a"], Settled)
        assert fixture.writes == ["create"]

    _play(scenario)


def test_a_time_out_leaves_the_last_word_of_each() -> None:
    async def scenario(harness: ContractHarness, fixture: GadgetFixture) -> None:
        fixture.make_slow()
        harness.clock.passing = lambda: None
        refs = await _apply(harness, a={"size": 1})

        outcomes = await _run(StepRunner(harness.engine), refs, timeout=0.05)

        assert isinstance(outcomes["a"], Stopped)
        assert isinstance(outcomes["a"].error, OperationRunning)

    _play(scenario)


def test_an_outage_is_waited_out() -> None:
    async def scenario(harness: ContractHarness, fixture: GadgetFixture) -> None:
        fixture.fail_next_calls(CallFault.CUT, times=3)
        refs = await _apply(harness, a={"size": 1})
        seen: list[StepOutcome] = []

        outcomes = await _run(StepRunner(harness.engine, lambda _, outcome: seen.append(outcome)), refs)

        assert isinstance(outcomes["a"], Settled)
        assert [type(one.error) for one in seen if isinstance(one, Stopped)] == [RemoteUnavailable] * 3

    _play(scenario)


def test_a_lasting_conflict_is_retried_with_backoff() -> None:
    async def scenario(harness: ContractHarness, fixture: GadgetFixture) -> None:
        fixture.fail_next_calls(CallFault.CONFLICT, ["create"], times=20)
        refs = await _apply(harness, a={"size": 1})

        outcomes = await _run(StepRunner(harness.engine), refs)

        assert isinstance(outcomes["a"], Settled)
        assert harness.clock.seconds > 60

    _play(scenario)


def test_a_bug_in_one_kind_leaves_the_rest_alone() -> None:
    async def scenario(harness: ContractHarness, fixture: GadgetFixture) -> None:
        fixture.make_slow()
        refs = await _apply(harness, a={"size": 1}, c={"size": 1})
        fixture.service.objects["a"] = {"size": "not a number, so that the kind cannot read it"}

        outcomes = await _run(StepRunner(harness.engine), refs)

        assert is_ready(await harness.resource(refs[1]))
        assert isinstance(outcomes["a"], Stopped)
        assert isinstance(outcomes["a"].error, Bug)
        assert "not a number" not in str(outcomes["a"].error)

    _play(scenario)
