"""Objects that a plan leaves as they are: read once, compared without the engine, and not put to a dry run again."""

from collections.abc import Mapping
from typing import Final

from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import Json, Missing
from setpoint.errors import RemoteRefused
from setpoint.terraform.connections.clusters import ClusterConnections, ClusterLocation
from setpoint.terraform.cty.values import AttributeValues, CtyValue, same_value
from setpoint.terraform.framework.provider import PlanRequest
from setpoint.terraform.framework.schema import Presence, attribute_type
from setpoint.terraform.resources.object_config import waits_for_value
from setpoint.terraform.resources.object_state import PrivateState, read_private_state
from setpoint.terraform.resources.schemas import OBJECT_SCHEMA

# What an author may set: if none of it has changed, nothing else is declared than what was applied.
_CONFIGURED: Final = {
    name: attribute_type(one) for name, one in OBJECT_SCHEMA.attributes.items() if one.presence is not Presence.COMPUTED
}
_REF: Final = ("api_version", "kind", "namespace", "name")


@dataclass(frozen=True, slots=True)
class LocatedObject:
    """A live object, None for one that does not exist, and its location."""

    live: Json
    location: ClusterLocation


class UnchangedObjects:
    """The objects that this process has read, and found as their last apply left them."""

    def __init__(self, clusters: ClusterConnections) -> None:
        self._clusters = clusters
        self._ids: set[str] = set()

    async def read(self, state: AttributeValues, private: PrivateState) -> LocatedObject | None:
        """The object of a state, by one request; None where the engine has to look for it."""
        self._ids.discard(str(state["id"]))
        settled, names = private.settled_object, _names(state.get("object_ref"))
        if settled is None or names is None:
            return None
        cluster = state.get("cluster")
        try:
            live = await settled.read(*self._clusters.client(cluster), names)
        except RemoteRefused:
            # It may be had with other credentials.
            return None
        if isinstance(live, Missing):
            return None
        return LocatedObject(live, ClusterLocation(self._clusters.location_key(cluster), settled.location))

    def add(self, state: AttributeValues, private: PrivateState, live: Json) -> None:
        """The object was read, with this state: it counts if it is as its last apply left it."""
        settled, fields = private.settled_object, state.get("projection")
        texts = {name: str(one) for name, one in fields.items()} if isinstance(fields, Mapping) else {}
        if settled is not None and settled.is_as_applied(live, texts):
            self._ids.add(str(state["id"]))

    def is_plan_empty(self, request: PlanRequest) -> bool:
        """Whether the object was found unchanged, and the configuration is the one that was applied."""
        prior, config = request.prior, request.config
        if prior is None or str(prior["id"]) not in self._ids:
            return False
        if not all(same_value(prior.get(name), config.get(name), type_) for name, type_ in _CONFIGURED.items()):
            return False
        is_waited_for = waits_for_value(config.get("wait_for"))
        if is_waited_for != (prior.get("status") is not None) or not self._clusters.is_cluster_known(
            config.get("cluster")
        ):
            return False
        settled = read_private_state(request.private).settled_object
        # One that was read for an earlier command, or written since, is read again.
        return settled is not None and self._clusters.client(config.get("cluster"))[1].of(settled.location) is not None


def _names(ref: CtyValue) -> tuple[str, ...] | None:
    """The apiVersion, kind, namespace and name in an attribute `object_ref`; None when they are not known."""
    found = [ref.get(name) for name in _REF] if isinstance(ref, Mapping) else []
    texts = tuple("" if one is None else one for one in found if one is None or isinstance(one, str))
    return texts if len(texts) == len(_REF) else None
