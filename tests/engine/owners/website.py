"""A third owner, in one file: a website, with all that a child can be."""

import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from msgspec import Struct

from setpoint.core.merge.children import Child, ChildUpdatePolicy, FieldsView
from setpoint.core.merge.threeway import EditableFields, EntryList, EntryMap, WholeValue
from setpoint.core.owner_references import owner_reference
from setpoint.core.values.json_types import JsonObject
from setpoint.core.values.paths import Path
from setpoint.engine.conditions import ReadyCondition
from setpoint.engine.kind import CrdDetails, Dependency
from setpoint.engine.owner import GeneratedChildren, ObjectKind, OwnerStatus
from setpoint.engine.references import is_ready
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.errors import DependencyNotFound
from setpoint.kind.typed_spec import decode_spec

GROUP: Final = "web.test"
CONFIG_MAP: Final = ObjectKind("", "v1", "ConfigMap", "configmaps")
SECRET: Final = ObjectKind("", "v1", "Secret", "secrets")
GALLERY: Final = ObjectKind(GROUP, "v1", "Gallery", "galleries")
_DEFINITION: Final = CrdDetails("A website.")
_DATA: Final = FieldsView((Path(("data",)),))
_SPEC: Final = FieldsView((Path(("spec",)),))
THEME, COLUMNS, CAPTIONS, PICTURES, TAGS = (
    Path(steps)
    for steps in (("data", "theme"), ("spec", "columns"), ("spec", "captions"), ("spec", "pictures"), ("spec", "tags"))
)
PAGE_TABLE: Final[EditableFields] = {THEME: WholeValue()}
GALLERY_TABLE: Final[EditableFields] = {
    COLUMNS: WholeValue(),
    CAPTIONS: EntryMap(),
    PICTURES: EntryList("name"),
    TAGS: EntryList(),
}


class Picture(Struct):
    name: str
    file: str = ""


class WebsiteSpec(Struct, forbid_unknown_fields=True):
    title: str
    theme: str = "plain"
    # The Secret that the certificate is copied from.
    certificate: str = ""
    columns: int = 3
    captions: dict[str, str] = {}
    pictures: list[Picture] = []
    tags: list[str] = []


class WebsiteTree(Struct):
    spec: WebsiteSpec


@dataclass(slots=True)
class WebsiteOwner:
    """The owner. With a `finalizer`, its gallery has to go before it does."""

    group: str = GROUP
    version: str = "v1"
    name: str = "Website"
    revision: int = 1
    annotations: Sequence[str] = ()
    tree_type: type[Struct] = WebsiteTree
    definition: CrdDetails = _DEFINITION
    makes: Sequence[ObjectKind] = (CONFIG_MAP, SECRET, GALLERY)
    reads: Sequence[ObjectKind] = (SECRET,)
    finalizer: str = ""
    minimum_outputs: JsonObject = field(default_factory=dict)

    def check(self, resource: Resource) -> None:
        """Any spec of its type will do."""
        _spec(resource)

    def dependencies(self, resource: Resource) -> Sequence[Dependency]:
        """None."""
        return ()

    def sources(self, resource: Resource) -> Sequence[ResourceRef]:
        """The Secret with the certificate."""
        spec = _spec(resource)
        return (place(SECRET, spec.certificate, resource),) if spec.certificate else ()

    def generate(self, resource: Resource, found: Mapping[ResourceRef, Resource]) -> GeneratedChildren:
        """All children; or those that need no certificate."""
        made: list[Child] = []
        try:
            made.extend(_first(resource))
            made.extend(_copies(resource, found))
        except DependencyNotFound as error:
            return GeneratedChildren(tuple(made), error)
        return GeneratedChildren((*made, _gallery(resource)))

    def completed(self, child: Child) -> JsonObject:
        """The administrator's Secret with a new random password."""
        return {**child.object, "data": {"password": secrets.token_hex(8)}}

    def status_of(self, resource: Resource, children: Mapping[str, Resource]) -> OwnerStatus:
        """Ready when its gallery is."""
        gallery = children.get(f"Gallery/{resource.ref.name}")
        is_served = gallery is not None and is_ready(gallery)
        ready = (
            ReadyCondition("True", "UpToDate", "it is served")
            if is_served
            else ReadyCondition("False", "NotReady", "no gallery yet")
        )
        return OwnerStatus(ready, {"address": f"https://{resource.ref.name}.test"})

    def deleted_first(self, resource: Resource) -> Sequence[ResourceRef]:
        """The gallery."""
        return (place(GALLERY, resource.ref.name, resource),)


def place(kind: ObjectKind, name: str, beside: Resource) -> ResourceRef:
    """The object of that name in the namespace of `beside`."""
    return ResourceRef(kind.group, kind.kind, beside.ref.namespace, name)


def made(kind: ObjectKind, name: str, owner: Resource, body: JsonObject) -> JsonObject:
    """An object of `owner`, labelled."""
    metadata: JsonObject = {
        "name": name,
        "namespace": owner.ref.namespace,
        "labels": {"site": owner.ref.name},
        "ownerReferences": [owner_reference(owner.document)],
    }
    api = f"{kind.group}/{kind.version}" if kind.group else kind.version
    return {"apiVersion": api, "kind": kind.kind, "metadata": metadata, **body}


def _spec(resource: Resource) -> WebsiteSpec:
    return decode_spec(resource, WebsiteSpec)


def _first(resource: Resource) -> Iterator[Child]:
    spec, name = _spec(resource), resource.ref.name
    page = made(CONFIG_MAP, f"{name}-page", resource, {"data": {"title": spec.title, "theme": spec.theme}})
    yield Child(page, ChildUpdatePolicy.MERGE, _DATA, PAGE_TABLE)
    yield Child(
        made(SECRET, f"{name}-admin", resource, {"data": {}}),
        ChildUpdatePolicy.CREATE_ONLY,
        _DATA,
        {},
        filled_on_create="a password",
    )


def _copies(resource: Resource, found: Mapping[ResourceRef, Resource]) -> Iterator[Child]:
    name = _spec(resource).certificate
    if not name:
        return
    source = found.get(place(SECRET, name, resource))
    if source is None:
        raise DependencyNotFound(f"Secret {resource.ref.namespace}/{name} is not there: create it")
    copy = made(SECRET, f"{resource.ref.name}-tls", resource, {"data": source.document.get("data", {})})
    yield Child(copy, ChildUpdatePolicy.OVERWRITE, _DATA, {})


def _gallery(resource: Resource) -> Child:
    spec = _spec(resource)
    body: JsonObject = {
        "site": resource.ref.name,
        "heading": spec.title,
        "columns": spec.columns,
        "captions": dict(spec.captions),
        "pictures": [{"name": one.name, "file": one.file} for one in spec.pictures],
        "tags": list(spec.tags),
    }
    child = made(GALLERY, resource.ref.name, resource, {"spec": body})
    return Child(child, ChildUpdatePolicy.MERGE, _SPEC, GALLERY_TABLE)
