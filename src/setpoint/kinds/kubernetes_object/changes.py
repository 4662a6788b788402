"""What a write would change, told from the object before it and the object after it."""

from collections.abc import Iterable, Iterator

from setpoint.core.canonical import same
from setpoint.core.diff import FieldChange
from setpoint.core.hiding import hidden
from setpoint.core.kubernetes import text_at
from setpoint.core.paths import Path, Selector, get_at
from setpoint.core.values import MISSING, Json, Missing
from setpoint.kinds.kubernetes_object.conflicts import path_at
from setpoint.kinds.kubernetes_object.ownership import fields_of, kept, kept_fields, others_fields
from setpoint.kinds.kubernetes_object.projection import Fields, Projection, project, union


def born(made: Json) -> tuple[FieldChange, ...]:
    """Every field that is ours in a new object; the name of one that has none."""
    changes = _without_keys(tuple(FieldChange(path, MISSING, value) for path, value in kept(made).leaves.items()))
    name = Path(("metadata", "name"))
    return hidden(changes or (FieldChange(name, MISSING, text_at(made, *name_steps(name))),), made)


def name_steps(path: Path) -> tuple[str, ...]:
    """The steps of a path that has but names."""
    return tuple(step for step in path.steps if isinstance(step, str))


def between(live: Json, after: Json, manager: str) -> tuple[FieldChange, ...]:
    """The fields of ours, before or after, that differ; when none does, what `manager` would own from then on."""
    fields = union(kept_fields(live), kept_fields(after))
    was, now = project(live, fields, others_fields(live)), project(after, fields, others_fields(after))
    found = _without_keys((*_leaves(was, now), *_orders(was, now)))
    return hidden(found or tuple(_ownership(live, after, manager)), live)


def named(fields: Iterable[str], live: Json, wanted: Json) -> tuple[FieldChange, ...]:
    """The fields that a service names, which only it can compare."""
    paths = dict.fromkeys(path_at(field) for field in fields)
    return hidden(tuple(FieldChange(path, get_at(live, path), get_at(wanted, path)) for path in paths), live)


def _without_keys(changes: tuple[FieldChange, ...]) -> tuple[FieldChange, ...]:
    """The changes without those that tell but by which key an element goes of which more is told."""
    rest = [one for one in changes if not _is_key(one.path)]
    told = {one.path.steps[:depth] for one in rest for depth in range(len(one.path.steps))}
    return tuple(one for one in changes if not _is_key(one.path) or one.path.parent.steps not in told)


def _is_key(path: Path) -> bool:
    holder = path.steps[-2] if len(path.steps) > 1 else None
    return isinstance(holder, Selector) and any(name == path.steps[-1] for name, _ in holder.pairs)


def _leaves(was: Projection, now: Projection) -> Iterator[FieldChange]:
    for path in {**was.leaves, **now.leaves}:
        before, after = was.leaves.get(path, MISSING), now.leaves.get(path, MISSING)
        if isinstance(before, Missing) or isinstance(after, Missing) or not same(before, after):
            yield FieldChange(path, before, after)


def _orders(was: Projection, now: Projection) -> Iterator[FieldChange]:
    """Lists whose elements are the same, and stand in another order."""
    for path in was.orders.keys() & now.orders.keys():
        both = set(was.orders[path]) & set(now.orders[path])
        before, after = ([str(step) for step in side.orders[path] if step in both] for side in (was, now))
        if before != after:
            yield FieldChange(path, before, after)


def _ownership(live: Json, after: Json, manager: str) -> Iterator[FieldChange]:
    """Nothing changes but whose fields they are; then whoever changes one of them is noticed."""
    was, now = fields_of(live, manager), fields_of(after, manager)
    if now is not None and (was is None or not same(was, now)):
        place = Path(("metadata", "managedFields", Selector((("manager", manager),))))
        yield FieldChange(place, _told(was, live), _told(now, after))


def _told(fields: Fields | None, of: Json) -> Json | Missing:
    if fields is None:
        return MISSING
    count = len(project(of, fields).leaves)
    return "1 field" if count == 1 else f"{count} fields"
