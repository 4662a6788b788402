"""A store in a cluster: its client, its tenants, and the clients that act for them."""

import logging
from collections.abc import Collection, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit

from setpoint.app.kinds import catalogue_versions, named_kind, select_kinds, types_of_manifests
from setpoint.app.settings import DIRECT_WIRING, STORE, AppSettings, ClientWiring, StoreAccess, history_limits
from setpoint.clients.http import HttpClient
from setpoint.clients.http_transport import limits_from
from setpoint.clients.sockets import AddressPolicy, address_policy
from setpoint.core.unstructured import GroupKind
from setpoint.core.values.deferred_dataclass import replace
from setpoint.engine.claims.object_claims import OWN
from setpoint.engine.kind import ResourceType
from setpoint.engine.owner import SECRETS, Owner, refers_to_secrets
from setpoint.engine.ports import Store
from setpoint.engine.requeue import error_backoff
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.engine.tenancy.reference_grants import REFERENCE_GRANT, GrantedReferences, ReferenceGrantType
from setpoint.engine.tenancy.tenants import (
    NAMESPACE_SECONDS,
    NamespaceTenants,
    ReferencePolicy,
    Tenancy,
    TenancyMode,
    Tenant,
)
from setpoint.errors import RemoteUnavailable
from setpoint.kinds.kubernetes_object.clusters import OBJECTS, Clusters

if TYPE_CHECKING:
    from setpoint.clients.kubernetes.client import KubernetesClient
    from setpoint.clients.kubernetes.service_accounts import ServiceAccountClients
    from setpoint.stores.kubernetes.store import KubernetesStore


_log: Final = logging.getLogger(__name__)


class OpenedStore(NamedTuple):
    """A store, and its tenants; None for a store that belongs to one person."""

    store: Store
    tenancy: Tenancy | None = None


def open_cluster_store(
    settings: AppSettings,
    access: StoreAccess,
    wiring: ClientWiring,
    clusters: Clusters,
    resource_types: Mapping[GroupKind, ResourceType],
) -> OpenedStore:
    """The store of a cluster; from now on `clusters` reaches that cluster, too. To be closed with `clusters.own`."""
    client = _cluster_client(settings, wiring, STORE, clusters)
    clusters.counted(client.http.counts)
    own = client if wiring is DIRECT_WIRING else _cluster_client(settings, wiring, OWN, clusters)
    # Calls for objects have budgets of their own: what a tenant makes fail does not slow down the store.
    clusters.own = own.in_scope(OBJECTS)
    clusters.addresses = _tenant_addresses(settings, client)
    clusters.accounts = _accounts(settings, client, access)
    clusters.own_kinds, clusters.default_cluster = {*resource_types, REFERENCE_GRANT}, OWN
    store = _open_cluster(settings, client, resource_types, access, clusters.accounts)
    references = GrantedReferences(partial(store.all_in, kind=REFERENCE_GRANT))
    return OpenedStore(store, _tenancy(store, settings.tenancy, settings, access, references))


def recorded_tenancy(
    recorded: Store, wiring: ClientWiring, settings: AppSettings, access: StoreAccess
) -> Tenancy | None:
    """The tenants of a recorded world; of one that was recorded in a cluster before there were any, by name alone."""
    references = _EveryReference()
    if wiring.recorded_tenancy is not None:
        return _tenancy(recorded, wiring.recorded_tenancy, settings, access, references)
    return Tenancy(_tenant_by_name, references) if wiring.cluster == OWN else None


def _tenancy(
    store: Store, mode: TenancyMode, settings: AppSettings, access: StoreAccess, references: ReferencePolicy
) -> Tenancy:
    from setpoint.stores.kubernetes.factory import cluster_address_in

    # A process for the whole cluster watches Namespaces; any other reads those that it needs now and then.
    is_watched = access is StoreAccess.RUN and cluster_address_in(settings.store, {}).namespace is None
    tenants = NamespaceTenants(store.get, mode, settings.clock, 0.0 if is_watched else NAMESPACE_SECONDS)
    return Tenancy(tenants.tenant_of, references)


def _cluster_client(settings: AppSettings, wiring: ClientWiring, name: str, clusters: Clusters) -> "KubernetesClient":
    # Imported here: only a store in a cluster needs it.
    from setpoint.clients.kubernetes.client import KubernetesClient
    from setpoint.clients.kubernetes.contexts import connection_from_environment
    from setpoint.stores.kubernetes.factory import parse_cluster_address

    connection = connection_from_environment(settings.environment, parse_cluster_address(settings.store).context)
    http = HttpClient(connection.proxy, wiring.interceptor(name), limits=limits_from(settings.environment))
    return KubernetesClient(connection, http=http, budgets=clusters.budgets)


def open_cluster_client(settings: AppSettings, token: str | None = None) -> "KubernetesClient":
    """A client of the cluster of the store: as this process, or with the bearer token of a user alone. To be closed."""
    from setpoint.clients.kubernetes.client import KubernetesClient
    from setpoint.clients.kubernetes.contexts import connection_from_environment
    from setpoint.clients.kubernetes.kubeconfig import BearerToken, InlineText
    from setpoint.stores.kubernetes.factory import parse_cluster_address

    connection = connection_from_environment(settings.environment, parse_cluster_address(settings.store).context)
    if token is not None:
        # Nothing of the process' own identity is left.
        connection = replace(connection, login=BearerToken(InlineText(token)), certificate=None, impersonation=None)
    http = HttpClient(connection.proxy, limits=limits_from(settings.environment))
    return KubernetesClient(connection, http=http)


def cluster_url(settings: AppSettings) -> str:
    """The URL of the store with the context that it stands for: the current one, where it names none.

    Without a kubeconfig, as in a pod, it stays as it is.
    """
    from setpoint.clients.kubernetes.contexts import current_context
    from setpoint.stores.kubernetes.factory import parse_cluster_address

    if parse_cluster_address(settings.store).context is not None:
        return settings.store
    context = current_context(settings.environment)
    return settings.store if context is None else settings.store.replace("kubernetes", f"kubernetes://{context}", 1)


def cluster_namespaces(settings: AppSettings) -> tuple[str | None, str]:
    """The only namespace of the store, None for all of them; and that of the leases."""
    from setpoint.stores.kubernetes.factory import cluster_address_in

    address = cluster_address_in(settings.store, settings.environment)
    return address.namespace, address.leases


def _tenant_addresses(settings: AppSettings, client: "KubernetesClient") -> AddressPolicy:
    """Where the servers may be that tenants name."""
    own_host = urlsplit(client.connection.server).hostname or ""
    return address_policy(
        settings.environment, settings.allowed_addresses, settings.denied_addresses, own_host=own_host
    )


def _open_cluster(
    settings: AppSettings,
    client: "KubernetesClient",
    resource_types: Mapping[GroupKind, ResourceType],
    access: StoreAccess,
    accounts: "ServiceAccountClients | None",
) -> "KubernetesStore":
    from setpoint.stores.kubernetes.factory import CataloguedKinds, cluster_address_in, open_kubernetes

    address, versions = cluster_address_in(settings.store, settings.environment), catalogue_versions()
    # A command reaches any kind of the catalogue, and loads those that it meets; a controller has a list of its own.
    names = resource_types if access is StoreAccess.RUN else [name for name in resource_types if name not in versions]
    handled = [resource_types[name] for name in select_kinds(settings.kinds, names)]
    # RBAC on the kinds that owners make and read, and on Secrets, is there only where they are needed.
    related = {one for owner in handled if isinstance(owner, Owner) for one in (*owner.makes, *owner.reads)}
    if any(map(refers_to_secrets, handled)):
        related.add(SECRETS)
    store = open_kubernetes(
        address,
        client,
        (*handled, *related, ReferenceGrantType()),
        settings.clock,
        long_running=access is StoreAccess.RUN,
        accounts=accounts,
        catalogued=CataloguedKinds({} if settings.kinds else versions, types_of_manifests(resource_types)),
    )
    entries, days = history_limits(settings.environment)
    store.kept_history.limits = replace(store.kept_history.limits, per_resource=entries, days=days)
    return store


async def handled_catalogue(settings: AppSettings, wiring: ClientWiring, clusters: Clusters) -> Collection[GroupKind]:
    """The kinds of the catalogue that a controller handles: those that `--kinds` names, else those that are served.

    It waits for a cluster that does not answer, as its watches do.
    """
    from setpoint.clients.kubernetes.discovery import Discovery
    from setpoint.stores.kubernetes.served_kinds import served_names

    known = catalogue_versions()
    if settings.kinds:
        return {name for name in (named_kind(word, known) for word in settings.kinds) if name is not None}
    client, backoff = _cluster_client(settings, wiring, STORE, clusters), error_backoff()
    try:
        # A mistake in an option ends the process at once, whether or not the cluster answers.
        _tenant_addresses(settings, client)
        while True:
            try:
                return known.keys() & await served_names(Discovery(client))
            except RemoteUnavailable as error:
                delay = backoff.next()
                _log.warning("kinds not found", extra={"why": str(error), "seconds": round(delay, 3)})
                await settings.clock.sleep(delay)
    finally:
        await client.close()


def _accounts(settings: AppSettings, client: "KubernetesClient", access: StoreAccess) -> "ServiceAccountClients | None":
    """How a controller acts for tenants, and plans for them; None for a command, which acts as its user."""
    if access not in (StoreAccess.RUN, StoreAccess.PREVIEW):
        return None
    from setpoint.clients.kubernetes.service_accounts import ServiceAccountClients
    from setpoint.stores.kubernetes.factory import parse_cluster_address

    return ServiceAccountClients(client, may_be_own=parse_cluster_address(settings.store).namespace is not None)


async def _tenant_by_name(namespace: str) -> Tenant:
    return Tenant(namespace)


class _EveryReference:
    """For a recorded world: what it was recorded of had its references granted, or blocked."""

    async def require_granted(self, dependant: ResourceRef, target: ResourceRef, field: str) -> Resource | None:
        """See ReferencePolicy."""
        return None
