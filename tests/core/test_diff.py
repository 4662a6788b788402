"""Differences, field by field, with secret values redacted."""

from typing import Annotated

import pytest
from msgspec import UNSET, Struct, UnsetType

from setpoint.core.diff import FieldChange, diff
from setpoint.core.redaction import REDACTED, redact
from setpoint.core.schema.shape import Field, Keyed, Mark, shape_of
from setpoint.core.values.json_types import MISSING, Json
from setpoint.core.values.paths import Path
from tests.laws.declared_specs import PASSWORD, SHAPE

DATABASE = Field(SHAPE)


class User(Struct):
    name: str
    password: Annotated[str | UnsetType, Mark.WRITE_ONLY] = UNSET


class Users(Struct):
    keyed: Annotated[list[User] | UnsetType, Keyed("name")] = UNSET
    whole: list[User] | UnsetType = UNSET
    tokens: dict[str, Annotated[str, Mark.WRITE_ONLY]] | UnsetType = UNSET
    place: Annotated[User | UnsetType, Mark.IMMUTABLE] = UNSET


USERS = Field(shape_of(Users))


def _texts(before: Json, after: Json, place: Field = DATABASE) -> list[tuple[str, object, object]]:
    return [(str(one.path), one.before, one.after) for one in diff(before, after, place)]


def test_a_changed_field_is_named_with_both_values() -> None:
    assert _texts({"spec": {"settings": {"tier": "a"}}}, {"spec": {"settings": {"tier": "b"}}}) == [
        ("spec.settings.tier", "a", "b")
    ]


def test_one_and_true_are_different() -> None:
    assert diff({"a": 1}, {"a": True}) == (FieldChange(Path(("a",)), 1, True),)


def test_a_new_object_is_one_change_for_each_field() -> None:
    after: Json = {"spec": {"settings": {"tier": "a", "backup": {"location": "eu"}}}}

    assert [str(one.path) for one in diff(MISSING, after, DATABASE)] == [
        "spec.settings.tier",
        "spec.settings.backup.location",
    ]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"tier": None}, {}),
        ({}, {"resize": True}),
        ({"resize": None}, {"resize": True}),
        ({"networks": []}, {}),
        ({"backup": {}}, {}),
        ({"backup": {"start": "12:00"}}, {}),
        ({"flags": []}, {"flags": None}),
        ({"flags": [{"name": "x"}, {"name": "y"}]}, {"flags": [{"name": "y"}, {"name": "x", "note": "-"}]}),
    ],
)
def test_absent_equals_null_empty_and_the_default_where_the_type_is_known(before: Json, after: Json) -> None:
    assert _texts({"spec": {"settings": before}}, {"spec": {"settings": after}}) == []


def test_absent_null_and_empty_differ_where_no_type_is_known() -> None:
    assert [str(one.path) for one in diff({"a": None, "b": {}, "c": []}, {})] == ["a", "b", "c"]


def test_an_added_or_removed_keyed_element_is_one_change() -> None:
    before: Json = {"spec": {"settings": {"flags": [{"name": "x", "value": "1"}, {"name": "y", "value": "2"}]}}}
    after: Json = {"spec": {"settings": {"flags": [{"name": "z"}, {"name": "y", "value": "3"}]}}}

    assert _texts(before, after) == [
        ("spec.settings.flags[name=x]", {"name": "x", "value": "1"}, MISSING),
        ("spec.settings.flags[name=y].value", "2", "3"),
        ("spec.settings.flags[name=z]", MISSING, {"name": "z"}),
    ]


def test_a_removed_keyed_list_is_one_change_for_each_element() -> None:
    before: Json = {"spec": {"settings": {"flags": [{"name": "x"}]}}}

    assert _texts(before, {"spec": {}}) == [("spec.settings.flags[name=x]", {"name": "x"}, MISSING)]


@pytest.mark.parametrize("odd", [[{"name": "x"}, {"name": "x"}], ["x"], "x"])
def test_a_list_without_unique_keys_is_compared_as_a_whole(odd: Json) -> None:
    before: Json = {"spec": {"settings": {"flags": odd}}}
    after: Json = {"spec": {"settings": {"flags": [{"name": "x"}]}}}

    assert _texts(before, after) == [("spec.settings.flags", odd, [{"name": "x"}])]
    assert diff(before, {"spec": {"settings": {"flags": odd}}}, DATABASE) == ()


def test_an_object_that_replaces_another_type_is_one_change() -> None:
    before: Json = {"spec": {"settings": {"backup": "on"}}}
    after: Json = {"spec": {"settings": {"backup": {"enabled": True}}}}

    assert _texts(before, after) == [("spec.settings.backup", "on", {"enabled": True})]


def test_output_only_fields_never_differ() -> None:
    assert _texts({"spec": {"address": "a"}}, {"spec": {"address": "b"}}) == []


def test_a_write_only_field_counts_as_changed_only_when_it_is_to_be_sent_again() -> None:
    after: Json = {"spec": {"password": "hunter2"}}

    assert diff({"spec": {}}, after, DATABASE) == ()
    assert diff({"spec": {}}, after, DATABASE, resend=[PASSWORD]) == (FieldChange(PASSWORD, REDACTED, REDACTED),)


def test_a_change_inside_something_immutable_is_marked() -> None:
    (region,) = diff({"spec": {"region": "a"}}, {"spec": {"region": "b"}}, DATABASE)
    (name,) = diff({"place": {"name": "a"}}, {"place": {"name": "b"}}, USERS)
    (label,) = diff({"metadata": {"labels": {"a": "1"}}}, {"metadata": {"labels": {"a": "2"}}}, DATABASE)

    assert (region.immutable, name.immutable, label.immutable) == (True, True, False)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ({"keyed": [{"name": "a", "password": "p"}]}, {"keyed": [{"name": "a", "password": REDACTED}]}),
        ({"whole": [{"name": "a", "password": "p"}]}, {"whole": [{"name": "a", "password": REDACTED}]}),
        ({"tokens": {"a": "t", "b": None}}, {"tokens": {"a": REDACTED, "b": None}}),
        ({"place": None, "other": 1}, {"place": None, "other": 1}),
        (
            {"keyed": "x", "whole": "x", "tokens": "x", "place": "x"},
            {"keyed": "x", "whole": "x", "tokens": "x", "place": "x"},
        ),
    ],
)
def test_a_write_only_field_is_redacted_at_every_depth(value: Json, shown: Json) -> None:
    assert redact(value, USERS) == shown


def test_a_new_element_shows_no_secret_in_its_change() -> None:
    (change,) = diff({}, {"keyed": [{"name": "a", "password": "p"}]}, USERS)

    assert change.after == {"name": "a", "password": REDACTED}


class AskedFields(Struct):
    start: Annotated[str | UnsetType, Mark.ASKED] = UNSET


@pytest.mark.parametrize(
    ("resend", "after", "found"),
    [
        ((), "b", ()),
        ([Path(("start",))], "b", (FieldChange(Path(("start",)), "a", "b"),)),
        ([Path(("start",))], "a", ()),
    ],
)
def test_an_asked_field_is_compared_only_when_it_is_sent_again(
    resend: list[Path], after: str, found: tuple[FieldChange, ...]
) -> None:
    assert diff({"start": "a"}, {"start": after}, Field(shape_of(AskedFields)), resend=resend) == found
