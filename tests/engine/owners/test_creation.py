"""What every owner makes: all children, once; and of what."""

from typing import Any

from setpoint.core.owner_references import Ownership, owner_reference, ownership
from setpoint.core.plan import Action
from setpoint.engine.owner import Owner
from setpoint.engine.resource import Resource
from setpoint.engine.step.outcomes import Settled, Stopped
from setpoint.errors import DependencyInvalid, DependencyNotFound
from tests.engine.owners.owner_harness import OwnerHarness
from tests.engine.owners.settings import Setting, everywhere


async def generated_keys(harness: OwnerHarness, *found: Resource) -> list[str]:
    """What the owner makes of these."""
    made = harness.fixture.owner.generate(await harness.resource(), {one.ref: one for one in found})
    return [child.key for child in made.children]


async def all_sources(harness: OwnerHarness) -> list[Resource]:
    refs = harness.fixture.owner.sources(await harness.resource())
    return [one for ref in refs if (one := await harness.store.get(ref)) is not None]


@everywhere
def test_the_first_step_makes_every_child_and_each_is_its_own(setting: Setting) -> None:
    async def scenario(harness: OwnerHarness) -> None:
        outcome = await harness.settle()

        assert isinstance(harness.fixture.owner, Owner)
        keys = await generated_keys(harness, *await all_sources(harness))
        assert [(write.action, write.name) for write in outcome.plan.writes] == [(Action.CREATE, key) for key in keys]
        owner = await harness.resource()
        for key in keys:
            assert ownership((await harness.child(key)).document, owner.document) is Ownership.OURS
        kinds = {(one.group, one.kind) for one in harness.fixture.owner.makes}
        assert {harness.at(key)[:2] for key in keys} <= kinds
        assert {f"{kind}Created" for _, kind in {harness.at(key)[:2] for key in keys}} <= set(await harness.reasons())

    setting.play(scenario)


@everywhere
def test_a_hundred_steps_that_find_nothing_to_do_write_nothing(setting: Setting) -> None:
    async def scenario(harness: OwnerHarness) -> None:
        await harness.settle()
        revision, notes = await harness.revision(), await harness.store.events()

        for _ in range(100):
            assert (await harness.settled()).plan.is_empty

        assert await harness.revision() == revision
        assert await harness.store.events() == notes

    setting.play(scenario)


@everywhere
def test_a_new_process_finds_nothing_to_do_either(setting: Setting) -> None:
    async def scenario(harness: OwnerHarness) -> None:
        await harness.settle()
        revision = await harness.revision()

        await harness.restart()

        assert (await harness.settled()).plan.is_empty
        assert await harness.revision() == revision

    setting.play(scenario)


@everywhere
def test_what_a_plan_says_is_what_the_step_writes(setting: Setting) -> None:
    async def scenario(harness: OwnerHarness) -> None:
        await harness.begin()
        for deed in (None, harness.drift, harness.write, harness.change, harness.rotate, harness.drift, None):
            await (deed or harness.preview)()
            before, plan = await harness.contents(), await harness.preview()
            assert await harness.contents() == before

            outcome = await harness.settled()

            after = await harness.contents()
            assert plan == outcome.plan
            moved = {name for name in after if after[name] != before.get(name)}
            assert moved == {str(harness.at(write.name)) for write in plan.writes}

    setting.play(scenario)


@everywhere
def test_a_missing_source_stops_what_needs_it_and_nothing_else(setting: Setting) -> None:
    async def scenario(harness: OwnerHarness) -> None:
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
        keys = await generated_keys(harness, *await all_sources(harness))
        assert set(await harness.children()) == set(keys)
        revision = await harness.revision()
        await harness.step()
        assert await harness.revision() == revision

    setting.play(scenario)


@everywhere
def test_and_the_rest_is_made_when_it_appears(setting: Setting) -> None:
    async def scenario(harness: OwnerHarness) -> None:
        await harness.begin()
        await harness.remove_source()
        await harness.step()
        first = await harness.children()
        await harness.store.apply(harness.fixture.source)

        outcome = await harness.settled()

        keys = await generated_keys(harness, *await all_sources(harness))
        assert [write.name for write in outcome.plan.writes] == [key for key in keys if key not in first]
        assert set(await harness.children()) == set(keys)
        assert (await harness.conditions())["Ready"]["reason"] != "DependencyNotFound"

    setting.play(scenario)


@everywhere
def test_a_rotated_source_reaches_all_that_is_made_of_it(setting: Setting) -> None:
    async def scenario(harness: OwnerHarness) -> None:
        await harness.settle()
        await harness.rotate()

        outcome = await harness.settled()

        assert [write.name for write in outcome.plan.writes] == list(harness.fixture.followers)
        assert (await harness.settled()).plan.is_empty
        source = Resource(harness.fixture.rotated)
        if source.ref.kind == "Secret":
            values = set(dict(harness.fixture.rotated["data"]).values())
            copies = [(await harness.child(key)).document["data"] for key in harness.fixture.followers]
            assert {value for copy in copies if isinstance(copy, dict) for value in copy.values()} == values

    setting.play(scenario)


@everywhere
def test_values_of_secrets_are_in_no_plan_and_no_status(setting: Setting) -> None:
    async def scenario(harness: OwnerHarness) -> None:
        await harness.begin()
        texts = [str((await harness.preview()).to_data())]
        await harness.settled()
        await harness.rotate()
        texts.append(str((await harness.preview()).to_data()))
        await harness.settled()

        texts += [str((await harness.resource()).status), str(await harness.store.events())]

        every: list[Any] = [one.document for one in (await harness.store.list()).resources if one.ref.kind == "Secret"]
        values = {value for one in every for value in one.get("data", {}).values()}
        # What is the same for all is no secret.
        assert [value for value in values - {"c3VjY2Vzcw=="} if any(value in text for text in texts)] == []

    setting.play(scenario)


@everywhere
def test_another_owners_child_is_refused(setting: Setting) -> None:
    async def scenario(harness: OwnerHarness) -> None:
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

    setting.play(scenario)
