"""Which cluster, which part of it, and what a process keeps of it in memory."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from setpoint.clients.kube_endpoints import Form
from setpoint.clients.kubernetes import KubernetesClient
from setpoint.engine.kind import AnyKind
from setpoint.engine.ports import Clock
from setpoint.errors import ManifestInvalid
from setpoint.stores.kubernetes.cache import Cache
from setpoint.stores.kubernetes.definitions import plural_of
from setpoint.stores.kubernetes.served import ServedKind, Territory
from setpoint.stores.kubernetes.store import KubernetesStore

SCHEME: Final = "kubernetes"
# Where `setpoint install` puts the pods, and so their leases; a pod is told its own by its manifest.
SYSTEM_NAMESPACE: Final = "setpoint-system"
POD_NAMESPACE: Final = "POD_NAMESPACE"


@dataclass(frozen=True, slots=True)
class Whereabouts:
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


def whereabouts(url: str) -> Whereabouts:
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
    return Whereabouts(context or None, namespace or None)


def place_of(url: str, environment: Mapping[str, str]) -> Whereabouts:
    """The same for a process that is in a pod, or is told that it is."""
    return replace(whereabouts(url), own=environment.get(POD_NAMESPACE) or None)


def open_kubernetes(
    place: Whereabouts, client: KubernetesClient, kinds: Iterable[AnyKind], clock: Clock, *, lasting: bool
) -> KubernetesStore:
    """The store. A process that is `lasting` keeps what it watches in memory, and hears of Secrets without reading any.

    Any other wants to know whether one is there: its leases may be those for one namespace, or for all of them. Nothing
    is asked of the cluster yet.
    """
    also = () if lasting or place.leases == SYSTEM_NAMESPACE else (SYSTEM_NAMESPACE,)
    territory = Territory(served_kinds(kinds, lasting=lasting), place.leases, place.namespace, also)
    return KubernetesStore(client, clock, territory, Cache() if lasting else None)


def served_kinds(kinds: Iterable[AnyKind], *, lasting: bool) -> Mapping[tuple[str, str], ServedKind]:
    """The kinds, and Secrets: of those only metadata is watched, and one is read when a resource names it."""
    secret = ServedKind("", "v1", "Secret", "secrets", Form.METADATA if lasting else Form.WHOLE, listed=lasting)
    ours = (ServedKind(kind.group, kind.version, kind.name, plural_of(kind)) for kind in kinds)
    return {kind.name: kind for kind in (*ours, secret)}
