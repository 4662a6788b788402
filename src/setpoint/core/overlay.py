"""The effective desired state: the spec laid over the live state, field by field, under the author's field policy.

Inputs are never mutated and unchanged parts are shared: a value that equals the live one is the live object itself.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias, TypeVar

import msgspec

from setpoint.core.schema.policy import PRUNE, CompiledPolicy, FieldPolicy, Rule
from setpoint.core.schema.shape import UNTYPED, Field, KeyedList, MapShape, Mark, ObjectShape, field_below, shape_of
from setpoint.core.values.canonical import same
from setpoint.core.values.json_types import MISSING, Json, JsonObject, Missing
from setpoint.core.values.paths import ElementKey, Path, index_by_key, is_list_of_objects, key_of, selector, value_below

# Strongest first.
_KEEPING_MARKS: Final = {Mark.PROTECTED: Rule.PROTECTED, Mark.CHOSEN: Rule.CHOSEN, Mark.IMMUTABLE: Rule.FIXED}
S = TypeVar("S", bound=msgspec.Struct)


@dataclass(frozen=True, slots=True)
class Declared:
    """What the author asks for: a tree with the spec in it, its shape, and the policy for what it leaves out."""

    tree: JsonObject
    shape: ObjectShape
    policy: FieldPolicy = PRUNE


AdjustDeclared: TypeAlias = Callable[[Declared, JsonObject], Declared]


def overlay(declared: Declared, live: JsonObject | Missing) -> JsonObject:
    """What the live object should be; the very same `live` when nothing is to change. MISSING: it is not there yet."""
    if isinstance(live, Missing):
        return _entries(declared.tree, {}, declared.shape, declared.policy.on_create().stance)
    stance = declared.policy.stance
    return live if stance.rule is Rule.UNMANAGED else _entries(declared.tree, live, declared.shape, stance)


def overlay_typed(
    spec: S, live: S | Missing, policy: FieldPolicy = PRUNE, fit_to_live: AdjustDeclared | None = None
) -> S:
    """`overlay` for a spec and a live object of one struct type, the live one in the spec's terms.

    `fitted`: what is asked for of this very live object.
    """
    live_tree = MISSING if isinstance(live, Missing) else msgspec.to_builtins(live)
    declared = Declared(msgspec.to_builtins(spec), shape_of(type(spec)), policy)
    if fit_to_live is not None and not isinstance(live_tree, Missing):
        declared = fit_to_live(declared, live_tree)
    return msgspec.convert(overlay(declared, live_tree), type(spec))


def without_policy(declared: Declared) -> Declared:
    """The same, with every annotation and protection off: what a bare prune would do."""
    return replace(declared, policy=FieldPolicy(unspecified=Rule.RELEASED))


def rule_at(declared: Declared, path: Path) -> Rule:
    """The rule that decides the field at `path` of the declared tree."""
    if _is_unmanaged(declared.policy.stance, path):
        return Rule.UNMANAGED
    here: Json | Missing = declared.tree
    stance, place = declared.policy.stance, Field(declared.shape)
    for step in path.steps:
        in_list = isinstance(place.shape, KeyedList)
        stance, place = stance.at(step), field_below(place, step) or UNTYPED
        below = value_below(here, step)
        if here is None or (in_list and here is not MISSING and below is MISSING):
            return Rule.SPEC
        here = below
        if here is MISSING and (held := _keeping_rule(place, stance)):
            return held
    return Rule.SPEC if here is not MISSING else _absent_rule(place)


def keeping_rule_at(declared: Declared, path: Path) -> Rule:
    """The rule that keeps what a bare prune would change at `path`: for an element, that of something listed in it."""
    rule = rule_at(declared, path)
    if rule not in (Rule.SPEC, Rule.PRUNED, Rule.DEFAULT):
        return rule
    stance = declared.policy.stance
    for step in path.steps:
        stance = stance.at(step)
    return stance.strongest_listed_rule() or rule


def _is_unmanaged(stance: CompiledPolicy, path: Path) -> bool:
    for step in path.steps:
        stance = stance.at(step)
    return stance.unmanaged


def _keeping_rule(place: Field, stance: CompiledPolicy) -> Rule | None:
    """The rule that keeps a live value here, and everything below it, from being pruned."""
    if stance.rule is not Rule.PRUNED:
        return stance.rule
    return next((rule for mark, rule in _KEEPING_MARKS.items() if mark in place.marks), None)


def _absent_rule(place: Field) -> Rule:
    return Rule.PRUNED if place.default is MISSING else Rule.DEFAULT


# --- The walk: spec and live side by side ----------------------------------------------------------------------------


def _value(spec: Json | Missing, live: Json | Missing, place: Field, stance: CompiledPolicy) -> Json | Missing:
    if stance.unmanaged or place.output_only:
        return live
    if spec is MISSING:
        return live if stance.keeps else _absent(live, place, stance)
    if spec is None:
        return _absent(live, place, stance.released())
    return _specified(spec, live, place, stance)


def _absent(live: Json | Missing, place: Field, stance: CompiledPolicy) -> Json | Missing:
    there = live is not MISSING and live is not None
    if there and place.held and (place.chosen or stance.rule is not Rule.RELEASED):
        return live
    if there and (place.entries or place.elements):
        empty: Json = {} if place.entries else []
        rest = _specified(empty if place.default is MISSING else place.default, live, place, stance)
        return rest if rest or rest is live else MISSING
    if place.default is not MISSING:
        return _specified(place.default, live, place, stance)
    return MISSING if there else live


def _specified(spec: Json, live: Json | Missing, place: Field, stance: CompiledPolicy) -> Json | Missing:
    if place.is_plain and not stance.below:
        # Nothing to fill in, nothing listed below: equal is done, and anything but a list or object is replaced whole.
        if live is not MISSING and same(spec, live):
            return live
        if not (place.entries or place.elements):
            return spec
    if place.entries and isinstance(spec, dict):
        return _entries(spec, live if isinstance(live, dict) else {}, place.entries, stance)
    if place.elements and is_list_of_objects(spec):
        return _elements(spec, live if isinstance(live, list | tuple) else (), place.elements, stance)
    return live if live is not MISSING and same(spec, live) else spec


def _entries(spec: JsonObject, live: JsonObject, shape: ObjectShape | MapShape, stance: CompiledPolicy) -> JsonObject:
    fields, rest, defaulted = _places(shape)
    result: dict[str, Json] = {}
    untouched = True
    for name, was in live.items():
        said = spec.get(name, MISSING)
        if type(said) is str and type(was) is str and said == was:
            # Under every rule, and by far the most common case.
            result[name] = was
            continue
        here = stance.at(name) if stance.below else stance
        now = _value(said, was, fields.get(name, rest), here)
        if now is not was:
            untouched = False
        if now is not MISSING:
            result[name] = now
    for name in (*spec, *defaulted):
        if name not in live:
            now = _value(spec.get(name, MISSING), MISSING, fields.get(name, rest), stance.at(name))
            if now is not MISSING:
                untouched = False
                result[name] = now
    return live if untouched else result


def _places(shape: ObjectShape | MapShape) -> tuple[Mapping[str, Field], Field, tuple[str, ...]]:
    """The fields by name, the field for any other name, and the names that have a value when nobody gives one."""
    return (shape.fields, UNTYPED, shape.defaulted) if isinstance(shape, ObjectShape) else ({}, shape.value, ())


def _elements(spec: Sequence[JsonObject], live: Sequence[Json], shape: KeyedList, stance: CompiledPolicy) -> Json:
    """The spec's elements, each over its live twin; of the others, what a path of the policy lists stays."""
    names = shape.keys
    twins: dict[ElementKey, Json] = {key_of(element, names): element for element in reversed(live)}
    result: list[Json] = []
    untouched = True
    wanted = index_by_key(spec, names)
    if stance.below:
        wanted |= {key: said for key, said in _listed(live, shape, stance).items() if key not in wanted}
    for key, element in wanted.items():
        was = twins.get(key, MISSING)
        now = _value(element, was, shape.item, stance.at(selector(names, key)) if stance.below else stance)
        if now is not was:
            untouched = False
        if now is not MISSING:
            result.append(now)
    return live if untouched and len(result) == len(live) else result


def _listed(live: Sequence[Json], shape: KeyedList, stance: CompiledPolicy) -> dict[ElementKey, JsonObject]:
    """The live elements that hold something the policy lists, as if the spec had named them and said no more."""
    found: dict[ElementKey, JsonObject] = {}
    for element in live:
        key = key_of(element, shape.keys)
        below = stance.below.get(selector(shape.keys, key))
        if below is not None and isinstance(element, dict) and _holds_listed(element, below):
            found.setdefault(key, {name: element[name] for name in shape.keys if name in element})
    return found


def _holds_listed(live: Json | Missing, stance: CompiledPolicy) -> bool:
    if live is MISSING:
        return False
    if stance.unmanaged or stance.rule is Rule.LISTED:
        return True
    return any(_holds_listed(value_below(live, step), below) for step, below in stance.below.items())
