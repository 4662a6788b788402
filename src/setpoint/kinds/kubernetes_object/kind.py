"""The kind KubernetesObject: its manifests and its verbs. Loads no Kubernetes client before the first request."""

from collections.abc import AsyncGenerator, Sequence
from typing import TYPE_CHECKING, ClassVar, Final

from msgspec import UNSET, Struct

from setpoint.core.decide import Decision
from setpoint.core.overlay import EffectiveState, effective_state
from setpoint.core.plan import DEFAULT_PLAN_OPTIONS, PlannedWrite, PlanOptions
from setpoint.core.schema.policy import FieldPolicy
from setpoint.core.unstructured import text_at
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import JsonObject, Missing
from setpoint.core.values.problems import Problems
from setpoint.core.wait.wait_for import WaitFor
from setpoint.engine.capabilities import WatchTopic
from setpoint.engine.claims.object_claims import ClaimKey
from setpoint.engine.kind import (
    Absent,
    CrdDetails,
    Dependency,
    Intent,
    LiveObservation,
    Location,
    Present,
    Reconciliation,
    RemoteOperation,
    ResolvedReferences,
    SecretKeyReference,
    Unchanged,
    Written,
)
from setpoint.engine.ports import Clock
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.engine.tenancy.tenants import Tenant
from setpoint.kinds.kubernetes_object.clusters import KUBECONFIG, Clusters, kubeconfig_key
from setpoint.kinds.kubernetes_object.location import (
    ObjectLocation,
    is_tenants_cluster,
    object_claim_keys,
    object_uid_keys,
)
from setpoint.kinds.kubernetes_object.managed_fields import field_manager_of, manager_fields
from setpoint.kinds.kubernetes_object.manifest import (
    check_manifest,
    desired_object,
    manifest_of,
    may_contain_references,
    spec_of,
)
from setpoint.kinds.kubernetes_object.options import (
    check_cluster,
    check_wait,
    deletion_settings_of,
    ignored_fields_of,
    wait_of,
)
from setpoint.kinds.kubernetes_object.spec import (
    GROUP,
    NAME,
    VERSION,
    KubernetesObjectSpec,
    KubernetesObjectStatus,
    KubernetesObjectTree,
    LiveObject,
)
from setpoint.kinds.kubernetes_object.tenant_clusters import TenantClusters

if TYPE_CHECKING:
    from setpoint.kinds.kubernetes_object.remote import RemoteObjects

_DEFINITION: Final = CrdDetails(
    "An object in a cluster, managed by server-side apply.", KubernetesObjectStatus, short_names=("kobj",)
)


@dataclass(slots=True)
class KubernetesObjectKind:
    """The kind KubernetesObject."""

    clusters: Clusters | TenantClusters
    clock: Clock
    group: str = GROUP
    version: str = VERSION
    name: str = NAME
    reconciliation: Reconciliation = Reconciliation.STATEFUL
    revision: int = 1
    writes_through_clients: ClassVar = True
    annotations: Sequence[str] = ()
    live_type: type[LiveObject] = LiveObject
    tree_type: type[Struct] = KubernetesObjectTree
    definition: CrdDetails = _DEFINITION
    _remote: "RemoteObjects | None" = None

    # --- Manifests ----------------------------------------------------------------------------------------------------

    def check(self, resource: Resource) -> None:
        """ManifestInvalid for a spec that is invalid whatever the live state."""
        spec = spec_of(resource)
        problems = Problems()
        problems.collect(check_manifest, resource, spec)
        problems.collect(check_cluster, resource, spec)
        problems.collect(ignored_fields_of, resource, spec)
        problems.collect(deletion_settings_of, resource, spec)
        problems.collect(check_wait, resource)
        problems.require_none()

    def dependencies(self, resource: Resource) -> Sequence[Dependency]:
        """The references in the manifest, and the Secret with the kubeconfig."""
        spec = spec_of(resource)
        values = manifest_of(resource, spec).dependencies() if may_contain_references(resource) else ()
        return (*_kubeconfig(resource, spec), *values)

    def locate(self, resource: Resource, resolved: ResolvedReferences) -> Location:
        """`apps/v1 Deployment shop/web @ context:prod`."""
        cluster, tree = (
            self.clusters.cluster_id_of(spec_of(resource), resource, resolved),
            desired_object(resource, resolved),
        )
        namespace = text_at(tree, "metadata", "namespace") or resource.ref.namespace
        names = (text_at(tree, "apiVersion"), text_at(tree, "kind"), namespace, text_at(tree, "metadata", "name"))
        location = ObjectLocation(cluster, *names)
        self.clusters.require_target(location, resource)
        return location.location

    def declare(self, resource: Resource, resolved: ResolvedReferences) -> JsonObject:
        """The spec, with the desired object as its manifest."""
        return {"spec": {**resource.spec, "manifest": desired_object(resource, resolved)}}

    def view(self, live: LiveObject) -> JsonObject:
        """Empty: the dry run of the API server shows what differs."""
        return {"spec": {}}

    def effective(
        self, spec: KubernetesObjectTree, live: KubernetesObjectTree | Missing, policy: FieldPolicy
    ) -> EffectiveState[KubernetesObjectTree]:
        """As declared: nothing depends on the live object."""
        return effective_state(spec, live, policy)

    def sending(self, intent: Intent) -> PlanOptions:
        """A single apply."""
        return DEFAULT_PLAN_OPTIONS

    def abandons(self, resource: Resource) -> bool:
        """Never: the spec has no deletion policy."""
        return False

    def wait_for(self, resource: Resource) -> WaitFor | None:
        """See SupportsWait."""
        return wait_of(resource)

    def for_tenant(self, tenant: Tenant) -> "KubernetesObjectKind":
        """See SupportsTenants."""
        clusters = self.clusters.clusters if isinstance(self.clusters, TenantClusters) else self.clusters
        return KubernetesObjectKind(TenantClusters(clusters, tenant), self.clock)

    def may_replace(self, resource: Resource) -> bool:
        """See SupportsReplace."""
        return spec_of(resource).replace is True

    async def is_same_object(self, resource: Resource, location: Location) -> bool:
        """See SupportsAliases."""
        return await self.remote.is_same_object(resource, location)

    def claim_keys(self, location: Location, outputs: JsonObject) -> tuple[ClaimKey, ...]:
        """See SupportsClaimKeys. The uid that a tenant's own cluster reports claims nothing."""
        uid = () if is_tenants_cluster(location) else object_uid_keys(outputs)
        return (*object_claim_keys(location), *uid)

    def seen_claim_keys(self, location: Location, outputs: JsonObject) -> tuple[ClaimKey, ...]:
        """See SupportsClaimKeys."""
        return object_uid_keys(outputs)

    def is_created_for(self, resource: Resource, observed: Present[LiveObject]) -> bool:
        """See SupportsCreationMark: the object has the field manager of the resource, and is not older.

        An earlier resource of the same name may have left its object behind.
        """
        made = text_at(observed.whole, "metadata", "creationTimestamp")
        is_ours = manager_fields(observed.whole, field_manager_of(resource.ref)) is not None
        return is_ours and made >= resource.created != ""

    def is_protected(self, resource: Resource) -> bool:
        """See SupportsDeletionProtection."""
        return deletion_settings_of(resource, spec_of(resource)).is_protected

    # --- Requests -----------------------------------------------------------------------------------------------------

    @property
    def remote(self) -> "RemoteObjects":
        """The requests to clusters, loaded on first use."""
        if self._remote is None:
            from setpoint.kinds.kubernetes_object.remote import RemoteObjects

            self._remote = RemoteObjects(self.clusters, self.clock)
        return self._remote

    async def observe(self, location: Location, known: str | None = None) -> Absent | Present[LiveObject] | Unchanged:
        """Reads the object."""
        return await self.remote.observe(location, known)

    async def observe_watched(
        self, location: Location, known: str | None = None
    ) -> Absent | Present[LiveObject] | Unchanged:
        """See SupportsWatchedObjects."""
        return await self.remote.observe_watched(location, known)

    async def dry_run(self, intent: Intent, observed: LiveObservation, decision: Decision) -> tuple[PlannedWrite, ...]:
        """See SupportsDryRun."""
        return (await self.remote.dry_run(intent, observed, decision)).writes

    async def foresee(self, intent: Intent, observed: LiveObservation) -> PlannedWrite | None:
        """See SupportsForesight."""
        return await self.remote.foresee(intent, observed)

    async def create(self, intent: Intent, wanted: JsonObject) -> Written[LiveObject] | None:
        """Creates the object."""
        return await self.remote.create(intent)

    async def update(
        self, intent: Intent, wanted: JsonObject, write: PlannedWrite, before: Present[LiveObject]
    ) -> Written[LiveObject] | None:
        """Applies the object, or deletes it first if it is to be replaced."""
        return await self.remote.update(intent, write, before.whole)

    async def delete(
        self, location: Location, before: Present[LiveObject], resource: Resource
    ) -> RemoteOperation | None:
        """Deletes the object."""
        await self.remote.delete(location, before.whole, resource)
        return None

    async def poll(self, operation: RemoteOperation) -> bool:
        """Always done: an observation shows all progress."""
        return True

    # --- Watch --------------------------------------------------------------------------------------------------------

    def watch_topic(self, location: Location) -> WatchTopic:
        """See SupportsWatch."""
        from setpoint.kinds.kubernetes_object.watch import watch_topic

        return watch_topic(location)

    def changes(self, topic: WatchTopic) -> AsyncGenerator[Location | None, None]:
        """See SupportsWatch."""
        from setpoint.kinds.kubernetes_object.watch import watch_changes

        return watch_changes(topic, self.clusters)


def _kubeconfig(resource: Resource, spec: KubernetesObjectSpec) -> tuple[SecretKeyReference, ...]:
    cluster = spec.cluster
    key = None if cluster is None or cluster is UNSET else kubeconfig_key(cluster)
    if key is None:
        return ()
    return (SecretKeyReference(KUBECONFIG, ResourceRef("", "Secret", resource.ref.namespace, key.name), key.key),)
