"""What a step stores and reports: the cookie, the outputs, the condition, the record of what it did."""

from typing import Any

from setpoint.core.decide import Cookie, Decision, DecisionReason
from setpoint.core.schema.policy import IGNORE_UNSPECIFIED
from setpoint.engine.kind import Reconciliation
from setpoint.engine.management import MANAGEMENT, CookieLocation
from setpoint.engine.state import COOKIE, COOKIE_ANNOTATION, StoredState
from setpoint.engine.step.outcomes import Settled, StepOutcome
from setpoint.engine.step.reconcile import preview
from setpoint.testing.awaiting import resolved
from setpoint.testing.claims.claim import claim
from setpoint.testing.faults import CallFault
from setpoint.testing.harness import ContractHarness
from setpoint.testing.kind_parts import Part


def _decision(outcome: StepOutcome) -> Decision:
    assert isinstance(outcome, Settled), outcome
    return outcome.plan.decision


def _found(outcome: StepOutcome) -> tuple[Decision, DecisionReason | None]:
    assert isinstance(outcome, Settled), outcome
    return outcome.plan.decision, outcome.plan.reason


async def _decides(harness: ContractHarness) -> Decision:
    """What the next step finds. It is taken, to the end."""
    plan = await preview(harness.ref, harness.engine)
    await harness.go_on()
    return plan.decision


async def distinguishes_intent_changes_from_drift(harness: ContractHarness) -> None:
    await harness.settle()
    resting = await _decides(harness)
    await harness.drift()
    drifted = await _decides(harness)
    await harness.change()
    changed = await _decides(harness)
    await harness.drift()
    await harness.apply()
    both = await _decides(harness)

    assert [resting, drifted, changed, both] == [
        Decision.IN_SYNC,
        Decision.DRIFTED,
        Decision.INTENT_CHANGED,
        Decision.BOTH,
    ]


async def the_cookie_is_in_the_status(harness: ContractHarness) -> None:
    harness.cookies = CookieLocation.STATUS

    resource = await harness.settle()

    assert Cookie.parse(resource.status[COOKIE]) is not None
    assert COOKIE_ANNOTATION not in resource.annotations


async def the_cookie_is_in_the_annotation_when_that_is_its_place(harness: ContractHarness) -> None:
    harness.cookies = CookieLocation.ANNOTATION

    resource = await harness.settle()

    assert Cookie.parse(resource.annotations[COOKIE_ANNOTATION]) is not None
    assert COOKIE not in resource.status


async def the_cookie_is_read_wherever_it_was_written(harness: ContractHarness) -> None:
    places = (CookieLocation.STATUS, CookieLocation.ANNOTATION, CookieLocation.ANNOTATION, CookieLocation.STATUS)
    await harness.settle()
    for place in places:
        harness.cookies = place

        assert _decision(await harness.step()) is Decision.IN_SYNC
    assert harness.writes == ["create"]


async def the_cookie_is_moved_by_the_first_step_after_a_switch(harness: ContractHarness) -> None:
    cookie = str(StoredState.of(await harness.settle()).cookie)
    for place in (CookieLocation.ANNOTATION, CookieLocation.STATUS, CookieLocation.ANNOTATION):
        harness.cookies = place
        await harness.restart()

        assert _decision(await harness.step()) is Decision.IN_SYNC
        resource = await harness.resource()
        found = (resource.annotations.get(COOKIE_ANNOTATION), resource.status.get(COOKIE))
        assert found == ((cookie, None) if place is CookieLocation.ANNOTATION else (None, cookie))
        assert _decision(await harness.step()) is Decision.IN_SYNC
        assert (await harness.resource()).revision == resource.revision
    assert harness.writes == ["create"]


async def the_cookie_of_another_tool_is_left_alone(harness: ContractHarness) -> None:
    harness.cookies = CookieLocation.STATUS
    resource = await harness.settle()
    await harness.store.annotate(resource, {COOKIE_ANNOTATION: "c/x=/y="})

    await harness.step()

    assert (await harness.resource()).annotations[COOKIE_ANNOTATION] == "c/x=/y="


async def a_foreign_cookie_means_a_full_comparison_and_no_write(harness: ContractHarness) -> None:
    harness.cookies = CookieLocation.ANNOTATION
    resource = await harness.settle()
    await harness.store.annotate(resource, {COOKIE_ANNOTATION: "c/x=/y="})

    first, second = await harness.step(), await harness.step()

    assert (_decision(first), _decision(second)) == (Decision.FIRST_LOOK, Decision.IN_SYNC)
    assert harness.writes == ["create"]


async def a_raised_revision_of_the_kind_means_one_full_comparison_and_no_write(harness: ContractHarness) -> None:
    await harness.settle()
    await harness.restart()
    harness.fixture.kind.revision = 2

    first, second = await harness.step(), await harness.step()

    assert (_decision(first), _decision(second)) == (Decision.REVISED, Decision.IN_SYNC)
    assert harness.writes == ["create"]


async def a_kind_that_gives_up_its_cookie_compares_from_then_on(harness: ContractHarness) -> None:
    await harness.settle()
    await harness.restart()
    harness.fixture.kind.reconciliation = Reconciliation.STATELESS

    outcome = await harness.step()

    assert _found(outcome) == (Decision.IN_SYNC, DecisionReason.COMPARED)
    assert StoredState.of(await harness.resource()).cookie is None
    assert harness.writes == ["create"]


async def drift_without_effect_means_one_full_comparison(harness: ContractHarness) -> None:
    other = harness.fixture.unspecified
    await harness.settle(harness.fixture.spec_without(other), annotations={IGNORE_UNSPECIFIED: "true"})
    await harness.set_unspecified(other)

    first, second = await harness.step(), await harness.step()

    assert (_decision(first), _decision(second)) == (Decision.DRIFTED, Decision.IN_SYNC)
    assert harness.writes == ["create"]


async def no_cookie_is_kept_after_a_failure(harness: ContractHarness) -> None:
    before = StoredState.of(await harness.settle()).cookie
    await harness.fail_next_calls(CallFault.REFUSED, ["update"])
    await harness.change()

    await harness.step()

    assert StoredState.of(await harness.resource()).cookie == before


async def without_a_cookie_it_compares_every_time(harness: ContractHarness) -> None:
    resource = await harness.settle()

    outcome = await harness.step()

    assert _found(outcome) == (Decision.IN_SYNC, DecisionReason.COMPARED)
    assert StoredState.of(resource).cookie is None
    assert (await harness.resource()).revision == resource.revision


async def outputs_are_in_the_status(harness: ContractHarness) -> None:
    status = (await harness.settle()).status

    assert {name: status.get(name) for name in harness.fixture.outputs} == harness.fixture.outputs
    assert status["observedGeneration"] == 1


async def an_output_that_changes_is_reported_and_is_no_drift(harness: ContractHarness) -> None:
    await harness.settle()
    moved = await resolved(harness.fixture.move_output())

    outcome = await harness.step()

    status = (await harness.resource()).status
    assert {name: status.get(name) for name in moved} == moved
    assert _decision(outcome) is Decision.IN_SYNC
    assert harness.writes == ["create"]


async def a_condition_that_does_not_flip_keeps_its_time(harness: ContractHarness) -> None:
    await harness.settle()
    await harness.fail_next_calls(CallFault.REFUSED)
    await harness.step()
    flipped = await harness.condition()
    await harness.apply(annotations={MANAGEMENT: "sometimes"})

    await harness.step()

    latest = await harness.condition()
    assert latest["message"] != flipped["message"]
    assert latest["lastTransitionTime"] == flipped["lastTransitionTime"]


async def a_step_that_does_something_leaves_a_record(harness: ContractHarness) -> None:
    await harness.settle()
    await harness.drift()

    await harness.go_on()

    await _expect_record_of_drift(harness)


async def a_write_that_takes_its_time_leaves_the_same_record(harness: ContractHarness) -> None:
    await harness.settle()
    await harness.make_slow()
    await harness.drift()

    await harness.go_on()
    await harness.step()

    await _expect_record_of_drift(harness)


async def _expect_record_of_drift(harness: ContractHarness) -> None:
    field, ours = harness.fixture.field, StoredState.of(await harness.resource()).step
    assert ours is not None
    assert ours["decision"] == ("drifted" if harness.fixture.is_stateful else "differs")
    writes: Any = ours["writes"]
    assert [write["changes"] for write in writes] == [
        [{"path": field.path, "rule": "spec", "before": field.drifted, "after": field.first}]
    ]


async def a_write_is_an_event(harness: ContractHarness) -> None:
    await harness.settle()
    await harness.drift()

    await harness.go_on()
    await harness.step()

    notes = [note for note in await harness.store.events(harness.ref) if note.reason in ("Created", "Updated")]
    assert [note.reason for note in notes] == ["Created", "Updated"]
    assert harness.fixture.field.path in notes[1].message


CLAIMS = (
    claim(distinguishes_intent_changes_from_drift, Part.COOKIE),
    claim(the_cookie_is_in_the_status, Part.COOKIE),
    claim(the_cookie_is_in_the_annotation_when_that_is_its_place, Part.COOKIE),
    claim(the_cookie_is_read_wherever_it_was_written, Part.COOKIE),
    claim(the_cookie_is_moved_by_the_first_step_after_a_switch, Part.COOKIE),
    claim(the_cookie_of_another_tool_is_left_alone, Part.COOKIE),
    claim(a_foreign_cookie_means_a_full_comparison_and_no_write, Part.COOKIE),
    claim(a_raised_revision_of_the_kind_means_one_full_comparison_and_no_write, Part.COOKIE),
    claim(a_kind_that_gives_up_its_cookie_compares_from_then_on, Part.COOKIE),
    claim(drift_without_effect_means_one_full_comparison, Part.COOKIE, Part.UNSPECIFIED),
    claim(no_cookie_is_kept_after_a_failure, Part.COOKIE),
    claim(without_a_cookie_it_compares_every_time, Part.STATELESS),
    claim(outputs_are_in_the_status, Part.OUTPUTS),
    claim(an_output_that_changes_is_reported_and_is_no_drift, Part.MOVING_OUTPUT),
    claim(a_condition_that_does_not_flip_keeps_its_time),
    claim(a_step_that_does_something_leaves_a_record),
    claim(a_write_that_takes_its_time_leaves_the_same_record, Part.OPERATIONS),
    claim(a_write_is_an_event),
)
