"""A session for one KubernetesObject, in a memory store that lasts as long as one call.

The stored state comes from the caller and goes back to it.
"""

import uuid
from collections.abc import Sequence
from dataclasses import field, replace
from typing import ClassVar, Final

from setpoint.clients.kubernetes.builtin_kinds import builtin_kinds
from setpoint.clients.kubernetes.client import KubernetesClient
from setpoint.clients.kubernetes.discovery import ApiResource
from setpoint.clients.kubernetes.kubeconfig import ClusterConnection
from setpoint.core.plan import Plan
from setpoint.core.unstructured import text_at
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import Json, JsonObject
from setpoint.core.values.messages import Message, SubjectTerm
from setpoint.core.values.paths import Path
from setpoint.engine.context import FINALIZER, EngineContext
from setpoint.engine.drivers.runner import StepRunner
from setpoint.engine.intent import check_manifest, resolve_intent
from setpoint.engine.kind import Location
from setpoint.engine.ports import Clock, SystemClock
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.engine.state import StoredState
from setpoint.engine.step.outcomes import Stopped
from setpoint.engine.step.reconcile import preview
from setpoint.errors import RemoteUnavailable, SetpointError
from setpoint.kinds.kubernetes_object.clusters import Clusters
from setpoint.kinds.kubernetes_object.location import parse_object_location
from setpoint.kinds.kubernetes_object.managed_fields import field_manager_of
from setpoint.kinds.kubernetes_object.spec import GROUP, NAME, VERSION
from setpoint.objects.object_fields import declared_fields
from setpoint.objects.recent_answers import RecentAnswers
from setpoint.objects.recording_kind import RecordingKind
from setpoint.objects.settled_objects import SettledObject, shown_digest
from setpoint.stores.memory import MemoryStore


@dataclass(frozen=True, slots=True)
class ClusterSession:
    """The clients of one cluster, with one user's credentials."""

    client: KubernetesClient
    clusters: Clusters
    clock: Clock
    answers: RecentAnswers
    # The kinds that the cluster is taken to serve, until a call shows otherwise.
    assumed: dict[tuple[str, str], ApiResource] = field(default_factory=dict)

    @staticmethod
    def at(
        connection: ClusterConnection, client: KubernetesClient | None = None, answers: RecentAnswers | None = None
    ) -> "ClusterSession":
        """The session of a connection, by a client of it or a new one; no request is sent yet."""
        client, clock, assumed = client or KubernetesClient(connection), SystemClock(), dict(builtin_kinds())
        clusters = Clusters(own=client, assumed=assumed)
        return ClusterSession(client, clusters, clock, answers or RecentAnswers(), assumed)

    def assume(self, served: ApiResource) -> None:
        """Takes a kind as served that the caller knows from before."""
        self.assumed[served.api_version, served.kind] = served


NO_STATE: Final[JsonObject] = {}


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
        self._cluster = cluster
        self._kind = self.kind_type(cluster.clusters, cluster.clock, answers=cluster.answers)
        self._store = MemoryStore(cluster.clock, lambda: str(uuid.uuid4()))
        self._engine = EngineContext(self._store, cluster.clock, {(GROUP, NAME): self._kind})
        self._spec = spec
        self._state = state

    async def check(self) -> None:
        """ManifestInvalid for a spec that no cluster accepts. No request is sent."""
        check_manifest(await self._declared_resource(), self._kind)

    async def observe(self, *, may_be_recent: bool = False) -> Json:
        """The live object; None when there is none. The next step, or forecast, of this session starts from it.

        One that `may_be_recent` is what another session of this process read within the last seconds, if one did.
        """
        return await self._kind.read(await self.location(), may_be_recent=may_be_recent)

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

    async def forecast_creation(self) -> ObjectForecast | None:
        """What `reconcile` would make of an object that does not exist, by a dry run alone.

        None when it may exist, or an error would stop it: `observe` and `forecast` tell.
        """
        self._kind.expect_absent(await self.location())
        try:
            await self.check()
            plan = await preview(self.ref, self._engine)
        except SetpointError:
            return None
        foreseen = self._kind.foreseen
        # The API server gives no resource version to what it does not store.
        if foreseen is None or text_at(foreseen.after, "metadata", "resourceVersion"):
            return None
        return ObjectForecast(plan, None, foreseen.after)

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

    async def settled(self, left_out: Sequence[Path] = ()) -> SettledObject | None:
        """The object as it is; None when something is left to write, or withheld, or contested.

        `left_out` are the paths that `fields` leaves out.
        """
        resource = await self._store.get(self.ref)
        state = StoredState() if resource is None else StoredState.of(resource)
        is_left = state.attempt is not None or state.oscillations.fields or state.flips.is_contested
        if state.cookie is None or state.location is None or is_left:
            return None
        shown = shown_digest(self.fields(self.live, left_out))
        served = await self._discovered_kind(state.location)
        if served is None:
            return SettledObject(state.location, state.cookie.live, shown)
        return SettledObject(state.location, state.cookie.live, shown, served.plural, not served.namespaced)

    async def _discovered_kind(self, of: Location) -> ApiResource | None:
        """The kind of an object, where it was looked up; None for one that is known by itself."""
        location = parse_object_location(of)
        key = location.api_version, location.kind
        if key in builtin_kinds():
            return None
        return (await self._cluster.clusters.connect(location.cluster)).discovery.known(*key)

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
