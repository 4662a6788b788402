"""Which fields people changed, told without a memory."""

import pytest

from setpoint.core.merge.merge_report import edited_fields
from setpoint.core.merge.threeway import EditableFields, EntryList, EntryMap, WholeValue
from setpoint.core.values.json_types import Json
from setpoint.core.values.paths import Path

TABLE: EditableFields = {
    Path.parse("size"): WholeValue(own=("auto",)),
    Path.parse("env"): EntryMap(),
    Path.parse("list"): EntryList("name"),
}


def edited(live: Json, generated: Json) -> list[str]:
    return [str(path) for path in edited_fields(live, generated, TABLE)]


@pytest.mark.parametrize("live", [{}, {"size": ""}, {"size": 1}, {"size": "auto"}])
def test_an_empty_equal_or_own_value_is_no_edit(live: Json) -> None:
    assert edited(live, {"size": 1}) == []


@pytest.mark.parametrize("value", [0, False, "x", True])
def test_any_other_value_is_one(value: Json) -> None:
    assert edited({"size": value}, {"size": 1}) == ["size"]


@pytest.mark.parametrize("env", [None, {}, {"A": None}, {"A": "1", "B": None}])
def test_an_empty_or_equal_map_is_no_edit(env: Json) -> None:
    assert edited({"env": env}, {"env": {"A": "1"}}) == []


@pytest.mark.parametrize("env", [{"A": ""}, {"B": "1"}, {"A": "1", "B": ""}])
def test_a_map_that_differs_either_way_is_one(env: Json) -> None:
    assert edited({"env": env}, {"env": {"A": "1"}}) == ["env"]


def test_what_is_no_map_is_an_edit_as_long_as_it_is_something() -> None:
    assert edited({"env": "text"}, {}) == ["env"]
    assert edited({"env": ""}, {}) == []


def test_a_list_counts_with_its_order() -> None:
    a, b = {"name": "a"}, {"name": "b", "path": ""}

    assert edited({"list": [b, a]}, {"list": [a, b]}) == ["list"]
    assert edited({"list": [a, {"name": "b"}]}, {"list": [a, b]}) == []
    assert edited({"list": []}, {"list": [a]}) == []
