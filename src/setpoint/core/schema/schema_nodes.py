"""The walk over the fields of a struct type: a node for each field, and for the items of a list or map."""

from collections.abc import Iterator
from typing import TypeAlias

import msgspec
from msgspec import inspect

from setpoint.core.schema.shape import Field, KeyedList, field_below, item_field, shape_of
from setpoint.core.values.deferred_dataclass import dataclass

StructClass: TypeAlias = type[msgspec.Struct]


@dataclass(frozen=True, slots=True)
class SchemaNode:
    """A field of a type, or the item of a list or map. `type` is the type without null."""

    path: str
    field: Field
    type: inspect.Type
    is_required: bool = False
    is_nullable: bool = False
    # The name in JSON; the struct type that has the field, and the name of its attribute.
    name: str = ""
    struct: StructClass | None = None
    attribute: str = ""
    # The description in the type's annotation, if it is not in the docstring below the attribute.
    description: str = ""


def root_node(type_: StructClass) -> SchemaNode:
    """The node of a whole struct type."""
    return SchemaNode("", Field(shape_of(type_)), inspect.type_info(type_), is_required=True)


def member_nodes(node: SchemaNode) -> Iterator[SchemaNode]:
    """The fields of an object; none for any other node."""
    if not isinstance(node.type, inspect.StructType):
        return
    for one in node.type.fields:
        below = field_below(node.field, one.encode_name)
        assert below is not None
        path = f"{node.path}.{one.encode_name}".lstrip(".")
        plain, is_nullable, description = _without_null(one.type)
        names = (one.encode_name, node.type.cls, one.name)
        yield SchemaNode(path, below, plain, one.required, is_nullable, *names, description)


def item_node(node: SchemaNode) -> SchemaNode | None:
    """The item of a list or a map; None for any other node."""
    match node.type:
        case inspect.ListType(item_type=item) | inspect.DictType(value_type=item):
            plain, is_nullable, _ = _without_null(item)
            return SchemaNode(
                f"{node.path}{_item_step(node.field)}", item_field(node.field), plain, is_nullable=is_nullable
            )
        case _:
            return None


def _item_step(field: Field) -> str:
    if isinstance(field.shape, KeyedList):
        return f"[{','.join(f'{key}=…' for key in field.shape.keys)}]"
    return "[…]"


def _without_null(type_: inspect.Type) -> tuple[inspect.Type, bool, str]:
    """The type without null and annotations, whether it is nullable, and its annotated description."""
    match type_:
        case inspect.Metadata(type=inner, extra_json_schema=extra):
            plain, is_nullable, deeper = _without_null(inner)
            return plain, is_nullable, str((extra or {}).get("description", "")) or deeper
        case inspect.UnionType(types=types) if any(isinstance(one, inspect.NoneType) for one in types):
            rest = tuple(one for one in types if not isinstance(one, inspect.NoneType))
            plain, _, description = _without_null(rest[0] if len(rest) == 1 else inspect.UnionType(rest))
            return plain, True, description
        case _:
            return type_, False, ""
