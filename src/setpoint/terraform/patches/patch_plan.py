"""PlanResourceChange for `setpoint_patch`: the fields as they would be, by a dry run, and who holds them already."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from setpoint.core.values.canonical import digest
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import Json
from setpoint.errors import OperationRunning, RemoteUnavailable, ResponseTooLarge, SetpointError
from setpoint.terraform.connections.clusters import (
    ClusterConnections,
    unreachable_error,
    unreachable_warning,
)
from setpoint.terraform.cty.json_trees import to_json_tree
from setpoint.terraform.cty.values import UNKNOWN, AttributeValues, CtyValue, same_value
from setpoint.terraform.framework.call import CallContext
from setpoint.terraform.framework.diagnostics import Diagnostic, DiagnosticsError, warning
from setpoint.terraform.framework.provider import PlanRequest, PlanResponse
from setpoint.terraform.framework.schema import attribute_type
from setpoint.terraform.patches.patch_config import (
    is_patch_known,
    is_restored,
    patch_attribute,
    read_patch,
    read_target,
    same_patch,
    target_seconds,
)
from setpoint.terraform.patches.patch_messages import (
    conflict_errors,
    kept_by_object_error,
    lost_target_error,
    missing_target_error,
    patch_diagnostic,
    patched_twice_error,
    release_warning,
)
from setpoint.terraform.patches.patch_schema import FORMS, PATCH_SCHEMA
from setpoint.terraform.patches.patch_state import (
    PatchNotes,
    PatchPrivateState,
    PlannedPatches,
    fields_text,
    place_of,
    private_of,
    read_patch_private,
    record_of,
)
from setpoint.terraform.resources.object_config import annotated_id, wait_spec, waits_for_value
from setpoint.terraform.resources.plan_notes import (
    PlanNote,
    PlanNotes,
    held_state,
    known_parts,
    other_action_error,
    outdated_error,
)

if TYPE_CHECKING:
    from setpoint.objects.patch import PatchForecast, PatchSession
    from setpoint.objects.patch_record import PatchRecord

# The ID of a patch that does not exist yet.
_PLACEHOLDER_ID: Final = "000000000000"
# The attributes that a plan finds out, and holds when it is applied.
_HELD: Final = ("id", "projection", "before", "status", *FORMS)
_COMPUTED: Final = ("id", "projection", "fields", "before", "status")


def patch_session(clusters: ClusterConnections, values: AttributeValues, id_: str) -> "PatchSession":
    """A session for the patch that these attributes declare."""
    from setpoint.objects.patch import PatchSession

    force = values.get("force_conflicts") is True
    cluster, wait = clusters.session(values.get("cluster")), wait_spec(values.get("wait_for"))
    return PatchSession(cluster, id_, read_target(values), read_patch(values), force=force, wait=wait)


def patch_digest(values: AttributeValues) -> str:
    """What stands for a new patch before it has an ID: a digest of its target and patch."""
    source = patch_attribute(values)
    return digest([to_json_tree(values.get("target")), source, to_json_tree(values.get(source))])


def note_key(clusters: ClusterConnections, values: AttributeValues, prior: AttributeValues | None) -> str:
    """The patch that a plan is noted for: by its ID, or by its cluster, target and fields while it has none."""
    if prior is not None:
        return str(prior["id"])
    return digest([clusters.portable_key(values.get("cluster")), patch_digest(values)])


def require_patchable(session: "PatchSession", live: Json) -> None:
    """Raises DiagnosticsError for an object that a `setpoint_object` manages."""
    if annotated_id(live):
        raise DiagnosticsError(kept_by_object_error(live, session.target))


def require_no_conflict(forecast: "PatchForecast", config: AttributeValues, apart: Sequence[str] = ()) -> None:
    """Raises DiagnosticsError for fields that other field managers hold, without the patches with the IDs `apart`."""
    if config.get("force_conflicts") is True:
        return
    held = [one for one in forecast.conflicts if not (one.is_patch and one.patch_id in apart)]
    if held:
        raise DiagnosticsError(*conflict_errors(held, config))


@dataclass(slots=True)
class PatchPlanner:
    """Plans one change."""

    clusters: ClusterConnections
    request: PlanRequest
    call: CallContext
    notes: PatchNotes
    planned: PlannedPatches
    plan_notes: PlanNotes
    # The fields that a dry run has shown.
    _fields: CtyValue = UNKNOWN

    @property
    def config(self) -> AttributeValues:
        """The configuration."""
        return self.request.config

    async def plan(self, *, is_first: bool) -> PlanResponse:
        """The planned state. If this is not known to be the first plan, it has to agree with the one that was noted."""
        is_first = is_first or (self.request.prior is None and bool(self.request.private))
        planned = await self._plan()
        if self.request.prior is None and not self._is_known:
            # Nothing is known of it, so that anything agrees.
            return planned
        key = note_key(self.clusters, self.config, self.request.prior)
        source = patch_digest(self.config) if self._is_known else ""
        note = None if is_first else self.plan_notes.read(key, source)
        if note is not None and not note.is_replacement and note.is_of(self.config, FORMS):
            return self._held(planned, note, key)
        parts = known_parts({name: planned.state[name] for name in _HELD})
        self.plan_notes.write(key, PlanNote(source, bool(planned.requires_replace), parts))
        return planned

    def _held(self, planned: PlanResponse, note: PlanNote, key: str) -> PlanResponse:
        """The plan as it was noted; DiagnosticsError when it is another one by now."""
        if planned.requires_replace:
            self.plan_notes.forget(key)
            raise DiagnosticsError(other_action_error(str(planned.requires_replace[0][0])))
        state = held_state(planned.state, note, self.request, FORMS, self._fields)
        if differing := note.differing({name: state[name] for name in _HELD}):
            self.plan_notes.forget(key)
            raise DiagnosticsError(outdated_error(differing))
        return PlanResponse(state, private=planned.private)

    @property
    def _is_known(self) -> bool:
        return is_patch_known(self.config) and self.clusters.is_cluster_known(self.config.get("cluster"))

    async def _plan(self) -> PlanResponse:
        prior = self.request.prior
        if not self._is_known:
            return self._unknown()
        if prior is None:
            return await self._create()
        if self._is_other_target(prior):
            return PlanResponse(
                {**self._unknown().state, "id": UNKNOWN},
                (("target",) if self._is_renamed(prior) else ("cluster",),),
                self.request.private,
            )
        return await self._update(prior)

    # --- Create -------------------------------------------------------------------------------------------------------

    async def _create(self) -> PlanResponse:
        session = patch_session(self.clusters, self.config, _PLACEHOLDER_ID)
        try:
            live = await session.observe()
        except OperationRunning:
            return self._unknown()
        except RemoteUnavailable as fault:
            return self._unreachable(session, fault)
        if live is None:
            if target_seconds(self.config) is None:
                raise DiagnosticsError(missing_target_error(session.target))
            return self._unknown()
        require_patchable(session, live)
        if (adopted := await self._adopted()) is not None:
            return adopted
        from setpoint.objects.patch_record import NO_RECORD

        forecast = await self._forecast(session, NO_RECORD, is_tested=True)
        replaced = read_patch_private(self.request.private).id
        others = [one.patch_id for one in forecast.conflicts if one.is_patch]
        apart = [one for one in others if one == replaced or self.planned.may_be_replaced(one)]
        require_no_conflict(forecast, self.config, apart)
        await self._require_planned_once(session, "", forecast)
        state = {**self.request.proposed, "id": UNKNOWN, "before": UNKNOWN, "status": self._status(is_changed=True)}
        # The deletion of a patch that this one replaces gets the same private state.
        return PlanResponse(state | {"projection": self._projection(session, forecast)}, private=self.request.private)

    async def _adopted(self) -> PlanResponse | None:
        """The plan that goes on with a patch whose write was noted, and is not in the state; None without one."""
        if self.request.private:
            return None
        place = await place_of(patch_session(self.clusters, self.config, _PLACEHOLDER_ID))
        for id_, record in self.notes.all(place):
            session = patch_session(self.clusters, self.config, id_)
            live = await session.observe(may_be_recent=True)
            if id_ in self.planned.created_ids or not record.is_of(live):
                continue
            if not session.is_written():
                self.notes.forget(place, id_)
                continue
            forecast = await self._forecast(session, record, is_tested=False)
            if set(forecast.paths).isdisjoint(record.before):
                continue
            require_no_conflict(forecast, self.config)
            await self._require_planned_once(session, id_, forecast)
            if id_ in self.planned.read_ids:
                self.call.add_diagnostic(_adoption_warning(id_))
            known = record.of_fields(live, forecast.paths)
            before: CtyValue = known.values() if set(forecast.paths) <= set(record.before) else UNKNOWN
            state: AttributeValues = {**self.request.proposed, "id": id_, "before": before}
            computed = {"projection": self._projection(session, forecast), "status": self._status(is_changed=True)}
            return PlanResponse({**state, **computed}, private=_adopting(id_, known).to_bytes())
        return None

    # --- Update -------------------------------------------------------------------------------------------------------

    def _is_other_target(self, prior: AttributeValues) -> bool:
        if self._is_renamed(prior):
            return True
        if self.clusters.key(prior.get("cluster")) == self.clusters.key(self.config.get("cluster")):
            return False
        old, new = (self.clusters.connection(one.get("cluster")).server for one in (prior, self.config))
        return old != new

    def _is_renamed(self, prior: AttributeValues) -> bool:
        return read_target(prior) != read_target(self.config)

    async def _update(self, prior: AttributeValues) -> PlanResponse:
        id_, private = str(prior["id"]), read_patch_private(self.request.private)
        session = patch_session(self.clusters, self.config, id_)
        try:
            live = await session.observe(may_be_recent=True)
            place = await place_of(session)
            record = self.notes.read(place, id_) or record_of(prior, private)
            if live is None or not record.is_of(live):
                raise DiagnosticsError(lost_target_error(session.target, is_new=live is not None))
            require_patchable(session, live)
            is_same = same_patch(prior, self.config)
            forecast = await self._forecast(session, record, is_tested=not is_same, is_applied=is_same)
        except RemoteUnavailable as fault:
            return self._unreachable(session, fault)
        require_no_conflict(forecast, self.config)
        await self._require_planned_once(session, id_, forecast)
        said = release_warning(self.config, session.target, forecast.release.fields)
        if said is not None and id_ in self.planned.read_ids:
            # Terraform plans a second time when it applies, and has not read then.
            self.call.add_diagnostic(said)
        return self._updated(prior, private, forecast, record, is_same=is_same, follows_live=session.follows_live)

    def _updated(
        self,
        prior: AttributeValues,
        private: PatchPrivateState,
        forecast: "PatchForecast",
        record: "PatchRecord",
        *,
        is_same: bool,
        follows_live: bool,
    ) -> PlanResponse:
        fields = self._fields
        is_rewritten = not self._is_as_before(prior, is_same=is_same)
        is_outside = forecast.is_changed and not is_rewritten and fields == prior.get("projection")
        if is_outside or (follows_live and (forecast.is_changed or is_rewritten)):
            # The change is outside the projection, such as a change of field managers; or it may be another one later.
            # What is known here has to be the same when Terraform plans again, to apply it.
            fields = UNKNOWN
        is_known = set(forecast.paths) == set(record.before) and not (follows_live and not is_same)
        before = prior.get("before") if is_known and record.values() == prior.get("before") else UNKNOWN
        status = self._status(is_changed=forecast.is_changed or is_rewritten)
        state = {**self.request.proposed, "id": prior["id"], "projection": fields, "before": before, "status": status}
        if is_same:
            # A patch that is written differently and means the same is no change.
            state |= {name: prior.get(name) for name in FORMS}
        return PlanResponse(state, private=private.to_bytes())

    # --- Both ---------------------------------------------------------------------------------------------------------

    async def _forecast(
        self, session: "PatchSession", record: "PatchRecord", *, is_tested: bool, is_applied: bool = False
    ) -> "PatchForecast":
        if is_applied and session.is_as_written(record):
            found = session.forecast_nothing(record)
            self._fields = fields_text(found.after, found.paths)
            return found
        try:
            found = await session.forecast_patch(record, is_restored=is_restored(self.config), is_tested=is_tested)
            self._fields = fields_text(found.after, found.paths)
            return found
        except ResponseTooLarge:
            raise
        except SetpointError as fault:
            if isinstance(fault, RemoteUnavailable):
                raise
            raise DiagnosticsError(patch_diagnostic(fault, (patch_attribute(self.config),))) from fault

    async def _require_planned_once(self, session: "PatchSession", id_: str, forecast: "PatchForecast") -> None:
        source = patch_attribute(self.config)
        twice = self.planned.add(await place_of(session), id_, patch_digest(self.config), forecast.paths)
        if twice:
            names = [str(path) for path in twice]
            other = "another setpoint_patch of this configuration"
            raise DiagnosticsError(patched_twice_error(names, other, (source,)))

    def _projection(self, session: "PatchSession", forecast: "PatchForecast") -> CtyValue:
        """The projection of a new patch: unknown where it follows from values that may change until the apply."""
        return UNKNOWN if session.follows_live else self._fields

    def _unknown(self, private: bytes | None = None) -> PlanResponse:
        """The planned state as far as it is known without the cluster."""
        prior, state = self.request.prior, dict(self.request.proposed)
        state |= {"id": UNKNOWN if prior is None else prior["id"], "projection": UNKNOWN, "before": UNKNOWN}
        state["status"] = self._status(is_changed=True)
        return PlanResponse(state, private=self.request.private if private is None else private)

    def _unreachable(self, session: "PatchSession", fault: RemoteUnavailable) -> PlanResponse:
        if isinstance(fault, ResponseTooLarge):
            raise fault
        cluster = self.config.get("cluster")
        note = self.plan_notes.read(note_key(self.clusters, self.config, None), patch_digest(self.config))
        is_shown = note is not None and note.has_known("projection")
        if (self.request.prior is not None or is_shown) and not self.clusters.is_unread(cluster):
            # Terraform plans again to apply: what it showed may not be unknown then.
            raise DiagnosticsError(unreachable_error(session.connection, fault)) from fault
        self.call.add_diagnostic(unreachable_warning(session.connection, fault))
        prior = self.request.prior
        if prior is None or not self._is_as_before(prior, is_same=False):
            return self._unknown()
        return PlanResponse(prior, private=self.request.private)

    def _is_as_before(self, prior: AttributeValues, *, is_same: bool) -> bool:
        """Whether the configuration has not changed; its patch may be written differently if it `is_same`."""
        proposed, apart = self.request.proposed, (*_COMPUTED, *(FORMS if is_same else ()))
        types = {name: attribute_type(one) for name, one in PATCH_SCHEMA.attributes.items()}
        return all(same_value(prior.get(name), proposed[name], types[name]) for name in proposed if name not in apart)

    def _status(self, *, is_changed: bool) -> CtyValue:
        prior, wait_for = self.request.prior, self.config.get("wait_for")
        if wait_for is None:
            return None
        is_pending = read_patch_private(self.request.private).is_pending
        if not waits_for_value(wait_for):
            # Such a wait has no value; an unknown status is how Terraform sees that an update is needed.
            return UNKNOWN if is_pending and prior is not None else None
        if prior is None or is_changed or is_pending or not _is_same_wait(prior.get("wait_for"), wait_for):
            return UNKNOWN
        return prior.get("status") if prior.get("status") is not None else UNKNOWN


def _adopting(id_: str, record: "PatchRecord") -> PatchPrivateState:
    return msgspec.structs.replace(private_of(id_, record), adopts=id_)


def _is_same_wait(before: CtyValue, after: CtyValue) -> bool:
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        # Another timeout does not make it another wait.
        before, after = ({**one, "timeout": None} for one in (before, after))
    return before is not None and same_value(before, after, attribute_type(PATCH_SCHEMA.attributes["wait_for"]))


def _adoption_warning(id_: str) -> Diagnostic:
    return warning(
        "The patch is kept",
        f"Its last apply failed after it was written (as {id_}). Terraform plans a replacement, but nothing is taken "
        'back: the next apply goes on with it. With on_timeout = "fail" it is made anew.',
    )
