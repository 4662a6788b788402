"""What a step works with, and what it may end in: the engine's dependencies, the step context, the outcome."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Final, Self

from setpoint.core.conditions import ConditionReason, ConditionType
from setpoint.core.decide import Cookie
from setpoint.core.plan import PlannedWrite
from setpoint.core.schema import annotations as known_annotations
from setpoint.core.schema.annotations import AnnotationProblem, AnnotationTarget, annotation_warnings, check_annotations
from setpoint.core.secret_fields import SecretFields
from setpoint.core.unstructured import GroupKind
from setpoint.core.values.canonical import same
from setpoint.core.values.deferred_dataclass import dataclass, replace
from setpoint.core.values.deferred_mapping import joined
from setpoint.core.values.json_types import JsonObject
from setpoint.core.values.messages import Message, message_of
from setpoint.core.values.shortening import MAX_EVENT_BYTES, shorten
from setpoint.engine.claims.object_claims import ObjectClaims, announced_location
from setpoint.engine.conditions import ReadyCondition, condition_of, warning_in, with_conditions, with_warnings
from setpoint.engine.contention.intent_flips import NO_FLIPS
from setpoint.engine.contention.operation_queue import OperationQueues
from setpoint.engine.contention.oscillation import NO_OSCILLATIONS
from setpoint.engine.contention.status_edits import LeftStatus, StatusEdits
from setpoint.engine.idle_cache import FoundObject, IdleCache, ListedObjects
from setpoint.engine.kind import AnyKind, Location, ResourceType, secret_fields_of
from setpoint.engine.management import CookieLocation, Management, management_of
from setpoint.engine.metrics import NoMetrics, StepMetrics
from setpoint.engine.owner import SECRETS, Owner, unknown_type
from setpoint.engine.ports import Clock, DefinitionSource, EventRecord, ResourceUpdate, Store, outdated_definition
from setpoint.engine.resource import Resource, ResourceRef, Revision
from setpoint.engine.state import (
    COOKIE,
    COOKIE_ANNOTATION,
    ENGINE_STATE,
    StoredState,
    is_status_edited,
    with_status_digest,
    without_status_digest,
)
from setpoint.engine.step.reports import NoReports, StepReporter, history_of_commit
from setpoint.engine.tenancy.reference_grants import REFERENCE_GRANT
from setpoint.engine.tenancy.tenants import Tenancy
from setpoint.errors import DefinitionOutdated, ManifestInvalid

FINALIZER: Final = "cnrm.cloud.google.com/finalizer"
# A finalizer of Config Connector, which it removes unless the CustomResourceDefinition itself is being deleted.
DELETION_DEFENDER: Final = "cnrm.cloud.google.com/deletion-defender"
DELETION_POLICY: Final = known_annotations.DELETION_POLICY
# Ends the message about an annotation of a resource that is being deleted: its annotations can still be changed.
_KEPT: Final = "; nothing is deleted until that is corrected"
# In the record of a step: no caller said what caused it.
UNSPECIFIED_TRIGGER: Final = "unspecified"
# What follows from a write that was sent.
_EXPECTED_REASONS: Final = frozenset({ConditionReason.UP_TO_DATE, ConditionReason.UPDATING})


@dataclass(frozen=True, slots=True)
class EngineContext:
    """The dependencies of the engine: store, clock, metrics, and every kind and owner by API group and name."""

    store: Store
    clock: Clock
    kinds: Mapping[GroupKind, AnyKind]
    cookies: CookieLocation = CookieLocation.STATUS
    metrics: StepMetrics = field(default_factory=NoMetrics)
    # Idle resources of a long-running process; None in a single command.
    idle_cache: IdleCache | None = None
    # What lists showed of live objects; None in a single command.
    listed_objects: ListedObjects | None = None
    owners: Mapping[GroupKind, Owner] = field(default_factory=dict)
    # The tenants of a shared store; None where the store belongs to one person.
    tenancy: Tenancy | None = None
    claims: ObjectClaims = field(default_factory=ObjectClaims)
    operations: OperationQueues = field(default_factory=OperationQueues)
    # Takes the reports of a long-running process for its operator.
    reporter: StepReporter = field(default_factory=NoReports)
    # The statuses that the steps of a long-running process left; None in a single command.
    status_edits: StatusEdits | None = None
    # The definitions that a cluster serves, as a long-running process follows them.
    definitions: DefinitionSource | None = None
    # What was observed beforehand, for previews alone: see `plan_together`.
    observations: Mapping[ResourceRef, FoundObject] = field(default_factory=dict)

    async def for_namespace(self, namespace: str) -> "EngineContext":
        """The engine with its kinds bound to the tenant of `namespace`."""
        if self.tenancy is None:
            return self
        return replace(self, kinds=await self.tenancy.kinds_for(namespace, self.kinds))

    async def require_granted(
        self, dependant: ResourceRef, targets: Iterable[tuple[str, ResourceRef]]
    ) -> dict[ResourceRef, Revision]:
        """The grants by which `dependant` refers to `targets`, each with its field; ReferenceNotGranted without one.

        To be called before anything of `targets` is read. No grant is needed in a store that belongs to one person.
        """
        if self.tenancy is None:
            return {}
        grants = [await self.tenancy.references.require_granted(dependant, ref, field) for field, ref in targets]
        return {grant.ref: grant.revision for grant in grants if grant is not None}

    def require_definition(self, kind: GroupKind) -> None:
        """DefinitionOutdated for a kind of which the cluster would not keep what has to be on record."""
        missing = () if self.definitions is None else self.definitions.outdated.get(kind, ())
        if missing:
            raise DefinitionOutdated(outdated_definition(kind, missing))

    def is_status_edited(self, resource: Resource) -> bool:
        """Whether another writer changed the status since the last step of the resource, here or in another process."""
        if self.status_edits is None:
            return False
        now = LeftStatus(resource.revision, resource.status_hash)
        return self.status_edits.is_edited(resource.ref, now) or is_status_edited(resource.status)

    def leave_status(self, resource: Resource) -> None:
        """A step of the resource read or wrote this status: an event of it is none of another writer."""
        if self.status_edits is not None:
            self.status_edits.leave(resource)

    def is_foreign(self, ref: ResourceRef, dependant: ResourceRef) -> bool:
        """Whether `ref` belongs to another tenant than `dependant`."""
        return self.tenancy is not None and ref.namespace != dependant.namespace

    @property
    def resource_types(self) -> Mapping[GroupKind, ResourceType]:
        """Every kind and owner."""
        return joined(self.kinds, self.owners)

    @property
    def secret_fields(self) -> SecretFields:
        """What is secret in the resources of every kind and owner."""
        return secret_fields_of(self.resource_types)

    def resource_type_of(self, resource: Resource) -> ResourceType:
        """The kind or owner of `resource`; ManifestInvalid when there is none."""
        found = self.resource_types.get(resource.ref.group_kind)
        if found is None and resource.ref.group_kind == REFERENCE_GRANT:
            raise ManifestInvalid(
                f"{resource.ref}: a grant is of use only in a cluster, where namespaces have different owners: "
                "here every reference to another namespace is allowed; leave it out"
            )
        if found is None:
            raise unknown_type(resource, self.resource_types, self._objects())
        return found

    def annotation_target(self, ref: ResourceRef) -> AnnotationTarget:
        """The type of `ref`, which decides which annotations have an effect on it."""
        owner = self.owners.get(ref.group_kind)
        found = self.kinds[ref.group_kind] if owner is None else owner
        return AnnotationTarget(found.name, found.annotations, is_owner=owner is not None)

    def annotation_warnings(self, resource: Resource) -> tuple[AnnotationProblem, ...]:
        """The annotations of `resource` that have no effect, and are not refused."""
        return annotation_warnings(resource.annotations, self.annotation_target(resource.ref))

    def _objects(self) -> Mapping[GroupKind, str]:
        """The versions of the objects that can be declared beside the resources."""
        related = (one for owner in self.owners.values() for one in (*owner.makes, *owner.reads))
        return {(one.group, one.kind): one.version for one in (SECRETS, *related)}

    def kind_of(self, resource: Resource) -> AnyKind:
        """The kind of `resource`; ManifestInvalid when there is none."""
        self.resource_type_of(resource)
        return self.kinds[resource.ref.group_kind]


@dataclass(frozen=True, slots=True)
class StepContext:
    """A resource in the middle of a step: as it was last read or written, and the state to be stored."""

    engine: EngineContext
    resource: Resource
    state: StoredState
    trigger: str = UNSPECIFIED_TRIGGER
    # Whether a reconcile was requested: backoff and earlier attempts do not count.
    requested: bool = False
    # Whether a wait that timed out has all of its timeout again.
    restart_wait: bool = False
    # The outputs that a status always has.
    minimum_outputs: JsonObject = field(default_factory=dict)
    # The finalizers to set with the next commit; None when they are set.
    finalizers: tuple[str, ...] | None = None
    # Whether another writer changed the status since the last step: nothing in it is taken for reported.
    status_edited: bool = False
    # Whether the claim that was announced does not count.
    withdraws_claim: bool = False
    # What this step has sent, as the action of its plan: that comes on record, whatever is written to the resource.
    sent: str = ""
    # The events of an operation that has ended: on record with the commit that takes it off the record.
    ended: tuple[EventRecord, ...] = ()

    @property
    def management(self) -> Management:
        """What this step may do; ManifestInvalid for an unknown word."""
        return management_of(self.resource.annotations)

    def require_known_annotations(self) -> None:
        """ManifestInvalid for an annotation that is refused: nothing is written or deleted by a guess."""
        try:
            check_annotations(self.resource.annotations, self.engine.annotation_target(self.resource.ref))
        except ManifestInvalid as error:
            if not self.resource.is_deleting:
                raise
            raise ManifestInvalid(Message(message_of(error), _KEPT)) from error

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the author has to know about annotations that have no effect."""
        return tuple(str(one.message) for one in self.engine.annotation_warnings(self.resource))

    def with_current_oscillations(self, intent: str, mark: str) -> Self:
        """The context with the oscillations that are still active, given this `mark`; none where nothing is written.

        And with the flips of its intents that are.
        """
        oscillations, flips = self.state.oscillations, self.state.flips
        # What is no contest yet stays until the next edit: to forget it is not worth a write.
        if not oscillations.fields and not flips.is_contested:
            return self
        now, is_held = self.engine.clock.now(), self.management is Management.OBSERVE
        still = NO_OSCILLATIONS if is_held else oscillations.still_active(intent, mark, now)
        flips = NO_FLIPS if is_held else flips.still_active(now)
        return replace(self, state=replace(self.state, oscillations=still, flips=flips))

    async def set_ready(
        self, ready: ReadyCondition, outputs: JsonObject | None = None, events: Iterable[EventRecord] = ()
    ) -> Self:
        """The context once the status has this Ready condition, the state and `outputs`: one commit, with all events.

        Nothing is written when the status says so already. A change of a condition is an event of its own, unless it
        is what `events` lead to expect.
        """
        events, base = tuple(events), self.resource.status
        if outputs is not None:
            # New outputs replace all but the conditions.
            base = {**{name: one for name, one in base.items() if name == "conditions"}, **outputs}
        now, oscillations = self.engine.clock.now(), self.state.oscillations.reported
        stored, generation = self._with_state(self.state, base), self.resource.generation
        status = with_conditions(stored, generation, ready, oscillations, now, flips=self.state.flips)
        status = self._with_warnings(status, now)
        is_told = bool(events or self.ended or self.sent)
        changed = self._condition_events(Resource({"status": status}), ready, is_told=is_told)
        return await self._commit(status, (*changed, *events))

    async def save_state(self, outputs: JsonObject | None = None) -> Self:
        """The context once its state is on record; the conditions stay, and a reconcile request is still open."""
        still_open = replace(self.state, handled=StoredState.of(self.resource).handled)
        return await self._commit(self._with_state(still_open, {**self.resource.status, **(outputs or {})}))

    async def move_cookie(self) -> Self:
        """The context once the cookie is where it is written now; nothing is written when it is there already."""
        in_status = self.resource.status.get(COOKIE) is not None
        is_moved = in_status and self.engine.cookies is CookieLocation.ANNOTATION
        return await self.save_state() if is_moved or self._is_annotation_left else self

    def event(self, reason: str, message: str, *, is_warning: bool = False, is_routine: bool = False) -> EventRecord:
        """An event of this resource, which `setpoint events` shows once it is recorded."""
        severity = "Warning" if is_warning else "Normal"
        ref, uid, now = self.resource.ref, self.resource.uid, self.engine.clock.now()
        text = shorten(message, MAX_EVENT_BYTES)
        return EventRecord(ref, uid, severity, str(reason), text, now, is_routine=is_routine)

    def _with_warnings(self, status: JsonObject, now: str) -> JsonObject:
        """The status itself: the warnings about an owner are among its outputs."""
        return status

    def _with_state(self, state: StoredState, status: JsonObject) -> JsonObject:
        return state.into(status, with_cookie=self.engine.cookies is CookieLocation.STATUS)

    async def _commit(self, status: JsonObject, events: Sequence[EventRecord] = ()) -> Self:
        status, annotations = {**self.minimum_outputs, **status}, {**self._cookie_annotation(), **self._withdrawal()}
        if not (events or annotations) and self.finalizers is None and self._is_recorded(status):
            return await self._without_cookie_annotation()
        # Of a resource with a finalizer, a status without a record of ours would be taken for one that was wiped.
        if self.engine.status_edits is not None or (ENGINE_STATE not in status and self.resource.finalizers):
            status = with_status_digest(status)
        history = history_of_commit(self.resource, status, self.engine.reporter)
        told = (*self.ended, *events)
        update = ResourceUpdate(
            status=status, finalizers=self.finalizers, annotations=annotations, events=told, history=history
        )
        after = await self._updated(update, self.sent)
        return await replace(self, resource=after, finalizers=None, ended=())._without_cookie_annotation()

    async def _updated(self, update: ResourceUpdate, sent: str = "") -> Resource:
        # Imported where a step commits: a command that only reads does without.
        from setpoint.engine.step.commit import commit_update

        return await commit_update(self.resource, update, self.engine, sent)

    def _is_recorded(self, status: JsonObject) -> bool:
        """Whether the resource has this status; a digest that is missing is not worth a write, one that is wrong is."""
        found = self.resource.status
        # After an edit they differ in this: the rest need not be compared.
        is_current = found.get("observedGeneration") == status.get("observedGeneration")
        is_same = is_current and same(status, without_status_digest(found))
        return is_same and not (self.engine.status_edits is not None and is_status_edited(found))

    async def _without_cookie_annotation(self) -> Self:
        """Removes a cookie from the annotation, once the status has it: a store may write metadata before a status."""
        if not self._is_annotation_left:
            return self
        removal = ResourceUpdate(annotations={COOKIE_ANNOTATION: None})
        return replace(self, resource=await self._updated(removal))

    @property
    def _is_annotation_left(self) -> bool:
        """Whether the annotation has a cookie that is written to the status now; Config Connector's own stays."""
        is_in_status = self.engine.cookies is CookieLocation.STATUS
        return is_in_status and Cookie.parse(self.resource.annotations.get(COOKIE_ANNOTATION)) is not None

    def _condition_events(self, after: Resource, ready: ReadyCondition, *, is_told: bool) -> Iterator[EventRecord]:
        """An event for each condition that says something new in `after`.

        A claim is none, and neither is an object up to date, or an operation under way, where `is_told` what was
        written: each event is a request to an API server. A deletion is reported by an event when it is done.
        """
        before = self.resource
        is_deletion = ready.reason == ConditionReason.DELETING and not ready.details.error
        is_expected = is_deletion or (ready.reason in _EXPECTED_REASONS and is_told)
        is_news = not (is_expected or ready.details.is_claim)
        if is_news and condition_of(before, ConditionType.READY) != condition_of(after, ConditionType.READY):
            yield self.event(ready.reason, ready.message, is_warning=ready.is_failure)
        oscillation = condition_of(after, ConditionType.CONTESTED)
        if oscillation is not None and condition_of(before, ConditionType.CONTESTED) is None:
            yield self.event(ConditionType.CONTESTED, oscillation.message, is_warning=True)
        yield from self._warning_events(after)

    def _warning_events(self, after: Resource) -> Iterator[EventRecord]:
        """None: the step of an owner reports its warnings itself."""
        return iter(())

    def _withdrawal(self) -> Mapping[str, None]:
        """The annotation to remove, if it announces a claim that does not count, or of an object that was given up."""
        announced = announced_location(self.resource)
        is_given_up = announced is not None and self.state.location not in (None, announced)
        return {known_annotations.CLAIM: None} if is_given_up or (announced and self.withdraws_claim) else {}

    def _cookie_annotation(self) -> Mapping[str, str | None]:
        """The annotation to write where cookies are kept there; none when it is the same already."""
        cookie = None if self.state.cookie is None else str(self.state.cookie)
        is_kept = (
            self.engine.cookies is CookieLocation.STATUS or self.resource.annotations.get(COOKIE_ANNOTATION) == cookie
        )
        return {} if is_kept else {COOKIE_ANNOTATION: cookie}


@dataclass(frozen=True, slots=True)
class KindStepContext(StepContext):
    """The step context of a resource of a kind."""

    kind: AnyKind = field(kw_only=True)
    # The writes that a dry run of the service says are left; None for a kind without dry runs.
    dry_run_writes: tuple[PlannedWrite, ...] | None = None

    def enter_scope(self, location: Location, *, deleting: bool = False) -> None:
        """To be called before anything is sent; OperationQueued while another operation excludes one of the object."""
        self.engine.operations.enter(self.resource.ref, self.kind, location, deleting=deleting)

    def leave_scope(self) -> None:
        """Nothing is left to send: another operation may begin before this step ends."""
        self.engine.operations.leave(self.resource.ref)

    def require_turn(self, location: Location, *, is_new: bool) -> None:
        """To be called before anything is observed: what waits for its turn, or `is_new`, is not observed twice."""
        if is_new:
            self.enter_scope(location)
        self.engine.operations.require_turn(self.resource.ref)

    @property
    def is_warning_reported(self) -> bool:
        """Whether the status has the warnings about this resource, and no others."""
        return warning_in(self.resource.status) == "; ".join(self.warnings)

    def _with_warnings(self, status: JsonObject, now: str) -> JsonObject:
        return with_warnings(status, self.warnings, now)

    def _warning_events(self, after: Resource) -> Iterator[EventRecord]:
        text = warning_in(after.status)
        if text and text != warning_in(self.resource.status):
            yield self.event(ConditionReason.ANNOTATION_IGNORED, text, is_warning=True)


def step_context(
    resource: Resource,
    engine: EngineContext,
    state: StoredState,
    *,
    trigger: str = UNSPECIFIED_TRIGGER,
    requested: bool = False,
    restart_wait: bool = False,
) -> StepContext:
    """The context of a step as it begins: a KindStepContext for a kind. ManifestInvalid for an unknown kind."""
    engine.resource_type_of(resource)
    key = resource.ref.group_kind
    if (owner := engine.owners.get(key)) is not None:
        return StepContext(engine, resource, state, trigger, requested, restart_wait, owner.minimum_outputs)
    return KindStepContext(engine, resource, state, trigger, requested, restart_wait, kind=engine.kinds[key])
