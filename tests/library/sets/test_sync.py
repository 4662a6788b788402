"""A process that keeps sets as their sources have them: what it declares, refuses, prunes and puts on record."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from setpoint.app import AppSettings, StoreAccess, open_app
from setpoint.engine.resource import ResourceRef
from setpoint.engine.sets.resource_set import SetState, source_of
from setpoint.errors import ManifestInvalid, UserError
from setpoint.library.sets.sync import NamedSource, SetSync, SyncOptions, named_sources
from tests.library.sets.worlds import GivenSource, SetWorld, new_world, secret


def _run(world: SetWorld, *versions: dict[str, str] | None) -> None:
    """The versions of the first set, one after the other."""

    async def run() -> None:
        for files in versions:
            world.sources[0].files = files
            await world.settle()

    asyncio.run(run())


def _members(world: SetWorld) -> dict[str, dict[str, str]]:
    return asyncio.run(world.members())


def _record(world: SetWorld, name: str = "one") -> Any:
    return asyncio.run(world.record(name))


def _source(world: SetWorld, name: str) -> str:
    found = asyncio.run(world.store.behind.get(ResourceRef("", "Secret", "default", name)))
    return source_of(found.annotations)


def test_a_bad_version_leaves_the_last_good_one_and_says_so() -> None:
    world = new_world("one")

    _run(world, {"a.yaml": secret("a")}, {"b.yaml": "kind: [\n"})

    assert _members(world) == {"one": {"a": "a"}}
    record = _record(world)
    assert (record.state, record.count, record.failed_at[:10]) == (SetState.FAILED, 1, "2026-01-01")
    assert record.error.startswith("b.yaml:2: this is not YAML")
    assert record.failed_revision != record.revision


@pytest.mark.parametrize("files", [None, {}, {"a.yaml": "# nothing\n"}])
def test_a_source_that_is_gone_or_empty_prunes_nothing(files: dict[str, str] | None) -> None:
    world = new_world("one")

    _run(world, {"a.yaml": secret("a")}, files)

    assert _members(world) == {"one": {"a": "a"}}
    assert _record(world).state is SetState.FAILED


def test_an_empty_source_prunes_everything_where_that_is_allowed() -> None:
    world = new_world("one")
    world.restart(allow_empty=True)

    _run(world, {"a.yaml": secret("a")}, {})

    assert _members(world) == {}
    assert (_record(world).state, _record(world).count) == (SetState.CURRENT, 0)


def test_a_good_version_after_a_bad_one_clears_the_error() -> None:
    world = new_world("one")

    _run(world, {"a.yaml": secret("a")}, None, {"a.yaml": secret("a")})

    assert (_record(world).state, _record(world).error) == (SetState.CURRENT, "")


def test_the_log_says_when_a_source_was_refused_and_when_it_is_declared_again(caplog: pytest.LogCaptureFixture) -> None:
    world = new_world("one")
    caplog.set_level("INFO")

    _run(world, {"a.yaml": secret("a")}, {"a.yaml": secret("a")}, None, {"a.yaml": secret("a")})

    assert [one.getMessage() for one in caplog.records] == ["declared", "refused", "declared"]


def test_a_bug_leaves_the_last_good_version_and_is_on_record(caplog: pytest.LogCaptureFixture) -> None:
    world = new_world("one")
    _run(world, {"a.yaml": secret("a")})
    broken = BrokenSource("one")

    asyncio.run(_run_for_a_while(SetSync([NamedSource("one", broken)], world.engine, SyncOptions(adopts=True)), broken))

    assert _members(world) == {"one": {"a": "a"}}
    record = _record(world)
    assert (record.state, record.error) == (
        SetState.FAILED,
        "a bug of setpoint (ZeroDivisionError): what was declared stands; see its log",
    )
    assert "declaring sets broke" in caplog.text


class BrokenSource(GivenSource):
    """A source with a bug."""

    looks = 0

    async def look(self) -> str:
        """See Source."""
        self.looks += 1
        raise ZeroDivisionError


async def _run_for_a_while(sync: SetSync, source: BrokenSource) -> None:
    running = asyncio.ensure_future(sync.run())
    while source.looks < 3:
        await asyncio.sleep(0)
    running.cancel()


def test_the_revision_of_a_resource_is_the_one_that_declared_it_as_it_is() -> None:
    world = new_world("one")
    _run(world, {"a.yaml": secret("a"), "b.yaml": secret("b")})
    first = _record(world).revision

    _run(world, {"a.yaml": secret("a", "new"), "b.yaml": secret("b")})

    assert _source(world, "a") == f"{_record(world).revision}:a.yaml"
    assert _source(world, "b") == f"{first}:b.yaml"


def test_a_file_that_is_renamed_keeps_its_resource() -> None:
    world = new_world("one")
    _run(world, {"a.yaml": secret("a")})
    ref = ResourceRef("", "Secret", "default", "a")
    before = asyncio.run(world.store.behind.get(ref))

    _run(world, {"b.yaml": secret("a")})

    after = asyncio.run(world.store.behind.get(ref))
    assert (after.uid, after.generation) == (before.uid, before.generation)
    assert _source(world, "a").endswith(":b.yaml")


def test_a_resource_moves_between_two_sets_of_a_process_without_being_deleted() -> None:
    world = new_world("one", "two")
    one, two = world.sources

    async def run() -> tuple[str, str]:
        one.files, two.files = {"a.yaml": secret("a"), "x.yaml": secret("x")}, {"b.yaml": secret("b")}
        await world.settle()
        before = await world.store.behind.get(ResourceRef("", "Secret", "default", "a"))
        one.files, two.files = {"x.yaml": secret("x")}, {"b.yaml": secret("b"), "a.yaml": secret("a")}
        await world.settle()
        after = await world.store.behind.get(ResourceRef("", "Secret", "default", "a"))
        return before.uid, after.uid

    before, after = asyncio.run(run())

    assert before == after
    assert _members(world) == {"one": {"x": "a"}, "two": {"a": "a", "b": "a"}}


def test_two_sets_that_declare_one_resource_are_refused_with_both_names() -> None:
    world = new_world("one", "two")
    world.sources[1].files = {"b.yaml": secret("a")}

    _run(world, {"a.yaml": secret("a")})

    assert _members(world) == {}
    assert "Secret default/a is declared by the set one and by the set two" in _record(world, "two").error


def test_a_bad_source_holds_back_the_other_sets_of_the_process() -> None:
    world = new_world("one", "two")
    world.sources[1].files = None

    _run(world, {"a.yaml": secret("a")})

    assert _members(world) == {}
    assert _record(world, "one").error == "it is declared together with the set two: given:two: gone"


def test_a_resource_of_another_set_is_adopted_only_on_request() -> None:
    world = new_world("one")
    _run(world, {"a.yaml": secret("a")})
    world.sources = [GivenSource("two")]
    world.restart()
    _run(world, {"a.yaml": secret("a")})
    assert _members(world) == {"one": {"a": "a"}}

    world.restart(adopts=True)
    _run(world, {"a.yaml": secret("a")})

    assert _members(world) == {"two": {"a": "a"}}


def test_what_prevents_a_prune_stays_and_belongs_to_no_set() -> None:
    world = new_world("one")
    kept = secret("a").replace("name: a", 'name: a, annotations: {setpoint.dev/prevent-prune: "true"}')

    _run(world, {"a.yaml": kept, "b.yaml": secret("b")}, {"b.yaml": secret("b")})

    assert _members(world) == {"": {"a": "a"}, "one": {"b": "a"}}


def test_a_manifest_cannot_say_which_set_it_is_in() -> None:
    world = new_world("one")
    forged = secret("a").replace("name: a", "name: a, annotations: {setpoint.dev/set: other, setpoint.dev/source: x}")

    _run(world, {"a.yaml": forged})

    assert _members(world) == {"one": {"a": "a"}}


def test_what_another_writer_changed_or_deleted_in_the_store_is_declared_again() -> None:
    world = new_world("one")
    _run(world, {"a.yaml": secret("a"), "b.yaml": secret("b")})

    async def change() -> None:
        changed = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "stringData": {"key": "edited"}}
        await world.store.behind.apply(changed)
        await world.store.behind.delete(ResourceRef("", "Secret", "default", "b"))
        await world.settle()

    asyncio.run(change())

    assert _members(world) == {"one": {"a": "a", "b": "a"}}


def test_a_source_that_may_be_half_written_is_read_once_it_looks_the_same_twice() -> None:
    world = new_world("one")
    world.sources[0].settles = True
    world.sources[0].files = {"a.yaml": secret("a")}

    async def ticks() -> list[dict[str, dict[str, str]]]:
        found = []
        for files in ({"a.yaml": secret("a")}, {"a.yaml": secret("a", "more")}, {"a.yaml": secret("a", "more")}):
            world.sources[0].files = files
            await world.sync.tick()
            found.append(await world.members())
        return found

    assert asyncio.run(ticks()) == [{}, {}, {"one": {"a": "more"}}]


def test_nothing_is_written_while_nothing_changes() -> None:
    world = new_world("one")
    _run(world, {"a.yaml": secret("a")})
    before = asyncio.run(world.store.behind.list()).revision
    record = _record(world)

    _run(world, {"a.yaml": secret("a")})

    assert asyncio.run(world.store.behind.list()).revision == before
    assert _record(world) == record


def test_figures_say_when_a_source_was_good_and_when_it_failed() -> None:
    world = new_world("one")
    _run(world, {"a.yaml": secret("a")})
    good = world.sync.figures["one"].last_good
    _run(world, None)

    figures = world.sync.figures["one"]
    assert (figures.resources, figures.last_good) == (1, good)
    assert figures.last_failed > good
    assert figures.failures == 4


def _move(world: SetWorld) -> None:
    """The set comes from another source from here on."""
    moved = GivenSource("one")
    moved.name = "elsewhere"
    named = [type(one)("one", moved) for one in world.sync._sources]
    world.sync = type(world.sync)(named, world.engine, world.sync._options)


def test_a_set_of_which_every_version_was_refused_may_come_from_another_source() -> None:
    world = new_world("one")
    _run(world, {"a.yaml": "kind: ["})
    _move(world)

    asyncio.run(world.sync.check())

    assert _record(world).state is SetState.FAILED


def test_a_set_of_another_source_is_refused_unless_it_is_adopted() -> None:
    world = new_world("one")
    _run(world, {"a.yaml": secret("a")})
    _move(world)

    with pytest.raises(UserError, match="the set one was declared from given:one, and this is given:elsewhere"):
        asyncio.run(world.sync.check())


def test_a_new_set_whose_source_cannot_be_read_is_refused_at_the_start() -> None:
    world = new_world("one")
    world.sources[0].files = None

    with pytest.raises(UserError, match="the set one: given:one: gone"):
        asyncio.run(world.sync.check())


def test_sources_are_sets_by_their_names(tmp_path: Any) -> None:
    (tmp_path / "infra.git").mkdir()

    found = named_sources([f"{tmp_path}/apps"], [f"{tmp_path}/infra.git", f"{tmp_path}/infra.git@main:env/prod"], None)

    assert [one.name for one in found] == ["apps", "infra", "prod"]
    with pytest.raises(ManifestInvalid, match="are both called apps"):
        named_sources([f"{tmp_path}/apps", f"{tmp_path}/other/apps"], [], None)
    with pytest.raises(ManifestInvalid, match="there are 2 sources"):
        named_sources([f"{tmp_path}/apps", f"{tmp_path}/more"], [], "both")


def test_what_left_a_set_goes_dependants_first_and_what_is_only_stored_at_last() -> None:
    world = new_world("one")
    google = "annotations: {cnrm.cloud.google.com/project-id: demo}"
    group = "apiVersion: sql.cnrm.cloud.google.com/v1beta1"
    instance = f"{group}\nkind: SQLInstance\nmetadata: {{name: main, {google}}}\nspec: {{databaseVersion: MYSQL_8_0, "
    instance += "region: europe-west1, settings: {tier: db-n1-standard-1}}\n"
    database = (
        f"{group}\nkind: SQLDatabase\nmetadata: {{name: orders, {google}}}\nspec: {{instanceRef: {{name: main}}}}\n"
    )

    async def names_after_each_tick() -> list[set[str]]:
        async with open_app(AppSettings("memory:"), StoreAccess.WRITE) as opened:
            world.engine = replace(opened.engine, store=world.engine.store, clock=world.clock)
            world.restart()
            world.sources[0].files = {
                "a.yaml": instance,
                "b.yaml": database,
                "c.yaml": secret("used"),
                "d.yaml": secret("d"),
            }
            await world.sync.tick()
            world.sources[0].files = {"d.yaml": secret("d")}
            found = []
            for _ in range(3):
                await world.sync.tick()
                found.append({one.ref.name for one in (await world.store.behind.list()).resources})
            return found

    assert asyncio.run(names_after_each_tick()) == [{"main", "used", "d"}, {"used", "d"}, {"d"}]
