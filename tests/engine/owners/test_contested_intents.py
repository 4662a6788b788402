"""Writers of an owner's spec that disagree: named, and damped, as those of any other resource."""

import pytest

from setpoint.engine.contention.intent_flips import CONTESTED_BY_ONE_AFTER
from setpoint.engine.contention.oscillation import EXPIRES_AFTER
from setpoint.engine.step.outcomes import Settled
from setpoint.testing.owners.owner_harness import OwnerHarness
from tests.engine.owners.settings import Setting, everywhere

pytestmark = pytest.mark.slow


async def flip(harness: OwnerHarness, times: int) -> list[Settled]:
    """So many edits of two writers in turn, each followed by a step."""
    outcomes = []
    for number in range(times):
        await (harness.apply() if number % 2 else harness.change())
        outcomes.append(await harness.settled())
    return outcomes


@everywhere
def test_a_spec_that_is_changed_back_again_and_again_is_named_and_applied_less_often(setting: Setting) -> None:
    async def scenario(harness: OwnerHarness) -> None:
        await harness.settle()
        followed = await flip(harness, CONTESTED_BY_ONE_AFTER + 1)
        contested = (await harness.conditions())["Contested"]

        held = (await flip(harness, 2))[-1]

        assert all(one.plan.writes and not one.plan.withheld for one in followed)
        assert contested["reason"] == "AlternatingIntents"
        assert contested["message"].startswith(f"the spec was changed back {CONTESTED_BY_ONE_AFTER} times since")
        assert held.plan.is_empty
        assert held.plan.withheld
        assert held.requeue_after is not None
        ready = (await harness.conditions())["Ready"]
        assert (ready["status"], ready["reason"]) == ("False", "Contested")

    setting.play(scenario)


@everywhere
def test_a_contest_that_is_over_is_forgotten(setting: Setting) -> None:
    async def scenario(harness: OwnerHarness) -> None:
        await harness.settle()
        await flip(harness, CONTESTED_BY_ONE_AFTER + 3)
        harness.clock.seconds += EXPIRES_AFTER
        await harness.settled()
        await harness.settled()

        assert (await harness.conditions())["Ready"]["reason"] != "Contested"
        assert "Contested" not in await harness.conditions()

    setting.play(scenario)


@everywhere
def test_a_child_that_is_missing_is_created_at_once(setting: Setting) -> None:
    async def scenario(harness: OwnerHarness) -> None:
        await harness.settle()
        await flip(harness, CONTESTED_BY_ONE_AFTER + 3)
        await harness.remove(harness.fixture.managed.key)
        await harness.settled()

        await harness.child(harness.fixture.managed.key)

    setting.play(scenario)
