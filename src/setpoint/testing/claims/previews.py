"""A preview is the step stopped before it writes: its plan is the plan of the step that follows it."""

from dataclasses import replace

from setpoint.clients.http import intercepted_by
from setpoint.clients.write_guard import BlockedWrites, WriteGuard, process_guarded_by
from setpoint.engine.management import MANAGEMENT
from setpoint.engine.state import StoredState
from setpoint.engine.step.outcomes import Gone, Settled, Stopped
from setpoint.engine.step.reconcile import preview
from setpoint.errors import OperationRunning
from setpoint.testing.claims.claim import claim
from setpoint.testing.faults import CallFault
from setpoint.testing.harness import ContractHarness
from setpoint.testing.kind_parts import Part


async def _require_same_plan(harness: ContractHarness) -> None:
    """The plan of a preview, and that of the step right after it, which records it if it wrote anything."""
    writes = list(harness.writes)
    previewed = await preview(harness.ref, harness.engine)
    assert harness.writes == writes

    outcome = await harness.step()

    if isinstance(outcome, Settled):
        assert outcome.plan == previewed
    else:
        # An operation is running: the plan is on record, and in no outcome.
        assert isinstance(outcome, Stopped), outcome
        assert isinstance(outcome.error, OperationRunning), outcome
        assert previewed.writes
    if previewed.writes:
        record = StoredState.of(await harness.resource()).step
        assert record is not None
        # The location on record says which project it was.
        planned = replace(previewed, project=None).to_data()
        assert {name: record[name] for name in planned} == planned


async def the_plan_of_a_creation(harness: ContractHarness) -> None:
    await harness.apply()

    await _require_same_plan(harness)


async def the_plan_of_an_adoption(harness: ContractHarness) -> None:
    await harness.create_outside(harness.fixture.field.drifted)
    await harness.apply()

    await _require_same_plan(harness)


async def the_plan_of_what_the_author_changed(harness: ContractHarness) -> None:
    await harness.settle()
    await harness.change()

    await _require_same_plan(harness)


async def the_plan_of_drift(harness: ContractHarness) -> None:
    await harness.settle()
    await harness.drift()

    await _require_same_plan(harness)


async def the_plan_of_an_object_that_another_writer_deleted(harness: ContractHarness) -> None:
    await harness.settle()
    await harness.delete_outside()

    await _require_same_plan(harness)


async def the_plan_of_a_creation_whose_answer_was_lost(harness: ContractHarness) -> None:
    await harness.apply()
    await harness.fail_next_calls(CallFault.LOST, ["create"])
    await harness.step()
    await harness.finish()

    await _require_same_plan(harness)


async def the_plan_of_nothing_to_do(harness: ContractHarness) -> None:
    await harness.settle()

    await _require_same_plan(harness)


async def the_plan_of_a_resource_that_is_only_observed(harness: ContractHarness) -> None:
    await harness.create_outside(harness.fixture.field.drifted)
    await harness.apply(annotations={MANAGEMENT: "observe"})

    await _require_same_plan(harness)


async def the_plan_of_a_paused_resource(harness: ContractHarness) -> None:
    await harness.settle()
    await harness.drift()
    await harness.apply(annotations={MANAGEMENT: "paused"})

    await _require_same_plan(harness)


async def the_plan_of_a_deletion_deletes_and_only_execute_writes(harness: ContractHarness) -> None:
    await harness.settle()
    await harness.delete()
    writes = list(harness.writes)

    previewed = await preview(harness.ref, harness.engine)

    assert harness.writes == writes
    assert [write.action.value for write in previewed.writes] == ["delete"]
    assert isinstance(await harness.go_on(), Gone)
    assert harness.writes == [*writes, "delete"]


async def a_process_that_may_not_write_plans_the_same(harness: ContractHarness) -> None:
    await harness.settle()
    await harness.drift()
    expected, writes = await preview(harness.ref, harness.engine), list(harness.writes)
    harness.kind = harness.fixture.read_only_kind()
    blocked_writes = BlockedWrites()

    with process_guarded_by(blocked_writes), intercepted_by(WriteGuard("a plan", blocked_writes)):
        planned = await preview(harness.ref, harness.engine)

    assert planned == expected
    assert blocked_writes.writes == [], "call your own client inside `context.reading()`"
    assert harness.writes == writes


CLAIMS = (
    claim(the_plan_of_a_creation),
    claim(the_plan_of_an_adoption, Part.ADOPTION),
    claim(the_plan_of_what_the_author_changed),
    claim(the_plan_of_drift),
    claim(the_plan_of_an_object_that_another_writer_deleted),
    claim(the_plan_of_a_creation_whose_answer_was_lost),
    claim(the_plan_of_nothing_to_do),
    claim(the_plan_of_a_resource_that_is_only_observed, Part.ADOPTION),
    claim(the_plan_of_a_paused_resource),
    claim(the_plan_of_a_deletion_deletes_and_only_execute_writes),
    claim(a_process_that_may_not_write_plans_the_same, Part.CONTEXT),
)
