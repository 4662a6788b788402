"""The effective desired state: the spec laid over the live state, field by field, under the author's field policy.

Inputs are never mutated and unchanged parts are shared: a value that equals the live one is the live object itself.
`effective_state` is the same with structs; each kind builds its own function from spec and live object on it.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Final, Generic, TypeAlias, TypeVar, get_args, get_origin, get_type_hints

import msgspec
from msgspec import UNSET
from msgspec.structs import fields as struct_fields

from setpoint.core.schema.policy import PRUNE, CompiledPolicy, FieldPolicy, Rule
from setpoint.core.schema.shape import UNTYPED, Field, KeyedList, MapShape, Mark, ObjectShape, field_below, shape_of
from setpoint.core.values.canonical import same
from setpoint.core.values.deferred_dataclass import dataclass, replace
from setpoint.core.values.json_types import MISSING, Json, JsonObject, Missing
from setpoint.core.values.paths import (
    ElementKey,
    Path,
    PathStep,
    get_at,
    index_by_key,
    is_list_of_objects,
    key_of,
    selector,
    value_below,
)

# Strongest first.
_KEEPING_MARKS: Final = {
    Mark.PROTECTED: Rule.PROTECTED,
    Mark.CHOSEN: Rule.CHOSEN,
    Mark.FILLED: Rule.CHOSEN,
    Mark.IMMUTABLE: Rule.FIXED,
}


@dataclass(frozen=True, slots=True)
class Declared:
    """What the author declares: a tree with the spec in it, its shape, and the policy for fields that it leaves out."""

    tree: JsonObject
    shape: ObjectShape
    policy: FieldPolicy = PRUNE


def overlay(declared: Declared, live: JsonObject | Missing) -> JsonObject:
    """The effective desired state; `live` itself when nothing changes. MISSING: the object does not exist yet."""
    if isinstance(live, Missing):
        return _entries(declared.tree, {}, declared.shape, declared.policy.on_create().compiled)
    compiled = declared.policy.compiled
    return live if compiled.rule is Rule.UNMANAGED else _entries(declared.tree, live, declared.shape, compiled)


def overlay_at(declared: Declared, live: JsonObject, path: Path) -> Json | Missing:
    """The value at `path` of the effective desired state, without making the rest of it. No step is in a list."""
    only = replace(declared, tree=_along(declared.tree, path.steps))
    return get_at(overlay(only, _along(live, path.steps)), path)


def _along(tree: JsonObject, steps: Sequence[PathStep]) -> JsonObject:
    """What is at `steps` in the tree, or on the way there."""
    name, *rest = steps
    if not isinstance(name, str) or name not in tree:
        return {}
    value = tree[name]
    return {name: _along(value, rest) if rest and isinstance(value, dict) else value}


S = TypeVar("S", bound=msgspec.Struct)
# What the live object changes about the declared tree, or about its shape: values that the service derives or fixes.
FitToLive: TypeAlias = Callable[[Declared, JsonObject], Declared]


@dataclass(frozen=True, slots=True)
class EffectiveState(Generic[S]):
    """The effective desired state as a tree, and what decided it: the declared tree, fitted to the live object.

    Parts of the tree that are as in the live object are those of `live`: a comparison of the two skips them.
    """

    tree: JsonObject
    declared: Declared
    struct_type: type[S]
    live: JsonObject | Missing

    @property
    def state(self) -> S:
        """The state as a struct."""
        return struct_of(self.tree, self.struct_type)


def effective_state(
    spec: S, live: S | Missing, policy: FieldPolicy, fit_to_live: FitToLive | None = None
) -> EffectiveState[S]:
    """The effective desired state for structs of one type, the live object in the terms of the spec.

    MISSING: the object does not exist yet. Neither argument is mutated.
    """
    declared = Declared(tree_of(spec), shape_of(type(spec)), policy)
    return effective_of_trees(declared, live if isinstance(live, Missing) else tree_of(live), type(spec), fit_to_live)


def effective_of_trees(
    declared: Declared, live: JsonObject | Missing, struct_type: type[S], fit_to_live: FitToLive | None = None
) -> EffectiveState[S]:
    """See `effective_state`, for trees."""
    if fit_to_live is not None and not isinstance(live, Missing):
        declared = fit_to_live(declared, live)
    return EffectiveState(overlay(declared, live), declared, struct_type, live)


# Makes the effective desired state from trees.
TreeOverlay: TypeAlias = Callable[[Declared, JsonObject | Missing], EffectiveState[Any]]


def tree_overlay_of(kind: object) -> TreeOverlay | None:
    """The `effective_tree` of a kind, which needs no structs; None if a class below redefines its `effective`."""
    is_by_trees = _overlays_trees(type(kind))  # type: ignore[arg-type] # it takes the hash of the class for its instances
    found: TreeOverlay | None = getattr(kind, "effective_tree", None) if is_by_trees else None
    return found


@cache
def _overlays_trees(cls: type) -> bool:
    defining = (base for base in cls.__mro__ if "effective_tree" in vars(base) or "effective" in vars(base))
    return "effective_tree" in vars(next(defining, object))


def tree_of(struct: msgspec.Struct) -> JsonObject:
    """A struct as a tree; what is not set is absent."""
    tree: dict[str, Json] = msgspec.to_builtins(struct)
    return tree


def struct_of(tree: JsonObject, type_: type[S]) -> S:
    """A tree as a struct. Values are not validated: a live object may have some that no spec may declare."""
    found = _builder(type_)(tree)
    assert isinstance(found, type_)
    return found


_RELEASED: Final = FieldPolicy(unspecified=Rule.RELEASED)


def without_policy(declared: Declared) -> Declared:
    """`declared` without annotations and protection: its overlay prunes every field that the spec leaves out."""
    return replace(declared, policy=_RELEASED)


def rule_at(declared: Declared, path: Path) -> Rule:
    """The rule that decides the value of the field at `path`."""
    if _is_unmanaged(declared.policy.compiled, path):
        return Rule.UNMANAGED
    here: Json | Missing = declared.tree
    compiled, field = declared.policy.compiled, declared.shape.as_field
    for step in path.steps:
        in_list = isinstance(field.shape, KeyedList)
        compiled, field = compiled.at(step), field_below(field, step) or UNTYPED
        below = value_below(here, step)
        if here is None or (in_list and here is not MISSING and below is MISSING):
            return Rule.SPEC
        here = below
        if here is MISSING and (rule := _keeping_rule(field, compiled)):
            return rule
    return Rule.SPEC if here is not MISSING else _absent_rule(field)


def keeping_rule_at(declared: Declared, path: Path) -> Rule:
    """The rule that keeps a field that `without_policy` would change; for a list element, that of a field in it."""
    rule = rule_at(declared, path)
    if rule not in (Rule.SPEC, Rule.PRUNED, Rule.DEFAULT):
        return rule
    compiled = declared.policy.compiled
    for step in path.steps:
        compiled = compiled.at(step)
    return compiled.strongest_listed_rule() or rule


def _is_unmanaged(compiled: CompiledPolicy, path: Path) -> bool:
    for step in path.steps:
        compiled = compiled.at(step)
    return compiled.unmanaged


def _keeping_rule(field: Field, compiled: CompiledPolicy) -> Rule | None:
    """The rule that protects a live value and everything below it from being pruned; None when it is pruned."""
    if compiled.rule is not Rule.PRUNED:
        return compiled.rule
    return next((rule for mark, rule in _KEEPING_MARKS.items() if mark in field.marks), None)


def _absent_rule(field: Field) -> Rule:
    return Rule.PRUNED if field.default is MISSING else Rule.DEFAULT


# --- The walk over spec and live state -------------------------------------------------------------------------------


def _value(spec: Json | Missing, live: Json | Missing, field: Field, compiled: CompiledPolicy) -> Json | Missing:
    if compiled.unmanaged or field.output_only:
        return live
    if spec is MISSING:
        return live if compiled.keeps else _absent(live, field, compiled)
    if spec is None:
        return _absent(live, field, compiled.released())
    return _specified(spec, live, field, compiled)


def _absent(live: Json | Missing, field: Field, compiled: CompiledPolicy) -> Json | Missing:
    there = live is not MISSING and live is not None
    if there and field.is_kept and (field.chosen or compiled.rule is not Rule.RELEASED):
        return live
    if there and (field.entries or field.elements):
        empty: Json = {} if field.entries else []
        rest = _specified(empty if field.default is MISSING else field.default, live, field, compiled)
        return rest if rest or rest is live else MISSING
    if field.default is not MISSING:
        return _specified(field.default, live, field, compiled)
    return MISSING if there else live


def _specified(spec: Json, live: Json | Missing, field: Field, compiled: CompiledPolicy) -> Json | Missing:
    if field.is_plain and not compiled.below:
        # No defaults and no annotated fields below: an equal value is final, and a scalar is replaced as a whole.
        if live is not MISSING and same(spec, live):
            return live
        if not (field.entries or field.elements):
            return spec
    if field.entries and isinstance(spec, dict):
        return _entries(spec, live if isinstance(live, dict) else {}, field.entries, compiled)
    if field.elements and is_list_of_objects(spec):
        return _elements(spec, live if isinstance(live, list | tuple) else (), field.elements, compiled)
    return live if live is not MISSING and same(spec, live) else spec


def _entries(spec: JsonObject, live: JsonObject, shape: ObjectShape | MapShape, compiled: CompiledPolicy) -> JsonObject:
    fields, rest, defaulted = _fields_of(shape)
    result: dict[str, Json] = {}
    unchanged = True
    for name, was in live.items():
        declared_value = spec.get(name, MISSING)
        if type(declared_value) is str and type(was) is str and declared_value == was:
            # The result under every rule, and by far the most common case.
            result[name] = was
            continue
        here = compiled.at(name) if compiled.below else compiled
        now = _value(declared_value, was, fields.get(name, rest), here)
        if now is not was:
            unchanged = False
        if now is not MISSING:
            result[name] = now
    for name in (*spec, *defaulted):
        if name not in live:
            now = _value(spec.get(name, MISSING), MISSING, fields.get(name, rest), compiled.at(name))
            if now is not MISSING:
                unchanged = False
                result[name] = now
    return live if unchanged else result


def _fields_of(shape: ObjectShape | MapShape) -> tuple[Mapping[str, Field], Field, tuple[str, ...]]:
    """The fields by name, the field for any other name, and the names of fields with a default."""
    return (shape.fields, UNTYPED, shape.defaulted) if isinstance(shape, ObjectShape) else ({}, shape.value, ())


def _elements(spec: Sequence[JsonObject], live: Sequence[Json], shape: KeyedList, compiled: CompiledPolicy) -> Json:
    """The spec's elements, each over the live one with its key, and live ones in which the policy lists a field."""
    names = shape.keys
    live_by_key: dict[ElementKey, Json] = {key_of(element, names): element for element in reversed(live)}
    result: list[Json] = []
    unchanged = True
    wanted = index_by_key(spec, names)
    if compiled.below:
        wanted |= {key: element for key, element in _listed(live, shape, compiled).items() if key not in wanted}
    for key, element in wanted.items():
        was = live_by_key.get(key, MISSING)
        now = _value(element, was, shape.item, compiled.at(selector(names, key)) if compiled.below else compiled)
        if now is not was:
            unchanged = False
        if now is not MISSING:
            result.append(now)
    return live if unchanged and len(result) == len(live) else result


def _listed(live: Sequence[Json], shape: KeyedList, compiled: CompiledPolicy) -> dict[ElementKey, JsonObject]:
    """Live elements with a field that the policy lists, cut to their keys as if the spec contained them."""
    found: dict[ElementKey, JsonObject] = {}
    for element in live:
        key = key_of(element, shape.keys)
        below = compiled.below.get(selector(shape.keys, key))
        if below is not None and isinstance(element, dict) and _holds_listed(element, below):
            found.setdefault(key, {name: element[name] for name in shape.keys if name in element})
    return found


def _holds_listed(live: Json | Missing, compiled: CompiledPolicy) -> bool:
    if live is MISSING:
        return False
    if compiled.unmanaged or compiled.rule is Rule.LISTED:
        return True
    return any(_holds_listed(value_below(live, step), below) for step, below in compiled.below.items())


# --- Structs from trees ----------------------------------------------------------------------------------------------

_Build: TypeAlias = Callable[[object], object]


@cache
def _builder(type_: type[msgspec.Struct]) -> _Build:
    """Builds a struct of the type; what is absent is not set, required or not."""
    names = {one.encode_name: one.name for one in struct_fields(type_) if one.encode_name != one.name}
    # Mostly none: the struct itself leaves out a field with this default.
    unset: dict[str, object] = {one.name: UNSET for one in struct_fields(type_) if one.default is not UNSET}
    nested: Sequence[tuple[str, _Build]] | None = None

    def build(tree: object) -> object:
        nonlocal nested
        # The check of the type is for speed: nearly all are of it.
        if type(tree) is not dict and not isinstance(tree, Mapping):
            return tree
        if nested is None:
            # Not before: a type may be recursive.
            nested = _nested_builders(type_)
        if not (nested or unset or names):
            return type_(**tree)
        found = {**unset, **({names.get(key, key): value for key, value in tree.items()} if names else tree)}
        for name, below in nested:
            if name in found:
                found[name] = below(found[name])
        return type_(**found)

    return build


def _nested_builders(type_: type[msgspec.Struct]) -> tuple[tuple[str, _Build], ...]:
    """The builders of the fields that hold structs, by name."""
    hints = get_type_hints(type_, include_extras=True)
    builders = ((one.name, _builder_of(hints[one.name])) for one in struct_fields(type_))
    return tuple((name, build) for name, build in builders if build is not None)


def _builder_of(hint: object) -> _Build | None:
    """Builds the value of a field: a struct, or a list of structs; None for any other value, which stays as it is."""
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return _builder(hint)
    inside = [_builder_of(one) for one in get_args(hint)]
    found = next((one for one in inside if one is not None), None)
    if found is None or get_origin(hint) is dict:
        return None
    if get_origin(hint) is list:
        return lambda value: list(map(found, value)) if isinstance(value, list | tuple) else value
    return found
