"""Where an object is: its cluster, its name there, and the clients that reach clusters, created on first use.

A cluster has an ID that is safe to store: `own:NAMESPACE/ACCOUNT` (the cluster that stores the resource, as one of its
ServiceAccounts), `in-cluster`, `context:NAME`, or `secret:NAMESPACE/NAME/KEY`, with `/CONTEXT` appended where one is
selected. Versions before had `own` alone. A kubeconfig from a Secret stays in memory.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from dataclasses import field
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from msgspec import UNSET

from setpoint.clients.kubernetes.watched_objects import WatchedObjects
from setpoint.core.unstructured import GroupKind
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.engine.claims.object_claims import ACCOUNT_PREFIX, OWN
from setpoint.engine.kind import ResolvedReferences, SecretKeyReference
from setpoint.engine.references import secret_value
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.errors import DependencyNotFound, ManifestInvalid, NotRecorded, RemoteRefused, UserError
from setpoint.kinds.kubernetes_object.location import SECRET_PREFIX, ObjectLocation

if TYPE_CHECKING:
    from setpoint.clients.http import HttpClient, HttpInterceptor
    from setpoint.clients.http_transport import HeldBytes, TenantQuota
    from setpoint.clients.kubernetes.client import KubernetesClient
    from setpoint.clients.kubernetes.discovery import ApiResource, Discovery
    from setpoint.clients.kubernetes.kubeconfig import ClusterConnection
    from setpoint.clients.kubernetes.service_accounts import ServiceAccountClients
    from setpoint.clients.ratelimit.limiter import QuotaBudgets
    from setpoint.clients.sockets import AddressPolicy
    from setpoint.kind.typed_spec import SecretKeyRef
    from setpoint.kinds.kubernetes_object.spec import ClusterSpec, KubernetesObjectSpec

# How many clusters that tenants named are connected at once, of all namespaces and of one; and how much of their
# unfinished responses is held, of one namespace.
_MAX_CLUSTERS, _MAX_OF_NAMESPACE = 100, 20
_MAX_HELD: Final = 16 * 2**20
# In characters.
_LONGEST_KUBECONFIG: Final = 256 * 1024


IN_CLUSTER: Final = "in-cluster"
_CONTEXT: Final = "context:"
# Where none is named, and which one is the default could not be found out.
_DEFAULT: Final = ""
SERVICE_ACCOUNT: Final = "spec.serviceAccountName"
KUBECONFIG: Final = "spec.cluster.kubeconfig"
# The scope of the call budgets for objects in the cluster that stores the resources, apart from those of the store.
OBJECTS: Final = "objects"
_LONGEST_NAME: Final = 100
ReadSecret = Callable[[ResourceRef], Awaitable[Resource | None]]
ClientRequestCounts = Counter[tuple[str, str, str]]


async def _no_secret(_ref: ResourceRef) -> Resource | None:
    """Finds no Secret."""
    return None


def _uncounted(_counts: ClientRequestCounts) -> None:
    """Ignores the request counts of a client."""


def _no_interceptor(_cluster: str) -> None:
    """Intercepts no requests."""


@dataclass(frozen=True, slots=True)
class ClusterAccess:
    """The client of a cluster, and the discovery of the kinds that it serves."""

    client: "KubernetesClient"
    discovery: "Discovery"


@dataclass(slots=True)
class Clusters:
    """The clients of all clusters that resources refer to. `close` closes those that were created here."""

    environment: Mapping[str, str] = field(default_factory=dict)
    # The client of the cluster that stores the resources, if one does: closed by its creator.
    own: "KubernetesClient | None" = None
    # The kinds that this cluster is taken to serve, by apiVersion and kind, until a call shows otherwise.
    assumed: "Mapping[tuple[str, str], ApiResource]" = field(default_factory=dict)
    # Clients of that cluster that act as ServiceAccounts of tenants; None for a command, which acts as its user.
    accounts: "ServiceAccountClients | None" = None
    # The kinds that are reconciled from that cluster: no KubernetesObject stands for one of them there.
    own_kinds: Collection[GroupKind] = ()
    budgets: "QuotaBudgets | None" = None
    secret: ReadSecret = _no_secret
    # Where the servers of kubeconfigs in Secrets may be: for tenants of a cluster; None for a store of one person.
    addresses: "AddressPolicy | None" = None
    # Receives the request counts of each new client.
    counted: Callable[[ClientRequestCounts], None] = _uncounted
    # The interceptor of requests to a cluster, by the cluster's ID.
    interceptor: Callable[[str], "HttpInterceptor | None"] = _no_interceptor
    # The connection of every cluster in a replay: it reaches no server.
    recorded: "ClusterConnection | None" = None
    # Why clusters could not be opened, by their IDs: filled for a recording, and read in a replay.
    unopened: MutableMapping[str, str] | None = None
    # The ID of the default cluster, once it was needed.
    default_cluster: str = ""
    watched: WatchedObjects = field(default_factory=WatchedObjects)
    _accesses: dict[str, ClusterAccess] = field(default_factory=dict)
    # The text of each kubeconfig from a Secret, by cluster ID.
    _kubeconfigs: dict[str, str] = field(default_factory=dict, repr=False)
    # Access by a kubeconfig that has changed since; and clients to be closed once they are idle.
    _outdated: dict[str, ClusterAccess] = field(default_factory=dict)
    _unused: list["KubernetesClient"] = field(default_factory=list)
    # Clusters that tenants named: which are kept, their requests, and the responses held for each namespace.
    _quota: "TenantQuota | None" = None
    _counts: ClientRequestCounts | None = None
    _held: dict[str, "HeldBytes"] = field(default_factory=dict)

    def cluster_id_of(self, spec: "KubernetesObjectSpec", resource: Resource, resolved: ResolvedReferences) -> str:
        """The ID of the spec's cluster; a resolved kubeconfig is used from now on."""
        from setpoint.kind.typed_spec import field_invalid
        from setpoint.kinds.kubernetes_object.spec import ClusterSpec

        if spec.serviceAccountName:
            advice = "leave it out: here every request is sent with your own credentials"
            raise field_invalid(resource, SERVICE_ACCOUNT, f" is for resources that are kept in a cluster: {advice}")
        cluster = ClusterSpec() if spec.cluster is None or spec.cluster is UNSET else spec.cluster
        key, context = kubeconfig_key(cluster), cluster.context or ""
        if key is None:
            if cluster.inCluster:
                return IN_CLUSTER
            return f"{_CONTEXT}{context}" if context else self._default_cluster()
        return self.use_kubeconfig(key, context, resource, resolved)

    def require_target(self, location: ObjectLocation, resource: Resource) -> None:
        """Any object may be a target: there are no tenants."""

    def use_kubeconfig(
        self, key: "SecretKeyRef", context: str, resource: Resource, resolved: ResolvedReferences
    ) -> str:
        """The ID of a cluster with its kubeconfig in a Secret; a resolved kubeconfig is used from now on."""
        cluster_id = f"{SECRET_PREFIX}{resource.ref.namespace}/{key.name}/{key.key}" + (
            f"/{context}" if context else ""
        )
        text = resolved.secrets.get(KUBECONFIG)
        if text is not None and self._kubeconfigs.get(cluster_id) != self._kept_text(cluster_id, text):
            self._set_kubeconfig(cluster_id, text)
        return cluster_id

    async def connect(self, cluster_id: str) -> ClusterAccess:
        """The access to a cluster, created on first use; UserError for a cluster that is not configured."""
        await self._close_unused()
        if cluster_id.startswith(SECRET_PREFIX) and cluster_id not in self._kubeconfigs:
            self._set_kubeconfig(cluster_id, await self._read_kubeconfig(cluster_id))
        if cluster_id.startswith(ACCOUNT_PREFIX) and self.recorded is None:
            return await self._own_access(cluster_id)
        if self.accounts is not None and not cluster_id.startswith(SECRET_PREFIX):
            raise UserError(f"the cluster {cluster_id} is reached by the credentials of setpoint itself: none is yours")
        self._use(cluster_id)
        found = self._accesses.get(cluster_id)
        if found is None:
            found = self._accesses[cluster_id] = self._open(cluster_id, self._outdated.get(cluster_id))
            self._outdated.pop(cluster_id, None)
        return found

    async def _own_access(self, cluster_id: str) -> ClusterAccess:
        """The cluster that stores the resources, as a ServiceAccount; a command acts as its user."""
        shared = self._accesses.get(OWN)
        if shared is None:
            shared = self._accesses[OWN] = self._open(OWN, None)
        if self.accounts is None:
            return shared
        from setpoint.clients.kubernetes.service_accounts import ServiceAccountName

        account = ServiceAccountName(*cluster_id.removeprefix(ACCOUNT_PREFIX).split("/", 1))
        # Which kinds are served is the same for every user.
        return ClusterAccess(await self.accounts.acting_as(account), shared.discovery)

    async def close(self) -> None:
        """Closes the clients that were created here."""
        created = [
            access.client
            for cluster_id, access in (*self._accesses.items(), *self._outdated.items())
            if cluster_id != OWN
        ]
        for client in (*created, *self._unused):
            await client.close()
        self._accesses.clear()
        self._outdated.clear()
        self._unused.clear()

    def _default_cluster(self) -> str:
        """The ID of the default cluster, by the name of its context: the current context may change later."""
        if not self.default_cluster and self.own is not None:
            self.default_cluster = OWN
        if not self.default_cluster and self.recorded is not None:
            self._require_opened(_DEFAULT)
            raise NotRecorded("the default cluster was not asked for when this world was recorded")
        if not self.default_cluster:
            from setpoint.clients.kubernetes.contexts import current_context

            with self._noting_failure(_DEFAULT):
                context = current_context(self.environment)
            self.default_cluster = IN_CLUSTER if context is None else f"{_CONTEXT}{context}"
        return self.default_cluster

    @contextmanager
    def _noting_failure(self, cluster_id: str) -> Iterator[None]:
        """Keeps for a replay why a cluster cannot be opened."""
        try:
            yield
        except (UserError, RemoteRefused) as error:
            if self.unopened is not None:
                self.unopened[cluster_id] = str(error)
            raise

    def _require_opened(self, cluster_id: str) -> None:
        """UserError for a cluster that could not be opened when this world was recorded."""
        if self.unopened is not None and cluster_id in self.unopened:
            raise UserError(self.unopened[cluster_id])

    def _open(self, cluster_id: str, before: ClusterAccess | None) -> ClusterAccess:
        if self.recorded is not None:
            self._require_opened(_recorded_id(cluster_id))
        with self._noting_failure(_recorded_id(cluster_id)):
            return self._new_access(cluster_id, before)

    def _set_kubeconfig(self, cluster_id: str, text: str) -> None:
        """Replaces the kubeconfig: the former one is not used any more, even if the new one is invalid."""
        self._use(cluster_id)
        self._kubeconfigs[cluster_id] = self._kept_text(cluster_id, text)
        known = self._accesses.pop(cluster_id, None)
        if known is not None:
            self._outdated[cluster_id] = known

    def _new_access(self, cluster_id: str, before: ClusterAccess | None) -> ClusterAccess:
        """New access; after a change of the kubeconfig it keeps the open connections."""
        from setpoint.clients.kubernetes.client import KubernetesClient, route_of
        from setpoint.clients.kubernetes.discovery import Discovery

        if cluster_id == OWN and self.recorded is None:
            if self.own is None:
                raise ManifestInvalid(
                    "these resources were kept in the cluster that their objects are in, and are kept elsewhere now: "
                    "name the cluster in spec.cluster"
                )
            return ClusterAccess(self.own, Discovery(self.own, assumed=self.assumed))
        connection = self._connection(cluster_id)
        is_same_route = before is not None and route_of(before.client.connection) == route_of(connection)
        http = before.client.http if before is not None and is_same_route else None
        http = http or self._new_http(cluster_id, connection)
        scope = self._budget_scope(cluster_id)
        client = KubernetesClient(connection, http=http, budgets=self.budgets, budget_scope=scope)
        if before is None or http is not before.client.http:
            self._unused += [] if before is None else [before.client]
        return ClusterAccess(client, Discovery(client))

    def _budget_scope(self, cluster_id: str) -> str:
        """Whose calls those to a cluster are: of tenants, for each Secret apart; all are one person's otherwise."""
        if self.addresses is None:
            return ""
        if not cluster_id.startswith(SECRET_PREFIX):
            return OBJECTS
        namespace, name, key, context = _secret_parts(cluster_id)
        return f"{SECRET_PREFIX}{namespace}/{name}/{key}" + (
            f"/{quote(context, safe='')[:_LONGEST_NAME]}" if context else ""
        )

    def _new_http(self, cluster_id: str, connection: "ClusterConnection") -> "HttpClient":
        """A client; that of a cluster which a tenant named is within the limits of its namespace."""
        from setpoint.clients.http_transport import HeldBytes, limits_from
        from setpoint.clients.kubernetes.client import http_client_for

        interceptor = self.interceptor(_recorded_id(cluster_id))
        limits = limits_from(self.environment)
        if not self._is_of_tenant(cluster_id):
            http = http_client_for(connection, interceptor, limits)
            self.counted(http.counts)
            return http
        held = self._held.setdefault(_secret_parts(cluster_id)[0], HeldBytes(_MAX_HELD))
        http = http_client_for(connection, interceptor, limits.of_tenant(), held)
        if self._counts is None:
            self._counts = http.counts
            self.counted(self._counts)
        # One mapping for all of them: such clients come and go.
        http.counts = self._counts
        return http

    def _is_of_tenant(self, cluster_id: str) -> bool:
        """Whether a tenant named the cluster: a store that is not in a cluster belongs to one person."""
        return self.own is not None and cluster_id.startswith(SECRET_PREFIX)

    def _use(self, cluster_id: str) -> None:
        """Notes that a cluster is used; of those that tenants named, the least recently used are retired."""
        from setpoint.clients.http_transport import TenantQuota

        if not self._is_of_tenant(cluster_id):
            return
        self._quota = self._quota or TenantQuota(_MAX_CLUSTERS, _MAX_OF_NAMESPACE)
        for retired in self._quota.use(cluster_id, _secret_parts(cluster_id)[0]):
            self._kubeconfigs.pop(retired, None)
            for access in (self._accesses.pop(retired, None), self._outdated.pop(retired, None)):
                if access is not None:
                    access.client.http.retire()
                    self._unused.append(access.client)

    def _kept_text(self, cluster_id: str, text: str) -> str:
        """What is kept of a kubeconfig: one that is too long is refused once it is used."""
        return text[: _LONGEST_KUBECONFIG + 1] if self._is_of_tenant(cluster_id) else text

    async def _close_unused(self) -> None:
        if not self._unused:
            return
        idle = [client for client in self._unused if client.http.is_idle]
        self._unused = [client for client in self._unused if client not in idle]
        for client in idle:
            await client.close()

    def _connection(self, cluster_id: str) -> "ClusterConnection":
        from setpoint.clients.kubernetes.contexts import HOST, connection_from_environment, in_cluster_connection
        from setpoint.clients.kubernetes.handed_over import connection_from_untrusted_text

        if self.recorded is not None:
            return self.recorded
        if cluster_id == IN_CLUSTER:
            if HOST not in self.environment:
                raise UserError("spec.cluster.inCluster: there is no cluster around this process: name a context")
            return in_cluster_connection(self.environment)
        if cluster_id.startswith(_CONTEXT):
            return connection_from_environment(self.environment, cluster_id.removeprefix(_CONTEXT))
        namespace, name, key, context = _secret_parts(cluster_id)
        text, where = self._kubeconfigs[cluster_id], f"{key} of Secret {namespace}/{name}"
        if self._is_of_tenant(cluster_id) and len(text) > _LONGEST_KUBECONFIG:
            raise UserError(f"{where}: larger than {_LONGEST_KUBECONFIG // 1024} KiB: write the contexts that are used")
        return connection_from_untrusted_text(text, where, context or None, addresses=self.addresses)

    async def _read_kubeconfig(self, cluster_id: str) -> str:
        namespace, name, key, _ = _secret_parts(cluster_id)
        ref = ResourceRef("", "Secret", namespace, name)
        found = await self.secret(ref)
        if found is None:
            raise DependencyNotFound(f"Secret {namespace}/{name} was not found: the kubeconfig of the cluster is in it")
        return secret_value(SecretKeyReference(KUBECONFIG, ref, key), found)


def kubeconfig_key(cluster: "ClusterSpec") -> "SecretKeyRef | None":
    """The Secret key with the kubeconfig, if there is one."""
    found = cluster.kubeconfig
    return None if found is None or found is UNSET else found.valueFrom.secretKeyRef


def _recorded_id(cluster_id: str) -> str:
    """A recorded world knows the cluster that stores the resources by one name, whichever account is used."""
    return OWN if cluster_id.startswith(ACCOUNT_PREFIX) else cluster_id


def _secret_parts(cluster_id: str) -> tuple[str, str, str, str]:
    namespace, name, key, *context = cluster_id.removeprefix(SECRET_PREFIX).split("/", 3)
    return namespace, name, key, "".join(context)
