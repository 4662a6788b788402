"""Merge patch (RFC 7386), and members of JSON bodies."""

from typing import Any

import pytest

from setpoint.localcloud.schema import merge_patch, with_member, without_member


@pytest.mark.parametrize(
    ("target", "patch", "result"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_merge_patch_follows_the_examples_of_rfc_7386(target: Any, patch: Any, result: Any) -> None:
    assert merge_patch(target, patch) == result


def test_a_member_can_be_set_and_removed_without_touching_the_original() -> None:
    tree = {"a": {"b": 1}}

    assert with_member(tree, "a.c.d", 2) == {"a": {"b": 1, "c": {"d": 2}}}
    assert without_member(tree, "a.b") == {"a": {}}
    assert tree == {"a": {"b": 1}}
