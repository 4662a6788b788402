"""What becomes of children when their owner goes."""

from dataclasses import replace
from pathlib import Path

import pytest

from setpoint.core.owner_references import owner_reference
from setpoint.core.plan import Action
from setpoint.engine.drivers.runner import StepRunner
from setpoint.engine.owners.reconcile import CHILDREN_FINALIZER
from setpoint.engine.resource import Resource
from setpoint.engine.step.outcomes import Gone, Settled, Stopped
from setpoint.errors import OperationRunning
from tests.engine.owners.gallery import GalleryOwner
from tests.engine.owners.owner_fixtures import WEBSITE
from tests.engine.owners.owner_harness import Collecting, OwnerHarness
from tests.engine.owners.settings import Setting, everywhere
from tests.engine.owners.website import WebsiteOwner


def finalizers(harness: OwnerHarness) -> tuple[str, ...]:
    return (harness.fixture.owner.finalizer,) if harness.fixture.owner.finalizer else ()


@everywhere
def test_without_garbage_collection_its_children_go_first_and_nothing_else(setting: Setting) -> None:
    async def scenario(harness: OwnerHarness) -> None:
        await harness.settle()
        assert (await harness.resource()).finalizers == (*finalizers(harness), CHILDREN_FINALIZER)
        ours = set(await harness.children())
        every = await harness.contents()
        await harness.store.delete(harness.ref)
        plan = await harness.preview()

        assert await harness.step() == Gone()

        assert {(write.action, write.name) for write in plan.writes} == {(Action.DELETE, key) for key in ours}
        assert await harness.store.get(harness.ref) is None
        assert set(await harness.contents()) == set(every) - {str(harness.at(key)) for key in ours}

    setting.play(scenario)


@everywhere
def test_with_garbage_collection_only_those_go_that_have_to_be_gone_before(setting: Setting) -> None:
    async def scenario(harness: OwnerHarness) -> None:
        harness.store = Collecting(harness.store)
        await harness.settle()
        assert (await harness.resource()).finalizers == finalizers(harness)
        every = await harness.contents()
        first = [ref for ref in harness.fixture.owner.deleted_first(await harness.resource()) if finalizers(harness)]
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

    setting.play(scenario)


@everywhere
@pytest.mark.parametrize("collects", [True, False])
def test_a_child_that_is_gone_already_holds_nothing(setting: Setting, collects: bool) -> None:
    async def scenario(harness: OwnerHarness) -> None:
        if collects:
            harness.store = Collecting(harness.store)
        await harness.settle()
        for key in await harness.children():
            await harness.remove(key)
        await harness.store.delete(harness.ref)

        assert await harness.step() == Gone()

        assert await harness.store.get(harness.ref) is None
        assert await harness.step() == Gone()

    setting.play(scenario)


@everywhere
def test_a_child_with_another_controller_stays(setting: Setting) -> None:
    async def scenario(harness: OwnerHarness) -> None:
        await harness.settle()
        other = {**owner_reference((await harness.resource()).document), "uid": "another"}
        key = harness.fixture.managed.key
        await harness.plant(key, ownerReferences=[other])
        await harness.store.delete(harness.ref)

        assert await harness.step() == Gone()

        assert await harness.store.get(harness.at(key)) is not None

    setting.play(scenario)


@everywhere
def test_killed_at_any_await_a_deletion_ends(setting: Setting) -> None:
    async def scenario(harness: OwnerHarness) -> None:
        for awaits in range(1, 60):
            await harness.begin()
            await harness.settled()
            await harness.store.delete(harness.ref)
            was_killed = await harness.killed_after(awaits)
            await harness.restart()

            assert await harness.step() == Gone()

            assert await harness.store.get(harness.ref) is None
            kept = {str(Resource(one).ref) for one in (*harness.fixture.others, harness.fixture.source)}
            assert set(await harness.contents()) == kept
            if not was_killed:
                assert awaits > 3
                return
        pytest.fail("a step never ended")

    setting.play(scenario)


@everywhere
def test_paused_it_stays_with_all_of_its_children(setting: Setting) -> None:
    async def scenario(harness: OwnerHarness) -> None:
        await harness.settle()
        await harness.apply(annotations={"setpoint.dev/management": "paused"})
        before = await harness.contents()
        await harness.store.delete(harness.ref)

        assert isinstance(await harness.step(), Settled)

        assert await harness.contents() == before
        assert (await harness.preview()).is_empty

    setting.play(scenario)


@everywhere
def test_a_child_with_a_finalizer_is_waited_for(setting: Setting) -> None:
    async def scenario(harness: OwnerHarness) -> None:
        await harness.settle()
        key = harness.fixture.readiness_child
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

    setting.play(scenario)


def test_a_run_takes_the_children_of_children_along(tmp_path: Path) -> None:
    async def scenario(harness: OwnerHarness) -> None:
        harness.owners = (GalleryOwner(),)
        await harness.begin()
        made = await StepRunner(harness.engine).until_done([harness.ref])
        assert {str(ref) for ref in made} == {"Website web/shop", "Gallery web/shop"}
        assert (await harness.conditions())["Ready"]["status"] == "True"
        assert await harness.store.get(harness.at("ConfigMap/shop-index")) is not None
        revision = await harness.revision()
        await StepRunner(harness.engine).until_done([harness.ref])
        assert await harness.revision() == revision

        await harness.store.delete(harness.ref)
        gone = await StepRunner(harness.engine).until_done([harness.ref])

        assert set(gone.values()) == {Gone()}
        assert set(await harness.contents()) == {"Secret web/cert"}

    Setting(WEBSITE, is_on_sqlite=False, folder=tmp_path).play(scenario)


def test_an_owner_with_a_finalizer_of_its_own_waits_for_what_goes_first(tmp_path: Path) -> None:
    fixture = replace(WEBSITE, owner=WebsiteOwner(finalizer="web.test/gallery"))

    async def scenario(harness: OwnerHarness) -> None:
        harness.store = Collecting(harness.store)
        await harness.settle()
        await harness.store.delete(harness.ref)
        assert [write.name for write in (await harness.preview()).writes] == ["Gallery/shop"]

        assert await harness.step() == Gone()

        assert await harness.store.get(harness.at("Gallery/shop")) is None
        assert await harness.store.get(harness.at("ConfigMap/shop-page")) is not None

    Setting(fixture, is_on_sqlite=False, folder=tmp_path).play(scenario)
