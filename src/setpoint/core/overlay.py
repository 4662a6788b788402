"""The effective desired state: the spec laid over the live object, field by field, under the author's policy.

Neither input is changed and nothing is copied that stayed the same: what equals the live value *is* the live value.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias, TypeVar

import msgspec

from setpoint.core.canonical import same
from setpoint.core.elements import Key, by_key, is_list_of_objects, key_of, selector
from setpoint.core.paths import Path, child
from setpoint.core.policy import PRUNE, FieldPolicy, Rule, Stance
from setpoint.core.shape import UNTYPED, Field, KeyedList, MapOf, Mark, Object, field_below, shape_of
from setpoint.core.values import MISSING, Json, Missing

Tree: TypeAlias = Mapping[str, Json]
# Strongest first.
_HOLDING: Final = {Mark.PROTECTED: Rule.PROTECTED, Mark.CHOSEN: Rule.CHOSEN, Mark.IMMUTABLE: Rule.FIXED}
S = TypeVar("S", bound=msgspec.Struct)


@dataclass(frozen=True, slots=True)
class Declared:
    """What the author asks for: a tree with the spec in it, its shape, and the policy for what it leaves out."""

    tree: Tree
    shape: Object
    policy: FieldPolicy = PRUNE


Fitting: TypeAlias = Callable[[Declared, Tree], Declared]


def overlay(declared: Declared, live: Tree | Missing) -> Tree:
    """What the live object should be; the very same `live` when nothing is to change. MISSING: it is not there yet."""
    if isinstance(live, Missing):
        return _entries(declared.tree, {}, declared.shape, declared.policy.on_create().stance)
    stance = declared.policy.stance
    return live if stance.rule is Rule.UNMANAGED else _entries(declared.tree, live, declared.shape, stance)


def overlay_typed(spec: S, live: S | Missing, policy: FieldPolicy = PRUNE, fitted: Fitting | None = None) -> S:
    """`overlay` for a spec and a live object of one struct type, the live one in the spec's terms.

    `fitted`: what is asked for of this very live object.
    """
    live_tree = MISSING if isinstance(live, Missing) else msgspec.to_builtins(live)
    declared = Declared(msgspec.to_builtins(spec), shape_of(type(spec)), policy)
    if fitted is not None and not isinstance(live_tree, Missing):
        declared = fitted(declared, live_tree)
    return msgspec.convert(overlay(declared, live_tree), type(spec))


def without_protection(declared: Declared) -> Declared:
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
        below = child(here, step)
        if here is None or (in_list and here is not MISSING and below is MISSING):
            return Rule.SPEC
        here = below
        if here is MISSING and (held := _held_by(place, stance)):
            return held
    return Rule.SPEC if here is not MISSING else _absent_rule(place)


def keeper_at(declared: Declared, path: Path) -> Rule:
    """The rule that keeps what a bare prune would change at `path`: for an element, that of something listed in it."""
    rule = rule_at(declared, path)
    if rule not in (Rule.SPEC, Rule.PRUNED, Rule.DEFAULT):
        return rule
    stance = declared.policy.stance
    for step in path.steps:
        stance = stance.at(step)
    return stance.strongest_below() or rule


def _is_unmanaged(stance: Stance, path: Path) -> bool:
    for step in path.steps:
        stance = stance.at(step)
    return stance.unmanaged


def _held_by(place: Field, stance: Stance) -> Rule | None:
    """The rule that keeps a live value here, and everything below it, from being pruned."""
    if stance.rule is not Rule.PRUNED:
        return stance.rule
    return next((rule for mark, rule in _HOLDING.items() if mark in place.marks), None)


def _absent_rule(place: Field) -> Rule:
    return Rule.PRUNED if place.default is MISSING else Rule.DEFAULT


# --- The walk: spec and live side by side ----------------------------------------------------------------------------


def _value(spec: Json | Missing, live: Json | Missing, place: Field, stance: Stance) -> Json | Missing:
    if stance.unmanaged or place.output_only:
        return live
    if spec is MISSING:
        return live if stance.keeps else _absent(live, place, stance)
    if spec is None:
        return _absent(live, place, stance.released())
    return _specified(spec, live, place, stance)


def _absent(live: Json | Missing, place: Field, stance: Stance) -> Json | Missing:
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


def _specified(spec: Json, live: Json | Missing, place: Field, stance: Stance) -> Json | Missing:
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


def _entries(spec: Tree, live: Tree, shape: Object | MapOf, stance: Stance) -> Tree:
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


def _places(shape: Object | MapOf) -> tuple[Mapping[str, Field], Field, tuple[str, ...]]:
    """The fields by name, the field for any other name, and the names that have a value when nobody gives one."""
    return (shape.fields, UNTYPED, shape.defaulted) if isinstance(shape, Object) else ({}, shape.value, ())


def _elements(spec: Sequence[Tree], live: Sequence[Json], shape: KeyedList, stance: Stance) -> Json:
    """The spec's elements, each over its live twin; of the others, what a path of the policy lists stays."""
    names = shape.keys
    twins: dict[Key, Json] = {key_of(element, names): element for element in reversed(live)}
    result: list[Json] = []
    untouched = True
    wanted = by_key(spec, names)
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


def _listed(live: Sequence[Json], shape: KeyedList, stance: Stance) -> dict[Key, Tree]:
    """The live elements that hold something the policy lists, as if the spec had named them and said no more."""
    found: dict[Key, Tree] = {}
    for element in live:
        key = key_of(element, shape.keys)
        below = stance.below.get(selector(shape.keys, key))
        if below is not None and isinstance(element, dict) and _holds_listed(element, below):
            found.setdefault(key, {name: element[name] for name in shape.keys if name in element})
    return found


def _holds_listed(live: Json | Missing, stance: Stance) -> bool:
    if live is MISSING:
        return False
    if stance.unmanaged or stance.rule is Rule.LISTED:
        return True
    return any(_holds_listed(child(live, step), below) for step, below in stance.below.items())
