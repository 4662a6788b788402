"""What a step remembers and tells: the cookie, the outputs, the condition, the record of what it did."""

from typing import Any

from setpoint.core.decide import Cookie, Decision
from setpoint.core.schema.policy import IGNORE_UNSPECIFIED
from setpoint.engine.context import MANAGEMENT, CookieLocation, Settled, StepOutcome
from setpoint.engine.kind import Reconciliation
from setpoint.engine.state import COOKIE, COOKIE_ANNOTATION, StoredState
from setpoint.engine.step.reconcile import preview
from tests.engine.bench import Bench
from tests.engine.claim import claim
from tests.engine.stand import Part, Trouble


def _decision(outcome: StepOutcome) -> Decision:
    assert isinstance(outcome, Settled), outcome
    return outcome.plan.decision


async def _decides(bench: Bench) -> Decision:
    """What the next step finds. It is taken, to the end."""
    plan = await preview(bench.stand.ref, bench.engine)
    await bench.go_on()
    return plan.decision


async def tells_apart_who_moved(bench: Bench) -> None:
    await bench.settle()
    resting = await _decides(bench)
    bench.stand.drift()
    drifted = await _decides(bench)
    await bench.change()
    changed = await _decides(bench)
    bench.stand.drift()
    await bench.apply()
    both = await _decides(bench)

    assert [resting, drifted, changed, both] == [
        Decision.IN_SYNC,
        Decision.DRIFTED,
        Decision.INTENT_CHANGED,
        Decision.BOTH,
    ]


async def the_cookie_is_in_the_status(bench: Bench) -> None:
    bench.cookies = CookieLocation.STATUS

    resource = await bench.settle()

    assert Cookie.parse(resource.status[COOKIE]) is not None
    assert COOKIE_ANNOTATION not in resource.annotations


async def the_cookie_is_in_the_annotation_when_that_is_its_place(bench: Bench) -> None:
    bench.cookies = CookieLocation.ANNOTATION

    resource = await bench.settle()

    assert Cookie.parse(resource.annotations[COOKIE_ANNOTATION]) is not None
    assert COOKIE not in resource.status


async def the_cookie_is_read_wherever_it_was_written(bench: Bench) -> None:
    places = (CookieLocation.STATUS, CookieLocation.ANNOTATION, CookieLocation.ANNOTATION, CookieLocation.STATUS)
    await bench.settle()
    for place in places:
        bench.cookies = place

        assert _decision(await bench.step()) is Decision.IN_SYNC
    assert bench.stand.writes == ["create"]


async def a_foreign_cookie_means_a_close_look_and_no_write(bench: Bench) -> None:
    bench.cookies = CookieLocation.ANNOTATION
    resource = await bench.settle()
    await bench.store.annotate(resource, {COOKIE_ANNOTATION: "c/x=/y="})

    first, second = await bench.step(), await bench.step()

    assert (_decision(first), _decision(second)) == (Decision.FIRST_LOOK, Decision.IN_SYNC)
    assert bench.stand.writes == ["create"]


async def a_raised_revision_of_the_kind_means_one_close_look_and_no_write(bench: Bench) -> None:
    await bench.settle()
    await bench.restart()
    bench.stand.kind.revision = 2

    first, second = await bench.step(), await bench.step()

    assert (_decision(first), _decision(second)) == (Decision.INTENT_CHANGED, Decision.IN_SYNC)
    assert bench.stand.writes == ["create"]


async def a_kind_that_gives_up_its_cookie_compares_from_then_on(bench: Bench) -> None:
    await bench.settle()
    await bench.restart()
    bench.stand.kind.reconciliation = Reconciliation.STATELESS

    outcome = await bench.step()

    assert _decision(outcome) is Decision.FIRST_LOOK
    assert StoredState.of(await bench.resource()).cookie is None
    assert bench.stand.writes == ["create"]


async def drift_that_nobody_minds_means_one_close_look(bench: Bench) -> None:
    other = bench.stand.unspecified
    await bench.settle(other.spec, annotations={IGNORE_UNSPECIFIED: "true"})
    bench.stand.meddle(other)

    first, second = await bench.step(), await bench.step()

    assert (_decision(first), _decision(second)) == (Decision.DRIFTED, Decision.IN_SYNC)
    assert bench.stand.writes == ["create"]


async def no_cookie_is_kept_after_a_failure(bench: Bench) -> None:
    before = StoredState.of(await bench.settle()).cookie
    bench.stand.trouble(Trouble.REFUSED, ["update"])
    await bench.change()

    await bench.step()

    assert StoredState.of(await bench.resource()).cookie == before


async def without_a_cookie_it_compares_every_time(bench: Bench) -> None:
    resource = await bench.settle()

    outcome = await bench.step()

    assert _decision(outcome) is Decision.FIRST_LOOK
    assert StoredState.of(resource).cookie is None
    assert (await bench.resource()).revision == resource.revision


async def outputs_are_in_the_status(bench: Bench) -> None:
    status = (await bench.settle()).status

    assert {name: status.get(name) for name in bench.stand.outputs} == bench.stand.outputs
    assert status["observedGeneration"] == 1


async def an_output_that_moves_is_told_and_is_no_drift(bench: Bench) -> None:
    await bench.settle()
    moved = bench.stand.move_output()

    outcome = await bench.step()

    status = (await bench.resource()).status
    assert {name: status.get(name) for name in moved} == moved
    assert _decision(outcome) is (Decision.IN_SYNC if bench.stand.is_stateful else Decision.FIRST_LOOK)
    assert bench.stand.writes == ["create"]


async def a_condition_that_does_not_flip_keeps_its_time(bench: Bench) -> None:
    await bench.settle()
    bench.stand.trouble(Trouble.REFUSED)
    await bench.step()
    flipped = await bench.condition()
    await bench.apply(annotations={MANAGEMENT: "sometimes"})

    await bench.step()

    told = await bench.condition()
    assert told["message"] != flipped["message"]
    assert told["lastTransitionTime"] == flipped["lastTransitionTime"]


async def a_step_that_does_something_leaves_a_record(bench: Bench) -> None:
    await bench.settle()
    bench.stand.drift()

    await bench.go_on()

    await _expect_record_of_drift(bench)


async def a_write_that_takes_its_time_leaves_the_same_record(bench: Bench) -> None:
    await bench.settle()
    bench.stand.make_slow()
    bench.stand.drift()

    await bench.go_on()
    await bench.step()

    await _expect_record_of_drift(bench)


async def _expect_record_of_drift(bench: Bench) -> None:
    field, ours = bench.stand.field, StoredState.of(await bench.resource()).step
    assert ours is not None
    assert ours["decision"] == ("drifted" if bench.stand.is_stateful else "first look")
    writes: Any = ours["writes"]
    assert [write["changes"] for write in writes] == [
        [{"path": field.path, "rule": "spec", "before": field.drifted, "after": field.first}]
    ]


async def what_was_written_is_noted_for_people(bench: Bench) -> None:
    await bench.settle()
    bench.stand.drift()

    await bench.go_on()
    await bench.step()

    notes = [note for note in await bench.store.events(bench.stand.ref) if note.reason in ("Created", "Updated")]
    assert [note.reason for note in notes] == ["Created", "Updated"]
    assert bench.stand.field.path in notes[1].message


CLAIMS = (
    claim(tells_apart_who_moved, Part.COOKIE),
    claim(the_cookie_is_in_the_status, Part.COOKIE),
    claim(the_cookie_is_in_the_annotation_when_that_is_its_place, Part.COOKIE),
    claim(the_cookie_is_read_wherever_it_was_written, Part.COOKIE),
    claim(a_foreign_cookie_means_a_close_look_and_no_write, Part.COOKIE),
    claim(a_raised_revision_of_the_kind_means_one_close_look_and_no_write, Part.COOKIE),
    claim(a_kind_that_gives_up_its_cookie_compares_from_then_on, Part.COOKIE),
    claim(drift_that_nobody_minds_means_one_close_look, Part.COOKIE),
    claim(no_cookie_is_kept_after_a_failure, Part.COOKIE),
    claim(without_a_cookie_it_compares_every_time, Part.STATELESS),
    claim(outputs_are_in_the_status),
    claim(an_output_that_moves_is_told_and_is_no_drift, Part.MOVING_OUTPUT),
    claim(a_condition_that_does_not_flip_keeps_its_time),
    claim(a_step_that_does_something_leaves_a_record),
    claim(a_write_that_takes_its_time_leaves_the_same_record, Part.OPERATIONS),
    claim(what_was_written_is_noted_for_people),
)
