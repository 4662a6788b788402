"""What a method of its own sets once the object is there arrives whenever the process is killed; statements, once."""

import asyncio
from typing import Any

from setpoint.catalogue.index import kinds_by_group
from setpoint.engine.drivers.runner import StepRunner
from setpoint.engine.step.outcomes import Settled
from setpoint.testing import ContractHarness, Spec, contract_harness
from setpoint.testing.interruptions import after_any_await, killed_after
from tests.catalogue_kinds.fixtures import fixture_of
from tests.catalogue_kinds.row_fixture import RowFixture

ONE, TWO = (f"CREATE TABLE t{n} (a INT64) PRIMARY KEY (a)" for n in (1, 2))
ACCOUNTS = [f"billingAccounts/{letter * 6}-{letter * 6}-{letter * 6}" for letter in "AB"]


def fixture(kind: str) -> RowFixture:
    return fixture_of(next(name for name in kinds_by_group() if name[1] == kind))()


async def settled(harness: ContractHarness, spec: Spec, *, killed: int) -> bool:
    """Declares the spec, dies after that many awaits, and goes on; whether there were as many."""
    await harness.apply(spec)
    was_killed = await killed_after(killed, harness)
    outcome = (await StepRunner(harness.engine).until_done([harness.ref], timeout=60))[harness.ref]
    assert isinstance(outcome, Settled), f"killed after await {killed}: {outcome}"
    return was_killed


def test_statements_are_carried_out_once_whenever_the_process_is_killed() -> None:
    async def killed_in_update(awaits: int) -> bool:
        made = fixture("SpannerDatabase")
        async with contract_harness(made) as harness:
            await harness.apply({**made.minimal, "ddl": [ONE]})
            await harness.go_on()
            was_killed = await settled(harness, {**made.minimal, "ddl": [ONE, TWO]}, killed=awaits)
            kept = made.cloud.google.state.objects[made._key].hidden["statements"]
            assert kept == [ONE, TWO], f"killed after await {awaits}"
            return was_killed

    asyncio.run(after_any_await(killed_in_update, least=4))


def test_the_billing_account_of_a_project_is_set_whenever_the_process_is_killed() -> None:
    def bill(made: RowFixture, account: int) -> dict[str, Any]:
        return {**made.minimal, "billingAccountRef": {"external": ACCOUNTS[account]}}

    def billed(made: RowFixture) -> Any:
        return made.cloud.google.state.objects[made._key].hidden.get("billingAccountName")

    async def killed_in_creation(awaits: int) -> bool:
        made = fixture("Project")
        async with contract_harness(made) as harness:
            was_killed = await settled(harness, bill(made, 0), killed=awaits)
            assert (billed(made), len(made.objects())) == (ACCOUNTS[0], 1), f"killed after await {awaits}"
            return was_killed

    async def killed_in_update(awaits: int) -> bool:
        made = fixture("Project")
        async with contract_harness(made) as harness:
            await harness.apply(bill(made, 0))
            await harness.go_on()
            was_killed = await settled(harness, bill(made, 1), killed=awaits)
            assert billed(made) == ACCOUNTS[1], f"killed after await {awaits}"
            return was_killed

    asyncio.run(after_any_await(killed_in_creation, least=4))
    asyncio.run(after_any_await(killed_in_update, least=4))
