"""JSON patches (RFC 6902) and merge patches (RFC 7386) of JSON trees, and the JSON patch from one tree to another."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from setpoint.core.values.canonical import same
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import MISSING, Json, JsonObject, Missing
from setpoint.core.values.paths import Path, get_at, nearest, remove_at, set_at
from setpoint.errors import ManifestInvalid

OPERATIONS: Final = ("add", "remove", "replace", "move", "copy", "test")
_WITH_VALUE: Final = frozenset({"add", "replace", "test"})
_WITH_SOURCE: Final = frozenset({"move", "copy"})
# The steps of a JSON pointer.
Pointer: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class JsonPatchOperation:
    """One operation of a JSON patch. `source` is its member `from`."""

    op: str
    pointer: Pointer
    value: Json | Missing = MISSING
    source: Pointer | None = None
    position: int = 0

    def __str__(self) -> str:
        return f"operation {self.position} ({self.op} {pointer_text(self.pointer)})"


@dataclass(frozen=True, slots=True)
class PatchResult:
    """A patched tree, and the paths that the patch sets or removes there: none is below another."""

    tree: Json
    paths: tuple[Path, ...]


def pointer_text(pointer: Pointer) -> str:
    """A JSON pointer as it is written: `/metadata/labels/a~1b`."""
    return "".join(f"/{step.replace('~', '~0').replace('/', '~1')}" for step in pointer)


def pointer_steps(text: str) -> Pointer:
    """The steps of a JSON pointer, from its text."""
    return tuple(step.replace("~1", "/").replace("~0", "~") for step in text.removeprefix("/").split("/"))


# --- Parsing ---------------------------------------------------------------------------------------------------------


def parse_json_patch(data: Json) -> tuple[JsonPatchOperation, ...]:
    """The operations of a JSON patch; ManifestInvalid says which one is malformed."""
    if not isinstance(data, list | tuple):
        raise ManifestInvalid("a JSON patch is a list of operations: write [{op = …, path = …, value = …}]")
    return tuple(_parse_operation(one, position) for position, one in enumerate(data, start=1))


def _parse_operation(data: Json, position: int) -> JsonPatchOperation:
    if not isinstance(data, Mapping):
        raise ManifestInvalid(f"operation {position} is no object: write op, path and value")
    op = data.get("op")
    if op not in OPERATIONS:
        near = nearest(str(op), OPERATIONS)
        hint = f"did you mean {near[0]}?" if near else f"there is {', '.join(OPERATIONS)}"
        raise ManifestInvalid(f"operation {position}: op is {op!r}; {hint}")
    needed = "value" if op in _WITH_VALUE else "from" if op in _WITH_SOURCE else "path"
    if needed not in data:
        raise ManifestInvalid(f"operation {position} ({op}) has no {needed}: write it")
    known = {"op", "path", "value", "from"}
    unknown = [name for name in data if name not in known]
    if unknown:
        raise ManifestInvalid(f"operation {position} ({op}): there is no member {unknown[0]}; leave it out")
    pointer = _parse_pointer(data.get("path"), "path", position)
    source = _parse_pointer(data.get("from"), "from", position) if op in _WITH_SOURCE else None
    value: Json | Missing = data["value"] if op in _WITH_VALUE else MISSING
    return JsonPatchOperation(str(op), pointer, value, source, position)


def _parse_pointer(text: Json, member: str, position: int) -> Pointer:
    if not isinstance(text, str) or not text.startswith("/"):
        raise ManifestInvalid(
            f"operation {position}: {member} is {text!r}: write a JSON pointer such as /spec/replicas"
        )
    return pointer_steps(text)


# --- Applying --------------------------------------------------------------------------------------------------------


def apply_json_patch(tree: Json, operations: Sequence[JsonPatchOperation], *, is_tested: bool = True) -> PatchResult:
    """The result of a JSON patch; ManifestInvalid for an operation that cannot be done. `test` only if `is_tested`."""
    touched: list[Path] = []
    for one in operations:
        if one.op != "test":
            tree = _VERBS[one.op](tree, one, touched)
        elif is_tested:
            found = _value(tree, one.pointer, one)
            if not same(found, one.value if not isinstance(one.value, Missing) else None):
                raise ManifestInvalid(f"{one}: the value there is another one; nothing is patched")
    return PatchResult(tree, _topmost(touched))


def _add(tree: Json, one: JsonPatchOperation, touched: list[Path]) -> Json:
    assert not isinstance(one.value, Missing)
    return _added(tree, one, one.value, touched)


def _added(tree: Json, one: JsonPatchOperation, value: Json, touched: list[Path]) -> Json:
    parent = _path(tree, one.pointer[:-1], one)
    holder, last = get_at(tree, parent), one.pointer[-1]
    if isinstance(holder, Mapping):
        touched.append(parent / last)
        return set_at(tree, parent / last, value)
    if not isinstance(holder, list | tuple):
        raise _not_there(one, one.pointer)
    index = len(holder) if last == "-" else _index(last, len(holder), one)
    touched.append(parent)
    return set_at(tree, parent, [*holder[:index], value, *holder[index:]])


def _remove(tree: Json, one: JsonPatchOperation, touched: list[Path]) -> Json:
    return _removed(tree, one.pointer, one, touched)


def _removed(tree: Json, pointer: Pointer, one: JsonPatchOperation, touched: list[Path]) -> Json:
    path = _path(tree, pointer, one)
    touched.append(path.parent if isinstance(path.steps[-1], int) else path)
    return remove_at(tree, path)


def _replace(tree: Json, one: JsonPatchOperation, touched: list[Path]) -> Json:
    assert not isinstance(one.value, Missing)
    path = _path(tree, one.pointer, one)
    touched.append(path)
    return set_at(tree, path, one.value)


def _copy(tree: Json, one: JsonPatchOperation, touched: list[Path]) -> Json:
    assert one.source is not None
    return _added(tree, one, _value(tree, one.source, one), touched)


def _move(tree: Json, one: JsonPatchOperation, touched: list[Path]) -> Json:
    assert one.source is not None
    if one.pointer[: len(one.source)] == one.source and one.pointer != one.source:
        raise ManifestInvalid(f"{one}: a value cannot be moved into itself")
    value = _value(tree, one.source, one)
    return _added(_removed(tree, one.source, one, touched), one, value, touched)


_VERBS: Final[Mapping[str, Callable[[Json, JsonPatchOperation, list[Path]], Json]]] = {
    "add": _add,
    "remove": _remove,
    "replace": _replace,
    "move": _move,
    "copy": _copy,
}


def _path(tree: Json, pointer: Pointer, one: JsonPatchOperation) -> Path:
    """The path of an existing value."""
    path = Path()
    for step in pointer:
        holder = get_at(tree, path)
        if isinstance(holder, list | tuple):
            path /= _index(step, len(holder) - 1, one)
        elif isinstance(holder, Mapping) and step in holder:
            path /= step
        else:
            raise _not_there(one, pointer)
    return path


def _value(tree: Json, pointer: Pointer, one: JsonPatchOperation) -> Json:
    found = get_at(tree, _path(tree, pointer, one))
    assert not isinstance(found, Missing)
    return found


def _index(step: str, last: int, one: JsonPatchOperation) -> int:
    if step.isdecimal() and (step == "0" or not step.startswith("0")) and int(step) <= last:
        return int(step)
    raise ManifestInvalid(f"{one}: {step!r} is no position in a list of {last + 1}")


def _not_there(one: JsonPatchOperation, pointer: Pointer) -> ManifestInvalid:
    return ManifestInvalid(f"{one}: there is nothing at {pointer_text(pointer)}; add makes it below what is there")


def apply_merge_patch(tree: Json, patch: JsonObject) -> PatchResult:
    """The result of a merge patch. A null removes; a list replaces the whole list."""
    return PatchResult(_merged(tree, patch), _topmost(list(_merge_leaves(patch, tree, Path()))))


def _merged(tree: Json | Missing, patch: Json) -> Json:
    if not isinstance(patch, Mapping):
        return patch
    merged = dict(tree) if isinstance(tree, Mapping) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = _merged(merged.get(name, MISSING), value)
    return merged


def _merge_leaves(patch: JsonObject, tree: Json | Missing, at: Path) -> Iterator[Path]:
    for name, value in patch.items():
        below = tree.get(name, MISSING) if isinstance(tree, Mapping) else MISSING
        if isinstance(value, Mapping) and value and isinstance(below, Mapping | Missing):
            yield from _merge_leaves(value, below, at / name)
        elif not (isinstance(value, Mapping) and isinstance(below, Mapping)):
            yield at / name


def _topmost(paths: Sequence[Path]) -> tuple[Path, ...]:
    """Without the paths that lie below another one."""
    found = dict.fromkeys(paths)
    return tuple(one for one in found if not any(other != one and other.covers(one) for other in found))


# --- From one tree to another ----------------------------------------------------------------------------------------


def json_patch_between(before: Json, after: Json) -> list[Json]:
    """The operations that make `after` of `before`. A list that differs is replaced as a whole."""
    return list(_operations(before, after, ()))


def _operations(before: Json, after: Json, at: Pointer) -> Iterator[Json]:
    if not isinstance(before, Mapping) or not isinstance(after, Mapping):
        if not same(before, after):
            yield {"op": "replace", "path": pointer_text(at), "value": after}
        return
    for name in before:
        if name not in after:
            yield {"op": "remove", "path": pointer_text((*at, name))}
    for name, value in after.items():
        if name in before:
            yield from _operations(before[name], value, (*at, name))
        else:
            yield {"op": "add", "path": pointer_text((*at, name)), "value": value}
