"""The resource `setpoint_patch`: validate, read, create, update and delete a patch of an object."""

import os
from collections.abc import Mapping
from pathlib import Path as Directory
from typing import TYPE_CHECKING

import msgspec

from setpoint.core.values.json_types import Json
from setpoint.core.values.paths import Path
from setpoint.core.wait.judge import ObjectFound, is_present_at, secrecy_of
from setpoint.core.wait.outputs import Known, Null, output_of
from setpoint.core.wait.wait_for import FieldWait, parse_wait
from setpoint.errors import RemoteUnavailable, ResponseTooLarge, SetpointError, WaitTimedOut
from setpoint.terraform.connections.clusters import (
    ClusterConnections,
    cluster_needed,
    unreachable_warning,
    validate_cluster,
)
from setpoint.terraform.cty.values import AttributeValues, CtyValue
from setpoint.terraform.framework.call import CallContext, InstanceState
from setpoint.terraform.framework.diagnostics import (
    DiagnosticsError,
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
    patch_texts,
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
    note_key,
    patch_session,
)
from setpoint.terraform.patches.patch_schema import PATCH_SCHEMA
from setpoint.terraform.patches.patch_state import (
    PatchNotes,
    PatchPrivateState,
    PlannedPatches,
    fields_text,
    place_of,
    read_patch_private,
    record_of,
)
from setpoint.terraform.patches.patch_write import PatchWrite
from setpoint.terraform.resources.object_config import validate_wait
from setpoint.terraform.resources.object_state import status_value
from setpoint.terraform.resources.plan_notes import PlanNotes
from setpoint.terraform.resources.schemas import FAIL
from setpoint.terraform.resources.shown_values import shown_fields
from setpoint.terraform.rpc.tls_proxy import cache_directory
from setpoint.terraform.sources.wait_resource import target_of

if TYPE_CHECKING:
    from setpoint.objects.patch import PatchSession
    from setpoint.objects.patch_record import PatchRecord
    from setpoint.objects.wait import ObjectWait


class PatchResource(ManagedResource):
    """The resource `setpoint_patch`."""

    schema = PATCH_SCHEMA

    def __init__(self, clusters: ClusterConnections) -> None:
        self._clusters = clusters
        self._notes = PatchNotes(cache_directory(os.environ), str(Directory.cwd()))
        self._plan_notes = PlanNotes.of_terraform(os.environ, Directory.cwd())
        self._planned = PlannedPatches()
        # Terraform reads before it plans, not before it applies.
        self._has_read = False

    def hidden_texts(self, values: AttributeValues) -> HiddenTexts:
        """See ManagedResource."""
        return patch_texts(values) | self._clusters.hidden_texts(values.get("cluster"))

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
        planner = PatchPlanner(self._clusters, request, call, self._notes, self._planned, self._plan_notes)
        planned = await planner.plan(is_first=self._has_read)
        return msgspec.structs.replace(
            planned, state={**planned.state, "fields": shown_fields(planned.state, request.prior)}
        )

    async def plan_deletion(self, prior: InstanceState, call: CallContext) -> bytes:
        """See ManagedResource. The plan says which fields go back to which values."""
        state, id_ = prior.state, str(prior.state["id"])
        session = patch_session(self._clusters, state, id_)
        try:
            # Terraform has just read it.
            live = await session.observe(may_be_recent=True)
            record = await self._record(session, state, read_patch_private(prior.private))
        except ResponseTooLarge:
            raise
        except RemoteUnavailable as fault:
            call.add_diagnostic(unreachable_warning(session.connection, fault))
            return prior.private
        if live is not None and record.is_of(live):
            release = session.forecast_release(record, is_restored=is_restored(state))
            said = release_warning(state, session.target, release.fields)
            if said is not None:
                call.add_diagnostic(said)
        return prior.private

    async def read(self, stored: InstanceState, call: CallContext) -> InstanceState | None:
        """See ManagedResource. Nothing is written: a field that drifted is shown, and put back by an apply."""
        self._has_read = True
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
        found = {**state, "projection": fields_text(live, list(record.before)), "status": status}
        shown = shown_fields(found, None if state.get("fields") is None else state)
        return InstanceState({**found, "fields": shown}, private.to_bytes())

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
        self._plan_notes.forget(note_key(self._clusters, planned, None))
        record = record_of(planned, private) if private.adopts else NO_RECORD
        with cluster_needed(session.connection):
            live = await call.until_stopped(self._existing(session, planned))
        if live is None:
            raise DiagnosticsError(missing_target_error(session.target))
        write = PatchWrite(session, {**planned, "id": id_}, None, call, self._notes, self._wait(planned))
        return await write.run(record, is_new=True, is_tested=not private.adopts)

    async def update(self, request: UpdateRequest, call: CallContext) -> InstanceState:
        """See ManagedResource."""
        planned, private = request.planned, read_patch_private(request.private)
        self._plan_notes.forget(note_key(self._clusters, planned, request.prior))
        session = patch_session(self._clusters, planned, str(request.prior["id"]))
        with cluster_needed(session.connection):
            # Terraform has planned it just before, in this process.
            live = await session.observe(may_be_recent=True)
        record = await self._record(session, request.prior, private)
        if live is None or not record.is_of(live):
            raise DiagnosticsError(lost_target_error(session.target, is_new=live is not None))
        write = PatchWrite(session, dict(planned), request.prior, call, self._notes, self._wait(planned))
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
            return await session.observe(may_be_recent=True)
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
