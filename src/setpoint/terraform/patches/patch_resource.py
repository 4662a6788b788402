"""The resource `setpoint_patch`: validate, read, create, update and delete a patch of an object."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path as Directory
from typing import TYPE_CHECKING, Final

import msgspec

from setpoint.core.values.json_types import Json
from setpoint.core.values.paths import Path
from setpoint.core.wait.judge import ObjectFound, is_present_at, secrecy_of
from setpoint.core.wait.outputs import Known, Null, output_of
from setpoint.core.wait.wait_for import FieldWait, parse_wait
from setpoint.errors import RemoteConflict, RemoteUnavailable, ResponseTooLarge, SetpointError, WaitTimedOut
from setpoint.terraform.cty.values import UNKNOWN, AttributeValues, CtyValue, is_known
from setpoint.terraform.framework.call import CallContext, InstanceState
from setpoint.terraform.framework.diagnostics import (
    Diagnostic,
    DiagnosticsError,
    Interrupted,
    diagnostics_for,
    error,
)
from setpoint.terraform.framework.hidden_texts import HiddenTexts
from setpoint.terraform.framework.provider import (
    CreateRequest,
    ManagedResource,
    PlanRequest,
    PlanResponse,
    UpdateRequest,
)
from setpoint.terraform.patches.patch_config import (
    is_patch_known,
    is_restored,
    new_patch_id,
    patch_attribute,
    read_patch,
    read_target,
    same_patch,
    target_seconds,
    validate_choices,
    validate_forms,
)
from setpoint.terraform.patches.patch_messages import (
    lost_target_error,
    lost_target_warning,
    missing_target_error,
    patch_diagnostic,
    release_warning,
)
from setpoint.terraform.patches.patch_plan import (
    PatchPlanner,
    patch_session,
    planned_location,
    require_no_conflict,
    require_patchable,
)
from setpoint.terraform.patches.patch_schema import PATCH_SCHEMA
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
from setpoint.terraform.resources.clusters import (
    ClusterConnections,
    cluster_needed,
    unreachable_error,
    unreachable_warning,
    validate_cluster,
)
from setpoint.terraform.resources.object_config import validate_wait, wait_spec
from setpoint.terraform.resources.object_state import InterruptedCreates, status_value
from setpoint.terraform.resources.schemas import FAIL
from setpoint.terraform.rpc.tls_proxy import cache_directory
from setpoint.terraform.sources.wait_resource import target_of

if TYPE_CHECKING:
    from setpoint.objects.patch import PatchForecast, PatchSession
    from setpoint.objects.patch_record import PatchRecord
    from setpoint.objects.wait import ObjectWait

# How long a write may take.
_WRITE_S: Final = 60.0
# How often it is tried again when another writer comes before.
_ATTEMPTS: Final = 20


class PatchResource(ManagedResource):
    """The resource `setpoint_patch`."""

    schema = PATCH_SCHEMA

    def __init__(self, clusters: ClusterConnections) -> None:
        self._clusters = clusters
        self._notes = PatchNotes(cache_directory(os.environ), str(Directory.cwd()))
        # Of new patches, those that were planned by a dry run.
        self._dry_runs = InterruptedCreates(cache_directory(os.environ), str(Directory.cwd()))
        self._planned = PlannedPatches()

    def hidden_texts(self, values: AttributeValues) -> HiddenTexts:
        """See ManagedResource."""
        return self._clusters.hidden_texts(values.get("cluster"))

    async def validate(self, config: AttributeValues, call: CallContext) -> None:
        """See ManagedResource."""
        validate_forms(config)
        if is_patch_known(config):
            read_target(config)
            read_patch(config)
        validate_cluster(config.get("cluster"))
        validate_wait(config.get("wait_for"))
        validate_choices(config)

    async def plan(self, request: PlanRequest, call: CallContext) -> PlanResponse:
        """See ManagedResource."""
        planner = PatchPlanner(self._clusters, request, call, self._notes, self._planned, self._dry_runs)
        return await planner.plan()

    async def plan_deletion(self, prior: InstanceState, call: CallContext) -> bytes:
        """See ManagedResource. The plan says which fields go back to which values."""
        state, id_ = prior.state, str(prior.state["id"])
        session = patch_session(self._clusters, state, id_)
        try:
            live = await session.observe()
            record = await self._record(session, state, read_patch_private(prior.private))
        except ResponseTooLarge:
            raise
        except RemoteUnavailable as fault:
            call.add_diagnostic(unreachable_warning(session.connection, fault))
            return prior.private
        if live is not None and record.is_of(live):
            release = session.forecast_release(record, is_restored=is_restored(state))
            said = release_warning(state, session.target, live, release.fields)
            if said is not None:
                call.add_diagnostic(said)
        return prior.private

    async def read(self, stored: InstanceState, call: CallContext) -> InstanceState | None:
        """See ManagedResource. Nothing is written: a field that drifted is shown, and put back by an apply."""
        state, private = stored.state, read_patch_private(stored.private)
        id_, session = str(state["id"]), patch_session(self._clusters, state, str(state["id"]))
        try:
            live = await session.observe()
        except ResponseTooLarge:
            raise
        except RemoteUnavailable as fault:
            call.add_diagnostic(unreachable_warning(session.connection, fault))
            self._clusters.add_unread(state.get("cluster"))
            return stored
        record = await self._record(session, state, private)
        if live is None or not record.is_of(live):
            call.add_diagnostic(lost_target_warning(session.target, is_new=live is not None))
            return None
        self._planned.read_ids.add(id_)
        await self._note_pending(session, state, private, record)
        status, private = _refreshed_status(state, private, live)
        shown = {"projection": fields_text(live, list(record.before)), "status": status}
        return InstanceState({**state, **shown}, private.to_bytes())

    async def _note_pending(
        self, session: "PatchSession", state: AttributeValues, private: PatchPrivateState, record: "PatchRecord"
    ) -> None:
        """Terraform plans a tainted patch without its state: the note has what is needed to go on with it."""
        place, id_ = await place_of(session), str(state["id"])
        if private.is_pending and not private.is_untainted and state.get("on_timeout") != FAIL:
            self._notes.write(place, id_, record)
        elif record.values() == state.get("before"):
            self._notes.forget(place, id_)

    async def create(self, request: CreateRequest, call: CallContext) -> InstanceState:
        """See ManagedResource."""
        from setpoint.objects.patch_record import NO_RECORD

        planned, private = request.planned, read_patch_private(request.private)
        id_ = private.adopts or new_patch_id()
        session = patch_session(self._clusters, planned, id_)
        self._planned.created_ids.add(id_)
        self._dry_runs.forget(planned_location(self._clusters, planned))
        record = record_of(planned, private) if private.adopts else NO_RECORD
        with cluster_needed(session.connection):
            live = await call.until_stopped(self._existing(session, planned))
        if live is None:
            raise DiagnosticsError(missing_target_error(session.target))
        write = PatchWrite(session, {**planned, "id": id_}, call, self._notes, self._wait(planned))
        return await write.run(record, is_new=True, is_tested=not private.adopts)

    async def update(self, request: UpdateRequest, call: CallContext) -> InstanceState:
        """See ManagedResource."""
        planned, private = request.planned, read_patch_private(request.private)
        session = patch_session(self._clusters, planned, str(request.prior["id"]))
        with cluster_needed(session.connection):
            live = await session.observe()
        record = await self._record(session, request.prior, private)
        if live is None or not record.is_of(live):
            raise DiagnosticsError(lost_target_error(session.target, is_new=live is not None))
        write = PatchWrite(session, dict(planned), call, self._notes, self._wait(planned))
        return await write.run(record, is_new=False, is_tested=not same_patch(request.prior, planned))

    async def delete(self, prior: InstanceState, call: CallContext) -> None:
        """See ManagedResource. The object stays: only the fields of the patch are given up."""
        state, private = prior.state, read_patch_private(prior.private)
        id_ = str(state["id"])
        if private.adopts == id_:
            # The create that follows goes on with this very patch.
            return
        session = patch_session(self._clusters, state, id_)
        with cluster_needed(session.connection):
            record = await self._record(session, state, private)
            try:
                await call.until_stopped(session.release(record, is_restored=is_restored(state)))
            except SetpointError as fault:
                if isinstance(fault, RemoteUnavailable):
                    raise
                raise DiagnosticsError(patch_diagnostic(fault, ())) from fault
        self._notes.forget(await place_of(session), id_)

    async def import_state(self, identifier: str, call: CallContext) -> InstanceState:
        """See ManagedResource."""
        raise DiagnosticsError(
            error(
                "A patch cannot be imported",
                "What the fields were before is known only to the apply that writes them: write the resource and apply "
                "it. Fields that have the values of the patch already stay as they are.",
            )
        )

    async def _record(
        self, session: "PatchSession", state: AttributeValues, private: PatchPrivateState
    ) -> "PatchRecord":
        """The record in the state; that of a write which did not get there has been noted."""
        stored = record_of(state, private)
        noted = self._notes.read(await place_of(session), str(state["id"]))
        return stored if noted is None else noted

    async def _existing(self, session: "PatchSession", planned: AttributeValues) -> Json:
        """The target, which is waited for where it may not exist yet."""
        seconds = target_seconds(planned)
        if seconds is None:
            return await session.observe()
        wait = parse_wait({"field": "metadata.uid", "timeout": f"{max(int(seconds), 1)}s"})
        try:
            await target_of(self._clusters, planned.get("target"), planned.get("cluster")).until(wait)
        except WaitTimedOut:
            return None
        return await session.observe()

    def _wait(self, planned: AttributeValues) -> "ObjectWait | None":
        if planned.get("wait_for") is None:
            return None
        return target_of(self._clusters, planned.get("target"), planned.get("cluster"))


def _refreshed_status(
    state: AttributeValues, private: PatchPrivateState, live: Json
) -> tuple[CtyValue, "PatchPrivateState"]:
    """The attribute `status`. When its value has disappeared, the last one is shown, and the wait is pending again."""
    wait_for = state.get("wait_for")
    field = wait_for.get("field") if isinstance(wait_for, Mapping) else None
    if not isinstance(field, str):
        return state.get("status"), private
    wait = FieldWait(Path.parse(field))
    output = Null() if secrecy_of(wait, live) is not None else output_of(wait, ObjectFound(live), Null(), "")
    if isinstance(output, Known):
        return status_value(output.value), _private(private.with_value())
    is_gone = not is_present_at(live, Path.parse(field))
    return state.get("status"), _private(private.pending(private.engine)) if is_gone else private


def _private(found: object) -> PatchPrivateState:
    assert isinstance(found, PatchPrivateState)
    return found


@dataclass(slots=True)
class PatchWrite:
    """Writes one patch to the object that its session has observed, and waits. `planned` has its ID."""

    session: "PatchSession"
    planned: AttributeValues
    call: CallContext
    notes: PatchNotes
    wait: "ObjectWait | None"

    async def run(self, record: "PatchRecord", *, is_new: bool, is_tested: bool) -> InstanceState:
        """The state once the patch is written and its wait is satisfied."""
        id_, place = str(self.planned["id"]), await place_of(self.session)
        attempts = 0
        while True:
            attempts += 1
            forecast = await self._forecast(record, is_tested=is_tested)
            noted = record.of_fields(self.session.live, forecast.paths)
            # Read by the next process if this one is killed, and until a read has shown that the state has the same.
            self.notes.write(place, id_, replace(noted, written={}))
            failure = await self._written(record, forecast) if forecast.is_changed else None
            if not isinstance(failure, RemoteConflict) or attempts == _ATTEMPTS:
                break
            if await self.session.observe() is None:
                raise DiagnosticsError(lost_target_error(self.session.target, is_new=False))
        if failure is not None:
            await self._keep_if_written(noted, place, is_new=is_new)
            raise DiagnosticsError(self._diagnostic(failure)) from failure
        written = noted.with_written(self.session.live)
        self.notes.write(place, id_, written)
        return await self._waited(written, is_new=is_new)

    async def _forecast(self, record: "PatchRecord", *, is_tested: bool) -> "PatchForecast":
        require_patchable(self.session, self.session.live)
        try:
            forecast = await self.session.forecast_patch(
                record, is_restored=is_restored(self.planned), is_tested=is_tested
            )
        except SetpointError as fault:
            raise DiagnosticsError(self._diagnostic(fault)) from fault
        require_no_conflict(forecast, self.planned)
        return forecast

    async def _written(self, record: "PatchRecord", forecast: "PatchForecast") -> SetpointError | Interrupted | None:
        try:
            return await self.call.until_stopped(self.session.write(record, forecast, _WRITE_S))
        except Interrupted as interrupted:
            return interrupted

    async def _keep_if_written(self, record: "PatchRecord", place: str, *, is_new: bool) -> None:
        """After a failure of a new patch: it is in the state if it was written; else there is nothing to go back to."""
        if not is_new:
            return
        await self.session.observe()
        if self.session.is_written():
            self.call.save_state(self._state(record.with_written(self.session.live), None, is_pending=True))
        else:
            self.notes.forget(place, str(self.planned["id"]))

    async def _waited(self, record: "PatchRecord", *, is_new: bool) -> InstanceState:
        if self.wait is None:
            return self._state(record, None)
        wait_for = parse_wait(wait_spec(self.planned.get("wait_for")))
        try:
            met = await self.call.until_stopped(self.wait.until(wait_for))
        except (SetpointError, Interrupted) as failure:
            self.call.save_state(self._state(record, None, is_pending=True, is_untainted=not is_new))
            if isinstance(failure, Interrupted):
                raise
            raise DiagnosticsError(self._wait_diagnostic(failure)) from failure
        is_valued = isinstance(wait_for.wait, FieldWait)
        return self._state(record, status_value(met.value) if is_valued else None)

    def _state(
        self, record: "PatchRecord", status: CtyValue, *, is_pending: bool = False, is_untainted: bool = False
    ) -> InstanceState:
        fields = self.planned.get("projection")
        if fields is UNKNOWN or not is_known(fields):
            fields = fields_text(self.session.live, list(record.before))
        # What was planned is what was written. If another writer was quicker than this, the next read shows it.
        state = {**self.planned, "projection": fields, "before": record.values(), "status": status}
        private = msgspec.structs.replace(
            private_of(str(self.planned["id"]), record), is_pending=is_pending, is_untainted=is_untainted
        )
        return InstanceState(state, private.to_bytes())

    def _diagnostic(self, failure: SetpointError | Interrupted) -> Diagnostic:
        if isinstance(failure, Interrupted):
            return diagnostics_for(failure)[0]
        if isinstance(failure, RemoteUnavailable) and not isinstance(failure, ResponseTooLarge):
            return unreachable_error(self.session.connection, failure)
        return patch_diagnostic(failure, (patch_attribute(self.planned),))

    def _wait_diagnostic(self, failure: SetpointError) -> Diagnostic:
        found = patch_diagnostic(failure, ("wait_for",))
        if self.planned.get("on_timeout") == FAIL:
            return found
        after = "The patch stays as it is written: the next apply goes on waiting."
        return error(found.summary, f"{found.detail}\n\n{after}", found.path)
