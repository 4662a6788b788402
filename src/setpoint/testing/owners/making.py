"""What every owner makes: all children, once; and of what."""

from collections.abc import Awaitable, Callable
from typing import Any, Final

from setpoint.core.owner_references import Ownership, owner_reference, ownership
from setpoint.core.plan import Action
from setpoint.engine.owner import Owner
from setpoint.engine.step.outcomes import Settled, Stopped
from setpoint.errors import DependencyInvalid, DependencyNotFound
from setpoint.testing.owners.owner_contract import OwnerClaim, owner_claim
from setpoint.testing.owners.owner_fixture import OwnerPart
from setpoint.testing.owners.owner_harness import OwnerHarness

# As many steps stand for any number of them.
_MANY: Final = 100


async def generated_keys(harness: OwnerHarness) -> list[str]:
    """The children that the owner makes of the sources that are there."""
    resource = await harness.resource()
    found = [await harness.store.get(ref) for ref in harness.fixture.owner.sources(resource)]
    made = harness.fixture.owner.generate(resource, {one.ref: one for one in found if one is not None})
    return [child.key for child in made.children]


async def the_first_step_makes_every_child_and_each_is_its_own(harness: OwnerHarness) -> None:
    outcome = await harness.settle()

    assert isinstance(harness.fixture.owner, Owner)
    keys = await generated_keys(harness)
    assert [(write.action, write.name) for write in outcome.plan.writes] == [(Action.CREATE, key) for key in keys]
    owner = await harness.resource()
    for key in keys:
        assert ownership((await harness.child(key)).document, owner.document) is Ownership.OURS
    kinds = {(one.group, one.kind) for one in harness.fixture.owner.makes}
    assert {harness.at(key).group_kind for key in keys} <= kinds
    assert {f"{harness.at(key).kind}Created" for key in keys} <= set(await harness.reasons())


async def steps_that_find_nothing_to_do_write_nothing(harness: OwnerHarness) -> None:
    await harness.settle()
    revision, events = await harness.revision(), await harness.store.events()

    for _ in range(_MANY):
        assert (await harness.settled()).plan.is_empty

    assert await harness.revision() == revision
    assert await harness.store.events() == events


async def a_new_process_finds_nothing_to_do_either(harness: OwnerHarness) -> None:
    await harness.settle()
    revision = await harness.revision()

    await harness.restart()

    assert (await harness.settled()).plan.is_empty
    assert await harness.revision() == revision


async def what_a_plan_says_is_what_the_step_writes(harness: OwnerHarness) -> None:
    await harness.begin()
    edit = harness.write if harness.fixture.has(OwnerPart.EDITABLE) else harness.drift
    rotate = harness.rotate if harness.fixture.has(OwnerPart.SOURCE) else harness.drift
    deeds: tuple[Callable[[], Awaitable[object]], ...] = (
        *(harness.preview, harness.drift, edit, harness.change, rotate, harness.drift, harness.preview),
    )
    for deed in deeds:
        await deed()
        before, plan = await harness.contents(), await harness.preview()
        assert await harness.contents() == before

        outcome = await harness.settled()

        after = await harness.contents()
        assert plan == outcome.plan
        moved = {name for name in after if after[name] != before.get(name)}
        assert moved == {str(harness.at(write.name)) for write in plan.writes}


async def a_spec_that_does_not_fit_is_refused_and_nothing_is_made(harness: OwnerHarness) -> None:
    await harness.begin()
    await harness.apply({"noSuchField": "anything"})
    before = await harness.contents()

    outcome = await harness.step()

    assert isinstance(outcome, Stopped), "a field that the spec does not have is no mistake: forbid unknown fields"
    assert "noSuchField" in str(outcome.error)
    assert await harness.contents() == before


async def a_missing_source_stops_what_needs_it_and_nothing_else(harness: OwnerHarness) -> None:
    await harness.begin()
    await harness.remove_source()

    outcome = await harness.step()

    assert isinstance(outcome, Stopped)
    assert isinstance(outcome.error, DependencyNotFound)
    name = harness.fixture.source["metadata"]["name"]
    ready = (await harness.conditions())["Ready"]
    assert (ready["status"], ready["reason"]) == ("False", "DependencyNotFound")
    assert name in ready["message"]
    assert "DependencyNotFound" in await harness.reasons()
    assert set(await harness.children()) == set(await generated_keys(harness))
    revision = await harness.revision()
    await harness.step()
    assert await harness.revision() == revision


async def the_rest_is_made_when_the_source_appears(harness: OwnerHarness) -> None:
    await harness.begin()
    await harness.remove_source()
    await harness.step()
    first = await harness.children()
    await harness.store.apply(harness.fixture.source)

    outcome = await harness.settled()

    keys = await generated_keys(harness)
    assert [write.name for write in outcome.plan.writes] == [key for key in keys if key not in first]
    assert set(await harness.children()) == set(keys)
    assert (await harness.conditions())["Ready"]["reason"] != "DependencyNotFound"


async def a_changed_source_reaches_all_that_is_made_of_it(harness: OwnerHarness) -> None:
    await harness.settle()
    await harness.rotate()

    outcome = await harness.settled()

    assert [write.name for write in outcome.plan.writes] == list(harness.fixture.followers)
    assert (await harness.settled()).plan.is_empty


async def values_of_secrets_are_in_no_plan_and_no_status(harness: OwnerHarness) -> None:
    await harness.begin()
    texts = [str((await harness.preview()).to_data())]
    await harness.settled()
    if harness.fixture.has(OwnerPart.SOURCE):
        await harness.rotate()
    texts.append(str((await harness.preview()).to_data()))
    await harness.settled()
    texts += [str((await harness.resource()).status), str(await harness.store.events())]

    given: list[Any] = [*harness.fixture.given, harness.fixture.rotated]
    if harness.fixture.has(OwnerPart.CREATE_ONLY):
        given.append((await harness.child(harness.fixture.once)).document)
    values = {value for one in given if one.get("kind") == "Secret" for value in one.get("data", {}).values()}
    assert [value for value in values if any(value in text for text in texts)] == []


async def the_child_of_another_owner_is_refused(harness: OwnerHarness) -> None:
    await harness.settle()
    key = harness.fixture.managed.key
    other = {**owner_reference((await harness.resource()).document), "uid": "another", "name": "other"}
    planted = await harness.plant(key, ownerReferences=[other])

    outcome = await harness.step()

    assert isinstance(outcome, Stopped)
    assert isinstance(outcome.error, DependencyInvalid)
    assert "/other: delete it there, or give this one another name" in str(outcome.error)
    assert (await harness.conditions())["Ready"]["reason"] == "DependencyInvalid"
    assert (await harness.child(key)).revision == planted.revision
    await harness.remove(key)
    assert isinstance(await harness.step(), Settled)


CLAIMS: Final[tuple[OwnerClaim, ...]] = (
    owner_claim(the_first_step_makes_every_child_and_each_is_its_own),
    owner_claim(steps_that_find_nothing_to_do_write_nothing),
    owner_claim(a_new_process_finds_nothing_to_do_either),
    owner_claim(what_a_plan_says_is_what_the_step_writes),
    owner_claim(a_spec_that_does_not_fit_is_refused_and_nothing_is_made),
    owner_claim(a_missing_source_stops_what_needs_it_and_nothing_else, OwnerPart.SOURCE),
    owner_claim(the_rest_is_made_when_the_source_appears, OwnerPart.SOURCE),
    owner_claim(a_changed_source_reaches_all_that_is_made_of_it, OwnerPart.SOURCE),
    owner_claim(values_of_secrets_are_in_no_plan_and_no_status),
    owner_claim(the_child_of_another_owner_is_refused),
)
