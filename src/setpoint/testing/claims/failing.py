"""What goes wrong on the way: outages, refusals, operations, and services that do not follow."""

from setpoint.core.decide import Decision
from setpoint.core.plan import Hold
from setpoint.engine.step.outcomes import Settled, StepOutcome, Stopped
from setpoint.engine.step.reconcile import preview
from setpoint.errors import OperationRunning, RemoteConflict, RemoteRefused, RemoteUnavailable
from setpoint.testing.claims.claim import claim
from setpoint.testing.faults import OUTAGES, CallFault
from setpoint.testing.harness import ContractHarness
from setpoint.testing.kind_parts import Part


async def an_outage_is_not_absence_and_no_failure(harness: ContractHarness) -> None:
    before = await harness.settle()
    for outage in OUTAGES:
        await harness.fail_next_calls(outage)

        outcome = await harness.step()

        assert isinstance(outcome, Stopped)
        assert isinstance(outcome.error, RemoteUnavailable), outage
        await harness.recover()
    assert harness.writes == ["create"]
    assert await harness.resource() == before


async def a_refused_read_is_not_absence_either(harness: ContractHarness) -> None:
    await harness.fail_next_calls(CallFault.REFUSED)
    await harness.apply()

    outcome = await harness.step()

    assert isinstance(outcome, Stopped)
    assert isinstance(outcome.error, RemoteRefused)
    assert harness.writes == []
    assert (await harness.ready())[:2] == ("False", "UpdateFailed")


async def a_write_that_meets_an_outage_fails_nothing_and_is_sent_again(harness: ContractHarness) -> None:
    await harness.settle()
    for outage in OUTAGES:
        await harness.fail_next_calls(outage, ["update"])
        await harness.change()

        outcome = await harness.step()

        assert isinstance(outcome, Stopped)
        assert isinstance(outcome.error, RemoteUnavailable), outage
        assert (await harness.ready())[1] != "UpdateFailed"
        await harness.recover()
    await harness.go_on()
    assert await harness.value() == harness.fixture.field.then


async def a_create_whose_answer_was_lost_is_not_sent_twice(harness: ContractHarness) -> None:
    await harness.fail_next_calls(CallFault.LOST, ["create"], times=1)
    await harness.apply()

    lost = await harness.step()
    found = await harness.go_on()

    assert isinstance(lost, Stopped)
    assert isinstance(lost.error, RemoteUnavailable)
    assert isinstance(found, Settled)
    assert harness.writes.count("create") == 1


async def a_refused_write_is_reported_and_sent_again(harness: ContractHarness) -> None:
    await harness.settle()
    await harness.fail_next_calls(CallFault.REFUSED, ["update"])
    await harness.change()

    refused = await harness.step()

    assert isinstance(refused, Stopped)
    assert isinstance(refused.error, RemoteRefused)
    status, reason, message = await harness.ready()
    assert (status, reason) == ("False", "UpdateFailed")
    assert message.startswith("Update call failed: ")
    await harness.recover()
    await harness.go_on()
    assert await harness.value() == harness.fixture.field.then
    assert (await harness.ready())[1] == "UpToDate"


async def a_conflict_means_another_step_and_no_failure(harness: ContractHarness) -> None:
    await harness.settle()
    await harness.fail_next_calls(CallFault.CONFLICT, ["update"], times=1)
    await harness.change()

    conflict = await harness.step()

    assert isinstance(conflict, Stopped)
    assert isinstance(conflict.error, RemoteConflict)
    assert (await harness.ready())[1] != "UpdateFailed"
    await harness.go_on()
    assert await harness.value() == harness.fixture.field.then


# --- Operations ------------------------------------------------------------------------------------------------------


def _is_running(outcome: StepOutcome) -> bool:
    return isinstance(outcome, Stopped) and isinstance(outcome.error, OperationRunning)


async def an_operation_is_on_record_and_finished_by_a_later_step(harness: ContractHarness) -> None:
    await harness.settle()
    await harness.make_slow()
    await harness.change()

    waiting, before = await harness.step(), await harness.resource()
    still, after = await harness.step(), await harness.resource()
    ready = (await harness.ready())[:2]
    await harness.restart()
    await harness.finish()
    done = await harness.step()

    assert _is_running(waiting)
    assert _is_running(still)
    assert before == after
    assert ready == ("False", "Updating")
    assert isinstance(done, Settled)
    assert harness.writes == ["create", "update"]
    assert await harness.value() == harness.fixture.field.then
    assert (await harness.ready())[1] == "UpToDate"


async def a_slow_create_is_on_record_and_finished_by_a_later_step(harness: ContractHarness) -> None:
    await harness.make_slow()
    await harness.apply()

    waiting, still = await harness.step(), await harness.step()
    await harness.finish()
    done = await harness.step()

    assert _is_running(waiting)
    assert _is_running(still)
    assert isinstance(done, Settled)
    assert harness.writes == ["create"]


async def an_operation_that_ends_in_an_error_fails_the_step_and_is_sent_again(harness: ContractHarness) -> None:
    await harness.settle()
    await harness.fail_operation("no room")
    await harness.change()

    failed = await harness.go_on()

    assert isinstance(failed, Stopped)
    assert isinstance(failed.error, RemoteRefused)
    status, reason, message = await harness.ready()
    assert (status, reason) == ("False", "UpdateFailed")
    assert message.startswith("Update call failed: operation ")
    assert "no room" in message
    await harness.go_on()
    assert await harness.value() == harness.fixture.field.then
    assert harness.writes == ["create", "update", "update"]
    assert (await harness.ready())[1] == "UpToDate"


async def an_outage_while_an_operation_runs_forgets_nothing(harness: ContractHarness) -> None:
    await harness.settle()
    await harness.make_slow()
    await harness.change()
    await harness.step()
    await harness.fail_next_calls(CallFault.UNAVAILABLE)

    outcome = await harness.step()

    assert isinstance(outcome, Stopped)
    assert isinstance(outcome.error, RemoteUnavailable)
    await harness.recover()
    await harness.go_on()
    assert harness.writes == ["create", "update"]
    assert await harness.value() == harness.fixture.field.then


# --- Services that do not follow -------------------------------------------------------------------------------------


async def a_residual_in_a_specified_field_is_not_converged_and_not_fought(harness: ContractHarness) -> None:
    await harness.rewrite(harness.fixture.field.member, harness.fixture.field.drifted)
    await harness.apply()

    await harness.go_on()
    revision = (await harness.resource()).revision
    for _ in range(3):
        await harness.go_on()

    status, reason, message = await harness.ready()
    assert (status, reason) == ("False", "NotConverged")
    assert harness.fixture.field.path in message
    assert len(harness.writes) <= 2
    assert (await harness.resource()).revision == revision


async def a_plan_names_what_did_not_converge_and_both_values(harness: ContractHarness) -> None:
    field = harness.fixture.field
    await harness.rewrite(field.member, field.drifted)
    await harness.apply()
    await harness.go_on()

    plan = await preview(harness.ref, harness.engine)

    assert (plan.writes, plan.held) == ((), Hold.NOT_CONVERGED)
    assert [(str(one.path), one.before, one.after) for one in plan.withheld] == [
        (field.path, field.drifted, field.first)
    ]


async def not_converged_is_tried_again_when_the_author_asks(harness: ContractHarness) -> None:
    await harness.rewrite(harness.fixture.field.member, harness.fixture.field.drifted)
    await harness.apply()
    await harness.go_on()
    before = len(harness.writes)

    await harness.go_on(requested=True)
    await harness.go_on()

    assert len(harness.writes) == before + 1
    assert (await harness.ready())[1] == "NotConverged"


async def not_converged_is_tried_again_when_something_moves(harness: ContractHarness) -> None:
    await harness.rewrite(harness.fixture.field.member, harness.fixture.field.drifted)
    await harness.apply()
    await harness.go_on()
    before = len(harness.writes)

    await harness.edit(harness.fixture.field.member, harness.fixture.field.then)
    await harness.go_on()
    await harness.go_on()

    assert len(harness.writes) == before + 1
    assert (await harness.ready())[1] == "NotConverged"


async def not_converged_is_over_once_the_service_follows(harness: ContractHarness) -> None:
    await harness.rewrite(harness.fixture.field.member, harness.fixture.field.drifted)
    await harness.apply()
    await harness.go_on()
    await harness.recover()

    await harness.go_on(requested=True)

    assert await harness.value() == harness.fixture.field.first
    assert (await harness.ready())[1] == "UpToDate"


async def a_residual_in_server_defaults_is_accepted_and_rests(harness: ContractHarness) -> None:
    other = harness.fixture.unlisted
    await harness.rewrite(other.member, other.theirs)
    await harness.settle()
    before = (await harness.resource()).revision

    outcome = await harness.step()

    resource = await harness.resource()
    assert isinstance(outcome, Settled)
    assert outcome.plan.decision is Decision.IN_SYNC
    assert (await harness.ready())[:2] == ("True", "UpToDate")
    assert resource.status["serverDefaults"] == [other.path]
    assert resource.revision == before
    assert len(harness.writes) <= 2


async def server_defaults_are_sent_again_when_a_reconcile_is_requested(harness: ContractHarness) -> None:
    other = harness.fixture.unlisted
    await harness.rewrite(other.member, other.theirs)
    await harness.settle()
    await harness.recover()
    await harness.step()
    assert await harness.read(other.member) == other.theirs

    await harness.go_on(requested=True)

    assert await harness.read(other.member) == other.pruned
    assert "serverDefaults" not in (await harness.resource()).status


async def a_server_default_that_the_author_names_is_sent(harness: ContractHarness) -> None:
    other = harness.fixture.unlisted
    await harness.rewrite(other.member, other.theirs)
    await harness.settle()
    await harness.recover()

    await harness.settle(harness.fixture.spec_naming(other))

    assert await harness.read(other.member) == other.pruned
    assert "serverDefaults" not in (await harness.resource()).status


CLAIMS = (
    claim(an_outage_is_not_absence_and_no_failure),
    claim(a_refused_read_is_not_absence_either),
    claim(a_write_that_meets_an_outage_fails_nothing_and_is_sent_again),
    claim(a_create_whose_answer_was_lost_is_not_sent_twice),
    claim(a_refused_write_is_reported_and_sent_again),
    claim(a_conflict_means_another_step_and_no_failure),
    claim(an_operation_is_on_record_and_finished_by_a_later_step, Part.OPERATIONS),
    claim(a_slow_create_is_on_record_and_finished_by_a_later_step, Part.SLOW_CREATE),
    claim(an_operation_that_ends_in_an_error_fails_the_step_and_is_sent_again, Part.OPERATIONS),
    claim(an_outage_while_an_operation_runs_forgets_nothing, Part.OPERATIONS),
    claim(a_residual_in_a_specified_field_is_not_converged_and_not_fought),
    claim(a_plan_names_what_did_not_converge_and_both_values),
    claim(not_converged_is_tried_again_when_the_author_asks),
    claim(not_converged_is_tried_again_when_something_moves),
    claim(not_converged_is_over_once_the_service_follows),
    claim(a_residual_in_server_defaults_is_accepted_and_rests, Part.PRUNING),
    claim(server_defaults_are_sent_again_when_a_reconcile_is_requested, Part.PRUNING),
    claim(a_server_default_that_the_author_names_is_sent, Part.PRUNING),
)
