"""What becomes of children when their owner goes."""

from typing import Final

from setpoint.core.owner_references import owner_reference
from setpoint.core.plan import Action
from setpoint.engine.management import MANAGEMENT
from setpoint.engine.owners.reconcile import CHILDREN_FINALIZER
from setpoint.engine.resource import Resource
from setpoint.engine.step.outcomes import Gone, Settled, Stopped
from setpoint.errors import OperationRunning
from setpoint.testing.interruptions import after_any_await
from setpoint.testing.owners.owner_contract import OpenOwnerHarness, OwnerClaim, owner_claim
from setpoint.testing.owners.owner_harness import CollectingStore, OwnerHarness


def _finalizers(harness: OwnerHarness) -> tuple[str, ...]:
    return (harness.fixture.owner.finalizer,) if harness.fixture.owner.finalizer else ()


async def without_garbage_collection_its_children_go_first_and_nothing_else(harness: OwnerHarness) -> None:
    await harness.settle()
    assert (await harness.resource()).finalizers == (*_finalizers(harness), CHILDREN_FINALIZER)
    ours = set(await harness.children())
    every = await harness.contents()
    await harness.store.delete(harness.ref)
    plan = await harness.preview()

    assert await harness.step() == Gone()

    assert {(write.action, write.name) for write in plan.writes} == {(Action.DELETE, key) for key in ours}
    assert await harness.store.get(harness.ref) is None
    assert set(await harness.contents()) == set(every) - {str(harness.at(key)) for key in ours}


async def with_garbage_collection_only_those_go_that_have_to_be_gone_before(harness: OwnerHarness) -> None:
    harness.store = CollectingStore(harness.store)
    await harness.settle()
    assert (await harness.resource()).finalizers == _finalizers(harness)
    every = await harness.contents()
    first = [ref for ref in harness.fixture.owner.deleted_first(await harness.resource()) if _finalizers(harness)]
    # Another controller may hold it, so that there is something to plan.
    held = await harness.resource()
    await harness.store.set_finalizers(held, (*held.finalizers, "other.test/holds"))
    await harness.store.delete(harness.ref)
    plan = await harness.preview()

    assert await harness.step() == Gone()

    assert [write.name for write in plan.writes] == [f"{ref.kind}/{ref.name}" for ref in first]
    await harness.store.set_finalizers(await harness.resource(), ())
    assert await harness.store.get(harness.ref) is None
    assert set(await harness.contents()) == set(every) - set(map(str, first))


async def a_child_that_is_gone_already_holds_nothing(harness: OwnerHarness) -> None:
    await harness.settle()
    await _lose_all_children(harness)


async def a_child_that_is_gone_already_holds_nothing_with_garbage_collection_either(harness: OwnerHarness) -> None:
    harness.store = CollectingStore(harness.store)
    await harness.settle()
    await _lose_all_children(harness)


async def _lose_all_children(harness: OwnerHarness) -> None:
    for key in await harness.children():
        await harness.remove(key)
    await harness.store.delete(harness.ref)

    assert await harness.step() == Gone()

    assert await harness.store.get(harness.ref) is None
    assert await harness.step() == Gone()


async def a_child_with_another_controller_stays(harness: OwnerHarness) -> None:
    await harness.settle()
    other = {**owner_reference((await harness.resource()).document), "uid": "another"}
    key = harness.fixture.managed.key
    await harness.plant(key, ownerReferences=[other])
    await harness.store.delete(harness.ref)

    assert await harness.step() == Gone()

    assert await harness.store.get(harness.at(key)) is not None


async def paused_it_stays_with_all_of_its_children(harness: OwnerHarness) -> None:
    await harness.settle()
    await harness.apply(annotations={MANAGEMENT: "paused"})
    before = await harness.contents()
    await harness.store.delete(harness.ref)

    assert isinstance(await harness.step(), Settled)

    assert await harness.contents() == before
    assert (await harness.preview()).is_empty


async def a_child_with_a_finalizer_is_waited_for(harness: OwnerHarness) -> None:
    await harness.settle()
    key = harness.fixture.managed.key
    await harness.store.set_finalizers(await harness.child(key), ("other.test/holds",))
    await harness.store.delete(harness.ref)

    outcome = await harness.step()

    assert isinstance(outcome, Stopped)
    assert isinstance(outcome.error, OperationRunning)
    assert str(harness.at(key)) in str(outcome.error)
    assert CHILDREN_FINALIZER in (await harness.resource()).finalizers
    assert set(await harness.children()) == {key}
    await harness.store.set_finalizers(await harness.child(key), ())
    assert await harness.step() == Gone()


async def killed_after_any_await_a_deletion_ends(open_harness: OpenOwnerHarness) -> None:
    async def is_killed_after(awaits: int) -> bool:
        async with open_harness() as harness:
            await harness.settle()
            await harness.store.delete(harness.ref)
            was_killed = await harness.killed_after(awaits)
            await harness.restart()

            assert await harness.step() == Gone()

            assert await harness.store.get(harness.ref) is None
            assert set(await harness.contents()) == {str(Resource(one).ref) for one in harness.fixture.given}
            return was_killed

    await after_any_await(is_killed_after, least=2)


CLAIMS: Final[tuple[OwnerClaim, ...]] = (
    owner_claim(without_garbage_collection_its_children_go_first_and_nothing_else),
    owner_claim(with_garbage_collection_only_those_go_that_have_to_be_gone_before),
    owner_claim(a_child_that_is_gone_already_holds_nothing),
    owner_claim(a_child_that_is_gone_already_holds_nothing_with_garbage_collection_either),
    owner_claim(a_child_with_another_controller_stays),
    owner_claim(paused_it_stays_with_all_of_its_children),
    owner_claim(a_child_with_a_finalizer_is_waited_for),
    OwnerClaim("killed after any await a deletion ends", killed_after_any_await_a_deletion_ends, is_long=True),
)
