"""Where an object is: its cluster, its name there, and the clients that reach clusters, created on first use.

A cluster has an ID that is safe to store: `own`, `in-cluster`, `context:NAME`, or `secret:NAMESPACE/NAME/KEY`, with
`/CONTEXT` appended where one is selected. A kubeconfig from a Secret stays in memory.
"""

import re
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, unquote

from msgspec import UNSET

from setpoint.engine.kind import Location, ResolvedReferences, SecretKeyReference
from setpoint.engine.references import secret_value
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.errors import DependencyNotFound, ManifestInvalid, NotRecorded, UserError
from setpoint.kinds.kubernetes_object.spec import KUBECONFIG, ClusterSpec, KubernetesObjectSpec
from setpoint.kinds.typed_spec import SecretKeyRef, field_invalid

if TYPE_CHECKING:
    from setpoint.clients.http import HttpClient, HttpInterceptor
    from setpoint.clients.http_transport import HeldBytes, TenantQuota
    from setpoint.clients.kubernetes.client import KubernetesClient
    from setpoint.clients.kubernetes.discovery import Discovery
    from setpoint.clients.kubernetes.kubeconfig import ClusterConnection
    from setpoint.clients.ratelimit.limiter import QuotaBudgets

_LOCATION: Final = re.compile(r"(\S+) (\S+) (?:([^\s/]+)/)?([^\s/]+) @ (\S+)")
# Characters of names that stay readable in a location.
_PLAIN: Final = ":@.~"
# How many clusters that tenants named are connected at once, of all namespaces and of one; and how much of their
# unfinished responses is held, of one namespace.
_MAX_CLUSTERS, _MAX_OF_NAMESPACE = 100, 20
_MAX_HELD: Final = 16 * 2**20
# In characters.
_LONGEST_KUBECONFIG: Final = 256 * 1024


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


OWN, IN_CLUSTER = "own", "in-cluster"
_CONTEXT, _SECRET = "context:", "secret:"
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
    budgets: "QuotaBudgets | None" = None
    secret: ReadSecret = _no_secret
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
    # Access by a kubeconfig that has changed since; and clients to be closed once they are idle.
    _outdated: dict[str, ClusterAccess] = field(default_factory=dict)
    _unused: list["KubernetesClient"] = field(default_factory=list)
    # Clusters that tenants named: which are kept, their requests, and the responses held for each namespace.
    _quota: "TenantQuota | None" = None
    _counts: ClientRequestCounts | None = None
    _held: dict[str, "HeldBytes"] = field(default_factory=dict)

    def cluster_id_of(self, spec: KubernetesObjectSpec, resource: Resource, resolved: ResolvedReferences) -> str:
        """The ID of the spec's cluster; a resolved kubeconfig is used from now on."""
        cluster = ClusterSpec() if spec.cluster is None or spec.cluster is UNSET else spec.cluster
        key, context = kubeconfig_key(cluster), cluster.context or ""
        if key is None:
            if cluster.inCluster:
                return IN_CLUSTER
            return f"{_CONTEXT}{context}" if context else self._default_cluster()
        cluster_id = f"{_SECRET}{resource.ref.namespace}/{key.name}/{key.key}" + (f"/{context}" if context else "")
        text = resolved.secrets.get(KUBECONFIG)
        if text is not None and self._kubeconfigs.get(cluster_id) != self._kept_text(cluster_id, text):
            self._set_kubeconfig(cluster_id, text)
        return cluster_id

    async def connect(self, cluster_id: str) -> ClusterAccess:
        """The access to a cluster, created on first use; UserError for a cluster that is not configured."""
        await self._close_unused()
        if cluster_id.startswith(_SECRET) and cluster_id not in self._kubeconfigs:
            self._set_kubeconfig(cluster_id, await self._read_kubeconfig(cluster_id))
        self._use(cluster_id)
        found = self._accesses.get(cluster_id)
        if found is None:
            found = self._accesses[cluster_id] = self._new_access(cluster_id, self._outdated.get(cluster_id))
            self._outdated.pop(cluster_id, None)
        return found

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
        self._use(cluster_id)
        self._kubeconfigs[cluster_id] = self._kept_text(cluster_id, text)
        known = self._accesses.pop(cluster_id, None)
        if known is not None:
            self._outdated[cluster_id] = known

    def _new_access(self, cluster_id: str, before: ClusterAccess | None) -> ClusterAccess:
        """New access; after a change of the kubeconfig it keeps the open connections."""
        from setpoint.clients.kubernetes.client import KubernetesClient
        from setpoint.clients.kubernetes.discovery import Discovery

        if cluster_id == OWN and self.recorded is None:
            if self.own is None:
                raise ManifestInvalid(
                    "these resources were kept in the cluster that their objects are in, and are kept elsewhere now: "
                    "name the cluster in spec.cluster"
                )
            return ClusterAccess(self.own, Discovery(self.own))
        connection = self._connection(cluster_id)
        http = before.client.http if before is not None and before.client.connection.proxy == connection.proxy else None
        http = http or self._new_http(cluster_id, connection)
        client = KubernetesClient(connection, http=http, budgets=self.budgets)
        if before is None or http is not before.client.http:
            self._unused += [] if before is None else [before.client]
        return ClusterAccess(client, Discovery(client))

    def _new_http(self, cluster_id: str, connection: "ClusterConnection") -> "HttpClient":
        """A client; that of a cluster which a tenant named is within the limits of its namespace."""
        from setpoint.clients.http import HttpClient
        from setpoint.clients.http_transport import HeldBytes, limits_from

        limits, interceptor = limits_from(self.environment), self.interceptor(cluster_id)
        if not self._is_of_tenant(cluster_id):
            http = HttpClient(connection.proxy, interceptor, limits=limits)
            self.counted(http.counts)
            return http
        held = self._held.setdefault(_secret_parts(cluster_id)[0], HeldBytes(_MAX_HELD))
        http = HttpClient(connection.proxy, interceptor, limits=limits.of_tenant(), held=held)
        if self._counts is None:
            self._counts = http.counts
            self.counted(self._counts)
        # One mapping for all of them: such clients come and go.
        http.counts = self._counts
        return http

    def _is_of_tenant(self, cluster_id: str) -> bool:
        """Whether a tenant named the cluster: a store that is not in a cluster belongs to one person."""
        return self.own is not None and cluster_id.startswith(_SECRET)

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
        idle = [client for client in self._unused if client.http.is_idle]
        self._unused = [client for client in self._unused if client not in idle]
        for client in idle:
            await client.close()

    def _connection(self, cluster_id: str) -> "ClusterConnection":
        from setpoint.clients.kubernetes.contexts import (
            HOST,
            connection_from_environment,
            connection_from_untrusted_text,
            in_cluster_connection,
        )

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
        return connection_from_untrusted_text(text, where, context or None)

    async def _read_kubeconfig(self, cluster_id: str) -> str:
        namespace, name, key, _ = _secret_parts(cluster_id)
        ref = ResourceRef("", "Secret", namespace, name)
        found = await self.secret(ref)
        if found is None:
            raise DependencyNotFound(f"Secret {namespace}/{name} was not found: the kubeconfig of the cluster is in it")
        return secret_value(SecretKeyReference(KUBECONFIG, ref, key), found)


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
