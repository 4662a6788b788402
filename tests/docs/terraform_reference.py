"""The reference of the Terraform provider, read off its schemas: a row for each attribute.

`python -m tests.docs.terraform_reference` rewrites the tables; what stands around them is written by hand.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from setpoint.terraform.connections.clusters import CLUSTER
from setpoint.terraform.cty.types import CtyType, ListType, MapType, ObjectType, PrimitiveType
from setpoint.terraform.framework.schema import Attribute, NestedAttributes, Presence
from setpoint.terraform.patches.patch_schema import PATCH_SCHEMA
from setpoint.terraform.resources.schemas import OBJECT_SCHEMA, WAIT_ATTRIBUTES, WAIT_SCHEMA
from setpoint.terraform.setpoint_provider import SetpointProvider
from setpoint.terraform.sources.schemas import OBJECT_SOURCE_SCHEMA, OBJECTS_SOURCE_SCHEMA, SECRET_SCHEMA
from tests.docs.reference import with_table

PAGE: Final = Path("docs/terraform.md")
_WORDS: Final = {
    Presence.REQUIRED: "required",
    Presence.OPTIONAL: "optional",
    Presence.COMPUTED: "computed",
    Presence.OPTIONAL_COMPUTED: "optional",
}


def tables() -> Mapping[str, Mapping[str, Attribute]]:
    """Every table of the page, by what its first column is called."""
    assert isinstance(CLUSTER.type, NestedAttributes)
    return {
        "attribute of the resource `setpoint_object`": OBJECT_SCHEMA.attributes,
        "member of `cluster`": CLUSTER.type.attributes,
        "member of `wait_for`": WAIT_ATTRIBUTES.attributes,
        "attribute of the resource `setpoint_patch`": PATCH_SCHEMA.attributes,
        "attribute of the resource `setpoint_wait`": WAIT_SCHEMA.attributes,
        "attribute of the data source `setpoint_object`": OBJECT_SOURCE_SCHEMA.attributes,
        "attribute of the data source `setpoint_objects`": OBJECTS_SOURCE_SCHEMA.attributes,
        "attribute of the ephemeral resource `setpoint_secret`": SECRET_SCHEMA.attributes,
    }


def written(page: str) -> str:
    """The page with the tables that the schemas ask for."""
    for name, attributes in tables().items():
        head = f"| {name} | what it is | type | |\n|---|---|---|---|\n"
        page = with_table(page, head, list(_rows(attributes)))
    return with_table(page, "| function | what it gives |\n|---|---|\n", list(_function_rows()))


def _function_rows() -> Iterator[str]:
    for name, one in SetpointProvider().functions.items():
        more = [] if one.variadic is None else [f"{one.variadic.name}…"]
        parameters = ", ".join([*(parameter.name for parameter in one.parameters), *more])
        given = " ".join(f"`{parameter.name}`: {parameter.description}" for parameter in one.parameters)
        yield f"| `{name}({parameters})` | {one.summary} {given} |"


def _rows(attributes: Mapping[str, Attribute]) -> Iterator[str]:
    for name, one in attributes.items():
        marks = {"sensitive": one.sensitive, "replaces": one.requires_replace}
        notes = ", ".join([_WORDS[one.presence], *(word for word, is_set in marks.items() if is_set)])
        yield f"| `{name}` | {one.description} | {_type(one.type)} | {notes} |"


def _type(type_: CtyType | NestedAttributes) -> str:
    match type_:
        case PrimitiveType.DYNAMIC:
            return "any value"
        case PrimitiveType():
            return str(type_.value)
        case ListType(element):
            return f"list of {_type(element)}"
        case MapType(element):
            return f"map of {_type(element)}"
        case ObjectType() | NestedAttributes():
            return "object"
        case _:
            raise TypeError(type_)


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
