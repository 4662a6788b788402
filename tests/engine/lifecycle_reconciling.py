"""The lifecycle of a resource that is to be there: it is made, adopted, kept as declared, never moved."""

from setpoint.core.values.canonical import canonical
from setpoint.engine.context import FINALIZER
from setpoint.engine.drivers.runner import StepRunner
from setpoint.engine.management import MANAGEMENT
from setpoint.engine.state import StoredState
from setpoint.engine.step.outcomes import Settled, Stopped
from setpoint.engine.step.reconcile import preview
from setpoint.errors import ImmutableFieldChanged, LocationChanged, ManifestInvalid
from tests.engine.claim import claim
from tests.engine.kind_fixture import FOR_EVER, Part, Trouble
from tests.engine.step_harness import StepHarness

UP_TO_DATE = ("True", "UpToDate", "The resource is up to date")


async def creates_then_rests(harness: StepHarness) -> None:
    revision = (await harness.settle()).revision
    notes = await harness.store.events()

    outcomes = [await harness.step() for _ in range(3)]

    assert harness.fixture.writes == ["create"]
    assert harness.fixture.value == harness.fixture.field.first
    assert await harness.ready() == UP_TO_DATE
    assert (await harness.resource()).revision == revision
    assert await harness.store.events() == notes
    assert [outcome.plan.writes for outcome in outcomes if isinstance(outcome, Settled)] == [(), (), ()]


async def a_run_follows_it_to_the_end(harness: StepHarness) -> None:
    await harness.settle()
    await harness.change()

    outcomes = await StepRunner(harness.engine).until_done([harness.fixture.ref], timeout=60)

    assert isinstance(outcomes[harness.fixture.ref], Settled)
    assert harness.fixture.value == harness.fixture.field.then
    assert harness.fixture.writes == ["create", "update"]


async def records_identity_and_finalizer_before_it_creates(harness: StepHarness) -> None:
    harness.fixture.trouble(Trouble.CUT, ["create"])
    await harness.apply()

    await harness.step()

    resource = await harness.resource()
    assert resource.finalizers == (FINALIZER,)
    assert StoredState.of(resource).location is not None
    assert harness.fixture.objects == []


async def adopts_what_equals_without_a_write(harness: StepHarness) -> None:
    harness.fixture.plant(harness.fixture.field.first)

    resource = await harness.settle()

    assert harness.fixture.writes == []
    assert await harness.ready() == UP_TO_DATE
    assert resource.finalizers == (FINALIZER,)


async def adopts_and_corrects_what_differs(harness: StepHarness) -> None:
    harness.fixture.plant(harness.fixture.field.drifted)

    await harness.settle()

    assert harness.fixture.writes == ["update"]
    assert harness.fixture.value == harness.fixture.field.first
    assert await harness.ready() == UP_TO_DATE


async def sends_what_the_author_changed(harness: StepHarness) -> None:
    await harness.settle()

    resource = await harness.settle(harness.fixture.spec(harness.fixture.field.then))

    assert harness.fixture.value == harness.fixture.field.then
    assert harness.fixture.writes == ["create", "update"]
    assert await harness.ready() == UP_TO_DATE
    assert (resource.generation, resource.status["observedGeneration"]) == (2, 2)


async def corrects_drift(harness: StepHarness) -> None:
    await harness.settle()
    harness.fixture.drift()

    await harness.go_on()

    assert harness.fixture.value == harness.fixture.field.first
    assert harness.fixture.writes == ["create", "update"]


async def creates_again_what_another_writer_deleted(harness: StepHarness) -> None:
    await harness.settle()
    harness.fixture.remove()

    await harness.go_on()

    assert harness.fixture.value == harness.fixture.field.first
    assert harness.fixture.writes == ["create", "create"]
    assert await harness.ready() == UP_TO_DATE


async def a_field_that_the_api_grew_is_no_drift(harness: StepHarness) -> None:
    revision = (await harness.settle()).revision
    harness.fixture.grow()

    await harness.step()

    assert harness.fixture.writes == ["create"]
    assert (await harness.resource()).revision == revision


async def labels_are_part_of_the_intent(harness: StepHarness) -> None:
    await harness.settle(labels={"team": "a"})

    await harness.settle(labels={"team": "b"})

    assert harness.fixture.read("labels.team") == "b"


async def an_annotation_that_means_nothing_moves_nothing(harness: StepHarness) -> None:
    await harness.settle()
    revision = (await harness.apply(annotations={"example.com/note": "hello"})).revision

    await harness.step()

    assert harness.fixture.writes == ["create"]
    assert (await harness.resource()).revision == revision


async def an_edit_that_says_the_same_writes_nothing(harness: StepHarness) -> None:
    other = harness.fixture.unlisted
    await harness.settle()

    resource = await harness.settle(other.named)

    assert harness.fixture.writes == ["create"]
    assert (resource.generation, resource.status["observedGeneration"]) == (2, 2)


async def refuses_an_immutable_change_and_names_the_field(harness: StepHarness) -> None:
    await harness.settle(harness.fixture.fixed.before)
    await harness.apply(harness.fixture.fixed.after)

    outcome = await harness.step()

    assert isinstance(outcome, Stopped)
    assert isinstance(outcome.error, ImmutableFieldChanged)
    status, reason, message = await harness.ready()
    assert (status, reason) == ("False", "ImmutableFieldChanged")
    assert harness.fixture.fixed.message in message
    assert harness.fixture.writes == ["create"]


async def refuses_to_move(harness: StepHarness) -> None:
    await harness.settle()
    before = harness.fixture.objects
    await harness.apply(harness.fixture.moved)

    outcome = await harness.step()

    assert isinstance(outcome, Stopped)
    assert isinstance(outcome.error, LocationChanged)
    assert (await harness.ready())[0] == "False"
    assert harness.fixture.objects == before
    assert harness.fixture.writes == ["create"]


async def a_name_under_which_nothing_came_to_be_can_be_changed(harness: StepHarness) -> None:
    harness.fixture.trouble(Trouble.REFUSED, ["create"])
    await harness.apply()
    await harness.step()
    harness.fixture.calm()

    await harness.settle(harness.fixture.moved)

    assert harness.fixture.objects == [harness.fixture.moved["resourceID"]]


async def a_plan_changes_nothing_and_is_what_the_step_does(harness: StepHarness) -> None:
    await harness.settle()
    await harness.change()
    before, writes = await harness.resource(), harness.fixture.writes

    plan = await preview(harness.fixture.ref, harness.engine)

    assert [(str(change.path), change.after) for change in plan.changes] == [
        (harness.fixture.field.path, harness.fixture.field.then)
    ]
    assert await harness.resource() == before
    assert harness.fixture.writes == writes
    await harness.go_on()
    assert (await preview(harness.fixture.ref, harness.engine)).is_empty


async def a_plan_knows_what_will_not_be_written(harness: StepHarness) -> None:
    await harness.settle()
    await harness.apply(harness.fixture.spec(harness.fixture.field.then), annotations={MANAGEMENT: "observe"})
    observed = await preview(harness.fixture.ref, harness.engine)
    await harness.apply(annotations={MANAGEMENT: "paused"})
    paused = await preview(harness.fixture.ref, harness.engine)

    assert (observed.writes, [str(change.path) for change in observed.withheld]) == ((), [harness.fixture.field.path])
    assert observed.because == "nothing is written: setpoint.dev/management is observe"
    assert (paused.writes, paused.withheld, "paused" in paused.because) == ((), (), True)


async def the_spec_is_never_written(harness: StepHarness) -> None:
    before = canonical((await harness.settle()).spec)

    for number in range(FOR_EVER):
        if number % 10 == 0:
            harness.fixture.drift()
        await harness.step()
        harness.fixture.finish()

    resource = await harness.resource()
    assert canonical(resource.spec) == before
    assert resource.generation == 1


# --- Management ------------------------------------------------------------------------------------------------------


async def observe_reports_what_differs_and_never_writes(harness: StepHarness) -> None:
    harness.fixture.plant(harness.fixture.field.drifted)
    await harness.apply(annotations={MANAGEMENT: "observe"})

    await harness.step()
    revision = (await harness.resource()).revision
    await harness.step()

    message = f"The live object differs in {harness.fixture.field.path}; nothing is written"
    assert await harness.ready() == ("False", "Observed", message)
    assert harness.fixture.writes == []
    assert (await harness.resource()).finalizers == ()
    assert (await harness.resource()).revision == revision


async def observe_reports_that_it_is_as_declared(harness: StepHarness) -> None:
    harness.fixture.plant(harness.fixture.field.first)
    await harness.apply(annotations={MANAGEMENT: "observe"})

    await harness.step()

    assert await harness.ready() == ("True", "Observed", "The live object is as declared; nothing is written")


async def observe_reports_that_it_does_not_exist(harness: StepHarness) -> None:
    await harness.apply(harness.fixture.bare, annotations={MANAGEMENT: "observe"})

    await harness.step()

    assert (await harness.ready())[:2] == ("False", "Observed")
    assert harness.fixture.writes == []


async def paused_does_nothing_at_all(harness: StepHarness) -> None:
    await harness.apply(annotations={MANAGEMENT: "paused"})

    await harness.step()
    revision = (await harness.resource()).revision
    await harness.step()

    assert harness.fixture.calls == []
    assert (await harness.ready())[:2] == ("Unknown", "Paused")
    assert (await harness.resource()).revision == revision


async def after_a_pause_it_is_reconciled_again(harness: StepHarness) -> None:
    await harness.settle()
    await harness.apply(harness.fixture.spec(harness.fixture.field.then), annotations={MANAGEMENT: "paused"})
    await harness.step()

    await harness.settle(harness.fixture.spec(harness.fixture.field.then))

    assert harness.fixture.writes == ["create", "update"]
    assert await harness.ready() == UP_TO_DATE


async def an_invalid_management_is_refused(harness: StepHarness) -> None:
    await harness.apply(annotations={MANAGEMENT: "sometimes"})

    outcome = await harness.step()

    assert isinstance(outcome, Stopped)
    assert isinstance(outcome.error, ManifestInvalid)
    assert (await harness.ready())[2].endswith(
        "setpoint.dev/management is 'sometimes': write one of full, observe, paused"
    )
    assert harness.fixture.calls == []


CLAIMS = (
    claim(creates_then_rests),
    claim(a_run_follows_it_to_the_end),
    claim(records_identity_and_finalizer_before_it_creates),
    claim(adopts_what_equals_without_a_write),
    claim(adopts_and_corrects_what_differs),
    claim(sends_what_the_author_changed),
    claim(corrects_drift),
    claim(creates_again_what_another_writer_deleted),
    claim(a_field_that_the_api_grew_is_no_drift),
    claim(labels_are_part_of_the_intent, Part.LABELS),
    claim(an_annotation_that_means_nothing_moves_nothing),
    claim(an_edit_that_says_the_same_writes_nothing, Part.PRUNING),
    claim(refuses_an_immutable_change_and_names_the_field, Part.IMMUTABLE),
    claim(refuses_to_move),
    claim(a_name_under_which_nothing_came_to_be_can_be_changed),
    claim(a_plan_changes_nothing_and_is_what_the_step_does),
    claim(a_plan_knows_what_will_not_be_written),
    claim(the_spec_is_never_written),
    claim(observe_reports_what_differs_and_never_writes),
    claim(observe_reports_that_it_is_as_declared),
    claim(observe_reports_that_it_does_not_exist),
    claim(paused_does_nothing_at_all),
    claim(after_a_pause_it_is_reconciled_again),
    claim(an_invalid_management_is_refused),
)
