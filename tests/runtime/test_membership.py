"""Which processes are members, under which leases, and with which identities."""

import pytest

from setpoint.engine.ports import Lease
from setpoint.errors import UserError
from setpoint.runtime.sharding.assignment import member_lease_for, members_in, new_identity

NOW = "2026-01-01T00:00:00Z"
NOW_SECONDS = 1_767_225_600.0


def lease(name: str, holder: str, left: float) -> Lease:
    return Lease(f"setpoint-{name}", holder, 1, NOW_SECONDS + left)


RECORD = {
    one.name: one
    for one in (
        lease("member-0", "a", 6),
        lease("member-1", "b", 0),
        lease("member-2", "", 15),
        lease("member-3", "c", 15),
        lease("member-4", "e", 5),
        lease("shard-0", "d", 15),
        lease("layout", "4-shards-v1", 15),
    )
}


def test_a_member_has_renewed_its_lease_recently_enough_to_write() -> None:
    assert members_in(RECORD, NOW) == {"a", "c"}


def test_a_membership_lease_is_free_once_it_has_expired() -> None:
    assert member_lease_for("f", {**RECORD, "setpoint-member-1": lease("member-1", "b", 1)}, NOW) == "setpoint-member-2"
    assert member_lease_for("e", RECORD, NOW) == "setpoint-member-4"


@pytest.mark.parametrize(("identity", "seat"), [("c", "setpoint-member-3"), ("b", "setpoint-member-1")])
def test_a_process_keeps_its_membership_lease_or_takes_the_first_free_one(identity: str, seat: str) -> None:
    assert member_lease_for(identity, RECORD, NOW) == seat


def test_there_is_always_a_free_membership_lease() -> None:
    full = {one.name: one for one in (lease("member-0", "a", 1), lease("member-1", "b", 1))}

    assert [member_lease_for("c", record, NOW) for record in ({}, full)] == ["setpoint-member-0", "setpoint-member-2"]


def test_two_processes_of_one_name_have_different_identities() -> None:
    identities = {new_identity("setpoint-7d9f") for _ in range(100)}

    assert len(identities) == 100
    assert all(one.startswith("setpoint-7d9f-") for one in identities)


@pytest.mark.parametrize("name", ["", "-a", "a b", "a/b", "ä", "a" * 101])
def test_a_name_that_does_not_fit_into_a_lease_is_rejected(name: str) -> None:
    with pytest.raises(UserError, match=r"^--identity .*: write at most 100 letters, digits, -, \. and _"):
        new_identity(name)
