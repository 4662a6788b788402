"""PlanResourceChange for `setpoint_object`: the planned state, by a server-side dry run."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from setpoint.core.values.json_types import Json
from setpoint.errors import ImmutableFieldChanged, OperationRunning, SetpointError
from setpoint.terraform.cty.types import DYNAMIC
from setpoint.terraform.cty.values import UNKNOWN, AttributePath, AttributeValues, CtyValue, same_value
from setpoint.terraform.framework.diagnostics import Diagnostic, DiagnosticsError, engine_diagnostic, error, warning
from setpoint.terraform.framework.provider import PlanRequest, PlanResponse
from setpoint.terraform.framework.schema import attribute_type
from setpoint.terraform.resources.clusters import ClusterConnections
from setpoint.terraform.resources.object_config import (
    MANIFEST,
    annotated_id,
    is_manifest_known,
    manifest_attribute,
    may_change_identity,
    next_id,
    object_identity,
    read_manifest,
    waits_for_value,
)
from setpoint.terraform.resources.object_state import (
    InterruptedCreates,
    PrivateState,
    location_of,
    object_ref,
    planned_ref,
    projection,
    read_private_state,
    session_for,
)
from setpoint.terraform.resources.schemas import OBJECT_SCHEMA

if TYPE_CHECKING:
    from setpoint.objects.session import ObjectForecast, ObjectSession

# Stands for the id of an object that is still to be made.
_PLACEHOLDER_ID = "000000000000/0"


@dataclass(frozen=True, slots=True)
class KnownObjects:
    """What is known of objects besides their states; those that this process has made are not about to be deleted."""

    pending: InterruptedCreates
    made: Collection[str]


@dataclass(slots=True)
class ObjectPlanner:
    """A plan in the making. `told` is what there is to say about it."""

    sites: ClusterConnections
    request: PlanRequest
    told: list[Diagnostic]
    known: KnownObjects

    @property
    def config(self) -> AttributeValues:
        """What is asked for."""
        return self.request.config

    async def made(self) -> PlanResponse:
        """The plan."""
        prior = self.request.prior
        if not is_manifest_known(self.config) or not self.sites.is_cluster_known(self.config.get("cluster")):
            is_another = prior is not None and may_change_identity(prior, self.config)
            return self._replaced(prior, None, (MANIFEST,)) if is_another and prior else self._unforeseen(None)
        tree = read_manifest(self.config)
        if prior is None:
            return await self._creation(tree)
        reason = self._another_object(prior, tree)
        return self._replaced(prior, tree, reason) if reason else await self._update(prior, tree)

    # --- Making it ----------------------------------------------------------------------------------------------------

    async def _creation(self, tree: dict[str, Json]) -> PlanResponse:
        single = session_for(self.sites, self.config, _PLACEHOLDER_ID, PrivateState())
        place = await location_of(self.sites, self.config, single)
        try:
            live = await single.look()
        except OperationRunning:
            # Its kind is just coming.
            return self._unforeseen(tree)
        if live is None:
            return await self._foreseen(single, tree, PrivateState())
        if annotated_id(live) in self.known.made:
            raise DiagnosticsError(managed_elsewhere_error(live, self.config))
        if (adopted := _adoptable_id(live, self.known.pending.id_at(place))) and not self.request.private:
            self.known.pending.note(place, adopted)
            if self.known.pending.is_found_here(place):
                self.told.append(_adoption_warning(adopted))
            memory = PrivateState(adopts=adopted)
            return await self._foreseen(session_for(self.sites, self.config, adopted, memory), tree, memory)
        if not annotated_id(live) and not self.request.private:
            raise DiagnosticsError(already_exists_error(tree, self.config))
        # Somebody's, who is about to delete it: what comes after cannot be asked for yet.
        return self._unforeseen(tree)

    # --- Changing it --------------------------------------------------------------------------------------------------

    def _another_object(self, prior: AttributeValues, tree: Json) -> AttributePath:
        """The attribute whose change makes it another object; empty when it is the same one."""
        if object_identity(read_manifest(prior)) != object_identity(tree):
            return (manifest_attribute(self.config),)
        if self.sites.key(prior.get("cluster")) == self.sites.key(self.config.get("cluster")):
            return ()
        old, new = (self.sites.site(one.get("cluster")).client.connection.server for one in (prior, self.config))
        return () if old == new else ("cluster",)

    def _replaced(self, prior: AttributeValues, tree: Json, reason: AttributePath) -> PlanResponse:
        require_deletable(prior)
        planned = self._unforeseen(tree)
        return PlanResponse({**planned.state, "id": UNKNOWN}, (reason,), planned.private)

    async def _update(self, prior: AttributeValues, tree: dict[str, Json]) -> PlanResponse:
        memory = read_private_state(self.request.private)
        single = session_for(self.sites, self.config, str(prior["id"]), memory)
        return await self._foreseen(single, tree, memory)

    # --- What the cluster says ----------------------------------------------------------------------------------------

    async def _foreseen(self, single: "ObjectSession", tree: dict[str, Json], memory: PrivateState) -> PlanResponse:
        prior = self.request.prior
        try:
            await single.check()
            forecast = await single.forecast()
        except OperationRunning:
            # Its kind, or its namespace, is still to come; or what has its name is still to go.
            return self._unforeseen(tree, memory)
        except ImmutableFieldChanged as fault:
            if prior is None:
                raise
            self.told.append(
                warning("A new object is needed", engine_diagnostic(fault).detail, (manifest_attribute(self.config),))
            )
            return self._replaced(prior, tree, (manifest_attribute(self.config),))
        except SetpointError as fault:
            raise DiagnosticsError(engine_diagnostic(fault, (manifest_attribute(self.config),))) from fault
        fields = projection(single, forecast.after, self.config)
        is_same = prior is not None and not forecast.plan.writes and fields == prior.get("projection")
        if forecast.plan.writes and prior is not None and fields == prior.get("projection"):
            # What changes is not among what is shown, such as whose fields they are.
            return self._put_together(forecast, memory, UNKNOWN, is_same=False)
        return self._put_together(forecast, memory, fields, is_same=is_same)

    def _put_together(
        self, forecast: "ObjectForecast", memory: PrivateState, fields: CtyValue, *, is_same: bool
    ) -> PlanResponse:
        prior, state = self.request.prior, dict(self.request.proposed)
        state |= {"id": UNKNOWN if prior is None else prior["id"], "object_ref": object_ref(forecast.after)}
        state |= {"projection": fields, "status": self._status(memory, is_same=is_same)}
        source = manifest_attribute(self.config)
        if is_same and prior is not None and manifest_attribute(prior) == source:
            # Another text that says the same is no change.
            state[source] = prior[source]
        return PlanResponse(state, private=memory.to_bytes())

    def _unforeseen(self, tree: Json, memory: PrivateState | None = None) -> PlanResponse:
        """What is known without asking a cluster."""
        prior, state = self.request.prior, dict(self.request.proposed)
        ref: CtyValue = UNKNOWN if tree is None else planned_ref(tree)
        state |= {"id": UNKNOWN if prior is None else prior["id"], "object_ref": ref, "projection": UNKNOWN}
        state["status"] = self._status(memory or read_private_state(self.request.private), is_same=False)
        return PlanResponse(state, private=self.request.private if memory is None else memory.to_bytes())

    def _status(self, memory: PrivateState, *, is_same: bool) -> CtyValue:
        prior, wait_for = self.request.prior, self.config.get("wait_for")
        if wait_for is None:
            return None
        is_awaited = memory.is_pending or bool(memory.adopts)
        if not waits_for_value(wait_for):
            # Whether it is satisfied is nobody's value; that there is something to do has to be seen all the same.
            return UNKNOWN if is_awaited and prior is not None else None
        if prior is None or not is_same or is_awaited or not _is_same_wait(prior.get("wait_for"), wait_for):
            return UNKNOWN
        return prior.get("status") if prior.get("status") is not None else UNKNOWN


def _adoptable_id(live: Json, noted: str) -> str:
    """Under which id the object is kept, if it is the one that was noted; empty when it is not."""
    kept = annotated_id(live)
    # Who was about to take it over may not have come to it.
    is_noted = bool(noted) and (kept in ("", noted) or next_id(kept) == noted)
    return (kept or noted) if is_noted else ""


def _is_same_wait(before: CtyValue, after: CtyValue) -> bool:
    type_ = attribute_type(OBJECT_SCHEMA.attributes["wait_for"])
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        # More or less time changes nothing for what is there already.
        before, after = ({**one, "timeout": None} for one in (before, after))
    return same_value(before, after, type_ if before is not None else DYNAMIC)


def _adoption_warning(id_: str) -> Diagnostic:
    return warning(
        "The object is kept",
        f"Its last apply failed after it was made (as {id_}). Terraform plans a replacement, but the object is neither "
        'deleted nor made anew: the next apply goes on with it. With on_timeout = "fail" it is replaced.',
    )


def require_deletable(prior: AttributeValues) -> None:
    """Refused for what must not be deleted."""
    if prior.get("delete_protection") is True:
        why = "delete_protection is set: apply delete_protection = false first, then delete or replace it."
        raise DiagnosticsError(error("The object is protected", why, ("delete_protection",)))


def already_exists_error(tree: Json, config: AttributeValues) -> Diagnostic:
    """Why an object that nobody here has made is not just taken over."""
    ref = object_ref(tree)
    return error(
        "The object is there already",
        f"{ref['kind']} {ref['name']} was made by somebody else. "
        f"To keep it from here on, import it: {_import_hint(ref)}.",
        (manifest_attribute(config),),
    )


def managed_elsewhere_error(live: Json, planned: AttributeValues) -> Diagnostic:
    """Why an object that somebody else keeps is not just taken over."""
    if not annotated_id(live):
        return already_exists_error(live, planned)
    ref = object_ref(live)
    return error(
        "The object is kept by another resource",
        f"{ref['kind']} {ref['name']} is kept as {annotated_id(live)}, by another resource "
        "or another state of Terraform's. "
        "Remove it there first, with `terraform state rm` if the object is to stay; then import it here: "
        f"{_import_hint(ref)}.",
        (manifest_attribute(planned),),
    )


def _import_hint(ref: AttributeValues) -> str:
    """How to import it. A block waits for its value, too; where outputs need that, the command refuses."""
    parts = {"apiVersion": ref["api_version"], "kind": ref["kind"], "namespace": ref["namespace"], "name": ref["name"]}
    identifier = ",".join(f"{name}={one}" for name, one in parts.items() if one)
    return f"terraform import ADDRESS '{identifier}', or with the same id in an import block"
