"""Whether a live object is as wanted, apart from what its server added."""

import pytest

from setpoint.core.covering import covers
from setpoint.core.values import Json


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
def test_what_was_added_does_not_matter(live: Json, wanted: Json) -> None:
    assert covers(live, wanted)


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
def test_everything_else_does(live: Json, wanted: Json) -> None:
    assert not covers(live, wanted)
