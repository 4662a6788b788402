"""The resource `setpoint_object`: validate, read, create, update and delete an object of a cluster."""

import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path as Directory
from typing import TYPE_CHECKING, Final

import msgspec

from setpoint.core.values.durations import parse_duration
from setpoint.core.values.json_types import Json
from setpoint.core.values.paths import Path
from setpoint.errors import (
    ManifestInvalid,
    OperationRunning,
    RemoteRefused,
    RemoteUnavailable,
    ResponseTooLarge,
)
from setpoint.terraform.connections.clusters import (
    ClusterConnections,
    cluster_needed,
    unreachable_warning,
    validate_cluster,
)
from setpoint.terraform.cty.values import UNKNOWN, AttributeValues, CtyValue, is_known
from setpoint.terraform.framework.call import CallContext, InstanceState
from setpoint.terraform.framework.diagnostics import (
    Diagnostic,
    DiagnosticsError,
    error,
)
from setpoint.terraform.framework.hidden_texts import HiddenTexts
from setpoint.terraform.framework.provider import (
    CreateRequest,
    ManagedResource,
    MovedState,
    PlanRequest,
    PlanResponse,
    UpdateRequest,
)
from setpoint.terraform.resources.object_apply import GRACE_S, ObjectApply, apply_timeout
from setpoint.terraform.resources.object_config import (
    MANIFEST,
    YAML,
    annotated_id,
    is_manifest_known,
    new_id,
    next_id,
    validate_manifest,
    validate_wait,
)
from setpoint.terraform.resources.object_diagnostics import (
    made_again_warning,
    managed_elsewhere_error,
    require_deletable,
    require_managed,
)
from setpoint.terraform.resources.object_import import import_object
from setpoint.terraform.resources.object_move import move_object
from setpoint.terraform.resources.object_plan import ObjectPlanner
from setpoint.terraform.resources.object_state import (
    ChangingDefinitions,
    InterruptedCreates,
    PrivateState,
    is_managed_under,
    location_of,
    note_key,
    object_ref,
    read_private_state,
    session_for,
    status_value,
)
from setpoint.terraform.resources.plan_notes import PlanNotes
from setpoint.terraform.resources.schemas import FAIL, KEEP, OBJECT_SCHEMA
from setpoint.terraform.resources.shown_values import hidden_texts, shown_fields
from setpoint.terraform.resources.stale_credentials import (
    is_login_refused,
    read_again,
    refused_error,
    refused_warning,
)
from setpoint.terraform.resources.unchanged_objects import LocatedObject, UnchangedObjects
from setpoint.terraform.resources.vocabulary import engine_diagnostic
from setpoint.terraform.rpc.tls_proxy import cache_directory

if TYPE_CHECKING:
    from setpoint.clients.kubernetes.kubeconfig import ClusterConnection
    from setpoint.objects.session import ObjectSession

_DELETION_S: Final = 300.0


class ObjectResource(ManagedResource):
    """The resource `setpoint_object`."""

    schema = OBJECT_SCHEMA

    def __init__(self, clusters: ClusterConnections) -> None:
        self._clusters = clusters
        self._interrupted = InterruptedCreates(cache_directory(os.environ), str(Directory.cwd()))
        self._notes = PlanNotes.of_terraform(os.environ, Directory.cwd())
        # Terraform reads before it plans, not before it applies.
        self._has_read = False
        # The IDs of the objects that this process has created.
        self._created_ids: set[str] = set()
        self._definitions = ChangingDefinitions()
        self._unchanged = UnchangedObjects(clusters)

    def shut_down(self) -> None:
        """Terraform has the state of every object that was created."""
        self._interrupted.forget_finished()

    def hidden_texts(self, values: AttributeValues) -> HiddenTexts:
        """See ManagedResource."""
        return hidden_texts(values) | self._clusters.hidden_texts(values.get("cluster"))

    async def validate(self, config: AttributeValues, call: CallContext) -> None:
        """See ManagedResource."""
        sources = [name for name in (YAML, MANIFEST) if config.get(name) is not None]
        if len(sources) != 1:
            why = f"yaml_body and manifest are two forms of one thing: write one of them, not {len(sources) or 'none'}."
            raise DiagnosticsError(error("Not one object", why, (sources[-1],) if sources else ()))
        if is_manifest_known(config):
            validate_manifest(config)
        validate_cluster(config.get("cluster"))
        validate_wait(config.get("wait_for"))
        _validate_duration(config.get("delete_timeout"))
        if config.get("on_timeout") not in (None, KEEP, FAIL) and is_known(config.get("on_timeout")):
            raise DiagnosticsError(error("No such word", "on_timeout is keep or fail.", ("on_timeout",)))

    async def plan(self, request: PlanRequest, call: CallContext) -> PlanResponse:
        """See ManagedResource."""
        if request.prior is not None and self._unchanged.is_plan_empty(request):
            # One that was noted before does not hold any more.
            self._notes.forget(note_key(self._clusters, request.config, request.prior))
            return PlanResponse(request.prior, private=request.private)
        again = await read_again(self._clusters, request, call, partial(self._read, call=call))
        if again is not None:
            request = msgspec.structs.replace(request, private=again.private)
        known = self._interrupted, self._created_ids, self._definitions, self._notes
        planned = await ObjectPlanner(self._clusters, request, call, *known).plan(is_first=self._has_read)
        state = {**planned.state, "fields": shown_fields(planned.state, request.prior)}
        if again is not None and state["status"] not in (None, again.state.get("status")):
            # Nothing may be planned as known that the apply finds to be otherwise.
            state["status"] = UNKNOWN
        return PlanResponse(state, planned.requires_replace, planned.private)

    async def plan_deletion(self, prior: InstanceState, call: CallContext) -> bytes:
        """See ManagedResource."""
        require_deletable(prior.state)
        return prior.private

    async def read(self, stored: InstanceState, call: CallContext) -> InstanceState | None:
        """See ManagedResource."""
        self._has_read = True
        if read_private_state(stored.private).taken_over:
            # Its cluster may be one that only the configuration names: the plan, which has it, asks that one.
            self._clusters.add_unread(stored.state.get("cluster"))
            self._clusters.add_unread(None)
            return stored
        try:
            return await self._read(stored.state, stored.private, call)
        except ResponseTooLarge:
            raise
        except RemoteUnavailable as fault:
            await self._leave_unread(stored, call, unreachable_warning(self._connection(stored.state), fault))
        except RemoteRefused as fault:
            if stored.state.get("cluster") is None or not is_login_refused(fault):
                raise
            await self._leave_unread(stored, call, refused_warning(self._connection(stored.state), fault))
        return stored

    async def _read(self, state: AttributeValues, stored: bytes, call: CallContext) -> InstanceState | None:
        private = read_private_state(stored)
        found = await self._unchanged.read(state, private) or await self._located(state, private)
        live, location = found.live, found.location
        if live is None:
            return None
        if not is_managed_under(live, str(state["id"]), private):
            return self._read_foreign(InstanceState(state, stored), live, call)
        private = private.of_object(live)
        if private.is_pending:
            self._interrupted.add_read(location, annotated_id(live) or str(state["id"]), private.object_uid)
        else:
            self._interrupted.forget(location)
        status, private = _refreshed_status(state, private, live)
        computed = {"projection": _refreshed_projection(state, live), "object_ref": object_ref(live), "status": status}
        read = {**state, **computed}
        self._unchanged.add(read, private, live)
        shown = shown_fields(read, None if state.get("fields") is None else state)
        return InstanceState({**read, "fields": shown}, private.to_bytes())

    def _read_foreign(self, stored: InstanceState, live: Json, call: CallContext) -> InstanceState | None:
        """The state of an object that is another one by now: a deletion lets go of it, and says so."""
        if annotated_id(live):
            return None
        call.add_diagnostic(made_again_warning(live))
        self._interrupted.add_lost(str(stored.state["id"]))
        return stored

    async def _located(self, state: AttributeValues, private: PrivateState) -> LocatedObject:
        session, live = await self._observed(state, private)
        return LocatedObject(live, await location_of(self._clusters, state, session))

    async def _observed(self, state: AttributeValues, private: PrivateState) -> tuple["ObjectSession", Json]:
        """The object of a state, with the credentials there; or else with those of the provider's block."""
        session = session_for(self._clusters, state, str(state["id"]), private)
        try:
            return session, await session.observe()
        except RemoteRefused as fault:
            if not is_login_refused(fault) or not self._clusters.is_default_at(state.get("cluster")):
                raise
        session = session_for(self._clusters, {**state, "cluster": None}, str(state["id"]), private)
        return session, await session.observe()

    def _connection(self, state: AttributeValues) -> "ClusterConnection":
        return self._clusters.connection(state.get("cluster"))

    async def _leave_unread(self, stored: InstanceState, call: CallContext, why: Diagnostic) -> None:
        """The cluster does not answer: that is no reason to stop what other clusters are asked for."""
        call.add_diagnostic(why)
        self._clusters.add_unread(stored.state.get("cluster"))
        private = read_private_state(stored.private)
        if private.is_pending:
            session = session_for(self._clusters, stored.state, str(stored.state["id"]), private)
            location = await location_of(self._clusters, stored.state, session)
            self._interrupted.add_read(location, str(stored.state["id"]), private.object_uid)

    async def create(self, request: CreateRequest, call: CallContext) -> InstanceState:
        """See ManagedResource."""
        self._notes.forget(note_key(self._clusters, request.planned, None))
        private = read_private_state(request.private)
        adopts = private.adopts
        id_ = next_id(adopts) if adopts else new_id()
        if adopts:
            _keep_adopted(request.planned, adopts, None, call)
        session = session_for(self._clusters, request.planned, id_, PrivateState())
        with cluster_needed(session.connection):
            # Read anew: an apply has no precondition that there is no such object.
            live = await _observe_if_served(session, may_be_recent=False)
        if live is not None and not (adopts and is_managed_under(live, adopts, private)):
            raise DiagnosticsError(managed_elsewhere_error(live, request.planned))
        if adopts and live is not None:
            _keep_adopted(request.planned, adopts, live, call)
        self._created_ids.add(id_)
        location = await location_of(self._clusters, request.planned, session)
        # Read by the next process if Terraform or this one is killed. If it is not, the state says the same.
        self._interrupted.note(location, id_)
        try:
            apply = ObjectApply(session, {**request.planned, "id": id_}, None, call)
            return await apply.create(apply_timeout(request.planned))
        finally:
            self._interrupted.finish(location)

    async def update(self, request: UpdateRequest, call: CallContext) -> InstanceState:
        """See ManagedResource."""
        self._notes.forget(note_key(self._clusters, request.planned, request.prior))
        private, id_ = read_private_state(request.private), str(request.prior["id"])
        session = session_for(self._clusters, request.planned, id_, private)
        with cluster_needed(session.connection):
            # Terraform has planned it just before, in this process. The apply has the uid as its precondition.
            live = await _observe_if_served(session, may_be_recent=True)
        if live is not None:
            require_managed(live, id_, private, request.planned)
            session.pin()
        apply = ObjectApply(session, {**request.planned, "id": id_}, request.prior, call)
        return await apply.update(apply_timeout(request.planned))

    async def delete(self, prior: InstanceState, call: CallContext) -> None:
        """See ManagedResource."""
        private, id_ = read_private_state(prior.private), str(prior.state["id"])
        session = session_for(self._clusters, prior.state, id_, private)
        if private.adopts:
            # The create that follows adopts this very object.
            location = await location_of(self._clusters, prior.state, session)
            self._interrupted.add_planned(location, private.adopts, private.uid)
            return
        session, live = await self._observed_for_deletion(session, prior.state, private)
        if live is None:
            return
        if not is_managed_under(live, id_, private):
            if not annotated_id(live):
                call.add_diagnostic(made_again_warning(live))
            return
        require_deletable(prior.state)
        timeout = prior.state.get("delete_timeout")
        seconds = parse_duration(timeout) if isinstance(timeout, str) else _DELETION_S
        failure = await call.until_stopped(session.delete(seconds + GRACE_S))
        with cluster_needed(session.connection):
            if isinstance(failure, RemoteUnavailable):
                raise failure
        if failure is not None:
            raise DiagnosticsError(engine_diagnostic(failure)) from failure

    async def _observed_for_deletion(
        self, session: "ObjectSession", state: AttributeValues, private: PrivateState
    ) -> tuple["ObjectSession", Json]:
        """As `_observed`; DiagnosticsError where all known credentials are refused: no configuration has others."""
        try:
            with cluster_needed(session.connection):
                return await self._observed(state, private)
        except RemoteRefused as fault:
            if state.get("cluster") is None or not is_login_refused(fault):
                raise
            raise DiagnosticsError(refused_error(session.connection, fault)) from fault

    async def import_state(self, identifier: str, call: CallContext) -> InstanceState:
        """See ManagedResource."""
        return await import_object(identifier, self._clusters)

    async def move_state(self, source: MovedState, call: CallContext) -> InstanceState:
        """See ManagedResource."""
        return move_object(source)


def _validate_duration(timeout: CtyValue) -> None:
    if isinstance(timeout, str):
        try:
            parse_duration(timeout)
        except ManifestInvalid as fault:
            raise DiagnosticsError(error("No duration", f"delete_timeout: {fault}.", ("delete_timeout",))) from fault


def _keep_adopted(planned: AttributeValues, adopts: str, live: Json, call: CallContext) -> None:
    """Terraform has removed the replaced object from its state. It exists, under this ID or the next one."""
    private = PrivateState(is_pending=True, takes=next_id(adopts)).of_object(live)
    call.save_state(InstanceState({**planned, "id": adopts, "status": None}, private.to_bytes()))


async def _observe_if_served(session: "ObjectSession", *, may_be_recent: bool) -> Json:
    """The live object; None when there is none, or its kind is not served yet: the apply waits for that."""
    try:
        return await session.observe(may_be_recent=may_be_recent)
    except OperationRunning:
        return None


def _refreshed_projection(state: AttributeValues, live: Json) -> CtyValue:
    """The declared fields with their live values. After an import nothing was applied: no field counts as declared."""
    from setpoint.objects.object_fields import fields_at

    paths = state.get("projection")
    return dict(fields_at(live, list(paths))) if isinstance(paths, Mapping) else {}


def _refreshed_status(state: AttributeValues, private: PrivateState, live: Json) -> tuple[CtyValue, PrivateState]:
    """The attribute `status`. When its value has disappeared, the last one is shown, and the wait is pending again."""
    wait_for = state.get("wait_for")
    field = wait_for.get("field") if isinstance(wait_for, Mapping) else None
    if not isinstance(field, str):
        return state.get("status"), private
    from setpoint.core.wait.judge import ObjectFound, is_present_at, secrecy_of
    from setpoint.core.wait.outputs import Known, Null, output_of
    from setpoint.core.wait.wait_for import FieldWait

    wait = FieldWait(Path.parse(field))
    if secrecy_of(wait, live) is not None:
        # From a version that did not know it as secret: it leaves the state.
        return None, private.pending(private.engine)
    output = output_of(wait, ObjectFound(live), Null(), "")
    if isinstance(output, Known):
        return status_value(output.value), private.with_value()
    is_gone = not is_present_at(live, Path.parse(field))
    return state.get("status"), private.pending(private.engine) if is_gone else private
