"""The resource `setpoint_object`: validate, read, create, update and delete an object of a cluster."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path as Folder
from typing import TYPE_CHECKING, Final

from setpoint.core.values.durations import parse_duration
from setpoint.core.values.json_types import Json
from setpoint.core.values.paths import Path
from setpoint.core.wait.judge import ObjectFound, is_present_at
from setpoint.core.wait.outputs import Known, Null, output_of
from setpoint.core.wait.wait_for import FieldWait, parse_wait
from setpoint.errors import ManifestInvalid, OperationRunning, SetpointError, StillWaiting, WaitFailed, WaitTimedOut
from setpoint.terraform.cty.values import UNKNOWN, AttributeValues, CtyValue, is_known
from setpoint.terraform.framework.call import CallContext, InstanceState
from setpoint.terraform.framework.diagnostics import (
    Diagnostic,
    DiagnosticsError,
    Interrupted,
    diagnostics_for,
    engine_diagnostic,
    error,
)
from setpoint.terraform.framework.provider import (
    CreateRequest,
    ManagedResource,
    PlanRequest,
    PlanResponse,
    UpdateRequest,
)
from setpoint.terraform.resources.clusters import ClusterConnections, validate_cluster
from setpoint.terraform.resources.object_config import (
    MANIFEST,
    YAML,
    annotated_id,
    is_manifest_known,
    manifest_attribute,
    new_id,
    next_id,
    read_manifest,
    validate_wait,
    wait_spec,
)
from setpoint.terraform.resources.object_import import import_object
from setpoint.terraform.resources.object_plan import (
    KnownObjects,
    ObjectPlanner,
    managed_elsewhere_error,
    require_deletable,
)
from setpoint.terraform.resources.object_state import (
    InterruptedCreates,
    PrivateState,
    is_managed_under,
    location_of,
    object_ref,
    projection,
    read_private_state,
    session_for,
    status_value,
    wait_output,
)
from setpoint.terraform.resources.schemas import FAIL, KEEP, OBJECT_SCHEMA
from setpoint.terraform.rpc.tls_proxy import cache_directory

if TYPE_CHECKING:
    from setpoint.objects.session import ObjectSession

_WAIT_ERRORS = StillWaiting | WaitTimedOut | WaitFailed


@dataclass(slots=True)
class ObjectApply:
    """One apply. `planned` is the state that was planned, with the id under which the object is kept."""

    single: "ObjectSession"
    planned: AttributeValues
    call: CallContext

    async def create(self, seconds: float) -> InstanceState:
        """The state of an object that was not there, or is taken over."""
        trouble = await self._kept(seconds)
        if trouble is None:
            return await self._stored(is_pending=False)
        live = self.single.live
        if live is not None and annotated_id(live) == self.planned["id"]:
            self.call.keep(await self._stored(is_pending=self.planned.get("on_timeout") != FAIL))
        raise DiagnosticsError(self._told(trouble)) from trouble

    async def update(self, seconds: float) -> InstanceState:
        """The state of an object that was there before."""
        trouble = await self._kept(seconds)
        if trouble is None:
            return await self._stored(is_pending=False)
        if isinstance(trouble, _WAIT_ERRORS) or (isinstance(trouble, Interrupted) and self._is_as_planned()):
            self.call.keep(await self._stored(is_pending=True))
        raise DiagnosticsError(self._told(trouble)) from trouble

    async def _kept(self, seconds: float) -> SetpointError | Interrupted | None:
        try:
            return await self.call.until_stopped(self.single.keep(seconds))
        except Interrupted as interrupted:
            return interrupted

    def _is_as_planned(self) -> bool:
        live, fields = self.single.live, self.planned.get("projection")
        return live is not None and fields in (UNKNOWN, projection(self.single, live, self.planned))

    async def _stored(self, *, is_pending: bool) -> InstanceState:
        live, memory = self.single.live, await self.single.memory()
        state = {
            **self.planned,
            "object_ref": object_ref(live),
            "projection": projection(self.single, live, self.planned),
            "status": None if is_pending else wait_output(memory),
        }
        return InstanceState(state, PrivateState(dict(memory), is_pending).to_bytes())

    def _told(self, trouble: SetpointError | Interrupted) -> Diagnostic:
        if isinstance(trouble, Interrupted):
            return diagnostics_for(trouble)[0]
        said = engine_diagnostic(
            trouble, ("wait_for",) if isinstance(trouble, _WAIT_ERRORS) else (manifest_attribute(self.planned),)
        )
        if not isinstance(trouble, _WAIT_ERRORS) or self.planned.get("on_timeout") == FAIL:
            return said
        after = "The object is kept as it is: the next apply goes on waiting for it."
        return error(said.summary, f"{said.detail}\n\n{after}", said.path)


# What an object may take besides its wait: for its kind to be served, for finalizers to be seen.
_GRACE_S: Final = 60.0
_DELETION_S: Final = 300.0


class ObjectResource(ManagedResource):
    """Objects of the clusters that `sites` lead to."""

    schema = OBJECT_SCHEMA

    def __init__(self, sites: ClusterConnections) -> None:
        self._sites = sites
        self._pending = InterruptedCreates(cache_directory(os.environ), str(Folder.cwd()))
        # The ids of the objects that were made by this process.
        self._made: set[str] = set()

    async def validate(self, config: AttributeValues, call: CallContext) -> None:
        """See ManagedResource."""
        said = [name for name in (YAML, MANIFEST) if config.get(name) is not None]
        if len(said) != 1:
            why = f"yaml_body and manifest are two forms of one thing: write one of them, not {len(said) or 'none'}."
            raise DiagnosticsError(error("Not one object", why, (said[-1],) if said else ()))
        if is_manifest_known(config):
            read_manifest(config)
        validate_cluster(config.get("cluster"))
        validate_wait(config.get("wait_for"))
        _validate_duration(config.get("delete_timeout"))
        if config.get("on_timeout") not in (None, KEEP, FAIL) and is_known(config.get("on_timeout")):
            raise DiagnosticsError(error("No such word", "on_timeout is keep or fail.", ("on_timeout",)))

    async def plan(self, request: PlanRequest, call: CallContext) -> PlanResponse:
        """See ManagedResource."""
        return await ObjectPlanner(self._sites, request, call.told, KnownObjects(self._pending, self._made)).made()

    async def plan_deletion(self, prior: InstanceState, call: CallContext) -> bytes:
        """See ManagedResource."""
        require_deletable(prior.state)
        return prior.private

    async def read(self, stored: InstanceState, call: CallContext) -> InstanceState | None:
        """See ManagedResource."""
        state, memory = stored.state, read_private_state(stored.private)
        single = session_for(self._sites, state, str(state["id"]), memory)
        live = await single.look()
        if live is None or not is_managed_under(live, str(state["id"]), memory):
            return None
        place = await location_of(self._sites, state, single)
        if memory.is_pending:
            self._pending.see(place, annotated_id(live) or str(state["id"]))
        else:
            self._pending.forget(place)
        status, memory = _refreshed_status(state, memory, live)
        seen = {"projection": _refreshed_projection(state, live), "object_ref": object_ref(live), "status": status}
        return InstanceState({**state, **seen}, memory.to_bytes())

    async def create(self, request: CreateRequest, call: CallContext) -> InstanceState:
        """See ManagedResource."""
        adopts = read_private_state(request.private).adopts
        id_ = next_id(adopts) if adopts else new_id()
        if adopts:
            # For Terraform the one before is gone by now. Whatever comes, this one is there, under either id.
            state: AttributeValues = {**request.planned, "id": adopts, "status": None}
            call.keep(InstanceState(state, PrivateState(is_pending=True, takes=id_).to_bytes()))
        single = session_for(self._sites, request.planned, id_, PrivateState())
        live = await _observe_if_served(single)
        if live is not None and (not adopts or annotated_id(live) not in ("", adopts)):
            raise DiagnosticsError(managed_elsewhere_error(live, request.planned))
        self._made.add(id_)
        place = await location_of(self._sites, request.planned, single)
        # Whoever comes after a kill knows whose it is. Everybody else knows from the state.
        self._pending.note(place, id_)
        try:
            keeping = ObjectApply(single, {**request.planned, "id": id_}, call)
            return await keeping.create(_apply_timeout(request.planned))
        finally:
            self._pending.forget(place)

    async def update(self, request: UpdateRequest, call: CallContext) -> InstanceState:
        """See ManagedResource."""
        memory, id_ = read_private_state(request.private), str(request.prior["id"])
        single = session_for(self._sites, request.planned, id_, memory)
        return await ObjectApply(single, {**request.planned, "id": id_}, call).update(_apply_timeout(request.planned))

    async def delete(self, prior: InstanceState, call: CallContext) -> None:
        """See ManagedResource."""
        memory, id_ = read_private_state(prior.private), str(prior.state["id"])
        single = session_for(self._sites, prior.state, id_, memory)
        if memory.adopts:
            # It is the same object that is taken over next.
            self._pending.keep(await location_of(self._sites, prior.state, single), memory.adopts)
            return
        live = await single.look()
        if live is None or not is_managed_under(live, id_, memory):
            return
        require_deletable(prior.state)
        patience = prior.state.get("delete_timeout")
        seconds = parse_duration(patience) if isinstance(patience, str) else _DELETION_S
        trouble = await call.until_stopped(single.remove(seconds + _GRACE_S))
        if trouble is not None:
            raise DiagnosticsError(engine_diagnostic(trouble)) from trouble

    async def import_state(self, identifier: str, call: CallContext) -> InstanceState:
        """See ManagedResource."""
        return await import_object(identifier, self._sites)


async def _observe_if_served(single: "ObjectSession") -> Json:
    """The object as it is; None when there is none, or its kind is just coming: whoever keeps it waits for that."""
    try:
        return await single.look()
    except OperationRunning:
        return None


def _validate_duration(timeout: CtyValue) -> None:
    if isinstance(timeout, str):
        try:
            parse_duration(timeout)
        except ManifestInvalid as fault:
            raise DiagnosticsError(error("No duration", f"delete_timeout: {fault}.", ("delete_timeout",))) from fault


def _apply_timeout(planned: AttributeValues) -> float:
    wait = wait_spec(planned.get("wait_for"))
    return (0.0 if wait is None else parse_wait(wait).timeout_seconds) + _GRACE_S


def _refreshed_projection(state: AttributeValues, live: Json) -> CtyValue:
    """What is declared, as it is now; what was never applied, such as after an import, is not known to be declared."""
    from setpoint.objects.session import fields_at

    places = state.get("projection")
    return dict(fields_at(live, list(places))) if isinstance(places, Mapping) else {}


def _refreshed_status(state: AttributeValues, memory: PrivateState, live: Json) -> tuple[CtyValue, PrivateState]:
    """What it offers now. A value that has disappeared is waited for again, and the last one is shown until then."""
    wait_for = state.get("wait_for")
    field = wait_for.get("field") if isinstance(wait_for, Mapping) else None
    if not isinstance(field, str) or memory.is_pending:
        return state.get("status"), memory
    output = output_of(FieldWait(Path.parse(field)), ObjectFound(live), Null(), "")
    if isinstance(output, Known):
        return status_value(output.value), memory
    is_gone = not is_present_at(live, Path.parse(field))
    return state.get("status"), PrivateState(memory.engine, is_pending=True) if is_gone else memory
