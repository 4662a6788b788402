"""Shapes: derived from types, with errors that help."""

from typing import Annotated, Any

import pytest
from msgspec import UNSET, Struct, UnsetType

from setpoint.core.schema.shape import (
    AtomicList,
    Field,
    Keyed,
    KeyedList,
    Leaf,
    MapShape,
    Mark,
    ObjectShape,
    atomic_ancestor,
    field_at,
    paths_of,
    shape_of,
    with_defaults,
    with_marks,
)
from setpoint.core.values.json_types import MISSING
from setpoint.core.values.paths import Path
from setpoint.errors import UnknownField
from tests.laws.declared_specs import SHAPE, Backup


class Port(Struct, rename="camel"):
    port_number: int
    name: str | UnsetType = UNSET


class Tree(Struct):
    value: str
    children: "list[Tree] | UnsetType" = UNSET


class Service(Struct):
    ports: Annotated[list[Port], Keyed("portNumber")]
    selector: dict[str, str]
    mixed: str | int
    anything: Any
    secret: Annotated[str, Mark.WRITE_ONLY, Mark.IMMUTABLE] | UnsetType = UNSET
    tree: Tree | UnsetType = UNSET
    hosts: list[str] | None = None
    raw: dict[str, Backup] | UnsetType = UNSET


def _at(text: str, shape: ObjectShape = SHAPE) -> Field:
    return field_at(shape, Path.parse(text))


def test_each_type_has_its_shape() -> None:
    shape = shape_of(Service)

    assert isinstance(_at("ports", shape).shape, KeyedList)
    assert isinstance(_at("selector", shape).shape, MapShape)
    assert isinstance(_at("hosts", shape).shape, AtomicList)
    assert isinstance(_at("tree", shape).shape, ObjectShape)
    assert isinstance(_at("mixed", shape).shape, Leaf)
    assert isinstance(_at("anything", shape).shape, Leaf)


def test_fields_have_the_names_they_have_in_json() -> None:
    assert isinstance(_at("ports[portNumber=80].portNumber", shape_of(Service)).shape, Leaf)


def test_marks_are_found_inside_and_outside_of_a_union() -> None:
    assert _at("secret", shape_of(Service)).marks == {Mark.WRITE_ONLY, Mark.IMMUTABLE}
    assert _at("spec.region").marks == {Mark.IMMUTABLE}


def test_defaults_are_on_their_fields() -> None:
    assert _at("spec.settings.resize").default is True
    assert _at("spec.settings.tier").default is MISSING


def test_a_type_may_be_recursive() -> None:
    assert isinstance(_at("tree.children[3].children[0].value", shape_of(Service)).shape, Leaf)


def test_every_path_is_listed_and_recursive_types_are_not_expanded() -> None:
    assert paths_of(shape_of(Service)) == (
        "ports",
        "ports[portNumber=…]",
        "ports[portNumber=…].portNumber",
        "ports[portNumber=…].name",
        "selector",
        "selector[…]",
        "mixed",
        "anything",
        "secret",
        "tree",
        "tree.value",
        "tree.children",
        "tree.children[…]",
        "hosts",
        "hosts[…]",
        "raw",
        "raw[…]",
        "raw[…].enabled",
        "raw[…].start",
        "raw[…].location",
    )


@pytest.mark.parametrize(
    ("text", "nearest"),
    [
        ("spec.setings.tier", "spec.settings.tier"),
        ("settings.tier", "spec.settings.tier"),
        ("spec.tier", "spec.settings.tier"),
        ("spec.settings.backup.Enabled", "spec.settings.backup.enabled"),
        ("spec.settings.flags[value=x]", "spec.settings.flags[name=…]"),
    ],
)
def test_an_unknown_field_names_the_nearest_real_one(text: str, nearest: str) -> None:
    with pytest.raises(UnknownField, match="nearest: ") as caught:
        _at(text)

    assert caught.value.nearest[0] == nearest


def test_an_unknown_field_without_a_similar_one_gets_no_suggestion() -> None:
    with pytest.raises(UnknownField, match=r"^no field qqqqqqqq$"):
        _at("qqqqqqqq")


@pytest.mark.parametrize("text", ["spec.settings.tier.x", "spec.settings.networks[name=x]", "spec[0]"])
def test_a_path_that_continues_where_the_type_ends_is_unknown(text: str) -> None:
    with pytest.raises(UnknownField, match="no field"):
        _at(text)


def test_a_key_that_the_elements_do_not_have_is_a_mistake_in_the_type() -> None:
    class Wrong(Struct):
        ports: Annotated[list[Port], Keyed("nosuch")]

    with pytest.raises(TypeError, match="is for lists of structs that have these fields"):
        shape_of(Wrong)


@pytest.mark.parametrize("hint", [Annotated[str, Keyed("name")], Annotated[list[Port], Keyed()]])
def test_keys_belong_on_lists_of_structs_only(hint: Any) -> None:
    wrong = type("Wrong", (Struct,), {"__annotations__": {"ports": hint}})

    with pytest.raises(TypeError, match="is for lists of structs"):
        shape_of(wrong)


def test_defaults_that_depend_on_the_spec_can_be_set_later() -> None:
    shape = with_defaults(SHAPE, {"spec.settings.tier": "small", "spec.settings.backup.start": "03:00"})

    assert _at("spec.settings.tier", shape).default == "small"
    assert _at("spec.settings.backup.start", shape).default == "03:00"
    assert _at("spec.settings.backup.start").default == "12:00"


def test_a_default_goes_to_a_field_of_an_object_that_exists() -> None:
    with pytest.raises(UnknownField, match=r"no field spce\.settings; nearest: spec\.settings"):
        with_defaults(SHAPE, {"spce.settings": {}})
    with pytest.raises(UnknownField, match=r"flags\[name=x\].value cannot be changed: flags is not an object"):
        with_defaults(SHAPE, {"spec.settings.flags[name=x].value": ""})


def test_marks_that_depend_on_the_live_object_can_be_added_later() -> None:
    shape = with_marks(SHAPE, {"spec.settings.backup.start": Mark.IMMUTABLE})

    assert _at("spec.settings.backup.start", shape).immutable
    assert not _at("spec.settings.backup.start").immutable


def test_a_shape_with_a_default_anywhere_below_is_not_plain() -> None:
    assert not SHAPE.is_plain
    assert not _at("spec.settings.flags").is_plain
    assert _at("metadata").is_plain
    assert shape_of(Port).is_plain
    assert not _at("raw", shape_of(Service)).is_plain


@pytest.mark.parametrize(
    ("path", "unit"),
    [
        ("spec.settings.tier", "spec.settings.tier"),
        ("spec.settings.networks[0].name", "spec.settings.networks"),
        ("spec.novelty.inside", "spec.novelty"),
    ],
)
def test_the_atomic_ancestor_of_a_path_is_found(path: str, unit: str) -> None:
    assert str(atomic_ancestor(SHAPE, Path.parse(path))) == unit
