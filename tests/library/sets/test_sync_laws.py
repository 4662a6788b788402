"""Laws of sets: after any sequence of versions, and of kills, the store has what the last good versions declare."""

import asyncio
from collections.abc import Collection
from contextlib import suppress

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from setpoint.engine.resource import ResourceRef
from setpoint.engine.sets.set_plan import PresentResource, plan_sets
from tests.library.sets.worlds import ProcessKilled, SetWorld, new_world, secret

pytestmark = pytest.mark.laws

NAMES = st.sampled_from([f"r{number}" for number in range(4)])
VALUES = st.sampled_from("ab")
# What the files of two sets declare: each resource in one of them.
VERSIONS = st.dictionaries(NAMES, st.tuples(st.sampled_from(("one", "two")), VALUES), max_size=4)
BAD = st.sampled_from(("broken", "unknown kind", "twice", "unreadable"))
# A good or a bad version, and after which call of the store the process is killed, if it is.
COMMITS = st.lists(
    st.tuples(VERSIONS, st.none() | BAD, st.none() | st.tuples(st.integers(0, 12), st.booleans()), st.booleans()),
    max_size=4,
)
Version = dict[str, tuple[str, str]]


_MISTAKES = {
    "broken": {"x.yaml": "kind: [\n"},
    "unknown kind": {"x.yaml": "apiVersion: v1\nkind: Nothing\nmetadata: {name: a}\n"},
    "twice": {"x.yaml": secret("r0"), "y.yaml": secret("r0")},
}


def _write(world: SetWorld, version: Version, bad: str | None) -> None:
    for source in world.sources:
        source.files = {
            f"{name}.yaml": secret(name, value) for name, (own, value) in version.items() if own == source.name
        }
    if bad == "unreadable":
        world.sources[0].files = None
    elif bad is not None:
        world.sources[0].files = {**(world.sources[0].files or {}), **_MISTAKES[bad]}


STRANGER = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "stranger"}, "stringData": {"key": "s"}}
Commit = tuple[Version, str | None, tuple[int, bool] | None, bool]


async def _run(commits: list[Commit], world: SetWorld) -> None:
    world.restart(allow_empty=True)
    await world.store.behind.apply(STRANGER)
    good: Version = {}
    for version, bad, kill, bad_after in commits:
        _write(world, version, bad)
        after = good if bad else version
        if kill is not None:
            await _run_until_killed(world, kill)
            # Whatever was being done: what both versions declare is there, and in a set.
            there = {name for own, members in (await world.members()).items() if own for name in members}
            assert good.keys() & after.keys() <= there
            if bad_after and not bad:
                # The next process finds another version, which is bad: the last one that was committed is the good one.
                after = version if await _is_committed(world) else good
                _write(world, version, "broken")
            world.restart(allow_empty=True)
        await world.settle()
        good = after

        assert await world.members() == _model(good)


async def _is_committed(world: SetWorld) -> bool:
    known = {one.name: one.revision for one in await world.store.behind.sets()}
    return all([known.get(one.name) == await one.look() for one in world.sources])


def _model(good: Version) -> dict[str, dict[str, str]]:
    found = {"": {"stranger": "s"}}
    for name, (own, value) in good.items():
        found.setdefault(own, {})[name] = value
    return found


async def _run_until_killed(world: SetWorld, kill: tuple[int, bool]) -> None:
    world.store.calls_left, world.store.is_after = kill
    with suppress(ProcessKilled):
        await world.settle()
    world.store.calls_left = -1


def _killed_after(call: int) -> list[Commit]:
    """A version without r1, in the middle of which the process is killed; the next one finds a bad version."""
    return [
        ({"r0": ("one", "a"), "r1": ("one", "a")}, None, None, False),
        ({"r0": ("one", "a")}, None, (call, True), True),
    ]


@given(COMMITS)
@example(_killed_after(3))
@example(_killed_after(4))
@example(_killed_after(5))
@settings(deadline=None)
def test_the_store_has_what_the_last_good_versions_declare(commits: list[Commit]) -> None:
    asyncio.run(_run(commits, new_world("one", "two")))


# --- The plan ---------------------------------------------------------------------------------------------------------

REFS = st.sampled_from([ResourceRef("", "Secret", "default", f"r{number}") for number in range(5)])
SETS = st.sampled_from(("", "one", "two", "three"))
PRESENT = st.dictionaries(
    REFS, st.builds(PresentResource, SETS, st.booleans(), st.booleans(), st.sampled_from(("", "protected")))
)


@given(st.dictionaries(st.sampled_from(("one", "two")), st.sets(REFS)), PRESENT, st.booleans())
def test_nothing_is_pruned_that_any_set_declares(
    versions: dict[str, set[ResourceRef]], present: dict[ResourceRef, PresentResource], adopts: bool
) -> None:
    plan = plan_sets(versions, present, adopts=adopts)

    declared = {ref for refs in versions.values() for ref in refs}
    assert not plan.pruned.keys() & declared
    assert not plan.kept.keys() & declared
    assert all(present[ref].set_name in versions for ref in (*plan.pruned, *plan.kept))
    assert not any(present[ref].protection and not present[ref].is_deleting for ref in plan.pruned)
    assert {*plan.declared, *plan.postponed} == declared


def _is_held(one: PresentResource, versions: Collection[str]) -> bool:
    return one.set_name not in ("", *versions) and not one.is_leaving


@given(st.dictionaries(st.sampled_from(("one", "two")), st.sets(REFS)), PRESENT, st.booleans())
def test_a_resource_of_two_sets_is_a_conflict_with_both_names(
    versions: dict[str, set[ResourceRef]], present: dict[ResourceRef, PresentResource], adopts: bool
) -> None:
    plan = plan_sets(versions, present, adopts=adopts)

    twice = versions.get("one", set()) & versions.get("two", set())
    held = {
        ref
        for refs in versions.values()
        for ref in refs
        if not adopts
        and ref in present
        and present[ref].set_name not in ("", *versions)
        and not present[ref].is_leaving
    }
    assert {one.ref for one in plan.conflicts} == twice | held
