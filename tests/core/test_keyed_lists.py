"""Keyed lists: elements by key."""

import pytest

from setpoint.core.values.json_types import Json
from setpoint.core.values.paths import index_by_key, is_list_of_objects, key_of, selector
from setpoint.errors import ManifestInvalid


@pytest.mark.parametrize(
    ("element", "key"),
    [
        ({"port": 80, "protocol": "TCP"}, ("80", "TCP")),
        ({"port": 80.0}, ("80", "")),
        ({"port": True, "protocol": None}, ("true", "null")),
        ({"port": [80]}, ("", "")),
        ("80", ("", "")),
    ],
)
def test_a_key_is_the_text_of_its_fields(element: Json, key: tuple[str, ...]) -> None:
    assert key_of(element, ("port", "protocol")) == key


def test_a_key_is_a_step_of_a_path() -> None:
    assert str(selector(("port", "protocol"), ("80", "TCP"))) == "[port=80,protocol=TCP]"


def test_elements_are_indexed_by_key_in_order() -> None:
    assert list(index_by_key([{"name": "b"}, {"name": "a"}], ("name",))) == [("b",), ("a",)]


def test_a_duplicate_key_is_refused() -> None:
    with pytest.raises(ManifestInvalid, match=r"two elements of one list are \[a=1,b=2\]: each a/b may stand once"):
        index_by_key([{"a": 1, "b": 2}, {"a": 1, "b": 2}], ("a", "b"))


@pytest.mark.parametrize(("value", "answer"), [([], True), ([{}], True), ([{}, 1], False), ({}, False), ("x", False)])
def test_only_objects_can_have_keys(value: Json, answer: bool) -> None:
    assert is_list_of_objects(value) is answer
