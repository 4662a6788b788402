"""The resource `setpoint_wait`, which reads an object and writes nothing."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from setpoint.core.values.messages import worded
from setpoint.core.wait.judge import secrecy_of
from setpoint.core.wait.rollout import require_rollout
from setpoint.core.wait.wait_for import parse_wait
from setpoint.errors import ManifestInvalid, RemoteRefused, RemoteUnavailable, ResponseTooLarge, SetpointError
from setpoint.terraform.connections.clusters import (
    ClusterConnections,
    unreachable_warning,
    validate_cluster,
)
from setpoint.terraform.cty.values import UNKNOWN, AttributeValues, CtyValue, is_known
from setpoint.terraform.framework.call import CallContext, InstanceState
from setpoint.terraform.framework.diagnostics import DiagnosticsError, error
from setpoint.terraform.framework.hidden_texts import HiddenTexts
from setpoint.terraform.framework.provider import (
    CreateRequest,
    ManagedResource,
    PlanRequest,
    PlanResponse,
    UpdateRequest,
)
from setpoint.terraform.resources.object_config import new_id, validate_wait, wait_spec, waits_for_value
from setpoint.terraform.resources.object_state import PrivateState, dynamic_value, read_private_state
from setpoint.terraform.resources.schemas import WAIT_SCHEMA
from setpoint.terraform.resources.shown_values import hidden_texts
from setpoint.terraform.resources.stale_credentials import is_login_refused, refused_warning
from setpoint.terraform.resources.vocabulary import attribute_words, engine_diagnostic

if TYPE_CHECKING:
    from setpoint.objects.wait import ObjectWait, SatisfiedWait


def _validate_rollout(wait_for: CtyValue, ref: CtyValue) -> None:
    """Raises DiagnosticsError for the rollout of a kind that has none."""
    names = ref if isinstance(ref, Mapping) and is_known(ref) else {}
    if isinstance(wait_for, Mapping) and wait_for.get("rollout") is True and names:
        try:
            require_rollout({"apiVersion": str(names["api_version"]), "kind": str(names["kind"])})
        except ManifestInvalid as fault:
            raise DiagnosticsError(error("No such wait", worded(fault, attribute_words), ("wait_for",))) from fault


class WaitResource(ManagedResource):
    """Waits until an object meets a condition."""

    schema = WAIT_SCHEMA

    def __init__(self, clusters: ClusterConnections) -> None:
        self._clusters = clusters

    def hidden_texts(self, values: AttributeValues) -> HiddenTexts:
        """See ManagedResource."""
        return hidden_texts(values) | self._clusters.hidden_texts(values.get("cluster"))

    async def validate(self, config: AttributeValues, call: CallContext) -> None:
        """See ManagedResource."""
        validate_cluster(config.get("cluster"))
        validate_wait(config.get("wait_for"))
        _validate_rollout(config.get("wait_for"), config.get("object_ref"))

    async def plan(self, request: PlanRequest, call: CallContext) -> PlanResponse:
        """See ManagedResource."""
        prior, state = request.prior, dict(request.proposed)
        is_satisfied = prior is not None and not read_private_state(request.private).is_pending
        if prior is not None and self._clusters.is_login_changed(prior.get("cluster"), request.config.get("cluster")):
            is_satisfied = is_satisfied and await self._is_same(prior, request)
        if prior is None or not is_satisfied or prior.get("wait_for") != request.config.get("wait_for"):
            # Other waits than `field` have no value: an unknown result is how Terraform sees that an update is needed.
            has_result = waits_for_value(request.config.get("wait_for")) or prior is not None
            return PlanResponse(
                {**state, "id": _planned_id(prior), "result": UNKNOWN if has_result else None}, private=request.private
            )
        return PlanResponse({**state, "id": _planned_id(prior), "result": prior.get("result")}, private=request.private)

    async def _is_same(self, prior: AttributeValues, request: PlanRequest) -> bool:
        """Whether the wait is satisfied with the same value, as the credentials of the configuration read it."""
        try:
            found = await self._read(
                InstanceState({**prior, "cluster": request.config.get("cluster")}, request.private)
            )
        except RemoteUnavailable:
            return True
        if found is None or read_private_state(found.private).is_pending:
            return False
        return found.state.get("result") == prior.get("result")

    async def read(self, stored: InstanceState, call: CallContext) -> InstanceState | None:
        """See ManagedResource."""
        try:
            return await self._read(stored)
        except ResponseTooLarge:
            raise
        except RemoteUnavailable as fault:
            call.add_diagnostic(unreachable_warning(self._target(stored.state).connection, fault))
        except RemoteRefused as fault:
            if stored.state.get("cluster") is None or not is_login_refused(fault):
                raise
            call.add_diagnostic(refused_warning(self._target(stored.state).connection, fault))
        return stored

    async def _read(self, stored: InstanceState) -> InstanceState | None:
        state, private = stored.state, read_private_state(stored.private)
        target, wait_for = self._target(state), parse_wait(wait_spec(state.get("wait_for")))
        try:
            live = await target.observe()
        except RemoteRefused as fault:
            if not is_login_refused(fault) or not self._clusters.is_default_at(state.get("cluster")):
                raise
            live = await self._target({**state, "cluster": None}).observe()
        if live is None:
            return None
        met = target.satisfied(wait_for, live)
        if met is not None:
            return _satisfied_state(state, met)
        is_same_wait = private.satisfied_for == target.key(wait_for, live)
        if is_same_wait and not private.is_pending and not waits_for_value(state.get("wait_for")):
            # A wait stays satisfied for the same object and generation, whatever its status is by now.
            return stored
        if secrecy_of(wait_for.wait, live) is not None:
            # From a version that did not know it as secret: it leaves the state.
            state = {**state, "result": None}
        return InstanceState(state, PrivateState(is_pending=True).to_bytes())

    async def create(self, request: CreateRequest, call: CallContext) -> InstanceState:
        """See ManagedResource."""
        return await self._wait({**request.planned, "id": new_id()}, call)

    async def update(self, request: UpdateRequest, call: CallContext) -> InstanceState:
        """See ManagedResource."""
        return await self._wait(request.planned, call)

    async def delete(self, prior: InstanceState, call: CallContext) -> None:
        """Nothing was created: there is nothing to delete."""

    async def _wait(self, state: AttributeValues, call: CallContext) -> InstanceState:
        wait_for = parse_wait(wait_spec(state.get("wait_for")))
        try:
            met: SatisfiedWait = await call.until_stopped(self._target(state).until(wait_for))
        except SetpointError as fault:
            raise DiagnosticsError(engine_diagnostic(fault, ("wait_for",))) from fault
        found, planned = _satisfied_state(state, met), state.get("result")
        if planned is None or not is_known(planned):
            return found
        # A value that the plan has is what dependants were planned with: the next read has a later one.
        return InstanceState({**found.state, "result": planned}, found.private)

    def _target(self, values: AttributeValues) -> "ObjectWait":
        return target_of(self._clusters, values.get("object_ref"), values.get("cluster"))


def target_of(clusters: ClusterConnections, names: CtyValue, cluster: CtyValue) -> "ObjectWait":
    """The object that the attributes of an `object_ref` name."""
    from setpoint.objects.wait import ObjectWait

    attributes = names if isinstance(names, Mapping) else {}
    texts = {name: one if isinstance(one, str) else "" for name, one in attributes.items()}
    names_of = (texts.get("namespace", ""), texts.get("name", ""))
    return ObjectWait(clusters.session(cluster), texts.get("api_version", ""), texts.get("kind", ""), names_of)


def _satisfied_state(state: AttributeValues, met: "SatisfiedWait") -> InstanceState:
    return InstanceState({**state, "result": dynamic_value(met.value)}, PrivateState(satisfied_for=met.key).to_bytes())


def _planned_id(prior: AttributeValues | None) -> CtyValue:
    return UNKNOWN if prior is None else prior.get("id")
