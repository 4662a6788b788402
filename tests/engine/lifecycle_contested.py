"""Two actors that undo each other: somebody else sets a field, we put it back, they set it again."""

from typing import Any

from setpoint.core.values.canonical import canonical
from setpoint.engine.context import Settled
from setpoint.engine.state import StoredState
from setpoint.engine.step.reconcile import preview
from tests.engine.bench import Bench
from tests.engine.claim import claim
from tests.engine.lifecycle_keeping import UP_TO_DATE
from tests.engine.meddling import HOUR, MINUTE, contested, counts, meddle, ready_now, updates
from tests.engine.stand import Part, Trouble

# --- Noticed ---------------------------------------------------------------------------------------------------------


async def the_third_put_back_is_noticed(bench: Bench) -> None:
    await bench.settle()

    await meddle(bench, times=2)
    before = await contested(bench)
    await meddle(bench)

    assert before is None
    assert await contested(bench) is not None
    assert await ready_now(bench) == UP_TO_DATE
    assert bench.stand.value == bench.stand.field.first
    assert updates(bench) == 3


async def the_condition_names_the_field_how_often_since_when_and_the_other_value(bench: Bench) -> None:
    await bench.settle()
    await meddle(bench, times=3)

    told = await contested(bench)

    path, theirs = bench.stand.field.path, canonical(bench.stand.field.drifted).decode()
    assert told is not None
    assert told.startswith(f"{path} was put back 3 times since 2026-01-01T00:00:0")
    assert f"another writer sets it to {theirs} again and again" in told
    assert f"put {path} into the annotation cnrm.cloud.google.com/unmanaged" in told


async def others_that_set_other_values_count_together(bench: Bench) -> None:
    field = bench.stand.field
    await bench.settle()
    for value in (field.drifted, field.then, field.drifted):
        bench.stand.edit(field.member, value)
        await bench.go_on()

    told = await contested(bench)

    newest, older = canonical(field.drifted).decode(), canonical(field.then).decode()
    assert told is not None
    assert "was put back 3 times since 2026-01-01T00:00:0" in told
    assert f"sets it to {newest} (before that: {older})" in told


async def the_beginning_is_noted_for_people_once(bench: Bench) -> None:
    await bench.settle()
    await meddle(bench, times=3)
    await bench.step()
    bench.clock.seconds += MINUTE
    bench.stand.drift()
    await bench.go_on()

    notes = [note for note in await bench.store.events(bench.stand.ref) if note.reason == "Contested"]
    assert [(note.severity, note.count) for note in notes] == [("Warning", 1)]
    assert "was put back 3 times" in notes[0].message


async def a_contest_survives_a_restart(bench: Bench) -> None:
    await bench.settle()
    await meddle(bench, times=2)
    await bench.restart()

    await meddle(bench)
    told = await contested(bench)
    await bench.restart()
    await meddle(bench)

    assert told is not None
    assert await contested(bench) == told
    assert updates(bench) == 3


async def a_contest_shows_no_secret(bench: Bench) -> None:
    await bench.secret({"password": "hunter2"})
    await bench.settle(bench.stand.with_secret)
    await meddle(bench, times=4)

    plan = await preview(bench.stand.ref, bench.engine)

    assert await contested(bench) is not None
    kept = canonical((await bench.resource()).document).decode()
    shown = (str(plan.to_data()), str(plan), kept, str(await bench.store.events()))
    assert [text for text in shown if "hunter" in text] == []


async def a_rotated_secret_is_no_put_back(bench: Bench) -> None:
    await bench.secret({"password": "first"})
    await bench.settle(bench.stand.with_secret)
    await bench.secret({"password": "second"})

    await bench.go_on()

    assert bench.stand.holds_secret("second")
    assert await counts(bench) == []


async def what_the_author_changes_to_and_fro_is_no_contest(bench: Bench) -> None:
    field = bench.stand.field
    await bench.settle()

    for value in (field.then, field.first) * 4:
        await bench.settle(bench.stand.spec(value))

    assert await bench.ready() == UP_TO_DATE
    assert updates(bench) == 8


async def an_outage_in_the_middle_of_a_put_back_is_no_second_one(bench: Bench) -> None:
    await bench.settle()
    bench.stand.drift()
    bench.stand.trouble(Trouble.UNAVAILABLE, ["update"])
    for _ in range(5):
        await bench.step()
    bench.stand.calm()

    await bench.go_on()

    assert await counts(bench) == [1]
    assert await bench.ready() == UP_TO_DATE


async def a_refused_put_back_is_not_counted_again_and_again(bench: Bench) -> None:
    await bench.settle()
    bench.stand.drift()
    bench.stand.trouble(Trouble.REFUSED, ["update"])
    for _ in range(5):
        await bench.step()
    told = await bench.ready()
    bench.stand.calm()

    await bench.go_on()

    assert told[1] == "UpdateFailed"
    assert await counts(bench) == [1]
    assert await bench.ready() == UP_TO_DATE


async def a_put_back_that_ends_in_an_error_is_not_counted(bench: Bench) -> None:
    await bench.settle()
    bench.stand.drift()
    bench.stand.fail_operation("no room")

    await bench.go_on()
    failed = await counts(bench)
    await bench.go_on()

    assert failed == [0]
    assert await counts(bench) == [1]


# --- Backed off ------------------------------------------------------------------------------------------------------


async def a_contested_field_is_left_alone_for_a_while(bench: Bench) -> None:
    await bench.settle()

    outcome = await meddle(bench, times=4)

    field = bench.stand.field
    assert isinstance(outcome, Settled)
    assert outcome.plan.writes == ()
    assert [(str(change.path), change.before) for change in outcome.plan.withheld] == [(field.path, field.drifted)]
    assert outcome.requeue_after == 59
    status, reason, message = await ready_now(bench)
    assert (status, reason) == ("False", "Contested")
    assert message.startswith(f"{field.path}: changed after each put-back, and not put back again before 2026-01-01T00")
    assert bench.stand.value == field.drifted
    assert updates(bench) == 3


async def waiting_for_its_time_writes_nothing_at_all(bench: Bench) -> None:
    await bench.settle()
    await meddle(bench, times=4)
    before, notes = await bench.resource(), await bench.store.events()

    for _ in range(20):
        await bench.step()

    assert await bench.resource() == before
    assert await bench.store.events() == notes
    assert updates(bench) == 3


async def a_put_back_that_held_writes_nothing_more(bench: Bench) -> None:
    await bench.settle()
    await meddle(bench, times=3)
    before, notes = await bench.resource(), await bench.store.events()

    for _ in range(20):
        await bench.step()

    assert await bench.resource() == before
    assert await bench.store.events() == notes


async def it_is_put_back_when_its_time_has_come(bench: Bench) -> None:
    await bench.settle()
    await meddle(bench, times=4)
    bench.clock.seconds += MINUTE

    outcome = await bench.go_on()

    assert isinstance(outcome, Settled)
    assert outcome.requeue_after is None
    assert bench.stand.value == bench.stand.field.first
    assert await ready_now(bench) == UP_TO_DATE
    assert "was put back 4 times" in (await contested(bench) or "")


async def the_next_wait_is_twice_as_long(bench: Bench) -> None:
    await bench.settle()
    await meddle(bench, times=3)
    bench.clock.seconds += MINUTE
    await meddle(bench)

    bench.clock.seconds += MINUTE
    early = await meddle(bench)
    bench.clock.seconds += MINUTE
    await bench.go_on()

    assert isinstance(early, Settled)
    assert early.plan.withheld != ()
    assert updates(bench) == 5


async def whoever_meddles_every_ten_seconds_for_an_hour_costs_eight_writes(bench: Bench) -> None:
    await bench.settle()
    end = bench.clock.seconds + HOUR

    while bench.clock.seconds < end:
        await meddle(bench)
        bench.clock.seconds += 9

    assert updates(bench) == 8


async def other_fields_are_still_written(bench: Bench) -> None:
    other = bench.stand.unlisted
    await bench.settle()
    await meddle(bench, times=4)
    bench.stand.meddle(other)

    await bench.go_on()

    assert bench.stand.read(other.member) == other.pruned
    assert bench.stand.value == bench.stand.field.drifted
    assert updates(bench) == 4
    status, reason, message = await ready_now(bench)
    assert (status, reason) == ("False", "Contested")
    assert other.path not in message


async def a_plan_shows_what_is_left_alone(bench: Bench) -> None:
    await bench.settle()
    await meddle(bench, times=4)
    before = await bench.resource()

    plan = await preview(bench.stand.ref, bench.engine)

    field = bench.stand.field
    assert plan.writes == ()
    assert [(str(change.path), change.before, change.after) for change in plan.withheld] == [
        (field.path, field.drifted, field.first)
    ]
    assert "not put back again before" in plan.because
    assert await bench.resource() == before


async def no_cookie_hides_what_is_left_alone(bench: Bench) -> None:
    await bench.settle()
    await meddle(bench, times=3)
    agreed = StoredState.of(await bench.resource()).cookie

    outcomes = [await meddle(bench), await bench.step(), await bench.step()]

    assert StoredState.of(await bench.resource()).cookie == agreed
    assert [outcome.ready.reason for outcome in outcomes if isinstance(outcome, Settled)] == ["Contested"] * 3


async def the_record_says_what_is_left_alone(bench: Bench) -> None:
    await bench.settle()

    await meddle(bench, times=4)
    await bench.step()

    step: Any = StoredState.of(await bench.resource()).step
    field = bench.stand.field
    assert step["writes"] == []
    assert step["withheld"] == [{"path": field.path, "rule": "spec", "before": field.drifted, "after": field.first}]


CLAIMS = (
    claim(the_third_put_back_is_noticed),
    claim(the_condition_names_the_field_how_often_since_when_and_the_other_value),
    claim(others_that_set_other_values_count_together),
    claim(the_beginning_is_noted_for_people_once),
    claim(a_contest_survives_a_restart),
    claim(a_contest_shows_no_secret, Part.SECRET),
    claim(a_rotated_secret_is_no_put_back, Part.SECRET),
    claim(what_the_author_changes_to_and_fro_is_no_contest),
    claim(an_outage_in_the_middle_of_a_put_back_is_no_second_one),
    claim(a_refused_put_back_is_not_counted_again_and_again),
    claim(a_put_back_that_ends_in_an_error_is_not_counted, Part.OPERATIONS),
    claim(a_contested_field_is_left_alone_for_a_while),
    claim(waiting_for_its_time_writes_nothing_at_all),
    claim(a_put_back_that_held_writes_nothing_more),
    claim(it_is_put_back_when_its_time_has_come),
    claim(the_next_wait_is_twice_as_long),
    claim(whoever_meddles_every_ten_seconds_for_an_hour_costs_eight_writes),
    claim(other_fields_are_still_written, Part.PRUNING),
    claim(a_plan_shows_what_is_left_alone),
    claim(no_cookie_hides_what_is_left_alone, Part.COOKIE),
    claim(the_record_says_what_is_left_alone),
)
