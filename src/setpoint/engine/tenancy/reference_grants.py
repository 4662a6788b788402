"""References across namespaces: a tenant may refer to resources of its own namespace.

To refer to one of another namespace it needs a ReferenceGrant there, as in the Gateway API: the tenant that is referred
to decides. Nothing reconciles a grant.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Final, TypeAlias

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from setpoint.core.schema.constraints import Matches
from setpoint.core.unstructured import GroupKind
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.messages import Message
from setpoint.engine.kind import CrdDetails
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.errors import BlockingLink, ReferenceNotGranted

GROUP: Final = "setpoint.dev"
REFERENCE_GRANT: Final[GroupKind] = (GROUP, "ReferenceGrant")
_MAX_ENTRIES: Final = 64
_Name: TypeAlias = Annotated[str, Meta(min_length=1, max_length=253)]
_GROUP: Final = Matches("[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?", "an API group, such as sql.cnrm.cloud.google.com", 253)
_KIND: Final = Matches("[A-Z][A-Za-z0-9]*", "a kind, such as SQLInstance", 253)
_NAMESPACE: Final = Matches("[a-z0-9](?:[a-z0-9-]*[a-z0-9])?", "the name of a namespace", 63)
_OBJECT: Final = Matches("[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?", "the name of a resource", 253)


class GrantedDependants(Struct, frozen=True, forbid_unknown_fields=True):
    """The resources of one kind in one namespace."""

    group: Annotated[str, Meta(max_length=253), _GROUP]
    """The API group of the resources that may refer, such as `sql.cnrm.cloud.google.com`."""
    kind: Annotated[_Name, _KIND]
    """Their kind."""
    namespace: Annotated[_Name, _NAMESPACE]
    """The namespace that they are in."""


class GrantedTargets(Struct, frozen=True, forbid_unknown_fields=True):
    """The resources of one kind in the namespace of the grant."""

    group: Annotated[str, Meta(max_length=253), _GROUP]
    """The API group of what may be referred to; empty for the core group, which Secrets are in."""
    kind: Annotated[_Name, _KIND]
    """Its kind."""
    name: Annotated[_Name | UnsetType, _OBJECT] = UNSET
    """Its name; when left out, every resource of the kind."""


_Dependants: TypeAlias = Annotated[list[GrantedDependants], Meta(min_length=1, max_length=_MAX_ENTRIES)]
_Targets: TypeAlias = Annotated[list[GrantedTargets], Meta(min_length=1, max_length=_MAX_ENTRIES)]


class ReferenceGrantSpec(Struct, frozen=True, forbid_unknown_fields=True, rename={"from_": "from"}):
    """The spec of a ReferenceGrant: each of the first may refer to each of the second."""

    from_: _Dependants
    """The resources of other namespaces that may refer to those in this one."""
    to: _Targets
    """The resources of this namespace that they may refer to."""


class ReferenceGrantTree(Struct, frozen=True):
    """What the author of a ReferenceGrant writes."""

    spec: ReferenceGrantSpec


_DEFINITION: Final = CrdDetails("Lets resources of other namespaces refer to those in this one.", has_status=False)


@dataclass(frozen=True, slots=True)
class ReferenceGrantType:
    """What the CustomResourceDefinition of the grants is generated from."""

    group: str = GROUP
    version: str = "v1alpha1"
    name: str = REFERENCE_GRANT[1]
    tree_type: type[Struct] = ReferenceGrantTree
    definition: CrdDetails = _DEFINITION


GrantsIn: TypeAlias = Callable[[str], Awaitable[Sequence[Resource]]]


@dataclass(frozen=True, slots=True)
class GrantedReferences:
    """The policy of references of a shared store. `grants_in` reads the grants of a namespace."""

    grants_in: GrantsIn

    async def require_granted(self, dependant: ResourceRef, target: ResourceRef, field: str) -> Resource | None:
        """See ReferencePolicy."""
        if target.namespace == dependant.namespace:
            return None
        grants = await self.grants_in(target.namespace) if target.namespace else ()
        granting = next((one for one in grants if is_granted_by(one, dependant, target)), None)
        if granting is None:
            raise not_granted(dependant, target, field)
        return granting


def is_granted_by(grant: Resource, dependant: ResourceRef, target: ResourceRef) -> bool:
    """Whether the grant lets `dependant` refer to `target`; one that is malformed or being deleted grants nothing."""
    if grant.ref.group_kind != REFERENCE_GRANT or grant.ref.namespace != target.namespace or grant.is_deleting:
        return False
    try:
        spec = msgspec.convert(grant.document.get("spec"), ReferenceGrantSpec)
    except msgspec.ValidationError:
        return False
    is_from = any((one.group, one.kind, one.namespace) == dependant[:3] for one in spec.from_)
    return is_from and any(
        (one.group, one.kind) == target.group_kind and one.name in (UNSET, target.name) for one in spec.to
    )


def not_granted(dependant: ResourceRef, target: ResourceRef, field: str) -> ReferenceNotGranted:
    """The error for a reference that is not granted: the same whether the target exists or not."""
    source = f"{{group: {_quoted(dependant.group)}, kind: {dependant.kind}, namespace: {dependant.namespace}}}"
    wanted = f"{{group: {_quoted(target.group)}, kind: {target.kind}, name: {target.name}}}"
    why = Message(
        field,
        f" refers to {target}, and namespace {target.namespace} does not grant that to {dependant.kind} of namespace "
        f"{dependant.namespace}: refer to the own namespace, or let an administrator of {target.namespace} create a "
        f"ReferenceGrant there, with from: [{source}] and to: [{wanted}]",
    )
    return ReferenceNotGranted(why, (BlockingLink(target, str(why)),))


def _quoted(group: str) -> str:
    return group or '""'
