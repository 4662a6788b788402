"""The kind KubernetesObject: what its manifests mean, and its verbs. What reaches clusters is loaded when needed."""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from msgspec import UNSET, Struct

from setpoint.core.decide import Decision
from setpoint.core.kubernetes import text_at
from setpoint.core.overlay import Declared
from setpoint.core.plan import PLAINLY, Sending, Write
from setpoint.core.wait_for import WaitFor
from setpoint.engine.abilities import Topic
from setpoint.engine.kind import (
    Absent,
    Definition,
    Intent,
    Location,
    Look,
    Need,
    Operation,
    Present,
    Reconciliation,
    Resolved,
    SecretKey,
    Unmoved,
)
from setpoint.engine.ports import Clock
from setpoint.engine.resource import Resource, ResourceRef, Tree
from setpoint.kinds.kubernetes_object.clusters import Clusters, check_cluster, kubeconfig_key
from setpoint.kinds.kubernetes_object.declared import ignored_by, refuse_policies, removal_of, wait_of
from setpoint.kinds.kubernetes_object.manifest import check_manifest, manifest_of, may_refer, object_of, spec_of
from setpoint.kinds.kubernetes_object.place import Place
from setpoint.kinds.kubernetes_object.spec import (
    GROUP,
    KUBECONFIG,
    NAME,
    VERSION,
    KubernetesObjectSpec,
    KubernetesObjectStatus,
    KubernetesObjectTree,
    LiveObject,
)

if TYPE_CHECKING:
    from setpoint.kinds.kubernetes_object.remote import Remote

_DEFINITION: Final = Definition(
    "An object in a cluster, kept by server-side apply.", KubernetesObjectStatus, short_names=("kobj",)
)


@dataclass(slots=True)
class KubernetesObjectKind:
    """The kind."""

    clusters: Clusters
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
    definition: Definition = _DEFINITION
    _remote: "Remote | None" = None

    # --- What a manifest means ----------------------------------------------------------------------------------------

    def check(self, resource: Resource) -> None:
        """ManifestInvalid for what no cluster could take."""
        spec = spec_of(resource)
        check_manifest(resource, spec)
        check_cluster(resource, spec)
        ignored_by(resource, spec)
        removal_of(resource, spec)
        refuse_policies(resource)
        wait_of(resource)

    def needs(self, resource: Resource) -> Sequence[Need]:
        """The values of others that the manifest names, and the Secret with the kubeconfig."""
        spec = spec_of(resource)
        values = manifest_of(resource, spec).needs() if may_refer(resource) else ()
        return (*_kubeconfig(resource, spec), *values)

    def locate(self, resource: Resource, resolved: Resolved) -> Location:
        """`apps/v1 Deployment shop/web @ context:prod`."""
        cluster, tree = self.clusters.word_for(spec_of(resource), resource, resolved), object_of(resource, resolved)
        namespace = text_at(tree, "metadata", "namespace") or resource.ref.namespace
        names = (text_at(tree, "apiVersion"), text_at(tree, "kind"), namespace, text_at(tree, "metadata", "name"))
        return Place(cluster, *names).location

    def declare(self, resource: Resource, resolved: Resolved) -> Tree:
        """The spec, with the object that is to be in the place of the manifest."""
        return {"spec": {**resource.spec, "manifest": object_of(resource, resolved)}}

    def view(self, live: LiveObject) -> Tree:
        """Nothing: what differs, the cluster says."""
        return {"spec": {}}

    def fitted(self, declared: Declared, live: Tree) -> Declared:
        """The same for every object."""
        return declared

    def sending(self, intent: Intent) -> Sending:
        """One apply."""
        return PLAINLY

    def abandons(self, resource: Resource) -> bool:
        """Never by its spec."""
        return False

    def wait_for(self, resource: Resource) -> WaitFor | None:
        """See Awaited."""
        return wait_of(resource)

    def may_replace(self, resource: Resource) -> bool:
        """See Replaceable."""
        return spec_of(resource).replace is True

    async def stands_for(self, resource: Resource, location: Location) -> bool:
        """See Lasting."""
        return await self.remote.stands_for(resource, location)

    def is_protected(self, resource: Resource) -> bool:
        """See Protectable."""
        return removal_of(resource, spec_of(resource)).is_protected

    # --- The verbs ----------------------------------------------------------------------------------------------------

    @property
    def remote(self) -> "Remote":
        """What reaches clusters."""
        if self._remote is None:
            from setpoint.kinds.kubernetes_object.remote import Remote

            self._remote = Remote(self.clusters, self.clock)
        return self._remote

    async def observe(self, location: Location, known: str | None = None) -> Absent | Present[LiveObject] | Unmoved:
        """A look."""
        return await self.remote.observe(location, known)

    async def rehearse(self, intent: Intent, look: Look, decision: Decision) -> tuple[Write, ...]:
        """See Rehearsable."""
        return (await self.remote.foresee(intent, look, decision)).writes

    async def create(self, intent: Intent, wanted: Tree) -> Operation | None:
        """Makes the object."""
        await self.remote.create(intent)
        return None

    async def update(self, intent: Intent, wanted: Tree, write: Write, before: Present[LiveObject]) -> Operation | None:
        """Applies what is asked for, or has the object give way."""
        await self.remote.update(intent, write, before.whole)
        return None

    async def delete(self, location: Location, before: Present[LiveObject], resource: Resource) -> Operation | None:
        """Removes the object."""
        await self.remote.delete(location, before.whole, resource)
        return None

    async def poll(self, operation: Operation) -> bool:
        """Nothing goes on that a look would not show."""
        return True

    # --- Changes ------------------------------------------------------------------------------------------------------

    def topic_of(self, location: Location) -> Topic:
        """See Audible."""
        from setpoint.kinds.kubernetes_object.hearing import topic_of

        return topic_of(location)

    def changes(self, topic: Topic) -> AsyncGenerator[Location | None, None]:
        """See Audible."""
        from setpoint.kinds.kubernetes_object.hearing import changes

        return changes(topic, self.clusters)


def _kubeconfig(resource: Resource, spec: KubernetesObjectSpec) -> tuple[SecretKey, ...]:
    said = spec.cluster
    key = None if said is None or said is UNSET else kubeconfig_key(said)
    if key is None:
        return ()
    return (SecretKey(KUBECONFIG, ResourceRef("", "Secret", resource.ref.namespace, key.name), key.key),)
