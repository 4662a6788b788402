"""How little a spec has to say: live values without defaults, without what a service reports, without secrets."""

from collections.abc import Iterator, Mapping
from typing import Final

from setpoint.core.schema.shape import Field, KeyedList, Mark, ObjectShape
from setpoint.core.values.canonical import same
from setpoint.core.values.json_types import MISSING, Json, JsonObject, Missing
from setpoint.core.values.paths import Path, get_at, remove_at, set_at

# Members of a reference: the two ways to write one.
EXTERNAL: Final = "external"
_LEFT_OUT: Final = (Mark.OUTPUT_ONLY, Mark.WRITE_ONLY)
# What services fill in where nothing was asked for; of a field without such a mark they mean something.
_NOTHING: Final[tuple[Json, ...]] = ("", 0, False)

# Words of enumerations that choose nothing.
_NO_CHOICE: Final[tuple[Json, ...]] = ("NONE", "DEFAULT")


def minimal(value: JsonObject, shape: ObjectShape) -> dict[str, Json]:
    """The fields of a live object that a spec has to have so that a new object is made the same."""
    return dict(_kept(value, shape, is_minimal=True))


def whole(value: JsonObject, shape: ObjectShape) -> dict[str, Json]:
    """All fields of a live object that a spec can have, defaults too."""
    return dict(_kept(value, shape, is_minimal=False))


def _kept(value: JsonObject, shape: ObjectShape, *, is_minimal: bool) -> Iterator[tuple[str, Json]]:
    for name, one in value.items():
        field = shape.fields.get(name)
        if field is None or one is None or not field.marks.isdisjoint(_LEFT_OUT):
            continue
        kept = _value(one, field, is_minimal=is_minimal)
        if not isinstance(kept, Missing):
            yield name, kept


def _value(value: Json, field: Field, *, is_minimal: bool) -> Json | Missing:
    if is_minimal and _says_nothing(value, field):
        return MISSING
    match field.shape, value:
        case ObjectShape() as shape, dict():
            kept = dict(_kept(value, shape, is_minimal=is_minimal and not shape.is_atomic))
            return kept if kept or not (value and is_minimal) else MISSING
        case KeyedList(item=Field(shape=ObjectShape() as shape), keys=keys), list():
            return [_element(one, shape, keys, is_minimal=is_minimal) for one in value]
        case _:
            return value


def _element(value: Json, shape: ObjectShape, keys: tuple[str, ...], *, is_minimal: bool) -> Json:
    if not isinstance(value, dict):
        return value
    named = {name: value[name] for name in keys if name in value}
    return {**dict(_kept(value, shape, is_minimal=is_minimal)), **named}


def _says_nothing(value: Json, field: Field) -> bool:
    """Whether a spec without the field means the same."""
    if not isinstance(field.default, Missing):
        return same(value, field.default)
    if value in ({}, []):
        return True
    if Mark.CHOSEN in field.marks and same(value, ""):
        return True
    return Mark.FILLED in field.marks and any(same(value, one) for one in _NOTHING)


def by_documentation(spec: Json, live: JsonObject, documented: Mapping[Path, Json]) -> Json:
    """The spec where defaults are documented, though not known to be those of the service.

    A value that says nothing, such as false or NONE, is left out where that is the documented default, and written
    where the default is another one. Any other value stays: documentation may be wrong about what a new object gets.
    """
    for path, default in documented.items():
        value = get_at(live, path)
        if isinstance(value, Missing) or not any(same(value, one) for one in (*_NOTHING, *_NO_CHOICE)):
            continue
        spec = _without(spec, path) if same(value, default) else set_at(spec, path, value)
    return spec


def _without(spec: Json, path: Path) -> Json:
    """The spec without a field, and without objects that have no other."""
    if isinstance(get_at(spec, path), Missing):
        return spec
    spec = remove_at(spec, path)
    return _without(spec, path.parent) if path.parent and get_at(spec, path.parent) == {} else spec


def secret_paths(shape: ObjectShape) -> Iterator[Path]:
    """The fields of a spec that are sent and never told, outside of lists."""
    for name, field in shape.fields.items():
        if Mark.WRITE_ONLY in field.marks:
            yield Path((name,))
        elif isinstance(field.shape, ObjectShape) and field.shape is not shape and not field.shape.is_open:
            yield from (Path((name, *below.steps)) for below in secret_paths(field.shape))


def external_references(value: Json, at: Path) -> Iterator[tuple[Path, str]]:
    """The references in a spec that name an object of the service, each with that name."""
    if isinstance(value, Mapping):
        text = value.get(EXTERNAL)
        if isinstance(text, str) and set(value) <= {EXTERNAL, "kind"}:
            yield at, text
            return
        for name, below in value.items():
            yield from external_references(below, at / name)
    elif isinstance(value, list):
        for place, below in enumerate(value):
            yield from external_references(below, at / place)
