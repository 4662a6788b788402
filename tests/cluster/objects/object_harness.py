"""Runs steps of KubernetesObjects in this process: resources are in memory, objects on a real API server."""

import asyncio
import uuid
from collections import Counter
from collections.abc import Collection, Coroutine, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from setpoint.clients.kubernetes.client import KubernetesClient
from setpoint.clients.kubernetes.contexts import connection_from_files
from setpoint.clients.kubernetes.requests import ApiWriteOptions, Endpoint
from setpoint.core.plan import Plan
from setpoint.engine.claims.object_claims import ClaimKey, ObjectClaims
from setpoint.engine.context import EngineContext
from setpoint.engine.idle_cache import IdleCache
from setpoint.engine.intent import check_manifest
from setpoint.engine.kind import Location, ResolvedReferences
from setpoint.engine.ports import SystemClock
from setpoint.engine.resource import Resource, ResourceRef, Revision
from setpoint.engine.step.outcomes import Gone, Settled, StepOutcome, Stopped
from setpoint.engine.step.reconcile import preview, step
from setpoint.errors import OperationRunning, SetpointError
from setpoint.kinds.kubernetes_object.clusters import Clusters
from setpoint.kinds.kubernetes_object.kind import KubernetesObjectKind
from setpoint.kinds.kubernetes_object.spec import GROUP, NAME
from setpoint.stores.memory import MemoryStore
from tests.cluster.access import Access
from tests.cluster.polling import until

T = TypeVar("T")
Tree = dict[str, Any]


class NoRevisions:
    """An index in which nothing is found: every step is a full one."""

    def revision(self, ref: ResourceRef) -> Revision | None:
        """See RevisionIndex."""
        return None


class AnnouncedClaims(NoRevisions):
    """The index of a process that shares its store with others, none of which claims anything."""

    def claimants(self, key: ClaimKey) -> Collection[ResourceRef]:
        """See ClaimIndex."""
        return ()

    def location(self, ref: ResourceRef) -> Location | None:
        """See ClaimIndex."""
        return None

    async def caught_up(self, ref: ResourceRef, revision: Revision) -> None:
        """See ClaimIndex."""


@dataclass(slots=True)
class ObjectHarness:
    """A memory store and the kind, for one namespace of a cluster. Close it after use."""

    access: Access
    namespace: str
    environment: Mapping[str, str]
    runner: asyncio.Runner = field(default_factory=asyncio.Runner)
    clock: SystemClock = field(default_factory=SystemClock)
    counts: list[Counter[tuple[str, str, str]]] = field(default_factory=list)
    # Whether steps are those of a controller: a single command has no idle cache.
    is_controller: bool = False
    # Whether other processes claim objects of the same store.
    is_replica: bool = False
    store: MemoryStore = field(init=False)
    clusters: Clusters = field(init=False)

    def __post_init__(self) -> None:
        self.store = MemoryStore(self.clock, lambda: str(uuid.uuid4()))
        self.clusters = self._new_clusters()

    def restart(self) -> None:
        """New clients, as after a restart of the process: only the store and the cluster keep their state."""
        self.run(self.clusters.close())
        self.clusters = self._new_clusters()

    def _new_clusters(self) -> Clusters:
        return Clusters(self.environment, secret=self.store.get, counted=self.counts.append)

    @property
    def kind(self) -> KubernetesObjectKind:
        """KubernetesObject, with these clusters and this clock."""
        return KubernetesObjectKind(self.clusters, self.clock)

    @property
    def engine(self) -> EngineContext:
        """The engine context of the steps."""
        idle_cache = IdleCache(NoRevisions()) if self.is_controller else None
        claims = ObjectClaims(AnnouncedClaims(), is_shared=True) if self.is_replica else ObjectClaims()
        return EngineContext(self.store, self.clock, {(GROUP, NAME): self.kind}, idle_cache=idle_cache, claims=claims)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of `work`."""
        return self.runner.run(work)

    def close(self) -> None:
        """Closes clients and store."""
        self.run(self.clusters.close())
        self.run(self.store.close())
        self.runner.close()

    # --- The author ---------------------------------------------------------------------------------------------------

    def ref(self, name: str = "one") -> ResourceRef:
        """The resource of that name."""
        return ResourceRef(GROUP, NAME, self.namespace, name)

    def declare(
        self, manifest: Tree | str, name: str = "one", *, annotations: Tree | None = None, **spec: Any
    ) -> Resource:
        """Applies a KubernetesObject to the store; an invalid one raises."""
        metadata = {"name": name, "namespace": self.namespace, "annotations": annotations or {}}
        document: Tree = {
            "apiVersion": f"{GROUP}/v1alpha1",
            "kind": NAME,
            "metadata": metadata,
            "spec": {"manifest": manifest, **spec},
        }
        check_manifest(Resource(document), self.kind)
        return self.run(self.store.apply(document))

    def settle(self, manifest: Tree | str, name: str = "one", **spec: Any) -> Settled:
        """Applies a KubernetesObject, and steps until it is settled and ready."""
        self.declare(manifest, name, **spec)
        outcome = self.step_until_done(name)
        assert isinstance(outcome, Settled), outcome
        assert outcome.ready.status == "True", outcome
        return outcome

    def remove(self, name: str = "one") -> StepOutcome:
        """Marks the resource for deletion, and takes a step."""
        self.run(self.store.delete(self.ref(name)))
        return self.step(name)

    def forget(self, name: str = "one") -> None:
        """Removes a resource from the store without a step: its object is as one of another store."""

        async def remove() -> None:
            found = await self.store.get(self.ref(name))
            assert found is not None
            await self.store.set_finalizers(found, ())
            await self.store.delete(self.ref(name))

        self.run(remove())

    def put_secret(self, name: str, **data: str) -> None:
        """Applies a Secret to the store."""
        metadata = {"name": name, "namespace": self.namespace}
        document: Tree = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": data}
        self.run(self.store.apply(document))

    # --- The engine ---------------------------------------------------------------------------------------------------

    def step(self, name: str = "one") -> StepOutcome:
        """One step."""
        return self.run(step(self.ref(name), self.engine))

    def step_with(self, kind: KubernetesObjectKind, name: str = "one") -> StepOutcome:
        """One step with this kind."""
        return self.run(step(self.ref(name), EngineContext(self.store, self.clock, {(GROUP, NAME): kind})))

    def step_until_done(self, name: str = "one") -> StepOutcome:
        """Steps until the outcome is anything but a running operation."""
        outcomes: list[StepOutcome] = []

        def is_done() -> bool:
            outcomes[:] = [self.step(name)]
            return not (isinstance(outcomes[0], Stopped) and isinstance(outcomes[0].error, OperationRunning))

        try:
            until(is_done)
        except TimeoutError as error:
            raise AssertionError(f"still waiting: {outcomes[0]}") from error
        return outcomes[0]

    def stop_reason(self, name: str = "one") -> SetpointError:
        """The error that stops one step."""
        outcome = self.step(name)
        assert isinstance(outcome, Stopped), outcome
        return outcome.error

    def is_gone(self, name: str = "one") -> bool:
        """Whether further steps remove the resource."""
        return isinstance(self.step_until_done(name), Gone) and self.run(self.store.get(self.ref(name))) is None

    def plan(self, name: str = "one") -> Plan:
        """The plan of the next step."""
        return self.run(preview(self.ref(name), self.engine))

    def changes(self, name: str = "one") -> Tree:
        """The fields of that plan, before and after."""
        return {str(one.path): (one.before, one.after) for one in self.plan(name).changes}

    def status(self, name: str = "one") -> Tree:
        """The status of the resource."""
        found = self.run(self.store.get(self.ref(name)))
        assert found is not None
        return dict(found.status)

    def ready(self, name: str = "one") -> tuple[str, str]:
        """Status and reason of the condition Ready."""
        (condition,) = (one for one in self.status(name)["conditions"] if one["type"] == "Ready")
        return condition["status"], condition["reason"]

    # --- The cluster, and other writers -------------------------------------------------------------------------------

    def path(self, plural: str, name: str = "", api: str = "api/v1") -> str:
        """The path of an object in the namespace, or of the collection."""
        return f"/{api}/namespaces/{self.namespace}/{plural}" + (f"/{name}" if name else "")

    def live(self, plural: str, name: str, api: str = "api/v1") -> Tree | None:
        """The object in the cluster; None when there is none."""
        answer = self.access.call("GET", self.path(plural, name, api))
        return None if answer.status == 404 else answer.body

    def edit(self, path: str, patch: Tree) -> Tree:
        """Another writer patches an object."""
        answer = self.access.call("PATCH", path, patch)
        assert answer.status == 200, answer
        body: Tree = answer.body
        return body

    def apply_as(self, manager: str, endpoint: Endpoint, body: Tree, *, force: bool = False) -> None:
        """Another field manager applies a body."""

        async def apply() -> None:
            client = KubernetesClient(connection_from_files([self.access.kubeconfig]))
            try:
                await client.apply(endpoint, body, ApiWriteOptions(manager), force=force)
            finally:
                await client.close()

        self.run(apply())

    def location(self, name: str = "one") -> Location:
        """The location of the object of a resource."""
        resource = self.run(self.store.get(self.ref(name)))
        assert resource is not None
        return self.kind.locate(resource, ResolvedReferences())

    def requests(self) -> int:
        """The number of requests."""
        return sum(one.total() for one in self.counts)

    def writes(self) -> int:
        """The number of requests other than GET, server-side dry runs included."""
        return sum(count for one in self.counts for (method, *_), count in one.items() if method != "GET")


def config_map(name: str = "map", **data: str) -> Tree:
    """A ConfigMap."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def deployment(name: str = "web", *, image: str = "nginx:1", **spec: Any) -> Tree:
    """A Deployment."""
    labels = {"app": name}
    pod = {"containers": [{"name": "main", "image": image}]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
            **spec,
        },
    }


def environment(kubeconfig: Path) -> dict[str, str]:
    """The environment of a process with this kubeconfig."""
    return {"KUBECONFIG": str(kubeconfig)}
