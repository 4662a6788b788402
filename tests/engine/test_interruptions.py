"""Another writer acts after any await of a step: nothing is lost, nothing is made twice, no step breaks."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from setpoint.engine.drivers.runner import StepRunner
from setpoint.engine.step.outcomes import Gone, Settled, StepOutcome, Stopped
from setpoint.errors import RemoteUnavailable, SetpointError, StoreError
from tests.engine.interruptions import Doing, Interruption, Side, after_any_await, begun, interrupted
from tests.engine.kind_fixture import Part
from tests.engine.settings import SETTINGS, Setting
from tests.engine.step_harness import StepHarness

pytestmark = pytest.mark.slow

Happening = Callable[[StepHarness], Awaitable[None]]


async def the_author_changes_the_spec(harness: StepHarness) -> None:
    await harness.change()


async def the_author_changes_it_back(harness: StepHarness) -> None:
    await harness.apply()


async def the_author_deletes_it(harness: StepHarness) -> None:
    await harness.delete()


async def the_author_rotates_the_secret(harness: StepHarness) -> None:
    await harness.secret({"password": "second"})


async def another_writer_changes_the_object(harness: StepHarness) -> None:
    if harness.fixture.objects:
        harness.fixture.drift()


async def another_writer_removes_the_object(harness: StepHarness) -> None:
    if harness.fixture.objects:
        harness.fixture.remove()


async def another_writer_creates_the_object(harness: StepHarness) -> None:
    if not harness.fixture.objects:
        harness.fixture.plant(harness.fixture.field.drifted)


DRIFTING = (another_writer_changes_the_object, another_writer_removes_the_object)
EDITING = (the_author_changes_it_back, the_author_deletes_it)
HAPPENINGS: dict[Doing, tuple[Happening, ...]] = {
    Doing.CREATING: (the_author_changes_the_spec, the_author_deletes_it, *DRIFTING, another_writer_creates_the_object),
    Doing.UPDATING: (*EDITING, *DRIFTING),
    Doing.DELETING: DRIFTING,
    Doing.FAILING: (*EDITING, *DRIFTING),
    Doing.HANDING_OVER: (the_author_rotates_the_secret,),
    Doing.REVERTING: (the_author_changes_the_spec, the_author_deletes_it, *DRIFTING),
}
CASES = [
    pytest.param(setting, doing, happening, id=f"{setting}: {doing}, {happening.__name__.replace('_', ' ')}")
    for setting in SETTINGS
    for doing, happenings in HAPPENINGS.items()
    for happening in happenings
    if not (doing is Doing.HANDING_OVER and Part.SECRET in setting.fixture.without)
]


@pytest.mark.parametrize(("setting", "doing", "happening"), CASES)
def test_whatever_happens_after_any_await_it_ends_as_declared(
    setting: Setting, doing: Doing, happening: Happening, tmp_path: Path
) -> None:
    async def happens_after(awaits: int) -> bool:
        async with begun(setting, doing, tmp_path / str(awaits)) as harness:
            interruption = Interruption(awaits, lambda: happening(harness))
            await interrupted(harness, interruption).step()
            is_to_go = happening is the_author_deletes_it and interruption.has_happened
            await _ends_as_declared(harness, is_to_go=is_to_go or doing is Doing.DELETING)
            if doing is Doing.HANDING_OVER:
                assert harness.fixture.holds_secret("second" if interruption.has_happened else "first")
            return interruption.has_happened

    after_any_await(happens_after, least=4)


FAILURES: dict[Side, SetpointError] = {
    Side.STORE: StoreError("the disk is full"),
    Side.SERVICE: RemoteUnavailable("the line went dead"),
}
FAILING = [
    pytest.param(setting, doing, side, id=f"{setting}: {doing}, {side} fails")
    for setting in SETTINGS
    for doing in (Doing.CREATING, Doing.UPDATING, Doing.DELETING, Doing.FAILING, Doing.REVERTING)
    for side in Side
]


@pytest.mark.parametrize(("setting", "doing", "side"), FAILING)
def test_a_failure_after_any_call_stops_the_step_and_loses_nothing(
    setting: Setting, doing: Doing, side: Side, tmp_path: Path
) -> None:
    async def fail() -> None:
        raise FAILURES[side]

    async def fails_after(calls: int) -> bool:
        async with begun(setting, doing, tmp_path / str(calls)) as harness:
            interruption = Interruption(calls, fail)
            outcome = await interrupted(harness, interruption, [side]).step()
            harness.fixture.calm()
            assert outcome == Stopped(FAILURES[side]) or not interruption.has_happened
            await _ends_as_declared(harness, is_to_go=doing is Doing.DELETING)
            assert harness.fixture.writes.count("create") == 1
            return interruption.has_happened

    after_any_await(fails_after, least=1)


async def _ends_as_declared(harness: StepHarness, *, is_to_go: bool) -> None:
    outcome = await _run(harness)
    if isinstance(outcome, Settled) and outcome.ready.reason == "NotConverged":
        # A change of another writer between a write and the observation after it counts as a residual.
        assert harness.fixture.value == harness.fixture.field.drifted
        outcome = await harness.go_on(requested=True)
    assert isinstance(outcome, Gone if is_to_go else Settled)
    assert len(harness.fixture.objects) == (0 if is_to_go else 1)
    if not is_to_go:
        assert harness.fixture.value == harness.fixture.field.declared_in(await harness.resource())
        assert (await harness.ready())[1] == "UpToDate"


async def _run(harness: StepHarness) -> StepOutcome:
    return (await StepRunner(harness.engine).until_done([harness.fixture.ref], timeout=60))[harness.fixture.ref]
