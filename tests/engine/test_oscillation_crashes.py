"""The process dies in the middle of a revert: none is lost, and none is counted twice."""

import asyncio
from pathlib import Path

import pytest

from setpoint.engine.contention.oscillation import FIRST_BACKOFF
from setpoint.engine.state import StoredState
from setpoint.testing.harness import ContractHarness
from setpoint.testing.interruptions import (
    Undertaking,
    after_any_await,
    killed_after,
)
from tests.engine.settings import SETTINGS, Setting, begun
from tests.kinds.lifecycle_database import DatabaseFixture
from tests.kinds.lifecycle_policies import PolicyFixture
from tests.kinds.lifecycle_user import UserFixture

pytestmark = pytest.mark.slow

# Reverts before the one that is interrupted, and reverts in all after another writer continued for a while.
CASES = ((0, 3), (2, 3), (3, 4))


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
@pytest.mark.parametrize(("before", "in_all"), CASES)
def test_killed_after_any_await_no_revert_is_lost_or_counted_twice(
    setting: Setting, before: int, in_all: int, tmp_path: Path
) -> None:
    async def is_killed_after(awaits: int) -> bool:
        async with begun(setting, Undertaking.CREATING, tmp_path / str(awaits)) as harness:
            await harness.go_on()
            await _drift_and_step(harness, before)
            harness.clock.seconds += FIRST_BACKOFF
            was_killed = await _killed_in_a_revert(awaits, harness)

            await _drift_and_step(harness, 6)

            conditions, reverts = await harness.conditions(), harness.writes.count("update")
            if conditions["Ready"]["reason"] == "NotConverged":
                # A change of another writer between a write and the observation after it counts as a residual.
                assert reverts <= in_all
            else:
                assert [one.count for one in StoredState.of(await harness.resource()).oscillations.fields] == [in_all]
                assert reverts in _writes(in_all, harness)
                assert "Contested" in conditions
            return was_killed

    asyncio.run(after_any_await(is_killed_after, least=4))


async def _drift_and_step(harness: ContractHarness, times: int) -> None:
    for _ in range(times):
        await harness.drift()
        await harness.go_on()


async def _killed_in_a_revert(awaits: int, harness: ContractHarness) -> bool:
    await harness.drift()
    return await killed_after(awaits, harness)


def _writes(in_all: int, harness: ContractHarness) -> tuple[int, ...]:
    """One for each; where the service was still at work on one that is not on record, it refuses another meanwhile.

    A user has no version: one that was reverted and changed again looks as if it had never been reverted. Nor have the
    grants of one resource in a policy that it shares with others.
    """
    sent_twice = DatabaseFixture | UserFixture | PolicyFixture
    return (in_all, in_all + 1) if isinstance(harness.fixture, sent_twice) else (in_all,)
