"""`setpoint_object`: an object in a cluster."""

import os
from collections.abc import Mapping
from pathlib import Path as Folder
from typing import TYPE_CHECKING, Final

from setpoint.core.durations import seconds_of
from setpoint.core.outputs import Known, Null, output_of
from setpoint.core.paths import Path
from setpoint.core.values import Json
from setpoint.core.verdict import Seen, is_there_at
from setpoint.core.wait_for import FieldWait, parse_wait
from setpoint.errors import ManifestInvalid, OperationRunning
from setpoint.terraform.calls import Call, Stored
from setpoint.terraform.certificate import cache_folder
from setpoint.terraform.cluster_attribute import check_cluster
from setpoint.terraform.cty_values import Value, Values, is_known
from setpoint.terraform.declared import (
    MANIFEST,
    YAML,
    id_on,
    is_declared,
    new_id,
    next_id,
    tree_in,
)
from setpoint.terraform.diagnostics import Refused, error
from setpoint.terraform.importing import imported
from setpoint.terraform.memory import Memory, read_memory
from setpoint.terraform.object_keeping import Keeping
from setpoint.terraform.object_plan import Acquaintance, ObjectPlan, not_ours, require_unprotected
from setpoint.terraform.object_schema import FAIL, KEEP, OBJECT
from setpoint.terraform.object_state import is_kept_under, object_ref, place_of, shown_status, single_of
from setpoint.terraform.pending import Pending
from setpoint.terraform.provider import CreateRequest, ManagedResource, Planned, PlanRequest, UpdateRequest
from setpoint.terraform.sites import Sites
from setpoint.terraform.waits import check_wait, wait_tree
from setpoint.terraform.wording import told

if TYPE_CHECKING:
    from setpoint.objects.single import Single

# What an object may take besides its wait: for its kind to be served, for finalizers to be seen.
_GRACE_S: Final = 60.0
_DELETION_S: Final = 300.0


class ObjectResource(ManagedResource):
    """Objects of the clusters that `sites` lead to."""

    schema = OBJECT

    def __init__(self, sites: Sites) -> None:
        self._sites = sites
        self._pending = Pending(cache_folder(os.environ), str(Folder.cwd()))
        # The ids of the objects that were made by this process.
        self._made: set[str] = set()

    async def validate(self, config: Values, call: Call) -> None:
        """See ManagedResource."""
        said = [name for name in (YAML, MANIFEST) if config.get(name) is not None]
        if len(said) != 1:
            why = f"yaml_body and manifest are two forms of one thing: write one of them, not {len(said) or 'none'}."
            raise Refused(error("Not one object", why, (said[-1],) if said else ()))
        if is_declared(config):
            tree_in(config)
        check_cluster(config.get("cluster"))
        check_wait(config.get("wait_for"))
        _check_duration(config.get("delete_timeout"))
        if config.get("on_timeout") not in (None, KEEP, FAIL) and is_known(config.get("on_timeout")):
            raise Refused(error("No such word", "on_timeout is keep or fail.", ("on_timeout",)))

    async def plan(self, request: PlanRequest, call: Call) -> Planned:
        """See ManagedResource."""
        return await ObjectPlan(self._sites, request, call.told, Acquaintance(self._pending, self._made)).made()

    async def plan_deletion(self, prior: Stored, call: Call) -> bytes:
        """See ManagedResource."""
        require_unprotected(prior.state)
        return prior.private

    async def read(self, stored: Stored, call: Call) -> Stored | None:
        """See ManagedResource."""
        state, memory = stored.state, read_memory(stored.private)
        single = single_of(self._sites, state, str(state["id"]), memory)
        live = await single.look()
        if live is None or not is_kept_under(live, str(state["id"]), memory):
            return None
        place = await place_of(self._sites, state, single)
        if memory.is_pending:
            self._pending.see(place, id_on(live) or str(state["id"]))
        else:
            self._pending.forget(place)
        status, memory = _refreshed(state, memory, live)
        seen = {"projection": _seen(state, live), "object_ref": object_ref(live), "status": status}
        return Stored({**state, **seen}, memory.to_bytes())

    async def create(self, request: CreateRequest, call: Call) -> Stored:
        """See ManagedResource."""
        adopts = read_memory(request.private).adopts
        id_ = next_id(adopts) if adopts else new_id()
        if adopts:
            # For Terraform the one before is gone by now. Whatever comes, this one is there, under either id.
            state: Values = {**request.planned, "id": adopts, "status": None}
            call.keep(Stored(state, Memory(is_pending=True, takes=id_).to_bytes()))
        single = single_of(self._sites, request.planned, id_, Memory())
        live = await _seen_by_now(single)
        if live is not None and (not adopts or id_on(live) not in ("", adopts)):
            raise Refused(not_ours(live, request.planned))
        self._made.add(id_)
        place = await place_of(self._sites, request.planned, single)
        # Whoever comes after a kill knows whose it is. Everybody else knows from the state.
        self._pending.note(place, id_)
        try:
            keeping = Keeping(single, {**request.planned, "id": id_}, call)
            return await keeping.of_a_new_one(_patience(request.planned))
        finally:
            self._pending.forget(place)

    async def update(self, request: UpdateRequest, call: Call) -> Stored:
        """See ManagedResource."""
        memory, id_ = read_memory(request.private), str(request.prior["id"])
        single = single_of(self._sites, request.planned, id_, memory)
        return await Keeping(single, {**request.planned, "id": id_}, call).of_an_old_one(_patience(request.planned))

    async def delete(self, prior: Stored, call: Call) -> None:
        """See ManagedResource."""
        memory, id_ = read_memory(prior.private), str(prior.state["id"])
        single = single_of(self._sites, prior.state, id_, memory)
        if memory.adopts:
            # It is the same object that is taken over next.
            self._pending.keep(await place_of(self._sites, prior.state, single), memory.adopts)
            return
        live = await single.look()
        if live is None or not is_kept_under(live, id_, memory):
            return
        require_unprotected(prior.state)
        patience = prior.state.get("delete_timeout")
        seconds = seconds_of(patience) if isinstance(patience, str) else _DELETION_S
        trouble = await call.unless_stopped(single.remove(seconds + _GRACE_S))
        if trouble is not None:
            raise Refused(told(trouble)) from trouble

    async def adopt(self, identifier: str, call: Call) -> Stored:
        """See ManagedResource."""
        return await imported(identifier, self._sites)


async def _seen_by_now(single: "Single") -> Json:
    """The object as it is; None when there is none, or its kind is just coming: whoever keeps it waits for that."""
    try:
        return await single.look()
    except OperationRunning:
        return None


def _check_duration(timeout: Value) -> None:
    if isinstance(timeout, str):
        try:
            seconds_of(timeout)
        except ManifestInvalid as fault:
            raise Refused(error("No duration", f"delete_timeout: {fault}.", ("delete_timeout",))) from fault


def _patience(planned: Values) -> float:
    wait = wait_tree(planned.get("wait_for"))
    return (0.0 if wait is None else parse_wait(wait).timeout_seconds) + _GRACE_S


def _seen(state: Values, live: Json) -> Value:
    """What is declared, as it is now; what was never applied, such as after an import, is not known to be declared."""
    from setpoint.objects.fields import fields_at

    places = state.get("projection")
    return dict(fields_at(live, list(places))) if isinstance(places, Mapping) else {}


def _refreshed(state: Values, memory: Memory, live: Json) -> tuple[Value, Memory]:
    """What it offers now. A value that has disappeared is waited for again, and the last one is shown until then."""
    wait_for = state.get("wait_for")
    field = wait_for.get("field") if isinstance(wait_for, Mapping) else None
    if not isinstance(field, str) or memory.is_pending:
        return state.get("status"), memory
    output = output_of(FieldWait(Path.parse(field)), Seen(live), Null(), "")
    if isinstance(output, Known):
        return shown_status(output.value), memory
    is_gone = not is_there_at(live, Path.parse(field))
    return state.get("status"), Memory(memory.engine, is_pending=True) if is_gone else memory
