"""What becomes of children when their owner goes."""

from dataclasses import replace
from pathlib import Path

import pytest

from setpoint.core.owner_references import owner_reference
from setpoint.core.plan import Action
from setpoint.engine.context import Gone, Settled, Stopped
from setpoint.engine.drivers.runner import StepRunner
from setpoint.engine.owners.reconcile import CHILDREN_FINALIZER
from setpoint.engine.resource import Resource
from setpoint.errors import OperationRunning
from tests.engine.owners.gallery import GalleryOwner
from tests.engine.owners.home import Collecting, Home
from tests.engine.owners.settings import Setting, everywhere
from tests.engine.owners.stands import WEBSITE
from tests.engine.owners.website import WebsiteOwner


def finalizers(home: Home) -> tuple[str, ...]:
    return (home.stand.owner.finalizer,) if home.stand.owner.finalizer else ()


@everywhere
def test_where_nobody_collects_its_children_go_first_and_nothing_else(setting: Setting) -> None:
    async def scenario(home: Home) -> None:
        await home.settle()
        assert (await home.resource()).finalizers == (*finalizers(home), CHILDREN_FINALIZER)
        ours = set(await home.children())
        every = await home.contents()
        await home.store.delete(home.ref)
        told = await home.preview()

        assert await home.step() == Gone()

        assert {(write.action, write.name) for write in told.writes} == {(Action.DELETE, key) for key in ours}
        assert await home.store.get(home.ref) is None
        assert set(await home.contents()) == set(every) - {str(home.at(key)) for key in ours}

    setting.play(scenario)


@everywhere
def test_where_somebody_collects_only_those_go_that_have_to_be_gone_before(setting: Setting) -> None:
    async def scenario(home: Home) -> None:
        home.store = Collecting(home.store)
        await home.settle()
        assert (await home.resource()).finalizers == finalizers(home)
        every = await home.contents()
        first = [ref for ref in home.stand.owner.deleted_first(await home.resource()) if finalizers(home)]
        # Others may hold it, so that there is something to plan.
        held = await home.resource()
        await home.store.set_finalizers(held, (*held.finalizers, "somebody.test/holds"))
        await home.store.delete(home.ref)
        told = await home.preview()

        assert await home.step() == Gone()
        assert [write.name for write in told.writes] == [f"{ref.kind}/{ref.name}" for ref in first]
        await home.store.set_finalizers(await home.resource(), ())
        assert await home.store.get(home.ref) is None
        assert set(await home.contents()) == set(every) - set(map(str, first))

    setting.play(scenario)


@everywhere
@pytest.mark.parametrize("collects", [True, False])
def test_what_is_gone_already_holds_nobody(setting: Setting, collects: bool) -> None:
    async def scenario(home: Home) -> None:
        if collects:
            home.store = Collecting(home.store)
        await home.settle()
        for key in await home.children():
            await home.remove(key)
        await home.store.delete(home.ref)

        assert await home.step() == Gone()

        assert await home.store.get(home.ref) is None
        assert await home.step() == Gone()

    setting.play(scenario)


@everywhere
def test_what_is_anothers_by_now_stays(setting: Setting) -> None:
    async def scenario(home: Home) -> None:
        await home.settle()
        other = {**owner_reference((await home.resource()).document), "uid": "another"}
        key = home.stand.managed.key
        await home.plant(key, ownerReferences=[other])
        await home.store.delete(home.ref)

        assert await home.step() == Gone()

        assert await home.store.get(home.at(key)) is not None

    setting.play(scenario)


@everywhere
def test_killed_at_any_await_a_deletion_ends(setting: Setting) -> None:
    async def scenario(home: Home) -> None:
        for awaits in range(1, 60):
            await home.begin()
            await home.settled()
            await home.store.delete(home.ref)
            was_killed = await home.killed_after(awaits)
            await home.restart()

            assert await home.step() == Gone()

            assert await home.store.get(home.ref) is None
            kept = {str(Resource(one).ref) for one in (*home.stand.others, home.stand.source)}
            assert set(await home.contents()) == kept
            if not was_killed:
                assert awaits > 3
                return
        pytest.fail("a step never ended")

    setting.play(scenario)


@everywhere
def test_paused_it_stays_with_all_of_its_children(setting: Setting) -> None:
    async def scenario(home: Home) -> None:
        await home.settle()
        await home.apply(annotations={"setpoint.dev/management": "paused"})
        before = await home.contents()
        await home.store.delete(home.ref)

        assert isinstance(await home.step(), Settled)

        assert await home.contents() == before
        assert (await home.preview()).is_empty

    setting.play(scenario)


@everywhere
def test_a_child_that_somebody_holds_is_waited_for(setting: Setting) -> None:
    async def scenario(home: Home) -> None:
        await home.settle()
        key = home.stand.teller
        await home.store.set_finalizers(await home.child(key), ("somebody.test/holds",))
        await home.store.delete(home.ref)

        outcome = await home.step()

        assert isinstance(outcome, Stopped)
        assert isinstance(outcome.error, OperationRunning)
        assert str(home.at(key)) in str(outcome.error)
        assert CHILDREN_FINALIZER in (await home.resource()).finalizers
        assert set(await home.children()) == {key}
        await home.store.set_finalizers(await home.child(key), ())
        assert await home.step() == Gone()

    setting.play(scenario)


def test_a_run_takes_the_children_of_children_along(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        home.owners = (GalleryOwner(),)
        await home.begin()
        made = await StepRunner(home.engine).until_done([home.ref])
        assert {str(ref) for ref in made} == {"Website web/shop", "Gallery web/shop"}
        assert (await home.conditions())["Ready"]["status"] == "True"
        assert await home.store.get(home.at("ConfigMap/shop-index")) is not None
        revision = await home.revision()
        await StepRunner(home.engine).until_done([home.ref])
        assert await home.revision() == revision

        await home.store.delete(home.ref)
        gone = await StepRunner(home.engine).until_done([home.ref])

        assert set(gone.values()) == {Gone()}
        assert set(await home.contents()) == {"Secret web/cert"}

    Setting(WEBSITE, is_on_sqlite=False, folder=tmp_path).play(scenario)


def test_an_owner_with_a_finalizer_of_its_own_waits_for_what_goes_first(tmp_path: Path) -> None:
    stand = replace(WEBSITE, owner=WebsiteOwner(finalizer="web.test/gallery"))

    async def scenario(home: Home) -> None:
        home.store = Collecting(home.store)
        await home.settle()
        await home.store.delete(home.ref)
        assert [write.name for write in (await home.preview()).writes] == ["Gallery/shop"]

        assert await home.step() == Gone()

        assert await home.store.get(home.at("Gallery/shop")) is None
        assert await home.store.get(home.at("ConfigMap/shop-page")) is not None

    Setting(stand, is_on_sqlite=False, folder=tmp_path).play(scenario)
