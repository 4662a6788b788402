"""Clusters of GKE: an annotation has the node pool removed that the service makes with one.

It is removed once, after the creation by this resource: a pool of that name that comes later is left alone.
"""

from dataclasses import replace
from typing import Final

from setpoint.clients.google.calls import GoogleCall
from setpoint.core.plan import PlannedWrite, PlanOptions
from setpoint.core.values.json_types import JsonObject
from setpoint.engine.kind import Intent, Present, RemoteOperation
from setpoint.engine.resource import Resource
from setpoint.kinds.gcp.generic.kind import GoogleKind
from setpoint.kinds.gcp.generic.operations import started_operation
from setpoint.kinds.gcp.generic.requests import object_call
from setpoint.kinds.gcp.generic.spec_types import GoogleObject

REMOVE_DEFAULT_NODE_POOL: Final = "cnrm.cloud.google.com/remove-default-node-pool"
_WRITE: Final = "default node pool"
_POOL: Final = ("nodePools", "default-pool")


class ClusterKind(GoogleKind):
    """A cluster of GKE."""

    own_annotations = (REMOVE_DEFAULT_NODE_POOL,)

    def sending(self, intent: Intent) -> PlanOptions:
        """The removal of the default node pool follows the creation."""
        found = super().sending(intent)
        return replace(found, follow_up=_WRITE) if _is_removed(intent.resource) else found

    async def update(
        self, intent: Intent, wanted: JsonObject, write: PlannedWrite, before: Present[GoogleObject]
    ) -> RemoteOperation | None:
        """Sends one write of the plan. A node pool that is gone already is no error."""
        if write.name != _WRITE:
            return await super().update(intent, wanted, write, before)
        cluster = object_call(self.row, intent.location)
        answer = await self.google.delete(GoogleCall(cluster.service, (*cluster.parts, *_POOL)))
        return None if answer is None else started_operation(self.row, "delete", answer, intent.location)


def _is_removed(resource: Resource) -> bool:
    """Whether the annotation says so. A cluster of Autopilot has no such pool."""
    is_wanted = resource.annotations.get(REMOVE_DEFAULT_NODE_POOL) == "true"
    return is_wanted and resource.spec.get("enableAutopilot") is not True
