"""Fields that a service fills in: kept while a spec never had them, unset once an author takes them out."""

from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, Struct, UnsetType

from setpoint.core.filled_fields import MAX_MARKS, filled_marks, is_filled, path_mark, with_removed
from setpoint.core.overlay import Declared, overlay
from setpoint.core.schema.shape import Keyed, Mark, shape_of
from setpoint.core.values.paths import Path


class Plain(Struct):
    name: str = ""
    tags: list[str] | UnsetType = UNSET
    labels: dict[str, str] | UnsetType = UNSET


class Element(Struct):
    name: str
    size: Annotated[int | UnsetType, Mark.FILLED] = UNSET


class Inner(Struct):
    mode: Annotated[str | UnsetType, Mark.FILLED] = UNSET
    level: int | UnsetType = UNSET


class Recursive(Struct):
    below: "Recursive | UnsetType" = UNSET


class Filled(Struct):
    title: Annotated[str | UnsetType, Mark.FILLED] = UNSET
    inner: Annotated[Inner | UnsetType, Mark.FILLED] = UNSET
    steps: list[Element] | UnsetType = UNSET
    disks: Annotated[list[Element] | UnsetType, Keyed("name")] = UNSET
    labels: dict[str, str] | UnsetType = UNSET
    plain: Plain | UnsetType = UNSET


class KeyedOnly(Struct):
    disks: Annotated[list[Element] | UnsetType, Keyed("name")] = UNSET


SHAPE = shape_of(Filled)
elements = st.lists(
    st.fixed_dictionaries({"name": st.sampled_from("abc")}, optional={"size": st.integers(0, 3)}),
    max_size=3,
    unique_by=lambda one: one["name"],
)
trees = st.fixed_dictionaries(
    {},
    optional={
        "title": st.sampled_from(["x", "y"]),
        "inner": st.fixed_dictionaries({}, optional={"mode": st.sampled_from(["m", "n"]), "level": st.integers(0, 2)}),
        "steps": elements,
        "disks": elements,
        "labels": st.dictionaries(st.sampled_from("ab"), st.just("v")),
    },
)


def declared(tree: dict[str, Any]) -> Declared:
    return Declared(tree, SHAPE)


@pytest.mark.parametrize(
    ("type_", "expected"), [(Plain, False), (Recursive, False), (Inner, True), (KeyedOnly, True), (Filled, True)]
)
def test_a_type_has_such_fields_at_any_depth_or_not(type_: type[Struct], expected: bool) -> None:
    assert is_filled(shape_of(type_)) is expected


def test_a_type_without_them_leaves_no_marks() -> None:
    assert filled_marks(Declared({"name": "x"}, shape_of(Plain))) == ()


def test_the_marks_are_those_of_the_fields_that_the_author_declares() -> None:
    tree = {"title": "x", "inner": {"mode": "m"}, "disks": [{"name": "a", "size": 1}, "odd"], "steps": "odd"}

    found = filled_marks(declared(tree))

    paths = ("title", "inner", "inner.mode", "disks[name=a].size")
    assert set(found) == {path_mark(Path.parse(one)) for one in paths}


def test_null_is_no_declaration_and_the_number_of_marks_is_bounded() -> None:
    many = [{"name": str(number), "size": number} for number in range(2 * MAX_MARKS)]

    assert filled_marks(declared({"title": None})) == ()
    assert len(filled_marks(declared({"steps": many}))) == MAX_MARKS


@given(trees)
def test_nothing_is_removed_while_the_spec_stays(tree: dict[str, Any]) -> None:
    assert with_removed(declared(tree), filled_marks(declared(tree))).tree == tree


@given(trees)
def test_without_marks_the_declaration_is_as_it_was(tree: dict[str, Any]) -> None:
    before = declared(tree)

    assert with_removed(before, ()) is before


@given(trees, trees)
def test_what_was_declared_and_is_no_longer_is_null_and_nothing_else_changes(
    before: dict[str, Any], now: dict[str, Any]
) -> None:
    found = with_removed(declared(now), filled_marks(declared(before))).tree

    assert {name: one for name, one in found.items() if name in now and name not in ("inner", "steps", "disks")} == {
        name: one for name, one in now.items() if name not in ("inner", "steps", "disks")
    }
    for name in ("title", "inner"):
        assert (found.get(name, "") is None) == (name in before and name not in now)


def test_a_field_of_an_element_that_was_taken_out_is_null() -> None:
    marks = filled_marks(declared({"steps": [{"name": "a", "size": 1}], "disks": [{"name": "b", "size": 2}]}))

    found = with_removed(declared({"steps": [{"name": "a"}], "disks": [{"name": "b"}]}), marks)

    assert found.tree == {"steps": [{"name": "a", "size": None}], "disks": [{"name": "b", "size": None}]}


@given(trees, trees)
def test_a_value_that_the_service_filled_in_stays_and_one_that_was_declared_goes(
    before: dict[str, Any], live: dict[str, Any]
) -> None:
    effective = overlay(with_removed(declared({}), filled_marks(declared(before))), live)

    assert ("title" in effective) == ("title" in live and "title" not in before)
