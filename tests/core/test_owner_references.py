"""Owner references: the controller of an object."""

from typing import Any

import pytest

from setpoint.core.owner_references import (
    OwnerRef,
    Ownership,
    controller_of,
    owner_reference,
    ownership,
    with_owner_reference,
)

OWNER: dict[str, Any] = {"apiVersion": "x/v1", "kind": "Owner", "metadata": {"name": "o", "uid": "u1"}}
REFERENCE = {
    "apiVersion": "x/v1",
    "kind": "Owner",
    "name": "o",
    "uid": "u1",
    "controller": True,
    "blockOwnerDeletion": True,
}


def child(*references: Any) -> dict[str, Any]:
    return {"metadata": {"name": "c", "ownerReferences": list(references)}}


def test_a_reference_makes_the_owner_the_controller() -> None:
    assert owner_reference(OWNER) == REFERENCE


@pytest.mark.parametrize(
    ("live", "expected"),
    [
        ({"metadata": {}}, Ownership.UNOWNED),
        ({"metadata": {"ownerReferences": "odd"}}, Ownership.UNOWNED),
        (child({"uid": "u1"}, "odd"), Ownership.UNOWNED),
        (child(REFERENCE), Ownership.OURS),
        (child({**REFERENCE, "name": "renamed"}), Ownership.OURS),
        (child({**REFERENCE, "uid": "u2"}), Ownership.OTHER_OWNER),
    ],
)
def test_an_object_is_owned_by_its_controller(live: dict[str, Any], expected: Ownership) -> None:
    assert ownership(live, OWNER) is expected


def test_adopting_keeps_other_owners_and_updates_our_own_reference() -> None:
    other = {"uid": "u2", "controller": False}

    adopted = with_owner_reference(child(other, {"uid": "u1"}), OWNER)

    assert adopted == child(other, REFERENCE)
    assert with_owner_reference(adopted, OWNER) is adopted
    assert with_owner_reference({"metadata": {"name": "c"}}, OWNER) == child(REFERENCE)


@pytest.mark.parametrize(
    "live", [{}, {"metadata": {}}, child(), child({**REFERENCE, "controller": False}), child("odd")]
)
def test_an_object_without_a_controller_is_unowned(live: dict[str, Any]) -> None:
    assert controller_of(live) is None


def test_a_controller_is_named_by_its_group_and_kind_in_the_childs_namespace() -> None:
    live = child({"uid": "u2", "kind": "Other"}, REFERENCE)

    assert controller_of(live) == OwnerRef("x", "Owner", "", "o")
    live["metadata"]["namespace"] = "n"
    assert controller_of(live) == OwnerRef("x", "Owner", "n", "o")
    assert str(controller_of(live)) == "Owner n/o"


def test_a_controller_of_the_core_group_has_no_group() -> None:
    assert controller_of(child({**REFERENCE, "apiVersion": "v1"})) == OwnerRef("", "Owner", "", "o")


def test_the_adopting_owner_is_the_controller() -> None:
    adopted = with_owner_reference({"metadata": {"name": "c", "namespace": "n"}}, OWNER)

    assert controller_of(adopted) == OwnerRef("x", "Owner", "n", "o")
    assert ownership(adopted, OWNER) is Ownership.OURS
