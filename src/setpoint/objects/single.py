"""One KubernetesObject in a store of its own that lasts as long as one call: its memory comes and goes with it."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from setpoint.core.decide import Decision
from setpoint.core.paths import Path
from setpoint.core.plan import Plan, Write
from setpoint.core.values import Json
from setpoint.engine.intent import check_manifest, resolve
from setpoint.engine.kind import Absent, Intent, Location, Look, Present, Unmoved
from setpoint.engine.reconcile import preview
from setpoint.engine.remembered import Remembered
from setpoint.engine.resource import Resource, ResourceRef, Tree
from setpoint.engine.run import Run
from setpoint.engine.scene import FINALIZER, Stopped, World
from setpoint.errors import RemoteUnavailable, SetpointError
from setpoint.kinds.kubernetes_object.kind import KubernetesObjectKind
from setpoint.kinds.kubernetes_object.ownership import manager_of
from setpoint.kinds.kubernetes_object.remote import Foreseen
from setpoint.kinds.kubernetes_object.spec import GROUP, NAME, VERSION, LiveObject
from setpoint.objects.fields import declared_fields
from setpoint.objects.site import Site
from setpoint.stores.memory import MemoryStore

NO_MEMORY: Final[Tree] = {}


@dataclass(slots=True)
class _Attentive(KubernetesObjectKind):
    """The kind, with what the cluster last said."""

    live: Json = None
    foreseen: Foreseen | None = None

    async def observe(self, location: Location, known: str | None = None) -> Absent | Present[LiveObject] | Unmoved:
        """Always the whole object."""
        found = await KubernetesObjectKind.observe(self, location)
        self.live = found.whole if isinstance(found, Present) else None
        return found

    async def rehearse(self, intent: Intent, look: Look, decision: Decision) -> tuple[Write, ...]:
        """See Rehearsable."""
        # A forecast shows what becomes of every field. So whoever but changed one, and does not declare it, is no
        # obstacle, whether or not the manifest has changed as well.
        self.foreseen = await self.remote.foresee(intent, look, Decision.DRIFTED)
        return self.foreseen.writes


@dataclass(frozen=True, slots=True)
class Forecast:
    """What keeping the object would do: the plan, the object as it is, and as it would be."""

    plan: Plan
    live: Json
    after: Json


class Single:
    """An object that is to be as `spec`, the spec of a KubernetesObject, says. `name` is that of its keeper."""

    def __init__(self, site: Site, name: str, spec: Tree, memory: Tree = NO_MEMORY) -> None:
        self.ref: Final = ResourceRef(GROUP, NAME, site.client.connection.namespace, name)
        self.manager: Final = manager_of(self.ref)
        self._kind = _Attentive(site.clusters, site.clock)
        self._store = MemoryStore(site.clock, lambda: str(uuid.uuid4()))
        self._world = World(self._store, site.clock, {(GROUP, NAME): self._kind})
        self._spec = spec
        self._memory = memory

    async def check(self) -> None:
        """ManifestInvalid for what no cluster could take. No cluster is asked."""
        check_manifest(await self._opened(), self._kind)

    async def look(self) -> Json:
        """The object as it is; None when there is none."""
        await self._kind.observe(await self.location())
        return self._kind.live

    async def location(self) -> Location:
        """Where it is."""
        return (await resolve(await self._opened(), self._world)).location

    async def foresee(self) -> Forecast:
        """What `keep` would do now. What would stop it is raised."""
        await self._opened()
        plan = await preview(self.ref, self._world)
        live, foreseen = self._kind.live, self._kind.foreseen
        return Forecast(plan, live, live if foreseen is None else foreseen.after)

    async def keep(self, seconds: float) -> SetpointError | None:
        """Has the object be as it should, within so many seconds; what stood in the way, if anything did."""
        await self._opened()
        return await self._run(seconds)

    async def remove(self, seconds: float) -> SetpointError | None:
        """Has the object go; what stood in the way, if anything did."""
        resource = await self._opened()
        location = await self.location()
        memory = replace(Remembered.of(resource), location=location)
        resource = await self._store.update_status(resource, memory.into(resource.status, with_cookie=True))
        await self._store.set_finalizers(resource, (FINALIZER,))
        await self._store.delete(self.ref)
        return await self._run(seconds)

    async def memory(self) -> Tree:
        """What is to be handed in the next time."""
        found = await self._store.get(self.ref)
        return self._memory if found is None else found.status

    @property
    def live(self) -> Json:
        """The object, as it was last seen; None when there was none."""
        return self._kind.live

    def fields(self, of: Json, left_out: Sequence[Path] = ()) -> dict[str, str]:
        """What is declared of an object here."""
        return declared_fields(of, self.manager, left_out)

    async def _run(self, seconds: float) -> SetpointError | None:
        run = Run(self._world, trigger="its author's word", asked=True)
        outcome = (await run.until_done([self.ref], seconds)).get(self.ref)
        if outcome is None:
            return RemoteUnavailable(f"{self.ref}: nothing came of it within {seconds:g} s")
        return outcome.error if isinstance(outcome, Stopped) else None

    async def _opened(self) -> Resource:
        found = await self._store.get(self.ref)
        if found is not None:
            return found
        metadata: Json = {"name": self.ref.name, "namespace": self.ref.namespace}
        members: Tree = {"kind": NAME, "metadata": metadata, "spec": dict(self._spec)}
        made = await self._store.apply({"apiVersion": f"{GROUP}/{VERSION}", **members})
        return await self._store.update_status(made, self._memory) if self._memory else made
