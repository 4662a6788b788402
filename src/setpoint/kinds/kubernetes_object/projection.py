"""The fields that a manager owns of an object, as managedFields tell them (`fieldsV1`), and what stands there.

A member of an object is `f:name`, an element of a list that is told by its keys `k:{"name":"x"}`, one that is told by
itself `v:"x"`, one that is told by its position `i:0`; `.` is the place itself. What has nothing below it is owned
whole.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, TypeAlias

import msgspec

from setpoint.core.canonical import same
from setpoint.core.paths import Path, Selector, Step, scalar_text
from setpoint.core.values import MISSING, Json, Missing

Fields: TypeAlias = Mapping[str, "Fields"]
NO_FIELDS: Final[Fields] = {}
_ITSELF: Final = "."


@dataclass(frozen=True, slots=True)
class Projection:
    """What stands at each place that is owned; and of each keyed list the order in which its owned elements stand."""

    leaves: Mapping[Path, Json] = field(default_factory=dict)
    orders: Mapping[Path, tuple[Step, ...]] = field(default_factory=dict)

    def to_data(self) -> dict[str, Json]:
        """All of it under the text of its place."""
        orders = {str(path): [str(Path((step,))) for step in steps] for path, steps in self.orders.items()}
        return {"leaves": {str(path): value for path, value in self.leaves.items()}, "orders": orders}


def project(value: Json, fields: Fields, others: Fields = NO_FIELDS) -> Projection:
    """What of `value` stands at `fields`. An empty object or list that `others` put something into is still empty.

    Nobody owns an object as a whole: without fields there is nothing.
    """
    leaves: dict[Path, Json] = {}
    orders: dict[Path, tuple[Step, ...]] = {}
    for path, found in _walk(value, fields, others, Path()) if _below(fields) else ():
        if isinstance(found, _Order):
            orders[path] = found.steps
        else:
            leaves[path] = found
    return Projection(leaves, orders)


def union(one: Fields, other: Fields) -> Fields:
    """The fields that are in either."""
    if not one or not other:
        return one or other
    both = {**one, **other}
    for step in one.keys() & other.keys():
        both[step] = union(one[step], other[step])
    return both


def owns_at(fields: Fields, value: Json, path: Path) -> Fields | None:
    """What of `fields` is at or below `path` of `value`: none of it where they end before; None for none at all."""
    if not _below(fields):
        return None
    for wanted in path.steps:
        below = _below(fields)
        if not below:
            return NO_FIELDS
        reached = next(((step, found) for step, found in _children(value, below) if _is_at(found, wanted)), None)
        if reached is None:
            return None
        fields, value = below[reached[0]], reached[1].value
    return fields


def carve(value: Json, fields: Fields) -> Json:
    """`value` with nothing in it but what stands at `fields`."""
    below = _below(fields)
    if not below:
        return value
    children = sorted(_children(value, below), key=lambda found: found[1].position)
    found = {step: carve(child.value, below[step]) for step, child in children}
    if isinstance(value, dict):
        return {step.removeprefix("f:"): one for step, one in found.items()}
    return [{**_keys(step), **one} if isinstance(one, dict) else one for step, one in found.items()]


# --- The walk --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Order:
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class _Child:
    """A value below another: the step of a path that leads to it, and where it stands in a list."""

    step: Step
    value: Json
    position: int = -1


def _walk(value: Json, fields: Fields, others: Fields, at: Path) -> Iterator[tuple[Path, Json | _Order]]:
    below = _below(fields)
    if not below:
        yield at, _whole(value, others)
        return
    found = list(_children(value, below))
    for step, child in found:
        yield from _walk(child.value, below[step], others.get(step, NO_FIELDS), at / child.step)
    keyed = {child.position: child.step for step, child in found if step.startswith("k:")}
    if len(keyed) > 1:
        yield at, _Order(tuple(keyed[position] for position in sorted(keyed)))


def _below(fields: Fields) -> Fields:
    return {step: one for step, one in fields.items() if step != _ITSELF} if _ITSELF in fields else fields


def _whole(value: Json, others: Fields) -> Json:
    if _below(others) and isinstance(value, dict | list):
        # Were it one unit, whoever puts something into it would own all of it.
        return {} if isinstance(value, dict) else []
    return value


def _children(value: Json, below: Fields) -> Iterator[tuple[str, _Child]]:
    """Those of the fields that are there."""
    for step in below:
        child = _child(value, step)
        if child is not None:
            yield step, child


def _child(value: Json, step: str) -> _Child | None:
    sort, text = step[:2], step[2:]
    if isinstance(value, dict):
        found = value.get(text, MISSING) if sort == "f:" else MISSING
        return None if isinstance(found, Missing) else _Child(text, found)
    if not isinstance(value, list) or sort == "f:":
        return None
    position = _position(value, sort, text)
    return None if position is None else _Child(_named(sort, text), value[position], position)


def _position(elements: Sequence[Json], sort: str, text: str) -> int | None:
    if sort == "i:":
        return int(text) if text.isdecimal() and int(text) < len(elements) else None
    wanted = _decoded(text)
    matches = _has_keys if sort == "k:" else same
    return next((index for index, one in enumerate(elements) if matches(one, wanted)), None)


def _has_keys(element: Json, wanted: Json) -> bool:
    return (
        isinstance(element, dict)
        and isinstance(wanted, dict)
        and all(name in element and same(element[name], value) for name, value in wanted.items())
    )


def _named(sort: str, text: str) -> Step:
    if sort == "i:":
        return int(text)
    value = _decoded(text)
    if sort == "k:" and isinstance(value, dict):
        return Selector(tuple((name, scalar_text(one) or "") for name, one in value.items()))
    return scalar_text(value) or text


def _is_at(child: _Child, wanted: Step) -> bool:
    """Whether a step that somebody wrote means this one: by fewer keys, or by its position, too."""
    if isinstance(wanted, Selector):
        return wanted.matches(child.value)
    return child.step == wanted or (isinstance(wanted, int) and child.position == wanted)


def _keys(step: str) -> dict[str, Json]:
    found = _decoded(step[2:]) if step.startswith("k:") else {}
    return dict(found) if isinstance(found, dict) else {}


@lru_cache(maxsize=4096)
def _decoded(text: str) -> Json:
    try:
        value: Json = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text
    return value
