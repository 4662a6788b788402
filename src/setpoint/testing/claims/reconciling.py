"""The lifecycle of a resource that is to be there: it is made, adopted, kept as declared, never moved."""

from setpoint.core.values.canonical import canonical
from setpoint.engine.context import FINALIZER
from setpoint.engine.drivers.runner import StepRunner
from setpoint.engine.management import MANAGEMENT
from setpoint.engine.state import StoredState
from setpoint.engine.step.outcomes import Settled, Stopped
from setpoint.engine.step.reconcile import preview
from setpoint.errors import ImmutableFieldChanged, LocationChanged, ManifestInvalid
from setpoint.testing.awaiting import resolved
from setpoint.testing.claims.claim import claim
from setpoint.testing.faults import CallFault
from setpoint.testing.harness import ContractHarness
from setpoint.testing.kind_parts import Part

UP_TO_DATE = ("True", "UpToDate", "The resource is up to date")


async def creates_then_rests(harness: ContractHarness) -> None:
    settled = await harness.settle()
    notes = await harness.store.events()

    outcomes = [await harness.step() for _ in range(3)]

    assert harness.writes == ["create"]
    assert await harness.value() == harness.fixture.field.first
    assert await harness.ready() == UP_TO_DATE
    assert settled.status["observedGeneration"] == 1
    assert (await harness.resource()).revision == settled.revision
    assert await harness.store.events() == notes
    assert [outcome.plan.writes for outcome in outcomes if isinstance(outcome, Settled)] == [(), (), ()]


async def a_run_follows_it_to_the_end(harness: ContractHarness) -> None:
    await harness.settle()
    await harness.change()

    outcomes = await StepRunner(harness.engine).until_done([harness.ref], timeout=60)

    assert isinstance(outcomes[harness.ref], Settled)
    assert await harness.value() == harness.fixture.field.then
    assert harness.writes == ["create", "update"]


async def records_identity_and_finalizer_before_it_creates(harness: ContractHarness) -> None:
    await harness.fail_next_calls(CallFault.CUT, ["create"])
    await harness.apply()

    await harness.step()

    resource = await harness.resource()
    assert resource.finalizers == (FINALIZER,)
    assert StoredState.of(resource).location is not None
    assert await harness.objects() == []


async def adopts_what_equals_without_a_write(harness: ContractHarness) -> None:
    await harness.create_outside(harness.fixture.field.first)

    resource = await harness.settle()

    assert harness.writes == []
    assert await harness.ready() == UP_TO_DATE
    assert resource.finalizers == (FINALIZER,)


async def adopts_and_corrects_what_differs(harness: ContractHarness) -> None:
    await harness.create_outside(harness.fixture.field.drifted)

    await harness.settle()

    assert harness.writes == ["update"]
    assert await harness.value() == harness.fixture.field.first
    assert await harness.ready() == UP_TO_DATE


async def sends_what_the_author_changed(harness: ContractHarness) -> None:
    await harness.settle()

    resource = await harness.settle(harness.fixture.spec(harness.fixture.field.then))

    assert await harness.value() == harness.fixture.field.then
    assert harness.writes == ["create", "update"]
    assert await harness.ready() == UP_TO_DATE
    assert (resource.generation, resource.status["observedGeneration"]) == (2, 2)


async def corrects_drift(harness: ContractHarness) -> None:
    await harness.settle()
    await harness.drift()

    await harness.go_on()

    assert await harness.value() == harness.fixture.field.first
    assert harness.writes == ["create", "update"]


async def creates_again_what_another_writer_deleted(harness: ContractHarness) -> None:
    await harness.settle()
    await harness.delete_outside()

    await harness.go_on()

    assert await harness.value() == harness.fixture.field.first
    assert harness.writes == ["create", "create"]
    assert await harness.ready() == UP_TO_DATE


async def a_field_that_the_api_grew_is_no_drift(harness: ContractHarness) -> None:
    revision = (await harness.settle()).revision
    await resolved(harness.fixture.add_field())

    await harness.step()

    assert harness.writes == ["create"]
    assert (await harness.resource()).revision == revision


async def labels_are_part_of_the_intent(harness: ContractHarness) -> None:
    await harness.settle(labels={"team": "a"})

    await harness.settle(labels={"team": "b"})

    assert await harness.read(f"{harness.fixture.labels_member}.team") == "b"


async def an_annotation_that_means_nothing_moves_nothing(harness: ContractHarness) -> None:
    await harness.settle()
    revision = (await harness.apply(annotations={"example.com/note": "hello"})).revision

    await harness.step()

    assert harness.writes == ["create"]
    assert (await harness.resource()).revision == revision


async def an_edit_that_says_the_same_writes_nothing(harness: ContractHarness) -> None:
    other = harness.fixture.unlisted
    await harness.settle()

    resource = await harness.settle(harness.fixture.spec_naming(other))

    assert harness.writes == ["create"]
    assert (resource.generation, resource.status["observedGeneration"]) == (2, 2)


async def refuses_an_immutable_change_and_names_the_field(harness: ContractHarness) -> None:
    await harness.settle(harness.fixture.immutable.before)
    await harness.apply(harness.fixture.immutable.after)

    outcome = await harness.step()

    assert isinstance(outcome, Stopped)
    assert isinstance(outcome.error, ImmutableFieldChanged)
    status, reason, message = await harness.ready()
    assert (status, reason) == ("False", "ImmutableFieldChanged")
    assert harness.fixture.immutable.message in message
    assert harness.writes == ["create"]


async def refuses_to_move(harness: ContractHarness) -> None:
    await harness.settle()
    before = await harness.objects()
    await harness.apply(harness.fixture.moved.spec)

    outcome = await harness.step()

    assert isinstance(outcome, Stopped)
    assert isinstance(outcome.error, LocationChanged)
    assert (await harness.ready())[0] == "False"
    assert await harness.objects() == before
    assert harness.writes == ["create"]


async def a_name_under_which_nothing_came_to_be_can_be_changed(harness: ContractHarness) -> None:
    await harness.fail_next_calls(CallFault.REFUSED, ["create"])
    await harness.apply()
    await harness.step()
    await harness.recover()

    await harness.settle(harness.fixture.moved.spec)

    assert await harness.objects() == [harness.fixture.moved.name]


async def a_plan_changes_nothing_and_is_what_the_step_does(harness: ContractHarness) -> None:
    await harness.settle()
    await harness.change()
    before, writes = await harness.resource(), harness.writes

    plan = await preview(harness.ref, harness.engine)

    assert [(str(change.path), change.after) for change in plan.changes] == [
        (harness.fixture.field.path, harness.fixture.field.then)
    ]
    assert await harness.resource() == before
    assert harness.writes == writes
    await harness.go_on()
    assert (await preview(harness.ref, harness.engine)).is_empty


async def a_plan_knows_what_will_not_be_written(harness: ContractHarness) -> None:
    await harness.settle()
    await harness.apply(harness.fixture.spec(harness.fixture.field.then), annotations={MANAGEMENT: "observe"})
    observed = await preview(harness.ref, harness.engine)
    await harness.apply(annotations={MANAGEMENT: "paused"})
    paused = await preview(harness.ref, harness.engine)

    assert (observed.writes, [str(change.path) for change in observed.withheld]) == ((), [harness.fixture.field.path])
    assert observed.because == "nothing is written: setpoint.dev/management is observe"
    assert (paused.writes, paused.withheld, "paused" in paused.because) == ((), (), True)


async def the_spec_is_never_written(harness: ContractHarness) -> None:
    before = canonical((await harness.settle()).spec)

    for number in range(harness.fixture.many_steps):
        if number % 10 == 0:
            await harness.drift()
        await harness.step()
        await harness.finish()

    resource = await harness.resource()
    assert canonical(resource.spec) == before
    assert resource.generation == 1


# --- Management ------------------------------------------------------------------------------------------------------


async def observe_reports_what_differs_and_never_writes(harness: ContractHarness) -> None:
    await harness.create_outside(harness.fixture.field.drifted)
    await harness.apply(annotations={MANAGEMENT: "observe"})

    await harness.step()
    revision = (await harness.resource()).revision
    await harness.step()

    message = f"The live object differs in {harness.fixture.field.path}; nothing is written"
    assert await harness.ready() == ("False", "Observed", message)
    assert harness.writes == []
    assert (await harness.resource()).finalizers == ()
    assert (await harness.resource()).revision == revision


async def observe_reports_that_it_is_as_declared(harness: ContractHarness) -> None:
    await harness.create_outside(harness.fixture.field.first)
    await harness.apply(annotations={MANAGEMENT: "observe"})

    await harness.step()

    assert await harness.ready() == ("True", "Observed", "The live object is as declared; nothing is written")


async def observe_reports_that_it_does_not_exist(harness: ContractHarness) -> None:
    await harness.apply(harness.fixture.bare, annotations={MANAGEMENT: "observe"})

    await harness.step()

    assert (await harness.ready())[:2] == ("False", "Observed")
    assert harness.writes == []


async def paused_does_nothing_at_all(harness: ContractHarness) -> None:
    await harness.apply(annotations={MANAGEMENT: "paused"})

    await harness.step()
    revision = (await harness.resource()).revision
    await harness.step()

    assert harness.calls == []
    assert (await harness.ready())[:2] == ("Unknown", "Paused")
    assert (await harness.resource()).revision == revision


async def after_a_pause_it_is_reconciled_again(harness: ContractHarness) -> None:
    await harness.settle()
    await harness.apply(harness.fixture.spec(harness.fixture.field.then), annotations={MANAGEMENT: "paused"})
    await harness.step()

    await harness.settle(harness.fixture.spec(harness.fixture.field.then))

    assert harness.writes == ["create", "update"]
    assert await harness.ready() == UP_TO_DATE


async def an_invalid_management_is_refused(harness: ContractHarness) -> None:
    await harness.apply(annotations={MANAGEMENT: "sometimes"})

    outcome = await harness.step()

    assert isinstance(outcome, Stopped)
    assert isinstance(outcome.error, ManifestInvalid)
    assert (await harness.ready())[2].endswith(
        "setpoint.dev/management is 'sometimes': write one of full, observe, paused"
    )
    assert harness.calls == []


CLAIMS = (
    claim(creates_then_rests),
    claim(a_run_follows_it_to_the_end),
    claim(records_identity_and_finalizer_before_it_creates),
    claim(adopts_what_equals_without_a_write, Part.ADOPTION),
    claim(adopts_and_corrects_what_differs, Part.ADOPTION),
    claim(sends_what_the_author_changed),
    claim(corrects_drift),
    claim(creates_again_what_another_writer_deleted),
    claim(a_field_that_the_api_grew_is_no_drift, Part.NEW_FIELDS),
    claim(labels_are_part_of_the_intent, Part.LABELS),
    claim(an_annotation_that_means_nothing_moves_nothing),
    claim(an_edit_that_says_the_same_writes_nothing, Part.PRUNING),
    claim(refuses_an_immutable_change_and_names_the_field, Part.IMMUTABLE),
    claim(refuses_to_move, Part.MOVE),
    claim(a_name_under_which_nothing_came_to_be_can_be_changed, Part.MOVE),
    claim(a_plan_changes_nothing_and_is_what_the_step_does),
    claim(a_plan_knows_what_will_not_be_written),
    claim(the_spec_is_never_written),
    claim(observe_reports_what_differs_and_never_writes, Part.ADOPTION),
    claim(observe_reports_that_it_is_as_declared, Part.ADOPTION),
    claim(observe_reports_that_it_does_not_exist),
    claim(paused_does_nothing_at_all),
    claim(after_a_pause_it_is_reconciled_again),
    claim(an_invalid_management_is_refused),
)
