"""What a shell offers for the path of a field: one step at a time, by the types of the kinds that a line is about."""

from collections.abc import Iterable, Iterator, Sequence

from setpoint.core.schema.shape import (
    AtomicList,
    Field,
    KeyedList,
    MapShape,
    ObjectShape,
    field_below,
    object_shape,
    shape_of,
)
from setpoint.engine.kind import ResourceType


def field_steps(begun: str, types: Iterable[ResourceType], *, end: str = "", objects: bool = False) -> list[str]:
    """The paths that a word goes on to, a step further than its last dot: those of objects end with a dot, others with
    `end`. With `objects`, an object is offered without its dot, too.
    """
    above, _, _ = begun.rpartition(".")
    found = dict[str, bool]()
    for name, field in (one for type_ in types for one in _below(_tree_of(type_), above.split(".") if above else ())):
        is_object = isinstance(field.shape, ObjectShape | MapShape)
        found[name] = found.get(name, False) or is_object
    paths = [(f"{above}.{name}" if above else name, found[name]) for name in found]
    offered = (text for path, is_object in paths for text in _texts(path, end, is_object=is_object, objects=objects))
    return [one for one in offered if one.startswith(begun)]


def _texts(path: str, end: str, *, is_object: bool, objects: bool) -> Sequence[str]:
    if not is_object:
        return (f"{path}{end}",)
    return (path, f"{path}.") if objects else (f"{path}.",)


def _tree_of(type_: ResourceType) -> ObjectShape:
    """A resource with the status that its kind adds."""
    whole, outputs = shape_of(type_.tree_type), type_.definition.outputs
    if outputs is None:
        return whole
    return object_shape({**whole.fields, "status": Field(shape_of(outputs))})


def _below(shape: ObjectShape, steps: Sequence[str]) -> Iterator[tuple[str, Field]]:
    """The members at the end of the way, without lists: no selector compares them."""
    here: Field | None = Field(shape)
    for step in steps:
        here = None if here is None else field_below(here, step)
    if here is not None and isinstance(here.shape, ObjectShape):
        yield from (one for one in here.shape.fields.items() if not isinstance(one[1].shape, AtomicList | KeyedList))
