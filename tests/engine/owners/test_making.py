"""What every owner makes: all children, once; and of what."""

from typing import Any

from setpoint.core.owner_references import Ownership, owner_reference, ownership
from setpoint.core.plan import Action
from setpoint.engine.context import Settled, Stopped
from setpoint.engine.owner import Owner
from setpoint.engine.resource import Resource
from setpoint.errors import DependencyInvalid, DependencyNotFound
from tests.engine.owners.home import Home
from tests.engine.owners.settings import Setting, everywhere


async def generated_keys(home: Home, *found: Resource) -> list[str]:
    """What the owner makes of these."""
    made = home.stand.owner.generate(await home.resource(), {one.ref: one for one in found})
    return [child.key for child in made.children]


async def all_sources(home: Home) -> list[Resource]:
    refs = home.stand.owner.sources(await home.resource())
    return [one for ref in refs if (one := await home.store.get(ref)) is not None]


@everywhere
def test_the_first_step_makes_every_child_and_each_is_its_own(setting: Setting) -> None:
    async def scenario(home: Home) -> None:
        outcome = await home.settle()

        assert isinstance(home.stand.owner, Owner)
        keys = await generated_keys(home, *await all_sources(home))
        assert [(write.action, write.name) for write in outcome.plan.writes] == [(Action.CREATE, key) for key in keys]
        owner = await home.resource()
        for key in keys:
            assert ownership((await home.child(key)).document, owner.document) is Ownership.OURS
        kinds = {(one.group, one.kind) for one in home.stand.owner.makes}
        assert {home.at(key)[:2] for key in keys} <= kinds
        assert {f"{kind}Created" for _, kind in {home.at(key)[:2] for key in keys}} <= set(await home.reasons())

    setting.play(scenario)


@everywhere
def test_a_hundred_steps_that_find_nothing_to_do_write_nothing(setting: Setting) -> None:
    async def scenario(home: Home) -> None:
        await home.settle()
        revision, notes = await home.revision(), await home.store.events()

        for _ in range(100):
            assert (await home.settled()).plan.is_empty

        assert await home.revision() == revision
        assert await home.store.events() == notes

    setting.play(scenario)


@everywhere
def test_a_new_process_finds_nothing_to_do_either(setting: Setting) -> None:
    async def scenario(home: Home) -> None:
        await home.settle()
        revision = await home.revision()

        await home.restart()

        assert (await home.settled()).plan.is_empty
        assert await home.revision() == revision

    setting.play(scenario)


@everywhere
def test_what_a_plan_says_is_what_the_step_writes(setting: Setting) -> None:
    async def scenario(home: Home) -> None:
        await home.begin()
        for deed in (None, home.meddle, home.write, home.change, home.rotate, home.meddle, None):
            await (deed or home.preview)()
            before, told = await home.contents(), await home.preview()
            assert await home.contents() == before

            outcome = await home.settled()

            after = await home.contents()
            assert told == outcome.plan
            moved = {name for name in after if after[name] != before.get(name)}
            assert moved == {str(home.at(write.name)) for write in told.writes}

    setting.play(scenario)


@everywhere
def test_a_missing_source_stops_what_needs_it_and_nothing_else(setting: Setting) -> None:
    async def scenario(home: Home) -> None:
        await home.begin()
        await home.remove_source()

        outcome = await home.step()

        assert isinstance(outcome, Stopped)
        assert isinstance(outcome.error, DependencyNotFound)
        name = home.stand.source["metadata"]["name"]
        ready = (await home.conditions())["Ready"]
        assert (ready["status"], ready["reason"]) == ("False", "DependencyNotFound")
        assert name in ready["message"]
        assert "DependencyNotFound" in await home.reasons()
        keys = await generated_keys(home, *await all_sources(home))
        assert set(await home.children()) == set(keys)
        revision = await home.revision()
        await home.step()
        assert await home.revision() == revision

    setting.play(scenario)


@everywhere
def test_and_the_rest_is_made_when_it_appears(setting: Setting) -> None:
    async def scenario(home: Home) -> None:
        await home.begin()
        await home.remove_source()
        await home.step()
        first = await home.children()
        await home.store.apply(home.stand.source)

        outcome = await home.settled()

        keys = await generated_keys(home, *await all_sources(home))
        assert [write.name for write in outcome.plan.writes] == [key for key in keys if key not in first]
        assert set(await home.children()) == set(keys)
        assert (await home.conditions())["Ready"]["reason"] != "DependencyNotFound"

    setting.play(scenario)


@everywhere
def test_a_rotated_source_reaches_all_that_is_made_of_it(setting: Setting) -> None:
    async def scenario(home: Home) -> None:
        await home.settle()
        await home.rotate()

        outcome = await home.settled()

        assert [write.name for write in outcome.plan.writes] == list(home.stand.followers)
        assert (await home.settled()).plan.is_empty
        source = Resource(home.stand.rotated)
        if source.ref.kind == "Secret":
            values = set(dict(home.stand.rotated["data"]).values())
            copies = [(await home.child(key)).document["data"] for key in home.stand.followers]
            assert {value for copy in copies if isinstance(copy, dict) for value in copy.values()} == values

    setting.play(scenario)


@everywhere
def test_values_of_secrets_are_in_no_plan_and_no_status(setting: Setting) -> None:
    async def scenario(home: Home) -> None:
        await home.begin()
        told = [str((await home.preview()).to_data())]
        await home.settled()
        await home.rotate()
        told.append(str((await home.preview()).to_data()))
        await home.settled()

        told += [str((await home.resource()).status), str(await home.store.events())]

        every: list[Any] = [one.document for one in (await home.store.list()).resources if one.ref.kind == "Secret"]
        values = {value for one in every for value in one.get("data", {}).values()}
        # Anybody may know what is the same for everybody.
        assert [value for value in values - {"c3VjY2Vzcw=="} if any(value in text for text in told)] == []

    setting.play(scenario)


@everywhere
def test_another_owners_child_is_refused(setting: Setting) -> None:
    async def scenario(home: Home) -> None:
        await home.settle()
        key = home.stand.managed.key
        other = {**owner_reference((await home.resource()).document), "uid": "another", "name": "somebody"}
        planted = await home.plant(key, ownerReferences=[other])

        outcome = await home.step()

        assert isinstance(outcome, Stopped)
        assert isinstance(outcome.error, DependencyInvalid)
        assert "/somebody: delete it there, or give this one another name" in str(outcome.error)
        assert (await home.conditions())["Ready"]["reason"] == "DependencyInvalid"
        assert (await home.child(key)).revision == planted.revision
        await home.remove(key)
        assert isinstance(await home.step(), Settled)

    setting.play(scenario)
