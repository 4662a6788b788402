"""The kind SQLUser: where a user is, how it reads, and the four verbs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import msgspec
from msgspec import Struct

from setpoint.clients.google import GoogleClient
from setpoint.clients.google_operations import sql_operation
from setpoint.core.canonical import body_digest
from setpoint.core.overlay import Declared
from setpoint.core.plan import PLAINLY, Sending, Write
from setpoint.engine.kind import (
    Absent,
    Definition,
    Intent,
    Location,
    Need,
    Operation,
    Present,
    Reconciliation,
    Resolved,
    Unmoved,
    look_at,
)
from setpoint.engine.resource import Resource, Tree
from setpoint.errors import RemoteConflict, RemoteRefused
from setpoint.kinds.cloud_sql import INSTANCE, is_over, to_wait_for
from setpoint.kinds.config_connector import PROJECT, definition_for, resource_id
from setpoint.kinds.gcp.sql_user.bodies import changed_members, insert_body
from setpoint.kinds.gcp.sql_user.declared import declared_user, policy_terms, user_needs
from setpoint.kinds.gcp.sql_user.live import Aside, SqlUser, find_user, read_user
from setpoint.kinds.gcp.sql_user.place import Place, instance_of, location_of, place_of
from setpoint.kinds.gcp.sql_user.spec import GROUP, SqlUserTree
from setpoint.kinds.gcp.sql_user.status import SqlUserStatus
from setpoint.kinds.gcp.sql_user.whom import asked_for
from setpoint.kinds.taken_names import conflict_or_refusal

_DEFINITION: Final = definition_for("SQLUser", SqlUserStatus, "A user of an instance of Cloud SQL.")


@dataclass(slots=True)
class SqlUserKind:
    """The kind."""

    google: GoogleClient
    group: str = GROUP
    version: str = "v1beta1"
    name: str = "SQLUser"
    reconciliation: Reconciliation = Reconciliation.STATELESS
    revision: int = 1
    writes_through_clients: ClassVar = True
    annotations: Sequence[str] = (PROJECT,)
    live_type: type[SqlUser] = SqlUser
    tree_type: type[Struct] = SqlUserTree
    definition: Definition = _DEFINITION

    def check(self, resource: Resource) -> None:
        """ManifestInvalid for a spec that no user can have."""
        if all(need.field != INSTANCE for need in user_needs(resource)):
            instance_of(resource, Resolved())
        resource_id(resource)

    def needs(self, resource: Resource) -> Sequence[Need]:
        """The instance, when it is named as a resource; it has to be ready. And the Secret with the password."""
        return user_needs(resource)

    def locate(self, resource: Resource, resolved: Resolved) -> Location:
        """`projects/p/instances/i/users/u`, and `?host=h` after it for one that does not come from anywhere."""
        return location_of(resource, resolved)

    def declare(self, resource: Resource, resolved: Resolved) -> Tree:
        """What the author says about the user itself."""
        return {"spec": declared_user(resource, resolved)}

    def view(self, live: SqlUser) -> Tree:
        """The live user in the same terms."""
        return {"spec": {"type": live.type, "passwordPolicy": policy_terms(live.passwordPolicy)}}

    def fitted(self, declared: Declared, live: Tree) -> Declared:
        """The same for every user."""
        return declared

    def sending(self, intent: Intent) -> Sending:
        """One PUT."""
        return PLAINLY

    def abandons(self, resource: Resource) -> bool:
        """Never by its spec."""
        return False

    async def observe(self, location: Location, known: str | None = None) -> Absent | Present[SqlUser] | Unmoved:
        """A look. Whoever is not in the list is not there, as when the instance itself is gone."""
        place = place_of(location)
        body = await self.google.get(place.users())
        found = None if body is None else find_user(body, place)
        if found is None:
            return Absent()
        mark = body_digest(found)
        if mark == known:
            return Unmoved()
        live, aside = read_user(found, place)
        return Present(live, mark, outputs=_outputs(aside))

    async def create(self, intent: Intent, wanted: Tree) -> Operation | None:
        """Makes the user."""
        place = place_of(intent.location)
        try:
            return _operation(await self.google.post(place.users(), insert_body(intent, wanted)), place)
        except RemoteConflict as error:
            raise await conflict_or_refusal(error, look_at(intent.location, self)) from error

    async def update(self, intent: Intent, wanted: Tree, write: Write, before: Present[SqlUser]) -> Operation | None:
        """Sends the password if it is another one, and the policy as a whole."""
        place, members = place_of(intent.location), changed_members(wanted, write)
        if not members:
            # A password was rotated that is not ours to set.
            return None
        call = place.users(await asked_for(place, intent.resource, before.live, self.google))
        body = {"instance": place.instance, "name": before.live.name, **members}
        try:
            return _operation(await self.google.put(call, body), place)
        except RemoteConflict as error:
            if place.host and not before.live.host:
                # It is there, and will not be found from a host at the next look either.
                raise RemoteRefused(f"{error}. The user is there without a host: leave spec.host out") from error
            raise

    async def delete(self, location: Location, before: Present[SqlUser], resource: Resource) -> Operation | None:
        """Removes the user."""
        place = place_of(location)
        call = place.users(await asked_for(place, resource, before.live, self.google))
        body = await self.google.delete(call)
        return None if body is None else _operation(body, place)

    async def poll(self, operation: Operation) -> bool:
        """Whether it is done."""
        return await is_over(operation.name, self.google)


def _outputs(aside: Aside) -> Tree:
    details = aside.sqlserverUserDetails
    return {} if details is None else {"sqlServerUserDetails": [msgspec.to_builtins(details)]}


def _operation(body: bytes, place: Place) -> Operation | None:
    return to_wait_for(sql_operation(body), place.project)
