"""An owner with resources that are children of another owner: a gallery, and its index."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from msgspec import Struct

from setpoint.core.merge.children import Child, ChildUpdatePolicy, FieldsView
from setpoint.core.values.json_types import JsonObject
from setpoint.core.values.paths import Path
from setpoint.engine.conditions import UP_TO_DATE
from setpoint.engine.kind import CrdDetails, Dependency
from setpoint.engine.owner import GeneratedChildren, ObjectKind, OwnerStatus
from setpoint.engine.resource import Resource, ResourceRef
from tests.engine.owners.website import CONFIG_MAP, GALLERY, Picture, made

_DEFINITION: Final = CrdDetails("A gallery.")


class GallerySpec(Struct):
    site: str = ""
    heading: str = ""
    columns: int = 0
    captions: dict[str, str] = {}
    pictures: list[Picture] = []
    tags: list[str] = []


class GalleryTree(Struct):
    spec: GallerySpec


@dataclass(slots=True)
class GalleryOwner:
    """The owner."""

    group: str = GALLERY.group
    version: str = GALLERY.version
    name: str = GALLERY.kind
    revision: int = 1
    annotations: Sequence[str] = ()
    tree_type: type[Struct] = GalleryTree
    definition: CrdDetails = _DEFINITION
    makes: Sequence[ObjectKind] = (CONFIG_MAP,)
    reads: Sequence[ObjectKind] = ()
    finalizer: str = ""
    minimum_outputs: JsonObject = field(default_factory=dict)

    def check(self, resource: Resource) -> None:
        """Any spec will do."""

    def dependencies(self, resource: Resource) -> Sequence[Dependency]:
        """None."""
        return ()

    def sources(self, resource: Resource) -> Sequence[ResourceRef]:
        """None."""
        return ()

    def generate(self, resource: Resource, found: Mapping[ResourceRef, Resource]) -> GeneratedChildren:
        """The index."""
        pictures: Any = resource.spec.get("pictures") or []
        listed = ", ".join(sorted(one["name"] for one in pictures))
        index = made(CONFIG_MAP, f"{resource.ref.name}-index", resource, {"data": {"pictures": listed}})
        return GeneratedChildren((Child(index, ChildUpdatePolicy.APPLY_SUBSET, FieldsView((Path(("data",)),)), {}),))

    def completed(self, child: Child) -> JsonObject:
        """It lacks nothing."""
        return child.object

    def status_of(self, resource: Resource, children: Mapping[str, Resource]) -> OwnerStatus:
        """Ready as soon as there is an index."""
        return OwnerStatus(UP_TO_DATE, {"pages": len(children)})

    def deleted_first(self, resource: Resource) -> Sequence[ResourceRef]:
        """None."""
        return ()
