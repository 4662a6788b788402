"""The changes of a write, as plans show them."""

from typing import Any

import pytest

from setpoint.core.decide import Decision
from setpoint.core.redaction import REDACTED
from setpoint.core.values.json_types import MISSING
from setpoint.core.values.paths import Path
from setpoint.errors import HeldByOthers, RemoteConflict, RemoteInvalid
from setpoint.kinds.kubernetes_object.apply_result import (
    apply_changes,
    conflict_error,
    creation_changes,
    immutable_changes,
    immutable_fields_of,
    is_manual_change,
)
from setpoint.kinds.kubernetes_object.location import ObjectLocation

MANAGER = "setpoint/shop/web"


def owner(fields: Any, manager: str = MANAGER, operation: str = "Apply") -> Any:
    return {"manager": manager, "operation": operation, "fieldsType": "FieldsV1", "fieldsV1": fields}


def thing(value: Any, *owners: Any, kind: str = "ConfigMap") -> Any:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": "a", "managedFields": list(owners)}, **value}


def changes_by_path(changes: Any) -> dict[str, tuple[Any, Any]]:
    return {str(one.path): (one.before, one.after) for one in changes}


X_AND_Y: Any = {'k:{"name":"x"}': {".": {}, "f:name": {}, "f:size": {}}, 'k:{"name":"y"}': {".": {}, "f:name": {}}}


def test_a_new_element_is_shown_by_its_fields_or_by_its_key_if_it_has_nothing_else() -> None:
    made = thing({"list": [{"name": "x", "size": 1}, {"name": "y"}]}, owner({"f:list": X_AND_Y}))

    assert changes_by_path(creation_changes(made)) == {
        "list[name=x].size": (MISSING, 1),
        "list[name=y].name": (MISSING, "y"),
    }


def test_an_object_without_owned_fields_is_shown_by_its_name() -> None:
    assert changes_by_path(creation_changes(thing({}))) == {"metadata.name": (MISSING, "a")}


def test_elements_in_another_order_are_a_change_and_new_ones_are_none() -> None:
    fields: Any = {"f:list": {f'k:{{"name":"{name}"}}': {".": {}, "f:name": {}} for name in "xyz"}}
    before = thing({"list": [{"name": "x"}, {"name": "y"}]}, owner(fields))
    turned = thing({"list": [{"name": "y"}, {"name": "x"}]}, owner(fields))
    longer = thing({"list": [{"name": "z"}, {"name": "x"}, {"name": "y"}]}, owner(fields))

    assert changes_by_path(apply_changes(before, turned, MANAGER)) == {
        "list": (["[name=x]", "[name=y]"], ["[name=y]", "[name=x]"])
    }
    assert changes_by_path(apply_changes(before, longer, MANAGER)) == {"list[name=z].name": (MISSING, "z")}


def test_a_field_that_another_manager_took_over_is_shown_with_its_value() -> None:
    live = thing({"data": {"a": "theirs"}}, owner({"f:data": {"f:a": {}}}, "kubectl-edit", "Update"))
    after = thing({"data": {"a": "ours"}}, owner({"f:data": {"f:a": {}}}))

    assert changes_by_path(apply_changes(live, after, MANAGER)) == {"data.a": ("theirs", "ours")}


def test_a_change_of_ownership_alone_is_counted() -> None:
    live = thing({"data": {"a": "1", "b": "2"}}, owner({"f:data": {"f:a": {}, "f:b": {}}}, "helm"))
    after = thing({"data": {"a": "1", "b": "2"}}, owner({"f:data": {"f:a": {}, "f:b": {}}}))

    assert changes_by_path(apply_changes(live, after, MANAGER)) == {
        f"metadata.managedFields[manager={MANAGER}]": (MISSING, "2 fields")
    }
    assert apply_changes(after, after, MANAGER) == ()


@pytest.mark.parametrize("path", ["data.a", "data", "stringData.a"])
def test_values_of_a_secret_are_hidden_also_where_they_are_immutable(path: str) -> None:
    secret = thing({"data": {"a": "x"}, "stringData": {"a": "x"}}, kind="Secret")

    assert changes_by_path(immutable_changes([path], secret, secret)) == {path: (REDACTED, REDACTED)}


def test_a_copy_of_a_secret_in_an_annotation_is_hidden() -> None:
    name = "kubectl.kubernetes.io/last-applied-configuration"
    fields: Any = {"f:metadata": {"f:annotations": {f"f:{name}": {}}}}
    secret = thing({}, owner(fields), kind="Secret")
    secret["metadata"]["annotations"] = {name: "x"}

    assert changes_by_path(creation_changes(secret)) == {f'metadata.annotations["{name}"]': (MISSING, REDACTED)}


@pytest.mark.parametrize(
    ("message", "fixed"),
    [
        ("Invalid value: {}: field is immutable", True),
        ("Forbidden: updates to statefulset spec for fields other than 'replicas' are forbidden", True),
        ("Forbidden: spec is immutable after creation except resources.requests", True),
        ("Forbidden: updates to provisioner are forbidden.", True),
        ("Invalid value: []: may not change once set", True),
        ("Forbidden: pod updates may not change fields other than `spec.containers[*].image`", True),
        ("Invalid value: {}: cannot change roleRef", True),
        ("Forbidden: may not be specified when strategy `type` is 'Recreate'", False),
        ("Forbidden: not allowed", False),
        ("Required value", False),
    ],
)
def test_only_messages_about_immutability_are_taken_for_it(message: str, fixed: bool) -> None:
    assert immutable_fields_of(RemoteInvalid("no", (("spec.a", message),))) == (("spec.a",) if fixed else ())
    assert immutable_fields_of(RemoteInvalid("no", (("spec.a", message), ("spec.b", "Required value")))) == ()


@pytest.mark.parametrize(
    ("operations", "decision", "by_hand"),
    [
        (["Update"], Decision.DRIFTED, True),
        (["Update"], Decision.BOTH, False),
        (["Update"], Decision.FIRST_LOOK, False),
        (["Apply"], Decision.DRIFTED, False),
        (["Update", "Apply"], Decision.DRIFTED, False),
        ([], Decision.DRIFTED, False),
    ],
)
def test_only_fields_that_no_manager_applies_are_changed_manually(
    operations: list[str], decision: Decision, by_hand: bool
) -> None:
    live = thing({}, *(owner({}, "them", one) for one in operations))

    assert is_manual_change(HeldByOthers("no", (("data.a", "them"),)), live, decision) is by_hand


def test_a_conflict_about_ignored_fields_is_observed_again() -> None:
    place = ObjectLocation("own", "v1", "ConfigMap", "shop", "a")
    held = HeldByOthers("no", ((".spec.replicas", "hpa"),))
    more = HeldByOthers("no", ((".spec.replicas", "hpa"), (".spec.paused", "me")))

    assert isinstance(conflict_error(held, place, [Path(("spec", "replicas"))]), RemoteConflict)
    assert isinstance(conflict_error(held, place), HeldByOthers)
    assert isinstance(conflict_error(more, place, [Path(("spec", "replicas"))]), HeldByOthers)
