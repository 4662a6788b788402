"""Laws of selectors and templates, against slow and obvious ways."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.core.values.json_types import Json
from setpoint.errors import ManifestInvalid
from setpoint.library.selecting.custom_columns import CustomColumns
from setpoint.library.selecting.field_selector import FieldSelector
from setpoint.library.selecting.json_path import FieldPath, JsonPathTemplate
from setpoint.library.selecting.label_selector import LabelSelector

pytestmark = pytest.mark.laws

_keys = st.sampled_from(("a", "b-c", "example.com/d"))
_values = st.sampled_from(("", "x", "y", "z.1"))
_labels = st.dictionaries(_keys, _values)
_sets = st.lists(_values, min_size=1, max_size=3)


@given(_labels, _keys, _sets)
def test_sets_of_values_are_what_kubectl_says(labels: dict[str, str], key: str, values: list[str]) -> None:
    listed = ",".join(values)

    assert LabelSelector.parse(f"{key} in ({listed})").matches(labels) == (key in labels and labels[key] in values)
    assert LabelSelector.parse(f"{key} notin ({listed})").matches(labels) == (labels.get(key) not in values)


@given(_labels, _keys, _values)
def test_equality_and_existence_are_sets_of_one(labels: dict[str, str], key: str, value: str) -> None:
    for text, matches in (
        (f"{key}={value}", labels.get(key) == value),
        (f"{key} == {value}", labels.get(key) == value),
        (f"{key}!={value}", labels.get(key) != value),
        (key, key in labels),
        (f"!{key}", key not in labels),
    ):
        assert LabelSelector.parse(text).matches(labels) == matches


@given(_labels, st.lists(st.tuples(_keys, _values), min_size=1, max_size=3))
def test_each_requirement_has_to_hold(labels: dict[str, str], wanted: list[tuple[str, str]]) -> None:
    text = " , ".join(f"{key}={value}" for key, value in wanted)

    assert LabelSelector.parse(text).matches(labels) == all(labels.get(key) == value for key, value in wanted)


@given(st.text())
def test_any_text_is_a_selector_or_an_error_that_says_where(text: str) -> None:
    for parse in (LabelSelector.parse, FieldSelector.parse, JsonPathTemplate.parse, CustomColumns.parse):
        try:
            parse(text)
        except ManifestInvalid as error:
            place = str(error)
        else:
            place = "character"
        assert "character" in place or "column" in place


_scalars = st.one_of(st.integers(), st.text("abc "), st.booleans())


@given(st.dictionaries(st.sampled_from("abc"), _scalars, min_size=1))
def test_a_template_shows_each_value_of_a_list(tree: dict[str, Json]) -> None:
    found = JsonPathTemplate.parse('{range .items[*]}{.k}{"\\n"}{end}').render(
        {"items": [{"k": "x"}, tree, {"k": "y"}]}
    )

    assert found == "x\n\ny\n"


_trees = st.recursive(
    _scalars,
    lambda inside: st.one_of(st.lists(inside, max_size=3), st.dictionaries(st.sampled_from("abk"), inside, max_size=3)),
    max_leaves=12,
)


def _all_below(tree: Json) -> list[Json]:
    inside = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ()
    return [tree, *(below for one in inside for below in _all_below(one))]


@given(_trees)
def test_a_search_at_any_depth_finds_what_a_walk_finds(tree: Json) -> None:
    found = list(FieldPath.parse("..k", "path").values({"top": tree}))

    assert found == [one["k"] for one in _all_below({"top": tree}) if isinstance(one, dict) and "k" in one]


_bounds = st.one_of(st.none(), st.integers(-5, 5))


@given(st.lists(_scalars, max_size=4), _bounds, _bounds, st.one_of(st.none(), st.integers(1, 3)))
def test_a_slice_is_one_of_python(items: list[Json], start: int | None, stop: int | None, step: int | None) -> None:
    bounds = ":".join("" if one is None else str(one) for one in (start, stop, *([] if step is None else [step])))

    assert list(FieldPath.parse(f".items[{bounds}]", "path").values({"items": items})) == items[start:stop:step]


@given(st.lists(_scalars, max_size=4), st.lists(st.integers(-5, 5), min_size=2, max_size=3))
def test_a_union_has_each_position_that_is_there(items: list[Json], positions: list[int]) -> None:
    text = f"items[{','.join(map(str, positions))}]"

    assert list(FieldPath.parse(text, "path").values({"items": items})) == [
        items[one] for one in positions if -len(items) <= one < len(items)
    ]


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{.items[-1:].k}", "c"),
        ("{.items[-1].k}", "c"),
        ("{.items[0,2].k}", "a c"),
        ("{.items[::2].k}", "a c"),
        ("{.items[0]['k','..']}", "a x"),
        ('{.items[0][".."]}', "x"),
        ("{..k}", "a b c"),
        ("{$..items[1:3]..k}", "b c"),
        ("{range .items[1:]}<{.k}>{end}", "<b><c>"),
        ("{.none..k}{.items[7]}", ""),
    ],
)
def test_templates_are_read_as_kubectl_reads_them(template: str, text: str) -> None:
    tree: dict[str, Json] = {"items": [{"k": "a", "..": "x"}, {"k": "b"}, {"k": "c"}]}

    assert JsonPathTemplate.parse(template).render(tree) == text
