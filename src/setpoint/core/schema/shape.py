"""The shape of a kind's spec, derived from its msgspec types: the structure, marks and default of each field.

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

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace
from enum import Enum
from functools import cache, cached_property
from types import NoneType, UnionType
from typing import Annotated, Final, TypeAlias, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import UnsetType
from msgspec.structs import fields as struct_fields

from setpoint.core.schema.checks import Check
from setpoint.core.schema.constraints import Constraint
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import MISSING, Json, Missing
from setpoint.core.values.paths import Path, PathStep, Selector, nearest
from setpoint.errors import UnknownField


class Mark(Enum):
    """What the annotation of a field says about it beyond its JSON type."""

    WRITE_ONLY = "sent, never read back"
    IMMUTABLE = "fixed when the object is created"
    PROTECTED = "given up only by an explicit value in the spec"
    CHOSEN = "chosen by the service when the spec leaves it out"
    FILLED = "filled in by the service when the spec never had it; unset when the author takes it out"
    OUTPUT_ONLY = "set by the service"
    ASKED = "asked for once: the service has the last word"
    JSON_TEXT = "JSON as text, with members that a path may name"


# The marks of fields that keep their live value when the spec leaves them out.
_KEEPING: Final = (Mark.IMMUTABLE, Mark.PROTECTED, Mark.CHOSEN, Mark.FILLED)


@dataclass(frozen=True, slots=True)
class Default:
    """The documented default of a field; absence in the live object means this value, too."""

    value: Json


@dataclass(frozen=True, slots=True, init=False)
class Keyed:
    """A list whose elements are identified by these fields instead of their position."""

    names: tuple[str, ...]

    def __init__(self, *names: str) -> None:
        object.__setattr__(self, "names", names)


@dataclass(frozen=True, slots=True)
class Leaf:
    """A scalar, or any other value that is replaced as a whole."""


@dataclass(frozen=True, slots=True)
class AtomicList:
    """A list that is replaced as a whole; `constraints` are those on each of its items."""

    item: "Shape"
    constraints: tuple[Constraint, ...] = ()


@dataclass(frozen=True, slots=True)
class MapShape:
    """An object whose keys the author chooses, such as labels; `constraints` are those on each key."""

    value: "Field"
    constraints: tuple[Constraint, ...] = ()


@dataclass(frozen=True, slots=True)
class KeyedList:
    """A list whose elements are matched by `keys`."""

    keys: tuple[str, ...]
    item: "Field"


@dataclass(frozen=True, eq=False)
class ObjectShape:
    """An object with the fields that its type names; `defaulted` are the names of those with a default.

    `is_plain`: no field at any depth has a default. `is_open`: no field at any depth is write-only.
    `keeps_none`: no field at any depth has a mark that keeps its live value.
    `is_atomic`: field policies apply to the object as a whole, never to one of its fields. `checks`: its rules.
    """

    fields: Mapping[str, "Field"]
    defaulted: tuple[str, ...] = ()
    is_plain: bool = False
    is_open: bool = False
    keeps_none: bool = False
    is_atomic: bool = False
    checks: tuple[Check, ...] = ()

    @cached_property
    def as_field(self) -> "Field":
        """The field of a whole tree of this shape."""
        return Field(self)


Shape: TypeAlias = Leaf | AtomicList | MapShape | KeyedList | ObjectShape


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """A field of a shape: the shape of its value, its marks, its default and the constraints on its value."""

    shape: Shape
    marks: frozenset[Mark] = frozenset()
    default: Json | Missing = MISSING
    constraints: tuple[Constraint, ...] = ()
    # Derived from the above, since the overlay reads them for every field.
    write_only: bool = field(init=False)
    output_only: bool = field(init=False)
    immutable: bool = field(init=False)
    is_kept: bool = field(init=False)
    chosen: bool = field(init=False)
    asked: bool = field(init=False)
    is_plain: bool = field(init=False)
    is_open: bool = field(init=False)
    keeps_none: bool = field(init=False)
    entries: "ObjectShape | MapShape | None" = field(init=False)
    elements: "KeyedList | None" = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "write_only", Mark.WRITE_ONLY in self.marks)
        object.__setattr__(self, "output_only", Mark.OUTPUT_ONLY in self.marks)
        object.__setattr__(self, "immutable", Mark.IMMUTABLE in self.marks)
        object.__setattr__(self, "is_kept", not self.marks.isdisjoint(_KEEPING))
        object.__setattr__(self, "chosen", Mark.CHOSEN in self.marks)
        object.__setattr__(self, "asked", Mark.ASKED in self.marks)
        object.__setattr__(self, "is_plain", self.default is MISSING and _is_plain(self.shape))
        object.__setattr__(self, "is_open", not self.write_only and _is_open(self.shape))
        object.__setattr__(self, "keeps_none", not self.is_kept and _keeps_none(self.shape))
        object.__setattr__(self, "entries", self.shape if isinstance(self.shape, ObjectShape | MapShape) else None)
        object.__setattr__(self, "elements", self.shape if isinstance(self.shape, KeyedList) else None)


def _holds_inside(shape: Shape, holds: Callable[["ObjectShape | Field"], bool]) -> bool:
    """Whether it holds of an object, of the entries of a map, of the elements of a keyed list; there are no others."""
    match shape:
        case ObjectShape():
            return holds(shape)
        case MapShape(value=inside) | KeyedList(item=inside):
            return holds(inside)
        case _:
            return True


def _is_plain(shape: Shape) -> bool:
    """Whether no field in `shape` has a default: the overlay then has nothing to fill in."""
    return _holds_inside(shape, lambda one: one.is_plain)


def _is_open(shape: Shape) -> bool:
    """Whether no field in `shape` is write-only: nothing has to be redacted."""
    return _is_open(shape.item) if isinstance(shape, AtomicList) else _holds_inside(shape, lambda one: one.is_open)


def _keeps_none(shape: Shape) -> bool:
    """Whether no field in `shape` has a mark that keeps its live value; an atomic list is one unit."""
    return _holds_inside(shape, lambda one: one.keeps_none)


LEAF: Final = Leaf()
UNTYPED: Final = Field(LEAF)


@cache
def shape_of(type_: type[msgspec.Struct]) -> ObjectShape:
    """The shape of a struct type; TypeError when an annotation does not fit its field."""
    return _object(type_, {})


def object_shape(fields: Mapping[str, Field]) -> ObjectShape:
    """An object shape made of `fields`."""
    defaulted = tuple(name for name, one in fields.items() if one.default is not MISSING)
    names = ("is_plain", "is_open", "keeps_none")
    is_plain, is_open, keeps_none = (all(getattr(one, name) for one in fields.values()) for name in names)
    return ObjectShape(fields, defaulted, is_plain, is_open, keeps_none)


def with_defaults(shape: ObjectShape, defaults: Mapping[str, Json]) -> ObjectShape:
    """`shape` with other defaults at these paths, for defaults that depend on the rest of the spec."""
    for text, value in defaults.items():
        path = Path.parse(text)
        shape = _with_field(shape, path, replace(field_at(shape, path), default=value))
    return shape


def with_marks(shape: ObjectShape, marks: Mapping[str, Mark]) -> ObjectShape:
    """`shape` with one more mark at these paths, for marks that depend on the live object."""
    for text, mark in marks.items():
        path = Path.parse(text)
        found = field_at(shape, path)
        shape = _with_field(shape, path, replace(found, marks=found.marks | {mark}))
    return shape


def field_at(shape: ObjectShape, path: Path) -> Field:
    """The field at `path`; UnknownField names the nearest existing paths."""
    here = Field(shape)
    for step in path.steps:
        below = field_below(here, step)
        if below is None:
            raise _no_such_field(shape, path)
        here = below
    return here


def field_below(parent: Field, step: PathStep) -> Field | None:
    """The field one step below `parent`, or None where its type has no such field."""
    match parent.shape, step:
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


def item_field(parent: Field) -> Field:
    """The field of each item of a list or map."""
    match parent.shape:
        case KeyedList(item=item):
            return item
        case MapShape(value=value):
            return value
        case AtomicList(item=shape, constraints=constraints):
            return Field(shape, constraints=constraints)
        case _:
            raise TypeError(f"{parent.shape} has no items")


def atomic_ancestor(shape: ObjectShape, path: Path) -> Path:
    """The path of the atomic list or object that contains `path`; `path` itself when there is none."""
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
    """Every path of the type, with `[name=…]` and `[…]` for elements; recursive types are not expanded."""
    return tuple(_paths(Field(shape), "", ()))


# --- Shapes from types -----------------------------------------------------------------------------------------------


def _object(type_: type[msgspec.Struct], known: dict[type, ObjectShape]) -> ObjectShape:
    if type_ in known:
        return known[type_]
    fields: dict[str, Field] = {}
    # Known before its fields are read: a type may be recursive.
    known[type_] = shape = ObjectShape(
        fields, is_atomic=getattr(type_, "__unit__", False), checks=getattr(type_, "__checks__", ())
    )
    hints = get_type_hints(type_, include_extras=True)
    for one in struct_fields(type_):
        fields[one.encode_name] = _field(hints[one.name], known)
    finished = object_shape(fields)
    object.__setattr__(shape, "defaulted", finished.defaulted)
    object.__setattr__(shape, "is_plain", finished.is_plain)
    object.__setattr__(shape, "is_open", finished.is_open)
    object.__setattr__(shape, "keeps_none", finished.keeps_none)
    return shape


def _field(hint: object, known: dict[type, ObjectShape]) -> Field:
    plain, annotations = _unwrap(hint)
    marks = frozenset(annotation for annotation in annotations if isinstance(annotation, Mark)) | _marks_of_items(plain)
    default = next((annotation.value for annotation in annotations if isinstance(annotation, Default)), MISSING)
    keyed = next((annotation for annotation in annotations if isinstance(annotation, Keyed)), None)
    constraints = tuple(annotation for annotation in annotations if isinstance(annotation, Constraint))
    shape = _shape(plain, known)
    return Field(shape if keyed is None else _keyed(shape, keyed), marks, default, constraints)


def _marks_of_items(plain: object) -> frozenset[Mark]:
    """A list of write-only values is write-only as a whole."""
    items = [_unwrap(item) for item in get_args(plain)] if get_origin(plain) is list else []
    own = {Mark.WRITE_ONLY for _, annotations in items if Mark.WRITE_ONLY in annotations}
    return frozenset(own).union(*(_marks_of_items(item) for item, _ in items))


def _unwrap(hint: object) -> tuple[object, tuple[object, ...]]:
    """The type without Annotated and `| None | UnsetType`, and all annotations; NoneType for a union of types."""
    if get_origin(hint) is Annotated:
        inner, *annotations = get_args(hint)
        plain, deeper = _unwrap(inner)
        return plain, (*annotations, *deeper)
    if get_origin(hint) in (Union, UnionType):
        members = [_unwrap(arg) for arg in get_args(hint) if arg not in (NoneType, UnsetType)]
        annotations = [annotation for _, deeper in members for annotation in deeper]
        return (members[0][0] if len(members) == 1 else NoneType), tuple(annotations)
    return hint, ()


def _shape(plain: object, known: dict[type, ObjectShape]) -> Shape:
    if isinstance(plain, type) and issubclass(plain, msgspec.Struct):
        return _object(plain, known)
    match get_origin(plain), get_args(plain):
        case (origin, (item,)) if origin is list:
            inside = _field(item, known)
            return AtomicList(inside.shape, inside.constraints)
        case (origin, (key, value)) if origin is dict:
            return MapShape(_field(value, known), _field(key, known).constraints)
        case _:
            return LEAF


def _keyed(shape: Shape, keyed: Keyed) -> KeyedList:
    match shape:
        case AtomicList(item=ObjectShape(fields=fields) as item) if keyed.names and set(keyed.names) <= set(fields):
            return KeyedList(keyed.names, Field(item))
        case _:
            raise TypeError(f"{keyed} is for lists of structs that have these fields")


def _with_field(parent: ObjectShape, path: Path, new: Field) -> ObjectShape:
    """`parent` with another field at `path`; unchanged fields are shared."""
    name, rest = path.steps[0], Path(path.steps[1:])
    assert isinstance(name, str)
    below = parent.fields[name]
    if rest and not isinstance(below.shape, ObjectShape):
        raise UnknownField(f"{path} cannot be changed: {name} is not an object")
    if isinstance(below.shape, ObjectShape) and rest:
        new = replace(below, shape=_with_field(below.shape, rest, new))
    return object_shape({**parent.fields, name: new})


# --- Names of fields, for error messages -----------------------------------------------------------------------------


def _no_such_field(shape: ObjectShape, path: Path) -> UnknownField:
    real = paths_of(shape)
    last = str(Path(path.steps[-1:])).lower()
    same_name = [text for text in real if text.lower().rpartition(".")[2] == last]
    near = tuple(dict.fromkeys([*same_name, *nearest(str(path), real)]))[:3]
    hint = f"; nearest: {', '.join(near)}" if near else ""
    return UnknownField(f"no field {path}{hint}", near)


def _paths(parent: Field, prefix: str, inside: tuple[Shape, ...]) -> Iterator[str]:
    shape = parent.shape
    if shape in inside:
        return
    for step, below in _members(shape):
        text = f"{prefix}.{step}".lstrip(".") if not step.startswith("[") else f"{prefix}{step}"
        yield text
        yield from _paths(below, text, (*inside, shape))


def _members(shape: Shape) -> Iterator[tuple[str, Field]]:
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
