"""The clusters that a tenant reaches: which it may name, and as whom requests are sent there."""

from msgspec import UNSET

from setpoint.clients.kubernetes.watched_objects import WatchedObjects
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.engine.claims.object_claims import ACCOUNT_PREFIX, OWN
from setpoint.engine.kind import ResolvedReferences
from setpoint.engine.resource import Resource
from setpoint.engine.tenancy.tenants import DEFAULT_SERVICE_ACCOUNT, Tenant, is_service_account_name
from setpoint.errors import UserError
from setpoint.kind.typed_spec import field_invalid
from setpoint.kinds.kubernetes_object.clusters import (
    SERVICE_ACCOUNT,
    ClusterAccess,
    Clusters,
    kubeconfig_key,
)
from setpoint.kinds.kubernetes_object.location import SECRET_PREFIX, ObjectLocation
from setpoint.kinds.kubernetes_object.spec import ClusterSpec, KubernetesObjectSpec


@dataclass(frozen=True, slots=True)
class TenantClusters:
    """The clusters that a tenant reaches: the own one as a ServiceAccount of its namespace, and those that kubeconfigs
    in Secrets of its namespace name."""

    clusters: Clusters
    tenant: Tenant

    @property
    def watched(self) -> WatchedObjects:
        """See Clusters. A topic names the account by which it is watched."""
        return self.clusters.watched

    def cluster_id_of(self, spec: KubernetesObjectSpec, resource: Resource, resolved: ResolvedReferences) -> str:
        """See Clusters."""
        cluster = ClusterSpec() if spec.cluster is None or spec.cluster is UNSET else spec.cluster
        key, account = kubeconfig_key(cluster), spec.serviceAccountName or ""
        if key is not None:
            _require_no_account(account, resource)
            return self.clusters.use_kubeconfig(key, cluster.context or "", resource, resolved)
        for name, value in (("context", cluster.context), ("inCluster", cluster.inCluster)):
            if value:
                raise field_invalid(
                    resource,
                    f"spec.cluster.{name}",
                    " names a cluster by the credentials of setpoint itself, which are not yours: name it with "
                    "spec.cluster.kubeconfig, or leave spec.cluster out for this cluster",
                )
        return self._own_id(_account_name(account, resource) or DEFAULT_SERVICE_ACCOUNT)

    def require_target(self, location: ObjectLocation, resource: Resource) -> None:
        """ManifestInvalid for an object of our own kinds in the cluster that stores the resources."""
        group = location.api_version.rpartition("/")[0]
        if location.cluster.startswith(ACCOUNT_PREFIX) and (group, location.kind) in self.clusters.own_kinds:
            problem = f" is of a kind that setpoint reconciles in this cluster: apply the {location.kind} itself"
            raise field_invalid(resource, "spec.manifest", problem)

    async def connect(self, cluster_id: str) -> ClusterAccess:
        """See Clusters; UserError for a cluster that is not the tenant's."""
        if cluster_id == OWN:
            # Of a version before.
            cluster_id = self._own_id(DEFAULT_SERVICE_ACCOUNT)
        namespace = f"{self.tenant.namespace}/"
        if not cluster_id.startswith((ACCOUNT_PREFIX + namespace, SECRET_PREFIX + namespace)):
            raise UserError(
                f"the cluster {cluster_id} is not one of the namespace {self.tenant.namespace}: nothing is sent there. "
                "To let go of the resource and leave its object alone, annotate it with "
                "cnrm.cloud.google.com/deletion-policy: abandon"
            )
        return await self.clusters.connect(cluster_id)

    def _own_id(self, account: str) -> str:
        return f"{ACCOUNT_PREFIX}{self.tenant.namespace}/{account}"


def _require_no_account(account: str, resource: Resource) -> None:
    if account:
        problem = " does not go with spec.cluster.kubeconfig, which has an identity of its own: leave it out"
        raise field_invalid(resource, SERVICE_ACCOUNT, problem)


def _account_name(account: str, resource: Resource) -> str:
    if account and not is_service_account_name(account):
        problem = f" is {account!r}, which cannot be a name: write lower-case letters, digits, '-' and '.'"
        raise field_invalid(resource, SERVICE_ACCOUNT, problem)
    return account
