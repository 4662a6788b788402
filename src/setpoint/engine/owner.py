"""An owner: a type of resource that stands for several child objects, which other writers may edit as well.

An author writes the type of the spec, what the children are, and how the owner's status follows from them. The
three-way merge with edits, its memory, plans, conditions, events, adoption and deletion come with the engine.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, Protocol, runtime_checkable

from setpoint.core.merge.children import Child
from setpoint.core.schema.annotations import AnnotationTarget
from setpoint.core.schema.shape import paths_of, shape_of
from setpoint.core.unstructured import GroupKind
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import JsonObject
from setpoint.core.values.paths import nearest
from setpoint.engine.capabilities import SupportsGeneratedSecret
from setpoint.engine.conditions import ReadyCondition
from setpoint.engine.kind import ResourceType, unknown_kind
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.errors import ManifestInvalid, SetpointError


class ObjectKind(NamedTuple):
    """A kind of object as an API server serves it, whichever controller manages it."""

    group: str
    version: str
    kind: str
    plural: str
    is_namespaced: bool = True


SECRETS: Final = ObjectKind("", "v1", "Secret", "secrets")


@dataclass(frozen=True, slots=True)
class GeneratedChildren:
    """The desired children, in the order in which they are written.

    `error` keeps further children from being generated: it is raised once these are written.
    `warnings` go to the Warned condition.
    """

    children: tuple[Child, ...]
    error: SetpointError | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OwnerStatus:
    """The readiness of an owner with all children as desired, and the outputs of its status.

    `lost` is the message of the warning event when the owner was ready before and is not any more.
    """

    ready: ReadyCondition
    outputs: JsonObject
    lost: str = "it is no longer ready"


@runtime_checkable
class Owner(ResourceType, Protocol):
    """What the author of an owner writes."""

    # The finalizer that is held while something has to be deleted before the owner; empty where nothing has to be.
    finalizer: str
    # The outputs that a status always has, even before anything is known.
    minimum_outputs: JsonObject

    @property
    def makes(self) -> Sequence[ObjectKind]:
        """The kinds of its children: what RBAC has to allow, and what is watched."""
        ...

    @property
    def reads(self) -> Sequence[ObjectKind]:
        """The kinds of the objects that it reads: likewise."""
        ...

    def sources(self, resource: Resource) -> Sequence[ResourceRef]:
        """The objects that the children are generated from; a change of one triggers a reconcile of the owner."""
        ...

    def generate(self, resource: Resource, found: Mapping[ResourceRef, Resource]) -> GeneratedChildren:
        """The desired children; `found` has those sources that exist."""
        ...

    def completed(self, child: Child) -> JsonObject:
        """The object of a child that is created now, with what the generated one lacks, such as random keys."""
        ...

    def status_of(self, resource: Resource, children: Mapping[str, Resource]) -> OwnerStatus:
        """The readiness and outputs; `children` are the live ones by key. A status of an older spec does not count."""
        ...

    def deleted_first(self, resource: Resource) -> Sequence[ResourceRef]:
        """The children that are deleted before `finalizer` is removed."""
        ...


def refers_to_secrets(resource_type: ResourceType) -> bool:
    """Whether resources of the type name Secrets: in a field `secretKeyRef`, or as children or sources of an owner.

    A kind may also read others by itself, or have values generated that are kept in one.
    """
    if isinstance(resource_type, Owner):
        return SECRETS in (*resource_type.makes, *resource_type.reads)
    is_named = any(".secretKeyRef" in path for path in paths_of(shape_of(resource_type.tree_type)))
    is_read = getattr(resource_type, "reads_secrets", False)
    return is_named or is_read or isinstance(resource_type, SupportsGeneratedSecret)


def is_handled_by_default(resource_type: ResourceType) -> bool:
    """Whether an installation handles the type unless other kinds are named: not where that takes more rights.

    Those of an owner, or the right to write Secrets of a kind that says so.
    """
    return not isinstance(resource_type, Owner) and not getattr(resource_type, "handled_when_named", False)


def annotation_target(type_: ResourceType) -> AnnotationTarget:
    """The type of a resource, as far as it decides which annotations have an effect on it."""
    return AnnotationTarget(type_.name, type_.annotations, is_owner=isinstance(type_, Owner))


def unknown_type(
    resource: Resource, types: Mapping[GroupKind, ResourceType], objects: Mapping[GroupKind, str]
) -> ManifestInvalid:
    """The error for a manifest of a type that is not known: with the kind and the version that may be meant.

    `objects` has the version of each kind of object that is not reconciled.
    """
    kind, known = resource.ref.kind, {*types, *objects}
    similar = nearest(kind, sorted(name for _, name in known))[:1]
    near = sorted((one[1] != kind, one) for one in known if one[1] in (kind, *similar))
    meant = near[0][1] if near else None
    if meant is None:
        return unknown_kind(kind, types, str(resource.ref))
    group, name = meant
    field, of = ("apiVersion", f" of {resource.document['apiVersion']}") if name == kind else ("kind", "")
    right = f"{name} of {'/'.join(filter(None, (group, objects.get(meant) or types[meant].version)))}"
    return ManifestInvalid(f"{resource.ref}: no kind {kind!r}{of} is known here; did you mean {right}?", field)
