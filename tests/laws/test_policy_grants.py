"""Laws of policies: what a change does not name stays, whatever other writers have in the policy."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.kinds.gcp.iam.grants import Grant, GrantCondition, bindings_of, changed_policy, grants_in, normal_member

pytestmark = pytest.mark.laws

conditions = st.none() | st.builds(GrantCondition, st.sampled_from("tu"), st.sampled_from(["", "d"]), st.just("true"))
members = st.sampled_from(
    [
        "allUsers",
        "user:a@example.com",
        "group:b@example.com",
        "deleted:user:a@example.com?uid=1",
        "serviceAccount:p.svc.id.goog[ns/Account]",
        "principal://iam.googleapis.com/Pools/Subject",
    ]
)
grants = st.frozensets(st.builds(Grant, st.sampled_from(["roles/a", "roles/b"]), members, conditions))


@st.composite
def policies(draw: st.DrawFn) -> dict[str, Any]:
    """A policy in any form that means the same: bindings split up, in any order, with members twice."""
    found = [one for part in draw(st.lists(grants, max_size=4)) for one in bindings_of(part)]
    return {"etag": "e", "unknown": {"x": 1}, "bindings": draw(st.permutations(found))}


@given(policies(), grants, grants)
def test_a_change_adds_and_removes_exactly_what_it_names(
    policy: dict[str, Any], add: frozenset[Grant], remove: frozenset[Grant]
) -> None:
    before = grants_in(policy["bindings"])

    after = changed_policy(policy, add, remove)

    assert grants_in(after["bindings"]) == (before - remove) | add
    assert {name: after[name] for name in ("etag", "unknown", "version")} == {
        "etag": "e",
        "unknown": {"x": 1},
        "version": 3,
    }


@given(policies(), grants)
def test_what_is_added_and_removed_again_leaves_what_was_there(policy: dict[str, Any], ours: frozenset[Grant]) -> None:
    before = grants_in(policy["bindings"])

    there = changed_policy(policy, ours, ())
    gone = changed_policy(there, (), ours)

    assert grants_in(gone["bindings"]) == before - ours


@given(grants)
def test_bindings_say_the_same_as_the_grants_they_are_made_of(found: frozenset[Grant]) -> None:
    assert grants_in(bindings_of(found)) == found


@given(members)
def test_a_member_has_one_normal_form(member: str) -> None:
    once = normal_member(member)

    assert normal_member(once) == once
    assert once.lower() == member.lower()
