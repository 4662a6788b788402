"""Subset merge: generated fields are set, fields added by the API server stay."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.core.merge.children import contains_all, merge_subset
from setpoint.core.values.json_types import Json


@pytest.mark.parametrize(
    ("live", "wanted"),
    [
        ({"a": 1, "default": 2}, {"a": 1}),
        ({"a": {"b": [{"c": 1, "d": 2}]}}, {"a": {"b": [{"c": 1}]}}),
        ({}, {"a": {}, "b": [], "c": None, "d": ""}),
        ({"a": 1.0}, {"a": 1}),
        ({"a": ("x",)}, {"a": ["x"]}),
    ],
)
def test_added_fields_are_no_difference(live: Json, wanted: Json) -> None:
    assert contains_all(live, wanted)


@pytest.mark.parametrize(
    ("live", "wanted"),
    [
        ({"a": True}, {"a": 1}),
        ({}, {"a": 0}),
        ({"a": [1, 2]}, {"a": [1]}),
        ({"a": []}, {"a": [1]}),
        ({"a": "text"}, {"a": {"b": 1}}),
        ({"a": "text"}, {"a": ["t"]}),
    ],
)
def test_every_other_difference_counts(live: Json, wanted: Json) -> None:
    assert not contains_all(live, wanted)


@pytest.mark.parametrize(
    ("live", "wanted", "made"),
    [
        ({"a": 1, "added": 2}, {"a": 3}, {"a": 3, "added": 2}),
        ({"a": {"b": 1, "added": 2}}, {"a": {"b": 3}, "empty": []}, {"a": {"b": 3, "added": 2}}),
        ({"a": "text"}, {"a": {"b": 1}}, {"a": {"b": 1}}),
        ({"added": 1}, {"list": ["x"]}, {"added": 1, "list": ["x"]}),
        (["x", "y"], ["y"], ["y"]),
        ([{"name": "x"}, {"name": "a", "v": 1, "z": 2}], [{"name": "a", "v": 3}], [{"name": "a", "v": 3, "z": 2}]),
        ([{"v": 1, "added": 2}], [{"v": 3}], [{"v": 3}]),
        ([{"name": "a"}, "text"], [{"name": "b"}, "other"], [{"name": "b"}, "other"]),
    ],
)
def test_added_fields_stay_and_lists_become_as_wanted(live: Json, wanted: Json, made: Json) -> None:
    assert merge_subset(live, wanted) == made


@pytest.mark.parametrize(
    ("live", "wanted"),
    [
        ({"name": "v", "configMap": {"name": "c"}}, {"name": "v", "secret": {"secretName": "s"}}),
        ({"name": "A", "valueFrom": {"fieldRef": {}}}, {"name": "A", "value": "1"}),
        ({"exec": {"command": ["x"]}, "periodSeconds": 9}, {"httpGet": {"path": "/"}, "periodSeconds": 10}),
    ],
)
def test_an_alternative_of_a_wanted_field_is_replaced(live: Json, wanted: Json) -> None:
    assert merge_subset([live], [wanted]) == [wanted]


scalars = st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from(("", "x"))
names = st.sampled_from(("name", "a", "b"))
trees: st.SearchStrategy[Any] = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3), max_leaves=10
)


@pytest.mark.laws
@given(trees, trees)
def test_a_subset_merge_contains_all_wanted_fields_and_is_idempotent(live: Json, wanted: Json) -> None:
    made = merge_subset(live, wanted)

    assert contains_all(made, wanted)
    assert merge_subset(made, wanted) is made


@pytest.mark.laws
@given(trees, trees)
def test_an_object_that_contains_all_wanted_fields_is_unchanged(live: Json, wanted: Json) -> None:
    assert (merge_subset(live, wanted) is live) or not contains_all(live, wanted)
