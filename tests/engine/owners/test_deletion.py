"""What becomes of children when their owner goes, beyond the contract: children of children, and finalizers."""

from dataclasses import replace
from pathlib import Path

from setpoint.engine.drivers.runner import StepRunner
from setpoint.engine.step.outcomes import Gone
from setpoint.testing.owners.owner_harness import CollectingStore, OwnerHarness
from tests.engine.owners.gallery import GalleryOwner
from tests.engine.owners.owner_fixtures import WEBSITE
from tests.engine.owners.settings import Setting
from tests.engine.owners.website import WebsiteOwner


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
        harness.store = CollectingStore(harness.store)
        await harness.settle()
        await harness.store.delete(harness.ref)
        assert [write.name for write in (await harness.preview()).writes] == ["Gallery/shop"]

        assert await harness.step() == Gone()

        assert await harness.store.get(harness.at("Gallery/shop")) is None
        assert await harness.store.get(harness.at("ConfigMap/shop-page")) is not None

    Setting(fixture, is_on_sqlite=False, folder=tmp_path).play(scenario)
