"""Identities of services in a project: made by a call that may be repeated, never read, never deleted.

The location has the e-mail address, once it is known.
"""

from typing import Any, Final

import msgspec

from setpoint.clients.http import decode_response
from setpoint.core.values.json_types import JsonObject
from setpoint.engine.capabilities import ListScope
from setpoint.engine.kind import (
    Absent,
    Intent,
    Location,
    Present,
    RemoteOperation,
    ResolvedReferences,
    Unchanged,
    Written,
)
from setpoint.engine.resource import Resource
from setpoint.engine.state import location_in
from setpoint.kinds.gcp.generic.kind import GoogleKind
from setpoint.kinds.gcp.generic.operations import started_operation
from setpoint.kinds.gcp.generic.requests import creation
from setpoint.kinds.gcp.generic.spec_types import GoogleObject
from setpoint.kinds.gcp.generic.variants.made_ids import made_object

_decoder: Final = msgspec.json.Decoder(dict[str, Any])
_IDENTITIES: Final = "/identities/"


class IdentityKind(GoogleKind):
    """An identity of a service."""

    def locate(self, resource: Resource, resolved: ResolvedReferences) -> Location:
        """`projects/P/services/S`, and once it is known `projects/P/services/S/identities/EMAIL`."""
        service, recorded = super().locate(resource, resolved), location_in(resource.status)
        return recorded if recorded is not None and recorded.startswith(f"{service}{_IDENTITIES}") else service

    def list_scope_of(self, location: Location) -> ListScope | None:
        """There is no list of identities."""
        return None

    async def observe(self, location: Location, known: str | None = None) -> Absent | Present[GoogleObject] | Unchanged:
        """Nothing is asked: what is known of an identity is in its location."""
        email = location.partition(_IDENTITIES)[2]
        return self._at(location, email) if email else Absent()

    def _at(self, location: Location, email: str) -> Present[GoogleObject]:
        shown: JsonObject = {"email": email, "externalRef": location, "selfLink": location}
        return Present(GoogleObject({}), outputs=shown, whole={"email": email}, location=location)

    async def create(self, intent: Intent, wanted: JsonObject) -> RemoteOperation | Written[GoogleObject] | None:
        """Has the service make its identity, or say which one it has."""
        request = creation(self.row, intent.location, wanted, intent.resource.spec)
        answer = await self.send(request)
        operation = started_operation(self.row, "create", answer, intent.location)
        decoded: dict[str, Any] = decode_response(_decoder, answer, intent.location)
        email = str(made_object(decoded).get("email") or "")
        if operation is not None or not email:
            return operation
        return Written(self._at(Location(f"{intent.location}{_IDENTITIES}{email}"), email))
