"""Paths: their text, error messages, and trees that are never changed in place."""

import math

import pytest

from setpoint.core.values.json_types import MISSING, Json
from setpoint.core.values.paths import Path, Selector, get_at, remove_at, scalar_text, set_at
from setpoint.errors import ManifestInvalid, UnknownField

TREE: Json = {
    "spec": {
        "settings": {
            "tier": "small",
            "databaseFlags": [{"name": "x", "value": "on"}, {"name": "y", "value": "off"}],
            "ports": [{"port": 80}, {"port": 443, "tls": True}],
        }
    },
    "labels": {"app.kubernetes.io/name": "web"},
    "list": [1, [2]],
}


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("", ()),
        ("spec.settings.tier", ("spec", "settings", "tier")),
        (".spec.tier", ("spec", "tier")),
        ("items[0].name", ("items", 0, "name")),
        ("[0][1]", (0, 1)),
        ('labels["app.kubernetes.io/name"]', ("labels", "app.kubernetes.io/name")),
        ('["a b"].c', ("a b", "c")),
        ("flags[name=x].value", ("flags", Selector((("name", "x"),)), "value")),
        ('nets[name=a,value="10.0.0.0/8"]', ("nets", Selector((("name", "a"), ("value", "10.0.0.0/8"))))),
        ('odd["k y"="v w"]', ("odd", Selector((("k y", "v w"),)))),
        ("conditions[?(@.type=='Ready')].status", ("conditions", Selector((("type", "Ready"),)), "status")),
        ('conditions[?(@.type == "Ready")]', ("conditions", Selector((("type", "Ready"),)))),
        ("conditions[?(@.type=='')]", ("conditions", Selector((("type", ""),)))),
        ("a.0.b", ("a", "0", "b")),
    ],
)
def test_a_path_reads_as_its_steps(text: str, steps: tuple[object, ...]) -> None:
    assert Path.parse(text).steps == steps


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a..b", "breaks off at character 3: a field name belongs here; put other characters in quotes"),
        ("a.", "breaks off at character 3: a field name belongs here"),
        ("a b", "breaks off at character 2: a dot or a bracket belongs here"),
        ("a[", "breaks off at character 3: an index, a quoted key or key=value belongs here"),
        ("a[0", "breaks off at character 4: an index, a quoted key or key=value, then a closing bracket"),
        ("a[01]", "breaks off at character 5"),
        ("a[name]", "breaks off at character 7"),
        ("a[name=x,]", "breaks off at character 10"),
        ("a[name=x,value]", "breaks off at character 15"),
        ("a[name=x value=y]", "breaks off at character 9"),
        ('a["x', "breaks off at character 3: this quoted text does not end"),
        ("a[*]", "breaks off at character 3"),
        ("a[" + "9" * 5000 + "]", "breaks off at character 5003"),
    ],
)
def test_a_malformed_path_is_refused_with_its_position(text: str, message: str) -> None:
    with pytest.raises(ManifestInvalid, match=message):
        Path.parse(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("spec.settings.tier", "small"),
        ("spec.settings.databaseFlags[name=y].value", "off"),
        ("spec.settings.ports[port=443].tls", True),
        ("spec.settings.ports[port=443,tls=true].port", 443),
        ("list[1][0]", 2),
        ('labels["app.kubernetes.io/name"]', "web"),
        ("list[2]", MISSING),
        ("list.a", MISSING),
        ("spec.settings[0]", MISSING),
        ("spec.settings.tier.deeper", MISSING),
        ("spec.settings.databaseFlags[name=z]", MISSING),
        ("spec.other.deeper", MISSING),
    ],
)
def test_get_returns_the_value_or_missing(text: str, value: object) -> None:
    assert get_at(TREE, Path.parse(text)) == value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("x", "x"),
        (None, "null"),
        (True, "true"),
        (False, "false"),
        (80, "80"),
        (1.0, "1"),
        ([], None),
        ({}, None),
        (math.nan, None),
    ],
)
def test_a_scalar_has_a_text_for_selectors(value: Json, text: str | None) -> None:
    assert scalar_text(value) == text


def test_set_creates_absent_objects_lists_and_keyed_elements() -> None:
    tree = set_at(MISSING, Path.parse("spec.flags[name=x].value"), "on")

    assert tree == {"spec": {"flags": [{"name": "x", "value": "on"}]}}


def test_set_fills_a_null_as_if_it_were_absent() -> None:
    assert set_at({"a": None}, Path.parse("a.b[0]"), 1) == {"a": {"b": [1]}}


def test_set_shares_unchanged_parts() -> None:
    tree = set_at(TREE, Path.parse("spec.settings.tier"), "large")

    assert get_at(tree, Path.parse("spec.settings.tier")) == "large"
    assert get_at(tree, Path.parse("spec.settings.databaseFlags")) is get_at(
        TREE, Path.parse("spec.settings.databaseFlags")
    )


def test_set_replaces_a_keyed_element_in_place() -> None:
    tree = set_at(TREE, Path.parse("spec.settings.databaseFlags[name=x]"), {"name": "x", "value": "2"})

    assert get_at(tree, Path.parse("spec.settings.databaseFlags[0].value")) == "2"


def test_set_adds_the_keys_to_a_new_element_but_does_not_turn_a_scalar_into_one() -> None:
    assert set_at([], Path.parse("[name=x]"), {"value": 1}) == [{"name": "x", "value": 1}]
    assert set_at([], Path.parse("[name=x]"), 7) == [7]


def test_set_beyond_the_end_of_a_list_is_refused() -> None:
    with pytest.raises(UnknownField, match=r"list\[5\]: list has 2 elements: append at \[2\]"):
        set_at(TREE, Path.parse("list[5]"), 0)
    with pytest.raises(UnknownField, match=r"\[1\]: the list has 0 elements"):
        set_at([], Path.parse("[1]"), 0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("spec.settings.tier.x", "cannot set spec.settings.tier.x: spec.settings.tier is not an object"),
        ("spec[0]", r"cannot set spec\[0\]: spec is not a list"),
        ("[0]", r"cannot set \[0\]: the value is not a list"),
    ],
)
def test_set_does_not_replace_a_parent_of_another_type(text: str, message: str) -> None:
    with pytest.raises(UnknownField, match=message):
        set_at(TREE, Path.parse(text), 0)


def test_remove_drops_fields_elements_and_keyed_elements() -> None:
    assert remove_at({"a": {"b": 1, "c": 2}}, Path.parse("a.b")) == {"a": {"c": 2}}
    assert remove_at({"a": [1, 2, 3]}, Path.parse("a[1]")) == {"a": [1, 3]}
    assert remove_at([{"name": "x"}, {"name": "y"}], Path.parse("[name=x]")) == [{"name": "y"}]


def test_remove_of_the_root_removes_nothing() -> None:
    assert remove_at(TREE, Path()) is TREE


def test_a_path_covers_itself_and_its_descendants() -> None:
    settings = Path.parse("spec.settings")

    assert settings.covers(settings)
    assert settings.covers(Path.parse("spec.settings.tier"))
    assert not settings.covers(Path.parse("spec.settingsVersion"))
    assert not settings.covers(Path.parse("spec"))
