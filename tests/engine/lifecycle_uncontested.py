"""How an oscillation ends: by quiet, by the author, by the other writer; and what reverts a field before its time."""

from setpoint.core.schema.policy import UNMANAGED
from setpoint.engine.context import MANAGEMENT
from setpoint.engine.state import RECONCILE_HANDLED, RECONCILE_REQUESTED
from tests.engine.claim import claim
from tests.engine.lifecycle_keeping import UP_TO_DATE
from tests.engine.other_writer import HOUR, contested, counts, meddle, ready_now, updates
from tests.engine.step_harness import StepHarness


async def quiet_forgets(harness: StepHarness) -> None:
    await harness.settle()
    await meddle(harness, times=3)
    harness.clock.seconds += 6 * HOUR - 2
    await harness.step()
    late = await contested(harness)
    harness.clock.seconds += 1

    await harness.step()

    assert late is not None
    assert await harness.ready() == UP_TO_DATE
    assert await counts(harness) == []
    assert updates(harness) == 3


async def after_the_quiet_it_is_put_back_at_once(harness: StepHarness) -> None:
    await harness.settle()
    await meddle(harness, times=3)
    harness.clock.seconds += 6 * HOUR

    await meddle(harness)

    assert harness.fixture.value == harness.fixture.field.first
    assert await harness.ready() == UP_TO_DATE


async def a_writer_that_gives_in_is_not_reverted(harness: StepHarness) -> None:
    await harness.settle()
    await meddle(harness, times=4)
    harness.fixture.edit(harness.fixture.field.member, harness.fixture.field.first)

    await harness.step()

    assert await ready_now(harness) == UP_TO_DATE
    assert "was reverted 3 times" in (await contested(harness) or "")
    assert updates(harness) == 3


async def an_edit_of_the_author_ends_it(harness: StepHarness) -> None:
    await harness.settle()
    await meddle(harness, times=4)
    await harness.change()

    await harness.go_on()

    assert harness.fixture.value == harness.fixture.field.then
    assert await harness.ready() == UP_TO_DATE


async def leaving_the_field_to_others_ends_it(harness: StepHarness) -> None:
    await harness.settle()
    await meddle(harness, times=4)

    await harness.settle(annotations={UNMANAGED: harness.fixture.field.path})

    assert harness.fixture.value == harness.fixture.field.drifted
    assert await harness.ready() == UP_TO_DATE
    assert updates(harness) == 3


async def taking_over_their_value_ends_it(harness: StepHarness) -> None:
    await harness.settle()
    await meddle(harness, times=4)

    await harness.settle(harness.fixture.spec(harness.fixture.field.drifted))

    assert await harness.ready() == UP_TO_DATE
    assert updates(harness) == 3


async def a_request_has_it_reverted_at_once(harness: StepHarness) -> None:
    await harness.settle()
    await meddle(harness, times=4)

    await harness.go_on(requested=True)

    assert harness.fixture.value == harness.fixture.field.first
    assert await ready_now(harness) == UP_TO_DATE
    assert "was reverted 4 times" in (await contested(harness) or "")


async def a_request_for_a_look_puts_it_back_at_once(harness: StepHarness) -> None:
    await harness.settle()
    await meddle(harness, times=4)
    await harness.apply(annotations={RECONCILE_REQUESTED: "now"})

    await harness.go_on()

    assert harness.fixture.value == harness.fixture.field.first
    assert (await harness.resource()).status[RECONCILE_HANDLED] == "now"


async def what_is_only_observed_is_not_contested(harness: StepHarness) -> None:
    for word, reason in (("observe", "Observed"), ("paused", "Paused")):
        await harness.settle()
        await meddle(harness, times=4)
        await harness.apply(annotations={MANAGEMENT: word})

        await harness.step()

        assert (await harness.ready())[1] == reason
        assert harness.fixture.value == harness.fixture.field.drifted


CLAIMS = (
    claim(quiet_forgets),
    claim(after_the_quiet_it_is_put_back_at_once),
    claim(a_writer_that_gives_in_is_not_reverted),
    claim(an_edit_of_the_author_ends_it),
    claim(leaving_the_field_to_others_ends_it),
    claim(taking_over_their_value_ends_it),
    claim(a_request_has_it_reverted_at_once),
    claim(a_request_for_a_look_puts_it_back_at_once),
    claim(what_is_only_observed_is_not_contested),
)
