"""PlanResourceChange for `setpoint_object`: the planned state, by a server-side dry run."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from setpoint.core.values.canonical import same
from setpoint.core.values.json_types import Json
from setpoint.errors import (
    ImmutableFieldChanged,
    OperationRunning,
    RemoteUnavailable,
    ResponseTooLarge,
    SetpointError,
)
from setpoint.terraform.cty.types import DYNAMIC
from setpoint.terraform.cty.values import UNKNOWN, AttributePath, AttributeValues, CtyValue, same_value
from setpoint.terraform.framework.call import CallContext
from setpoint.terraform.framework.diagnostics import Diagnostic, DiagnosticsError, error, warning
from setpoint.terraform.framework.provider import PlanRequest, PlanResponse
from setpoint.terraform.framework.schema import attribute_type
from setpoint.terraform.resources.clusters import (
    ClusterConnections,
    ClusterLocation,
    unreachable_error,
    unreachable_warning,
)
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
from setpoint.terraform.resources.vocabulary import engine_diagnostic

if TYPE_CHECKING:
    from setpoint.objects.session import ObjectForecast, ObjectSession

# The ID of an object that does not exist yet.
_PLACEHOLDER_ID = "000000000000/0"


@dataclass(slots=True)
class ObjectPlanner:
    """Plans one change. `created_ids` are those of the objects that this process has created: they are not replaced."""

    clusters: ClusterConnections
    request: PlanRequest
    call: CallContext
    interrupted: InterruptedCreates
    created_ids: Collection[str]

    @property
    def config(self) -> AttributeValues:
        """The configuration."""
        return self.request.config

    async def plan(self) -> PlanResponse:
        """The planned state."""
        prior = self.request.prior
        if not is_manifest_known(self.config) or not self.clusters.is_cluster_known(self.config.get("cluster")):
            is_other = prior is not None and may_change_identity(prior, self.config)
            return self._replacement(prior, None, (MANIFEST,)) if is_other and prior else self._without_dry_run(None)
        tree = read_manifest(self.config)
        if prior is None:
            return await self._create(tree)
        reason = self._other_object(prior, tree)
        return self._replacement(prior, tree, reason) if reason else await self._update(prior, tree)

    # --- Create ----------------------------------------------------------------------------------------------------

    async def _create(self, tree: dict[str, Json]) -> PlanResponse:
        session = session_for(self.clusters, self.config, _PLACEHOLDER_ID, PrivateState())
        location = await location_of(self.clusters, self.config, session)
        try:
            live = await session.observe()
        except OperationRunning:
            # Its CustomResourceDefinition is being established.
            return self._without_dry_run(tree)
        except RemoteUnavailable as fault:
            return self._create_unreachable(session, tree, location, fault)
        if live is None:
            response = await self._with_dry_run(session, tree, PrivateState())
            self.interrupted.note_dry_run(location)
            return response
        if annotated_id(live) in self.created_ids:
            raise DiagnosticsError(managed_elsewhere_error(live, self.config))
        if (adopted := _adoptable_id(live, self.interrupted.id_at(location))) and not self.request.private:
            self.interrupted.note(location, adopted)
            if self.interrupted.is_found_here(location):
                self.call.add_diagnostic(_adoption_warning(adopted))
            private = PrivateState(adopts=adopted)
            session = session_for(self.clusters, self.config, adopted, private)
            return await self._with_dry_run(session, tree, private)
        if not annotated_id(live) and not self.request.private:
            raise DiagnosticsError(already_exists_error(tree, self.config))
        # Another resource manages the object and may be about to delete it: a dry run would show the old object.
        return self._without_dry_run(tree)

    def _create_unreachable(
        self, session: "ObjectSession", tree: Json, location: ClusterLocation, fault: RemoteUnavailable
    ) -> PlanResponse:
        """The plan of a new object while its cluster does not answer. One that may exist is kept, as ever."""
        is_applied = self.interrupted.is_dry_run(location) and not self.clusters.is_unread(self.config.get("cluster"))
        self._continue_unreachable(session, fault, is_planned=not is_applied)
        adopted = self.interrupted.id_at(location)
        if not adopted or self.request.private:
            return self._without_dry_run(tree)
        self.interrupted.note(location, adopted)
        if self.interrupted.is_found_here(location):
            self.call.add_diagnostic(_adoption_warning(adopted))
        return self._without_dry_run(tree, PrivateState(adopts=adopted))

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
        if object_identity(read_manifest(prior)) != object_identity(tree):
            return (manifest_attribute(self.config),)
        if self.clusters.key(prior.get("cluster")) == self.clusters.key(self.config.get("cluster")):
            return ()
        old, new = (self.clusters.session(one.get("cluster")).client.connection.server for one in (prior, self.config))
        return () if old == new else ("cluster",)

    def _replacement(self, prior: AttributeValues, tree: Json, reason: AttributePath) -> PlanResponse:
        require_deletable(prior)
        planned = self._without_dry_run(tree)
        return PlanResponse({**planned.state, "id": UNKNOWN}, (reason,), planned.private)

    async def _update(self, prior: AttributeValues, tree: dict[str, Json]) -> PlanResponse:
        private = read_private_state(self.request.private)
        session = session_for(self.clusters, self.config, str(prior["id"]), private)
        return await self._with_dry_run(session, tree, private)

    # --- Dry run ----------------------------------------------------------------------------------------

    async def _with_dry_run(
        self, session: "ObjectSession", tree: dict[str, Json], private: PrivateState
    ) -> PlanResponse:
        prior = self.request.prior
        try:
            await session.check()
            forecast = await session.forecast()
        except OperationRunning:
            # Its kind or its namespace does not exist yet; or an object of its name is being deleted.
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
            raise DiagnosticsError(engine_diagnostic(fault, (manifest_attribute(self.config),))) from fault
        fields = projection(session, forecast.after, self.config)
        is_unchanged = prior is not None and not forecast.plan.writes and fields == prior.get("projection")
        if forecast.plan.writes and prior is not None and fields == prior.get("projection"):
            # The change is outside the projection, such as a change of field managers.
            return self._planned_state(forecast, private, UNKNOWN, is_unchanged=False)
        return self._planned_state(forecast, private, fields, is_unchanged=is_unchanged)

    def _planned_state(
        self, forecast: "ObjectForecast", private: PrivateState, fields: CtyValue, *, is_unchanged: bool
    ) -> PlanResponse:
        prior, state = self.request.prior, dict(self.request.proposed)
        state |= {"id": UNKNOWN if prior is None else prior["id"], "object_ref": object_ref(forecast.after)}
        state |= {"projection": fields, "status": self._status(private, is_unchanged=is_unchanged)}
        source = manifest_attribute(self.config)
        if is_unchanged and prior is not None and manifest_attribute(prior) == source:
            # A manifest that is written differently and means the same is no change.
            state[source] = prior[source]
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


def _adoptable_id(live: Json, noted: str) -> str:
    """The ID of a live object whose interrupted create was noted; empty when it is another object."""
    current = annotated_id(live)
    # The noted adoption may not have reached the object: then it has the ID before.
    is_noted = bool(noted) and (current in ("", noted) or next_id(current) == noted)
    return (current or noted) if is_noted else ""


def _is_same_wait(before: CtyValue, after: CtyValue) -> bool:
    type_ = attribute_type(OBJECT_SCHEMA.attributes["wait_for"])
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        # Another timeout does not make it another wait.
        before, after = ({**one, "timeout": None} for one in (before, after))
    return same_value(before, after, type_ if before is not None else DYNAMIC)


def _adoption_warning(id_: str) -> Diagnostic:
    return warning(
        "The object is kept",
        f"Its last apply failed after it was made (as {id_}). Terraform plans a replacement, but the object is neither "
        'deleted nor made anew: the next apply goes on with it. With on_timeout = "fail" it is replaced.',
    )


def require_deletable(prior: AttributeValues) -> None:
    """Raises DiagnosticsError for an object with delete protection."""
    if prior.get("delete_protection") is True:
        why = "delete_protection is set: apply delete_protection = false first, then delete or replace it."
        raise DiagnosticsError(error("The object is protected", why, ("delete_protection",)))


def already_exists_error(tree: Json, config: AttributeValues) -> Diagnostic:
    """The diagnostic of an existing object without an ID annotation: it is not adopted."""
    ref = object_ref(tree)
    return error(
        "The object is there already",
        f"{ref['kind']} {ref['name']} was not created by this resource. "
        f"To manage it from here on, import it: {_import_hint(ref)}.",
        (manifest_attribute(config),),
    )


def managed_elsewhere_error(live: Json, planned: AttributeValues) -> Diagnostic:
    """The diagnostic of an existing object that this resource does not manage: it is not adopted."""
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
    """How to import an object. An import block also waits for its value; the command fails where outputs need that."""
    parts = {"apiVersion": ref["api_version"], "kind": ref["kind"], "namespace": ref["namespace"], "name": ref["name"]}
    identifier = ",".join(f"{name}={one}" for name, one in parts.items() if one)
    return f"terraform import ADDRESS '{identifier}', or with the same id in an import block"
