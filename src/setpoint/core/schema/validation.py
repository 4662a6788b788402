"""The constraints of a type, checked on a manifest: what the API server refuses by its CustomResourceDefinition."""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from setpoint.core.schema.constraints import Constraint
from setpoint.core.schema.shape import AtomicList, Field, KeyedList, MapShape, ObjectShape, item_field
from setpoint.core.values.json_types import Json
from setpoint.core.values.paths import Path

# The longest part of a value that a message shows.
_SHOWN: Final = 80


class Violation(NamedTuple):
    """A field whose value is not allowed; `problem` goes on after its path."""

    path: str
    problem: str


def violations(tree: Json, shape: ObjectShape) -> Iterator[Violation]:
    """Every violation of a constraint in `tree`; values of wrong types are left to decoding."""
    return _violations(tree, Field(shape), "")


def _violations(value: Json, field: Field, at: str) -> Iterator[Violation]:
    if value is None:
        return
    for one in field.constraints:
        if not one.allows(value):
            yield Violation(at, _problem(value, one, field))
    match field.shape, value:
        case ObjectShape() as shape, Mapping():
            yield from _of_object(value, shape, at)
        case MapShape() as shape, Mapping():
            yield from _of_map(value, shape, at)
        case ((AtomicList() | KeyedList()), list()):
            for position, below in enumerate(value):
                yield from _violations(below, item_field(field), f"{at}[{position}]")
        case _:
            return


def _of_map(value: Mapping[str, Json], shape: MapShape, at: str) -> Iterator[Violation]:
    for key, below in value.items():
        step = str(Path((key,)))
        place = f"{at}{step}" if step.startswith("[") else f"{at}.{step}"
        yield from (Violation(place, f": write {one.advice}") for one in shape.constraints if not one.allows(key))
        yield from _violations(below, shape.value, place)


def _of_object(value: Mapping[str, Json], shape: ObjectShape, at: str) -> Iterator[Violation]:
    for check in shape.checks:
        if not check.rule.holds(value):
            yield Violation(_below(at, check.field) if check.field else at, f": {check.message}")
    for name, field in shape.fields.items():
        if name in value:
            yield from _violations(value[name], field, _below(at, name))


def _below(at: str, name: str) -> str:
    return f"{at}.{name}" if at else name


def _problem(value: Json, constraint: Constraint, field: Field) -> str:
    """Secret values are not shown."""
    text = repr(value)
    shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
    return f": write {constraint.advice}" if field.write_only else f" is {shown}: write {constraint.advice}"
