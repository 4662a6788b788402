"""The process dies after any await: what comes after it ends with exactly one object, or none."""

from pathlib import Path

import pytest

from setpoint.engine.context import Gone, Settled, StepOutcome
from tests.engine.bench import Bench
from tests.engine.interruptions import Doing, Interruption, Killed, Pace, after_any_await, begun, die, interrupted
from tests.engine.settings import SETTINGS, Setting
from tests.engine.stand import Part

pytestmark = pytest.mark.slow

# What is interrupted, and which parts a kind must have for that.
SITUATIONS = {
    (Doing.CREATING, Pace.AT_ONCE): (),
    (Doing.UPDATING, Pace.AT_ONCE): (),
    (Doing.DELETING, Pace.AT_ONCE): (),
    (Doing.HANDING_OVER, Pace.AT_ONCE): (Part.SECRET,),
    (Doing.PUTTING_BACK, Pace.AT_ONCE): (),
    (Doing.CREATING, Pace.SLOWLY): (Part.SLOW_CREATE,),
    (Doing.UPDATING, Pace.SLOWLY): (Part.OPERATIONS,),
    (Doing.DELETING, Pace.SLOWLY): (Part.OPERATIONS,),
    (Doing.HANDING_OVER, Pace.SLOWLY): (Part.SECRET, Part.SLOW_CREATE),
    (Doing.PUTTING_BACK, Pace.SLOWLY): (Part.OPERATIONS,),
}
CASES = [
    pytest.param(setting, doing, pace, id=f"{setting}: {doing} {pace}")
    for setting in SETTINGS
    for (doing, pace), dependencies in SITUATIONS.items()
    if setting.stand.without.keys().isdisjoint(dependencies)
]


@pytest.mark.parametrize(("setting", "doing", "pace"), CASES)
def test_killed_after_any_await_it_ends_with_one_object_or_none(
    setting: Setting, doing: Doing, pace: Pace, tmp_path: Path
) -> None:
    async def is_killed_after(awaits: int) -> bool:
        async with begun(setting, doing, tmp_path / str(awaits)) as bench:
            if pace is Pace.SLOWLY:
                bench.stand.make_slow()
            was_killed = await _killed_after(awaits, bench)

            outcome = await _go_on(bench)

            assert isinstance(outcome, Gone if doing is Doing.DELETING else Settled)
            await (_expect_none if doing is Doing.DELETING else _expect_one)(bench)
            assert bench.stand.writes.count("create") == 1
            return was_killed

    after_any_await(is_killed_after, least=4)


async def _killed_after(awaits: int, bench: Bench) -> bool:
    """Whether the process was killed after that many awaits; False when it needed fewer to come to an end."""
    try:
        await interrupted(bench, Interruption(awaits, die)).go_on()
    except Killed:
        await bench.restart()
        return True
    return False


async def _go_on(bench: Bench) -> StepOutcome:
    """Two steps after whatever the service was at work on."""
    await bench.go_on()
    return await bench.step()


async def _expect_one(bench: Bench) -> None:
    resource = await bench.resource()
    assert len(bench.stand.objects) == 1
    assert bench.stand.value == bench.stand.field.said_in(resource)
    assert (await bench.ready())[1] == "UpToDate"
    if Part.SECRET not in bench.stand.without and resource.spec == bench.stand.with_secret:
        assert bench.stand.holds_secret("first")


async def _expect_none(bench: Bench) -> None:
    assert bench.stand.objects == []
    assert await bench.is_gone()
