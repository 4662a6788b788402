"""Opens a Kubernetes store: which cluster and namespace its address names, and which kinds it serves and caches."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final, NamedTuple

from msgspec import structs

from setpoint.clients.kubernetes.client import KubernetesClient
from setpoint.clients.kubernetes.requests import Representation
from setpoint.clients.kubernetes.service_accounts import ServiceAccountClients
from setpoint.core.unstructured import GroupKind, plural_name
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.engine.kind import DescribedType
from setpoint.engine.owner import SECRETS, ObjectKind
from setpoint.engine.ports import Clock
from setpoint.engine.tenancy.reference_grants import REFERENCE_GRANT
from setpoint.engine.tenancy.tenants import NAMESPACE
from setpoint.errors import ManifestInvalid
from setpoint.stores.kubernetes.cache import ObjectCache
from setpoint.stores.kubernetes.crds import CommonStatus, engine_status_fields, plural_of
from setpoint.stores.kubernetes.served_kinds import ClusterScope, ServedKind
from setpoint.stores.kubernetes.store import KubernetesStore
from setpoint.stores.manifest_types import ManifestTypes, manifest_types

SCHEME: Final = "kubernetes"
# The namespace of the pods that `setpoint install` creates, and so of their leases; a pod gets it from its manifest.
SYSTEM_NAMESPACE: Final = "setpoint-system"
POD_NAMESPACE: Final = "POD_NAMESPACE"
NO_VERSIONS: Final[Mapping[str, Collection[str]]] = MappingProxyType({})
# Their annotations say what a tenant was given.
_NAMESPACES: Final = ObjectKind(NAMESPACE[0], "v1", NAMESPACE[1], "namespaces", is_namespaced=False)


@dataclass(frozen=True, slots=True)
class ClusterAddress:
    """A cluster, by the name of its context or the current one; the whole of it, or one namespace.

    A process for one namespace has its leases there: processes for different namespaces do not share shards.
    """

    context: str | None = None
    namespace: str | None = None
    # The namespace of the leases, if it is given.
    own: str | None = None

    @property
    def leases(self) -> str:
        """The namespace of the leases."""
        return self.own or self.namespace or SYSTEM_NAMESPACE


def parse_cluster_address(url: str) -> ClusterAddress:
    """The cluster that a store address names; ManifestInvalid for an address that is not valid.

    `kubernetes`, `kubernetes://CONTEXT`, and either with `?namespace=NAMESPACE` after it.
    """
    address, mark, setting = url.partition("?")
    scheme, colon, context = address.partition("://")
    name, _, namespace = setting.partition("=")
    if scheme != SCHEME or (mark and (name != "namespace" or not namespace)) or (colon and not context and not mark):
        raise ManifestInvalid(
            f"the store {url!r} is none we know: write kubernetes, kubernetes://CONTEXT, "
            "or either with ?namespace=NAMESPACE after it"
        )
    return ClusterAddress(context or None, namespace or None)


def cluster_address_in(url: str, environment: Mapping[str, str]) -> ClusterAddress:
    """The same for a process in a pod, by its environment."""
    return replace(parse_cluster_address(url), own=environment.get(POD_NAMESPACE) or None)


class CataloguedKinds(NamedTuple):
    """The versions of kinds of which a cluster may serve any, and the manifests of them and of all others."""

    versions: Mapping[GroupKind, str] = MappingProxyType({})
    # Those of the kinds that the store is opened with, if there are none.
    types: ManifestTypes | None = None


NO_KINDS: Final = CataloguedKinds()


def open_kubernetes(
    place: ClusterAddress,
    client: KubernetesClient,
    kinds: Iterable[DescribedType | ObjectKind],
    clock: Clock,
    *,
    long_running: bool,
    accounts: ServiceAccountClients | None = None,
    catalogued: CataloguedKinds = NO_KINDS,
) -> KubernetesStore:
    """The store. A `long_running` process caches what it watches, and watches the metadata of Secrets only.

    Any other reads leases to see whether a controller runs: those of its namespace, and those of the whole cluster.
    With `accounts`, it acts for tenants. Of the `catalogued` kinds a command reaches those that the cluster serves, and
    a long-running process says so when it comes to serve one. Nothing is requested from the cluster yet.
    """
    also = () if long_running or place.leases == SYSTEM_NAMESPACE else (SYSTEM_NAMESPACE,)
    kinds = tuple(kinds)
    served = served_kinds(kinds, place.namespace, long_running=long_running)
    others = {name: version for name, version in catalogued.versions.items() if name not in served}
    cluster_scope = ClusterScope(
        served if long_running else {**catalogued_kinds(others), **served},
        place.leases,
        place.namespace,
        also,
        manifest_types((*kinds, SECRETS)) if catalogued.types is None else catalogued.types,
        _by_api_version(others) if long_running else NO_VERSIONS,
    )
    cache = ObjectCache((REFERENCE_GRANT,)) if long_running else None
    return KubernetesStore(client, clock, cluster_scope, cache, accounts)


def catalogued_kinds(versions: Mapping[GroupKind, str]) -> dict[GroupKind, ServedKind]:
    """Kinds of the catalogue by their versions alone: each is asked for by name, or listed once it is discovered."""
    fields = tuple(one.encode_name for one in structs.fields(CommonStatus))
    return {
        (group, kind): ServedKind(
            group,
            version,
            kind,
            plural_name(kind),
            listed=False,
            is_optional=True,
            status_fields=fields,
            is_discovered=True,
        )
        for (group, kind), version in versions.items()
    }


def _by_api_version(versions: Mapping[GroupKind, str]) -> Mapping[str, Collection[str]]:
    found: dict[str, set[str]] = {}
    for (group, kind), version in versions.items():
        found.setdefault(f"{group}/{version}", set()).add(kind)
    return found


def served_kinds(
    kinds: Iterable[DescribedType | ObjectKind], namespace: str | None = None, *, long_running: bool
) -> dict[GroupKind, ServedKind]:
    """The kinds with a definition of ours, in `namespace` or everywhere; Namespaces; and those of objects, as Secrets.

    Of the latter only metadata is watched; an object is read when a resource references it. A command, which watches
    none of them, may read Secrets whatever the kinds are.
    """
    served: dict[GroupKind, ServedKind] = {}
    secrets = () if long_running else (SECRETS,)
    # A kind with a controller stays one when an owner generates it as well.
    for one in sorted((*secrets, _NAMESPACES, *kinds), key=lambda one: not isinstance(one, ObjectKind)):
        if isinstance(one, ObjectKind):
            kind = _uncached_kind(one, namespace, long_running=long_running)
        else:
            # A type without a status is no resource: a command reads it by name or namespace.
            listed = long_running or one.definition.has_status
            # A cluster may have the CRDs of some kinds only.
            kind = ServedKind(
                one.group,
                one.version,
                one.name,
                plural_of(one),
                listed=listed,
                is_optional=True,
                status_fields=engine_status_fields(one),
            )
        served[kind.name] = kind
    return served


def _uncached_kind(kind: ObjectKind, namespace: str | None, *, long_running: bool) -> ServedKind:
    # A process for one namespace has no permission to watch cluster-scoped kinds.
    listed = long_running and (kind.is_namespaced or namespace is None)
    form = Representation.METADATA if long_running else Representation.WHOLE
    return ServedKind(kind.group, kind.version, kind.kind, kind.plural, form, listed, kind.is_namespaced)
