"""The kind KubernetesObject with the answers of its cluster: what was answered a moment ago is not asked again."""

from dataclasses import field
from typing import Final

from setpoint.core.decide import Decision
from setpoint.core.plan import PlannedWrite
from setpoint.core.schema.annotations import TERRAFORM_ID
from setpoint.core.unstructured import text_at
from setpoint.core.values.canonical import digest, same
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import Json, JsonObject
from setpoint.core.values.paths import Path, remove_at
from setpoint.engine.kind import Absent, Intent, LiveObservation, Location, Present, RemoteOperation, Unchanged
from setpoint.engine.resource import Resource
from setpoint.errors import ManagementConflict
from setpoint.kinds.kubernetes_object.apply_result import observation_of
from setpoint.kinds.kubernetes_object.kind import KubernetesObjectKind
from setpoint.kinds.kubernetes_object.location import parse_object_location
from setpoint.kinds.kubernetes_object.managed_fields import setpoint_projection
from setpoint.kinds.kubernetes_object.options import apply_intent_of
from setpoint.kinds.kubernetes_object.remote import DryRunResult
from setpoint.kinds.kubernetes_object.spec import LiveObject
from setpoint.objects.recent_answers import RecentAnswer, RecentAnswers, RecentForecast

_ID: Final = Path(("metadata", "annotations", TERRAFORM_ID))


@dataclass(slots=True)
class RecordingKind(KubernetesObjectKind):
    """The kind, which keeps the last answers of the cluster and does not ask for them again."""

    answers: RecentAnswers = field(default_factory=RecentAnswers)
    live: Json = None
    foreseen: DryRunResult | None = None
    # The uid of the object that this session is about: one that was made since is another writer's.
    uid: str = ""
    is_deletion: bool = False
    # The next observation of this location: what was read for the caller, or the response to a write.
    _fresh: tuple[Location, Absent | Present[LiveObject]] | None = None
    # What another session of this process was answered before this one read the object.
    _recent: RecentAnswer | None = None
    # The response to a write that did what its dry run had shown: applied once more it would not change.
    _as_foreseen: Present[LiveObject] | None = None

    async def read(self, location: Location, *, may_be_recent: bool = False) -> Json:
        """The live object, by a request or from a recent answer; the next `observe` returns the same without one."""
        self._recent = self.answers.of(location)
        is_recent = may_be_recent and self._recent is not None
        self._fresh = (location, _decoded(self._recent, location)) if is_recent and self._recent else None
        sent_at = self.answers.now()
        found = await self.observe(location)
        if not isinstance(found, Unchanged):
            self._fresh = (location, found)
            if not is_recent and not self.uid:
                self.answers.keep(location, RecentAnswer(sent_at, found))
        return self.live

    def expect_absent(self, location: Location) -> None:
        """The next `observe` returns that there is no object, without a request: a dry run tells whether that is so."""
        self._fresh, self.foreseen = (location, Absent()), None

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

    async def dry_run(self, intent: Intent, observed: LiveObservation, decision: Decision) -> tuple[PlannedWrite, ...]:
        """See SupportsDryRun."""
        if self._as_foreseen is not None and observed is self._as_foreseen:
            self.foreseen = DryRunResult((), self._as_foreseen.whole)
            return ()
        recent = self._recent_forecast(intent, observed)
        self.foreseen = await self._dry_run(intent, observed) if recent is None else recent
        return self.foreseen.writes

    async def _dry_run(self, intent: Intent, observed: LiveObservation) -> DryRunResult:
        sent_at = self.answers.now()
        # The dry run shows what becomes of every field. A field manager that only changed a field, and does not apply
        # it, is therefore no conflict, whether or not the manifest has changed as well.
        found = await self.remote.dry_run(intent, observed, Decision.DRIFTED)
        # The API server gives no resource version to what it does not store: with one, there is an object by now.
        if not isinstance(observed, Absent) or not text_at(found.after, "metadata", "resourceVersion"):
            made = RecentForecast(_forecast_key(intent, observed), found)
            self.answers.keep(intent.location, RecentAnswer(sent_at, observed, made))
        return found

    def _recent_forecast(self, intent: Intent, observed: LiveObservation) -> DryRunResult | None:
        """The dry run of this intent that another session has made of the same object, if there is one."""
        found = None if self._recent is None else self._recent.forecast
        return found.result if found is not None and found.intent == _forecast_key(intent, observed) else None

    # --- Writing ------------------------------------------------------------------------------------------------------

    async def create(self, intent: Intent, wanted: JsonObject) -> None:
        """Creates the object: the response is what a read would return."""
        self.answers.begin_write(intent.location)
        self._written(intent, (await self.remote.create(intent)).after)
        # In the place of one that was deleted meanwhile.
        self.uid = self.uid and text_at(self.live, "metadata", "uid")

    async def update(
        self, intent: Intent, wanted: JsonObject, write: PlannedWrite, before: Present[LiveObject]
    ) -> None:
        """Updates the object: the response is what a read would return."""
        self.answers.begin_write(intent.location)
        self._written(intent, (await self.remote.update(intent, write, before.whole)).after)

    async def delete(
        self, location: Location, before: Present[LiveObject], resource: Resource
    ) -> RemoteOperation | None:
        """Deletes the object: it is read back, and is gone."""
        self.answers.begin_write(location)
        await self.remote.delete(location, before.whole, resource)
        self._fresh = (location, Absent())
        return None

    def _written(self, intent: Intent, after: Present[LiveObject]) -> None:
        self._fresh, self.live = (intent.location, after), after.whole
        foreseen = self.foreseen
        is_known = foreseen is not None and not foreseen.is_takeover
        is_as_foreseen = foreseen is not None and is_known and same(_owned(foreseen.after), _owned(after.whole))
        self._as_foreseen = after if is_as_foreseen else None


def _decoded(answer: RecentAnswer, location: Location) -> Absent | Present[LiveObject]:
    return observation_of(answer.observed, location) if isinstance(answer.observed, bytes) else answer.observed


def _forecast_key(intent: Intent, observed: LiveObservation) -> str:
    """Identifies a dry run: by object, field manager and intent.

    A new object gets its ID, and with it its field manager, when it is created: they do not count.
    """
    request = apply_intent_of(intent)
    if isinstance(observed, Absent):
        return digest(["create", remove_at(request.tree, _ID)])
    return digest(["update", request.manager, intent.digest, observed.body])


def _owned(tree: Json) -> JsonObject:
    """The fields that KubernetesObjects own, without the ID of a new object."""
    found = setpoint_projection(tree).to_data()
    leaves = found["leaves"]
    assert isinstance(leaves, dict)
    return {**found, "leaves": {path: value for path, value in leaves.items() if path != str(_ID)}}
