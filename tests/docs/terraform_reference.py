"""The reference of the Terraform provider, read off its schemas: a row for each attribute.

`python -m tests.docs.terraform_reference` rewrites the tables; what stands around them is written by hand.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from setpoint.terraform.cluster_attribute import CLUSTER
from setpoint.terraform.cty_types import ListOf, MapOf, ObjectOf, Primitive, Type
from setpoint.terraform.object_schema import OBJECT, SOURCE, WAITING
from setpoint.terraform.schema import Attribute, Nested, Presence
from setpoint.terraform.wait_attribute import WAIT
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
    assert isinstance(CLUSTER.type, Nested)
    return {
        "attribute of the resource `setpoint_object`": OBJECT.attributes,
        "member of `cluster`": CLUSTER.type.attributes,
        "member of `wait_for`": WAIT.attributes,
        "attribute of the resource `setpoint_wait`": WAITING.attributes,
        "attribute of the data source `setpoint_object`": SOURCE.attributes,
    }


def written(page: str) -> str:
    """The page with the tables that the schemas ask for."""
    for name, attributes in tables().items():
        head = f"| {name} | what it is | type | |\n|---|---|---|---|\n"
        page = with_table(page, head, list(_rows(attributes)))
    return page


def _rows(attributes: Mapping[str, Attribute]) -> Iterator[str]:
    for name, one in attributes.items():
        marks = {"sensitive": one.sensitive, "replaces": one.replaces}
        notes = ", ".join([_WORDS[one.presence], *(word for word, is_set in marks.items() if is_set)])
        yield f"| `{name}` | {one.description} | {_type(one.type)} | {notes} |"


def _type(type_: Type | Nested) -> str:
    match type_:
        case Primitive.DYNAMIC:
            return "any value"
        case Primitive():
            return str(type_.value)
        case ListOf(element):
            return f"list of {_type(element)}"
        case MapOf(element):
            return f"map of {_type(element)}"
        case ObjectOf() | Nested():
            return "object"
        case _:
            raise TypeError(type_)


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
