"""The resource `setpoint_object`: validate, read, create, update and delete an object of a cluster."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path as Directory
from typing import TYPE_CHECKING, Final

from setpoint.core.values.durations import parse_duration
from setpoint.core.values.json_types import Json
from setpoint.core.values.paths import Path
from setpoint.core.wait.judge import ObjectFound, is_present_at, secrecy_of
from setpoint.core.wait.outputs import Known, Null, output_of
from setpoint.core.wait.wait_for import FieldWait, parse_wait
from setpoint.errors import (
    ManifestInvalid,
    OperationRunning,
    RemoteUnavailable,
    ResponseTooLarge,
    SetpointError,
    StillWaiting,
    WaitFailed,
    WaitTimedOut,
)
from setpoint.terraform.cty.values import UNKNOWN, AttributeValues, CtyValue, is_known
from setpoint.terraform.framework.call import CallContext, InstanceState
from setpoint.terraform.framework.consistency import deviation_error, deviations
from setpoint.terraform.framework.diagnostics import (
    Diagnostic,
    DiagnosticsError,
    Interrupted,
    diagnostics_for,
    error,
)
from setpoint.terraform.framework.provider import (
    CreateRequest,
    ManagedResource,
    MovedState,
    PlanRequest,
    PlanResponse,
    UpdateRequest,
)
from setpoint.terraform.framework.schema import schema_type
from setpoint.terraform.resources.clusters import (
    ClusterConnections,
    cluster_needed,
    unreachable_error,
    unreachable_warning,
    validate_cluster,
)
from setpoint.terraform.resources.object_config import (
    MANIFEST,
    YAML,
    annotated_id,
    is_manifest_known,
    manifest_attribute,
    new_id,
    next_id,
    validate_manifest,
    validate_wait,
    wait_spec,
)
from setpoint.terraform.resources.object_diagnostics import (
    made_again_warning,
    managed_elsewhere_error,
    require_deletable,
    require_managed,
)
from setpoint.terraform.resources.object_import import import_object
from setpoint.terraform.resources.object_move import move_object
from setpoint.terraform.resources.object_plan import ObjectPlanner, note_key
from setpoint.terraform.resources.object_state import (
    ChangingDefinitions,
    InterruptedCreates,
    PrivateState,
    engine_state,
    is_managed_under,
    location_of,
    object_ref,
    projection,
    read_private_state,
    session_for,
    status_value,
    wait_output,
)
from setpoint.terraform.resources.plan_notes import PlanNotes
from setpoint.terraform.resources.schemas import FAIL, KEEP, OBJECT_SCHEMA
from setpoint.terraform.resources.vocabulary import engine_diagnostic
from setpoint.terraform.rpc.tls_proxy import cache_directory

if TYPE_CHECKING:
    from setpoint.objects.session import ObjectSession

# How long an apply may take besides its wait: until its kind is served, and until finalizers are observed.
_GRACE_S: Final = 60.0
_DELETION_S: Final = 300.0
_WAIT_ERRORS = StillWaiting | WaitTimedOut | WaitFailed


class ObjectResource(ManagedResource):
    """The resource `setpoint_object`."""

    schema = OBJECT_SCHEMA

    def __init__(self, clusters: ClusterConnections) -> None:
        self._clusters = clusters
        self._interrupted = InterruptedCreates(cache_directory(os.environ), str(Directory.cwd()))
        self._notes = PlanNotes(cache_directory(os.environ), str(Directory.cwd()))
        # Terraform reads before it plans, not before it applies.
        self._has_read = False
        # The IDs of the objects that this process has created.
        self._created_ids: set[str] = set()
        self._definitions = ChangingDefinitions()

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
        known = self._interrupted, self._created_ids, self._definitions, self._notes
        return await ObjectPlanner(self._clusters, request, call, *known).plan(is_first=self._has_read)

    async def plan_deletion(self, prior: InstanceState, call: CallContext) -> bytes:
        """See ManagedResource."""
        require_deletable(prior.state)
        return prior.private

    async def read(self, stored: InstanceState, call: CallContext) -> InstanceState | None:
        """See ManagedResource."""
        self._has_read = True
        state, private = stored.state, read_private_state(stored.private)
        if private.taken_over:
            # Its cluster may be one that only the configuration names: the plan, which has it, asks that one.
            self._clusters.add_unread(state.get("cluster"))
            self._clusters.add_unread(None)
            return stored
        session = session_for(self._clusters, state, str(state["id"]), private)
        try:
            live = await session.observe()
        except ResponseTooLarge:
            raise
        except RemoteUnavailable as fault:
            await self._leave_unread(stored, session, call, fault)
            return stored
        if live is None:
            return None
        location = await location_of(self._clusters, state, session)
        if not is_managed_under(live, str(state["id"]), private):
            return self._read_foreign(stored, live, call)
        private = private.of_object(live)
        if private.is_pending:
            self._interrupted.add_read(location, annotated_id(live) or str(state["id"]))
        else:
            self._interrupted.forget(location)
        status, private = _refreshed_status(state, private, live)
        computed = {"projection": _refreshed_projection(state, live), "object_ref": object_ref(live), "status": status}
        return InstanceState({**state, **computed}, private.to_bytes())

    def _read_foreign(self, stored: InstanceState, live: Json, call: CallContext) -> InstanceState | None:
        """The state of an object that is another one by now: a deletion lets go of it, and says so."""
        if annotated_id(live):
            return None
        call.add_diagnostic(made_again_warning(live))
        self._interrupted.add_lost(str(stored.state["id"]))
        return stored

    async def _leave_unread(
        self, stored: InstanceState, session: "ObjectSession", call: CallContext, fault: RemoteUnavailable
    ) -> None:
        """The cluster does not answer: that is no reason to stop what other clusters are asked for."""
        call.add_diagnostic(unreachable_warning(session.connection, fault))
        self._clusters.add_unread(stored.state.get("cluster"))
        if read_private_state(stored.private).is_pending:
            location = await location_of(self._clusters, stored.state, session)
            self._interrupted.add_read(location, str(stored.state["id"]))

    async def create(self, request: CreateRequest, call: CallContext) -> InstanceState:
        """See ManagedResource."""
        self._notes.forget(note_key(self._clusters, request.planned, None))
        adopts = read_private_state(request.private).adopts
        id_ = next_id(adopts) if adopts else new_id()
        if adopts:
            _keep_adopted(request.planned, adopts, None, call)
        session = session_for(self._clusters, request.planned, id_, PrivateState())
        with cluster_needed(session.connection):
            live = await _observe_if_served(session)
        if live is not None and (not adopts or annotated_id(live) not in ("", adopts)):
            raise DiagnosticsError(managed_elsewhere_error(live, request.planned))
        if adopts and live is not None:
            _keep_adopted(request.planned, adopts, live, call)
        self._created_ids.add(id_)
        location = await location_of(self._clusters, request.planned, session)
        # Read by the next process if this one is killed. If it is not, the state says the same.
        self._interrupted.note(location, id_)
        try:
            apply = ObjectApply(session, {**request.planned, "id": id_}, call)
            return await apply.create(_apply_timeout(request.planned))
        finally:
            self._interrupted.forget(location)

    async def update(self, request: UpdateRequest, call: CallContext) -> InstanceState:
        """See ManagedResource."""
        self._notes.forget(note_key(self._clusters, request.planned, request.prior))
        private, id_ = read_private_state(request.private), str(request.prior["id"])
        session = session_for(self._clusters, request.planned, id_, private)
        with cluster_needed(session.connection):
            live = await _observe_if_served(session)
        if live is not None:
            require_managed(live, id_, private, request.planned)
            session.pin()
        return await ObjectApply(session, {**request.planned, "id": id_}, call).update(_apply_timeout(request.planned))

    async def delete(self, prior: InstanceState, call: CallContext) -> None:
        """See ManagedResource."""
        private, id_ = read_private_state(prior.private), str(prior.state["id"])
        session = session_for(self._clusters, prior.state, id_, private)
        if private.adopts:
            # The create that follows adopts this very object.
            self._interrupted.add_planned(await location_of(self._clusters, prior.state, session), private.adopts)
            return
        with cluster_needed(session.connection):
            live = await session.observe()
        if live is None:
            return
        if not is_managed_under(live, id_, private):
            if not annotated_id(live):
                call.add_diagnostic(made_again_warning(live))
            return
        require_deletable(prior.state)
        timeout = prior.state.get("delete_timeout")
        seconds = parse_duration(timeout) if isinstance(timeout, str) else _DELETION_S
        failure = await call.until_stopped(session.delete(seconds + _GRACE_S))
        with cluster_needed(session.connection):
            if isinstance(failure, RemoteUnavailable):
                raise failure
        if failure is not None:
            raise DiagnosticsError(engine_diagnostic(failure)) from failure

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


async def _observe_if_served(session: "ObjectSession") -> Json:
    """The live object; None when there is none, or its kind is not served yet: the apply waits for that."""
    try:
        return await session.observe()
    except OperationRunning:
        return None


def _apply_timeout(planned: AttributeValues) -> float:
    wait = wait_spec(planned.get("wait_for"))
    return (0.0 if wait is None else parse_wait(wait).timeout_seconds) + _GRACE_S


def _refreshed_projection(state: AttributeValues, live: Json) -> CtyValue:
    """The declared fields with their live values. After an import nothing was applied: no field counts as declared."""
    from setpoint.objects.session import fields_at

    paths = state.get("projection")
    return dict(fields_at(live, list(paths))) if isinstance(paths, Mapping) else {}


def _refreshed_status(state: AttributeValues, private: PrivateState, live: Json) -> tuple[CtyValue, PrivateState]:
    """The attribute `status`. When its value has disappeared, the last one is shown, and the wait is pending again."""
    wait_for = state.get("wait_for")
    field = wait_for.get("field") if isinstance(wait_for, Mapping) else None
    if not isinstance(field, str):
        return state.get("status"), private
    wait = FieldWait(Path.parse(field))
    if secrecy_of(wait, live) is not None:
        # From a version that did not know it as secret: it leaves the state.
        return None, private.pending(private.engine)
    output = output_of(wait, ObjectFound(live), Null(), "")
    if isinstance(output, Known):
        return status_value(output.value), private.with_value()
    is_gone = not is_present_at(live, Path.parse(field))
    return state.get("status"), private.pending(private.engine) if is_gone else private


@dataclass(slots=True)
class ObjectApply:
    """Applies one object. `planned` is the planned state, with the ID under which the object is managed."""

    session: "ObjectSession"
    planned: AttributeValues
    call: CallContext

    async def create(self, timeout_s: float) -> InstanceState:
        """The state of an object that is created, or adopted."""
        failure = await self._apply(timeout_s)
        if failure is None:
            stored = await self._state(is_pending=False)
            await self._require_as_planned(stored, is_pending=True)
            return stored
        live = self.session.live
        if live is not None and annotated_id(live) == self.planned["id"]:
            self.call.save_state(await self._state(is_pending=self.planned.get("on_timeout") != FAIL))
        raise DiagnosticsError(self._diagnostic(failure)) from failure

    async def update(self, timeout_s: float) -> InstanceState:
        """The state of an object that existed before."""
        failure = await self._apply(timeout_s)
        if failure is None:
            stored = await self._state(is_pending=False)
            await self._require_as_planned(stored, is_pending=False)
            return stored
        if isinstance(failure, _WAIT_ERRORS) or (isinstance(failure, Interrupted) and self._is_as_planned()):
            self.call.save_state(await self._state(is_pending=True, is_untainted=True))
        raise DiagnosticsError(self._diagnostic(failure)) from failure

    async def _require_as_planned(self, stored: InstanceState, *, is_pending: bool) -> None:
        """Raises DiagnosticsError for another result. Terraform taints a new object then: a pending one is kept."""
        if paths := list(deviations(self.planned, stored.state, schema_type(OBJECT_SCHEMA))):
            self.call.save_state(await self._state(is_pending=is_pending) if is_pending else stored)
            raise DiagnosticsError(deviation_error(paths))

    async def _apply(self, timeout_s: float) -> SetpointError | Interrupted | None:
        try:
            return await self.call.until_stopped(self.session.reconcile(timeout_s))
        except Interrupted as interrupted:
            return interrupted

    def _is_as_planned(self) -> bool:
        live, fields = self.session.live, self.planned.get("projection")
        return live is not None and fields in (UNKNOWN, projection(self.session, live, self.planned))

    async def _state(self, *, is_pending: bool, is_untainted: bool = False) -> InstanceState:
        live, status = self.session.live, await self.session.stored_state()
        # A value that the plan has is what dependants were planned with: the next read has a later one.
        is_planned = self.planned.get("status") is not None and is_known(self.planned.get("status"))
        output = self.planned["status"] if is_planned else wait_output(status)
        state = {
            **self.planned,
            "object_ref": object_ref(live),
            "projection": projection(self.session, live, self.planned),
            "status": None if is_pending else output,
        }
        return InstanceState(state, PrivateState(engine_state(status), is_pending, is_untainted).to_bytes())

    def _diagnostic(self, failure: SetpointError | Interrupted) -> Diagnostic:
        if isinstance(failure, Interrupted):
            return diagnostics_for(failure)[0]
        if isinstance(failure, RemoteUnavailable) and not isinstance(failure, ResponseTooLarge):
            return unreachable_error(self.session.connection, failure)
        is_wait = isinstance(failure, _WAIT_ERRORS)
        diagnostic = engine_diagnostic(failure, ("wait_for",) if is_wait else (manifest_attribute(self.planned),))
        if not is_wait or self.planned.get("on_timeout") == FAIL:
            return diagnostic
        after = "The object is kept as it is: the next apply goes on waiting for it."
        return error(diagnostic.summary, f"{diagnostic.detail}\n\n{after}", diagnostic.path)
