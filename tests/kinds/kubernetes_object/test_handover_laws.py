"""Fields of former field managers are handed over: none is lost, and those of others are left alone."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from setpoint.errors import HeldByOthers
from setpoint.kinds.kubernetes_object.field_handover import conflict_with_others, handover_patch

OURS = "setpoint/default/tf-a"
FORMER = ("Terraform", "HashiCorp")
NAMES = st.sampled_from(["f:a", "f:b", "f:c"])
FIELDS = st.recursive(
    st.just(dict[str, Any]()), lambda below: st.dictionaries(NAMES, below, min_size=1, max_size=3), max_leaves=6
)
# An API server keeps one entry for a manager, an operation, a subresource and, beside an apply, a version.
ENTRIES = st.lists(
    st.builds(
        lambda manager, operation, version, subresource, fields: {
            "manager": manager,
            "operation": operation,
            "apiVersion": version,
            "fieldsType": "FieldsV1",
            "fieldsV1": fields,
            **({"subresource": subresource} if subresource else {}),
        },
        st.sampled_from([*FORMER, "argocd", OURS]),
        st.sampled_from(["Apply", "Update"]),
        st.sampled_from(["v1", "v1beta1"]),
        st.sampled_from(["", "status"]),
        FIELDS,
    ),
    max_size=6,
    unique_by=lambda one: (
        one["manager"],
        one["operation"],
        one.get("subresource"),
        one["apiVersion"] if one["operation"] == "Update" else "",
    ),
)


def leaves(fields: dict[str, Any], at: tuple[str, ...] = ()) -> set[tuple[str, ...]]:
    """Every path of a field set."""
    return {at} | {path for step, below in fields.items() for path in leaves(below, (*at, step))}


def is_handed(entry: dict[str, Any]) -> bool:
    return entry["manager"] in FORMER and "subresource" not in entry


def is_own(entry: dict[str, Any]) -> bool:
    return (entry["manager"], entry["operation"], entry.get("subresource")) == (OURS, "Apply", None)


@given(ENTRIES)
def test_every_field_of_a_former_manager_becomes_ours_and_no_other_one(entries: list[dict[str, Any]]) -> None:
    live: dict[str, Any] = {"apiVersion": "v1", "metadata": {"resourceVersion": "7", "managedFields": entries}}
    handed, others = [one for one in entries if is_handed(one)], [one for one in entries if not is_handed(one)]
    patch = handover_patch(live, FORMER, OURS)
    if not handed:
        assert patch is None
        return

    assert patch is not None
    after: Any = patch[0]["value"]
    assert patch[1] == {"op": "replace", "path": "/metadata/resourceVersion", "value": "7"}
    assert [one for one in after if not is_own(one)] == [one for one in others if not is_own(one)]
    merged = [one for one in entries if (is_handed(one) or is_own(one)) and one["apiVersion"] == "v1"]
    ours = [leaves(one["fieldsV1"]) for one in after if is_own(one)]
    assert ours == ([set().union(*(leaves(one["fieldsV1"]) for one in merged))] if merged else [])
    # Once is enough.
    assert handover_patch({**live, "metadata": {"managedFields": after}}, FORMER, OURS) is None


@given(st.lists(st.tuples(NAMES, st.sampled_from([*FORMER, "argocd"]))))
def test_a_conflict_with_others_names_them_alone(held: list[tuple[str, str]]) -> None:
    error = HeldByOthers("conflict", tuple(held))
    others = conflict_with_others(error, FORMER)
    left = tuple(one for one in held if one[1] == "argocd")

    assert (others is None) == (bool(held) and not left)
    assert others is None or others.held == left
