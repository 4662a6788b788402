"""Where an object is: its cluster, its name there, and the clients that reach clusters, created on first use.

A cluster has an ID that is safe to store: `own:NAMESPACE/ACCOUNT` (the cluster that stores the resource, as one of its
ServiceAccounts), `in-cluster`, `context:NAME`, or `secret:NAMESPACE/NAME/KEY`, with `/CONTEXT` appended where one is
selected. Versions before had `own` alone. A kubeconfig from a Secret stays in memory.
"""

import re
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, unquote

from msgspec import UNSET

from setpoint.core.unstructured import GroupKind, text_at
from setpoint.core.values.json_types import JsonObject
from setpoint.engine.kind import Location, ResolvedReferences, SecretKeyReference
from setpoint.engine.references import secret_value
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.engine.step.object_claims import CLUSTER_OBJECTS, ClaimKey, uid_name
from setpoint.engine.tenancy import DEFAULT_SERVICE_ACCOUNT, Tenant
from setpoint.errors import DependencyNotFound, ManifestInvalid, NotRecorded, UserError
from setpoint.kinds.kubernetes_object.spec import KUBECONFIG, ClusterSpec, KubernetesObjectSpec
from setpoint.kinds.typed_spec import SecretKeyRef, field_invalid

if TYPE_CHECKING:
    from setpoint.clients.http import HttpInterceptor
    from setpoint.clients.kubernetes.client import KubernetesClient
    from setpoint.clients.kubernetes.discovery import Discovery
    from setpoint.clients.kubernetes.kubeconfig import ClusterConnection
    from setpoint.clients.kubernetes.service_accounts import ServiceAccountClients
    from setpoint.clients.ratelimit.limiter import QuotaBudgets
    from setpoint.clients.sockets import AddressPolicy

_LOCATION: Final = re.compile(r"(\S+) (\S+) (?:([^\s/]+)/)?([^\s/]+) @ (\S+)")
# Characters of names that stay readable in a location.
_PLAIN: Final = ":@.~"


@dataclass(frozen=True, slots=True)
class ObjectLocation:
    """The location of an object; without a name, of all objects of a kind in a namespace.

    `cluster` is the ID of the cluster. A cluster-scoped kind has a namespace here, too: which kinds are namespaced
    is known to the cluster only.
    """

    cluster: str
    api_version: str
    kind: str
    namespace: str
    name: str = ""

    @property
    def location(self) -> Location:
        """`apps/v1 Deployment shop/web @ context:prod`."""
        return Location(f"{self.api_version} {self.kind} {self.in_cluster} @ {quote(self.cluster, safe=_PLAIN)}")

    @property
    def in_cluster(self) -> str:
        """`shop/web`."""
        name = quote(self.name, safe=_PLAIN) or "*"
        return f"{quote(self.namespace, safe=_PLAIN)}/{name}" if self.namespace else name

    @property
    def title(self) -> str:
        """For messages: `Deployment shop/web`."""
        return f"{self.kind} {self.in_cluster}"


def parse_object_location(text: str) -> ObjectLocation:
    """The parsed text of `ObjectLocation.location`."""
    found = _LOCATION.fullmatch(text)
    assert found is not None, text
    api_version, kind, namespace, name, cluster = found.groups()
    name = "" if name == "*" else unquote(name)
    return ObjectLocation(unquote(cluster), api_version, kind, unquote(namespace or ""), name)


def object_claim_keys(location: Location) -> tuple[ClaimKey, ...]:
    """The object in every version of its API, and whichever account of a namespace it is reached as."""
    found = _LOCATION.fullmatch(location)
    if found is None:
        return (ClaimKey(CLUSTER_OBJECTS, location),)
    api_version, kind, namespace, name, cluster = found.groups()
    group, is_own = api_version.rpartition("/")[0], cluster.partition(":")[0] == OWN
    named = f"{group} {kind} {namespace}/{name} @ {OWN if is_own else cluster}"
    return (ClaimKey(CLUSTER_OBJECTS, named),)


def object_uid_keys(outputs: JsonObject) -> tuple[ClaimKey, ...]:
    """The object by the uid that its cluster reports; none before it was observed."""
    uid = text_at(outputs, "object", "uid")
    return (ClaimKey(CLUSTER_OBJECTS, uid_name(uid)),) if uid else ()


def is_tenants_cluster(location: Location) -> bool:
    """Whether the object is in a cluster by a kubeconfig of a Secret: what that reports, its tenant decides."""
    found = _LOCATION.fullmatch(location)
    return found is None or unquote(found[5]).startswith(_SECRET)


OWN, IN_CLUSTER = "own", "in-cluster"
_ACCOUNT, _CONTEXT, _SECRET = "own:", "context:", "secret:"
SERVICE_ACCOUNT: Final = "spec.serviceAccountName"
_ACCOUNT_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
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
    # The ID of the default cluster, once it was needed.
    default_cluster: str = ""
    _accesses: dict[str, ClusterAccess] = field(default_factory=dict)
    # The text of each kubeconfig from a Secret, by cluster ID.
    _kubeconfigs: dict[str, str] = field(default_factory=dict, repr=False)
    # Access by a kubeconfig that has changed since; and clients to be closed.
    _outdated: dict[str, ClusterAccess] = field(default_factory=dict)
    _unused: list["KubernetesClient"] = field(default_factory=list)

    def for_tenant(self, tenant: Tenant) -> "TenantClusters":
        """The clusters that a tenant reaches."""
        return TenantClusters(self, tenant)

    def cluster_id_of(self, spec: KubernetesObjectSpec, resource: Resource, resolved: ResolvedReferences) -> str:
        """The ID of the spec's cluster; a resolved kubeconfig is used from now on."""
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

    def use_kubeconfig(self, key: SecretKeyRef, context: str, resource: Resource, resolved: ResolvedReferences) -> str:
        """The ID of a cluster with its kubeconfig in a Secret; a resolved kubeconfig is used from now on."""
        cluster_id = f"{_SECRET}{resource.ref.namespace}/{key.name}/{key.key}" + (f"/{context}" if context else "")
        text = resolved.secrets.get(KUBECONFIG)
        if text is not None and self._kubeconfigs.get(cluster_id) != text:
            self._set_kubeconfig(cluster_id, text)
        return cluster_id

    async def connect(self, cluster_id: str) -> ClusterAccess:
        """The access to a cluster, created on first use; UserError for a cluster that is not configured."""
        if cluster_id.startswith(_SECRET) and cluster_id not in self._kubeconfigs:
            self._set_kubeconfig(cluster_id, await self._read_kubeconfig(cluster_id))
        if cluster_id.startswith(_ACCOUNT) and self.recorded is None:
            return await self._own_access(cluster_id)
        if self.accounts is not None and not cluster_id.startswith(_SECRET):
            raise UserError(f"the cluster {cluster_id} is reached by the credentials of setpoint itself: none is yours")
        found = self._accesses.get(cluster_id)
        if found is None:
            found = self._accesses[cluster_id] = self._new_access(cluster_id, self._outdated.get(cluster_id))
            self._outdated.pop(cluster_id, None)
        return found

    async def _own_access(self, cluster_id: str) -> ClusterAccess:
        """The cluster that stores the resources, as a ServiceAccount; a command acts as its user."""
        shared = self._accesses.get(OWN)
        if shared is None:
            shared = self._accesses[OWN] = self._new_access(OWN, None)
        if self.accounts is None:
            return shared
        from setpoint.clients.kubernetes.service_accounts import ServiceAccountName

        account = ServiceAccountName(*cluster_id.removeprefix(_ACCOUNT).split("/", 1))
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
            raise NotRecorded("the default cluster was not asked for when this world was recorded")
        if not self.default_cluster:
            from setpoint.clients.kubernetes.contexts import current_context

            context = current_context(self.environment)
            self.default_cluster = IN_CLUSTER if context is None else f"{_CONTEXT}{context}"
        return self.default_cluster

    def _set_kubeconfig(self, cluster_id: str, text: str) -> None:
        """Replaces the kubeconfig: the former one is not used any more, even if the new one is invalid."""
        self._kubeconfigs[cluster_id] = text
        known = self._accesses.pop(cluster_id, None)
        if known is not None:
            self._outdated[cluster_id] = known

    def _new_access(self, cluster_id: str, before: ClusterAccess | None) -> ClusterAccess:
        """New access; after a change of the kubeconfig it keeps the open connections."""
        from setpoint.clients.kubernetes.client import KubernetesClient, http_client_for, route_of
        from setpoint.clients.kubernetes.discovery import Discovery

        if cluster_id == OWN and self.recorded is None:
            if self.own is None:
                raise ManifestInvalid(
                    "these resources were kept in the cluster that their objects are in, and are kept elsewhere now: "
                    "name the cluster in spec.cluster"
                )
            return ClusterAccess(self.own, Discovery(self.own))
        connection = self._connection(cluster_id)
        is_same_route = before is not None and route_of(before.client.connection) == route_of(connection)
        http = before.client.http if before is not None and is_same_route else None
        # A recorded world knows the cluster that stores the resources by one name, whichever account is used.
        name = OWN if cluster_id.startswith(_ACCOUNT) else cluster_id
        http = http or http_client_for(connection, self.interceptor(name))
        scope = self._budget_scope(cluster_id)
        client = KubernetesClient(connection, http=http, budgets=self.budgets, budget_scope=scope)
        if before is None or http is not before.client.http:
            self.counted(client.http.counts)
            self._unused += [] if before is None else [before.client]
        return ClusterAccess(client, Discovery(client))

    def _budget_scope(self, cluster_id: str) -> str:
        """Whose calls those to a cluster are: of tenants, for each Secret apart; all are one person's otherwise."""
        if self.addresses is None:
            return ""
        if not cluster_id.startswith(_SECRET):
            return OBJECTS
        namespace, name, key, context = _secret_parts(cluster_id)
        return f"{_SECRET}{namespace}/{name}/{key}" + (f"/{quote(context, safe='')[:_LONGEST_NAME]}" if context else "")

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
        source = f"{key} of Secret {namespace}/{name}"
        return connection_from_untrusted_text(
            self._kubeconfigs[cluster_id], source, context or None, addresses=self.addresses
        )

    async def _read_kubeconfig(self, cluster_id: str) -> str:
        namespace, name, key, _ = _secret_parts(cluster_id)
        ref = ResourceRef("", "Secret", namespace, name)
        found = await self.secret(ref)
        if found is None:
            raise DependencyNotFound(f"Secret {namespace}/{name} was not found: the kubeconfig of the cluster is in it")
        return secret_value(SecretKeyReference(KUBECONFIG, ref, key), found)


@dataclass(frozen=True, slots=True)
class TenantClusters:
    """The clusters that a tenant reaches: the own one as a ServiceAccount of its namespace, and those that kubeconfigs
    in Secrets of its namespace name."""

    clusters: Clusters
    tenant: Tenant

    def for_tenant(self, tenant: Tenant) -> "TenantClusters":
        """The clusters that another tenant reaches."""
        return TenantClusters(self.clusters, tenant)

    def cluster_id_of(self, spec: KubernetesObjectSpec, resource: Resource, resolved: ResolvedReferences) -> str:
        """See Clusters."""
        cluster = ClusterSpec() if spec.cluster is None or spec.cluster is UNSET else spec.cluster
        key, account = kubeconfig_key(cluster), spec.serviceAccountName or ""
        if key is not None:
            if account:
                advice = "leave it out: the kubeconfig has an identity of its own"
                raise field_invalid(resource, SERVICE_ACCOUNT, f" does not go with spec.cluster.kubeconfig: {advice}")
            return self.clusters.use_kubeconfig(key, cluster.context or "", resource, resolved)
        for name, value in (("context", cluster.context), ("inCluster", cluster.inCluster)):
            if value:
                advice = "name the cluster with spec.cluster.kubeconfig, or leave spec.cluster out for this cluster"
                problem = f" names a cluster by the credentials of setpoint itself, which are not yours: {advice}"
                raise field_invalid(resource, f"spec.cluster.{name}", problem)
        if account and not _ACCOUNT_NAME.fullmatch(account):
            problem = f" is {account!r}, which cannot be a name: write lower-case letters, digits, '-' and '.'"
            raise field_invalid(resource, SERVICE_ACCOUNT, problem)
        return self._own_id(account or DEFAULT_SERVICE_ACCOUNT)

    def require_target(self, location: ObjectLocation, resource: Resource) -> None:
        """ManifestInvalid for an object of our own kinds in the cluster that stores the resources."""
        group = location.api_version.rpartition("/")[0]
        if location.cluster.startswith(_ACCOUNT) and (group, location.kind) in self.clusters.own_kinds:
            advice = f"apply the {location.kind} itself"
            problem = f" is of a kind that setpoint reconciles in this cluster: {advice}"
            raise field_invalid(resource, "spec.manifest", problem)

    async def connect(self, cluster_id: str) -> ClusterAccess:
        """See Clusters; UserError for a cluster that is not the tenant's."""
        if cluster_id == OWN:
            # Of a version before.
            cluster_id = self._own_id(DEFAULT_SERVICE_ACCOUNT)
        namespace = f"{self.tenant.namespace}/"
        if not cluster_id.startswith((_ACCOUNT + namespace, _SECRET + namespace)):
            raise UserError(
                f"the cluster {cluster_id} is not one of the namespace {self.tenant.namespace}: nothing is sent there. "
                "To let go of the resource and leave its object alone, annotate it with "
                "cnrm.cloud.google.com/deletion-policy: abandon"
            )
        return await self.clusters.connect(cluster_id)

    def _own_id(self, account: str) -> str:
        return f"{_ACCOUNT}{self.tenant.namespace}/{account}"


def kubeconfig_key(cluster: ClusterSpec) -> SecretKeyRef | None:
    """The Secret key with the kubeconfig, if there is one."""
    found = cluster.kubeconfig
    return None if found is None or found is UNSET else found.valueFrom.secretKeyRef


def check_cluster(resource: Resource, spec: KubernetesObjectSpec) -> None:
    """ManifestInvalid for `inCluster` together with a context or a kubeconfig."""
    cluster = spec.cluster
    if cluster is None or cluster is UNSET:
        return
    if cluster.inCluster and (cluster.context or kubeconfig_key(cluster)):
        advice = "write inCluster alone, or leave it out"
        problem = f" is the cluster around setpoint, which has no context and no kubeconfig: {advice}"
        raise field_invalid(resource, "spec.cluster.inCluster", problem)


def _secret_parts(cluster_id: str) -> tuple[str, str, str, str]:
    namespace, name, key, *context = cluster_id.removeprefix(_SECRET).split("/", 3)
    return namespace, name, key, "".join(context)
