"""Whether a path of an object shows a secret value: then it is no output, no value for another resource, no status.

The type decides: write-only fields, the values of Secrets, and copies of either in the metadata.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from setpoint.core.redaction import LAST_APPLIED_PATH, OPEN_SECRET_MEMBERS, SECRET_PATHS, is_secret
from setpoint.core.schema.shape import (
    AtomicList,
    Field,
    KeyedList,
    MapShape,
    ObjectShape,
    Shape,
    field_below,
)
from setpoint.core.unstructured import GroupKind, group_kind
from setpoint.core.values.json_types import MISSING, Json, Missing
from setpoint.core.values.paths import Path, PathStep, Selector, get_at, remove_at, value_below
from setpoint.errors import YamlInvalid


def write_only_within(shape: ObjectShape, path: Path) -> Path | None:
    """The write-only field that `path` is, contains or lies below, or that selects an element in it; None for none."""
    here = Field(shape)
    for depth, step in enumerate(path.steps):
        parent, below = Path(path.steps[:depth]), _any_field_below(here, step)
        if here.write_only:
            return parent
        if below is None:
            return None
        for name, _ in step.pairs if isinstance(step, Selector) else ():
            # Whether there is such an element tells the value.
            member = _any_field_below(below, name)
            if member is not None and _first_write_only(member, Path()) is not None:
                return parent / step / name
        here = below
    return _first_write_only(here, path)


def _any_field_below(parent: Field, step: PathStep) -> Field | None:
    """The field one step below, however the step names an element of a list."""
    match parent.shape, step:
        case KeyedList(item=item), int() | Selector():
            return item
        case AtomicList(item=item), int() | Selector():
            return Field(item)
        case _:
            return field_below(parent, step)


def _first_write_only(here: Field, at: Path, inside: tuple[Shape, ...] = ()) -> Path | None:
    """The first write-only field in a field; one in an element has the path of its list or map."""
    if here.write_only:
        return at
    if here.shape in inside:
        return None
    below = (
        _first_write_only(field, at / name if name else at, (*inside, here.shape))
        for name, field in _fields_in(here.shape)
    )
    return next((path for path in below if path is not None), None)


def _fields_in(shape: Shape) -> Iterator[tuple[str, Field]]:
    """The fields one step below; those of elements have no name."""
    match shape:
        case ObjectShape(fields=fields):
            yield from fields.items()
        case MapShape(value=value) | KeyedList(item=value):
            yield "", value
        case AtomicList(item=item):
            yield "", Field(item)
        case _:
            return


_MANAGED_FIELDS: Final = Path(("metadata", "managedFields"))
_KUBERNETES_OBJECT: Final[GroupKind] = ("setpoint.dev", "KubernetesObject")
_ITEMS: Final = Path(("items",))
_SECRET: Final[GroupKind] = ("", "Secret")
_MANIFEST: Final = Path(("spec", "manifest"))
_SQL: Final = "sql.cnrm.cloud.google.com"
# The write-only fields of kinds whose objects may be read from a cluster without their types.
SECRET_FIELDS: Final[Mapping[GroupKind, tuple[Path, ...]]] = {
    (_SQL, "SQLInstance"): (
        Path(("spec", "rootPassword")),
        Path(("spec", "replicaConfiguration", "clientKey")),
        Path(("spec", "replicaConfiguration", "password")),
    ),
    (_SQL, "SQLUser"): (Path(("spec", "password")),),
}


def secret_within(object_: Json, path: Path, shape: ObjectShape | None = None) -> Path | None:
    """The secret field that `path` of an object is, contains or lies below; None when the value there is not secret.

    The type decides: of the object itself, its `shape` if that is known, and of every object inside it. Of the object
    itself, it does not matter whether there is a value.
    """
    for secret in (*_secret_fields(object_), LAST_APPLIED_PATH, _MANAGED_FIELDS):
        if secret.covers(path) or path.covers(secret):
            return secret
    typed = None if shape is None else write_only_within(shape, path)
    return typed or _secret_inside(object_, path)


def has_secret_fields(object_: Json) -> bool:
    """Whether objects of this kind have secret values: a Secret, or a kind of ours with write-only fields."""
    return is_secret(object_) or group_kind(object_) in SECRET_FIELDS


def without_secrets(object_: Json) -> Json:
    """The object without its secret values, at any depth; with kubectl's copy of it only when it has none."""
    shown = remove_at(object_, LAST_APPLIED_PATH)
    if not has_secret_fields(object_) and not holds_secret(shown):
        return object_
    while (path := _secret_in_value(shown, Path())) is not None:
        shown = remove_at(shown, path)
    return shown


def holds_secret(object_: Json) -> bool:
    """Whether an object, or a part of one with its apiVersion and kind, has a secret value at any depth."""
    return _secret_in_value(object_, Path()) is not None


def _secret_fields(object_: Json | Missing) -> Iterator[Path]:
    """The secret fields of this one object, without those of objects inside it."""
    if isinstance(object_, Mapping):
        if _may_be_secret(object_):
            yield from SECRET_PATHS
            yield from (Path((name,)) for name in object_ if name not in OPEN_SECRET_MEMBERS)
        kind = group_kind(object_)
        yield from SECRET_FIELDS.get(kind, ())
        if _is_list_of_secrets(*kind):
            yield _ITEMS
        if kind == _KUBERNETES_OBJECT and _is_secret_text(get_at(object_, _MANIFEST)):
            yield _MANIFEST
        yield LAST_APPLIED_PATH


def _is_list_of_secrets(group: str, kind: str) -> bool:
    """Whether the items of such a list, which have no kind of their own there, have secret values."""
    of = group, kind.removesuffix("List")
    return of[1] != kind and (of == _SECRET or of in SECRET_FIELDS)


def _may_be_secret(object_: Mapping[str, Json]) -> bool:
    """Whether it is a Secret, or a manifest that may become one once the references in it are resolved."""
    kind, is_core = object_.get("kind"), group_kind(object_)[0] == ""
    return (is_core or _is_reference(object_.get("apiVersion"))) and (kind == "Secret" or _is_reference(kind))


def _is_reference(value: Json) -> bool:
    return "${ref:" in value if isinstance(value, str) else isinstance(value, Mapping) and "$ref" in value


def _is_secret_text(manifest: Json | Missing) -> bool:
    """Whether a manifest that is kept as text has secret values; one that cannot be read may have."""
    if not isinstance(manifest, str):
        return False
    # Most manifests are maps: the YAML reader is imported for text only.
    from setpoint.core.values.yaml_documents import read_documents

    try:
        documents = read_documents(manifest, "")
    except YamlInvalid:
        return True
    return any(holds_secret(document.value) for document in documents)


def _secret_inside(object_: Json, path: Path) -> Path | None:
    """The secret value of an object inside `object_`: on the way to `path`, or in the value there."""
    here: Json | Missing = object_
    for depth, step in enumerate(path.steps, start=1):
        here = value_below(here, step)
        rest = Path(path.steps[depth:])
        for secret in _secret_fields(here):
            if secret.covers(rest) or (rest.covers(secret) and get_at(here, secret) is not MISSING):
                return Path((*path.steps[:depth], *secret.steps))
    return _secret_in_value(here, path)


def _secret_in_value(value: Json | Missing, at: Path) -> Path | None:
    """A secret value in a value that is shown as a whole; `at` is its path."""
    left = [(at, value)]
    while left:
        path, one = left.pop()
        for secret in _secret_fields(one):
            if get_at(one, secret) is not MISSING:
                return Path((*path.steps, *secret.steps))
        if isinstance(one, Mapping):
            left += [(path / name, below) for name, below in one.items()]
        elif isinstance(one, list | tuple):
            left += [(path / position, below) for position, below in enumerate(one)]
    return None
