"""Tenancy of a shared store: on whose behalf a resource is reconciled, and what that tenant may reach.

A store in a cluster has many tenants: the authors of one namespace are one tenant. An embedded store belongs to one
person, and has no tenancy: then every kind acts as the process itself. What a tenant is given stands in annotations
of its Namespace, which an administrator writes and a tenant cannot.
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field
from enum import StrEnum
from functools import partial
from typing import Final, Protocol, TypeAlias, runtime_checkable

from setpoint.core.schema import annotations as known_annotations
from setpoint.core.unstructured import GroupKind
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.deferred_mapping import DeferredMapping
from setpoint.engine.kind import AnyKind
from setpoint.engine.ports import Clock
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.errors import RemoteRefused, StoreError, TenantInvalid

# The ServiceAccount of a namespace that its tenant's requests are sent as, unless the spec names another one.
DEFAULT_SERVICE_ACCOUNT: Final = "setpoint"
_SERVICE_ACCOUNT_FORM: Final = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
# Bound kinds are kept for so many tenants at once.
_MAX_BOUND: Final = 1000
Kinds: TypeAlias = Mapping[GroupKind, AnyKind]


def is_service_account_name(name: str) -> bool:
    """Whether a ServiceAccount can have that name."""
    return _SERVICE_ACCOUNT_FORM.fullmatch(name) is not None


class TenancyMode(StrEnum):
    """How far the tenants of a shared store are kept apart."""

    # The resources of a namespace are in the Google project of that namespace.
    STRICT = "strict"
    # All namespaces belong to one tenant: resources may name any project.
    SINGLE = "single"


# On a resource, the project that it is in; on a Namespace, that of all its resources. Config Connector's.
PROJECT_ID: Final = known_annotations.PROJECT_ID
# On a Namespace: the service account that is impersonated for its tenant.
GOOGLE_ACCOUNT: Final = known_annotations.GOOGLE_ACCOUNT
# On a Namespace: other projects with networks that its resources may name, as those of a Shared VPC.
SHARED_PROJECTS: Final = known_annotations.SHARED_PROJECTS
# The ID of a Google project, with the domain of its organization in front where it has one.
PROJECT_PATTERN: Final = r"(?:[a-z0-9][a-z0-9.-]*:)?[a-z0-9][a-z0-9-]*"
# A number is that of a project, not its ID.
_PROJECT_FORM: Final = re.compile(rf"(?![0-9]+\Z){PROJECT_PATTERN}")
_ACCOUNT_FORM: Final = re.compile(r"[a-z0-9][a-z0-9-]*@([a-z0-9][a-z0-9-]*\.)+gserviceaccount\.com")


@dataclass(frozen=True, slots=True)
class Tenant:
    """The tenant of a namespace, and what an administrator gave it."""

    namespace: str
    # The Google project of the namespace; None where resources may name any.
    project: str | None = None
    # The Google service account that is impersonated for the tenant; empty for the identity of the process.
    google_account: str = ""
    # The project of resources that name none; empty for the one that is named like the namespace.
    default_project: str = ""
    # Other projects whose objects the resources of the namespace may refer to.
    shared_projects: frozenset[str] = frozenset()


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
            found = kinds, DeferredMapping({name: partial(_bind, kinds, name, tenant) for name in kinds})
            self._bound[tenant, id(kinds)] = found
        return found[1]


def _bind(kinds: Kinds, name: GroupKind, tenant: Tenant) -> AnyKind:
    kind = kinds[name]
    return kind.for_tenant(tenant) if isinstance(kind, SupportsTenants) else kind


# --- What an administrator set up -------------------------------------------------------------------------------------

NAMESPACE: Final[GroupKind] = ("", "Namespace")
# How long a Namespace that is not watched counts as unchanged.
NAMESPACE_SECONDS: Final = 30.0


def namespace_ref(name: str) -> ResourceRef:
    """The Namespace of that name, as a store in a cluster has it."""
    return ResourceRef(*NAMESPACE, "", name)


def tenant_from(namespace: Resource, mode: TenancyMode) -> Tenant:
    """The tenant that the annotations of a Namespace describe; TenantInvalid for one that cannot be meant.

    Without an annotation, the project is named like the namespace, as Config Connector has it.
    """
    name, annotations = namespace.ref.name, namespace.annotations
    project, account = annotations.get(PROJECT_ID, ""), annotations.get(GOOGLE_ACCOUNT, "")
    shared = [one.strip() for one in annotations.get(SHARED_PROJECTS, "").split(",") if one.strip()]
    given = ((PROJECT_ID, project), (GOOGLE_ACCOUNT, account), *((SHARED_PROJECTS, one) for one in shared))
    for annotation, text in given:
        if text and not is_valid(annotation, text):
            raise TenantInvalid(
                f"the annotation {annotation} of Namespace {name} is {text!r}, which is {PROBLEMS[annotation]}: an "
                "administrator corrects it"
            )
    only = (project or name) if mode is TenancyMode.STRICT else None
    return Tenant(name, only, account, project, frozenset(shared))


def is_valid(annotation: str, text: str) -> bool:
    """Whether `text` can be the value of an annotation of a Namespace, or one of several with commas in between."""
    return (_ACCOUNT_FORM if annotation == GOOGLE_ACCOUNT else _PROJECT_FORM).fullmatch(text) is not None


# What is wrong with a value that is not valid.
PROBLEMS: Final = {
    PROJECT_ID: "no ID of a project",
    GOOGLE_ACCOUNT: "no e-mail address of a service account",
    SHARED_PROJECTS: "no list of project IDs with commas in between",
}


@dataclass(slots=True)
class NamespaceTenants:
    """The tenants of a store, by the annotations of its Namespaces.

    `read` gives a Namespace, and costs no request where they are watched; elsewhere one is read again after `seconds`.
    """

    read: Callable[[ResourceRef], Awaitable[Resource | None]]
    mode: TenancyMode
    clock: Clock
    seconds: float = NAMESPACE_SECONDS
    # Each with the time until which it counts as unchanged.
    _known: dict[str, tuple[Tenant, float]] = field(default_factory=dict)

    async def tenant_of(self, namespace: str) -> Tenant:
        """The tenant of a namespace; TenantInvalid when its Namespace is not there, or may not be read."""
        now = self.clock.monotonic()
        tenant, valid_until = self._known.get(namespace, (None, now))
        if tenant is not None and now < valid_until:
            return tenant
        tenant = tenant_from(await self._namespace(namespace), self.mode)
        if self.seconds > 0:
            if len(self._known) >= _MAX_BOUND:
                self._known.clear()
            self._known[namespace] = tenant, now + self.seconds
        return tenant

    async def _namespace(self, name: str) -> Resource:
        try:
            found = await self.read(namespace_ref(name))
        except (StoreError, RemoteRefused) as error:
            if not isinstance(error, RemoteRefused) and not isinstance(error.__cause__, RemoteRefused):
                raise
            raise TenantInvalid(
                f"Namespace {name} may not be read, and with it not the Google project of its resources: {error}. An "
                "administrator allows `get` on it"
            ) from error
        if found is None:
            raise TenantInvalid(f"Namespace {name} does not exist: resources are kept in one that does")
        return found
