"""A preview is the step stopped before it writes: its plan is the plan of the step that follows it."""

from setpoint.engine.context import MANAGEMENT, Gone, Settled, Stopped
from setpoint.engine.state import StoredState
from setpoint.engine.step.reconcile import preview
from setpoint.errors import OperationRunning
from tests.engine.bench import Bench
from tests.engine.claim import claim
from tests.engine.stand import Trouble


async def _require_same_plan(bench: Bench) -> None:
    """The plan of a preview, and that of the step right after it, which records it if it wrote anything."""
    writes = list(bench.stand.writes)
    previewed = await preview(bench.ref, bench.engine)
    assert bench.stand.writes == writes

    outcome = await bench.step()

    if isinstance(outcome, Settled):
        assert outcome.plan == previewed
    else:
        # An operation goes on: the plan is on record, and in no outcome.
        assert isinstance(outcome, Stopped), outcome
        assert isinstance(outcome.error, OperationRunning), outcome
        assert previewed.writes
    if previewed.writes:
        record = StoredState.of(await bench.resource()).step
        assert record is not None
        assert {name: record[name] for name in previewed.to_data()} == previewed.to_data()


async def the_plan_of_a_creation(bench: Bench) -> None:
    await bench.apply()

    await _require_same_plan(bench)


async def the_plan_of_an_adoption(bench: Bench) -> None:
    bench.stand.plant(bench.stand.field.drifted)
    await bench.apply()

    await _require_same_plan(bench)


async def the_plan_of_what_the_author_changed(bench: Bench) -> None:
    await bench.settle()
    await bench.change()

    await _require_same_plan(bench)


async def the_plan_of_drift(bench: Bench) -> None:
    await bench.settle()
    bench.stand.drift()

    await _require_same_plan(bench)


async def the_plan_of_an_object_that_another_writer_deleted(bench: Bench) -> None:
    await bench.settle()
    bench.stand.remove()

    await _require_same_plan(bench)


async def the_plan_of_a_creation_whose_answer_was_lost(bench: Bench) -> None:
    await bench.apply()
    bench.stand.trouble(Trouble.LOST, ["create"])
    await bench.step()
    bench.stand.finish()

    await _require_same_plan(bench)


async def the_plan_of_nothing_to_do(bench: Bench) -> None:
    await bench.settle()

    await _require_same_plan(bench)


async def the_plan_of_a_resource_that_is_only_observed(bench: Bench) -> None:
    bench.stand.plant(bench.stand.field.drifted)
    await bench.apply(annotations={MANAGEMENT: "observe"})

    await _require_same_plan(bench)


async def the_plan_of_a_paused_resource(bench: Bench) -> None:
    await bench.settle()
    bench.stand.drift()
    await bench.apply(annotations={MANAGEMENT: "paused"})

    await _require_same_plan(bench)


async def the_plan_of_a_deletion_deletes_and_only_execute_writes(bench: Bench) -> None:
    await bench.settle()
    await bench.delete()
    writes = list(bench.stand.writes)

    previewed = await preview(bench.ref, bench.engine)

    assert bench.stand.writes == writes
    assert [write.action.value for write in previewed.writes] == ["delete"]
    assert isinstance(await bench.go_on(), Gone)
    assert bench.stand.writes == [*writes, "delete"]


CLAIMS = (
    claim(the_plan_of_a_creation),
    claim(the_plan_of_an_adoption),
    claim(the_plan_of_what_the_author_changed),
    claim(the_plan_of_drift),
    claim(the_plan_of_an_object_that_another_writer_deleted),
    claim(the_plan_of_a_creation_whose_answer_was_lost),
    claim(the_plan_of_nothing_to_do),
    claim(the_plan_of_a_resource_that_is_only_observed),
    claim(the_plan_of_a_paused_resource),
    claim(the_plan_of_a_deletion_deletes_and_only_execute_writes),
)
