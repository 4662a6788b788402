"""Paths: text and trees."""

import copy
from contextlib import suppress

import pytest
from hypothesis import given

from setpoint.core.values.canonical import same
from setpoint.core.values.json_types import MISSING, Json
from setpoint.core.values.paths import Path, Selector, get_at, remove_at, set_at
from setpoint.errors import ManifestInvalid
from tests.laws.json_values import json_values, paths, small_json, text, trees_with_paths

pytestmark = pytest.mark.laws


@given(paths)
def test_parse_undoes_format(path: Path) -> None:
    assert Path.parse(str(path)) == path


@given(text)
def test_any_text_is_a_path_or_a_clear_error(written: str) -> None:
    with suppress(ManifestInvalid):
        path = Path.parse(written)
        assert Path.parse(str(path)) == path


@given(trees_with_paths(), small_json)
def test_a_set_value_is_read_back(place: tuple[Json, Path], value: Json) -> None:
    tree, path = place

    assert get_at(set_at(tree, path, value), path) is value


@given(trees_with_paths(), small_json)
def test_a_removed_value_is_missing(place: tuple[Json, Path], value: Json) -> None:
    tree, path = place
    inside = path / "new"

    assert get_at(remove_at(set_at(set_at(tree, path, {}), inside, value), inside), inside) is MISSING


@given(trees_with_paths(), text, small_json)
def test_a_value_set_in_a_keyed_element_is_read_back(place: tuple[Json, Path], key: str, value: Json) -> None:
    tree, path = place
    inside = path / Selector((("key", key),)) / "value"

    assert get_at(set_at(set_at(tree, path, []), inside, value), inside) is value


@given(trees_with_paths(), small_json)
def test_setting_and_removing_never_mutate_their_input(place: tuple[Json, Path], value: Json) -> None:
    tree, path = place
    before = copy.deepcopy((tree, value))

    set_at(tree, path, value)
    remove_at(tree, path)

    assert repr((tree, value)) == repr(before)


@given(small_json, paths)
def test_removing_an_absent_value_returns_the_same_tree(tree: Json, path: Path) -> None:
    assert remove_at(tree, path / "nowhere") is tree


@given(json_values)
def test_every_value_of_a_tree_can_be_read_and_set_by_its_path(tree: Json) -> None:
    def places(node: Json, at: Path) -> list[tuple[Path, Json]]:
        steps = list(node.items()) if isinstance(node, dict) else []
        steps += list(enumerate(node)) if isinstance(node, list) else []
        return [(at, node), *(found for step, below in steps for found in places(below, at / step))]

    for path, value in places(tree, Path()):
        assert get_at(tree, Path.parse(str(path))) is value
        assert same(set_at(tree, path, value), tree)
