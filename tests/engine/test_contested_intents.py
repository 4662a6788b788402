"""Writers of one spec that disagree: their intents are named, and damped; an author who changes the mind is neither."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.core.diff import FieldChange
from setpoint.core.schema.policy import Rule
from setpoint.core.values.canonical import canonical, digest
from setpoint.core.values.paths import Path
from setpoint.engine.contention.intent_flips import (
    CONTESTED_AFTER,
    CONTESTED_BY_ONE_AFTER,
    NO_FLIPS,
    IntentFlips,
)
from setpoint.engine.step.outcomes import Settled, StepOutcome
from setpoint.testing.harness import ContractHarness, contract_harness
from setpoint.testing.interruptions import Interruption, Killed, after_any_await, die, interrupted
from tests.engine.gadget_fixture import GadgetFixture, StatelessGadgetFixture

NOW = "2026-01-01T00:00:00Z"


def _play(scenario: Callable[[ContractHarness], Awaitable[None]], fixture: GadgetFixture | None = None) -> None:
    async def play() -> None:
        async with contract_harness(fixture or GadgetFixture()) as harness:
            await scenario(harness)

    asyncio.run(play())


async def _flip(harness: ContractHarness, times: int, first: int = 1) -> list[StepOutcome]:
    """The outcomes of so many edits, to two sizes in turn."""
    outcomes = []
    for number in range(times):
        await harness.apply({"size": first + number % 2})
        outcomes.append(await harness.go_on())
    return outcomes


def _withheld(outcome: StepOutcome) -> list[str]:
    assert isinstance(outcome, Settled)
    return [str(change.path) for change in outcome.plan.withheld]


def _updates(harness: ContractHarness) -> int:
    return harness.writes.count("update")


@pytest.mark.parametrize("fixture", [GadgetFixture(), StatelessGadgetFixture()], ids=["stateful", "stateless"])
def test_an_author_who_changes_the_mind_a_few_times_is_followed_at_once(fixture: GadgetFixture) -> None:
    async def scenario(harness: ContractHarness) -> None:
        outcomes = await _flip(harness, CONTESTED_BY_ONE_AFTER)

        assert [_withheld(one) for one in outcomes] == [[]] * len(outcomes)
        assert _updates(harness) == len(outcomes) - 1
        assert set(await harness.conditions()) == {"Ready"}

    _play(scenario, fixture)


def test_a_spec_that_is_changed_back_again_and_again_is_reported_and_applied_less_often() -> None:
    async def scenario(harness: ContractHarness) -> None:
        await _flip(harness, CONTESTED_BY_ONE_AFTER + 2)
        sent = _updates(harness)

        last = (await _flip(harness, 1))[0]

        assert (_withheld(last), _updates(harness)) == (["spec.size"], sent)
        assert isinstance(last, Settled)
        assert last.requeue_after is not None
        assert 50 < last.requeue_after <= 60
        found = await harness.conditions()
        assert (found["Ready"]["status"], found["Ready"]["reason"]) == ("False", "Contested")
        assert found["Contested"]["reason"] == "AlternatingIntents"
        assert "spec.size (1 by one writer, 2 by one writer)" in found["Contested"]["message"]
        assert "Contested" in [one.reason for one in await harness.store.events()]
        # The other spec is in sync, and the next return may be applied after a minute, and then after two.
        assert _withheld((await _flip(harness, 1, first=2))[0]) == []
        for seconds, expected in ((60, []), (60, ["spec.size"]), (60, [])):
            harness.clock.seconds += seconds
            size = 1 if await harness.conditions() and await harness.read("size") == 2 else 2
            assert _withheld((await _flip(harness, 1, first=size))[0]) == expected

    _play(scenario)


def test_a_new_spec_and_a_request_are_followed_at_once() -> None:
    async def scenario(harness: ContractHarness) -> None:
        await _flip(harness, CONTESTED_BY_ONE_AFTER + 3)
        await harness.apply({"size": 7})
        assert _withheld(await harness.go_on()) == []

        await harness.apply({"size": 1})
        assert _withheld(await harness.go_on()) == ["spec.size"]
        assert _withheld(await harness.step(requested=True)) == []
        assert await harness.read("size") == 1

    _play(scenario)


def test_a_contest_is_over_when_the_spec_stays_as_it_is() -> None:
    async def scenario(harness: ContractHarness) -> None:
        await _flip(harness, CONTESTED_BY_ONE_AFTER + 2)
        assert "Contested" in await harness.conditions()

        harness.clock.seconds += 6 * 3600 + 1
        await harness.go_on()

        assert set(await harness.conditions()) == {"Ready"}

    _play(scenario)


def test_a_killed_process_neither_loses_an_edit_nor_counts_one_twice() -> None:
    async def killed(awaits: int) -> bool:
        async with contract_harness(GadgetFixture()) as harness:
            await _flip(harness, 4)
            await harness.apply({"size": 1})
            try:
                await interrupted(harness, Interruption(awaits, die)).go_on()
                is_killed = False
            except Killed:
                is_killed = True
            await harness.go_on()
            status: Any = (await harness.resource()).status
            assert await harness.read("size") == 1
            # An edit that was sent before the kill is not counted: one more is sent before the contest is damped.
            assert status["setpoint"]["intents"]["count"] in (2, 3)
            return is_killed

    asyncio.run(after_any_await(killed, least=2))


# --- The bookkeeping --------------------------------------------------------------------------------------------------


def change(value: str) -> FieldChange:
    return FieldChange(Path.parse("spec.size"), "before", value, Rule.SPEC)


def after(intents: list[str], managers: dict[str, str] | None = None) -> IntentFlips:
    flips = NO_FLIPS
    for intent in intents:
        manager = (managers or {}).get(intent, "")
        flips = flips.applied(digest(intent), [change(intent)], NOW, manager=manager)
    return flips


def test_writers_with_different_field_managers_contest_sooner() -> None:
    flips = after(["a", "b", "a", "b", "a"], {"a": "flux", "b": "argocd"})

    assert flips.count == CONTESTED_AFTER
    assert flips.is_contested
    assert not after(["a", "b", "a", "b", "a"]).is_contested
    assert 'spec.size ("before" by argocd, "a" by flux)' in flips.message()
    assert flips.held_until(digest("b"), NOW) == "2026-01-01T00:01:00Z"
    assert flips.held_until(digest("a"), NOW) == ""


@pytest.mark.laws
@given(st.lists(st.sampled_from("abcdefgh"), max_size=30), st.booleans())
def test_flips_survive_storage_are_bounded_and_count_returns_alone(intents: list[str], is_named: bool) -> None:
    flips = after(intents, {one: f"manager {one}" * 20 for one in "abcdefgh"} if is_named else None)

    assert IntentFlips.of(flips.to_data()) == flips
    assert len(canonical(flips.to_data())) < 2048
    changes = [one for one, before in zip(intents, [None, *intents], strict=False) if one != before]
    recent = [one in changes[max(0, number - 40) : number] for number, one in enumerate(changes)]
    assert flips.count <= sum(recent)
    if len(set(intents)) == len(intents):
        assert flips.count == 0


@pytest.mark.laws
@given(
    st.recursive(
        st.none() | st.integers() | st.text(),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(
                st.sampled_from(["sides", "count", "since", "last", "intent", "manager", "values"]), inner
            )
        ),
    )
)
def test_whatever_a_status_holds_can_be_read(data: Any) -> None:
    flips = IntentFlips.of(data)

    assert IntentFlips.of(flips.to_data()) == flips
    if flips.is_contested:
        assert flips.message()
