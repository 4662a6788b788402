"""`setpoint_wait`: waits for an object that others manage, and offers what it waited for."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from setpoint.core.wait_for import parse_wait
from setpoint.errors import SetpointError
from setpoint.terraform.calls import Call, Stored
from setpoint.terraform.cluster_attribute import check_cluster
from setpoint.terraform.cty_values import UNKNOWN, Value, Values
from setpoint.terraform.declared import new_id
from setpoint.terraform.diagnostics import Refused
from setpoint.terraform.memory import Memory, read_memory
from setpoint.terraform.object_schema import WAITING
from setpoint.terraform.object_state import dynamic
from setpoint.terraform.provider import CreateRequest, ManagedResource, Planned, PlanRequest, UpdateRequest
from setpoint.terraform.sites import Sites
from setpoint.terraform.waits import check_wait, wait_tree, waits_for_value
from setpoint.terraform.wording import told

if TYPE_CHECKING:
    from setpoint.objects.waiting import Awaited, Met


class WaitResource(ManagedResource):
    """Waits in the clusters that `sites` lead to."""

    schema = WAITING

    def __init__(self, sites: Sites) -> None:
        self._sites = sites

    async def validate(self, config: Values, call: Call) -> None:
        """See ManagedResource."""
        check_cluster(config.get("cluster"))
        check_wait(config.get("wait_for"))

    async def plan(self, request: PlanRequest, call: Call) -> Planned:
        """See ManagedResource."""
        prior, state = request.prior, dict(request.proposed)
        is_over = prior is not None and not read_memory(request.private).is_pending
        if prior is None or not is_over or prior.get("wait_for") != request.config.get("wait_for"):
            # What is waited for has no value of its own in other waits: that there is something to do is seen by it.
            is_shown = waits_for_value(request.config.get("wait_for")) or prior is not None
            return Planned(
                {**state, "id": _id(prior), "result": UNKNOWN if is_shown else None}, private=request.private
            )
        return Planned({**state, "id": _id(prior), "result": prior.get("result")}, private=request.private)

    async def read(self, stored: Stored, call: Call) -> Stored | None:
        """See ManagedResource."""
        state, memory = stored.state, read_memory(stored.private)
        target, wait_for = self._awaited(state), parse_wait(wait_tree(state.get("wait_for")))
        live = await target.look()
        if live is None:
            return None
        met = target.met(wait_for, live)
        if met is not None:
            return _over(state, met)
        is_same = memory.satisfied_for == target.key(wait_for, live)
        if is_same and not memory.is_pending and not waits_for_value(state.get("wait_for")):
            # What the object is meant to be is what it was: how it fares since then is another matter.
            return stored
        return Stored(state, Memory(is_pending=True).to_bytes())

    async def create(self, request: CreateRequest, call: Call) -> Stored:
        """See ManagedResource."""
        return await self._waited({**request.planned, "id": new_id()}, call)

    async def update(self, request: UpdateRequest, call: Call) -> Stored:
        """See ManagedResource."""
        return await self._waited(request.planned, call)

    async def delete(self, prior: Stored, call: Call) -> None:
        """Nothing was made: there is nothing to delete."""

    async def _waited(self, state: Values, call: Call) -> Stored:
        wait_for = parse_wait(wait_tree(state.get("wait_for")))
        try:
            met: Met = await call.unless_stopped(self._awaited(state).until(wait_for))
        except SetpointError as fault:
            raise Refused(told(fault, ("wait_for",))) from fault
        return _over(state, met)

    def _awaited(self, values: Values) -> "Awaited":
        return awaited(self._sites, values.get("object_ref"), values.get("cluster"))


def awaited(sites: Sites, names: Value, cluster: Value) -> "Awaited":
    """The object of these names."""
    from setpoint.objects.waiting import Awaited

    said = names if isinstance(names, Mapping) else {}
    texts = {name: one if isinstance(one, str) else "" for name, one in said.items()}
    where = (texts.get("namespace", ""), texts.get("name", ""))
    return Awaited(sites.site(cluster), texts.get("api_version", ""), texts.get("kind", ""), where)


def _over(state: Values, met: "Met") -> Stored:
    return Stored({**state, "result": dynamic(met.value)}, Memory(satisfied_for=met.key).to_bytes())


def _id(prior: Values | None) -> Value:
    return UNKNOWN if prior is None else prior.get("id")
