"""PlanResourceChange for `setpoint_object`: the planned state, by a server-side dry run."""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Final

from setpoint.core.redaction import LAST_APPLIED_PATH
from setpoint.core.values.canonical import same
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import Json
from setpoint.core.values.paths import Path
from setpoint.errors import (
    ImmutableFieldChanged,
    OperationRunning,
    RemoteConflict,
    RemoteUnavailable,
    ResponseTooLarge,
    SetpointError,
)
from setpoint.terraform.connections.clusters import (
    ClusterConnections,
    ClusterLocation,
    unreachable_error,
    unreachable_warning,
)
from setpoint.terraform.cty.types import DYNAMIC
from setpoint.terraform.cty.values import UNKNOWN, AttributePath, AttributeValues, CtyValue, is_known, same_value
from setpoint.terraform.framework.call import CallContext
from setpoint.terraform.framework.diagnostics import DiagnosticsError, warning
from setpoint.terraform.framework.provider import PlanRequest, PlanResponse
from setpoint.terraform.framework.schema import attribute_type, schema_type
from setpoint.terraform.resources.object_config import (
    ID_PATH,
    MANIFEST,
    YAML,
    annotated_id,
    is_manifest_known,
    manifest_attribute,
    may_change_identity,
    next_id,
    object_identity,
    read_manifest,
    validate_manifest,
    waits_for_value,
)
from setpoint.terraform.resources.object_diagnostics import (
    adoption_warning,
    already_exists_error,
    definition_diagnostic,
    is_of_definition,
    managed_elsewhere_error,
    require_deletable,
    require_managed,
    undeclared_warning,
)
from setpoint.terraform.resources.object_move import is_moved_object, not_there_warning
from setpoint.terraform.resources.object_state import (
    ChangingDefinitions,
    InterruptedCreate,
    InterruptedCreates,
    PrivateState,
    is_managed_under,
    location_of,
    note_key,
    object_ref,
    planned_ref,
    projection,
    read_private_state,
    session_for,
)
from setpoint.terraform.resources.plan_notes import (
    PlanNote,
    PlanNotes,
    held_state,
    known_parts,
    manifest_digest,
    other_action_error,
    outdated_error,
)
from setpoint.terraform.resources.schemas import OBJECT_SCHEMA
from setpoint.terraform.resources.shown_values import shown_fields
from setpoint.terraform.resources.vocabulary import engine_diagnostic

if TYPE_CHECKING:
    from setpoint.objects.session import ObjectForecast, ObjectSession

# The attributes that a plan finds out, and holds when it is applied.
_HELD: Final = ("object_ref", "projection", "status", YAML, MANIFEST)
# The ID of an object that does not exist yet.
_PLACEHOLDER_ID = "000000000000/0"
# What appliers note on an object.
_RECORDS: Final = (ID_PATH, LAST_APPLIED_PATH, Path(("metadata", "managedFields")))


@dataclass(slots=True)
class ObjectPlanner:
    """Plans one change. `created_ids` are those of the objects that this process has created: they are not replaced."""

    clusters: ClusterConnections
    request: PlanRequest
    call: CallContext
    interrupted: InterruptedCreates
    created_ids: Collection[str]
    definitions: ChangingDefinitions
    notes: PlanNotes
    # Why it is unknown what the cluster will make of it.
    _unknown_because: str = ""
    # The fields that a dry run has shown.
    _fields: CtyValue = UNKNOWN

    @property
    def config(self) -> AttributeValues:
        """The configuration."""
        return self.request.config

    async def plan(self, *, is_first: bool) -> PlanResponse:
        """The planned state. If this is not known to be the first plan, it has to agree with the one that was noted."""
        is_first = is_first or (self.request.prior is None and bool(self.request.private))
        is_here = is_manifest_known(self.config) and self.clusters.is_cluster_known(self.config.get("cluster"))
        tree = validate_manifest(self.config) if is_manifest_known(self.config) else None
        planned = await self._plan(tree) if tree and is_here else self._plan_unknown()
        if tree and is_here and planned.state != self.request.prior:
            self.definitions.note(self.clusters.key(self.config.get("cluster")), tree)
        if self.request.prior is None and not is_here:
            # Nothing is known of it, so that anything agrees.
            return planned
        key = note_key(self.clusters, self.config, self.request.prior)
        note = None if is_first else self.notes.read(key, manifest_digest(tree))
        if note is not None and not note.is_replacement and note.is_of(self.config, (YAML, MANIFEST)):
            return self._held(planned, note, key)
        if not is_first and self.request.prior is not None and self._unknown_because:
            raise DiagnosticsError(outdated_error(["projection"], self._unknown_because))
        parts = known_parts({name: planned.state[name] for name in _HELD})
        self.notes.write(key, PlanNote(manifest_digest(tree), bool(planned.requires_replace), parts))
        return planned

    def _held(self, planned: PlanResponse, note: PlanNote, key: str) -> PlanResponse:
        """The plan as it was noted; DiagnosticsError when it is another one by now."""
        if planned.requires_replace:
            self.notes.forget(key)
            raise DiagnosticsError(other_action_error(str(planned.requires_replace[0][0])))
        state = held_state(planned.state, note, self.request, (YAML, MANIFEST), self._fields)
        if differing := note.differing({name: state[name] for name in _HELD}):
            self.notes.forget(key)
            raise DiagnosticsError(outdated_error(differing, self._unknown_because))
        return PlanResponse(state, private=planned.private)

    def _plan_unknown(self) -> PlanResponse:
        prior = self.request.prior
        is_other = prior is not None and may_change_identity(prior, self.config)
        return self._replacement(prior, None, (MANIFEST,)) if is_other and prior else self._without_dry_run(None)

    async def _plan(self, tree: dict[str, Json]) -> PlanResponse:
        prior = self.request.prior
        if prior is None:
            return await self._create(tree)
        reason = self._other_object(prior, tree)
        return self._replacement(prior, tree, reason) if reason else await self._update(prior, tree)

    # --- Create ----------------------------------------------------------------------------------------------------

    async def _create(self, tree: dict[str, Json]) -> PlanResponse:
        session = session_for(self.clusters, self.config, _PLACEHOLDER_ID, PrivateState())
        location = await location_of(self.clusters, self.config, session)
        forecast = await self._forecast_creation(session, location)
        if forecast is not None:
            return self._forecast_plan(session, forecast, tree, PrivateState())
        try:
            live = await session.observe()
        except OperationRunning as fault:
            # Its CustomResourceDefinition is being established.
            self._unknown_because = f"{engine_diagnostic(fault).detail}."
            return self._without_dry_run(tree)
        except RemoteUnavailable as fault:
            return self._create_unreachable(session, tree, location, fault)
        if live is None:
            return await self._create_unless_made(session, tree)
        return await self._create_existing(live, location, tree)

    async def _create_existing(self, live: Json, location: ClusterLocation, tree: dict[str, Json]) -> PlanResponse:
        """The plan of a new object where there is one already: it is adopted, or refused, or about to be deleted."""
        if annotated_id(live) in self.created_ids:
            raise DiagnosticsError(managed_elsewhere_error(live, self.config))
        if (adopted := _adoptable_id(live, self.interrupted.at(location))) and not self.request.private:
            private = PrivateState(adopts=adopted).of_object(live)
            self.interrupted.note(location, adopted, private.uid)
            if self.interrupted.is_found_here(location):
                self.call.add_diagnostic(adoption_warning(adopted))
            session = session_for(self.clusters, self.config, adopted, private)
            return await self._with_dry_run(session, tree, private)
        if not annotated_id(live) and not self.request.private:
            raise DiagnosticsError(already_exists_error(tree, self.config))
        # Another resource manages the object and may be about to delete it: a dry run would show the old object.
        return self._without_dry_run(tree)

    async def _create_unless_made(self, session: "ObjectSession", tree: dict[str, Json]) -> PlanResponse:
        try:
            return await self._with_dry_run(session, tree, PrivateState())
        except DiagnosticsError as failure:
            # Another apply, or another writer, may have created it since it was looked for.
            made = await session.observe() if isinstance(failure.__cause__, RemoteConflict) else None
            if made is None:
                raise
            raise DiagnosticsError(managed_elsewhere_error(made, self.config)) from failure

    async def _forecast_creation(self, session: "ObjectSession", location: ClusterLocation) -> "ObjectForecast | None":
        """The dry run of a create, which also shows that there is no such object; None where that has to be read."""
        if not self._can_dry_run or self.interrupted.at(location).id:
            return None
        return await session.forecast_creation()

    def _create_unreachable(
        self, session: "ObjectSession", tree: Json, location: ClusterLocation, fault: RemoteUnavailable
    ) -> PlanResponse:
        """The plan of a new object while its cluster does not answer. One that may exist is kept, as ever."""
        note = self.notes.read(note_key(self.clusters, self.config, None), manifest_digest(tree))
        is_shown = note is not None and note.has_known("projection")
        is_applied = is_shown and not self.clusters.is_unread(self.config.get("cluster"))
        self._continue_unreachable(session, fault, is_planned=not is_applied)
        adopted, uid = self.interrupted.at(location)
        if not adopted or self.request.private:
            return self._without_dry_run(tree)
        self.interrupted.note(location, adopted, uid)
        if self.interrupted.is_found_here(location):
            self.call.add_diagnostic(adoption_warning(adopted))
        return self._without_dry_run(tree, PrivateState(adopts=adopted, uid=uid))

    def _continue_unreachable(self, session: "ObjectSession", fault: RemoteUnavailable, *, is_planned: bool) -> None:
        """A warning in a plan. When it is applied, Terraform plans again, and nothing may be unknown that was known."""
        if isinstance(fault, ResponseTooLarge):
            raise fault
        if not is_planned:
            raise DiagnosticsError(unreachable_error(session.connection, fault)) from fault
        self.call.add_diagnostic(unreachable_warning(session.connection, fault))

    # --- Update --------------------------------------------------------------------------------------------------

    def _other_object(self, prior: AttributeValues, tree: Json) -> AttributePath:
        """The attribute whose change makes it another object; empty when it is the same object."""
        if read_private_state(self.request.private).taken_over:
            # The former tool named the cluster elsewhere, if at all.
            namespace = self.clusters.connection(self.config.get("cluster")).namespace
            return () if is_moved_object(prior, tree, namespace) else (manifest_attribute(self.config),)
        if object_identity(read_manifest(prior)) != object_identity(tree):
            return (manifest_attribute(self.config),)
        if self.clusters.key(prior.get("cluster")) == self.clusters.key(self.config.get("cluster")):
            return ()
        old, new = (self.clusters.connection(one.get("cluster")).server for one in (prior, self.config))
        return () if old == new else ("cluster",)

    def _replacement(self, prior: AttributeValues, tree: Json, reason: AttributePath) -> PlanResponse:
        require_deletable(prior)
        planned = self._without_dry_run(tree)
        return PlanResponse({**planned.state, "id": UNKNOWN}, (reason,), planned.private)

    async def _update(self, prior: AttributeValues, tree: dict[str, Json]) -> PlanResponse:
        private = read_private_state(self.request.private)
        if self.interrupted.is_lost(str(prior["id"])):
            # An error once it is applied: a destroy plans this as well, and is to let go of the object.
            return self._without_dry_run(tree, private)
        session = session_for(self.clusters, self.config, str(prior["id"]), private)
        return await self._with_dry_run(session, tree, private)

    # --- Dry run ----------------------------------------------------------------------------------------

    @property
    def _can_dry_run(self) -> bool:
        return all(is_known(self.config.get(name)) for name in ("ignore_fields", "force_conflicts"))

    async def _with_dry_run(
        self, session: "ObjectSession", tree: dict[str, Json], private: PrivateState
    ) -> PlanResponse:
        prior = self.request.prior
        if not self._can_dry_run:
            return self._without_dry_run(tree, private)
        try:
            forecast = await self._forecast(session, private)
        except OperationRunning as fault:
            # Its kind or its namespace does not exist yet; or an object of its name is being deleted.
            self._unknown_because = f"{engine_diagnostic(fault).detail}."
            return self._without_dry_run(tree, private)
        except ImmutableFieldChanged as fault:
            if prior is None:
                raise
            self.call.add_diagnostic(
                warning("A new object is needed", engine_diagnostic(fault).detail, (manifest_attribute(self.config),))
            )
            return self._replacement(prior, tree, (manifest_attribute(self.config),))
        except RemoteUnavailable as fault:
            is_unread = any(self.clusters.is_unread(one.get("cluster")) for one in (prior, self.config) if one)
            self._continue_unreachable(session, fault, is_planned=is_unread)
            return self._as_before(tree) or self._without_dry_run(tree, private)
        except SetpointError as fault:
            is_defined_here = is_of_definition(fault, tree)
            if is_defined_here and self.definitions.is_changing(self.clusters.key(self.config.get("cluster")), tree):
                return self._without_dry_run(tree, private)
            attribute = (manifest_attribute(self.config),)
            found = definition_diagnostic(fault, attribute) if is_defined_here else engine_diagnostic(fault, attribute)
            raise DiagnosticsError(found) from fault
        return self._forecast_plan(session, forecast, tree, private)

    def _forecast_plan(
        self, session: "ObjectSession", forecast: "ObjectForecast", tree: Json, private: PrivateState
    ) -> PlanResponse:
        prior = self.request.prior
        if private.taken_over and forecast.live is None:
            self.call.add_diagnostic(not_there_warning(tree, session.connection))
        fields = projection(session, forecast.after, self.config)
        self._fields = fields
        self._warn_of_undeclared(forecast, fields)
        is_unchanged = prior is not None and not forecast.plan.writes and fields == prior.get("projection")
        if forecast.plan.writes and prior is not None and fields == prior.get("projection"):
            # The change is outside the projection, such as a change of field managers.
            return self._planned_state(forecast, private, UNKNOWN, is_unchanged=False)
        return self._planned_state(forecast, private, fields, is_unchanged=is_unchanged)

    def _warn_of_undeclared(self, forecast: "ObjectForecast", fields: Mapping[str, CtyValue]) -> None:
        """A warning about changes that `projection` does not show: fields that only a former applier declared."""
        before = (self.request.prior or {}).get("projection")
        shown = {*fields, *(before if isinstance(before, Mapping) else ())}
        paths = [one.path for one in forecast.plan.changes if str(one.path) not in shown]
        changed = [str(path) for path in paths if not any(apart.covers(path) for apart in _RECORDS)]
        if changed and forecast.is_takeover:
            self.call.add_diagnostic(undeclared_warning(changed, manifest_attribute(self.config)))

    async def _forecast(self, session: "ObjectSession", private: PrivateState) -> "ObjectForecast":
        await session.check()
        prior = self.request.prior
        # Terraform has just read it, unless it applies this plan: then it has not been read in this process.
        live = None if prior is None else await session.observe(may_be_recent=True)
        if prior is not None and live is not None:
            require_managed(live, str(prior["id"]), private, self.config)
        return await session.forecast()

    def _planned_state(
        self, forecast: "ObjectForecast", private: PrivateState, fields: CtyValue, *, is_unchanged: bool
    ) -> PlanResponse:
        prior, state = self.request.prior, dict(self.request.proposed)
        state |= {"id": UNKNOWN if prior is None else prior["id"], "object_ref": object_ref(forecast.after)}
        state |= {"projection": fields, "status": self._status(private, is_unchanged=is_unchanged)}
        source = manifest_attribute(self.config)
        if is_unchanged and prior is not None and manifest_attribute(prior) == source:
            as_before = {**state, source: prior[source], "fields": shown_fields(state, prior)}
            # A manifest that is written differently and means the same is no change. With another change it is stored
            # as written: that does not depend on the live object, which may change until the plan is applied.
            state = as_before if same_value(as_before, prior, schema_type(OBJECT_SCHEMA)) else state
        return PlanResponse(state, private=private.to_bytes())

    def _without_dry_run(self, tree: Json, private: PrivateState | None = None) -> PlanResponse:
        """The planned state as far as it is known without the cluster."""
        prior, state = self.request.prior, dict(self.request.proposed)
        ref: CtyValue = UNKNOWN if tree is None else planned_ref(tree)
        state |= {"id": UNKNOWN if prior is None else prior["id"], "object_ref": ref, "projection": UNKNOWN}
        state["status"] = self._status(private or read_private_state(self.request.private), is_unchanged=False)
        return PlanResponse(state, private=self.request.private if private is None else private.to_bytes())

    def _as_before(self, tree: Json) -> PlanResponse | None:
        """The state of before, for a configuration that has not changed and waits for nothing; None for any other."""
        prior, proposed, source = self.request.prior, self.request.proposed, manifest_attribute(self.config)
        if prior is None or manifest_attribute(prior) != source or not same(read_manifest(prior), tree):
            return None
        types = {name: attribute_type(one) for name, one in OBJECT_SCHEMA.attributes.items()}
        others = [name for name in proposed if name not in (source, "status")]
        if not all(same_value(prior.get(name), proposed[name], types[name]) for name in others):
            return None
        status = self._status(read_private_state(self.request.private), is_unchanged=True)
        # A wait that goes on needs the cluster.
        return None if status is UNKNOWN else PlanResponse({**prior, "status": status}, private=self.request.private)

    def _status(self, private: PrivateState, *, is_unchanged: bool) -> CtyValue:
        prior, wait_for = self.request.prior, self.config.get("wait_for")
        if wait_for is None:
            return None
        is_pending = private.is_pending or bool(private.adopts)
        if not waits_for_value(wait_for):
            # Such a wait has no value; an unknown status is how Terraform sees that an update is needed.
            return UNKNOWN if is_pending and prior is not None else None
        if prior is None or not is_unchanged or is_pending or not _is_same_wait(prior.get("wait_for"), wait_for):
            return UNKNOWN
        return prior.get("status") if prior.get("status") is not None else UNKNOWN


def _adoptable_id(live: Json, noted: InterruptedCreate) -> str:
    """The ID of a live object whose interrupted create was noted; empty when it is another object."""
    current = annotated_id(live)
    if not current:
        # Its annotation was removed, or another writer has made it again: its uid tells.
        return noted.id if is_managed_under(live, noted.id, PrivateState(uid=noted.uid)) else ""
    # The noted adoption may not have reached the object: then it has the ID before.
    return current if noted.id and noted.id in (current, next_id(current)) else ""


def _is_same_wait(before: CtyValue, after: CtyValue) -> bool:
    type_ = attribute_type(OBJECT_SCHEMA.attributes["wait_for"])
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        # Another timeout does not make it another wait.
        before, after = ({**one, "timeout": None} for one in (before, after))
    return same_value(before, after, type_ if before is not None else DYNAMIC)
