"""Somebody else acts after any await of a step: nothing is lost, nothing is made twice, no step breaks."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from setpoint.engine.context import Gone, Settled, StepOutcome, Stopped
from setpoint.engine.drivers.runner import StepRunner
from setpoint.errors import RemoteUnavailable, SetpointError, StoreError
from tests.engine.bench import Bench
from tests.engine.interruptions import Doing, Interruption, Side, after_any_await, begun, interrupted
from tests.engine.settings import SETTINGS, Setting
from tests.engine.stand import Part

pytestmark = pytest.mark.slow

Happening = Callable[[Bench], Awaitable[None]]


async def the_author_changes_the_spec(bench: Bench) -> None:
    await bench.change()


async def the_author_changes_it_back(bench: Bench) -> None:
    await bench.apply()


async def the_author_deletes_it(bench: Bench) -> None:
    await bench.delete()


async def the_author_rotates_the_secret(bench: Bench) -> None:
    await bench.secret({"password": "second"})


async def somebody_changes_the_object(bench: Bench) -> None:
    if bench.stand.objects:
        bench.stand.drift()


async def somebody_removes_the_object(bench: Bench) -> None:
    if bench.stand.objects:
        bench.stand.remove()


async def somebody_makes_the_object(bench: Bench) -> None:
    if not bench.stand.objects:
        bench.stand.plant(bench.stand.field.drifted)


MEDDLING = (somebody_changes_the_object, somebody_removes_the_object)
EDITING = (the_author_changes_it_back, the_author_deletes_it)
HAPPENINGS: dict[Doing, tuple[Happening, ...]] = {
    Doing.CREATING: (the_author_changes_the_spec, the_author_deletes_it, *MEDDLING, somebody_makes_the_object),
    Doing.UPDATING: (*EDITING, *MEDDLING),
    Doing.DELETING: MEDDLING,
    Doing.FAILING: (*EDITING, *MEDDLING),
    Doing.HANDING_OVER: (the_author_rotates_the_secret,),
    Doing.PUTTING_BACK: (the_author_changes_the_spec, the_author_deletes_it, *MEDDLING),
}
CASES = [
    pytest.param(setting, doing, happening, id=f"{setting}: {doing}, {happening.__name__.replace('_', ' ')}")
    for setting in SETTINGS
    for doing, happenings in HAPPENINGS.items()
    for happening in happenings
    if not (doing is Doing.HANDING_OVER and Part.SECRET in setting.stand.without)
]


@pytest.mark.parametrize(("setting", "doing", "happening"), CASES)
def test_whatever_happens_after_any_await_it_ends_as_declared(
    setting: Setting, doing: Doing, happening: Happening, tmp_path: Path
) -> None:
    async def happens_after(awaits: int) -> bool:
        async with begun(setting, doing, tmp_path / str(awaits)) as bench:
            interruption = Interruption(awaits, lambda: happening(bench))
            await interrupted(bench, interruption).step()
            is_to_go = happening is the_author_deletes_it and interruption.has_happened
            await _ends_as_declared(bench, is_to_go=is_to_go or doing is Doing.DELETING)
            if doing is Doing.HANDING_OVER:
                assert bench.stand.holds_secret("second" if interruption.has_happened else "first")
            return interruption.has_happened

    after_any_await(happens_after, least=4)


FAILURES: dict[Side, SetpointError] = {
    Side.STORE: StoreError("the disk is full"),
    Side.SERVICE: RemoteUnavailable("the line went dead"),
}
FAILING = [
    pytest.param(setting, doing, side, id=f"{setting}: {doing}, {side} fails")
    for setting in SETTINGS
    for doing in (Doing.CREATING, Doing.UPDATING, Doing.DELETING, Doing.FAILING, Doing.PUTTING_BACK)
    for side in Side
]


@pytest.mark.parametrize(("setting", "doing", "side"), FAILING)
def test_a_failure_after_any_call_stops_the_step_and_loses_nothing(
    setting: Setting, doing: Doing, side: Side, tmp_path: Path
) -> None:
    async def fail() -> None:
        raise FAILURES[side]

    async def fails_after(calls: int) -> bool:
        async with begun(setting, doing, tmp_path / str(calls)) as bench:
            interruption = Interruption(calls, fail)
            outcome = await interrupted(bench, interruption, [side]).step()
            bench.stand.calm()
            assert outcome == Stopped(FAILURES[side]) or not interruption.has_happened
            await _ends_as_declared(bench, is_to_go=doing is Doing.DELETING)
            assert bench.stand.writes.count("create") == 1
            return interruption.has_happened

    after_any_await(fails_after, least=1)


async def _ends_as_declared(bench: Bench, *, is_to_go: bool) -> None:
    outcome = await _run(bench)
    if isinstance(outcome, Settled) and outcome.ready.reason == "NotConverged":
        # Between a write and the look that follows it, a stranger's change looks like a service that does not follow.
        assert bench.stand.value == bench.stand.field.drifted
        outcome = await bench.go_on(requested=True)
    assert isinstance(outcome, Gone if is_to_go else Settled)
    assert len(bench.stand.objects) == (0 if is_to_go else 1)
    if not is_to_go:
        assert bench.stand.value == bench.stand.field.said_in(await bench.resource())
        assert (await bench.ready())[1] == "UpToDate"


async def _run(bench: Bench) -> StepOutcome:
    return (await StepRunner(bench.engine).until_done([bench.stand.ref], timeout=60))[bench.stand.ref]
