"""Field-by-field diff of two trees. Secret values are redacted in every change."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeAlias

from setpoint.core.redaction import REDACTED, redact
from setpoint.core.schema.policy import Rule
from setpoint.core.schema.shape import UNTYPED, Field, KeyedList, MapShape, ObjectShape, field_below
from setpoint.core.secret_paths import has_secret_fields, secret_within
from setpoint.core.values.canonical import encodes_same, same
from setpoint.core.values.deferred_dataclass import dataclass, replace
from setpoint.core.values.json_types import MISSING, Json, Missing
from setpoint.core.values.paths import ElementKey, Path, is_list_of_objects, key_of, selector

_Side: TypeAlias = Json | Missing
# Both values by the name of a field, or by the key of a list element.
_Pairs: TypeAlias = dict[str | ElementKey, tuple[_Side, _Side]]


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One field: its value before and after (MISSING where absent), the rule that decides, whether it is immutable."""

    path: Path
    before: Json | Missing
    after: Json | Missing
    rule: Rule = Rule.SPEC
    immutable: bool = False


def diff(
    before: Json | Missing, after: Json | Missing, field: Field = UNTYPED, *, resend: Iterable[Path] = ()
) -> tuple[FieldChange, ...]:
    """The fields that differ. Where `field` has a type, absent equals null, empty and the documented default.

    A write-only field cannot be compared: it counts as changed if its path is in `resend`. A field marked ASKED is
    compared only if its path is in `resend`.
    """
    found = _changes((before, after), field, Path(), frozenset(resend))
    return tuple(replace(one, immutable=True) if is_immutable(field, one.path) else one for one in found)


def created_fields(wanted: Json, field: Field) -> tuple[FieldChange, ...]:
    """Every field of an object that does not exist yet, defaults included. An element of a keyed list is one change."""
    return tuple(_created(wanted, field, Path()))


def _created(wanted: Json, field: Field, at: Path) -> Iterator[FieldChange]:
    if field.output_only:
        return
    if field.write_only:
        yield FieldChange(at, MISSING, REDACTED)
        return
    pairs = _pairs(MISSING, wanted, field)
    if pairs is None or (not pairs and not field.entries):
        yield _change(MISSING, wanted, field, at)
        return
    for step, (_, value) in pairs.items():
        assert not isinstance(value, Missing)
        if not isinstance(step, tuple):
            yield from _created(value, field_below(field, step) or UNTYPED, at / step)
            continue
        assert field.elements is not None
        yield _change(MISSING, value, field.elements.item, at / selector(field.elements.keys, step))


def redact_changes(changes: Iterable[FieldChange], of: Json) -> tuple[FieldChange, ...]:
    """The changes of the Kubernetes object `of`, with the values of a Secret redacted."""
    if not has_secret_fields(of):
        return tuple(changes)
    return tuple(one if secret_within(of, one.path) is None else redacted_change(one) for one in changes)


def redacted_change(change: FieldChange) -> FieldChange:
    """The change without its values; it still shows whether there is one."""
    before, after = (MISSING if isinstance(side, Missing) else REDACTED for side in (change.before, change.after))
    return replace(change, before=before, after=after)


def is_immutable(field: Field, path: Path) -> bool:
    """Whether the field at `path`, or an object that contains it, is immutable."""
    for step in path.steps:
        if field.immutable:
            return True
        field = field_below(field, step) or UNTYPED
    return field.immutable


# --- The walk over both trees, skipping equal subtrees ----------------------------------------------------------------


def _changes(sides: tuple[_Side, _Side], field: Field, at: Path, resend: frozenset[Path]) -> Iterator[FieldChange]:
    if field.write_only:
        if at in resend:
            yield FieldChange(at, REDACTED, REDACTED)
    elif not (sides[0] is sides[1] or field.output_only or (field.asked and at not in resend)):
        was, now = _normalised(sides[0], field), _normalised(sides[1], field)
        pairs = _pairs(was, now, field)
        if pairs is not None:
            different = pairs if resend else {step: pair for step, pair in pairs.items() if pair[0] is not pair[1]}
            # Trees without a shared part may still be equal: comparing their encodings is cheaper than a walk.
            if resend or len(different) < len(pairs) or not _are_equal(was, now, encodes_same):
                yield from _changes_below(different, field, at, resend)
        elif not _are_equal(was, now, same):
            yield _change(was, now, field, at)


def _changes_below(pairs: _Pairs, field: Field, at: Path, resend: frozenset[Path]) -> Iterator[FieldChange]:
    for step, (was, now) in pairs.items():
        if not isinstance(step, tuple):
            yield from _changes((was, now), field_below(field, step) or UNTYPED, at / step, resend)
            continue
        assert field.elements is not None
        element = at / selector(field.elements.keys, step)
        if was is MISSING or now is MISSING:
            # An added or removed element is one change, not one for each of its fields.
            yield _change(was, now, field.elements.item, element)
        else:
            yield from _changes((was, now), field.elements.item, element, resend)


def _are_equal(was: _Side, now: _Side, equal: Callable[[Json, Json], bool]) -> bool:
    if isinstance(was, Missing) or isinstance(now, Missing):
        return was is now
    return equal(was, now)


def _change(was: _Side, now: _Side, field: Field, at: Path) -> FieldChange:
    before = MISSING if isinstance(was, Missing) else redact(was, field)
    after = MISSING if isinstance(now, Missing) else redact(now, field)
    return FieldChange(at, before, after)


def _normalised(side: _Side, field: Field) -> _Side:
    """One side in normal form: null is absent, absent is the default, an empty list or object is absent."""
    if field is UNTYPED:
        return side
    if side is None or side is MISSING:
        side = field.default
    return MISSING if isinstance(side, dict | list | tuple) and not side else side


def _pairs(was: _Side, now: _Side, field: Field) -> _Pairs | None:
    """The pairs of values one level below, in the order of the type; None for values that are compared as a whole."""
    match field.shape:
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
    steps = {**was, **now}
    ordered = {**dict.fromkeys(filter(steps.__contains__, order)), **steps} if order else steps
    return {step: (was.get(step, MISSING), now.get(step, MISSING)) for step in ordered}


def _by_key(side: _Side, shape: KeyedList) -> dict[ElementKey, Json] | None:
    """The elements by key; None when two have the same key, or the value is not a list of objects."""
    if side is MISSING:
        return {}
    if not is_list_of_objects(side):
        return None
    found: dict[ElementKey, Json] = {key_of(element, shape.keys): element for element in side}
    return found if len(found) == len(side) else None
