"""The shape of a kind's spec, read off its msgspec types: what each field is, and who may change it.

For example:

    class Flag(Struct):
        name: str
        value: str

    class Settings(Struct):
        tier: str
        region: Annotated[str | UnsetType, Mark.IMMUTABLE] = UNSET
        diskType: Annotated[str | UnsetType, Default("PD_SSD")] = UNSET
        databaseFlags: Annotated[list[Flag] | UnsetType, Keyed("name")] = UNSET
        rootPassword: Annotated[str | UnsetType, Mark.WRITE_ONLY] = UNSET
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Final, TypeAlias, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import UnsetType
from msgspec.structs import fields as struct_fields

from setpoint.core.values.json_types import MISSING, Json, Missing
from setpoint.core.values.paths import Path, PathStep, Selector, nearest
from setpoint.errors import UnknownField


class Mark(Enum):
    """What a field's type says about it beyond its JSON form."""

    WRITE_ONLY = "sent, never read back"
    IMMUTABLE = "fixed when the object is created"
    PROTECTED = "given up only by an explicit value in the spec"
    CHOSEN = "chosen by the service when nobody says"
    OUTPUT_ONLY = "set by the service"
    ASKED = "asked for once: the service has the last word"


@dataclass(frozen=True, slots=True)
class Default:
    """The documented value of a field that nobody sets; absence in the live object means this value too."""

    value: Json


@dataclass(frozen=True, slots=True, init=False)
class Keyed:
    """A list whose elements are told apart by these fields instead of their position."""

    names: tuple[str, ...]

    def __init__(self, *names: str) -> None:
        object.__setattr__(self, "names", names)


@dataclass(frozen=True, slots=True)
class Check:
    """What holds for every value of a type, in the language of a cluster's own checks (CEL, with the value as `self`).

    A type lists them as `__checks__`. They only bring forward what the kind's `check` says in Python: a cluster then
    refuses at once what would be refused later. `field`: the one below the value that the message is about.
    """

    cel: str
    message: str
    field: str = ""


@dataclass(frozen=True, slots=True)
class Leaf:
    """A scalar, or anything else that is replaced whole."""


@dataclass(frozen=True, slots=True)
class AtomicList:
    """A list that is replaced whole."""

    item: "Shape"


@dataclass(frozen=True, slots=True)
class MapShape:
    """An object whose keys are the author's: labels."""

    value: "Field"


@dataclass(frozen=True, slots=True)
class KeyedList:
    """A list whose elements are matched by `keys`."""

    keys: tuple[str, ...]
    item: "Field"


@dataclass(frozen=True, slots=True, eq=False)
class ObjectShape:
    """An object with the fields its type names. `defaulted` are those with a default; plain: none has, however deep.

    `is_open`: nothing in it is write-only, however deep. `is_unit`: it is one value, and nobody owns a part of it.
    """

    fields: Mapping[str, "Field"]
    defaulted: tuple[str, ...] = ()
    is_plain: bool = False
    is_open: bool = False
    is_atomic: bool = False


Shape: TypeAlias = Leaf | AtomicList | MapShape | KeyedList | ObjectShape


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """A place in a shape: what stands there, its marks, its default."""

    shape: Shape
    marks: frozenset[Mark] = frozenset()
    default: Json | Missing = MISSING
    # The same again in the form the overlay asks for at every field.
    write_only: bool = field(init=False)
    output_only: bool = field(init=False)
    immutable: bool = field(init=False)
    held: bool = field(init=False)
    chosen: bool = field(init=False)
    asked: bool = field(init=False)
    is_plain: bool = field(init=False)
    is_open: bool = field(init=False)
    entries: "ObjectShape | MapShape | None" = field(init=False)
    elements: "KeyedList | None" = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "write_only", Mark.WRITE_ONLY in self.marks)
        object.__setattr__(self, "output_only", Mark.OUTPUT_ONLY in self.marks)
        object.__setattr__(self, "immutable", Mark.IMMUTABLE in self.marks)
        object.__setattr__(self, "held", not self.marks.isdisjoint((Mark.IMMUTABLE, Mark.PROTECTED, Mark.CHOSEN)))
        object.__setattr__(self, "chosen", Mark.CHOSEN in self.marks)
        object.__setattr__(self, "asked", Mark.ASKED in self.marks)
        object.__setattr__(self, "is_plain", self.default is MISSING and _is_plain(self.shape))
        object.__setattr__(self, "is_open", not self.write_only and _is_open(self.shape))
        object.__setattr__(self, "entries", self.shape if isinstance(self.shape, ObjectShape | MapShape) else None)
        object.__setattr__(self, "elements", self.shape if isinstance(self.shape, KeyedList) else None)


def _is_plain(shape: Shape) -> bool:
    """Whether nothing in `shape` has a default: what the author wrote is then all there can be."""
    match shape:
        case ObjectShape(is_plain=is_plain):
            return is_plain
        case MapShape(value=inside) | KeyedList(item=inside):
            return inside.is_plain
        case _:
            return True


def _is_open(shape: Shape) -> bool:
    """Whether nothing in `shape` is write-only: all of it may be seen."""
    match shape:
        case ObjectShape(is_open=is_open):
            return is_open
        case MapShape(value=inside) | KeyedList(item=inside):
            return inside.is_open
        case AtomicList(item=item):
            return _is_open(item)
        case _:
            return True


LEAF: Final = Leaf()
UNTYPED: Final = Field(LEAF)


@cache
def shape_of(type_: type[msgspec.Struct]) -> ObjectShape:
    """The shape of a struct type; TypeError when a mark on it makes no sense."""
    return _object(type_, {})


def object_shape(fields: Mapping[str, Field]) -> ObjectShape:
    """An object shape made of `fields`."""
    defaulted = tuple(name for name, one in fields.items() if one.default is not MISSING)
    is_plain, is_open = (all(getattr(one, name) for one in fields.values()) for name in ("is_plain", "is_open"))
    return ObjectShape(fields, defaulted, is_plain, is_open)


def with_defaults(shape: ObjectShape, defaults: Mapping[str, Json]) -> ObjectShape:
    """`shape` with other defaults at these paths, for those that depend on the rest of the spec."""
    for text, value in defaults.items():
        path = Path.parse(text)
        shape = _with_field(shape, path, replace(field_at(shape, path), default=value))
    return shape


def with_marks(shape: ObjectShape, marks: Mapping[str, Mark]) -> ObjectShape:
    """`shape` with one more mark at these paths, for what depends on the live object."""
    for text, mark in marks.items():
        path = Path.parse(text)
        place = field_at(shape, path)
        shape = _with_field(shape, path, replace(place, marks=place.marks | {mark}))
    return shape


def field_at(shape: ObjectShape, path: Path) -> Field:
    """The field that `path` names; UnknownField names the nearest real ones."""
    here = Field(shape)
    for step in path.steps:
        below = field_below(here, step)
        if below is None:
            raise _no_such_field(shape, path)
        here = below
    return here


def field_below(holder: Field, step: PathStep) -> Field | None:
    """The field one step into `holder`, or None where its type has no such thing."""
    match holder.shape, step:
        case ObjectShape(fields=fields), str():
            return fields.get(step)
        case MapShape(value=value), str():
            return value
        case KeyedList(keys=keys, item=item), Selector(pairs=pairs):
            return item if {name for name, _ in pairs} == set(keys) else None
        case AtomicList(item=item), int():
            return Field(item)
        case _:
            return None


def atomic_ancestor(shape: ObjectShape, path: Path) -> Path:
    """The path of the unit that `path` leads into; `path` itself when it leads into none."""
    here: Field | None = Field(shape)
    for depth, step in enumerate(path.steps):
        if (
            here is None
            or isinstance(here.shape, AtomicList)
            or (isinstance(here.shape, ObjectShape) and here.shape.is_atomic)
        ):
            return Path(path.steps[:depth])
        here = field_below(here, step)
    return path


def paths_of(shape: ObjectShape) -> tuple[str, ...]:
    """Every path the type names, `[name=…]` and `[…]` standing for elements; a type inside itself is not followed."""
    return tuple(_paths(Field(shape), "", ()))


# --- From types ------------------------------------------------------------------------------------------------------


def _object(type_: type[msgspec.Struct], known: dict[type, ObjectShape]) -> ObjectShape:
    if type_ in known:
        return known[type_]
    fields: dict[str, Field] = {}
    # On record before its fields are read: a type may hold itself.
    known[type_] = shape = ObjectShape(fields, is_atomic=getattr(type_, "__unit__", False))
    hints = get_type_hints(type_, include_extras=True)
    for one in struct_fields(type_):
        fields[one.encode_name] = _field(hints[one.name], known)
    finished = object_shape(fields)
    object.__setattr__(shape, "defaulted", finished.defaulted)
    object.__setattr__(shape, "is_plain", finished.is_plain)
    object.__setattr__(shape, "is_open", finished.is_open)
    return shape


def _field(hint: object, known: dict[type, ObjectShape]) -> Field:
    plain, notes = _unwrap(hint)
    marks = frozenset(note for note in notes if isinstance(note, Mark))
    default = next((note.value for note in notes if isinstance(note, Default)), MISSING)
    keyed = next((note for note in notes if isinstance(note, Keyed)), None)
    shape = _shape(plain, known)
    return Field(shape if keyed is None else _keyed(shape, keyed), marks, default)


def _unwrap(hint: object) -> tuple[object, tuple[object, ...]]:
    """The type behind Annotated and `| None | UnsetType`, and all notes on the way; NoneType for several types."""
    if get_origin(hint) is Annotated:
        inner, *notes = get_args(hint)
        plain, deeper = _unwrap(inner)
        return plain, (*notes, *deeper)
    if get_origin(hint) in (Union, UnionType):
        members = [_unwrap(arg) for arg in get_args(hint) if arg not in (NoneType, UnsetType)]
        notes = [note for _, deeper in members for note in deeper]
        return (members[0][0] if len(members) == 1 else NoneType), tuple(notes)
    return hint, ()


def _shape(plain: object, known: dict[type, ObjectShape]) -> Shape:
    if isinstance(plain, type) and issubclass(plain, msgspec.Struct):
        return _object(plain, known)
    match get_origin(plain), get_args(plain):
        case (origin, (item,)) if origin is list:
            return AtomicList(_field(item, known).shape)
        case (origin, (_, value)) if origin is dict:
            return MapShape(_field(value, known))
        case _:
            return LEAF


def _keyed(shape: Shape, keyed: Keyed) -> KeyedList:
    match shape:
        case AtomicList(item=ObjectShape(fields=fields) as item) if keyed.names and set(keyed.names) <= set(fields):
            return KeyedList(keyed.names, Field(item))
        case _:
            raise TypeError(f"{keyed} is for lists of structs that have these fields")


def _with_field(holder: ObjectShape, path: Path, new: Field) -> ObjectShape:
    """`holder` with another field at `path`; what is on the way there is made anew, the rest is shared."""
    name, rest = path.steps[0], Path(path.steps[1:])
    assert isinstance(name, str)
    below = holder.fields[name]
    if rest and not isinstance(below.shape, ObjectShape):
        raise UnknownField(f"{path} cannot be changed: {name} is not an object")
    if isinstance(below.shape, ObjectShape) and rest:
        new = replace(below, shape=_with_field(below.shape, rest, new))
    return object_shape({**holder.fields, name: new})


# --- Names -----------------------------------------------------------------------------------------------------------


def _no_such_field(shape: ObjectShape, path: Path) -> UnknownField:
    real = paths_of(shape)
    last = str(Path(path.steps[-1:])).lower()
    namesakes = [text for text in real if text.lower().rpartition(".")[2] == last]
    near = tuple(dict.fromkeys([*namesakes, *nearest(str(path), real)]))[:3]
    hint = f"; nearest: {', '.join(near)}" if near else ""
    return UnknownField(f"no field {path}{hint}", near)


def _paths(holder: Field, prefix: str, inside: tuple[Shape, ...]) -> Iterator[str]:
    shape = holder.shape
    if shape in inside:
        return
    for step, below in _places(shape):
        text = f"{prefix}.{step}".lstrip(".") if not step.startswith("[") else f"{prefix}{step}"
        yield text
        yield from _paths(below, text, (*inside, shape))


def _places(shape: Shape) -> Iterator[tuple[str, Field]]:
    match shape:
        case ObjectShape(fields=fields):
            yield from fields.items()
        case KeyedList(keys=keys, item=item):
            yield f"[{','.join(f'{key}=…' for key in keys)}]", item
        case MapShape(value=value):
            yield "[…]", value
        case AtomicList(item=item):
            yield "[…]", Field(item)
        case _:
            return
