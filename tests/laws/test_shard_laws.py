"""Shards: every resource has one, every shard has one member, and few shards move when members are added or removed."""

from collections import Counter
from math import sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.engine.resource import ResourceRef
from setpoint.runtime.sharding.assignment import shard_of, shard_winner

pytestmark = pytest.mark.laws

NAMES = st.text("abcdefghijklmnopqrstuvwxyz0123456789-.", min_size=1, max_size=20)
REFS = st.builds(ResourceRef, NAMES, NAMES, NAMES, NAMES)
MEMBERS = st.sets(NAMES, min_size=1, max_size=8)
SHARDS = range(64)
# Further off than chance gets once in a billion tries.
SIGMAS = 6.5


def shares(members: set[str], number: int = len(SHARDS)) -> dict[int, str | None]:
    return {shard: shard_winner(shard, members) for shard in range(number)}


@given(REFS, st.integers(1, 2000))
def test_every_resource_has_one_shard(ref: ResourceRef, number: int) -> None:
    assert 0 <= shard_of(ref, number) < number


@pytest.mark.parametrize(
    ("ref", "shards"),
    [
        (ResourceRef("sql.cnrm.cloud.google.com", "SQLInstance", "default", "db"), (0, 2, 322)),
        (ResourceRef("", "Secret", "default", "login"), (0, 0, 960)),
        (ResourceRef("storage.cnrm.cloud.google.com", "StorageBucket", "team-a", "logs"), (0, 11, 43)),
    ],
)
def test_the_shard_of_a_resource_never_changes(ref: ResourceRef, shards: tuple[int, int, int]) -> None:
    """If one of these differed, two versions would reconcile one resource: see LAYOUT."""
    assert (shard_of(ref, 1), shard_of(ref, 16), shard_of(ref, 1024)) == shards


def test_the_member_that_has_a_shard_never_changes() -> None:
    found = [shard_winner(shard, ["setpoint-a", "setpoint-b", "setpoint-c"]) for shard in range(8)]

    assert [name[-1] if name else "" for name in found] == list("cbcabbca")


@given(REFS)
def test_refs_that_concatenate_to_the_same_text_are_distinct(one: ResourceRef) -> None:
    moved = ResourceRef(one.group + one.kind[:1], one.kind[1:], one.namespace, one.name)

    assert (shard_of(one, 2**62) == shard_of(moved, 2**62)) == (one == moved)


@given(MEMBERS)
def test_every_shard_has_one_member_in_whatever_order_members_are_counted(members: set[str]) -> None:
    found = shares(members)

    assert set(found.values()) <= members
    assert found == {shard: shard_winner(shard, sorted(members, reverse=True)) for shard in SHARDS}


def test_without_members_no_shard_is_assigned() -> None:
    assert shard_winner(0, []) is None


@given(MEMBERS, st.data())
def test_a_removed_member_moves_only_its_own_shards(members: set[str], data: st.DataObject) -> None:
    gone = data.draw(st.sampled_from(sorted(members)))
    before, after = shares(members), shares(members - {gone})

    assert {shard for shard in SHARDS if before[shard] != after[shard]} == {
        shard for shard in SHARDS if before[shard] == gone
    }


@given(MEMBERS, NAMES)
def test_an_added_member_takes_its_share_and_moves_no_other_shard(members: set[str], comer: str) -> None:
    number = 1024
    before, after = shares(members - {comer}, number), shares(members | {comer}, number)
    moved = [shard for shard in range(number) if before[shard] != after[shard]]

    assert all(after[shard] == comer for shard in moved)
    assert len(moved) <= _most(number, 1 / len(members | {comer}))


@given(MEMBERS)
def test_shards_are_spread_evenly_over_members(members: set[str]) -> None:
    number = 1024
    counts = Counter(shares(members, number).values())

    assert all(_least(number, 1 / len(members)) <= counts[member] for member in members)
    assert all(counts[member] <= _most(number, 1 / len(members)) for member in members)


@given(st.integers(2, 16), NAMES)
def test_resources_are_spread_evenly_over_shards(number: int, namespace: str) -> None:
    refs = [ResourceRef("g", "Kind", namespace, f"n{one}") for one in range(2000)]
    counts = Counter(shard_of(ref, number) for ref in refs)

    assert all(_least(2000, 1 / number) <= counts[shard] <= _most(2000, 1 / number) for shard in range(number))


def _most(number: int, share: float) -> float:
    return number * share + SIGMAS * sqrt(number * share * (1 - share))


def _least(number: int, share: float) -> float:
    return number * share - SIGMAS * sqrt(number * share * (1 - share))
