"""Two actors that undo each other: another writer sets a field, the engine reverts it, and so on."""

from typing import Any

from setpoint.core.values.canonical import canonical
from setpoint.engine.state import StoredState
from setpoint.engine.step.outcomes import Settled
from setpoint.engine.step.reconcile import preview
from setpoint.testing.claims.claim import claim
from setpoint.testing.claims.reconciling import UP_TO_DATE
from setpoint.testing.faults import CallFault
from setpoint.testing.harness import ContractHarness
from setpoint.testing.kind_parts import Part
from setpoint.testing.other_writer import HOUR, MINUTE, counts, drift_and_step, oscillation_message, ready_now, updates

# --- Noticed ---------------------------------------------------------------------------------------------------------


async def the_third_revert_is_reported(harness: ContractHarness) -> None:
    await harness.settle()

    await drift_and_step(harness, times=2)
    before = await oscillation_message(harness)
    await drift_and_step(harness)

    assert before is None
    assert await oscillation_message(harness) is not None
    assert await ready_now(harness) == UP_TO_DATE
    assert await harness.value() == harness.fixture.field.first
    assert updates(harness) == 3


async def the_condition_names_the_field_how_often_since_when_and_the_other_value(harness: ContractHarness) -> None:
    await harness.settle()
    await drift_and_step(harness, times=3)

    message = await oscillation_message(harness)

    path, theirs = harness.fixture.field.path, canonical(harness.fixture.field.drifted).decode()
    assert message is not None
    assert message.startswith(f"{path} was reverted 3 times since 2026-01-01T00:00:0")
    assert f"another writer sets it to {theirs} again and again" in message
    assert f"put {path} into the annotation cnrm.cloud.google.com/unmanaged" in message


async def writers_that_set_different_values_count_together(harness: ContractHarness) -> None:
    field = harness.fixture.field
    await harness.settle()
    for value in (field.drifted, field.then, field.drifted):
        await harness.edit(field.member, value)
        await harness.go_on()

    message = await oscillation_message(harness)

    newest, older = canonical(field.drifted).decode(), canonical(field.then).decode()
    assert message is not None
    assert "was reverted 3 times since 2026-01-01T00:00:0" in message
    assert f"sets it to {newest} (before that: {older})" in message


async def the_beginning_of_an_oscillation_is_one_event(harness: ContractHarness) -> None:
    await harness.settle()
    await drift_and_step(harness, times=3)
    await harness.step()
    harness.clock.seconds += MINUTE
    await harness.drift()
    await harness.go_on()

    notes = [note for note in await harness.store.events(harness.ref) if note.reason == "Contested"]
    assert [(note.severity, note.count) for note in notes] == [("Warning", 1)]
    assert "was reverted 3 times" in notes[0].message


async def an_oscillation_survives_a_restart(harness: ContractHarness) -> None:
    await harness.settle()
    await drift_and_step(harness, times=2)
    await harness.restart()

    await drift_and_step(harness)
    message = await oscillation_message(harness)
    await harness.restart()
    await drift_and_step(harness)

    assert message is not None
    assert await oscillation_message(harness) == message
    assert updates(harness) == 3


async def an_oscillation_shows_no_secret(harness: ContractHarness) -> None:
    await harness.secret({"password": "hunter2"})
    await harness.settle(harness.fixture.with_secret)
    await drift_and_step(harness, times=4)

    plan = await preview(harness.ref, harness.engine)

    assert await oscillation_message(harness) is not None
    kept = canonical((await harness.resource()).document).decode()
    shown = (str(plan.to_data()), str(plan), kept, str(await harness.store.events()))
    assert [text for text in shown if "hunter" in text] == []


async def a_rotated_secret_is_no_revert(harness: ContractHarness) -> None:
    await harness.secret({"password": "first"})
    await harness.settle(harness.fixture.with_secret)
    await harness.secret({"password": "second"})

    await harness.go_on()

    assert await harness.holds_secret("second")
    assert await counts(harness) == []


async def changes_of_the_author_to_and_fro_are_no_oscillation(harness: ContractHarness) -> None:
    field = harness.fixture.field
    await harness.settle()

    for value in (field.then, field.first) * 4:
        await harness.settle(harness.fixture.spec(value))

    assert await harness.ready() == UP_TO_DATE
    assert updates(harness) == 8


async def an_outage_during_a_revert_counts_no_second_one(harness: ContractHarness) -> None:
    await harness.settle()
    await harness.drift()
    await harness.fail_next_calls(CallFault.UNAVAILABLE, ["update"])
    for _ in range(5):
        await harness.step()
    await harness.recover()

    await harness.go_on()

    assert await counts(harness) == [1]
    assert await harness.ready() == UP_TO_DATE


async def a_refused_revert_is_counted_once(harness: ContractHarness) -> None:
    await harness.settle()
    await harness.drift()
    await harness.fail_next_calls(CallFault.REFUSED, ["update"])
    for _ in range(5):
        await harness.step()
    ready = await harness.ready()
    await harness.recover()

    await harness.go_on()

    assert ready[1] == "UpdateFailed"
    assert await counts(harness) == [1]
    assert await harness.ready() == UP_TO_DATE


async def a_revert_that_ends_in_an_error_is_not_counted(harness: ContractHarness) -> None:
    await harness.settle()
    await harness.drift()
    await harness.fail_operation("no room")

    await harness.go_on()
    failed = await counts(harness)
    await harness.go_on()

    assert failed == [0]
    assert await counts(harness) == [1]


# --- Backed off ------------------------------------------------------------------------------------------------------


async def an_oscillating_field_is_withheld_for_its_backoff(harness: ContractHarness) -> None:
    await harness.settle()

    outcome = await drift_and_step(harness, times=4)

    field = harness.fixture.field
    assert isinstance(outcome, Settled)
    assert outcome.plan.writes == ()
    assert [(str(change.path), change.before) for change in outcome.plan.withheld] == [(field.path, field.drifted)]
    assert outcome.requeue_after == 59
    status, reason, message = await ready_now(harness)
    assert (status, reason) == ("False", "Contested")
    assert message.startswith(f"{field.path}: changed after each revert, and not reverted again before 2026-01-01T00")
    assert await harness.value() == field.drifted
    assert updates(harness) == 3


async def a_step_during_the_backoff_writes_nothing(harness: ContractHarness) -> None:
    await harness.settle()
    await drift_and_step(harness, times=4)
    before, notes = await harness.resource(), await harness.store.events()

    for _ in range(20):
        await harness.step()

    assert await harness.resource() == before
    assert await harness.store.events() == notes
    assert updates(harness) == 3


async def a_revert_that_lasts_writes_nothing_more(harness: ContractHarness) -> None:
    await harness.settle()
    await drift_and_step(harness, times=3)
    before, notes = await harness.resource(), await harness.store.events()

    for _ in range(20):
        await harness.step()

    assert await harness.resource() == before
    assert await harness.store.events() == notes


async def it_is_reverted_after_its_backoff(harness: ContractHarness) -> None:
    await harness.settle()
    await drift_and_step(harness, times=4)
    harness.clock.seconds += MINUTE

    outcome = await harness.go_on()

    assert isinstance(outcome, Settled)
    assert outcome.requeue_after is None
    assert await harness.value() == harness.fixture.field.first
    assert await ready_now(harness) == UP_TO_DATE
    assert "was reverted 4 times" in (await oscillation_message(harness) or "")


async def the_next_backoff_is_twice_as_long(harness: ContractHarness) -> None:
    await harness.settle()
    await drift_and_step(harness, times=3)
    harness.clock.seconds += MINUTE
    await drift_and_step(harness)

    harness.clock.seconds += MINUTE
    early = await drift_and_step(harness)
    harness.clock.seconds += MINUTE
    await harness.go_on()

    assert isinstance(early, Settled)
    assert early.plan.withheld != ()
    assert updates(harness) == 5


async def another_writer_every_ten_seconds_for_an_hour_costs_eight_writes(harness: ContractHarness) -> None:
    await harness.settle()
    end = harness.clock.seconds + HOUR

    while harness.clock.seconds < end:
        await drift_and_step(harness)
        harness.clock.seconds += 9

    assert updates(harness) == 8


async def other_fields_are_still_written(harness: ContractHarness) -> None:
    other = harness.fixture.unlisted
    await harness.settle()
    await drift_and_step(harness, times=4)
    await harness.set_unspecified(other)

    await harness.go_on()

    assert await harness.read(other.member) == other.pruned
    assert await harness.value() == harness.fixture.field.drifted
    assert updates(harness) == 4
    status, reason, message = await ready_now(harness)
    assert (status, reason) == ("False", "Contested")
    assert other.path not in message


async def a_plan_shows_withheld_fields(harness: ContractHarness) -> None:
    await harness.settle()
    await drift_and_step(harness, times=4)
    before = await harness.resource()

    plan = await preview(harness.ref, harness.engine)

    field = harness.fixture.field
    assert plan.writes == ()
    assert [(str(change.path), change.before, change.after) for change in plan.withheld] == [
        (field.path, field.drifted, field.first)
    ]
    assert "not reverted again before" in plan.because
    assert await harness.resource() == before


async def no_cookie_hides_withheld_fields(harness: ContractHarness) -> None:
    await harness.settle()
    await drift_and_step(harness, times=3)
    agreed = StoredState.of(await harness.resource()).cookie

    outcomes = [await drift_and_step(harness), await harness.step(), await harness.step()]

    assert StoredState.of(await harness.resource()).cookie == agreed
    assert [outcome.ready.reason for outcome in outcomes if isinstance(outcome, Settled)] == ["Contested"] * 3


async def the_record_shows_withheld_fields(harness: ContractHarness) -> None:
    await harness.settle()

    await drift_and_step(harness, times=4)
    await harness.step()

    step: Any = StoredState.of(await harness.resource()).step
    field = harness.fixture.field
    assert step["writes"] == []
    assert step["withheld"] == [{"path": field.path, "rule": "spec", "before": field.drifted, "after": field.first}]


CLAIMS = (
    claim(the_third_revert_is_reported),
    claim(the_condition_names_the_field_how_often_since_when_and_the_other_value),
    claim(writers_that_set_different_values_count_together),
    claim(the_beginning_of_an_oscillation_is_one_event),
    claim(an_oscillation_survives_a_restart),
    claim(an_oscillation_shows_no_secret, Part.SECRET),
    claim(a_rotated_secret_is_no_revert, Part.SECRET),
    claim(changes_of_the_author_to_and_fro_are_no_oscillation),
    claim(an_outage_during_a_revert_counts_no_second_one),
    claim(a_refused_revert_is_counted_once),
    claim(a_revert_that_ends_in_an_error_is_not_counted, Part.OPERATIONS),
    claim(an_oscillating_field_is_withheld_for_its_backoff),
    claim(a_step_during_the_backoff_writes_nothing),
    claim(a_revert_that_lasts_writes_nothing_more),
    claim(it_is_reverted_after_its_backoff),
    claim(the_next_backoff_is_twice_as_long),
    claim(another_writer_every_ten_seconds_for_an_hour_costs_eight_writes),
    claim(other_fields_are_still_written, Part.PRUNING),
    claim(a_plan_shows_withheld_fields),
    claim(no_cookie_hides_withheld_fields, Part.COOKIE),
    claim(the_record_shows_withheld_fields),
)
