"""The parts of an object that methods of their own set: the members of each, and the fields of a spec that those are.

An update by a request of its own (`put-request`) is such a method for each member of the request: services refuse
several at once.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from setpoint.catalogue.rows import FieldFacts, KindFacts, MethodFacts
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.paths import Path

# Parts of the address of an object: not members of it.
ADDRESS: Final = ("url", "id")
# A field that the catalogue knows no member of the API for.
UNKNOWN: Final = "?"
# An object whose members stand in the object that it is in.
BESIDE: Final = "."
# A field that no request has: it says how another is sent, or what becomes of the object.
LOCAL: Final = "-"
LABELS: Final = Path(("metadata", "labels"))
_SPEC: Final = Path(("spec",))
# The styles of update in which only such methods change an object.
_BY_PARTS: Final = ("none", "per-field", "put-request")
_NUMBERS_AND_TEXTS: Final = ("string", "integer", "number")
_SETTERS: Final = ("set", "update", "resize", "expand", "upgrade")


def member_path(name: str, facts: FieldFacts) -> tuple[str, ...]:
    """The path of the member that a field is sent as, below that of the object it is in; empty for one that is not."""
    if facts.to in (*ADDRESS, UNKNOWN, BESIDE, LOCAL) or facts.output_only or facts.query:
        return ()
    return tuple(facts.to.split(".")) if facts.to else (name,)


@dataclass(frozen=True, slots=True)
class PartMethod:
    """A method that sets parts of an object.

    `parts`: the path in the request, by that in the object, both dotted; an empty one when the part is the request.
    `paths`: the fields of the compared tree that are these parts.
    """

    name: str
    facts: MethodFacts
    parts: Mapping[str, str]
    paths: tuple[Path, ...]
    # Whether it is the update of the collection, with one member of its request.
    is_update: bool = False


def part_methods(row: KindFacts) -> Sequence[PartMethod]:
    """The methods of a row that set parts, in the order in which they are called."""
    found = [*_of_update(row), *_of_their_own(row)]
    return [one for one in found if one.paths]


def settable_paths(row: KindFacts) -> tuple[Path, ...] | None:
    """The fields that some method can change; None when an update sets every one."""
    if row.update_style not in _BY_PARTS:
        return None
    switched = (_SPEC / name for name, facts in row.fields.items() if facts.toggle)
    return (*switched, *(path for method in part_methods(row) for path in method.paths))


def kept_paths(row: KindFacts) -> frozenset[Path]:
    """The fields that keep their value when the author takes them out: methods set them, and none unsets them.

    A request for nothing is refused, or sets a number to zero. What is on by being there can be switched off.
    """
    found: set[Path] = set()
    for method in part_methods(row):
        for part, name in method.parts.items():
            for path in _fields_at(row, part):
                facts = _facts_at(row.fields, path)
                if facts is not None and not switch_members(facts) and _is_lost(facts, method, name):
                    found.add(path)
    return frozenset(found)


def _is_lost(facts: FieldFacts, method: PartMethod, name: str) -> bool:
    if method.is_update:
        # One in an object of the request is unset by an empty one.
        return "." not in name
    if method.facts.verb == "PATCH":
        return True
    return facts.type in _NUMBERS_AND_TEXTS and facts.ref is None


def switch_members(facts: FieldFacts) -> Mapping[str, bool]:
    """The members with which an object is switched off that is on by being there: `{"enabled": false}`."""
    return {name: False for name, one in facts.adds.items() if one is True} if facts.fields else {}


def _facts_at(fields: Mapping[str, FieldFacts], path: Path) -> FieldFacts | None:
    facts: FieldFacts | None = None
    for step in path.steps[1:]:
        facts = fields.get(str(step))
        fields = facts.fields if facts is not None else {}
    return facts


def _of_update(row: KindFacts) -> Iterator[PartMethod]:
    if row.update_style != "put-request":
        return
    method = row.methods["update"]
    for path, name in method.sends_as.items():
        yield PartMethod(name.partition(".")[0], method, {path: name}, _fields_at(row, path), is_update=True)


def _of_their_own(row: KindFacts) -> Iterator[PartMethod]:
    for name in row.per_field_methods:
        method = row.other_methods.get(name)
        if method is not None and name.startswith(_SETTERS):
            parts = parts_of(row, method)
            paths = tuple(path for part in parts for path in _fields_at(row, part))
            yield PartMethod(name, method, parts, paths)


def parts_of(row: KindFacts, method: MethodFacts) -> Mapping[str, str]:
    """What a method sets: the member of its request, by the dotted path in the object."""
    if method.sends_as:
        return method.sends_as
    if method.field:
        return {method.field: ""}
    paths = (member_path(name, facts) for name, facts in row.fields.items())
    known = {path[0] for path in paths if path} | {row.labels}
    return {name: name for name in (*method.sends, *method.query) if name in known}


def _fields_at(row: KindFacts, part: str) -> tuple[Path, ...]:
    if row.labels and part == row.labels:
        return (LABELS,)
    steps = tuple(step for step in part.split(".") if not step.isdecimal())
    return tuple(_below(row.fields, steps, _SPEC))


def _below(fields: Mapping[str, FieldFacts], steps: tuple[str, ...], at: Path) -> Iterator[Path]:
    for name, facts in fields.items():
        own = member_path(name, facts)
        if own and own[: len(steps)] == steps:
            yield at / name
        elif own and steps[: len(own)] == own and facts.type == "object" and facts.fields:
            if facts.shape is None:
                yield from _below(facts.fields, steps[len(own) :], at / name)
            elif facts.shape == "object-to-list-of-one":
                yield at / name
