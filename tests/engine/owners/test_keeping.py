"""What becomes of children that are there: whoever changes them, an owner puts right what is its own and no more."""

from typing import Any

import pytest

from setpoint.core.plan import Action
from setpoint.core.schema.policy import Rule
from setpoint.core.values.json_types import MISSING
from setpoint.core.values.paths import Path, get_at
from setpoint.engine.context import Settled
from tests.engine.owners.home import Home
from tests.engine.owners.settings import Setting, everywhere, where_edits_are_told, where_something_is_made_once

LABELS, OWNERS = Path(("metadata", "labels")), Path(("metadata", "ownerReferences"))


@everywhere
def test_a_status_of_a_child_that_says_nothing_new_is_no_reason_to_write(setting: Setting) -> None:
    async def scenario(home: Home) -> None:
        await home.settle()
        await home.say(home.stand.teller, {"note": "nobody reads this"})
        revision = await home.revision()

        assert (await home.settled()).plan.is_empty

        assert await home.revision() == revision

    setting.play(scenario)


@everywhere
def test_how_a_child_stands_moves_the_status_of_the_owner_and_nothing_else(setting: Setting) -> None:
    async def scenario(home: Home) -> None:
        await home.settle()
        told = []
        for status in (home.stand.well, {}, home.stand.well):
            await home.say(home.stand.teller, status)
            before = await home.contents()
            outcome = await home.settled()
            told.append((await home.conditions())["Ready"]["status"])

            assert await home.contents() == before
            assert (outcome.requeue_after is None) == (outcome.ready.status == "True")
            revision = await home.revision()
            await home.settled()
            assert await home.revision() == revision

        assert told == ["True", "False", "True"]

    setting.play(scenario)


@everywhere
def test_a_child_that_somebody_deleted_comes_back(setting: Setting) -> None:
    async def scenario(home: Home) -> None:
        await home.settle()
        for key in await home.children():
            await home.remove(key)

            outcome = await home.settled()

            assert [(write.action, write.name) for write in outcome.plan.writes] == [(Action.CREATE, key)]
            assert (await home.settled()).plan.is_empty

    setting.play(scenario)


@everywhere
def test_a_child_on_its_way_out_is_made_again_once_it_is_gone(setting: Setting) -> None:
    async def scenario(home: Home) -> None:
        await home.settle()
        key = home.stand.teller
        old = await home.store.set_finalizers(await home.child(key), ("somebody.test/holds",))
        await home.remove(key)
        await home.change()
        await home.settled()
        assert old is not None
        assert (await home.child(key)).uid == old.uid

        await home.store.set_finalizers(await home.child(key), ())
        outcome = await home.settled()

        assert [(write.action, write.name) for write in outcome.plan.writes] == [(Action.CREATE, key)]
        assert (await home.conditions())["Edited"]["status"] == "False"

    setting.play(scenario)


@everywhere
def test_all_of_them_come_back_at_once(setting: Setting) -> None:
    async def scenario(home: Home) -> None:
        await home.settle()
        every = await home.children()
        for key in every:
            await home.remove(key)

        await home.settled()

        assert set(await home.children()) == set(every)

    setting.play(scenario)


@everywhere
def test_a_managed_field_is_put_back_and_that_is_told(setting: Setting) -> None:
    async def scenario(home: Home) -> None:
        await home.settle()
        before = (await home.child(home.stand.managed.key)).document
        await home.meddle()

        outcome = await home.settled()

        assert [write.name for write in outcome.plan.writes] == [home.stand.managed.key]
        after = (await home.child(home.stand.managed.key)).document
        assert after.get("spec") == before.get("spec")
        assert after.get("data") == before.get("data")
        assert f"{home.at(home.stand.managed.key).kind}Updated" in await home.reasons()
        assert ("Reverted" in await home.reasons()) == home.stand.tells_edits
        rules = {change.rule for change in outcome.plan.changes}
        assert rules == ({Rule.MANAGED} if home.stand.tells_edits else {Rule.GENERATED})

    setting.play(scenario)


@everywhere
def test_a_persons_value_stays_through_everything_that_follows(setting: Setting) -> None:
    async def scenario(home: Home) -> None:
        await home.settle()
        await home.write()
        await home.settled()
        edited = (await home.conditions())["Edited"]
        for deed in (home.change, home.meddle, home.rotate, home.restart):
            await deed()
            await home.settled()

        live = (await home.child(home.stand.theirs.key)).document
        assert get_at(live, home.stand.theirs.path) == home.stand.theirs.value
        assert (edited["status"] == "True") == home.stand.tells_edits
        if home.stand.tells_edits:
            assert edited["message"].endswith(str(home.stand.theirs.path))
            assert (await home.conditions())["Edited"]["status"] == "True"

    setting.play(scenario)


@everywhere
def test_labels_are_put_back_and_those_of_others_stay(setting: Setting) -> None:
    async def scenario(home: Home) -> None:
        await home.settle()
        labelled = {key: one for key, one in (await home.children()).items() if home.stand.label in one.labels}
        for key in labelled:
            await home.edit(key, LABELS, {"mine": "1"})

            outcome = await home.settled()

            assert [write.name for write in outcome.plan.writes] == [key]
            assert (await home.child(key)).labels == {"mine": "1", **labelled[key].labels}
        assert labelled

    setting.play(scenario)


@everywhere
def test_a_child_of_nobody_is_adopted_with_what_is_in_it(setting: Setting) -> None:
    async def scenario(home: Home) -> None:
        await home.settle()
        await home.write()
        key, uid = home.stand.theirs.key, (await home.resource()).uid
        # A store in which nobody knows of an earlier owner.
        await home.plant(key)
        resource = await home.resource()
        await home.store.update_status(resource, {})

        outcome = await home.settled()

        assert [write.name for write in outcome.plan.writes] == [key]
        adopted = (await home.children())[key]
        metadata = adopted.document["metadata"]
        assert isinstance(metadata, dict)
        assert [one["uid"] for one in metadata["ownerReferences"]] == [uid]
        assert str(home.stand.theirs.value) in str(adopted.document["spec"])
        assert (await home.settled()).plan.is_empty

    setting.play(scenario)


@everywhere
def test_a_reference_that_was_taken_off_is_put_back(setting: Setting) -> None:
    async def scenario(home: Home) -> None:
        await home.settle()
        await home.edit(home.stand.managed.key, OWNERS, MISSING)

        outcome = await home.settled()

        assert [write.name for write in outcome.plan.writes] == [home.stand.managed.key]
        assert home.stand.managed.key in await home.children()

    setting.play(scenario)


@where_something_is_made_once
@pytest.mark.parametrize("whose", [[], [{"kind": "X", "name": "x", "uid": "x", "controller": True}]])
def test_what_is_made_once_is_left_alone_whosever_it_is(setting: Setting, whose: list[Any]) -> None:
    async def scenario(home: Home) -> None:
        await home.settle()
        planted = await home.plant(home.stand.once, ownerReferences=whose)

        assert (await home.settled()).plan.is_empty

        assert (await home.child(home.stand.once)).revision == planted.revision

    setting.play(scenario)


@where_something_is_made_once
def test_what_is_made_once_is_peoples_from_then_on(setting: Setting) -> None:
    async def scenario(home: Home) -> None:
        await home.settle()
        await home.edit(home.stand.once, Path(("data",)), {"mine": "eA=="})
        before = await home.contents()
        await home.change()
        await home.settled()

        assert (await home.child(home.stand.once)).revision == before[str(home.at(home.stand.once))]

    setting.play(scenario)


@where_something_is_made_once
def test_what_is_made_anew_is_told_when_nobody_can_have_the_old_one(setting: Setting) -> None:
    async def scenario(home: Home) -> None:
        await home.settle()
        old = (await home.child(home.stand.once)).document["data"]
        await home.remove(home.stand.once)

        await home.settled()

        assert (await home.child(home.stand.once)).document["data"] != old
        assert "MadeAnew" in await home.reasons()

    setting.play(scenario)


@everywhere
@pytest.mark.parametrize("word", ["observe", "paused"])
def test_held_back_it_writes_no_child(setting: Setting, word: str) -> None:
    async def scenario(home: Home) -> None:
        await home.begin(**{"setpoint.dev/management": word})
        before = await home.contents()
        outcome = await home.step()
        assert isinstance(outcome, Settled)
        assert await home.contents() == before
        assert (await home.preview()).is_empty

        await home.apply()
        await home.settled()
        await home.apply(home.stand.then, annotations={"setpoint.dev/management": word})
        await home.meddle()
        before = await home.contents()

        assert isinstance(await home.step(), Settled)

        assert await home.contents() == before
        assert (await home.preview()).is_empty
        revision = await home.revision()
        await home.step()
        assert await home.revision() == revision
        ready = (await home.conditions())["Ready"]
        assert ready["reason"] == {"observe": "Observed", "paused": "Paused"}[word]
        assert word == "paused" or str(home.stand.managed.path.steps[-1]) in ready["message"]

    setting.play(scenario)


@where_edits_are_told
@pytest.mark.parametrize(("merge", "comes_back"), [("two-way", True), ("three-way", False)])
def test_without_a_memory_edits_stay_and_removals_do_not(setting: Setting, merge: str, comes_back: bool) -> None:
    async def scenario(home: Home) -> None:
        await home.begin(**{"setpoint.dev/merge": merge})
        await home.settled()
        await home.write()
        await home.edit(home.stand.theirs.key, home.stand.entries, {})

        await home.settled()

        live, conditions = await home.child(home.stand.theirs.key), await home.conditions()
        assert bool(live.spec[str(home.stand.entries.steps[-1])]) is comes_back
        assert get_at(live.document, home.stand.theirs.path) == home.stand.theirs.value
        assert (str(home.stand.entries) in conditions["Edited"]["message"]) is not comes_back
        assert str(home.stand.theirs.path) in conditions["Edited"]["message"]

    setting.play(scenario)
