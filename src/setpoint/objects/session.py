"""A session for one KubernetesObject, in a memory store that lasts as long as one call.

The stored state comes from the caller and goes back to it.
"""

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final

from setpoint.clients.kubernetes.client import KubernetesClient
from setpoint.clients.kubernetes.kubeconfig import ClusterConnection
from setpoint.core.decide import Decision
from setpoint.core.plan import Plan, PlannedWrite
from setpoint.core.secret_paths import has_secret_fields, secret_within
from setpoint.core.unstructured import text_at
from setpoint.core.values.canonical import canonical, digest
from setpoint.core.values.json_types import MISSING, Json, JsonObject, Missing
from setpoint.core.values.messages import Message, SubjectTerm
from setpoint.core.values.paths import Path, scalar_text, value_below
from setpoint.engine.context import FINALIZER, EngineContext
from setpoint.engine.drivers.runner import StepRunner
from setpoint.engine.intent import check_manifest, resolve_intent
from setpoint.engine.kind import Absent, Intent, LiveObservation, Location, Present, RemoteOperation, Unchanged
from setpoint.engine.ports import Clock, SystemClock
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.engine.state import StoredState
from setpoint.engine.step.outcomes import Stopped
from setpoint.engine.step.reconcile import preview
from setpoint.errors import ManagementConflict, ManifestInvalid, RemoteUnavailable, SetpointError
from setpoint.kinds.kubernetes_object.clusters import Clusters, parse_object_location
from setpoint.kinds.kubernetes_object.kind import KubernetesObjectKind
from setpoint.kinds.kubernetes_object.managed_fields import (
    NO_FIELDS,
    field_manager_of,
    foreign_fields,
    manager_fields,
    own_value,
    project,
)
from setpoint.kinds.kubernetes_object.remote import DryRunResult
from setpoint.kinds.kubernetes_object.spec import GROUP, NAME, VERSION, LiveObject
from setpoint.stores.memory import MemoryStore


@dataclass(frozen=True, slots=True)
class ClusterSession:
    """The clients of one cluster, with one user's credentials."""

    client: KubernetesClient
    clusters: Clusters
    clock: Clock

    @staticmethod
    def at(connection: ClusterConnection) -> "ClusterSession":
        """The session of a connection; no request is sent yet."""
        client = KubernetesClient(connection)
        return ClusterSession(client, Clusters(own=client), SystemClock())


# How much of a digest is shown: enough to see that a value changed.
_SHOWN: Final = 12
# Fields that only repeat the identity of the object.
_IDENTITY: Final = tuple(Path.parse(text) for text in ("apiVersion", "kind", "metadata.name", "metadata.namespace"))


def declared_fields(of: Json, manager: str, left_out: Iterable[Path] = ()) -> dict[str, str]:
    """The fields of an object that `manager` owns: each value as text, by its path."""
    shown = declared_values(of, manager, left_out)
    return {
        str(path): field_text(path, value, of) for path, value in sorted(shown.items(), key=lambda one: str(one[0]))
    }


def declared_values(of: Json, manager: str, left_out: Iterable[Path] = ()) -> dict[Path, Json]:
    """The values of the fields of an object that `manager` owns, by path."""
    leaves = project(of, manager_fields(of, manager) or NO_FIELDS, foreign_fields(of)).leaves
    apart = (*left_out, *_IDENTITY)
    return {path: value for path, value in leaves.items() if not any(one.covers(path) for one in apart)}


def fields_at(of: Json, places: Sequence[str]) -> dict[str, str]:
    """The values at these paths of an object, whichever field manager owns them; a missing one is left out.

    Of an object or list, without what other field managers have added below it.
    """
    found: dict[str, str] = {}
    foreign = foreign_fields(of)
    for place in places:
        try:
            path = Path.parse(place)
        except ManifestInvalid:
            # A path of another version of setpoint.
            continue
        value = value_at(of, path)
        if not isinstance(value, Missing):
            found[place] = field_text(path, own_value(value, of, path, foreign), of)
    return found


def value_at(of: Json, path: Path) -> Json | Missing:
    """The value at a path of a projection, in which the elements of a set go by their values; MISSING for none."""
    found: Json | Missing = of
    for step in path.steps:
        found = _member(found, step) if isinstance(found, list) and isinstance(step, str) else value_below(found, step)
    return found


def _member(elements: Sequence[Json], text: str) -> Json | Missing:
    """An element of a set, which is identified by its value."""
    return next((one for one in elements if scalar_text(one) == text), MISSING)


def field_text(path: Path, value: Json, of: Json) -> str:
    """The value of a field of an object as text; that of a secret hidden."""
    if has_secret_fields(of) and secret_within(of, path) is not None:
        return f"(hidden, sha256 {digest([value])[:_SHOWN]})"
    return value if isinstance(value, str) else canonical(value).decode()


NO_STATE: Final[JsonObject] = {}


@dataclass(slots=True)
class RecordingKind(KubernetesObjectKind):
    """The kind, which keeps the last answers of the cluster and does not ask for them again."""

    live: Json = None
    foreseen: DryRunResult | None = None
    # The uid of the object that this session is about: one that was made since is another writer's.
    uid: str = ""
    is_deletion: bool = False
    # The next observation of this location: what was read for the caller, or the response to a write.
    _fresh: tuple[Location, Absent | Present[LiveObject]] | None = None

    async def read(self, location: Location) -> Json:
        """The live object, by a request; the next `observe` returns the same without another one."""
        self._fresh = None
        found = await self.observe(location)
        if not isinstance(found, Unchanged):
            self._fresh = (location, found)
        return self.live

    async def observe(self, location: Location, known: str | None = None) -> Absent | Present[LiveObject] | Unchanged:
        """See Kind; always decoded."""
        fresh, self._fresh = self._fresh, None
        is_fresh = fresh is not None and fresh[0] == location
        found = fresh[1] if fresh and is_fresh else await KubernetesObjectKind.observe(self, location)
        if isinstance(found, Present) and self.uid and found.live.uid != self.uid:
            if not self.is_deletion:
                title = parse_object_location(location).title
                raise ManagementConflict(f"{title} was deleted and made again by another writer: plan again")
            found = Absent()
        self.live = found.whole if isinstance(found, Present) else None
        return found

    async def create(self, intent: Intent, wanted: JsonObject) -> RemoteOperation | None:
        """Creates the object: the response is what a read would return."""
        self._written(intent, await self.remote.create(intent))
        return None

    async def update(
        self, intent: Intent, wanted: JsonObject, write: PlannedWrite, before: Present[LiveObject]
    ) -> RemoteOperation | None:
        """Updates the object: the response is what a read would return."""
        self._written(intent, await self.remote.update(intent, write, before.whole))
        return None

    def _written(self, intent: Intent, after: Present[LiveObject]) -> None:
        self._fresh, self.live = (intent.location, after), after.whole

    async def dry_run(self, intent: Intent, observed: LiveObservation, decision: Decision) -> tuple[PlannedWrite, ...]:
        """See SupportsDryRun."""
        # The dry run shows what becomes of every field. A field manager that only changed a field, and does not apply
        # it, is therefore no conflict, whether or not the manifest has changed as well.
        self.foreseen = await self.remote.dry_run(intent, observed, Decision.DRIFTED)
        return self.foreseen.writes


@dataclass(frozen=True, slots=True)
class ObjectForecast:
    """What an apply would do: the plan, the object as it is, and as it would be.

    `is_takeover`: fields of other managers would become ours.
    """

    plan: Plan
    live: Json
    after: Json
    is_takeover: bool = False


class ObjectSession:
    """One object as `spec`, the spec of a KubernetesObject, declares it. `name` is that of the resource.

    `state` is what `stored_state` of the session before returned.
    """

    kind_type: ClassVar[type[RecordingKind]] = RecordingKind

    def __init__(
        self,
        cluster: ClusterSession,
        name: str,
        spec: JsonObject,
        state: JsonObject = NO_STATE,
        *,
        namespace: str = "",
    ) -> None:
        self.connection: Final = cluster.client.connection
        self.ref: Final = ResourceRef(GROUP, NAME, namespace or self.connection.namespace, name)
        self.manager: Final = field_manager_of(self.ref)
        self._kind = self.kind_type(cluster.clusters, cluster.clock)
        self._store = MemoryStore(cluster.clock, lambda: str(uuid.uuid4()))
        self._engine = EngineContext(self._store, cluster.clock, {(GROUP, NAME): self._kind})
        self._spec = spec
        self._state = state

    async def check(self) -> None:
        """ManifestInvalid for a spec that no cluster accepts. No request is sent."""
        check_manifest(await self._declared_resource(), self._kind)

    async def observe(self) -> Json:
        """The live object; None when there is none. The next step, or forecast, of this session starts from it."""
        return await self._kind.read(await self.location())

    async def location(self) -> Location:
        """The location of the object."""
        return (await resolve_intent(await self._declared_resource(), self._engine)).location

    async def forecast(self) -> ObjectForecast:
        """What `reconcile` would do now; an error that would stop it is raised."""
        await self._declared_resource()
        plan = await preview(self.ref, self._engine)
        live, foreseen = self._kind.live, self._kind.foreseen
        if foreseen is None:
            return ObjectForecast(plan, live, live)
        return ObjectForecast(plan, live, foreseen.after, foreseen.is_takeover)

    async def reconcile(self, seconds: float) -> SetpointError | None:
        """Reconciles the object within so many seconds; the error that stopped it, if any."""
        await self._declared_resource()
        return await self._run(seconds)

    async def delete(self, seconds: float) -> SetpointError | None:
        """Deletes the object that was last observed, and no later one; the error that stopped it, if any."""
        self.pin()
        self._kind.is_deletion = True
        resource = await self._declared_resource()
        location = await self.location()
        state = replace(StoredState.of(resource), location=location)
        resource = await self._store.update_status(resource, state.into(resource.status, with_cookie=True))
        await self._store.set_finalizers(resource, (FINALIZER,))
        await self._store.delete(self.ref)
        return await self._run(seconds)

    def pin(self) -> None:
        """From here on the session is about the object that was last observed, and no later one of its name."""
        self._kind.uid = text_at(self._kind.live, "metadata", "uid")

    async def stored_state(self) -> JsonObject:
        """The stored state, for the next session."""
        found = await self._store.get(self.ref)
        return self._state if found is None else found.status

    @property
    def live(self) -> Json:
        """The object as last observed; None when there was none."""
        return self._kind.live

    def fields(self, of: Json, left_out: Sequence[Path] = ()) -> dict[str, str]:
        """The fields of an object that this session declares."""
        return declared_fields(of, self.manager, left_out)

    async def _run(self, seconds: float) -> SetpointError | None:
        run = StepRunner(self._engine, trigger="an apply", requested=True)
        outcome = (await run.until_done([self.ref], seconds)).get(self.ref)
        if outcome is None:
            return RemoteUnavailable(Message(SubjectTerm(str(self.ref)), f"nothing came of it within {seconds:g} s"))
        return outcome.error if isinstance(outcome, Stopped) else None

    async def _declared_resource(self) -> Resource:
        found = await self._store.get(self.ref)
        if found is not None:
            return found
        metadata: Json = {"name": self.ref.name, "namespace": self.ref.namespace}
        members: JsonObject = {"kind": NAME, "metadata": metadata, "spec": dict(self._spec)}
        made = await self._store.apply({"apiVersion": f"{GROUP}/{VERSION}", **members})
        return await self._store.update_status(made, self._state) if self._state else made
