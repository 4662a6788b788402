"""Tenancy of a shared store: on whose behalf a resource is reconciled, and what that tenant may reach.

A store in a cluster has many tenants: the authors of one namespace are one tenant. An embedded store belongs to one
person, and has no tenancy: then every kind acts as the process itself.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeAlias, runtime_checkable

from setpoint.core.unstructured import GroupKind
from setpoint.engine.kind import AnyKind
from setpoint.engine.resource import Resource, ResourceRef

# The ServiceAccount of a namespace that its tenant's requests are sent as, unless the spec names another one.
DEFAULT_SERVICE_ACCOUNT: Final = "setpoint"
# Bound kinds are kept for so many tenants at once.
_MAX_BOUND: Final = 1000
Kinds: TypeAlias = Mapping[GroupKind, AnyKind]


@dataclass(frozen=True, slots=True)
class Tenant:
    """The tenant of a namespace, and what an administrator gave it."""

    namespace: str
    # The Google project of the namespace; None where resources may name any.
    project: str | None = None
    # The Google service account that is impersonated for the tenant; empty for the identity of the process.
    google_account: str = ""


@runtime_checkable
class SupportsTenants(Protocol):
    """A kind that can act on behalf of a tenant."""

    def for_tenant(self, tenant: Tenant) -> AnyKind:
        """The kind, bound to the tenant: each of its requests is sent as that tenant, or refused."""
        ...


class ReferencePolicy(Protocol):
    """Which references across namespaces are granted."""

    async def require_granted(self, dependant: ResourceRef, target: ResourceRef, field: str) -> Resource | None:
        """ReferenceNotGranted unless the namespace of `target` lets `dependant` refer to it.

        The grant that does; None within one namespace, where none is needed.
        """
        ...


@dataclass(slots=True)
class Tenancy:
    """The tenants of a shared store."""

    # The tenant of a namespace, as the administrator set it up.
    tenant_of: Callable[[str], Awaitable[Tenant]]
    references: ReferencePolicy
    # By tenant and identity of the mapping, which is kept with its bound kinds.
    _bound: dict[tuple[Tenant, int], tuple[Kinds, Kinds]] = field(default_factory=dict)

    async def kinds_for(self, namespace: str, kinds: Kinds) -> Kinds:
        """The kinds, bound to the tenant of `namespace`."""
        tenant = await self.tenant_of(namespace)
        found = self._bound.get((tenant, id(kinds)))
        if found is None:
            if len(self._bound) >= _MAX_BOUND:
                self._bound.clear()
            found = kinds, {name: _bind(kind, tenant) for name, kind in kinds.items()}
            self._bound[tenant, id(kinds)] = found
        return found[1]


def _bind(kind: AnyKind, tenant: Tenant) -> AnyKind:
    return kind.for_tenant(tenant) if isinstance(kind, SupportsTenants) else kind
