"""Field-by-field diff of two trees. Values of write-only fields are redacted."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import is_
from typing import Final, TypeAlias

from setpoint.core.schema.policy import Rule
from setpoint.core.schema.shape import UNTYPED, AtomicList, Field, KeyedList, MapShape, ObjectShape, field_below
from setpoint.core.values.canonical import encodes_same, same
from setpoint.core.values.json_types import MISSING, Json, Missing
from setpoint.core.values.paths import ElementKey, Path, is_list_of_objects, key_of, selector

REDACTED: Final = "(redacted)"
_Side: TypeAlias = Json | Missing
# By the name of a field, or the key of an element.
_Pairs: TypeAlias = dict[str | ElementKey, tuple[_Side, _Side]]


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One field: before and after (MISSING where absent), the rule that decided, and whether it was fixed at birth."""

    path: Path
    before: Json | Missing
    after: Json | Missing
    rule: Rule = Rule.SPEC
    immutable: bool = False


def diff(
    before: Json | Missing, after: Json | Missing, place: Field = UNTYPED, *, resend: Iterable[Path] = ()
) -> tuple[FieldChange, ...]:
    """The fields that differ. Where `place` has a type, absent equals null, empty and the documented default.

    A write-only field cannot be compared: it counts as changed when its path is in `resend`. What was only asked for is
    compared when it is asked for anew, and then only.
    """
    found = _changes((before, after), place, Path(), frozenset(resend))
    return tuple(replace(one, immutable=True) if _is_fixed(place, one.path) else one for one in found)


def redact(value: Json, place: Field) -> Json:
    """`value` with every write-only field in it hidden; the very same value when it holds none."""
    if value is None or place.is_open:
        return value
    if place.write_only:
        return REDACTED
    match place.shape:
        case ObjectShape() | MapShape() if isinstance(value, dict):
            hidden = {name: redact(entry, field_below(place, name) or UNTYPED) for name, entry in value.items()}
            return value if all(map(is_, hidden.values(), value.values())) else hidden
        case KeyedList(item=item) if isinstance(value, list | tuple):
            return _redacted_elements(value, item)
        case AtomicList(item=item) if isinstance(value, list | tuple):
            return _redacted_elements(value, Field(item))
        case _:
            return value


def _redacted_elements(value: Sequence[Json], place: Field) -> Json:
    hidden = [redact(element, place) for element in value]
    return value if all(map(is_, hidden, value)) else hidden


def _is_fixed(place: Field, path: Path) -> bool:
    """Whether the field at `path`, or an object around it, is fixed when the live object is created."""
    for step in path.steps:
        if place.immutable:
            return True
        place = field_below(place, step) or UNTYPED
    return place.immutable


# --- The walk: both trees side by side, past what is equal ------------------------------------------------------------


def _changes(sides: tuple[_Side, _Side], place: Field, at: Path, resend: frozenset[Path]) -> Iterator[FieldChange]:
    if place.write_only:
        if at in resend:
            yield FieldChange(at, REDACTED, REDACTED)
    elif not (sides[0] is sides[1] or place.output_only or (place.asked and at not in resend)):
        was, now = (_settled(side, place) for side in sides)
        pairs = _pairs(was, now, place)
        if pairs is not None:
            apart = pairs if resend else {step: pair for step, pair in pairs.items() if pair[0] is not pair[1]}
            # Trees that share nothing may still be equal all the way down: one look tells.
            if resend or len(apart) < len(pairs) or not _alike(was, now, encodes_same):
                yield from _changes_below(apart, place, at, resend)
        elif not _alike(was, now, same):
            yield _change(was, now, place, at)


def _changes_below(pairs: _Pairs, place: Field, at: Path, resend: frozenset[Path]) -> Iterator[FieldChange]:
    for step, (was, now) in pairs.items():
        if not isinstance(step, tuple):
            yield from _changes((was, now), field_below(place, step) or UNTYPED, at / step, resend)
            continue
        assert place.elements is not None
        element = at / selector(place.elements.keys, step)
        if was is MISSING or now is MISSING:
            # An element that comes or goes is one change, not one for each of its fields.
            yield _change(was, now, place.elements.item, element)
        else:
            yield from _changes((was, now), place.elements.item, element, resend)


def _alike(was: _Side, now: _Side, equal: Callable[[Json, Json], bool]) -> bool:
    if isinstance(was, Missing) or isinstance(now, Missing):
        return was is now
    return equal(was, now)


def _change(was: _Side, now: _Side, place: Field, at: Path) -> FieldChange:
    before = MISSING if isinstance(was, Missing) else redact(was, place)
    after = MISSING if isinstance(now, Missing) else redact(now, place)
    return FieldChange(at, before, after)


def _settled(side: _Side, place: Field) -> _Side:
    """What a side comes to: null is absent, absent is the default, and an empty list or object is absent again."""
    if place is UNTYPED:
        return side
    if side is None or side is MISSING:
        side = place.default
    return MISSING if isinstance(side, dict | list | tuple) and not side else side


def _pairs(was: _Side, now: _Side, place: Field) -> _Pairs | None:
    """The pairs to compare one level down, in the order of the type; None for what is compared whole."""
    match place.shape:
        case KeyedList() as shape:
            return _paired(_by_key(was, shape), _by_key(now, shape), {})
        case ObjectShape(fields=fields):
            return _paired(_or_empty(was), _or_empty(now), fields)
        case MapShape():
            return _paired(_or_empty(was), _or_empty(now), {})
        case _:
            return _paired(was, now, {})


def _or_empty(side: _Side) -> Json:
    return {} if isinstance(side, Missing) else side


def _paired(was: object, now: object, order: Mapping[str, Field]) -> _Pairs | None:
    if not (isinstance(was, dict) and isinstance(now, dict)):
        return None
    steps = {**dict.fromkeys(name for name in order if name in was or name in now), **was, **now}
    return {step: (was.get(step, MISSING), now.get(step, MISSING)) for step in steps}


def _by_key(side: _Side, shape: KeyedList) -> dict[ElementKey, Json] | None:
    """The elements under their keys; None when two share one, or there is nothing to have keys."""
    if side is MISSING:
        return {}
    if not is_list_of_objects(side):
        return None
    found: dict[ElementKey, Json] = {key_of(element, shape.keys): element for element in side}
    return found if len(found) == len(side) else None
