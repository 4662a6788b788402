"""What becomes of live children: whichever writer changes them, an owner corrects what is its own and no more."""

from typing import Any

import pytest

from setpoint.core.plan import Action
from setpoint.core.schema.policy import Rule
from setpoint.core.values.json_types import MISSING
from setpoint.core.values.paths import Path, get_at
from setpoint.engine.step.outcomes import Settled
from tests.engine.owners.owner_harness import OwnerHarness
from tests.engine.owners.settings import Setting, everywhere, where_edits_are_reported, where_something_is_made_once

LABELS, OWNERS = Path(("metadata", "labels")), Path(("metadata", "ownerReferences"))


@everywhere
def test_a_status_of_a_child_that_says_nothing_new_is_no_reason_to_write(setting: Setting) -> None:
    async def scenario(harness: OwnerHarness) -> None:
        await harness.settle()
        await harness.set_child_status(harness.fixture.readiness_child, {"note": "not part of readiness"})
        revision = await harness.revision()

        assert (await harness.settled()).plan.is_empty

        assert await harness.revision() == revision

    setting.play(scenario)


@everywhere
def test_how_a_child_stands_moves_the_status_of_the_owner_and_nothing_else(setting: Setting) -> None:
    async def scenario(harness: OwnerHarness) -> None:
        await harness.settle()
        readiness = []
        for status in (harness.fixture.well, {}, harness.fixture.well):
            await harness.set_child_status(harness.fixture.readiness_child, status)
            before = await harness.contents()
            outcome = await harness.settled()
            readiness.append((await harness.conditions())["Ready"]["status"])

            assert await harness.contents() == before
            assert (outcome.requeue_after is None) == (outcome.ready.status == "True")
            revision = await harness.revision()
            await harness.settled()
            assert await harness.revision() == revision

        assert readiness == ["True", "False", "True"]

    setting.play(scenario)


@everywhere
def test_a_child_that_another_writer_deleted_comes_back(setting: Setting) -> None:
    async def scenario(harness: OwnerHarness) -> None:
        await harness.settle()
        for key in await harness.children():
            await harness.remove(key)

            outcome = await harness.settled()

            assert [(write.action, write.name) for write in outcome.plan.writes] == [(Action.CREATE, key)]
            assert (await harness.settled()).plan.is_empty

    setting.play(scenario)


@everywhere
def test_a_child_on_its_way_out_is_made_again_once_it_is_gone(setting: Setting) -> None:
    async def scenario(harness: OwnerHarness) -> None:
        await harness.settle()
        key = harness.fixture.readiness_child
        old = await harness.store.set_finalizers(await harness.child(key), ("other.test/holds",))
        await harness.remove(key)
        await harness.change()
        await harness.settled()
        assert old is not None
        assert (await harness.child(key)).uid == old.uid

        await harness.store.set_finalizers(await harness.child(key), ())
        outcome = await harness.settled()

        assert [(write.action, write.name) for write in outcome.plan.writes] == [(Action.CREATE, key)]
        assert (await harness.conditions())["Edited"]["status"] == "False"

    setting.play(scenario)


@everywhere
def test_all_of_them_come_back_at_once(setting: Setting) -> None:
    async def scenario(harness: OwnerHarness) -> None:
        await harness.settle()
        every = await harness.children()
        for key in every:
            await harness.remove(key)

        await harness.settled()

        assert set(await harness.children()) == set(every)

    setting.play(scenario)


@everywhere
def test_a_managed_field_is_reverted_and_reported(setting: Setting) -> None:
    async def scenario(harness: OwnerHarness) -> None:
        await harness.settle()
        before = (await harness.child(harness.fixture.managed.key)).document
        await harness.drift()

        outcome = await harness.settled()

        assert [write.name for write in outcome.plan.writes] == [harness.fixture.managed.key]
        after = (await harness.child(harness.fixture.managed.key)).document
        assert after.get("spec") == before.get("spec")
        assert after.get("data") == before.get("data")
        assert f"{harness.at(harness.fixture.managed.key).kind}Updated" in await harness.reasons()
        assert ("Reverted" in await harness.reasons()) == harness.fixture.reports_edits
        rules = {change.rule for change in outcome.plan.changes}
        assert rules == ({Rule.MANAGED} if harness.fixture.reports_edits else {Rule.GENERATED})

    setting.play(scenario)


@everywhere
def test_an_edit_stays_through_everything_that_follows(setting: Setting) -> None:
    async def scenario(harness: OwnerHarness) -> None:
        await harness.settle()
        await harness.write()
        await harness.settled()
        edited = (await harness.conditions())["Edited"]
        for deed in (harness.change, harness.drift, harness.rotate, harness.restart):
            await deed()
            await harness.settled()

        live = (await harness.child(harness.fixture.theirs.key)).document
        assert get_at(live, harness.fixture.theirs.path) == harness.fixture.theirs.value
        assert (edited["status"] == "True") == harness.fixture.reports_edits
        if harness.fixture.reports_edits:
            assert edited["message"].endswith(str(harness.fixture.theirs.path))
            assert (await harness.conditions())["Edited"]["status"] == "True"

    setting.play(scenario)


@everywhere
def test_labels_are_reverted_and_labels_of_other_writers_stay(setting: Setting) -> None:
    async def scenario(harness: OwnerHarness) -> None:
        await harness.settle()
        labelled = {key: one for key, one in (await harness.children()).items() if harness.fixture.label in one.labels}
        for key in labelled:
            await harness.edit(key, LABELS, {"mine": "1"})

            outcome = await harness.settled()

            assert [write.name for write in outcome.plan.writes] == [key]
            assert (await harness.child(key)).labels == {"mine": "1", **labelled[key].labels}
        assert labelled

    setting.play(scenario)


@everywhere
def test_a_child_without_an_owner_is_adopted_with_its_contents(setting: Setting) -> None:
    async def scenario(harness: OwnerHarness) -> None:
        await harness.settle()
        await harness.write()
        key, uid = harness.fixture.theirs.key, (await harness.resource()).uid
        # A store without a record of an earlier owner.
        await harness.plant(key)
        resource = await harness.resource()
        await harness.store.update_status(resource, {})

        outcome = await harness.settled()

        assert [write.name for write in outcome.plan.writes] == [key]
        adopted = (await harness.children())[key]
        metadata = adopted.document["metadata"]
        assert isinstance(metadata, dict)
        assert [one["uid"] for one in metadata["ownerReferences"]] == [uid]
        assert str(harness.fixture.theirs.value) in str(adopted.document["spec"])
        assert (await harness.settled()).plan.is_empty

    setting.play(scenario)


@everywhere
def test_a_removed_owner_reference_is_set_again(setting: Setting) -> None:
    async def scenario(harness: OwnerHarness) -> None:
        await harness.settle()
        await harness.edit(harness.fixture.managed.key, OWNERS, MISSING)

        outcome = await harness.settled()

        assert [write.name for write in outcome.plan.writes] == [harness.fixture.managed.key]
        assert harness.fixture.managed.key in await harness.children()

    setting.play(scenario)


@where_something_is_made_once
@pytest.mark.parametrize("owner_references", [[], [{"kind": "X", "name": "x", "uid": "x", "controller": True}]])
def test_a_create_only_child_is_never_updated_whichever_owner_it_has(
    setting: Setting, owner_references: list[Any]
) -> None:
    async def scenario(harness: OwnerHarness) -> None:
        await harness.settle()
        planted = await harness.plant(harness.fixture.once, ownerReferences=owner_references)

        assert (await harness.settled()).plan.is_empty

        assert (await harness.child(harness.fixture.once)).revision == planted.revision

    setting.play(scenario)


@where_something_is_made_once
def test_a_create_only_child_belongs_to_its_editors_after_creation(setting: Setting) -> None:
    async def scenario(harness: OwnerHarness) -> None:
        await harness.settle()
        await harness.edit(harness.fixture.once, Path(("data",)), {"mine": "eA=="})
        before = await harness.contents()
        await harness.change()
        await harness.settled()

        assert (await harness.child(harness.fixture.once)).revision == before[str(harness.at(harness.fixture.once))]

    setting.play(scenario)


@where_something_is_made_once
def test_a_child_that_is_created_again_is_reported_only_if_the_old_one_was(setting: Setting) -> None:
    async def scenario(harness: OwnerHarness) -> None:
        await harness.settle()
        old = (await harness.child(harness.fixture.once)).document["data"]
        await harness.remove(harness.fixture.once)

        await harness.settled()

        assert (await harness.child(harness.fixture.once)).document["data"] != old
        assert "MadeAnew" in await harness.reasons()

    setting.play(scenario)


@everywhere
@pytest.mark.parametrize("word", ["observe", "paused"])
def test_held_back_it_writes_no_child(setting: Setting, word: str) -> None:
    async def scenario(harness: OwnerHarness) -> None:
        await harness.begin(**{"setpoint.dev/management": word})
        before = await harness.contents()
        outcome = await harness.step()
        assert isinstance(outcome, Settled)
        assert await harness.contents() == before
        assert (await harness.preview()).is_empty

        await harness.apply()
        await harness.settled()
        await harness.apply(harness.fixture.then, annotations={"setpoint.dev/management": word})
        await harness.drift()
        before = await harness.contents()

        assert isinstance(await harness.step(), Settled)

        assert await harness.contents() == before
        assert (await harness.preview()).is_empty
        revision = await harness.revision()
        await harness.step()
        assert await harness.revision() == revision
        ready = (await harness.conditions())["Ready"]
        assert ready["reason"] == {"observe": "Observed", "paused": "Paused"}[word]
        assert word == "paused" or str(harness.fixture.managed.path.steps[-1]) in ready["message"]

    setting.play(scenario)


@where_edits_are_reported
@pytest.mark.parametrize(("merge", "comes_back"), [("two-way", True), ("three-way", False)])
def test_without_a_memory_edits_stay_and_removals_do_not(setting: Setting, merge: str, comes_back: bool) -> None:
    async def scenario(harness: OwnerHarness) -> None:
        await harness.begin(**{"setpoint.dev/merge": merge})
        await harness.settled()
        await harness.write()
        await harness.edit(harness.fixture.theirs.key, harness.fixture.entries, {})

        await harness.settled()

        live, conditions = await harness.child(harness.fixture.theirs.key), await harness.conditions()
        assert bool(live.spec[str(harness.fixture.entries.steps[-1])]) is comes_back
        assert get_at(live.document, harness.fixture.theirs.path) == harness.fixture.theirs.value
        assert (str(harness.fixture.entries) in conditions["Edited"]["message"]) is not comes_back
        assert str(harness.fixture.theirs.path) in conditions["Edited"]["message"]

    setting.play(scenario)
