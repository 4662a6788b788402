"""An export: what one store hands to another, and the documents that it is written down in.

First a header, then a document for each plain object and each resource, then an end: a part is never taken for all.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, TypeVar

import msgspec
from msgspec import Struct

from setpoint.core.canonical import canonical, same
from setpoint.core.paths import Path
from setpoint.core.values import Json
from setpoint.core.yaml_documents import Document
from setpoint.engine.resource import SECRET, Resource, ResourceRef, Tree
from setpoint.errors import ManifestInvalid, NotJson

API_VERSION: Final = "setpoint.dev/v1alpha1"
HEADER, END = "Export", "ExportEnd"
FORMAT: Final = 1
# The member of a document with what another store has to know besides.
FACTS: Final = "export"
_ROOT: Final = Path()

S = TypeVar("S", bound=Struct)


class Header(Struct, frozen=True, forbid_unknown_fields=True):
    """Where an export comes from. `paused`: from there, nobody touches the objects any more."""

    setpoint: str
    at: str
    store: str
    secrets: bool
    paused: bool


class Facts(Struct, frozen=True, forbid_unknown_fields=True):
    """What a resource came to in its store."""

    # The digest of its intent; none where what it refers to was not there.
    intent: str | None
    # The version that each secret had, by the field that it is for.
    versions: dict[str, str]
    # Whether the status speaks of the spec as it is.
    observed: bool
    # Whether somebody has asked for its deletion.
    deleting: bool = False


class ObjectFacts(Struct, frozen=True, forbid_unknown_fields=True):
    """Which state of a plain object this is: its uid and its revision."""

    version: str


@dataclass(frozen=True, slots=True)
class ExportedResource:
    """A resource as its author wrote it and as the engine remembers it; `place` is where its document stands."""

    resource: Resource
    facts: Facts
    place: str = ""

    @property
    def ref(self) -> ResourceRef:
        """Which resource."""
        return self.resource.ref


@dataclass(frozen=True, slots=True)
class ExportedObject:
    """An object that nobody takes steps for, whole: a Secret with its values, a ConfigMap."""

    resource: Resource = field(repr=False)
    facts: ObjectFacts
    place: str = ""

    @property
    def is_secret(self) -> bool:
        """Whether it has values that nobody may see."""
        return (self.ref.group, self.ref.kind) == SECRET

    @property
    def ref(self) -> ResourceRef:
        """Which object."""
        return self.resource.ref


Item: TypeAlias = ExportedObject | ExportedResource


@dataclass(frozen=True, slots=True)
class Export:
    """One export, or several that were handed over together."""

    headers: tuple[Header, ...]
    objects: tuple[ExportedObject, ...]
    resources: tuple[ExportedResource, ...]

    @property
    def items(self) -> tuple[Item, ...]:
        """All of it, plain objects first."""
        return (*self.objects, *self.resources)

    @property
    def is_paused(self) -> bool:
        """Whether nobody touches the objects any more from where this came from."""
        return all(header.paused for header in self.headers)


# --- Writing ----------------------------------------------------------------------------------------------------------


def documents_of(export: Export) -> Iterator[Tree]:
    """Everything that is to be written down, in order."""
    (header,) = export.headers
    yield {"apiVersion": API_VERSION, "kind": HEADER, "format": FORMAT, **msgspec.to_builtins(header)}
    for item in export.items:
        yield {**item.resource.document, FACTS: msgspec.to_builtins(item.facts)}
    yield {"apiVersion": API_VERSION, "kind": END, "documents": len(export.items)}


# --- Reading ----------------------------------------------------------------------------------------------------------


def read_export(documents: Sequence[Document]) -> Export:
    """The exports in `documents`, as one; ManifestInvalid names the document and what is wrong with it."""
    headers: list[Header] = []
    items: list[Item] = []
    left = iter(documents)
    for document in left:
        headers.append(_header(document))
        items += _until_its_end(document, left)
    _refuse_doubles(items)
    objects = tuple(one for one in items if isinstance(one, ExportedObject))
    resources = tuple(one for one in items if isinstance(one, ExportedResource))
    return Export(tuple(headers), objects, resources)


def _header(document: Document) -> Header:
    value, place = document.value, document.where(_ROOT)
    if not is_header(value):
        raise ManifestInvalid(
            f"{place}: this is no export: `setpoint export` makes one; `setpoint apply` takes manifests"
        )
    members = {name: one for name, one in _tree(value, place).items() if name not in ("apiVersion", "kind")}
    form = members.pop("format", None)
    if not same(form, FORMAT):
        maker = members.get("setpoint", "the version that made it")
        raise ManifestInvalid(f"{place}: an export of format {form!r} cannot be read here: use setpoint {maker}")
    return _converted(members, Header, place)


def _until_its_end(header: Document, left: Iterator[Document]) -> list[Item]:
    items: list[Item] = []
    for document in left:
        if _is(END, document.value):
            _require_all(document, len(items))
            return items
        if is_header(document.value):
            break
        items.append(_item(document))
    raise ManifestInvalid(f"{header.where(_ROOT)}: this export breaks off: its last document is missing; export again")


def _require_all(end: Document, found: int) -> None:
    place = end.where(_ROOT)
    told = _tree(end.value, place).get("documents")
    if not same(told, found):
        raise ManifestInvalid(f"{place}: {told} documents should stand before this, and {found} do: export again")


def _item(document: Document) -> Item:
    place = document.where(_ROOT)
    tree = dict(_tree(document.value, place))
    facts = tree.pop(FACTS, None)
    resource = Resource(_checked(tree, document))
    is_plain = isinstance(facts, dict) and set(facts) == {"version"}
    if is_plain or (resource.ref.group, resource.ref.kind) == SECRET:
        return ExportedObject(resource, _converted(facts, ObjectFacts, place, f"{FACTS}: "), place)
    return ExportedResource(resource, _converted(facts, Facts, place, f"{FACTS}: "), place)


def _checked(tree: dict[str, Json], document: Document) -> Tree:
    """The document of a resource, in the namespace that it will have."""
    metadata = tree.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    for path, value, kind in (
        ("apiVersion", tree.get("apiVersion"), str),
        ("kind", tree.get("kind"), str),
        ("metadata.name", metadata.get("name"), str),
        ("status", tree.get("status", {}), dict),
    ):
        if not isinstance(value, kind):
            raise ManifestInvalid(
                f"{document.where(Path.parse(path))}: {path} is missing or of another type: export again"
            )
    try:
        canonical(tree)
    except NotJson as error:
        raise ManifestInvalid(f"{document.where(_ROOT)}: {error}") from error
    return {**tree, "metadata": {**metadata, "namespace": metadata.get("namespace") or "default"}}


def _refuse_doubles(items: Sequence[Item]) -> None:
    seen: dict[ResourceRef, str] = {}
    for item in items:
        first = seen.setdefault(item.ref, item.place)
        if first != item.place:
            raise ManifestInvalid(f"{item.place}: {item.ref} stands at {first} already: keep one of them")


def is_header(value: Json) -> bool:
    """Whether an export begins with this document."""
    return _is(HEADER, value)


def _is(kind: str, value: Json) -> bool:
    return isinstance(value, Mapping) and (value.get("apiVersion"), value.get("kind")) == (API_VERSION, kind)


def _tree(value: Json, place: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ManifestInvalid(f"{place}: a document of an export is a map: export again")
    return value


def _converted(value: object, type_: type[S], place: str, at: str = "") -> S:
    try:
        return msgspec.convert(value, type_)
    except msgspec.ValidationError as error:
        raise ManifestInvalid(f"{place}: {at}{error}: export again with this version of setpoint") from error
