"""The kind SQLUser: location, comparison, and the verbs observe, create, update and delete."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import msgspec
from msgspec import Struct

from setpoint.clients.google.client import GoogleClient, sql_operation
from setpoint.core.overlay import Declared
from setpoint.core.plan import DEFAULT_PLAN_OPTIONS, PlannedWrite, PlanOptions
from setpoint.core.values.canonical import sha256_hex
from setpoint.core.values.json_types import JsonObject
from setpoint.engine.kind import (
    Absent,
    CrdDetails,
    Dependency,
    Intent,
    Location,
    Present,
    Reconciliation,
    RemoteOperation,
    ResolvedReferences,
    Unchanged,
    observe_decoded,
)
from setpoint.engine.resource import Resource
from setpoint.errors import RemoteConflict, RemoteRefused
from setpoint.kinds.gcp.shared.cloud_sql import INSTANCE_REF, is_operation_done, pending_operation
from setpoint.kinds.gcp.shared.config_connector import PROJECT_ANNOTATION, definition_for, name_taken_error, resource_id
from setpoint.kinds.gcp.sql_user.declared import declared_user, normalized_policy, user_dependencies
from setpoint.kinds.gcp.sql_user.live import (
    SqlUser,
    SqlUserLocation,
    SqlUserOutputs,
    find_user,
    instance_path_of,
    parse_user_location,
    read_user,
    user_location,
)
from setpoint.kinds.gcp.sql_user.requests import insert_body, update_body, user_query
from setpoint.kinds.gcp.sql_user.spec import GROUP, SqlUserStatus, SqlUserTree

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
    annotations: Sequence[str] = (PROJECT_ANNOTATION,)
    live_type: type[SqlUser] = SqlUser
    tree_type: type[Struct] = SqlUserTree
    definition: CrdDetails = _DEFINITION

    def check(self, resource: Resource) -> None:
        """ManifestInvalid for a spec that no user can have."""
        if all(dependency.field != INSTANCE_REF for dependency in user_dependencies(resource)):
            instance_path_of(resource, ResolvedReferences())
        resource_id(resource)

    def dependencies(self, resource: Resource) -> Sequence[Dependency]:
        """The instance, when it is named as a resource; it has to be ready. And the Secret with the password."""
        return user_dependencies(resource)

    def locate(self, resource: Resource, resolved: ResolvedReferences) -> Location:
        """`projects/p/instances/i/users/u`, and `?host=h` after it for one that does not come from anywhere."""
        return user_location(resource, resolved)

    def declare(self, resource: Resource, resolved: ResolvedReferences) -> JsonObject:
        """What the author says about the user itself."""
        return {"spec": declared_user(resource, resolved)}

    def view(self, live: SqlUser) -> JsonObject:
        """The live user in the same terms."""
        return {"spec": {"type": live.type, "passwordPolicy": normalized_policy(live.passwordPolicy)}}

    def fit_to_live(self, declared: Declared, live: JsonObject) -> Declared:
        """The same for every user."""
        return declared

    def sending(self, intent: Intent) -> PlanOptions:
        """One PUT."""
        return DEFAULT_PLAN_OPTIONS

    def abandons(self, resource: Resource) -> bool:
        """Never by its spec."""
        return False

    async def observe(self, location: Location, known: str | None = None) -> Absent | Present[SqlUser] | Unchanged:
        """A look. Whoever is not in the list is not there, as when the instance itself is gone."""
        place = parse_user_location(location)
        body = await self.google.get(place.users())
        found = None if body is None else find_user(body, place)
        if found is None:
            return Absent()
        mark = sha256_hex(found)
        if mark == known:
            return Unchanged()
        live, aside = read_user(found, place)
        return Present(live, mark, outputs=_outputs(aside))

    async def create(self, intent: Intent, wanted: JsonObject) -> RemoteOperation | None:
        """Makes the user."""
        place = parse_user_location(intent.location)
        try:
            return _operation(await self.google.post(place.users(), insert_body(intent, wanted)), place)
        except RemoteConflict as error:
            raise await name_taken_error(error, observe_decoded(intent.location, self)) from error

    async def update(
        self, intent: Intent, wanted: JsonObject, write: PlannedWrite, before: Present[SqlUser]
    ) -> RemoteOperation | None:
        """Sends the password if it is another one, and the policy as a whole."""
        place, members = parse_user_location(intent.location), update_body(wanted, write)
        if not members:
            # A password was rotated that is not ours to set.
            return None
        call = place.users(await user_query(place, intent.resource, before.live, self.google))
        body = {"instance": place.instance, "name": before.live.name, **members}
        try:
            return _operation(await self.google.put(call, body), place)
        except RemoteConflict as error:
            if place.host and not before.live.host:
                # It is there, and will not be found from a host at the next look either.
                raise RemoteRefused(f"{error}. The user is there without a host: leave spec.host out") from error
            raise

    async def delete(self, location: Location, before: Present[SqlUser], resource: Resource) -> RemoteOperation | None:
        """Removes the user."""
        place = parse_user_location(location)
        call = place.users(await user_query(place, resource, before.live, self.google))
        body = await self.google.delete(call)
        return None if body is None else _operation(body, place)

    async def poll(self, operation: RemoteOperation) -> bool:
        """Whether it is done."""
        return await is_operation_done(operation.name, self.google)


def _outputs(aside: SqlUserOutputs) -> JsonObject:
    details = aside.sqlserverUserDetails
    return {} if details is None else {"sqlServerUserDetails": [msgspec.to_builtins(details)]}


def _operation(body: bytes, place: SqlUserLocation) -> RemoteOperation | None:
    return pending_operation(sql_operation(body), place.project)
