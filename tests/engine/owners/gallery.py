"""An owner whose resources are children of another owner: a gallery, and its index."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from msgspec import Struct

from setpoint.core.children import Child, Contents, Fields
from setpoint.core.paths import Path
from setpoint.engine.kind import Definition, Need
from setpoint.engine.owner import Generated, ObjectKind, Standing
from setpoint.engine.report import UP_TO_DATE
from setpoint.engine.resource import Resource, ResourceRef, Tree
from tests.engine.owners.website import CONFIG_MAP, GALLERY, Picture, made

_DEFINITION: Final = Definition("A gallery.")


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
    definition: Definition = _DEFINITION
    makes: Sequence[ObjectKind] = (CONFIG_MAP,)
    reads: Sequence[ObjectKind] = ()
    finalizer: str = ""
    least: Tree = field(default_factory=dict)

    def check(self, resource: Resource) -> None:
        """Any spec will do."""

    def needs(self, resource: Resource) -> Sequence[Need]:
        """None."""
        return ()

    def sources(self, resource: Resource) -> Sequence[ResourceRef]:
        """None."""
        return ()

    def generate(self, resource: Resource, found: Mapping[ResourceRef, Resource]) -> Generated:
        """The index."""
        pictures: Any = resource.spec.get("pictures") or []
        listed = ", ".join(sorted(one["name"] for one in pictures))
        index = made(CONFIG_MAP, f"{resource.ref.name}-index", resource, {"data": {"pictures": listed}})
        return Generated((Child(index, Contents.COVERED, Fields((Path(("data",)),)), {}),))

    def completed(self, child: Child) -> Tree:
        """It lacks nothing."""
        return child.object

    def standing(self, resource: Resource, children: Mapping[str, Resource]) -> Standing:
        """Ready as soon as there is an index."""
        return Standing(UP_TO_DATE, {"pages": len(children)})

    def goes_first(self, resource: Resource) -> Sequence[ResourceRef]:
        """None."""
        return ()
