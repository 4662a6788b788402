"""What becomes of live children: whichever writer changes them, an owner corrects what is its own and no more."""

from typing import Final

from setpoint.core.plan import Action
from setpoint.core.schema.policy import Rule
from setpoint.core.values.json_types import MISSING, Json
from setpoint.core.values.paths import Path, get_at
from setpoint.engine.management import MANAGEMENT
from setpoint.engine.step.outcomes import Settled
from setpoint.testing.owners.owner_contract import OwnerClaim, owner_claim
from setpoint.testing.owners.owner_fixture import OwnerPart
from setpoint.testing.owners.owner_harness import OwnerHarness

_LABELS: Final = Path(("metadata", "labels"))
_OWNERS: Final = Path(("metadata", "ownerReferences"))
_MERGE: Final = "setpoint.dev/merge"


async def a_status_of_a_child_that_says_nothing_new_is_no_reason_to_write(harness: OwnerHarness) -> None:
    await harness.settle()
    await harness.set_child_status(harness.fixture.readiness_child, {"note": "not part of readiness"})
    revision = await harness.revision()

    assert (await harness.settled()).plan.is_empty

    assert await harness.revision() == revision


async def the_readiness_follows_the_child_and_no_child_is_written(harness: OwnerHarness) -> None:
    await harness.settle()
    readiness = []
    for status in (harness.fixture.ready_status, {}, harness.fixture.ready_status):
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


async def a_child_that_another_writer_deleted_comes_back(harness: OwnerHarness) -> None:
    await harness.settle()
    for key in await harness.children():
        await harness.remove(key)

        outcome = await harness.settled()

        assert [(write.action, write.name) for write in outcome.plan.writes] == [(Action.CREATE, key)]
        assert (await harness.settled()).plan.is_empty


async def a_child_that_is_being_deleted_is_made_again_once_it_is_gone(harness: OwnerHarness) -> None:
    await harness.settle()
    key = harness.fixture.managed.key
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


async def all_children_come_back_at_once(harness: OwnerHarness) -> None:
    await harness.settle()
    every = await harness.children()
    for key in every:
        await harness.remove(key)

    await harness.settled()

    assert set(await harness.children()) == set(every)


async def a_managed_field_is_reverted_and_reported(harness: OwnerHarness) -> None:
    await harness.settle()
    managed = harness.fixture.managed
    before = (await harness.child(managed.key)).document
    assert get_at(before, managed.path) != managed.value, "`managed` has the value that is generated: name another"
    await harness.drift()

    outcome = await harness.settled()

    assert [write.name for write in outcome.plan.writes] == [managed.key]
    after = (await harness.child(managed.key)).document
    assert after.get("spec") == before.get("spec")
    assert after.get("data") == before.get("data")
    assert f"{harness.at(managed.key).kind}Updated" in await harness.reasons()
    assert ("Reverted" in await harness.reasons()) == harness.fixture.reports_edits
    rules = {change.rule for change in outcome.plan.changes}
    assert rules == ({Rule.MANAGED} if harness.fixture.reports_edits else {Rule.GENERATED})


async def an_edit_stays_through_everything_that_follows(harness: OwnerHarness) -> None:
    await harness.settle()
    await harness.write()
    await harness.settled()
    edited = (await harness.conditions())["Edited"]
    rotate = harness.rotate if harness.fixture.has(OwnerPart.SOURCE) else harness.drift
    for deed in (harness.change, harness.drift, rotate, harness.restart):
        await deed()
        await harness.settled()

    editable = harness.fixture.editable
    assert get_at((await harness.child(editable.key)).document, editable.path) == editable.value
    assert (edited["status"] == "True") == harness.fixture.reports_edits
    if harness.fixture.reports_edits:
        assert edited["message"].endswith(str(editable.path))
        assert (await harness.conditions())["Edited"]["status"] == "True"


async def labels_are_reverted_and_labels_of_other_writers_stay(harness: OwnerHarness) -> None:
    await harness.settle()
    labelled = {key: one for key, one in (await harness.children()).items() if harness.fixture.label in one.labels}
    for key in labelled:
        await harness.edit(key, _LABELS, {"mine": "1"})

        outcome = await harness.settled()

        assert [write.name for write in outcome.plan.writes] == [key]
        assert (await harness.child(key)).labels == {"mine": "1", **labelled[key].labels}
    assert labelled


async def a_child_without_an_owner_is_adopted_with_its_contents(harness: OwnerHarness) -> None:
    await harness.settle()
    await harness.write()
    editable, uid = harness.fixture.editable, (await harness.resource()).uid
    # A store without a record of an earlier owner.
    await harness.plant(editable.key)
    await harness.store.update_status(await harness.resource(), {})

    outcome = await harness.settled()

    assert [write.name for write in outcome.plan.writes] == [editable.key]
    adopted = (await harness.children())[editable.key].document
    references = get_at(adopted, _OWNERS)
    assert isinstance(references, list)
    assert [one["uid"] for one in references] == [uid]
    assert get_at(adopted, editable.path) == editable.value
    assert (await harness.settled()).plan.is_empty


async def a_removed_owner_reference_is_set_again(harness: OwnerHarness) -> None:
    await harness.settle()
    key = harness.fixture.managed.key
    await harness.edit(key, _OWNERS, MISSING)

    outcome = await harness.settled()

    assert [write.name for write in outcome.plan.writes] == [key]
    assert key in await harness.children()


async def a_create_only_child_is_never_updated_whichever_owner_it_has(harness: OwnerHarness) -> None:
    await harness.settle()
    for references in ([], [{"kind": "X", "name": "x", "uid": "x", "controller": True}]):
        planted = await harness.plant(harness.fixture.once, ownerReferences=references)

        assert (await harness.settled()).plan.is_empty

        assert (await harness.child(harness.fixture.once)).revision == planted.revision


async def a_create_only_child_belongs_to_its_editors_after_creation(harness: OwnerHarness) -> None:
    await harness.settle()
    await harness.edit(harness.fixture.once, Path(("data",)), {"mine": "eA=="})
    before = await harness.contents()
    await harness.change()
    await harness.settled()

    assert (await harness.child(harness.fixture.once)).revision == before[str(harness.at(harness.fixture.once))]


async def a_create_only_child_that_is_made_anew_is_reported(harness: OwnerHarness) -> None:
    await harness.settle()
    old = (await harness.child(harness.fixture.once)).document.get("data")
    assert old, f"{harness.fixture.once} has no data: `completed` is to add what is generated once"
    await harness.remove(harness.fixture.once)

    await harness.settled()

    assert (await harness.child(harness.fixture.once)).document["data"] != old
    assert "MadeAnew" in await harness.reasons()


async def observed_it_writes_no_child_and_names_the_drift(harness: OwnerHarness) -> None:
    message = await _held_back("observe", "Observed", harness)

    assert str(harness.fixture.managed.path.steps[-1]) in message


async def paused_it_writes_no_child(harness: OwnerHarness) -> None:
    await _held_back("paused", "Paused", harness)


async def _held_back(word: str, reason: str, harness: OwnerHarness) -> str:
    """The message of Ready of an owner that is held back, before its first step and later."""
    await harness.begin(**{MANAGEMENT: word})
    before = await harness.contents()
    assert isinstance(await harness.step(), Settled)
    assert await harness.contents() == before
    assert (await harness.preview()).is_empty

    await harness.apply()
    await harness.settled()
    await harness.apply(harness.fixture.changed, annotations={MANAGEMENT: word})
    await harness.drift()
    before = await harness.contents()
    assert isinstance(await harness.step(), Settled)
    assert await harness.contents() == before
    assert (await harness.preview()).is_empty
    revision = await harness.revision()
    await harness.step()
    assert await harness.revision() == revision
    ready = (await harness.conditions())["Ready"]
    assert ready["reason"] == reason
    return str(ready["message"])


async def without_a_memory_edits_stay_and_removals_do_not(harness: OwnerHarness) -> None:
    assert await _entries_after_a_removal("two-way", harness)


async def with_its_memory_removals_stay_as_well(harness: OwnerHarness) -> None:
    assert not await _entries_after_a_removal("three-way", harness)


async def _entries_after_a_removal(merge: str, harness: OwnerHarness) -> Json:
    """The editable entries, once another writer has removed all of them, and edited another field."""
    await harness.begin(**{_MERGE: merge})
    await harness.settled()
    editable, entries = harness.fixture.editable, Path.parse(harness.fixture.entries)
    before = get_at((await harness.child(editable.key)).document, entries)
    assert before, f"{editable.key} has nothing at {entries}: `manifest` is to make an entry"
    await harness.write()
    await harness.edit(editable.key, entries, type(before)())

    await harness.settled()

    live, message = await harness.child(editable.key), (await harness.conditions())["Edited"]["message"]
    found = get_at(live.document, entries)
    assert get_at(live.document, editable.path) == editable.value
    assert (str(entries) in message) is not bool(found)
    assert str(editable.path) in message
    return bool(found)


CLAIMS: Final[tuple[OwnerClaim, ...]] = (
    owner_claim(a_status_of_a_child_that_says_nothing_new_is_no_reason_to_write, OwnerPart.READINESS),
    owner_claim(the_readiness_follows_the_child_and_no_child_is_written, OwnerPart.READINESS),
    owner_claim(a_child_that_another_writer_deleted_comes_back),
    owner_claim(a_child_that_is_being_deleted_is_made_again_once_it_is_gone),
    owner_claim(all_children_come_back_at_once),
    owner_claim(a_managed_field_is_reverted_and_reported),
    owner_claim(an_edit_stays_through_everything_that_follows, OwnerPart.EDITABLE),
    owner_claim(labels_are_reverted_and_labels_of_other_writers_stay, OwnerPart.LABEL),
    owner_claim(a_child_without_an_owner_is_adopted_with_its_contents, OwnerPart.EDITABLE),
    owner_claim(a_removed_owner_reference_is_set_again),
    owner_claim(a_create_only_child_is_never_updated_whichever_owner_it_has, OwnerPart.CREATE_ONLY),
    owner_claim(a_create_only_child_belongs_to_its_editors_after_creation, OwnerPart.CREATE_ONLY),
    owner_claim(a_create_only_child_that_is_made_anew_is_reported, OwnerPart.CREATE_ONLY),
    owner_claim(observed_it_writes_no_child_and_names_the_drift),
    owner_claim(paused_it_writes_no_child),
    owner_claim(without_a_memory_edits_stay_and_removals_do_not, OwnerPart.EDITABLE, OwnerPart.ENTRIES),
    owner_claim(with_its_memory_removals_stay_as_well, OwnerPart.EDITABLE, OwnerPart.ENTRIES),
)
