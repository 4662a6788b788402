"""Fields that a service fills in when a spec never had them: which ones an author took out, so that they are unset.

A field with Mark.FILLED keeps its live value as long as the spec has never had it: the service chose it. Once it was
declared, it is the author's; taken out of the spec, it counts as null.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from functools import cache, lru_cache
from typing import Any, Final

from setpoint.core.overlay import Declared
from setpoint.core.schema.shape import AtomicList, Field, KeyedList, Mark, ObjectShape, Shape
from setpoint.core.values.canonical import digest
from setpoint.core.values.paths import Path, key_of, selector

# Of a spec with more such fields, the outer ones are kept in mind: a status has a bound.
MAX_MARKS: Final = 400
_Tree = Mapping[str, Any]


@cache
def is_filled(shape: ObjectShape) -> bool:
    """Whether a field of the shape, at any depth, has Mark.FILLED."""
    return _is_filled(shape, set())


def _is_filled(shape: Shape, seen: set[int]) -> bool:
    if id(shape) in seen:
        return False
    seen.add(id(shape))
    match shape:
        case ObjectShape(fields=fields):
            return any(Mark.FILLED in one.marks or _is_filled(one.shape, seen) for one in fields.values())
        case AtomicList(item=inside):
            return _is_filled(inside, seen)
        case KeyedList(item=item):
            return _is_filled(item.shape, seen)
        case _:
            return False


@lru_cache(maxsize=4096)
def path_mark(path: Path) -> str:
    """A short digest of the path of a field."""
    return digest(str(path))[:8]


def filled_marks(declared: Declared) -> tuple[str, ...]:
    """The marks of the fields that the author declares, and that the service would fill in otherwise."""
    if not is_filled(declared.shape):
        return ()
    paths = sorted(_declared_paths(declared.tree, declared.shape, Path()), key=lambda path: len(path.steps))
    found = dict.fromkeys(path_mark(path) for path in paths)
    return tuple(sorted(list(found)[:MAX_MARKS]))


def _declared_paths(tree: _Tree, shape: ObjectShape, at: Path) -> Iterator[Path]:
    for name, field in shape.fields.items():
        if name in tree:
            if Mark.FILLED in field.marks and tree[name] is not None:
                yield at / name
            for below, inside, place in _objects_in(tree[name], field, at / name):
                yield from _declared_paths(below, inside, place)


def _objects_in(value: Any, field: Field, at: Path) -> Iterator[tuple[_Tree, ObjectShape, Path]]:  # noqa: ANN401 - JSON
    """The objects of a known shape that a value is, or consists of."""
    match field.shape:
        case ObjectShape() as shape if isinstance(value, Mapping):
            yield value, shape, at
        case AtomicList(item=ObjectShape() as shape) if isinstance(value, list | tuple):
            yield from ((one, shape, at / place) for place, one in enumerate(value) if isinstance(one, Mapping))
        case KeyedList(keys=keys, item=Field(shape=ObjectShape() as shape)) if isinstance(value, list | tuple):
            for one in value:
                if isinstance(one, Mapping):
                    yield one, shape, at / selector(keys, key_of(one, keys))
        case _:
            return


def with_removed(declared: Declared, marks: Collection[str]) -> Declared:
    """The declared tree with null for each field that it had when `marks` were made, and has no longer."""
    if not marks:
        return declared
    return replace(declared, tree=_with_removed(declared.tree, declared.shape, Path(), frozenset(marks)))


def _with_removed(tree: _Tree, shape: ObjectShape, at: Path, marks: frozenset[str]) -> dict[str, Any]:
    found = dict(tree)
    for name, field in shape.fields.items():
        if name not in tree:
            if Mark.FILLED in field.marks and path_mark(at / name) in marks:
                found[name] = None
        else:
            found[name] = _below(tree[name], field, at / name, marks)
    return found


def _below(value: Any, field: Field, at: Path, marks: frozenset[str]) -> Any:  # noqa: ANN401 - JSON
    if isinstance(value, Mapping) and isinstance(field.shape, ObjectShape):
        return _with_removed(value, field.shape, at, marks)
    if not isinstance(value, list | tuple):
        return value
    inside = {id(one): _with_removed(one, shape, place, marks) for one, shape, place in _objects_in(value, field, at)}
    return [inside.get(id(one), one) for one in value] if inside else value
