"""The lifecycle of a resource that is to go: by the location on record, verified by absence."""

import pytest

from setpoint.engine.context import DELETION_DEFENDER, DELETION_POLICY, FINALIZER, MANAGEMENT, Gone, Settled, Stopped
from setpoint.engine.step.reconcile import preview
from setpoint.errors import DeletionHeld, OperationRunning, RemoteRefused, RemoteUnavailable
from tests.engine.bench import Bench
from tests.engine.claim import claim
from tests.engine.lifecycle_waiting import bring_target
from tests.engine.stand import OUTAGES, Part, Trouble


async def deletes_the_object_and_is_gone(bench: Bench) -> None:
    await bench.settle()
    await bench.delete()

    outcome = await bench.go_on()

    assert outcome == Gone()
    assert bench.stand.objects == []
    assert bench.stand.writes == ["create", "delete"]
    assert bench.stand.calls[-1] == "get"
    assert await bench.is_gone()


async def leaves_the_finalizers_of_others_alone(bench: Bench) -> None:
    await bench.store.set_finalizers(await bench.apply(), ("example.com/other",))
    assert set((await bench.settle()).finalizers) == {"example.com/other", FINALIZER}
    await bench.delete()

    assert await bench.go_on() == Gone()
    assert await bench.step() == Gone()
    assert (await bench.resource()).finalizers == ("example.com/other",)
    assert await bench.ready() == ("False", "Deleted", "Successfully deleted")
    assert bench.stand.objects == []


async def what_config_connector_defends_is_deleted_once_it_lets_go(bench: Bench) -> None:
    await bench.store.set_finalizers(await bench.apply(), (DELETION_DEFENDER,))
    await bench.settle()
    await bench.delete()

    held = await bench.step()

    assert isinstance(held, Stopped)
    assert DELETION_DEFENDER in str(held.error)
    with pytest.raises(DeletionHeld, match=DELETION_DEFENDER):
        await preview(bench.stand.ref, bench.engine)
    status, reason, message = await bench.ready()
    assert (status, reason, DELETION_DEFENDER in message) == ("False", "Deleting", True)
    assert bench.stand.writes == ["create"]
    await bench.store.set_finalizers(await bench.resource(), (FINALIZER,))
    assert await bench.go_on() == Gone()
    assert bench.stand.objects == []


async def what_config_connector_defends_can_be_abandoned(bench: Bench) -> None:
    await bench.store.set_finalizers(await bench.apply(), (DELETION_DEFENDER,))
    await bench.settle()
    before = bench.stand.objects
    await bench.delete()
    await bench.step()
    await bench.apply(annotations={DELETION_POLICY: "abandon"})

    assert await bench.go_on() == Gone()
    assert (await bench.resource()).finalizers == (DELETION_DEFENDER,)
    assert bench.stand.objects == before


async def deletes_what_is_gone_already(bench: Bench) -> None:
    await bench.settle()
    bench.stand.remove()
    await bench.delete()

    assert await bench.go_on() == Gone()
    assert await bench.is_gone()
    assert bench.stand.writes == ["create"]


async def goes_without_a_call_when_nothing_was_ever_claimed(bench: Bench) -> None:
    await bench.apply()
    await bench.delete()

    assert await bench.go_on() == Gone()
    assert bench.stand.calls == []


async def goes_when_the_create_never_came_through(bench: Bench) -> None:
    bench.stand.trouble(Trouble.CUT, ["create"])
    await bench.apply()
    await bench.step()
    await bench.delete()

    assert await bench.go_on() == Gone()
    assert await bench.is_gone()
    assert "delete" not in bench.stand.writes


async def applied_again_after_its_deletion_it_starts_anew(bench: Bench) -> None:
    await bench.settle()
    await bench.delete()
    await bench.go_on()

    resource = await bench.settle(bench.stand.moved)

    assert bench.stand.objects == [bench.stand.moved["resourceID"]]
    assert resource.generation == 1


async def abandons_by_the_annotation(bench: Bench) -> None:
    await bench.settle(annotations={DELETION_POLICY: "abandon"})
    before = bench.stand.objects
    await bench.delete()

    assert await bench.go_on() == Gone()
    assert bench.stand.objects == before
    assert await bench.is_gone()


async def abandons_by_its_own_spec(bench: Bench) -> None:
    await bench.settle(bench.stand.abandoning)
    before = bench.stand.objects
    await bench.delete()

    assert await bench.go_on() == Gone()
    assert bench.stand.objects == before
    assert await bench.is_gone()


async def what_is_only_observed_is_never_deleted(bench: Bench) -> None:
    await bench.settle()
    before = bench.stand.objects
    await bench.apply(annotations={MANAGEMENT: "observe"})
    await bench.delete()

    assert await bench.go_on() == Gone()
    assert bench.stand.objects == before


async def a_plan_of_a_deletion_says_what_becomes_of_the_object(bench: Bench) -> None:
    await bench.settle()
    await bench.delete()

    going = await preview(bench.stand.ref, bench.engine)
    bench.stand.remove()
    gone = await preview(bench.stand.ref, bench.engine)

    assert [write.name for write in going.writes] == ["delete"]
    assert (gone.writes, gone.because.endswith("is gone already")) == ((), True)
    assert bench.stand.writes == ["create"]


async def a_plan_deletes_nothing_that_will_be_abandoned(bench: Bench) -> None:
    for mode in ({DELETION_POLICY: "abandon"}, {MANAGEMENT: "observe"}, {MANAGEMENT: "paused"}):
        await bench.settle()
        await bench.apply(annotations=mode)
        await bench.delete()

        plan = await preview(bench.stand.ref, bench.engine)

        assert (plan.writes, bool(plan.because)) == ((), True)
        if mode.get(MANAGEMENT) == "paused":
            return
        await bench.go_on()
    raise AssertionError("paused was not reached")


async def what_was_paused_while_it_went_can_be_let_go(bench: Bench) -> None:
    await bench.settle()
    await bench.apply(annotations={MANAGEMENT: "paused"})
    await bench.delete()
    assert isinstance(await bench.go_on(), Settled)
    assert not await bench.is_gone()

    await bench.apply()

    assert await bench.go_on() == Gone()
    assert bench.stand.objects == []
    assert await bench.is_gone()


async def a_wrong_word_for_its_management_can_be_mended_while_it_goes(bench: Bench) -> None:
    await bench.settle()
    await bench.apply(annotations={MANAGEMENT: "pausd"})
    await bench.delete()
    assert isinstance(await bench.go_on(), Stopped)

    await bench.apply(annotations={DELETION_POLICY: "abandon"})

    assert await bench.go_on() == Gone()
    assert bench.stand.objects != []


async def deletes_after_its_parent_is_gone(bench: Bench) -> None:
    parent = await bring_target(bench)
    await bench.settle(bench.stand.referring.spec)
    await bench.store.delete(parent.ref)
    assert await bench.store.get(parent.ref) is None
    await bench.delete()

    assert await bench.go_on() == Gone()
    assert bench.stand.objects == []


async def deletes_when_its_last_edit_names_a_parent_that_never_came(bench: Bench) -> None:
    await bench.settle()
    await bench.apply(bench.stand.referring.spec)
    await bench.step()
    await bench.delete()

    assert await bench.go_on() == Gone()
    assert bench.stand.objects == []


async def deletes_what_it_made_after_a_refused_move(bench: Bench) -> None:
    await bench.settle()
    await bench.apply(bench.stand.moved)
    await bench.step()
    await bench.delete()

    assert await bench.go_on() == Gone()
    assert bench.stand.objects == []


async def an_outage_while_deleting_holds_the_finalizer(bench: Bench) -> None:
    held = (await bench.settle()).finalizers
    await bench.delete()
    for outage in OUTAGES:
        for verbs in (["get"], ["delete"]):
            bench.stand.trouble(outage, verbs)

            outcome = await bench.step()

            assert isinstance(outcome, Stopped)
            assert isinstance(outcome.error, RemoteUnavailable)
            assert (await bench.resource()).finalizers == held
            bench.stand.calm()
    assert await bench.go_on() == Gone()
    assert bench.stand.objects == []


async def a_deletion_whose_answer_was_lost_is_finished(bench: Bench) -> None:
    await bench.settle()
    bench.stand.trouble(Trouble.LOST, ["delete"], times=1)
    await bench.delete()

    await bench.step()

    assert await bench.go_on() == Gone()
    assert bench.stand.objects == []


async def a_refused_deletion_holds_the_resource_and_is_told(bench: Bench) -> None:
    held = (await bench.settle()).finalizers
    bench.stand.trouble(Trouble.REFUSED, ["delete"])
    await bench.delete()

    outcome = await bench.step()

    assert isinstance(outcome, Stopped)
    assert isinstance(outcome.error, RemoteRefused)
    assert (await bench.ready())[:2] == ("False", "DeleteFailed")
    assert (await bench.resource()).finalizers == held
    bench.stand.calm()
    assert await bench.go_on() == Gone()


async def a_slow_deletion_is_waited_for(bench: Bench) -> None:
    await bench.settle()
    bench.stand.make_slow()
    await bench.delete()

    waiting, still = await bench.step(), await bench.step()

    for outcome in (waiting, still):
        assert isinstance(outcome, Stopped)
        assert isinstance(outcome.error, OperationRunning)
    assert await bench.ready() == ("False", "Deleting", "Deletion in progress")
    assert await bench.go_on() == Gone()
    assert bench.stand.objects == []
    assert bench.stand.writes == ["create", "delete"]


async def a_deletion_that_ends_in_an_error_is_told_and_sent_again(bench: Bench) -> None:
    await bench.settle()
    bench.stand.fail_operation("in use")
    await bench.delete()

    failed = await bench.go_on()

    assert isinstance(failed, Stopped)
    assert isinstance(failed.error, RemoteRefused)
    status, reason, message = await bench.ready()
    assert (status, reason) == ("False", "DeleteFailed")
    assert "in use" in message
    assert await bench.go_on() == Gone()
    assert bench.stand.writes == ["create", "delete", "delete"]


async def a_deletion_in_the_middle_of_an_update_waits_for_it(bench: Bench) -> None:
    await bench.settle()
    bench.stand.make_slow()
    await bench.change()
    await bench.step()
    await bench.delete()

    assert await bench.go_on() == Gone()
    assert bench.stand.objects == []


CLAIMS = (
    claim(deletes_the_object_and_is_gone),
    claim(leaves_the_finalizers_of_others_alone),
    claim(what_config_connector_defends_is_deleted_once_it_lets_go),
    claim(what_config_connector_defends_can_be_abandoned),
    claim(deletes_what_is_gone_already),
    claim(goes_without_a_call_when_nothing_was_ever_claimed),
    claim(goes_when_the_create_never_came_through),
    claim(applied_again_after_its_deletion_it_starts_anew),
    claim(abandons_by_the_annotation),
    claim(abandons_by_its_own_spec, Part.OWN_ABANDON),
    claim(what_is_only_observed_is_never_deleted),
    claim(a_plan_of_a_deletion_says_what_becomes_of_the_object),
    claim(a_plan_deletes_nothing_that_will_be_abandoned),
    claim(what_was_paused_while_it_went_can_be_let_go),
    claim(a_wrong_word_for_its_management_can_be_mended_while_it_goes),
    claim(deletes_after_its_parent_is_gone),
    claim(deletes_when_its_last_edit_names_a_parent_that_never_came),
    claim(deletes_what_it_made_after_a_refused_move),
    claim(an_outage_while_deleting_holds_the_finalizer),
    claim(a_deletion_whose_answer_was_lost_is_finished),
    claim(a_refused_deletion_holds_the_resource_and_is_told),
    claim(a_slow_deletion_is_waited_for, Part.OPERATIONS),
    claim(a_deletion_that_ends_in_an_error_is_told_and_sent_again, Part.OPERATIONS),
    claim(a_deletion_in_the_middle_of_an_update_waits_for_it, Part.OPERATIONS),
)
