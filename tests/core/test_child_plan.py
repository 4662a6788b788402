"""The plan for one child: its write, its field changes and the merge report."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.core.merge.child_plan import ChildPlan, plan_child
from setpoint.core.merge.children import Child, ChildUpdatePolicy, FieldsView
from setpoint.core.merge.merge_report import Resolution
from setpoint.core.merge.threeway import EditableFields, EntryList, EntryMap, LastGenerated, WholeValue, remember
from setpoint.core.owner_references import owner_reference
from setpoint.core.plan import Action
from setpoint.core.redaction import REDACTED
from setpoint.core.schema.policy import Rule
from setpoint.core.values.canonical import same
from setpoint.core.values.json_types import MISSING
from setpoint.core.values.paths import Path
from setpoint.errors import DependencyInvalid, DependencyNotReady

OWNER: dict[str, Any] = {"apiVersion": "x/v1", "kind": "Owner", "metadata": {"name": "o", "namespace": "n", "uid": "1"}}
OTHER = {**OWNER, "metadata": {"name": "other", "namespace": "n", "uid": "2"}}
TABLE: EditableFields = {
    Path(("spec", "size")): WholeValue(),
    Path(("spec", "env")): EntryMap(),
    Path(("spec", "tags")): EntryList(),
    Path(("spec", "disks")): EntryList("name"),
}
SPEC: dict[str, Any] = {"zone": "z", "size": 1, "env": {"a": "1"}, "tags": ["t"], "disks": [{"name": "d", "gb": 1}]}


def object_of(spec: Any, owner: Any = OWNER) -> dict[str, Any]:
    references = [] if owner is None else [owner_reference(owner)]
    metadata = {"name": "c", "namespace": "n", "ownerReferences": references}
    return {"apiVersion": "x/v1", "kind": "Thing", "metadata": metadata, "spec": spec}


def child(spec: Any = None, update_policy: ChildUpdatePolicy = ChildUpdatePolicy.MERGE) -> Child:
    return Child(object_of(SPEC if spec is None else spec), update_policy, FieldsView((Path(("spec",)),)), TABLE)


def last_generated(spec: Any = None) -> LastGenerated:
    return remember({"spec": SPEC if spec is None else spec}, TABLE)


def secret(data: dict[str, str], update_policy: ChildUpdatePolicy = ChildUpdatePolicy.OVERWRITE) -> Child:
    metadata = {"name": "s", "namespace": "n", "ownerReferences": [owner_reference(OWNER)]}
    made: dict[str, Any] = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque", "data": data}
    return Child(made, update_policy, FieldsView((Path(("data",)),)), {})


def changes_of(found: ChildPlan) -> list[tuple[str, Any, Any, Rule | None]]:
    assert found.write is not None
    return [(str(one.path), one.before, one.after, one.rule) for one in found.write.changes]


# --- New --------------------------------------------------------------------------------------------------------------


def test_the_plan_of_a_new_child_lists_its_fields() -> None:
    found = plan_child(child({"zone": "z", "size": 1}), None, OWNER, None)

    assert found.document == object_of({"zone": "z", "size": 1})
    assert found.write is not None
    assert (found.write.action, found.write.name) == (Action.CREATE, "Thing/c")
    assert changes_of(found) == [
        ("Thing/c.spec.zone", MISSING, "z", Rule.GENERATED),
        ("Thing/c.spec.size", MISSING, 1, Rule.GENERATED),
    ]


def test_the_plan_of_a_new_secret_is_redacted() -> None:
    found = plan_child(secret({"key": "c2VjcmV0"}), None, OWNER, None)

    assert changes_of(found) == [
        ("Secret/s.type", MISSING, "Opaque", Rule.GENERATED),
        ("Secret/s.data.key", MISSING, REDACTED, Rule.GENERATED),
    ]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("x" * 200, "x" * 200),
        ("x" * 201, "x" * 60 + "… (201 characters)"),
        (["x" * 198], '["' + "x" * 58 + "… (202 characters)"),
        (7, 7),
    ],
)
def test_a_long_value_is_truncated_in_a_plan(value: Any, shown: Any) -> None:
    found = plan_child(child({"zone": value}), None, OWNER, None)

    assert [one[2] for one in changes_of(found)] == [shown]
    assert found.document["spec"] == {"zone": value}


# --- Ownership --------------------------------------------------------------------------------------------------------


def test_a_child_of_another_owner_is_refused() -> None:
    with pytest.raises(DependencyInvalid, match="Thing n/c belongs to Owner n/other: delete it there, or give this"):
        plan_child(child(), object_of(SPEC, OTHER), OWNER, None)


def test_a_child_of_a_deleted_owner_of_the_same_name_is_waited_for() -> None:
    earlier = {**OWNER, "metadata": {**OWNER["metadata"], "uid": "0"}}

    with pytest.raises(DependencyNotReady, match="Thing n/c is left of an earlier Owner n/o: it is made anew once"):
        plan_child(child(), object_of(SPEC, earlier), OWNER, None)


@pytest.mark.parametrize("owner", [OTHER, None])
def test_a_child_that_is_created_once_is_left_to_its_controller(owner: Any) -> None:
    live = object_of({"zone": "theirs"}, owner)

    assert plan_child(child(update_policy=ChildUpdatePolicy.CREATE_ONLY), live, OWNER, None) == ChildPlan(
        child(update_policy=ChildUpdatePolicy.CREATE_ONLY), live
    )


def test_an_object_without_a_controller_is_adopted_with_its_content() -> None:
    live = object_of({**SPEC, "zone": "theirs", "size": 5}, None)

    found = plan_child(child(), live, OWNER, None)

    assert found.document == object_of({**SPEC, "size": 5})
    assert changes_of(found) == [
        ("Thing/c.metadata.ownerReferences", [], [owner_reference(OWNER)], Rule.GENERATED),
        ("Thing/c.spec.zone", "theirs", "z", Rule.MANAGED),
    ]
    assert [(str(one.path), one.before, one.after, one.rule) for one in found.kept] == [
        ("Thing/c.spec.size", 5, 5, Rule.EDITED)
    ]


# --- Fields -----------------------------------------------------------------------------------------------------------


def test_an_up_to_date_child_is_not_written() -> None:
    live = object_of(SPEC)

    found = plan_child(child(), live, OWNER, last_generated())

    assert found == ChildPlan(child(), live)
    assert found.document is live


def test_each_change_has_its_rule() -> None:
    live = object_of({**SPEC, "zone": "theirs", "env": {"a": "1", "b": "2"}})
    new = {"zone": "z", "size": 2, "env": {}, "tags": ["t"], "disks": []}

    found = plan_child(child(new), live, OWNER, last_generated())

    assert {path: rule for path, _, _, rule in changes_of(found)} == {
        "Thing/c.spec.zone": Rule.MANAGED,
        "Thing/c.spec.size": Rule.GENERATED,
        "Thing/c.spec.env.a": Rule.RETIRED,
        "Thing/c.spec.disks": Rule.RETIRED,
    }


@pytest.mark.parametrize(
    ("edit", "path", "value"),
    [
        ({"size": 5}, "Thing/c.spec.size", 5),
        ({"env": {"a": "9"}}, "Thing/c.spec.env.a", "9"),
        ({"env": {}}, "Thing/c.spec.env.a", MISSING),
        ({"tags": ["t", "mine"]}, "Thing/c.spec.tags.mine", "mine"),
        ({"tags": []}, "Thing/c.spec.tags.t", MISSING),
        ({"disks": [{"name": "d", "gb": 9}]}, "Thing/c.spec.disks[name=d]", {"name": "d", "gb": 9}),
        ({"disks": []}, "Thing/c.spec.disks[name=d]", MISSING),
    ],
)
def test_a_kept_edit_is_listed_with_its_value(edit: Any, path: str, value: Any) -> None:
    live = object_of({**SPEC, **edit})

    found = plan_child(child(), live, OWNER, last_generated())

    assert found.write is None
    assert [(str(one.path), one.before, one.after, one.rule) for one in found.kept] == [
        (path, value, value, Rule.EDITED)
    ]
    assert [one.resolution for one in found.resolutions] == [Resolution.PRESERVED]


def test_a_conflicting_edit_is_listed_as_conflicting() -> None:
    found = plan_child(child({**SPEC, "size": 2}), object_of({**SPEC, "size": 5}), OWNER, last_generated())

    assert [(one.after, one.rule) for one in found.kept] == [(5, Rule.CONFLICTING)]


def test_the_update_of_a_secret_is_redacted() -> None:
    child_, live = secret({"key": "bmV3"}), secret({"key": "b2xk", "more": "eA=="}).object

    found = plan_child(child_, live, OWNER, None)

    assert changes_of(found) == [
        ("Secret/s.data.key", REDACTED, REDACTED, Rule.GENERATED),
        ("Secret/s.data.more", REDACTED, MISSING, Rule.GENERATED),
    ]
    assert found.document["data"] == {"key": "bmV3"}


# --- Laws -------------------------------------------------------------------------------------------------------------

names = st.sampled_from("abc")
specs = st.fixed_dictionaries(
    {},
    optional={
        "zone": names,
        "size": st.integers(0, 2),
        "env": st.dictionaries(names, names, max_size=2),
        "tags": st.lists(names, unique=True, max_size=2),
        "disks": st.lists(
            st.fixed_dictionaries({"name": names, "gb": st.integers(0, 1)}), unique_by=lambda d: d["name"]
        ),
    },
)
owners = st.sampled_from((OWNER, None))


@pytest.mark.laws
@given(specs, specs, specs, owners, st.booleans())
def test_a_second_plan_writes_and_reverts_nothing(last: Any, live: Any, new: Any, owner: Any, is_known: bool) -> None:
    first = plan_child(child(new), object_of(live, owner), OWNER, last_generated(last) if is_known else None)

    again = plan_child(child(new), first.document, OWNER, last_generated(new))

    assert again.write is None
    assert again.document is first.document
    assert {one.resolution for one in again.resolutions} <= {Resolution.PRESERVED}


@pytest.mark.laws
@given(specs, specs, specs, owners)
def test_a_write_is_planned_exactly_when_a_field_differs_and_lists_it(
    last: Any, live: Any, new: Any, owner: Any
) -> None:
    before = object_of(live, owner)

    found = plan_child(child(new), before, OWNER, last_generated(last))

    assert (found.write is None) == same(found.document, before)
    if found.write is not None:
        assert found.write.changes
        assert all(str(one.path).startswith("Thing/c.") for one in found.write.changes)
    made: Any = found.document["spec"]
    assert made.get("zone") == new.get("zone")


@pytest.mark.laws
@given(specs, specs, specs)
def test_kept_fields_are_those_with_a_persistent_resolution(last: Any, live: Any, new: Any) -> None:
    found = plan_child(child(new), object_of(live), OWNER, last_generated(last))

    standing = [one for one in found.resolutions if one.resolution in (Resolution.PRESERVED, Resolution.CONFLICTING)]
    assert [one.path.steps[1:] for one in found.kept] == [one.path.steps for one in standing]
    assert [one.rule is Rule.CONFLICTING for one in found.kept] == [
        one.resolution is Resolution.CONFLICTING for one in standing
    ]
