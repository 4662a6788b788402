"""Where manifests come from: files, text and objects; and the documents that these hold."""

import os
from collections.abc import Mapping
from typing import Any, ClassVar, Protocol, TypeAlias

import msgspec

from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import Json, JsonObject
from setpoint.core.values.paths import Path as FieldPath
from setpoint.errors import ManifestInvalid


class ManifestDocument(Protocol):
    """A document with manifests, which knows the place of each value: file and line, or the argument of a call."""

    @property
    def value(self) -> Json:
        """The whole document."""
        ...

    @property
    def source(self) -> str:
        """The name of the file, or the argument of a call."""
        ...

    def where(self, path: FieldPath) -> str:
        """The place of the value at `path`, or of its nearest ancestor that exists."""
        ...

    def line_of(self, path: FieldPath) -> int:
        """The line of that place; the same for all in a document without lines."""
        ...


@dataclass(frozen=True, slots=True)
class ObjectDocument:
    """A document that was handed over as an object."""

    value: Json
    source: str

    def where(self, _path: FieldPath) -> str:
        """See ManifestDocument."""
        return self.source

    def line_of(self, _path: FieldPath) -> int:
        """See ManifestDocument."""
        return 0


@dataclass(frozen=True, slots=True)
class ManifestFile:
    """Manifests in a file or a folder; `-` is standard input."""

    path: str


@dataclass(frozen=True, slots=True)
class YamlText:
    """Manifests in YAML or JSON text; `name` stands for it in messages."""

    text: str
    name: str


@dataclass(frozen=True, slots=True)
class ManifestObject:
    """A manifest as an object: a map, or what becomes one; `name` stands for it in messages."""

    value: object
    name: str


ManifestSource: TypeAlias = ManifestFile | YamlText | ManifestObject


class IsDataclass(Protocol):
    """An object of a dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


class HasDocument(Protocol):
    """A resource that was read before, and can be applied as it is."""

    @property
    def document(self) -> JsonObject:
        """Its manifest, with the status."""
        ...


# A manifest as a caller has it: YAML or JSON text, a path, a map, a typed object (a msgspec.Struct or a dataclass, as a
# whole or as a part of a map), or a resource that was read before.
ManifestLike: TypeAlias = str | os.PathLike[str] | Mapping[str, object] | msgspec.Struct | IsDataclass | HasDocument


def manifest_source(value: object, name: str) -> ManifestSource:
    """Where the manifests of an argument come from: text is YAML, and a path is a `pathlib.Path`."""
    match value:
        case ManifestFile() | YamlText() | ManifestObject():
            return value
        case str():
            return YamlText(value, name)
        case os.PathLike():
            path = os.fspath(value)
            return ManifestFile(f"./{path}" if path == "-" else path)
        case _:
            return ManifestObject(value, name)


def object_document(source: ManifestObject) -> ObjectDocument:
    """The object as JSON, which no later change by the caller reaches; ManifestInvalid for one without such a form."""
    value = source.value
    if not isinstance(value, msgspec.Struct) and isinstance(found := getattr(value, "document", None), Mapping):
        value = found
    try:
        tree = _with_lists(msgspec.to_builtins(value, enc_hook=_plain))
    except (TypeError, ValueError, RecursionError) as error:
        raise ManifestInvalid(
            f"{source.name}: {type(source.value).__name__} is no manifest ({error}): hand over a map, YAML text, "
            "a pathlib.Path, or a typed object"
        ) from error
    return ObjectDocument(tree, source.name)


def _plain(value: object) -> object:
    """A value of a type that is a map or a text without being `dict` or `str`."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, str):
        return str.__str__(value)
    raise TypeError(f"a value of type {type(value).__name__} has no JSON form")


def _with_lists(value: Json | tuple[Json, ...]) -> Json:
    """The same with lists for tuples."""
    match value:
        case dict():
            return {key: _with_lists(one) for key, one in value.items()}
        case list() | tuple():
            return list(map(_with_lists, value))
        case _:
            return value
