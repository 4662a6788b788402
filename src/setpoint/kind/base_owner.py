"""The base of owners: what most do the same way. An author adds the type of the spec, and the children."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, Generic, TypeVar, cast, get_args

import msgspec
from msgspec import Struct

from setpoint.core.conditions import ConditionReason
from setpoint.core.merge.children import Child, ChildUpdatePolicy, FieldsView
from setpoint.core.merge.threeway import EditGranularity
from setpoint.core.owner_references import owner_reference
from setpoint.core.schema.shape import shape_of
from setpoint.core.values.json_types import Json, JsonObject
from setpoint.core.values.paths import Path
from setpoint.engine.conditions import UP_TO_DATE, ReadyCondition
from setpoint.engine.kind import CrdDetails, Dependency
from setpoint.engine.owner import GeneratedChildren, ObjectKind, OwnerStatus
from setpoint.engine.references import is_ready
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.errors import SetpointError
from setpoint.kind.base_kind import first_paragraph
from setpoint.kind.kind_context import KindContext
from setpoint.kind.spec_references import check_references, dependencies_in
from setpoint.kind.typed_spec import decode_spec

S = TypeVar("S", bound=Struct)
_NONE_EDITABLE: Final[Mapping[str, EditGranularity]] = MappingProxyType({})


class BaseOwner(ABC, Generic[S]):
    """An owner whose spec is an S. It is made with a KindContext, and with nothing else.

    It says what its children are, and does no I/O: the engine creates them, merges them with the edits of other
    writers, and deletes them.
    """

    # --- What it is called; `name` is that of the class, without `Owner`, when left out.
    group: str
    version: str = "v1"
    name: str
    # --- What a CustomResourceDefinition says beyond the types. Its description is the docstring of the class.
    outputs_type: type[Struct] | None = None
    short_names: Sequence[str] = ()
    categories: Sequence[str] = ()
    plural: str = ""
    # --- How it is reconciled.
    # Raised when it reads a manifest, or generates children, in another way.
    revision: int = 1
    # Annotations that change the meaning of a manifest.
    annotations: Sequence[str] = ()
    # The kinds of its children, and of the objects that it reads: what RBAC has to allow, and what is watched.
    makes: Sequence[ObjectKind]
    reads: Sequence[ObjectKind] = ()
    # Held while children of `deleted_first` are there; empty where none has to be deleted before the owner.
    finalizer: str = ""
    # The outputs that a status always has.
    minimum_outputs: JsonObject = MappingProxyType({})
    # --- Made from the type argument and the docstring.
    spec_type: type[S]
    tree_type: type[Struct]
    definition: CrdDetails

    def __init__(self, context: KindContext) -> None:
        self.context = context

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        spec_type = _type_argument(cls)
        if spec_type is None:
            return
        cls.spec_type = cast("type[S]", spec_type)
        if "name" not in cls.__dict__ and not hasattr(cls, "name"):
            cls.name = cls.__name__.removesuffix("Owner")
        for member, example in (
            ("group", "'shop.example.com', a domain of your own"),
            ("makes", "the kinds of children"),
        ):
            if not hasattr(cls, member):
                raise TypeError(f"{cls.__name__} has no {member}: write {member} = {example}")
        cls.tree_type = msgspec.defstruct(
            f"{cls.name}Tree", [("spec", cls.spec_type)], module=cls.__module__, frozen=True
        )
        cls.definition = CrdDetails(first_paragraph(cls), cls.outputs_type, cls.short_names, cls.categories, cls.plural)
        check_references(cls.spec_type)
        shape_of(cls.tree_type)

    # --- What the author writes ---------------------------------------------------------------------------------------

    @abstractmethod
    def children(self, resource: Resource, spec: S, found: Mapping[ResourceRef, Resource]) -> Iterable[Child]:
        """The desired children, in the order in which they are written; `found` has those `sources` that exist.

        An error, such as DependencyNotFound for a source, is reported once the children before it are written.
        """

    # --- What most owners do the same way -----------------------------------------------------------------------------

    def sources(self, resource: Resource) -> Sequence[ResourceRef]:
        """The objects that the children are generated from; a change of one triggers a reconcile. None by default."""
        return ()

    def status_of(self, resource: Resource, children: Mapping[str, Resource]) -> OwnerStatus:
        """Ready, without outputs, once the children are written. They are by key: `ConfigMap/name`."""
        return OwnerStatus(UP_TO_DATE, {})

    def completed(self, child: Child) -> JsonObject:
        """The object of a child that is created now, with what is generated only then: nothing by default."""
        return child.object

    def deleted_first(self, resource: Resource) -> Sequence[ResourceRef]:
        """The children that are deleted before `finalizer` is removed."""
        return ()

    def check(self, resource: Resource) -> None:
        """ManifestInvalid for a spec that does not fit its type. An owner with rules of its own extends it."""
        self.dependencies(resource)

    def dependencies(self, resource: Resource) -> Sequence[Dependency]:
        """The references and Secrets in the spec, found by the types of its fields."""
        return dependencies_in(self.spec_of(resource), resource)

    def generate(self, resource: Resource, found: Mapping[ResourceRef, Resource]) -> GeneratedChildren:
        """The children, as far as they can be generated, and the error that keeps the rest from it."""
        spec, made = self.spec_of(resource), list[Child]()
        try:
            for child in self.children(resource, spec, found):
                made.append(child)
        except SetpointError as error:
            # Those before it count.
            return GeneratedChildren(tuple(made), error)
        return GeneratedChildren(tuple(made))

    # --- For the author's methods -------------------------------------------------------------------------------------

    def spec_of(self, resource: Resource) -> S:
        """The spec of a resource, decoded; ManifestInvalid names each wrong field."""
        return decode_spec(resource, self.spec_type)

    def child(
        self,
        owner: Resource,
        kind: ObjectKind,
        body: Mapping[str, object],
        *,
        name: str = "",
        editable: Mapping[str, EditGranularity] = _NONE_EDITABLE,
        policy: ChildUpdatePolicy = ChildUpdatePolicy.MERGE,
    ) -> Child:
        """A child in the namespace of its owner, with its name unless another is given, and with the owner reference.

        `body` has its other members, such as `spec` or `data`, and `metadata` with labels and annotations. `editable`
        are the fields that other writers may edit, by their paths: all others are the owner's.
        """
        labels = body.get("metadata", {})
        metadata: dict[str, Json] = {
            **(labels if isinstance(labels, Mapping) else {}),
            "name": name or owner.ref.name,
            "namespace": owner.ref.namespace,
            "ownerReferences": [owner_reference(owner.document)],
        }
        members = cast("JsonObject", {member: value for member, value in body.items() if member != "metadata"})
        version = f"{kind.group}/{kind.version}" if kind.group else kind.version
        document = {"apiVersion": version, "kind": kind.kind, "metadata": metadata, **members}
        view = FieldsView(tuple(Path((member,)) for member in members))
        return Child(document, policy, view, {Path.parse(field): one for field, one in editable.items()})

    def readiness(self, children: Mapping[str, Resource], *keys: str) -> ReadyCondition:
        """Up to date when the children of these keys are there and ready themselves; otherwise which one is not."""
        for key in keys:
            child = children.get(key)
            if child is None or not is_ready(child):
                return ReadyCondition(
                    "False", ConditionReason.NOT_READY, f"{key} is not {'ready' if child else 'there'} yet"
                )
        return UP_TO_DATE

    def ref_of(self, kind: ObjectKind, name: str, beside: Resource) -> ResourceRef:
        """The object of a kind in the namespace of another: a source, or a child."""
        return ResourceRef(kind.group, kind.kind, beside.ref.namespace, name)


def _type_argument(cls: type) -> type[Struct] | None:
    """S, where the class itself names it."""
    for base in cls.__dict__.get("__orig_bases__", ()):
        for one in get_args(base):
            if isinstance(one, type) and issubclass(one, Struct):
                return one
    return None
