"""What goes wrong on the way: outages, refusals, operations, and services that do not follow."""

from setpoint.core.decide import Decision
from setpoint.engine.context import Settled, StepOutcome, Stopped
from setpoint.errors import OperationRunning, RemoteConflict, RemoteRefused, RemoteUnavailable
from tests.engine.bench import Bench
from tests.engine.claim import claim
from tests.engine.stand import OUTAGES, Part, Trouble


async def an_outage_is_not_absence_and_no_failure(bench: Bench) -> None:
    before = await bench.settle()
    for outage in OUTAGES:
        bench.stand.trouble(outage)

        outcome = await bench.step()

        assert isinstance(outcome, Stopped)
        assert isinstance(outcome.error, RemoteUnavailable), outage
        bench.stand.calm()
    assert bench.stand.writes == ["create"]
    assert await bench.resource() == before


async def a_refusal_to_look_is_not_absence_either(bench: Bench) -> None:
    bench.stand.trouble(Trouble.REFUSED)
    await bench.apply()

    outcome = await bench.step()

    assert isinstance(outcome, Stopped)
    assert isinstance(outcome.error, RemoteRefused)
    assert bench.stand.writes == []
    assert (await bench.ready())[:2] == ("False", "UpdateFailed")


async def a_write_that_meets_an_outage_fails_nothing_and_is_sent_again(bench: Bench) -> None:
    await bench.settle()
    for outage in OUTAGES:
        bench.stand.trouble(outage, ["update"])
        await bench.change()

        outcome = await bench.step()

        assert isinstance(outcome, Stopped)
        assert isinstance(outcome.error, RemoteUnavailable), outage
        assert (await bench.ready())[1] != "UpdateFailed"
        bench.stand.calm()
    await bench.go_on()
    assert bench.stand.value == bench.stand.field.then


async def a_create_whose_answer_was_lost_is_not_sent_twice(bench: Bench) -> None:
    bench.stand.trouble(Trouble.LOST, ["create"], times=1)
    await bench.apply()

    lost = await bench.step()
    found = await bench.go_on()

    assert isinstance(lost, Stopped)
    assert isinstance(lost.error, RemoteUnavailable)
    assert isinstance(found, Settled)
    assert bench.stand.writes.count("create") == 1


async def a_refused_write_is_told_and_sent_again(bench: Bench) -> None:
    await bench.settle()
    bench.stand.trouble(Trouble.REFUSED, ["update"])
    await bench.change()

    refused = await bench.step()

    assert isinstance(refused, Stopped)
    assert isinstance(refused.error, RemoteRefused)
    status, reason, message = await bench.ready()
    assert (status, reason) == ("False", "UpdateFailed")
    assert message.startswith("Update call failed: ")
    bench.stand.calm()
    await bench.go_on()
    assert bench.stand.value == bench.stand.field.then
    assert (await bench.ready())[1] == "UpToDate"


async def a_conflict_means_another_look_and_no_failure(bench: Bench) -> None:
    await bench.settle()
    bench.stand.trouble(Trouble.CONFLICT, ["update"], times=1)
    await bench.change()

    conflict = await bench.step()

    assert isinstance(conflict, Stopped)
    assert isinstance(conflict.error, RemoteConflict)
    assert (await bench.ready())[1] != "UpdateFailed"
    await bench.go_on()
    assert bench.stand.value == bench.stand.field.then


# --- Operations ------------------------------------------------------------------------------------------------------


def _is_running(outcome: StepOutcome) -> bool:
    return isinstance(outcome, Stopped) and isinstance(outcome.error, OperationRunning)


async def an_operation_is_on_record_and_finished_by_a_later_step(bench: Bench) -> None:
    await bench.settle()
    bench.stand.make_slow()
    await bench.change()

    waiting, before = await bench.step(), await bench.resource()
    still, after = await bench.step(), await bench.resource()
    told = (await bench.ready())[:2]
    await bench.restart()
    bench.stand.finish()
    done = await bench.step()

    assert _is_running(waiting)
    assert _is_running(still)
    assert before == after
    assert told == ("False", "Updating")
    assert isinstance(done, Settled)
    assert bench.stand.writes == ["create", "update"]
    assert bench.stand.value == bench.stand.field.then
    assert (await bench.ready())[1] == "UpToDate"


async def a_slow_create_is_on_record_and_finished_by_a_later_step(bench: Bench) -> None:
    bench.stand.make_slow()
    await bench.apply()

    waiting, still = await bench.step(), await bench.step()
    bench.stand.finish()
    done = await bench.step()

    assert _is_running(waiting)
    assert _is_running(still)
    assert isinstance(done, Settled)
    assert bench.stand.writes == ["create"]


async def an_operation_that_ends_in_an_error_fails_the_step_and_is_sent_again(bench: Bench) -> None:
    await bench.settle()
    bench.stand.fail_operation("no room")
    await bench.change()

    failed = await bench.go_on()

    assert isinstance(failed, Stopped)
    assert isinstance(failed.error, RemoteRefused)
    status, reason, message = await bench.ready()
    assert (status, reason) == ("False", "UpdateFailed")
    assert message.startswith("Update call failed: operation ")
    assert "no room" in message
    await bench.go_on()
    assert bench.stand.value == bench.stand.field.then
    assert bench.stand.writes == ["create", "update", "update"]
    assert (await bench.ready())[1] == "UpToDate"


async def an_outage_while_an_operation_runs_forgets_nothing(bench: Bench) -> None:
    await bench.settle()
    bench.stand.make_slow()
    await bench.change()
    await bench.step()
    bench.stand.trouble(Trouble.UNAVAILABLE)

    outcome = await bench.step()

    assert isinstance(outcome, Stopped)
    assert isinstance(outcome.error, RemoteUnavailable)
    bench.stand.calm()
    await bench.go_on()
    assert bench.stand.writes == ["create", "update"]
    assert bench.stand.value == bench.stand.field.then


# --- Services that do not follow -------------------------------------------------------------------------------------


async def a_residual_in_a_specified_field_is_not_converged_and_not_fought(bench: Bench) -> None:
    bench.stand.rewrite(bench.stand.field.member, bench.stand.field.drifted)
    await bench.apply()

    await bench.go_on()
    revision = (await bench.resource()).revision
    for _ in range(3):
        await bench.go_on()

    status, reason, message = await bench.ready()
    assert (status, reason) == ("False", "NotConverged")
    assert bench.stand.field.path in message
    assert len(bench.stand.writes) <= 2
    assert (await bench.resource()).revision == revision


async def not_converged_is_tried_again_when_the_author_asks(bench: Bench) -> None:
    bench.stand.rewrite(bench.stand.field.member, bench.stand.field.drifted)
    await bench.apply()
    await bench.go_on()
    before = len(bench.stand.writes)

    await bench.go_on(requested=True)
    await bench.go_on()

    assert len(bench.stand.writes) == before + 1
    assert (await bench.ready())[1] == "NotConverged"


async def not_converged_is_tried_again_when_something_moves(bench: Bench) -> None:
    bench.stand.rewrite(bench.stand.field.member, bench.stand.field.drifted)
    await bench.apply()
    await bench.go_on()
    before = len(bench.stand.writes)

    bench.stand.edit(bench.stand.field.member, bench.stand.field.then)
    await bench.go_on()
    await bench.go_on()

    assert len(bench.stand.writes) == before + 1
    assert (await bench.ready())[1] == "NotConverged"


async def not_converged_is_over_once_the_service_follows(bench: Bench) -> None:
    bench.stand.rewrite(bench.stand.field.member, bench.stand.field.drifted)
    await bench.apply()
    await bench.go_on()
    bench.stand.calm()

    await bench.go_on(requested=True)

    assert bench.stand.value == bench.stand.field.first
    assert (await bench.ready())[1] == "UpToDate"


async def a_residual_in_server_defaults_is_accepted_and_rests(bench: Bench) -> None:
    other = bench.stand.unlisted
    bench.stand.rewrite(other.member, other.theirs)
    await bench.settle()
    before = (await bench.resource()).revision

    outcome = await bench.step()

    resource = await bench.resource()
    assert isinstance(outcome, Settled)
    assert outcome.plan.decision is (Decision.IN_SYNC if bench.stand.is_stateful else Decision.FIRST_LOOK)
    assert (await bench.ready())[:2] == ("True", "UpToDate")
    assert resource.status["serverDefaults"] == [other.path]
    assert resource.revision == before
    assert len(bench.stand.writes) <= 2


async def what_the_service_insists_on_is_tried_again_when_somebody_asks(bench: Bench) -> None:
    other = bench.stand.unlisted
    bench.stand.rewrite(other.member, other.theirs)
    await bench.settle()
    bench.stand.calm()
    await bench.step()
    assert bench.stand.read(other.member) == other.theirs

    await bench.go_on(requested=True)

    assert bench.stand.read(other.member) == other.pruned
    assert "serverDefaults" not in (await bench.resource()).status


async def a_server_default_that_the_author_names_is_sent(bench: Bench) -> None:
    other = bench.stand.unlisted
    bench.stand.rewrite(other.member, other.theirs)
    await bench.settle()
    bench.stand.calm()

    await bench.settle(other.named)

    assert bench.stand.read(other.member) == other.pruned
    assert "serverDefaults" not in (await bench.resource()).status


CLAIMS = (
    claim(an_outage_is_not_absence_and_no_failure),
    claim(a_refusal_to_look_is_not_absence_either),
    claim(a_write_that_meets_an_outage_fails_nothing_and_is_sent_again),
    claim(a_create_whose_answer_was_lost_is_not_sent_twice),
    claim(a_refused_write_is_told_and_sent_again),
    claim(a_conflict_means_another_look_and_no_failure),
    claim(an_operation_is_on_record_and_finished_by_a_later_step, Part.OPERATIONS),
    claim(a_slow_create_is_on_record_and_finished_by_a_later_step, Part.SLOW_CREATE),
    claim(an_operation_that_ends_in_an_error_fails_the_step_and_is_sent_again, Part.OPERATIONS),
    claim(an_outage_while_an_operation_runs_forgets_nothing, Part.OPERATIONS),
    claim(a_residual_in_a_specified_field_is_not_converged_and_not_fought),
    claim(not_converged_is_tried_again_when_the_author_asks),
    claim(not_converged_is_tried_again_when_something_moves),
    claim(not_converged_is_over_once_the_service_follows),
    claim(a_residual_in_server_defaults_is_accepted_and_rests, Part.PRUNING),
    claim(what_the_service_insists_on_is_tried_again_when_somebody_asks, Part.PRUNING),
    claim(a_server_default_that_the_author_names_is_sent, Part.PRUNING),
)
