"""Laws of field sets."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.core.values.canonical import same
from setpoint.core.values.json_types import MISSING
from setpoint.core.values.paths import Path, get_at
from setpoint.kinds.kubernetes_object.apply_result import contains
from setpoint.kinds.kubernetes_object.managed_fields import NO_FIELDS, FieldSet, extract, owned_below, project, union
from tests.kinds.kubernetes_object.owned_trees import ATOMIC, OBJECTS, Owned

pytestmark = pytest.mark.laws


def with_other_things(value: Any, fields: Any, draw: Any) -> Any:
    """The same owned values; unowned ones are changed, removed or added."""
    below = {step: one for step, one in fields.items() if step != "."}
    if not below:
        return value
    if isinstance(value, dict):
        ours = {name: one for name, one in value.items() if f"f:{name}" in below}
        kept = {name: with_other_things(one, below[f"f:{name}"], draw) for name, one in ours.items()}
        return {**kept, "brought.by.others": draw(ATOMIC)}
    return value


@given(OBJECTS)
def test_a_projection_has_exactly_the_owned_leaves(owned: Owned) -> None:
    found = project(owned.value, owned.fields).leaves

    assert found.keys() == owned.leaves.keys()
    assert all(same(found[path], value) for path, value in owned.leaves.items())


@given(OBJECTS, st.data())
def test_changes_of_unowned_fields_do_not_change_the_projection(owned: Owned, data: st.DataObject) -> None:
    other = with_other_things(owned.value, owned.fields, data.draw)

    assert same(project(other, owned.fields).to_data(), project(owned.value, owned.fields).to_data())


@given(OBJECTS)
def test_an_extract_has_all_owned_values(owned: Owned) -> None:
    carved = extract(owned.value, owned.fields)

    assert same(project(carved, owned.fields).to_data(), project(owned.value, owned.fields).to_data())
    assert same(extract(carved, owned.fields), carved)


@given(OBJECTS)
def test_the_union_of_a_field_set_with_itself_is_itself(owned: Owned) -> None:
    assert same(union(owned.fields, owned.fields), owned.fields)
    assert same(union(owned.fields, NO_FIELDS), owned.fields)
    assert same(union(NO_FIELDS, owned.fields), owned.fields)


@given(OBJECTS, OBJECTS, OBJECTS)
def test_the_union_does_not_depend_on_the_order_of_managers(one: Owned, two: Owned, three: Owned) -> None:
    assert same(union(one.fields, two.fields), union(two.fields, one.fields))
    assert same(union(union(one.fields, two.fields), three.fields), union(one.fields, union(two.fields, three.fields)))


@given(OBJECTS)
def test_an_owned_leaf_is_owned_by_its_path(owned: Owned) -> None:
    for path in owned.leaves:
        # A step that is the text of an element cannot be written as a path.
        found = get_at(owned.value, path)
        if found is not MISSING and same([found], [owned.leaves[path]]):
            assert owned_below(owned.fields, owned.value, path) == NO_FIELDS


@given(OBJECTS)
def test_a_field_set_without_fields_below_a_path_owns_nothing_there(owned: Owned) -> None:
    assert owned_below(owned.fields, owned.value, Path(("brought by others",))) is None


def test_an_owned_empty_map_stays_empty_when_other_managers_fill_it() -> None:
    fields: FieldSet = {"f:labels": {}}
    other_fields: FieldSet = {"f:labels": {"f:theirs": {}}}

    assert project({"labels": {"theirs": "x"}}, fields, other_fields).leaves == {Path(("labels",)): {}}
    assert project({"labels": {"theirs": "x"}}, fields).leaves == {Path(("labels",)): {"theirs": "x"}}


def test_elements_by_position_and_by_several_keys() -> None:
    fields: FieldSet = {
        "f:args": {"i:1": {}},
        "f:ports": {'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:port": {}}},
    }
    value: Any = {"args": ["a", "b"], "ports": [{"port": 80, "protocol": "UDP"}, {"port": 80, "protocol": "TCP"}]}

    found = project(value, fields).leaves

    assert {str(path): one for path, one in found.items()} == {
        "args[1]": "b",
        "ports[port=80,protocol=TCP].port": 80,
    }
    assert owned_below(fields, value, Path.parse("ports[protocol=TCP].port")) == NO_FIELDS
    assert owned_below(fields, value, Path.parse("ports[1].port")) == NO_FIELDS
    assert owned_below(fields, value, Path.parse("ports[0].port")) is None


def test_owned_fields_without_a_value_are_left_out() -> None:
    fields: FieldSet = {"f:a": {}, "f:b": {"f:c": {}}, "f:list": {"k:{}": {}, 'v:"x"': {}, "i:9": {}, "k:nonsense": {}}}

    assert project({"b": "text", "list": []}, fields).leaves == {}


def with_more_members(value: Any, draw: Any) -> Any:
    """The same value; objects have more members."""
    if isinstance(value, dict):
        return {"more": draw(ATOMIC)} | {name: with_more_members(one, draw) for name, one in value.items()}
    return [with_more_members(one, draw) for one in value] if isinstance(value, list) else value


@given(OBJECTS, st.data())
def test_an_object_contains_what_was_sent_whatever_members_are_added(owned: Owned, data: st.DataObject) -> None:
    assert contains(with_more_members(owned.value, data.draw), owned.value)


def with_another_value(value: Any, draw: Any) -> Any:
    """The same tree, with another value somewhere in it."""
    if isinstance(value, dict) and value:
        name = draw(st.sampled_from(sorted(value)))
        return {**value, name: with_another_value(value[name], draw)}
    if isinstance(value, list) and value:
        index = draw(st.integers(0, len(value) - 1))
        return [*value[:index], with_another_value(value[index], draw), *value[index + 1 :]]
    return [value, "another"]


@given(OBJECTS, st.data())
def test_an_object_does_not_contain_what_has_another_value(owned: Owned, data: st.DataObject) -> None:
    changed = with_another_value(owned.value, data.draw)

    assert not contains(changed, owned.value)
    assert not contains(owned.value, changed)
