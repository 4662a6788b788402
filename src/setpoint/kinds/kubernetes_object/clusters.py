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
from setpoint.kinds.typed_spec import SecretKeyRef

if TYPE_CHECKING:
    from setpoint.clients.http import HttpInterceptor
    from setpoint.clients.kubernetes.client import KubernetesClient
    from setpoint.clients.kubernetes.discovery import Discovery
    from setpoint.clients.kubernetes.kubeconfig import ClusterConnection
    from setpoint.clients.ratelimit.limiter import QuotaBudgets

_LOCATION: Final = re.compile(r"(\S+) (\S+) (?:([^\s/]+)/)?([^\s/]+) @ (\S+)")
# What stands in names and does no harm in a path that is read by people.
_PLAIN: Final = ":@.~"


@dataclass(frozen=True, slots=True)
class ObjectLocation:
    """One object, or without a name all objects of a kind in a namespace.

    `cluster` is what Clusters knows it by. A kind without namespaces has one here all the same: which kinds those are
    only the cluster knows.
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
        """As people name it: `Deployment shop/web`."""
        return f"{self.kind} {self.in_cluster}"


def parse_object_location(text: str) -> ObjectLocation:
    """What `location` wrote."""
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
    """Nothing is kept anywhere."""
    return None


def _uncounted(_counts: ClientRequestCounts) -> None:
    """Nobody counts."""


def _no_interceptor(_word: str) -> None:
    """Nothing stands on the way."""


@dataclass(frozen=True, slots=True)
class ClusterAccess:
    """A way to a cluster, and the kinds that it serves."""

    client: "KubernetesClient"
    discovery: "Discovery"


@dataclass(slots=True)
class Clusters:
    """All clusters that resources of one process mean. `close` lets go of the connections that were made here."""

    environment: Mapping[str, str] = field(default_factory=dict)
    # The client of the cluster that keeps the resources themselves, if one does: somebody else closes it.
    own: "KubernetesClient | None" = None
    budgets: "QuotaBudgets | None" = None
    secret: ReadSecret = _no_secret
    # Hears of the requests of each way out.
    counted: Callable[[ClientRequestCounts], None] = _uncounted
    # What stands on the way to each cluster, by its word, if anything does.
    interceptor: Callable[[str], "HttpInterceptor | None"] = _no_interceptor
    # How every cluster is reached in a world that is recorded: not at all.
    recorded: "ClusterConnection | None" = None
    # The cluster of those who name none, once somebody asked.
    usual: str = ""
    _reaches: dict[str, ClusterAccess] = field(default_factory=dict)
    # The text of each kubeconfig that came from a Secret, by the word for its cluster.
    _kubeconfigs: dict[str, str] = field(default_factory=dict, repr=False)
    # The way to each cluster whose kubeconfig is another one since; and the clients that are of no use any more.
    _former: dict[str, ClusterAccess] = field(default_factory=dict)
    _useless: list["KubernetesClient"] = field(default_factory=list)

    def cluster_id_of(self, spec: KubernetesObjectSpec, resource: Resource, resolved: ResolvedReferences) -> str:
        """The cluster that a spec means; a kubeconfig that comes with it is used from here on."""
        said = ClusterSpec() if spec.cluster is None or spec.cluster is UNSET else spec.cluster
        key, context = kubeconfig_key(said), said.context or ""
        if key is None:
            if said.inCluster:
                return IN_CLUSTER
            return f"{_CONTEXT}{context}" if context else self._usual()
        word = f"{_SECRET}{resource.ref.namespace}/{key.name}/{key.key}" + (f"/{context}" if context else "")
        text = resolved.secrets.get(KUBECONFIG)
        if text is not None and self._kubeconfigs.get(word) != text:
            self._learn(word, text)
        return word

    async def reach(self, word: str) -> ClusterAccess:
        """The way to a cluster. UserError says what is missing to get there."""
        if word.startswith(_SECRET) and word not in self._kubeconfigs:
            self._learn(word, await self._read(word))
        found = self._reaches.get(word)
        if found is None:
            found = self._reaches[word] = self._made(word, self._former.get(word))
            self._former.pop(word, None)
        return found

    async def close(self) -> None:
        """Lets go of the connections."""
        ours = [reach.client for word, reach in (*self._reaches.items(), *self._former.items()) if word != OWN]
        for client in (*ours, *self._useless):
            await client.close()
        self._reaches.clear()
        self._former.clear()
        self._useless.clear()

    def _usual(self) -> str:
        """The cluster of those who name none: by the name of its context, as another may be the current one later."""
        if not self.usual and self.own is not None:
            self.usual = OWN
        if not self.usual and self.recorded is not None:
            raise NotRecorded("the cluster of those who name none was not asked for when this world was recorded")
        if not self.usual:
            from setpoint.clients.kubernetes.contexts import current_context

            context = current_context(self.environment)
            self.usual = IN_CLUSTER if context is None else f"{_CONTEXT}{context}"
        return self.usual

    def _learn(self, word: str, text: str) -> None:
        """From here on nobody gets there by the kubeconfig of before, not even while the new one makes no sense."""
        self._kubeconfigs[word] = text
        known = self._reaches.pop(word, None)
        if known is not None:
            self._former[word] = known

    def _made(self, word: str, before: ClusterAccess | None) -> ClusterAccess:
        """A new way; with a new kubeconfig over the connections of before."""
        from setpoint.clients.http import HttpClient
        from setpoint.clients.kubernetes.client import KubernetesClient
        from setpoint.clients.kubernetes.discovery import Discovery

        if word == OWN and self.recorded is None:
            if self.own is None:
                raise ManifestInvalid(
                    "these resources were kept in the cluster that their objects are in, and are kept elsewhere now: "
                    "name the cluster in spec.cluster"
                )
            return ClusterAccess(self.own, Discovery(self.own))
        connection = self._connection(word)
        http = before.client.http if before is not None and before.client.connection.proxy == connection.proxy else None
        http = http or HttpClient(connection.proxy, self.interceptor(word))
        client = KubernetesClient(connection, http=http, budgets=self.budgets)
        if before is None or http is not before.client.http:
            self.counted(client.http.counts)
            self._useless += [] if before is None else [before.client]
        return ClusterAccess(client, Discovery(client))

    def _connection(self, word: str) -> "ClusterConnection":
        from setpoint.clients.kubernetes.contexts import (
            HOST,
            connection_from_environment,
            connection_from_untrusted_text,
            in_cluster_connection,
        )

        if self.recorded is not None:
            return self.recorded
        if word == IN_CLUSTER:
            if HOST not in self.environment:
                raise UserError("spec.cluster.inCluster: there is no cluster around this process: name a context")
            return in_cluster_connection(self.environment)
        if word.startswith(_CONTEXT):
            return connection_from_environment(self.environment, word.removeprefix(_CONTEXT))
        namespace, name, key, context = _secret_parts(word)
        return connection_from_untrusted_text(
            self._kubeconfigs[word], f"{key} of Secret {namespace}/{name}", context or None
        )

    async def _read(self, word: str) -> str:
        namespace, name, key, _ = _secret_parts(word)
        ref = ResourceRef("", "Secret", namespace, name)
        found = await self.secret(ref)
        if found is None:
            raise DependencyNotFound(f"Secret {namespace}/{name} was not found: the kubeconfig of the cluster is in it")
        return secret_value(SecretKeyReference(KUBECONFIG, ref, key), found)


def kubeconfig_key(said: ClusterSpec) -> SecretKeyRef | None:
    """Where the kubeconfig is, if it is in a Secret."""
    found = said.kubeconfig
    return None if found is None or found is UNSET else found.valueFrom.secretKeyRef


def check_cluster(resource: Resource, spec: KubernetesObjectSpec) -> None:
    """ManifestInvalid for a cluster that is two at once."""
    said = spec.cluster
    if said is None or said is UNSET:
        return
    if said.inCluster and (said.context or kubeconfig_key(said)):
        raise ManifestInvalid(
            f"{resource.ref}: spec.cluster.inCluster is the cluster around setpoint, which has no context and no "
            "kubeconfig: write inCluster alone, or leave it out"
        )


def _secret_parts(word: str) -> tuple[str, str, str, str]:
    namespace, name, key, *context = word.removeprefix(_SECRET).split("/", 3)
    return namespace, name, key, "".join(context)
