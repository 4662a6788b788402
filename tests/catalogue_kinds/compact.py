"""The lifecycle of a kind in brief: what a change of the generic kind or of a row is most likely to break."""

from setpoint.engine.drivers.runner import StepRunner
from setpoint.engine.step.outcomes import Gone, Settled
from setpoint.testing import ContractHarness, contract_harness
from setpoint.testing.interruptions import ENOUGH, Interruption, interrupted, killed_after
from tests.catalogue_kinds.row_fixture import RowFixture
from tests.catalogue_kinds.variant_fixtures import MadeIdRowFixture


async def live_once(fixture: type[RowFixture]) -> None:
    """It is created and rests, drift is corrected, a change is sent, it is deleted; and no kill makes a second one.

    An object that another writer makes meanwhile, under an id that the service makes, is left alone.
    """
    async with contract_harness(fixture()) as harness:
        await _create_and_rest(harness)
        if fixture.can_update:
            await _correct_and_change(harness)
        await _delete(harness, fixture)
    await _kill_while_it_is_created(fixture)
    if issubclass(fixture, MadeIdRowFixture) and "delete" in fixture.row.methods:
        await _create_another_while_it_is_created(fixture)
        await _kill_beside_another(fixture)


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
    is_deleted = fixture.is_deletable()
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


async def _create_another_while_it_is_created(fixture: type[MadeIdRowFixture]) -> None:
    """One like it that another writer makes after any await is never taken for it."""
    for awaits in range(1, ENOUGH):
        made, theirs = fixture(), list[str]()
        async with contract_harness(made) as harness:
            await _apply(harness)

            async def create_another(made: MadeIdRowFixture = made, theirs: list[str] = theirs) -> None:
                theirs += made.create_another()

            interruption = Interruption(awaits, create_another)
            await interrupted(harness, interruption).step()
            await _expect_one_beside(theirs, harness)
        if not interruption.has_happened:
            return
    raise AssertionError(f"a creation has more than {ENOUGH} awaits")


async def _kill_beside_another(fixture: type[MadeIdRowFixture]) -> None:
    """One like it that was there before is never taken for it, whenever the process is killed."""
    for awaits in range(1, ENOUGH):
        made = fixture()
        async with contract_harness(made) as harness:
            theirs = made.create_another()
            made.finish()
            await _apply(harness)
            was_killed = await killed_after(awaits, harness)
            await _expect_one_beside(theirs, harness)
        if not was_killed:
            return
    raise AssertionError(f"a creation has more than {ENOUGH} awaits")


async def _expect_one_beside(theirs: list[str], harness: ContractHarness) -> None:
    """One object, or none where the service refuses a second one like theirs; theirs stays when it is deleted."""
    outcome = (await StepRunner(harness.engine).until_done([harness.ref], timeout=60))[harness.ref]
    ours = [one for one in await harness.objects() if one not in theirs]
    assert len(ours) == (1 if isinstance(outcome, Settled) else 0), outcome
    await harness.delete()
    assert await harness.go_on() == Gone()
    assert await harness.objects() == theirs, outcome
