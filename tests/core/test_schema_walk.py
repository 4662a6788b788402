"""The walk over the fields of a type."""

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType, inspect

from setpoint.core.schema.schema_nodes import item_node, member_nodes, root_node
from setpoint.core.schema.shape import Keyed, Mark


class Port(Struct):
    name: str
    number: int | None = None


class Service(Struct, rename={"short": "shortName"}):
    ports: Annotated[list[Port] | None | UnsetType, Keyed("name")] = UNSET
    short: Annotated[str, Mark.IMMUTABLE] = ""
    labels: dict[str, str | None] | UnsetType = UNSET
    hosts: list[str] | UnsetType = UNSET
    size: Annotated[Annotated[int, Meta(ge=1, description="inner")] | None, Meta(description="how large")] = None
    either: Annotated[int, Meta(description="inner")] | None = None
    both: int | str | None = None


MEMBERS = {one.name: one for one in member_nodes(root_node(Service))}


def test_a_field_has_its_name_in_json_and_in_python() -> None:
    short = MEMBERS["shortName"]

    assert (short.path, short.struct, short.attribute) == ("shortName", Service, "short")
    assert short.field.marks == {Mark.IMMUTABLE}


def test_nullability_is_separate_from_the_type() -> None:
    assert (MEMBERS["ports"].is_nullable, MEMBERS["shortName"].is_nullable) == (True, False)
    assert isinstance(MEMBERS["ports"].type, inspect.ListType)
    assert isinstance(MEMBERS["both"].type, inspect.UnionType)
    assert MEMBERS["both"].is_nullable


def test_the_outermost_description_counts() -> None:
    assert (MEMBERS["size"].description, MEMBERS["either"].description) == ("how large", "inner")
    assert MEMBERS["hosts"].description == ""


def test_the_item_of_a_list_or_map_has_its_own_path() -> None:
    found = {name: item_node(place) for name, place in MEMBERS.items()}

    assert {name: place.path for name, place in found.items() if place} == {
        "ports": "ports[name=…]",
        "labels": "labels[…]",
        "hosts": "hosts[…]",
    }
    assert found["labels"] is not None
    assert found["labels"].is_nullable


def test_fields_of_elements_follow_their_list() -> None:
    element = item_node(MEMBERS["ports"])

    assert element is not None
    assert [(one.path, one.is_required) for one in member_nodes(element)] == [
        ("ports[name=…].name", True),
        ("ports[name=…].number", False),
    ]


def test_a_scalar_has_no_fields() -> None:
    assert list(member_nodes(MEMBERS["hosts"])) == []
