"""How an oscillation ends: by quiet, by the author, by the other writer; and what reverts a field before its time."""

from setpoint.core.schema.policy import UNMANAGED
from setpoint.engine.management import MANAGEMENT
from setpoint.engine.state import RECONCILE_HANDLED, RECONCILE_REQUESTED
from setpoint.testing.claims.claim import claim
from setpoint.testing.claims.reconciling import UP_TO_DATE
from setpoint.testing.harness import ContractHarness
from setpoint.testing.other_writer import HOUR, counts, drift_and_step, oscillation_message, ready_now, updates


async def an_oscillation_expires_when_the_field_stays_as_declared(harness: ContractHarness) -> None:
    await harness.settle()
    await drift_and_step(harness, times=3)
    harness.clock.seconds += 6 * HOUR - 2
    await harness.step()
    late = await oscillation_message(harness)
    harness.clock.seconds += 1

    await harness.step()

    assert late is not None
    assert await harness.ready() == UP_TO_DATE
    assert await counts(harness) == []
    assert updates(harness) == 3


async def after_it_expired_the_field_is_reverted_at_once(harness: ContractHarness) -> None:
    await harness.settle()
    await drift_and_step(harness, times=3)
    harness.clock.seconds += 6 * HOUR

    await drift_and_step(harness)

    assert await harness.value() == harness.fixture.field.first
    assert await harness.ready() == UP_TO_DATE


async def a_writer_that_gives_in_is_not_reverted(harness: ContractHarness) -> None:
    await harness.settle()
    await drift_and_step(harness, times=4)
    await harness.edit(harness.fixture.field.member, harness.fixture.field.first)

    await harness.step()

    assert await ready_now(harness) == UP_TO_DATE
    assert "was reverted 3 times" in (await oscillation_message(harness) or "")
    assert updates(harness) == 3


async def an_edit_of_the_author_ends_it(harness: ContractHarness) -> None:
    await harness.settle()
    await drift_and_step(harness, times=4)
    await harness.change()

    await harness.go_on()

    assert await harness.value() == harness.fixture.field.then
    assert await harness.ready() == UP_TO_DATE


async def an_unmanaged_field_ends_it(harness: ContractHarness) -> None:
    await harness.settle()
    await drift_and_step(harness, times=4)

    await harness.settle(annotations={UNMANAGED: harness.fixture.field.path})

    assert await harness.value() == harness.fixture.field.drifted
    assert await harness.ready() == UP_TO_DATE
    assert updates(harness) == 3


async def taking_over_their_value_ends_it(harness: ContractHarness) -> None:
    await harness.settle()
    await drift_and_step(harness, times=4)

    await harness.settle(harness.fixture.spec(harness.fixture.field.drifted))

    assert await harness.ready() == UP_TO_DATE
    assert updates(harness) == 3


async def a_request_has_it_reverted_at_once(harness: ContractHarness) -> None:
    await harness.settle()
    await drift_and_step(harness, times=4)

    await harness.go_on(requested=True)

    assert await harness.value() == harness.fixture.field.first
    assert await ready_now(harness) == UP_TO_DATE
    assert "was reverted 4 times" in (await oscillation_message(harness) or "")


async def a_reconcile_annotation_has_it_reverted_at_once(harness: ContractHarness) -> None:
    await harness.settle()
    await drift_and_step(harness, times=4)
    await harness.apply(annotations={RECONCILE_REQUESTED: "now"})

    await harness.go_on()

    assert await harness.value() == harness.fixture.field.first
    assert (await harness.resource()).status[RECONCILE_HANDLED] == "now"


async def an_observed_object_does_not_oscillate(harness: ContractHarness) -> None:
    for word, reason in (("observe", "Observed"), ("paused", "Paused")):
        await harness.settle()
        await drift_and_step(harness, times=4)
        await harness.apply(annotations={MANAGEMENT: word})

        await harness.step()

        assert (await harness.ready())[1] == reason
        assert await harness.value() == harness.fixture.field.drifted


CLAIMS = (
    claim(an_oscillation_expires_when_the_field_stays_as_declared),
    claim(after_it_expired_the_field_is_reverted_at_once),
    claim(a_writer_that_gives_in_is_not_reverted),
    claim(an_edit_of_the_author_ends_it),
    claim(an_unmanaged_field_ends_it),
    claim(taking_over_their_value_ends_it),
    claim(a_request_has_it_reverted_at_once),
    claim(a_reconcile_annotation_has_it_reverted_at_once),
    claim(an_observed_object_does_not_oscillate),
)
