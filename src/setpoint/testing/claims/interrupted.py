"""Whatever happens after any await of a step: the process dies, a call fails, the author or another writer acts."""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Final, TypeAlias

from setpoint.engine.drivers.runner import StepRunner
from setpoint.engine.step.outcomes import Gone, Settled, StepOutcome, Stopped
from setpoint.errors import RemoteUnavailable, SetpointError, StoreError
from setpoint.testing.claims.claim import LifecycleClaim, OpenHarness
from setpoint.testing.faults import CallFault
from setpoint.testing.harness import ContractHarness
from setpoint.testing.interruptions import (
    Interruption,
    Pace,
    StepSide,
    Undertaking,
    after_any_await,
    begin,
    interrupted,
    killed_after,
)
from setpoint.testing.kind_parts import Part

# --- The process dies ------------------------------------------------------------------------------------------------


async def _killed(undertaking: Undertaking, pace: Pace, open_harness: OpenHarness) -> None:
    """Killed after any await, it ends with exactly one object, or none."""

    async def is_killed_after(awaits: int) -> bool:
        async with open_harness() as harness:
            await begin(undertaking, harness)
            if pace is Pace.SLOWLY:
                await harness.make_slow()
            was_killed = await killed_after(awaits, harness)

            await harness.go_on()
            outcome = await harness.step()

            is_to_go = undertaking is Undertaking.DELETING
            assert isinstance(outcome, Gone if is_to_go else Settled), f"killed after await {awaits}: {outcome}"
            creates = harness.writes.count("create")
            assert creates == 1, f"killed after await {awaits}: created {creates} times: {await harness.objects()}"
            await (_expect_none if is_to_go else _expect_one)(harness)
            return was_killed

    await after_any_await(is_killed_after, least=4)


async def _expect_one(harness: ContractHarness) -> None:
    resource = await harness.resource()
    objects = await harness.objects()
    assert len(objects) == 1, f"there is not one object, but {objects}"
    assert await harness.value() == harness.fixture.field.declared_in(resource)
    assert (await harness.ready())[1] == "UpToDate"
    if Part.SECRET not in harness.fixture.lacking() and resource.spec == harness.fixture.with_secret:
        assert await harness.holds_secret("first")


async def _expect_none(harness: ContractHarness) -> None:
    assert await harness.objects() == []
    assert await harness.is_gone()


# --- The author or another writer acts -------------------------------------------------------------------------------

Happening: TypeAlias = Callable[[ContractHarness], Awaitable[None]]


async def _the_author_changes_the_spec(harness: ContractHarness) -> None:
    await harness.change()


async def _the_author_changes_it_back(harness: ContractHarness) -> None:
    await harness.apply()


async def _the_author_deletes_it(harness: ContractHarness) -> None:
    await harness.delete()


async def _the_author_rotates_the_secret(harness: ContractHarness) -> None:
    await harness.secret({"password": "second"})


async def _another_writer_changes_the_object(harness: ContractHarness) -> None:
    if await harness.objects():
        await harness.drift()


async def _another_writer_removes_the_object(harness: ContractHarness) -> None:
    if await harness.objects():
        await harness.delete_outside()


async def _another_writer_creates_the_object(harness: ContractHarness) -> None:
    if not await harness.objects():
        await harness.create_outside(harness.fixture.field.drifted)


async def _crossed(undertaking: Undertaking, happening: Happening, open_harness: OpenHarness) -> None:
    """Whatever happens after any await, it ends as declared."""

    async def happens_after(awaits: int) -> bool:
        async with open_harness() as harness:
            await begin(undertaking, harness)
            interruption = Interruption(awaits, lambda: happening(harness))
            await interrupted(harness, interruption).step()
            is_to_go = happening is _the_author_deletes_it and interruption.has_happened
            await _ends_as_declared(harness, is_to_go=is_to_go or undertaking is Undertaking.DELETING)
            if undertaking is Undertaking.HANDING_OVER:
                assert await harness.holds_secret("second" if interruption.has_happened else "first")
            return interruption.has_happened

    await after_any_await(happens_after, least=4)


# --- A call fails ----------------------------------------------------------------------------------------------------

_FAILURES: Final[Mapping[StepSide, SetpointError]] = {
    StepSide.STORE: StoreError("the disk is full"),
    StepSide.SERVICE: RemoteUnavailable("the line went dead"),
}


async def _failed(undertaking: Undertaking, side: StepSide, open_harness: OpenHarness) -> None:
    """A failure after any call stops the step and loses nothing."""

    async def fail() -> None:
        raise _FAILURES[side]

    async def fails_after(calls: int) -> bool:
        async with open_harness() as harness:
            await begin(undertaking, harness)
            interruption = Interruption(calls, fail)
            outcome = await interrupted(harness, interruption, [side]).step()
            await harness.recover()
            is_stopped = outcome == Stopped(_FAILURES[side])
            assert is_stopped or not interruption.has_happened, f"{side} failed at call {calls}, and yet: {outcome}"
            await _ends_as_declared(harness, is_to_go=undertaking is Undertaking.DELETING)
            assert harness.writes.count("create") == 1
            return interruption.has_happened

    await after_any_await(fails_after, least=1)


async def _faulted(fault: CallFault, open_harness: OpenHarness) -> None:
    """The call after any await has this fault, once: the next steps make good for it."""

    async def fails_after(awaits: int, undertaking: Undertaking) -> bool:
        async with open_harness() as harness:
            await begin(undertaking, harness)
            interruption = Interruption(awaits, lambda: harness.fail_next_calls(fault, times=1))
            await interrupted(harness, interruption).step()
            await harness.recover()
            await _ends_as_declared(harness, is_to_go=undertaking is Undertaking.DELETING)
            return interruption.has_happened

    for undertaking in (Undertaking.CREATING, Undertaking.UPDATING, Undertaking.DELETING):
        await after_any_await(partial(fails_after, undertaking=undertaking), least=4)


async def _ends_as_declared(harness: ContractHarness, *, is_to_go: bool) -> None:
    outcome = await _run(harness)
    if isinstance(outcome, Settled) and outcome.ready.reason == "NotConverged":
        # A change of another writer between a write and the observation after it counts as a residual.
        assert await harness.value() == harness.fixture.field.drifted
        outcome = await harness.go_on(requested=True)
    assert isinstance(outcome, Gone if is_to_go else Settled)
    assert len(await harness.objects()) == (0 if is_to_go else 1)
    if not is_to_go:
        assert await harness.value() == harness.fixture.field.declared_in(await harness.resource())
        assert (await harness.ready())[1] == "UpToDate"


async def _run(harness: ContractHarness) -> StepOutcome:
    return (await StepRunner(harness.engine).until_done([harness.ref], timeout=60))[harness.ref]


# --- The claims ------------------------------------------------------------------------------------------------------

# What is interrupted, and which parts a kind must have for that.
_KILLED: Final[Mapping[tuple[Undertaking, Pace], tuple[Part, ...]]] = {
    (Undertaking.CREATING, Pace.AT_ONCE): (),
    (Undertaking.UPDATING, Pace.AT_ONCE): (),
    (Undertaking.DELETING, Pace.AT_ONCE): (),
    (Undertaking.HANDING_OVER, Pace.AT_ONCE): (Part.SECRET,),
    (Undertaking.REVERTING, Pace.AT_ONCE): (),
    (Undertaking.CREATING, Pace.SLOWLY): (Part.SLOW_CREATE,),
    (Undertaking.UPDATING, Pace.SLOWLY): (Part.OPERATIONS,),
    (Undertaking.DELETING, Pace.SLOWLY): (Part.OPERATIONS,),
    (Undertaking.HANDING_OVER, Pace.SLOWLY): (Part.SECRET, Part.SLOW_CREATE),
    (Undertaking.REVERTING, Pace.SLOWLY): (Part.OPERATIONS,),
}
_DRIFTING: Final = (_another_writer_changes_the_object, _another_writer_removes_the_object)
_EDITING: Final = (_the_author_changes_it_back, _the_author_deletes_it)
_HAPPENINGS: Final[Mapping[Undertaking, tuple[Happening, ...]]] = {
    Undertaking.CREATING: (
        _the_author_changes_the_spec,
        _the_author_deletes_it,
        *_DRIFTING,
        _another_writer_creates_the_object,
    ),
    Undertaking.UPDATING: (*_EDITING, *_DRIFTING),
    Undertaking.DELETING: _DRIFTING,
    Undertaking.FAILING: (*_EDITING, *_DRIFTING),
    Undertaking.HANDING_OVER: (_the_author_rotates_the_secret,),
    Undertaking.REVERTING: (_the_author_changes_the_spec, _the_author_deletes_it, *_DRIFTING),
}
_FAILED: Final = tuple(one for one in Undertaking if one is not Undertaking.HANDING_OVER)


def _parts_for(undertaking: Undertaking, happening: Happening) -> frozenset[Part]:
    if happening is _another_writer_creates_the_object:
        return frozenset([Part.ADOPTION])
    return frozenset([Part.SECRET] if undertaking is Undertaking.HANDING_OVER else [])


CLAIMS = (
    *(
        LifecycleClaim(
            f"killed after any await, {undertaking} {pace}, it ends with one object or none",
            partial(_killed, undertaking, pace),
            frozenset(parts),
            is_long=True,
        )
        for (undertaking, pace), parts in _KILLED.items()
    ),
    *(
        LifecycleClaim(
            f"after any await, {undertaking},{happening.__name__.replace('_', ' ')}: it ends as declared",
            partial(_crossed, undertaking, happening),
            _parts_for(undertaking, happening),
            is_long=True,
        )
        for undertaking, happenings in _HAPPENINGS.items()
        for happening in happenings
    ),
    *(
        LifecycleClaim(
            f"after any call, {undertaking}, {side} fails: the step stops, and nothing is lost",
            partial(_failed, undertaking, side),
            is_long=True,
        )
        for undertaking in _FAILED
        for side in StepSide
    ),
    *(
        LifecycleClaim(
            f"after any await, the next call has the fault {fault.name}: it ends as declared",
            partial(_faulted, fault),
            is_long=True,
        )
        for fault in CallFault
    ),
)
