"""The process dies after any await: what comes after it ends with exactly one object, or none."""

from pathlib import Path

import pytest

from setpoint.engine.step.outcomes import Gone, Settled, StepOutcome
from tests.engine.interruptions import (
    Doing,
    Pace,
    after_any_await,
    begun,
    killed_after,
)
from tests.engine.kind_fixture import Part
from tests.engine.settings import SETTINGS, Setting
from tests.engine.step_harness import StepHarness

pytestmark = pytest.mark.slow

# What is interrupted, and which parts a kind must have for that.
SITUATIONS = {
    (Doing.CREATING, Pace.AT_ONCE): (),
    (Doing.UPDATING, Pace.AT_ONCE): (),
    (Doing.DELETING, Pace.AT_ONCE): (),
    (Doing.HANDING_OVER, Pace.AT_ONCE): (Part.SECRET,),
    (Doing.REVERTING, Pace.AT_ONCE): (),
    (Doing.CREATING, Pace.SLOWLY): (Part.SLOW_CREATE,),
    (Doing.UPDATING, Pace.SLOWLY): (Part.OPERATIONS,),
    (Doing.DELETING, Pace.SLOWLY): (Part.OPERATIONS,),
    (Doing.HANDING_OVER, Pace.SLOWLY): (Part.SECRET, Part.SLOW_CREATE),
    (Doing.REVERTING, Pace.SLOWLY): (Part.OPERATIONS,),
}
CASES = [
    pytest.param(setting, doing, pace, id=f"{setting}: {doing} {pace}")
    for setting in SETTINGS
    for (doing, pace), dependencies in SITUATIONS.items()
    if setting.fixture.without.keys().isdisjoint(dependencies)
]


@pytest.mark.parametrize(("setting", "doing", "pace"), CASES)
def test_killed_after_any_await_it_ends_with_one_object_or_none(
    setting: Setting, doing: Doing, pace: Pace, tmp_path: Path
) -> None:
    async def is_killed_after(awaits: int) -> bool:
        async with begun(setting, doing, tmp_path / str(awaits)) as harness:
            if pace is Pace.SLOWLY:
                harness.fixture.make_slow()
            was_killed = await killed_after(awaits, harness)

            outcome = await _go_on(harness)

            assert isinstance(outcome, Gone if doing is Doing.DELETING else Settled)
            await (_expect_none if doing is Doing.DELETING else _expect_one)(harness)
            assert harness.fixture.writes.count("create") == 1
            return was_killed

    after_any_await(is_killed_after, least=4)


async def _go_on(harness: StepHarness) -> StepOutcome:
    """Two steps after whatever the service was at work on."""
    await harness.go_on()
    return await harness.step()


async def _expect_one(harness: StepHarness) -> None:
    resource = await harness.resource()
    assert len(harness.fixture.objects) == 1
    assert harness.fixture.value == harness.fixture.field.declared_in(resource)
    assert (await harness.ready())[1] == "UpToDate"
    if Part.SECRET not in harness.fixture.without and resource.spec == harness.fixture.with_secret:
        assert harness.fixture.holds_secret("first")


async def _expect_none(harness: StepHarness) -> None:
    assert harness.fixture.objects == []
    assert await harness.is_gone()
