"""Constraints on values and rules about objects: one statement, for the API server and for any manifest."""

import re
from typing import Annotated, Any, ClassVar

import pytest
from msgspec import UNSET, Struct, UnsetType

from setpoint.core.schema.checks import (
    AnyOf,
    Cel,
    Check,
    ExactlyOne,
    Given,
    InOrder,
    Is,
    Not,
    NotEmpty,
    OneMember,
    Predicate,
    Sized,
)
from setpoint.core.schema.constraints import (
    Between,
    Constraint,
    HasEntries,
    IsDuration,
    IsTrue,
    Matches,
    NoneOf,
    OneOf,
)
from setpoint.core.schema.openapi import rules_of, schema_of
from setpoint.core.schema.shape import LEAF, Field, Keyed, Mark, item_field, shape_of
from setpoint.core.schema.validation import Violation, violations

CLASSES = OneOf("HOT", "COLD")
NAME = Matches("[a-z]+", "lower-case letters", 4)


@pytest.mark.parametrize(
    ("constraint", "allowed", "refused"),
    [
        (CLASSES, ["HOT", ""], ["hot", "WARM"]),
        (OneOf("HOT", or_empty=False), ["HOT"], ["", "hot"]),
        (OneOf("HOT", ignore_case=True), ["HOT", "hot", ""], ["ħot", "warm"]),
        (NAME, ["abc", ""], ["abcde", "A", "a\n", 1]),
        (Matches("a|b", "a or b", or_empty=False), ["a", "b"], ["", "ab"]),
        (Matches("[a-z]+", "no x first", reserved="x.*"), ["a", "ax", ""], ["x", "xa", "1"]),
        (Between(0), [0, 5], [-1, "5"]),
        (Between(1, 3), [1, 3], [0, 4]),
        (Between(10, or_zero=True), [0, 10, 11], [9, -1]),
        (Between(10, 20, or_zero=True), [0, 20], [21]),
        (IsTrue(), [True], [False]),
        (HasEntries("a map"), [{"a": 1}], [{}]),
        (NoneOf(("a",), "another"), ["b"], ["a"]),
        (IsDuration(), ["1h30m", "90s", 5], ["", "soon", "0s", 0, "-1s"]),
    ],
    ids=str,
)
def test_a_constraint_allows_and_refuses(constraint: Constraint, allowed: list[Any], refused: list[Any]) -> None:
    assert [constraint.allows(value) for value in (*allowed, *refused)] == [True] * len(allowed) + [False] * len(
        refused
    )


@pytest.mark.parametrize(
    ("constraint", "cel", "keywords", "advice"),
    [
        (CLASSES, "self in ['', 'HOT', 'COLD']", {"maxLength": 128}, "HOT or COLD"),
        (OneOf("a", or_empty=False), "self in ['a']", {"maxLength": 128}, "a"),
        (OneOf("a", ignore_case=True), "self.upperAscii() in ['', 'A']", {"maxLength": 128}, "a"),
        (NAME, "self.matches(r'^(?:[a-z]+)?$')", {"maxLength": 4}, "lower-case letters"),
        (Matches("a", "a", 1, or_empty=False), "self.matches(r'^(?:a)$')", {"maxLength": 1}, "a"),
        (
            Matches("[a-z]+", "no x", 4, reserved="x"),
            "(self.matches(r'^(?:[a-z]+)?$') && !self.matches(r'^(?:x)$'))",
            {"maxLength": 4},
            "no x",
        ),
        (Between(0), "", {"minimum": 0}, "a number of 0 or more"),
        (Between(1, 3), "", {"minimum": 1, "maximum": 3}, "a number of 1 to 3"),
        (Between(2, or_zero=True), "self == 0 || (self >= 2)", {}, "0, or 2 or more"),
        (Between(2, 3, or_zero=True), "self == 0 || (self >= 2 && self <= 3)", {}, "0, or 2 to 3"),
        (IsTrue(), "self", {}, "true, or leave it out"),
        (HasEntries("a map"), "", {"minProperties": 1}, "a map"),
        (NoneOf(("a", "b"), "another"), "!(self in ['a', 'b'])", {}, "another"),
    ],
    ids=str,
)
def test_a_constraint_is_a_rule_and_keywords(
    constraint: Constraint, cel: str, keywords: dict[str, Any], advice: str
) -> None:
    assert (constraint.cel("self"), dict(constraint.keywords), constraint.advice) == (cel, keywords, advice)


def test_a_duration_is_a_rule_about_text_and_numbers() -> None:
    rule = IsDuration().cel("self")

    assert rule.startswith("type(self) == int ? (int(self) > 0 && int(self) < 9223372036) : ")
    assert "duration(string(self)) > duration('0s')" in rule
    assert IsDuration().advice == "1h30m, 90s, 500ms or a number of seconds"


A, B = Given("a"), Given("b")


@pytest.mark.parametrize(
    ("predicate", "cel", "holding", "failing"),
    [
        (A, "has(self.a)", [{"a": 0}], [{}, {"a": None}]),
        (NotEmpty("a"), "(has(self.a) && self.a.size() > 0)", [{"a": "x"}], [{}, {"a": ""}, {"a": []}]),
        (Is("a", "x", True), "(has(self.a) && self.a in ['x', true])", [{"a": "x"}], [{}, {"a": "y"}]),
        (Not(A), "!(has(self.a))", [{}], [{"a": 1}]),
        (AnyOf(A, B), "has(self.a) || has(self.b)", [{"b": 1}], [{}]),
        (ExactlyOne(A, B), "[has(self.a), has(self.b)].exists_one(one, one)", [{"a": 1}], [{}, {"a": 1, "b": 1}]),
        (
            InOrder("a", "b"),
            "!has(self.a) || !has(self.b) || self.a <= self.b",
            [{}, {"a": "1", "b": "1"}, {"a": 1, "b": 2}, {"a": "1", "b": 1}],
            [{"a": "2", "b": "1"}, {"a": 2, "b": 1}],
        ),
        (
            Sized("a", 1, 2),
            "!has(self.a) || (self.a.size() >= 1 && self.a.size() <= 2)",
            [{}, {"a": [1]}],
            [{"a": []}, {"a": [1, 2, 3]}],
        ),
        (OneMember("a", "b"), "", [{"a": None}], [{}, {"a": 1, "b": None}]),
        (Cel("self.a > 1"), "self.a > 1", [{"a": 0}], []),
    ],
    ids=str,
)
def test_a_predicate_holds_as_its_rule_says(
    predicate: Predicate, cel: str, holding: list[Any], failing: list[Any]
) -> None:
    assert predicate.cel == cel
    assert [predicate.holds(value) for value in (*holding, *failing)] == [True] * len(holding) + [False] * len(failing)


class Part(Struct):
    name: Annotated[str | None, NAME]
    secret: Annotated[str | UnsetType, NAME, Mark.WRITE_ONLY] = UNSET


class Whole(Struct):
    parts: Annotated[list[Part] | UnsetType, Keyed("name")] = UNSET
    names: list[Annotated[str, NAME]] | UnsetType = UNSET
    env: dict[Annotated[str, NAME], Annotated[int, Between(0)]] | UnsetType = UNSET
    size: Annotated[int | UnsetType, Between(1, 9)] = UNSET

    __checks__: ClassVar = (
        Check(OneMember("names", "env"), "give one of names and env"),
        Check(Not(Given("size")), "leave it out", "size"),
    )


class Tree(Struct):
    spec: Whole

    __checks__: ClassVar = (Check(Given("status"), "wait", "metadata.name"),)


def test_every_violation_is_found_with_its_path() -> None:
    spec: dict[str, Any] = {
        "parts": [{"name": None}, {"name": "B", "secret": "HIDDEN"}],
        "env": {"a.b": 1, "ok": -1},
        "size": 10,
        "names": ["a", "B"],
    }

    assert list(violations({"spec": spec}, shape_of(Tree))) == [
        Violation("metadata.name", ": wait"),
        Violation("spec", ": give one of names and env"),
        Violation("spec.size", ": leave it out"),
        Violation("spec.parts[1].name", " is 'B': write lower-case letters"),
        Violation("spec.parts[1].secret", ": write lower-case letters"),
        Violation("spec.names[1]", " is 'B': write lower-case letters"),
        Violation('spec.env["a.b"]', ": write lower-case letters"),
        Violation("spec.env.ok", " is -1: write a number of 0 or more"),
        Violation("spec.size", " is 10: write a number of 1 to 9"),
    ]


def test_a_long_value_is_shown_in_part_and_a_wrong_type_is_left_to_decoding() -> None:
    (found,) = violations({"names": ["a" * 100], "parts": "none"}, shape_of(Whole))

    assert found.problem == f" is '{'a' * 79}…: write lower-case letters"


def test_constraints_are_in_the_schema_of_each_field_item_and_key() -> None:
    schema: Any = schema_of(Whole, lambda _: {})
    rule = {"rule": "self.matches(r'^(?:[a-z]+)?$')", "message": "write lower-case letters"}

    assert schema["properties"]["names"]["items"] == {
        "type": "string",
        "maxLength": 4,
        "x-kubernetes-validations": [rule],
    }
    assert schema["properties"]["env"]["x-kubernetes-validations"] == [
        {**rule, "rule": "self.all(key, key.matches(r'^(?:[a-z]+)?$'))"}
    ]
    assert schema["properties"]["env"]["additionalProperties"] == {"type": "integer", "format": "int64", "minimum": 0}
    assert schema["oneOf"] == [{"required": ["names"]}, {"required": ["env"]}]
    assert schema["x-kubernetes-validations"] == [
        {"rule": "!(has(self.size))", "message": "leave it out", "fieldPath": ".size"}
    ]


def test_a_rule_about_a_whole_resource_names_its_field_in_the_message() -> None:
    assert rules_of(Tree) == {
        "x-kubernetes-validations": [{"rule": "has(self.status)", "message": "metadata.name: wait"}]
    }
    assert rules_of(Part) == {}


def test_a_scalar_has_no_items() -> None:
    with pytest.raises(TypeError, match="has no items"):
        item_field(Field(LEAF))


@pytest.mark.parametrize(
    ("constraint", "value", "is_matched"),
    [
        (OneOf("a", "b.c"), "b.c", True),
        (OneOf("a", "b.c"), "bxc", False),
        (OneOf("a"), "", True),
        (OneOf("a", or_empty=False), "", False),
        (OneOf("a", ignore_case=True), "A", True),
        (OneOf("a"), "A", False),
        (Matches("[a-z]+|x", "letters"), "abc", True),
        (Matches("[a-z]+|x", "letters"), "abc1", False),
        (Matches("[a-z]+", "letters", or_empty=False), "", False),
    ],
)
def test_a_pattern_says_of_a_text_what_the_rule_says(constraint: Constraint, value: str, is_matched: bool) -> None:
    assert (re.search(constraint.pattern_keyword, value) is not None) is is_matched
    assert constraint.allows(value) is is_matched


def test_what_no_pattern_says_has_none() -> None:
    assert Between(1, 2).pattern_keyword == ""
    assert Matches("[a-z]+", "letters", reserved="x").pattern_keyword == ""
