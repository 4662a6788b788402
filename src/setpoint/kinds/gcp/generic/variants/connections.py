"""Private connections of a network to a service: without a name, found in a list by the network.

The service knows a network by the number of its project. A connection ends when its peering is removed from the
network.
"""

import re
from collections.abc import Mapping
from typing import Final

import msgspec

from setpoint.clients.google.calls import GoogleApi, GoogleCall
from setpoint.clients.response_bodies import decode_object
from setpoint.core.plan import PlannedWrite
from setpoint.core.values.json_types import JsonObject
from setpoint.engine.capabilities import ListScope
from setpoint.engine.kind import Intent, Location, Present, RemoteOperation, ResolvedReferences, match_location
from setpoint.engine.resource import Resource
from setpoint.errors import RemoteRefused
from setpoint.kinds.gcp.generic.creating.creations import creation_members
from setpoint.kinds.gcp.generic.equivalence import relative_name
from setpoint.kinds.gcp.generic.kind import GoogleKind
from setpoint.kinds.gcp.generic.members import to_members
from setpoint.kinds.gcp.generic.operations import is_done_at, operation_in, started_operation
from setpoint.kinds.gcp.generic.requests import api_of
from setpoint.kinds.gcp.generic.spec_types import GoogleObject

_COMPUTE: Final = GoogleApi("compute.googleapis.com", "/compute/v1")
_PROJECTS: Final = GoogleApi("cloudresourcemanager.googleapis.com", "/v1")
_LOCATION: Final = re.compile(r"services/(?P<service>[^/]+)/connections/(?P<network>projects/(?P<project>[^/]+)/.+)")
_RANGES: Final = "reservedPeeringRanges"


class ConnectionKind(GoogleKind):
    """A connection; its location has the name of the network in the place of an id."""

    def locate(self, resource: Resource, resolved: ResolvedReferences) -> Location:
        """`services/SERVICE/connections/NETWORK`, with the relative name of the network."""
        spec = self.declare(resource, resolved)["spec"]
        assert isinstance(spec, Mapping)
        network = relative_name(str(to_members(spec, self.row.fields).get("network", "")))
        return Location(f"services/{resource.spec.get('service')}/connections/{network}")

    def abandons(self, resource: Resource) -> bool:
        """No method deletes a connection; it ends with its peering."""
        return False

    def list_scope_of(self, location: Location) -> ListScope | None:
        """A list of the service is one of a single network."""
        return None

    async def read(self, location: Location) -> bytes | None:
        """The connection of the network in the list of the service; None when there is none."""
        at = match_location(_LOCATION, location)
        network = await self._network(location)
        body = await self.google.get(self._call(at["service"], {"network": network}))
        found = decode_object(body, location).get("connections")
        ours = [one for one in found if isinstance(one, Mapping)] if isinstance(found, list) else []
        return msgspec.json.encode(ours[0]) if ours else None

    async def create(self, intent: Intent, wanted: JsonObject) -> RemoteOperation | None:
        """Connects the network. A connection that another writer made is changed, never refused."""
        return await self._write(intent.location, wanted, "create")

    async def update(
        self, intent: Intent, wanted: JsonObject, write: PlannedWrite, before: Present[GoogleObject]
    ) -> RemoteOperation | None:
        """Sets the ranges."""
        return await self._write(intent.location, wanted, "update")

    async def _write(self, location: Location, wanted: JsonObject, verb: str) -> RemoteOperation | None:
        at = match_location(_LOCATION, location)
        body = {**creation_members(self.row, wanted, location), "network": await self._network(location)}
        call = self._call(at["service"], {"force": "true", "updateMask": _RANGES}, "-")
        return started_operation(self.row, verb, await self.google.patch(call, body), location)

    async def delete(
        self, location: Location, before: Present[GoogleObject], resource: Resource
    ) -> RemoteOperation | None:
        """Removes the peering from the network."""
        network, live = match_location(_LOCATION, location)["network"], before.whole
        assert isinstance(live, Mapping)
        call = GoogleCall(_COMPUTE, (*network.split("/"), "removePeering"))
        answer = await self.google.post(call, {"name": str(live.get("peering", ""))})
        return operation_in("compute", answer, location)

    async def poll(self, operation: RemoteOperation) -> bool:
        """Whether the operation of the service, or of the network, is done."""
        api = _COMPUTE if operation.name.startswith("projects/") else api_of(self.row, operation.name)
        return await is_done_at(api, operation, self.google)

    def _call(self, service: str, query: Mapping[str, str], *rest: str) -> GoogleCall:
        return GoogleCall(api_of(self.row, service), ("services", service, "connections", *rest), query)

    async def _network(self, location: Location) -> str:
        """The name of the network, with the number of its project."""
        at = match_location(_LOCATION, location)
        if at["project"].isdecimal():
            return at["network"]
        body = await self.google.get(GoogleCall(_PROJECTS, ("projects", at["project"])))
        number = decode_object(body, location).get("projectNumber")
        if not number:
            raise RemoteRefused(f"the project {at['project']} cannot be read, and a network is named by its number")
        return f"projects/{number}/{at['network'].split('/', 2)[2]}"
