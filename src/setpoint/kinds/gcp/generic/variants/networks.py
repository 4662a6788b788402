"""Networks: a field has the default routes deleted that the service makes with one, once, after the creation."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Final

from setpoint.clients.google.calls import GoogleCall
from setpoint.clients.response_bodies import decode_object
from setpoint.core.plan import PlannedWrite, PlanOptions
from setpoint.core.values.json_types import JsonObject
from setpoint.engine.kind import Intent, Location, Present, RemoteOperation
from setpoint.kinds.gcp.generic.equivalence import same_link
from setpoint.kinds.gcp.generic.kind import GoogleKind
from setpoint.kinds.gcp.generic.lists import pages_at
from setpoint.kinds.gcp.generic.operations import started_operation
from setpoint.kinds.gcp.generic.requests import object_call
from setpoint.kinds.gcp.generic.spec_types import GoogleObject

_WRITE: Final = "default routes"
_ANYWHERE: Final = "0.0.0.0/0"


class NetworkKind(GoogleKind):
    """A network."""

    def sending(self, intent: Intent) -> PlanOptions:
        """The deletion of the default routes follows the creation."""
        found = super().sending(intent)
        is_wanted = intent.resource.spec.get("deleteDefaultRoutesOnCreate") is True
        return replace(found, follow_up=_WRITE) if is_wanted else found

    async def update(
        self, intent: Intent, wanted: JsonObject, write: PlannedWrite, before: Present[GoogleObject]
    ) -> RemoteOperation | None:
        """Sends one write of the plan. After the operation of a route comes the next, until none is left."""
        if write.name != _WRITE:
            return await super().update(intent, wanted, write, before)
        async for route in self._default_routes(intent.location):
            answer = await self.google.delete(route)
            operation = None if answer is None else started_operation(self.row, "delete", answer, intent.location)
            if operation is not None:
                return operation
        return None

    async def _default_routes(self, network: Location) -> AsyncIterator[GoogleCall]:
        """The calls of the routes of the network that lead anywhere."""
        own = object_call(self.row, network)
        routes = replace(own, parts=(*own.parts[:-2], "routes"))
        async for page in pages_at(routes, "items", self.google, limit="maxResults"):
            for item in page:
                route = decode_object(item, network)
                is_own = same_link(str(route.get("network", "")), network)
                if is_own and route.get("destRange") == _ANYWHERE:
                    yield replace(routes, parts=(*routes.parts, str(route["name"])))
