"""The lifecycle of a resource that is to go: by the location on record, verified by absence."""

import pytest

from setpoint.engine.context import DELETION_DEFENDER, DELETION_POLICY, FINALIZER
from setpoint.engine.management import MANAGEMENT
from setpoint.engine.step.outcomes import Gone, Settled, Stopped
from setpoint.engine.step.reconcile import preview
from setpoint.errors import DeletionHeld, OperationRunning, RemoteRefused, RemoteUnavailable
from setpoint.testing.claims.claim import claim
from setpoint.testing.claims.waiting import bring_target
from setpoint.testing.faults import OUTAGES, CallFault
from setpoint.testing.harness import ContractHarness
from setpoint.testing.kind_parts import Part


async def deletes_the_object_and_is_gone(harness: ContractHarness) -> None:
    await harness.settle()
    await harness.delete()

    outcome = await harness.go_on()

    assert outcome == Gone()
    assert await harness.objects() == []
    assert harness.writes == ["create", "delete"]
    assert harness.calls[-1] == "get"
    assert await harness.is_gone()


async def keeps_the_finalizers_of_other_controllers(harness: ContractHarness) -> None:
    await harness.store.set_finalizers(await harness.apply(), ("example.com/other",))
    assert set((await harness.settle()).finalizers) == {"example.com/other", FINALIZER}
    await harness.delete()

    assert await harness.go_on() == Gone()
    assert await harness.step() == Gone()
    assert (await harness.resource()).finalizers == ("example.com/other",)
    assert await harness.ready() == ("False", "Deleted", "Successfully deleted")
    assert await harness.objects() == []


async def a_finalizer_that_another_writer_took_off_is_put_back_whatever_the_step_comes_to(
    harness: ContractHarness,
) -> None:
    settled = await harness.settle()
    await harness.store.set_finalizers(settled, ())
    # Nothing else has changed.
    await harness.go_on()
    assert (await harness.resource()).finalizers == (FINALIZER,)
    await harness.store.set_finalizers(await harness.resource(), ("example.com/other",))
    await harness.fail_next_calls(CallFault.UNAVAILABLE)
    await harness.step()
    await harness.recover()

    assert (await harness.resource()).finalizers == ("example.com/other", FINALIZER)
    assert harness.writes == ["create"]
    assert "FinalizerRestored" in {event.reason for event in await harness.store.events(harness.ref)}
    await harness.delete()
    assert await harness.go_on() == Gone()
    assert await harness.objects() == []


async def no_finalizer_is_put_on_a_resource_that_is_paused_or_observed(harness: ContractHarness) -> None:
    await harness.settle()
    for word in ("paused", "observe"):
        await harness.apply(annotations={MANAGEMENT: word})
        await harness.store.set_finalizers(await harness.resource(), ())
        await harness.step()
        assert (await harness.resource()).finalizers == ()


async def a_resource_with_the_deletion_defender_is_deleted_once_that_is_removed(harness: ContractHarness) -> None:
    await harness.store.set_finalizers(await harness.apply(), (DELETION_DEFENDER,))
    await harness.settle()
    await harness.delete()

    held = await harness.step()

    assert isinstance(held, Stopped)
    assert DELETION_DEFENDER in str(held.error)
    with pytest.raises(DeletionHeld, match=DELETION_DEFENDER):
        await preview(harness.ref, harness.engine)
    status, reason, message = await harness.ready()
    assert (status, reason, DELETION_DEFENDER in message) == ("False", "Deleting", True)
    assert harness.writes == ["create"]
    await harness.store.set_finalizers(await harness.resource(), (FINALIZER,))
    assert await harness.go_on() == Gone()
    assert await harness.objects() == []


async def a_resource_with_the_deletion_defender_can_be_abandoned(harness: ContractHarness) -> None:
    await harness.store.set_finalizers(await harness.apply(), (DELETION_DEFENDER,))
    await harness.settle()
    before = await harness.objects()
    await harness.delete()
    await harness.step()
    await harness.apply(annotations={DELETION_POLICY: "abandon"})

    assert await harness.go_on() == Gone()
    assert (await harness.resource()).finalizers == (DELETION_DEFENDER,)
    assert await harness.objects() == before


async def deletes_what_is_gone_already(harness: ContractHarness) -> None:
    await harness.settle()
    await harness.delete_outside()
    await harness.delete()

    assert await harness.go_on() == Gone()
    assert await harness.is_gone()
    assert harness.writes == ["create"]


async def goes_without_a_call_when_nothing_was_ever_claimed(harness: ContractHarness) -> None:
    await harness.apply()
    await harness.delete()

    assert await harness.go_on() == Gone()
    assert harness.calls == []


async def goes_when_the_create_never_came_through(harness: ContractHarness) -> None:
    await harness.fail_next_calls(CallFault.CUT, ["create"])
    await harness.apply()
    await harness.step()
    await harness.delete()

    assert await harness.go_on() == Gone()
    assert await harness.is_gone()
    assert "delete" not in harness.writes


async def applied_again_after_its_deletion_it_is_created_again(harness: ContractHarness) -> None:
    await harness.settle()
    await harness.delete()
    await harness.go_on()

    resource = await harness.settle()

    assert harness.writes == ["create", "delete", "create"]
    assert len(await harness.objects()) == 1
    assert resource.generation == 1


async def applied_again_after_its_deletion_it_starts_anew(harness: ContractHarness) -> None:
    await harness.settle()
    await harness.delete()
    await harness.go_on()

    resource = await harness.settle(harness.fixture.moved.spec)

    assert await harness.objects() == [harness.fixture.moved.name]
    assert resource.generation == 1


async def abandons_by_the_annotation(harness: ContractHarness) -> None:
    await harness.settle(annotations={DELETION_POLICY: "abandon"})
    before = await harness.objects()
    await harness.delete()

    assert await harness.go_on() == Gone()
    assert await harness.objects() == before
    assert await harness.is_gone()


async def abandons_by_its_own_spec(harness: ContractHarness) -> None:
    await harness.settle(harness.fixture.abandoning)
    before = await harness.objects()
    await harness.delete()

    assert await harness.go_on() == Gone()
    assert await harness.objects() == before
    assert await harness.is_gone()


async def an_observed_object_is_never_deleted(harness: ContractHarness) -> None:
    await harness.settle()
    before = await harness.objects()
    await harness.apply(annotations={MANAGEMENT: "observe"})
    await harness.delete()

    assert await harness.go_on() == Gone()
    assert await harness.objects() == before


async def a_plan_of_a_deletion_says_whether_the_object_is_deleted(harness: ContractHarness) -> None:
    await harness.settle()
    await harness.delete()

    going = await preview(harness.ref, harness.engine)
    await harness.delete_outside()
    gone = await preview(harness.ref, harness.engine)

    assert [write.name for write in going.writes] == ["delete"]
    assert (gone.writes, gone.because.endswith("is gone already")) == ((), True)
    assert harness.writes == ["create"]


async def a_plan_deletes_nothing_that_will_be_abandoned(harness: ContractHarness) -> None:
    for mode in ({DELETION_POLICY: "abandon"}, {MANAGEMENT: "observe"}, {MANAGEMENT: "paused"}):
        await harness.settle()
        await harness.apply(annotations=mode)
        await harness.delete()

        plan = await preview(harness.ref, harness.engine)

        assert (plan.writes, bool(plan.because)) == ((), True)
        if mode.get(MANAGEMENT) == "paused":
            return
        await harness.go_on()
    raise AssertionError("paused was not reached")


async def a_resource_that_was_paused_during_its_deletion_can_be_released(harness: ContractHarness) -> None:
    await harness.settle()
    await harness.apply(annotations={MANAGEMENT: "paused"})
    await harness.delete()
    assert isinstance(await harness.go_on(), Settled)
    assert not await harness.is_gone()

    await harness.apply()

    assert await harness.go_on() == Gone()
    assert await harness.objects() == []
    assert await harness.is_gone()


async def an_invalid_management_can_be_corrected_during_deletion(harness: ContractHarness) -> None:
    await harness.settle()
    await harness.apply(annotations={MANAGEMENT: "pausd"})
    await harness.delete()
    assert isinstance(await harness.go_on(), Stopped)

    await harness.apply(annotations={DELETION_POLICY: "abandon"})

    assert await harness.go_on() == Gone()
    assert await harness.objects() != []


async def deletes_after_its_parent_is_gone(harness: ContractHarness) -> None:
    parent = await bring_target(harness)
    await harness.settle(harness.fixture.referring.spec)
    await harness.store.delete(parent.ref)
    assert await harness.store.get(parent.ref) is None
    await harness.delete()

    assert await harness.go_on() == Gone()
    assert await harness.objects() == []


async def deletes_when_its_last_edit_names_a_parent_that_never_came(harness: ContractHarness) -> None:
    await harness.settle()
    await harness.apply(harness.fixture.referring.spec)
    await harness.step()
    await harness.delete()

    assert await harness.go_on() == Gone()
    assert await harness.objects() == []


async def deletes_what_it_made_after_a_refused_move(harness: ContractHarness) -> None:
    await harness.settle()
    await harness.apply(harness.fixture.moved.spec)
    await harness.step()
    await harness.delete()

    assert await harness.go_on() == Gone()
    assert await harness.objects() == []


async def an_outage_while_deleting_holds_the_finalizer(harness: ContractHarness) -> None:
    held = (await harness.settle()).finalizers
    await harness.delete()
    for outage in OUTAGES:
        for verbs in (["get"], ["delete"]):
            await harness.fail_next_calls(outage, verbs)

            outcome = await harness.step()

            assert isinstance(outcome, Stopped)
            assert isinstance(outcome.error, RemoteUnavailable)
            assert (await harness.resource()).finalizers == held
            await harness.recover()
    assert await harness.go_on() == Gone()
    assert await harness.objects() == []


async def a_deletion_whose_answer_was_lost_is_finished(harness: ContractHarness) -> None:
    await harness.settle()
    await harness.fail_next_calls(CallFault.LOST, ["delete"], times=1)
    await harness.delete()

    await harness.step()

    assert await harness.go_on() == Gone()
    assert await harness.objects() == []


async def a_refused_deletion_keeps_the_resource_and_is_reported(harness: ContractHarness) -> None:
    held = (await harness.settle()).finalizers
    await harness.fail_next_calls(CallFault.REFUSED, ["delete"])
    await harness.delete()

    outcome = await harness.step()

    assert isinstance(outcome, Stopped)
    assert isinstance(outcome.error, RemoteRefused)
    assert (await harness.ready())[:2] == ("False", "DeleteFailed")
    assert (await harness.resource()).finalizers == held
    await harness.recover()
    assert await harness.go_on() == Gone()


async def a_slow_deletion_is_waited_for(harness: ContractHarness) -> None:
    await harness.settle()
    await harness.make_slow()
    await harness.delete()

    waiting, still = await harness.step(), await harness.step()

    for outcome in (waiting, still):
        assert isinstance(outcome, Stopped)
        assert isinstance(outcome.error, OperationRunning)
    assert await harness.ready() == ("False", "Deleting", "Deletion in progress")
    assert await harness.go_on() == Gone()
    assert await harness.objects() == []
    assert harness.writes == ["create", "delete"]


async def a_deletion_that_ends_in_an_error_is_reported_and_sent_again(harness: ContractHarness) -> None:
    await harness.settle()
    await harness.fail_operation("in use")
    await harness.delete()

    failed = await harness.go_on()

    assert isinstance(failed, Stopped)
    assert isinstance(failed.error, RemoteRefused)
    status, reason, message = await harness.ready()
    assert (status, reason) == ("False", "DeleteFailed")
    assert "in use" in message
    assert await harness.go_on() == Gone()
    assert harness.writes == ["create", "delete", "delete"]


async def a_deletion_in_the_middle_of_an_update_waits_for_it(harness: ContractHarness) -> None:
    await harness.settle()
    await harness.make_slow()
    await harness.change()
    await harness.step()
    await harness.delete()

    assert await harness.go_on() == Gone()
    assert await harness.objects() == []


CLAIMS = (
    claim(deletes_the_object_and_is_gone),
    claim(keeps_the_finalizers_of_other_controllers),
    claim(a_finalizer_that_another_writer_took_off_is_put_back_whatever_the_step_comes_to),
    claim(no_finalizer_is_put_on_a_resource_that_is_paused_or_observed),
    claim(a_resource_with_the_deletion_defender_is_deleted_once_that_is_removed),
    claim(a_resource_with_the_deletion_defender_can_be_abandoned),
    claim(deletes_what_is_gone_already),
    claim(goes_without_a_call_when_nothing_was_ever_claimed),
    claim(goes_when_the_create_never_came_through),
    claim(applied_again_after_its_deletion_it_is_created_again),
    claim(applied_again_after_its_deletion_it_starts_anew, Part.MOVE),
    claim(abandons_by_the_annotation),
    claim(abandons_by_its_own_spec, Part.OWN_ABANDON),
    claim(an_observed_object_is_never_deleted),
    claim(a_plan_of_a_deletion_says_whether_the_object_is_deleted),
    claim(a_plan_deletes_nothing_that_will_be_abandoned, Part.ADOPTION),
    claim(a_resource_that_was_paused_during_its_deletion_can_be_released),
    claim(an_invalid_management_can_be_corrected_during_deletion),
    claim(deletes_after_its_parent_is_gone, Part.REFERENCES),
    claim(deletes_when_its_last_edit_names_a_parent_that_never_came, Part.REFERENCES),
    claim(deletes_what_it_made_after_a_refused_move, Part.MOVE),
    claim(an_outage_while_deleting_holds_the_finalizer),
    claim(a_deletion_whose_answer_was_lost_is_finished),
    claim(a_refused_deletion_keeps_the_resource_and_is_reported),
    claim(a_slow_deletion_is_waited_for, Part.OPERATIONS),
    claim(a_deletion_that_ends_in_an_error_is_reported_and_sent_again, Part.OPERATIONS),
    claim(a_deletion_in_the_middle_of_an_update_waits_for_it, Part.OPERATIONS),
)
