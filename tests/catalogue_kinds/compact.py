"""The lifecycle of a kind in brief: what a change of the generic kind or of a row is most likely to break."""

from setpoint.engine.drivers.runner import StepRunner
from setpoint.engine.step.outcomes import Gone, Settled
from setpoint.testing import ContractHarness, contract_harness
from setpoint.testing.interruptions import ENOUGH, killed_after
from tests.catalogue_kinds.row_fixture import RowFixture


async def live_once(fixture: type[RowFixture]) -> None:
    """It is created and rests, drift is corrected, a change is sent, it is deleted; and no kill makes a second one."""
    async with contract_harness(fixture()) as harness:
        await _create_and_rest(harness)
        if fixture.can_update:
            await _correct_and_change(harness)
        await _delete(harness, fixture)
    await _kill_while_it_is_created(fixture)


async def _apply(harness: ContractHarness) -> None:
    fixture = harness.fixture
    await harness.apply(fixture.spec(fixture.field.first))


async def _create_and_rest(harness: ContractHarness) -> None:
    await _apply(harness)
    await _settle(harness)
    revision = (await harness.resource()).revision

    settled = await harness.step()

    assert isinstance(settled, Settled)
    assert settled.plan.is_empty, settled.plan
    assert harness.writes == ["create"]
    assert (await harness.resource()).revision == revision
    assert await harness.ready() == ("True", "UpToDate", "The resource is up to date")
    assert await harness.value() == harness.fixture.field.first


async def _correct_and_change(harness: ContractHarness) -> None:
    await harness.drift()
    await _settle(harness)
    assert await harness.value() == harness.fixture.field.first

    await harness.change()
    await _settle(harness)

    assert await harness.value() == harness.fixture.field.then
    assert harness.writes == ["create", "update", "update"]


async def _settle(harness: ContractHarness) -> None:
    outcome = await harness.go_on()
    assert isinstance(outcome, Settled), outcome


async def _delete(harness: ContractHarness, fixture: type[RowFixture]) -> None:
    await harness.delete()

    assert await harness.go_on() == Gone()
    # What the service cannot delete stays.
    is_deleted = "delete" in fixture.row.methods
    assert len(await harness.objects()) == (0 if is_deleted else 1)
    assert harness.writes.count("delete") == (1 if is_deleted else 0)


async def _kill_while_it_is_created(fixture: type[RowFixture]) -> None:
    for awaits in range(1, ENOUGH):
        async with contract_harness(fixture()) as harness:
            await _apply(harness)
            was_killed = await killed_after(awaits, harness)

            outcomes = await StepRunner(harness.engine).until_done([harness.ref], timeout=60)

            outcome = outcomes[harness.ref]
            assert isinstance(outcome, Settled), f"killed after await {awaits}: {outcome}"
            assert harness.writes.count("create") == 1, f"killed after await {awaits}: {harness.writes}"
            assert len(await harness.objects()) == 1
        if not was_killed:
            assert awaits > 4, "the store and the client are not wrapped"
            return
    raise AssertionError(f"a creation has more than {ENOUGH} awaits")
