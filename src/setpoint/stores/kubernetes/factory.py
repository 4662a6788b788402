"""Opens a Kubernetes store: which cluster and namespace its address names, and which kinds it serves and caches."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from setpoint.clients.kubernetes.client import KubernetesClient
from setpoint.clients.kubernetes.requests import Representation
from setpoint.engine.kind import ResourceType
from setpoint.engine.owner import ObjectKind
from setpoint.engine.ports import Clock
from setpoint.errors import ManifestInvalid
from setpoint.stores.kubernetes.cache import ObjectCache
from setpoint.stores.kubernetes.crds import plural_of
from setpoint.stores.kubernetes.served_kinds import ClusterScope, ServedKind
from setpoint.stores.kubernetes.store import KubernetesStore

SCHEME: Final = "kubernetes"
# Where `setpoint install` puts the pods, and so their leases; a pod is told its own by its manifest.
SYSTEM_NAMESPACE: Final = "setpoint-system"
POD_NAMESPACE: Final = "POD_NAMESPACE"
_SECRETS: Final = ObjectKind("", "v1", "Secret", "secrets")


@dataclass(frozen=True, slots=True)
class ClusterAddress:
    """A cluster, by the name of its context or the current one; the whole of it, or one namespace.

    Whoever looks after one namespace has its leases there: two that look after different ones do not share the work.
    """

    context: str | None = None
    namespace: str | None = None
    # Where the leases are, if that is said.
    own: str | None = None

    @property
    def leases(self) -> str:
        """Where the leases are."""
        return self.own or self.namespace or SYSTEM_NAMESPACE


def parse_cluster_address(url: str) -> ClusterAddress:
    """The cluster that a store's address means; ManifestInvalid for one that means none.

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
    """The same for a process that is in a pod, or is told that it is."""
    return replace(parse_cluster_address(url), own=environment.get(POD_NAMESPACE) or None)


def open_kubernetes(
    place: ClusterAddress,
    client: KubernetesClient,
    kinds: Iterable[ResourceType | ObjectKind],
    clock: Clock,
    *,
    lasting: bool,
) -> KubernetesStore:
    """The store. A process that is `lasting` keeps what it watches in memory, and hears of Secrets without reading any.

    Any other wants to know whether one is there: its leases may be those for one namespace, or for all of them. Nothing
    is asked of the cluster yet.
    """
    also = () if lasting or place.leases == SYSTEM_NAMESPACE else (SYSTEM_NAMESPACE,)
    cluster_scope = ClusterScope(
        served_kinds(kinds, place.namespace, lasting=lasting), place.leases, place.namespace, also
    )
    return KubernetesStore(client, clock, cluster_scope, ObjectCache() if lasting else None)


def served_kinds(
    kinds: Iterable[ResourceType | ObjectKind], namespace: str | None = None, *, lasting: bool
) -> Mapping[tuple[str, str], ServedKind]:
    """The kinds that are looked after, in `namespace` or everywhere; Secrets; and those that owners make or read.

    Of the latter and of Secrets only metadata is watched, and one is read when a resource names it.
    """
    served: dict[tuple[str, str], ServedKind] = {}
    # What is looked after stays so when an owner makes it as well.
    for one in sorted((_SECRETS, *kinds), key=lambda one: not isinstance(one, ObjectKind)):
        if isinstance(one, ObjectKind):
            kind = _uncached_kind(one, namespace, lasting=lasting)
        else:
            kind = ServedKind(one.group, one.version, one.name, plural_of(one))
        served[kind.name] = kind
    return served


def _uncached_kind(kind: ObjectKind, namespace: str | None, *, lasting: bool) -> ServedKind:
    # Whoever looks after one namespace has no right to watch what is in none.
    listed = lasting and (kind.is_namespaced or namespace is None)
    form = Representation.METADATA if lasting else Representation.WHOLE
    return ServedKind(kind.group, kind.version, kind.kind, kind.plural, form, listed, kind.is_namespaced)
