"""The structural OpenAPI schema of a type."""

from enum import Enum, StrEnum
from typing import Annotated, Any, ClassVar, Literal

import pytest
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from setpoint.core.schema.checks import Check
from setpoint.core.schema.constraints import Between, OneOf
from setpoint.core.schema.openapi import IMMUTABLE_MESSAGE, VALIDATIONS, schema_of, schema_of_node
from setpoint.core.schema.schema_nodes import root_node
from setpoint.core.schema.shape import Default, Keyed, Mark
from setpoint.core.values.json_types import Int32, Int64, Json


def schema(type_: type[Struct], **described: str) -> Any:
    return schema_of(type_, lambda holder: described if holder is type_ else {})


def field(type_: Any, described: str = "") -> Any:
    """The schema of a field of this type, with a description."""
    left_out = {"it": UNSET} if "UnsetType" in str(type_) else {}
    holder = type("Holder", (Struct,), {"__annotations__": {"it": type_}, "__module__": __name__, **left_out})
    return schema(holder, it=described)["properties"]["it"]


def test_an_object_lists_its_fields_and_the_required_ones() -> None:
    class Disk(Struct, rename={"kind_": "kind"}):
        size: int
        kind_: str = "ssd"

    assert schema(Disk, size="In GB.", kind_="Which.") == {
        "type": "object",
        "properties": {
            "size": {"description": "In GB.", "type": "integer", "format": "int64"},
            "kind": {"description": "Which.", "type": "string"},
        },
        "required": ["size"],
    }


@pytest.mark.parametrize(
    ("type_", "expected"),
    [
        (str, {"type": "string"}),
        (bool, {"type": "boolean"}),
        (int, {"type": "integer", "format": "int64"}),
        (Int64, {"type": "integer", "format": "int64"}),
        (Int32, {"type": "integer", "format": "int32"}),
        (float, {"type": "number", "format": "double"}),
        (Any, {"x-kubernetes-preserve-unknown-fields": True}),
        (int | str, {"x-kubernetes-int-or-string": True}),
        (bool | str, {"x-kubernetes-preserve-unknown-fields": True}),
        (str | None, {"type": "string", "nullable": True}),
        (dict[str, str], {"type": "object", "additionalProperties": {"type": "string"}}),
        (Literal["on", "off"], {"description": 'One of "off", "on".', "type": "string", "enum": ["off", "on"]}),
        (Literal[2, 1], {"description": "One of 1, 2.", "type": "integer", "format": "int64", "enum": [1, 2]}),
    ],
)
def test_a_scalar_has_one_form(type_: object, expected: Json) -> None:
    assert field(type_) == expected


@pytest.mark.parametrize(
    ("type_", "expected"),
    [
        (Annotated[str, Meta(min_length=1, max_length=9, pattern="^a")], [("minLength", 1), ("maxLength", 9)]),
        (Annotated[int, Meta(ge=1, lt=9)], [("minimum", 1), ("maximum", 9), ("exclusiveMaximum", True)]),
        (Annotated[float, Meta(gt=1, le=9)], [("minimum", 1), ("exclusiveMinimum", True), ("maximum", 9)]),
        (Annotated[list[str], Meta(min_length=1, max_length=9)], [("minItems", 1), ("maxItems", 9)]),
        (Annotated[dict[str, str], Meta(min_length=1, max_length=9)], [("minProperties", 1), ("maxProperties", 9)]),
    ],
)
def test_bounds_of_a_type_are_bounds_of_its_schema(type_: object, expected: list[tuple[str, Json]]) -> None:
    assert [one for one in field(type_).items() if one in expected] == expected


class Edition(StrEnum):
    SMALL = "small"
    LARGE = "large"


class Size(Enum):
    ONE = 1


def test_an_enumeration_is_one_of_its_values() -> None:
    assert field(Edition)["enum"] == ["small", "large"]
    assert field(Size) == {"description": "One of 1.", "type": "integer", "format": "int64", "enum": [1]}


@pytest.mark.parametrize("type_", [Literal["b", "a"] | None, Literal["b", "a", None]])
def test_an_enumeration_that_may_be_null_is_checked_by_a_rule(type_: object) -> None:
    """An enum of the API server refuses null, even where null is one of its values."""
    assert field(type_) == {
        "description": 'One of "a", "b".',
        "type": "string",
        "nullable": True,
        "x-kubernetes-validations": [{"rule": 'self in ["a","b"]', "message": 'write "a" or "b"'}],
    }


def test_a_single_value_that_may_be_null_is_listed_alone() -> None:
    assert field(Literal["a"] | None)["x-kubernetes-validations"][0]["message"] == 'write "a"'


@pytest.mark.parametrize(("type_", "name"), [(Raw, "RawType"), (Literal["a", 1], "LiteralType")])
def test_a_type_without_a_schema_is_refused_by_name(type_: object, name: str) -> None:
    with pytest.raises(TypeError, match=f"it: {name} has no form"):
        field(type_)


class Flag(Struct):
    name: str
    value: str | UnsetType = UNSET


class Network(Struct):
    value: str
    name: str | UnsetType = UNSET


class Tag(Struct):
    key: str | None


def test_a_keyed_list_has_the_list_type_map() -> None:
    found = field(Annotated[list[Flag], Keyed("name")])

    assert (found["x-kubernetes-list-type"], found["x-kubernetes-list-map-keys"]) == ("map", ["name"])


@pytest.mark.parametrize(
    "type_",
    [list[str], list[Flag], Annotated[list[Network], Keyed("name", "value")], Annotated[list[Tag], Keyed("key")]],
)
def test_a_keyed_list_with_optional_keys_is_atomic(type_: object) -> None:
    """The API server needs every key of an element; a default for a key would change the author's spec."""
    found = field(type_)

    assert found["x-kubernetes-list-type"] == "atomic"
    assert "x-kubernetes-list-map-keys" not in found


class Branch(Struct):
    name: str
    twigs: "list[Branch] | UnsetType" = UNSET


def test_a_recursive_type_accepts_any_field() -> None:
    twigs = schema(Branch)["properties"]["twigs"]

    assert twigs["items"] == {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def test_a_default_is_described_and_not_set() -> None:
    """The API server would write a default into the author's spec, so it is only described."""
    found = field(Annotated[str | UnsetType, Default("US")], "Where.")

    assert found == {"description": 'Where. Default: "US".', "type": "string"}


@pytest.mark.parametrize("type_", [Annotated[str | UnsetType, Default({})], Annotated[str | UnsetType, Default([])]])
def test_an_empty_default_is_not_described(type_: object) -> None:
    assert "description" not in field(type_)


def test_a_description_in_the_annotation_is_used() -> None:
    assert field(Annotated[str, Meta(description="Beside.")], "Below.")["description"] == "Beside."


def test_marks_are_described_in_a_fixed_order() -> None:
    marked = field(Annotated[str | UnsetType, Mark.WRITE_ONLY, Mark.PROTECTED, Default("a")], "A secret.")

    assert marked["description"] == ('A secret. Default: "a". Protected: left out, the live value stands. Write-only.')


# --- Rules -----------------------------------------------------------------------------------------------------------


class Range(Struct):
    low: int
    high: int

    __checks__: ClassVar = (Check("self.low <= self.high", "low is above high", "low"), Check("self.low\n  > 0", "no"))


def test_the_checks_of_a_type_become_rules() -> None:
    assert field(Range)["x-kubernetes-validations"] == [
        {"rule": "self.low <= self.high", "message": "low is above high", "fieldPath": ".low"},
        {"rule": "self.low > 0", "message": "no"},
    ]


class Link(Struct):
    name: str

    __unchanged__: ClassVar = "self.name == oldSelf.name"


@pytest.mark.parametrize(
    ("type_", "rule"),
    [
        (str, "self.lowerAscii() == oldSelf.lowerAscii()"),
        (bool, "self == oldSelf"),
        (list[str], "self == oldSelf"),
        (Range, "self == oldSelf"),
        (Link, "self.name == oldSelf.name"),
    ],
)
def test_an_immutable_field_has_a_transition_rule(type_: object, rule: str) -> None:
    found = field(Annotated[type_, Mark.IMMUTABLE])["x-kubernetes-validations"][-1]

    assert found == {"rule": rule, "message": IMMUTABLE_MESSAGE}


class Fixed(Struct):
    name: str
    zone: Annotated[str, Mark.IMMUTABLE]


def test_there_is_no_transition_rule_inside_an_atomic_list() -> None:
    zone = field(list[Fixed])["items"]["properties"]["zone"]

    assert "x-kubernetes-validations" not in zone


@pytest.mark.parametrize("type_", [Annotated[list[Fixed], Keyed("name")], dict[str, Fixed]])
def test_there_are_transition_rules_inside_a_keyed_list(type_: object) -> None:
    found = field(type_)
    zone = (found.get("items") or found["additionalProperties"])["properties"]["zone"]

    assert "x-kubernetes-validations" in zone


# --- Without rules in lists ---


class Port(Struct):
    protocol: Annotated[str, OneOf("tcp", "udp")]
    number: Annotated[int, Between(1, 65535)]


class Firewall(Struct):
    track: Annotated[str | None | UnsetType, OneOf("new", "old")] = UNSET
    ports: list[Port] = []
    few: Annotated[list[Port], Meta(max_length=3)] = []
    by_name: dict[str, Port] = {}


@pytest.mark.parametrize(("place", "below"), [("ports", "items"), ("by_name", "additionalProperties")])
def test_a_list_or_map_without_a_bound_has_patterns_instead_of_rules(place: str, below: str) -> None:
    found: Any = schema_of_node(root_node(Firewall), lambda _: {}, rules_in_lists=False)["properties"]

    assert found[place][below]["properties"] == {
        "protocol": {"type": "string", "maxLength": 128, "pattern": "^(?:|tcp|udp)$"},
        "number": {"type": "integer", "format": "int64", "minimum": 1, "maximum": 65535},
    }
    assert VALIDATIONS in found["track"]
    assert VALIDATIONS in found["few"]["items"]["properties"]["protocol"]


class Entry(Struct):
    holder: Port


def test_an_object_is_no_key_of_a_list() -> None:
    assert field(Annotated[list[Entry], Keyed("holder")])["x-kubernetes-list-type"] == "atomic"
