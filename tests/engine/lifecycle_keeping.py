"""The lifecycle of a resource that is to be there: it is made, adopted, kept as declared, never moved."""

from setpoint.core.values.canonical import canonical
from setpoint.engine.context import FINALIZER, MANAGEMENT, Settled, Stopped
from setpoint.engine.drivers.runner import StepRunner
from setpoint.engine.state import StoredState
from setpoint.engine.step.reconcile import preview
from setpoint.errors import ImmutableFieldChanged, LocationChanged, ManifestInvalid
from tests.engine.bench import Bench
from tests.engine.claim import claim
from tests.engine.stand import FOR_EVER, Part, Trouble

UP_TO_DATE = ("True", "UpToDate", "The resource is up to date")


async def creates_then_rests(bench: Bench) -> None:
    revision = (await bench.settle()).revision
    notes = await bench.store.events()

    outcomes = [await bench.step() for _ in range(3)]

    assert bench.stand.writes == ["create"]
    assert bench.stand.value == bench.stand.field.first
    assert await bench.ready() == UP_TO_DATE
    assert (await bench.resource()).revision == revision
    assert await bench.store.events() == notes
    assert [outcome.plan.writes for outcome in outcomes if isinstance(outcome, Settled)] == [(), (), ()]


async def a_run_follows_it_to_the_end(bench: Bench) -> None:
    await bench.settle()
    await bench.change()

    outcomes = await StepRunner(bench.engine).until_done([bench.stand.ref], timeout=60)

    assert isinstance(outcomes[bench.stand.ref], Settled)
    assert bench.stand.value == bench.stand.field.then
    assert bench.stand.writes == ["create", "update"]


async def records_identity_and_finalizer_before_it_creates(bench: Bench) -> None:
    bench.stand.trouble(Trouble.CUT, ["create"])
    await bench.apply()

    await bench.step()

    resource = await bench.resource()
    assert resource.finalizers == (FINALIZER,)
    assert StoredState.of(resource).location is not None
    assert bench.stand.objects == []


async def adopts_what_equals_without_a_write(bench: Bench) -> None:
    bench.stand.plant(bench.stand.field.first)

    resource = await bench.settle()

    assert bench.stand.writes == []
    assert await bench.ready() == UP_TO_DATE
    assert resource.finalizers == (FINALIZER,)


async def adopts_and_mends_what_differs(bench: Bench) -> None:
    bench.stand.plant(bench.stand.field.drifted)

    await bench.settle()

    assert bench.stand.writes == ["update"]
    assert bench.stand.value == bench.stand.field.first
    assert await bench.ready() == UP_TO_DATE


async def sends_what_the_author_changed(bench: Bench) -> None:
    await bench.settle()

    resource = await bench.settle(bench.stand.spec(bench.stand.field.then))

    assert bench.stand.value == bench.stand.field.then
    assert bench.stand.writes == ["create", "update"]
    assert await bench.ready() == UP_TO_DATE
    assert (resource.generation, resource.status["observedGeneration"]) == (2, 2)


async def puts_back_what_drifted(bench: Bench) -> None:
    await bench.settle()
    bench.stand.drift()

    await bench.go_on()

    assert bench.stand.value == bench.stand.field.first
    assert bench.stand.writes == ["create", "update"]


async def makes_again_what_somebody_deleted(bench: Bench) -> None:
    await bench.settle()
    bench.stand.remove()

    await bench.go_on()

    assert bench.stand.value == bench.stand.field.first
    assert bench.stand.writes == ["create", "create"]
    assert await bench.ready() == UP_TO_DATE


async def a_field_that_the_api_grew_is_no_drift(bench: Bench) -> None:
    revision = (await bench.settle()).revision
    bench.stand.grow()

    await bench.step()

    assert bench.stand.writes == ["create"]
    assert (await bench.resource()).revision == revision


async def labels_are_part_of_the_intent(bench: Bench) -> None:
    await bench.settle(labels={"team": "a"})

    await bench.settle(labels={"team": "b"})

    assert bench.stand.read("labels.team") == "b"


async def an_annotation_that_means_nothing_moves_nothing(bench: Bench) -> None:
    await bench.settle()
    revision = (await bench.apply(annotations={"example.com/note": "hello"})).revision

    await bench.step()

    assert bench.stand.writes == ["create"]
    assert (await bench.resource()).revision == revision


async def an_edit_that_says_the_same_writes_nothing(bench: Bench) -> None:
    other = bench.stand.unlisted
    await bench.settle()

    resource = await bench.settle(other.named)

    assert bench.stand.writes == ["create"]
    assert (resource.generation, resource.status["observedGeneration"]) == (2, 2)


async def refuses_an_immutable_change_and_names_the_field(bench: Bench) -> None:
    await bench.settle(bench.stand.fixed.before)
    await bench.apply(bench.stand.fixed.after)

    outcome = await bench.step()

    assert isinstance(outcome, Stopped)
    assert isinstance(outcome.error, ImmutableFieldChanged)
    status, reason, message = await bench.ready()
    assert (status, reason) == ("False", "ImmutableFieldChanged")
    assert bench.stand.fixed.told in message
    assert bench.stand.writes == ["create"]


async def refuses_to_move(bench: Bench) -> None:
    await bench.settle()
    before = bench.stand.objects
    await bench.apply(bench.stand.moved)

    outcome = await bench.step()

    assert isinstance(outcome, Stopped)
    assert isinstance(outcome.error, LocationChanged)
    assert (await bench.ready())[0] == "False"
    assert bench.stand.objects == before
    assert bench.stand.writes == ["create"]


async def a_name_under_which_nothing_came_to_be_can_be_changed(bench: Bench) -> None:
    bench.stand.trouble(Trouble.REFUSED, ["create"])
    await bench.apply()
    await bench.step()
    bench.stand.calm()

    await bench.settle(bench.stand.moved)

    assert bench.stand.objects == [bench.stand.moved["resourceID"]]


async def a_plan_changes_nothing_and_is_what_the_step_does(bench: Bench) -> None:
    await bench.settle()
    await bench.change()
    before, writes = await bench.resource(), bench.stand.writes

    plan = await preview(bench.stand.ref, bench.engine)

    assert [(str(change.path), change.after) for change in plan.changes] == [
        (bench.stand.field.path, bench.stand.field.then)
    ]
    assert await bench.resource() == before
    assert bench.stand.writes == writes
    await bench.go_on()
    assert (await preview(bench.stand.ref, bench.engine)).is_empty


async def a_plan_knows_what_will_not_be_written(bench: Bench) -> None:
    await bench.settle()
    await bench.apply(bench.stand.spec(bench.stand.field.then), annotations={MANAGEMENT: "observe"})
    observed = await preview(bench.stand.ref, bench.engine)
    await bench.apply(annotations={MANAGEMENT: "paused"})
    paused = await preview(bench.stand.ref, bench.engine)

    assert (observed.writes, [str(change.path) for change in observed.withheld]) == ((), [bench.stand.field.path])
    assert observed.because == "nothing is written: setpoint.dev/management is observe"
    assert (paused.writes, paused.withheld, "paused" in paused.because) == ((), (), True)


async def the_spec_is_never_written(bench: Bench) -> None:
    before = canonical((await bench.settle()).spec)

    for number in range(FOR_EVER):
        if number % 10 == 0:
            bench.stand.drift()
        await bench.step()
        bench.stand.finish()

    resource = await bench.resource()
    assert canonical(resource.spec) == before
    assert resource.generation == 1


# --- Management ------------------------------------------------------------------------------------------------------


async def observe_tells_what_differs_and_never_writes(bench: Bench) -> None:
    bench.stand.plant(bench.stand.field.drifted)
    await bench.apply(annotations={MANAGEMENT: "observe"})

    await bench.step()
    revision = (await bench.resource()).revision
    await bench.step()

    told = f"The live object differs in {bench.stand.field.path}; nothing is written"
    assert await bench.ready() == ("False", "Observed", told)
    assert bench.stand.writes == []
    assert (await bench.resource()).finalizers == ()
    assert (await bench.resource()).revision == revision


async def observe_tells_that_it_is_as_declared(bench: Bench) -> None:
    bench.stand.plant(bench.stand.field.first)
    await bench.apply(annotations={MANAGEMENT: "observe"})

    await bench.step()

    assert await bench.ready() == ("True", "Observed", "The live object is as declared; nothing is written")


async def observe_tells_that_it_is_not_there(bench: Bench) -> None:
    await bench.apply(bench.stand.bare, annotations={MANAGEMENT: "observe"})

    await bench.step()

    assert (await bench.ready())[:2] == ("False", "Observed")
    assert bench.stand.writes == []


async def paused_does_nothing_at_all(bench: Bench) -> None:
    await bench.apply(annotations={MANAGEMENT: "paused"})

    await bench.step()
    revision = (await bench.resource()).revision
    await bench.step()

    assert bench.stand.calls == []
    assert (await bench.ready())[:2] == ("Unknown", "Paused")
    assert (await bench.resource()).revision == revision


async def after_a_pause_it_goes_on(bench: Bench) -> None:
    await bench.settle()
    await bench.apply(bench.stand.spec(bench.stand.field.then), annotations={MANAGEMENT: "paused"})
    await bench.step()

    await bench.settle(bench.stand.spec(bench.stand.field.then))

    assert bench.stand.writes == ["create", "update"]
    assert await bench.ready() == UP_TO_DATE


async def a_word_that_is_no_management_is_refused(bench: Bench) -> None:
    await bench.apply(annotations={MANAGEMENT: "sometimes"})

    outcome = await bench.step()

    assert isinstance(outcome, Stopped)
    assert isinstance(outcome.error, ManifestInvalid)
    assert (await bench.ready())[2].endswith(
        "setpoint.dev/management is 'sometimes': write one of full, observe, paused"
    )
    assert bench.stand.calls == []


CLAIMS = (
    claim(creates_then_rests),
    claim(a_run_follows_it_to_the_end),
    claim(records_identity_and_finalizer_before_it_creates),
    claim(adopts_what_equals_without_a_write),
    claim(adopts_and_mends_what_differs),
    claim(sends_what_the_author_changed),
    claim(puts_back_what_drifted),
    claim(makes_again_what_somebody_deleted),
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
    claim(observe_tells_what_differs_and_never_writes),
    claim(observe_tells_that_it_is_as_declared),
    claim(observe_tells_that_it_is_not_there),
    claim(paused_does_nothing_at_all),
    claim(after_a_pause_it_goes_on),
    claim(a_word_that_is_no_management_is_refused),
)
