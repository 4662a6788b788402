"""The events of what is done by long-running operations: what has begun, and what is there."""

import asyncio
import io
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

import pytest
from rich.console import Console

from setpoint.cli.views.resources import explanation_of
from setpoint.engine.step.outcomes import Stopped
from setpoint.library.inspection.records import StepExplanation
from setpoint.testing.harness import ContractHarness, contract_harness
from setpoint.testing.interruptions import Interruption, Killed, die, interrupted
from tests.engine.gadget_fixture import GadgetFixture

_OF_WRITES = ("Creating", "Created", "Updating", "Updated", "UpdateFailed", "Deleted")
_FAILED = "Update call failed: operation op-1 failed: no room"


async def _write_events(harness: ContractHarness) -> Sequence[str]:
    notes = await harness.store.events(harness.ref)
    return [f"{note.reason}: {note.message}" for note in notes if note.reason in _OF_WRITES]


def _play(scenario: Callable[[ContractHarness], Awaitable[None]]) -> Sequence[str]:
    async def play() -> Sequence[str]:
        async with contract_harness(GadgetFixture()) as harness:
            await scenario(harness)
            return await _write_events(harness)

    return asyncio.run(play())


def test_a_creation_whose_operation_failed_created_nothing() -> None:
    async def scenario(harness: ContractHarness) -> None:
        await harness.fail_operation("no room")
        await harness.apply()
        assert isinstance(await harness.go_on(), Stopped)

    assert _play(scenario) == ["Creating: creation begun with spec.size, spec.mode", f"UpdateFailed: {_FAILED}"]


def test_an_update_whose_operation_failed_updated_nothing() -> None:
    async def scenario(harness: ContractHarness) -> None:
        await harness.settle()
        await harness.fail_operation("no room")
        await harness.change()
        assert isinstance(await harness.go_on(), Stopped)

    assert _play(scenario)[1:] == ["Updating: intent changed: began to set spec.size", f"UpdateFailed: {_FAILED}"]


def test_what_an_operation_did_is_told_once_it_is_done() -> None:
    async def scenario(harness: ContractHarness) -> None:
        await harness.make_slow()
        await harness.settle()
        await harness.delete_outside()
        await harness.go_on()
        await harness.change()
        await harness.go_on()
        await harness.delete()
        await harness.go_on()

    assert _play(scenario) == [
        "Creating: creation begun with spec.size, spec.mode",
        "Created: created with spec.size, spec.mode",
        "Creating: creation begun again, it was deleted, with spec.size, spec.mode",
        "Created: created again, it was deleted, with spec.size, spec.mode",
        "Updating: intent changed: began to set spec.size",
        "Updated: intent changed: set spec.size",
        "Deleted: Successfully deleted",
    ]


def test_an_explanation_names_the_operation_that_was_sent_and_claims_no_end() -> None:
    async def explained() -> str:
        async with contract_harness(GadgetFixture()) as harness:
            await harness.make_slow()
            await harness.apply()
            await harness.step()
            console = Console(file=io.StringIO(), width=200)
            console.print(explanation_of(StepExplanation.of(await harness.resource())))
            assert isinstance(console.file, io.StringIO)
            return console.file.getvalue()

    text = asyncio.run(explained())

    assert "sent: create, by the operation op-1" in text
    assert "wrote" not in text


@pytest.mark.parametrize("awaits", range(1, 20))
def test_a_step_that_is_killed_after_any_await_tells_the_end_of_an_operation_once(awaits: int) -> None:
    async def scenario(harness: ContractHarness) -> None:
        await harness.make_slow()
        await harness.apply()
        await harness.step()
        await harness.finish()
        with suppress(Killed):
            await interrupted(harness, Interruption(awaits, die)).step()
        await harness.restart()
        await harness.go_on()

    assert _play(scenario) == [
        "Creating: creation begun with spec.size, spec.mode",
        "Created: created with spec.size, spec.mode",
    ]
