"""Identities of services in a project: made by a call that may be repeated, never read, never deleted.

The location has the e-mail address, once it is known.
"""

from dataclasses import field
from typing import Final

from setpoint.clients.response_bodies import decode_object
from setpoint.core.values.deferred_dataclass import dataclass
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
from setpoint.kinds.gcp.generic.creating.creations import creation
from setpoint.kinds.gcp.generic.kind import GoogleKind
from setpoint.kinds.gcp.generic.operations import finished_operation, started_operation
from setpoint.kinds.gcp.generic.requests import api_of
from setpoint.kinds.gcp.generic.spec_types import GoogleObject
from setpoint.kinds.gcp.generic.variants.made_ids import made_object

_IDENTITIES: Final = "/identities/"
# Between the name of an operation and the location of the service.
_OF: Final = "~"


@dataclass(slots=True)
class IdentityKind(GoogleKind):
    """An identity of a service."""

    # By the location of the service: the e-mail address in the answer of an operation that made its identity.
    made: dict[Location, str] = field(default_factory=dict)

    def locate(self, resource: Resource, resolved: ResolvedReferences) -> Location:
        """`projects/P/services/S`, and once it is known `projects/P/services/S/identities/EMAIL`."""
        service, recorded = GoogleKind.locate(self, resource, resolved), location_in(resource.status)
        return recorded if recorded is not None and recorded.startswith(f"{service}{_IDENTITIES}") else service

    def list_scope_of(self, location: Location) -> ListScope | None:
        """There is no list of identities."""
        return None

    async def observe(self, location: Location, known: str | None = None) -> Absent | Present[GoogleObject] | Unchanged:
        """Nothing is asked: what is known of an identity is in its location, or was in the answer of an operation."""
        email = location.partition(_IDENTITIES)[2]
        if email:
            return self._at(location, email)
        made = self.made.pop(location, "")
        return self._at(Location(f"{location}{_IDENTITIES}{made}"), made) if made else Absent()

    def _at(self, location: Location, email: str) -> Present[GoogleObject]:
        shown: JsonObject = {"email": email, "externalRef": location, "selfLink": location}
        return Present(GoogleObject({}), outputs=shown, whole={"email": email}, location=location)

    async def create(self, intent: Intent, wanted: JsonObject) -> RemoteOperation | Written[GoogleObject] | None:
        """Has the service make its identity, or say which one it has."""
        request = creation(self.row, intent.location, wanted, intent.resource.spec)
        answer = await self.send(request)
        operation = started_operation(self.row, "create", answer, intent.location)
        email = str(made_object(decode_object(answer, intent.location)).get("email") or "")
        if operation is not None:
            return RemoteOperation(f"{operation.name}{_OF}{intent.location}")
        if not email:
            return None
        return Written(self._at(Location(f"{intent.location}{_IDENTITIES}{email}"), email))

    async def poll(self, operation: RemoteOperation) -> bool:
        """Whether the operation is done; the e-mail address of the identity is known then."""
        name, _, service = operation.name.partition(_OF)
        answer = await finished_operation(api_of(self.row, name), RemoteOperation(name), self.google)
        email = "" if answer is None else str(made_object(answer).get("email") or "")
        if email and service:
            self.made[Location(service)] = email
        return answer is not None
