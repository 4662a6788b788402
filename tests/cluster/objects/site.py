"""KubernetesObjects on a real API server, one step at a time: a world in memory, and a cluster that is not."""

import asyncio
import uuid
from collections import Counter
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from setpoint.clients.kubernetes.client import KubernetesClient
from setpoint.clients.kubernetes.contexts import connection_from_files
from setpoint.clients.kubernetes.requests import ApiWriteOptions, Endpoint
from setpoint.core.plan import Plan
from setpoint.engine.context import EngineContext, Gone, Settled, StepOutcome, Stopped
from setpoint.engine.intent import check_manifest
from setpoint.engine.ports import SystemClock
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.engine.step.reconcile import preview, step
from setpoint.errors import OperationRunning, SetpointError
from setpoint.kinds.kubernetes_object.clusters import Clusters
from setpoint.kinds.kubernetes_object.kind import KubernetesObjectKind
from setpoint.kinds.kubernetes_object.spec import GROUP, NAME
from setpoint.stores.memory import MemoryStore
from tests.cluster.access import Access

T = TypeVar("T")
Tree = dict[str, Any]
# More looks than anything here takes.
ENOUGH = 200


@dataclass(slots=True)
class Site:
    """One namespace of the cluster, and the resources of one process. `close` ends both."""

    access: Access
    namespace: str
    environment: Mapping[str, str]
    runner: asyncio.Runner = field(default_factory=asyncio.Runner)
    clock: SystemClock = field(default_factory=SystemClock)
    counts: list[Counter[tuple[str, str, str]]] = field(default_factory=list)
    store: MemoryStore = field(init=False)
    clusters: Clusters = field(init=False)

    def __post_init__(self) -> None:
        self.store = MemoryStore(self.clock, lambda: str(uuid.uuid4()))
        self.clusters = self._new_clusters()

    def restart(self) -> None:
        """The process starts anew: what the store and the cluster keep is all there is."""
        self.run(self.clusters.close())
        self.clusters = self._new_clusters()

    def _new_clusters(self) -> Clusters:
        return Clusters(self.environment, secret=self.store.get, counted=self.counts.append)

    @property
    def kind(self) -> KubernetesObjectKind:
        """The kind."""
        return KubernetesObjectKind(self.clusters, self.clock)

    @property
    def engine(self) -> EngineContext:
        """The world of this process."""
        return EngineContext(self.store, self.clock, {(GROUP, NAME): self.kind})

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """What `work` comes to."""
        return self.runner.run(work)

    def close(self) -> None:
        """Ends it."""
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
        """Hands in a KubernetesObject; what is wrong with it is raised."""
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
        """Hands it in, and steps until nothing is left to do."""
        self.declare(manifest, name, **spec)
        outcome = self.go_on(name)
        assert isinstance(outcome, Settled), outcome
        assert outcome.ready.status == "True", outcome
        return outcome

    def remove(self, name: str = "one") -> StepOutcome:
        """Asks for the deletion, and takes a step."""
        self.run(self.store.delete(self.ref(name)))
        return self.step(name)

    def put_secret(self, name: str, **data: str) -> None:
        """Hands in a Secret."""
        metadata = {"name": name, "namespace": self.namespace}
        document: Tree = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": data}
        self.run(self.store.apply(document))

    # --- The engine ---------------------------------------------------------------------------------------------------

    def step(self, name: str = "one") -> StepOutcome:
        """One step."""
        return self.run(step(self.ref(name), self.engine))

    def step_with(self, kind: KubernetesObjectKind, name: str = "one") -> StepOutcome:
        """One step of a process whose kind is this one."""
        return self.run(step(self.ref(name), EngineContext(self.store, self.clock, {(GROUP, NAME): kind})))

    def go_on(self, name: str = "one") -> StepOutcome:
        """Steps until there is nothing to wait for."""
        outcome = self.step(name)
        for _ in range(ENOUGH):
            if not (isinstance(outcome, Stopped) and isinstance(outcome.error, OperationRunning)):
                return outcome
            self.run(asyncio.sleep(0.05))
            outcome = self.step(name)
        raise AssertionError(f"still waiting after {ENOUGH} steps: {outcome}")

    def stop(self, name: str = "one") -> SetpointError:
        """Why one step ends early."""
        outcome = self.step(name)
        assert isinstance(outcome, Stopped), outcome
        return outcome.error

    def is_gone(self, name: str = "one") -> bool:
        """Whether steps end with nothing left of the resource."""
        return isinstance(self.go_on(name), Gone) and self.run(self.store.get(self.ref(name))) is None

    def plan(self, name: str = "one") -> Plan:
        """What the next step would do."""
        return self.run(preview(self.ref(name), self.engine))

    def changes(self, name: str = "one") -> Tree:
        """The fields of that plan, before and after."""
        return {str(one.path): (one.before, one.after) for one in self.plan(name).changes}

    def status(self, name: str = "one") -> Tree:
        """What the resource says of itself."""
        found = self.run(self.store.get(self.ref(name)))
        assert found is not None
        return dict(found.status)

    def ready(self, name: str = "one") -> tuple[str, str]:
        """Status and reason of its condition."""
        (condition,) = (one for one in self.status(name)["conditions"] if one["type"] == "Ready")
        return condition["status"], condition["reason"]

    # --- The cluster, and others in it --------------------------------------------------------------------------------

    def path(self, plural: str, name: str = "", api: str = "api/v1") -> str:
        """The path of an object in the namespace, or of all of them."""
        return f"/{api}/namespaces/{self.namespace}/{plural}" + (f"/{name}" if name else "")

    def live(self, plural: str, name: str, api: str = "api/v1") -> Tree | None:
        """The object, as the administrator sees it."""
        answer = self.access.call("GET", self.path(plural, name, api))
        return None if answer.status == 404 else answer.body

    def edit(self, path: str, patch: Tree) -> Tree:
        """A person changes an object."""
        answer = self.access.call("PATCH", path, patch)
        assert answer.status == 200, answer
        body: Tree = answer.body
        return body

    def apply_as(self, manager: str, endpoint: Endpoint, body: Tree, *, force: bool = False) -> None:
        """Another applier declares something."""

        async def apply() -> None:
            client = KubernetesClient(connection_from_files([self.access.kubeconfig]))
            try:
                await client.apply(endpoint, body, ApiWriteOptions(manager), force=force)
            finally:
                await client.close()

        self.run(apply())

    def writes(self) -> int:
        """How many requests there were that may change something, rehearsals among them."""
        return sum(count for one in self.counts for (method, *_), count in one.items() if method != "GET")


def config_map(name: str = "map", **data: str) -> Tree:
    """The simplest of objects."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def deployment(name: str = "web", *, image: str = "nginx:1", **spec: Any) -> Tree:
    """A workload."""
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
    """What a process is told by which this file is the kubeconfig."""
    return {"KUBECONFIG": str(kubeconfig)}
