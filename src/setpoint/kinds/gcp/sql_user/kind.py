"""The kind SQLUser: location, comparison, and the verbs observe, create, update and delete."""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from typing import ClassVar, Final

import msgspec
from msgspec import Struct

from setpoint.clients.google.client import GoogleClient
from setpoint.clients.google.operations import sql_operation
from setpoint.core.overlay import EffectiveState
from setpoint.core.plan import DEFAULT_PLAN_OPTIONS, PlannedWrite, PlanOptions, ResolvedProject
from setpoint.core.schema.policy import FieldPolicy
from setpoint.core.unstructured import GroupKind
from setpoint.core.values.canonical import sha256_hex
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import Json, JsonObject, Missing
from setpoint.core.values.problems import Problems
from setpoint.engine.capabilities import ImportPlace, ListScope, LiveIdentity
from setpoint.engine.contention.operation_queue import OperationScope
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
from setpoint.engine.tenancy.tenants import Tenant
from setpoint.errors import RemoteConflict, RemoteRefused
from setpoint.kind.typed_spec import decode_spec
from setpoint.kinds.gcp.shared.cloud_sql import (
    INSTANCE_REF,
    check_parent_instance,
    instance_scope,
    instances_at,
    is_operation_done,
    pending_operation,
)
from setpoint.kinds.gcp.shared.config_connector import (
    ANY_PROJECT,
    PROJECT_ANNOTATION,
    TenantProjects,
    definition_for,
    name_taken_error,
    resource_id,
)
from setpoint.kinds.gcp.sql_user.declared import declared_user, effective_user, normalized_policy, user_dependencies
from setpoint.kinds.gcp.sql_user.live import (
    SqlUser,
    SqlUserLocation,
    SqlUserOutputs,
    find_user,
    instance_of,
    listed_users,
    parse_user_location,
    read_user,
    user_location,
)
from setpoint.kinds.gcp.sql_user.requests import insert_body, update_body, user_query
from setpoint.kinds.gcp.sql_user.spec import GROUP, SqlUserSpec, SqlUserStatus, SqlUserTree

_DEFINITION: Final = definition_for("SQLUser", SqlUserStatus, "A user of an instance of Cloud SQL.")


@dataclass(slots=True)
class SqlUserKind:
    """The kind SQLUser."""

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
    projects: TenantProjects = ANY_PROJECT

    def for_tenant(self, tenant: Tenant) -> "SqlUserKind":
        """See SupportsTenants."""
        projects = TenantProjects(tenant)
        return replace(self, google=self.google.acting_for(projects.caller), projects=projects)

    def check(self, resource: Resource) -> None:
        """ManifestInvalid for a spec that is invalid whatever the live state."""
        problems = Problems()
        dependencies = problems.collect(user_dependencies, resource)
        if dependencies is not None and all(dependency.field != INSTANCE_REF for dependency in dependencies):
            instance = decode_spec(resource, SqlUserSpec).instanceRef
            problems.collect(check_parent_instance, instance, resource, self.projects)
        problems.collect(resource_id, resource)
        problems.require_none()

    def dependencies(self, resource: Resource) -> Sequence[Dependency]:
        """The instance, if it is referred to as a resource: it has to be ready. And the Secret with the password."""
        return user_dependencies(resource)

    def locate(self, resource: Resource, resolved: ResolvedReferences) -> Location:
        """`projects/p/instances/i/users/u`, followed by `?host=h` unless any host is meant."""
        return user_location(resource, resolved, self.projects)

    def project_of(self, resource: Resource, resolved: ResolvedReferences) -> ResolvedProject:
        """See SupportsProjects: that of the instance."""
        return instance_of(resource, resolved, self.projects).project

    def declare(self, resource: Resource, resolved: ResolvedReferences) -> JsonObject:
        """The declared user."""
        return {"spec": declared_user(resource, resolved)}

    def view(self, live: SqlUser) -> JsonObject:
        """The live user in the terms of the spec."""
        return {"spec": {"type": live.type, "passwordPolicy": normalized_policy(live.passwordPolicy)}}

    def effective(
        self, spec: SqlUserTree, live: SqlUserTree | Missing, policy: FieldPolicy
    ) -> EffectiveState[SqlUserTree]:
        """See `effective_user`."""
        return effective_user(spec, live, policy)

    def sending(self, intent: Intent) -> PlanOptions:
        """A single PUT."""
        return DEFAULT_PLAN_OPTIONS

    def abandons(self, resource: Resource) -> bool:
        """Never: the spec has no deletion policy."""
        return False

    async def observe(self, location: Location, known: str | None = None) -> Absent | Present[SqlUser] | Unchanged:
        """Finds the user in the list; absent if it is not listed, or if the instance does not exist."""
        parsed = parse_user_location(location)
        body = await self.google.get(parsed.users())
        found = None if body is None else find_user(body, parsed)
        if found is None:
            return Absent()
        digest = sha256_hex(found)
        if digest == known:
            return Unchanged()
        live, outputs = read_user(found, parsed)
        return Present(live, digest, outputs=_status(outputs))

    async def create(self, intent: Intent, wanted: JsonObject) -> RemoteOperation | None:
        """Creates the user."""
        parsed = parse_user_location(intent.location)
        try:
            return _operation(await self.google.post(parsed.users(), insert_body(intent, wanted)), parsed)
        except RemoteConflict as error:
            raise await name_taken_error(error, observe_decoded(intent.location, self)) from error

    async def update(
        self, intent: Intent, wanted: JsonObject, write: PlannedWrite, before: Present[SqlUser]
    ) -> RemoteOperation | None:
        """Sends the password if it changed, and the policy as a whole."""
        parsed, members = parse_user_location(intent.location), update_body(wanted, write)
        if not members:
            # Only an unmanaged password was rotated.
            return None
        call = parsed.users(await user_query(parsed, intent.resource, before.live, self.google))
        body = {"instance": parsed.instance, "name": before.live.name, **members}
        try:
            return _operation(await self.google.put(call, body), parsed)
        except RemoteConflict as error:
            if parsed.host and not before.live.host:
                # The user exists without a host, and the next observation would not find it by host either.
                raise RemoteRefused(f"{error}. The user is there without a host: leave spec.host out") from error
            raise

    async def delete(self, location: Location, before: Present[SqlUser], resource: Resource) -> RemoteOperation | None:
        """Deletes the user."""
        parsed = parse_user_location(location)
        call = parsed.users(await user_query(parsed, resource, before.live, self.google))
        body = await self.google.delete(call)
        return None if body is None else _operation(body, parsed)

    def operation_scope(self, location: Location) -> OperationScope:
        """The instance: Cloud SQL executes one operation at a time on it."""
        return instance_scope(location)

    async def poll(self, operation: RemoteOperation) -> bool:
        """Whether the operation is done."""
        return await is_operation_done(operation.name, self.google)

    def parent_kinds(self) -> Sequence[GroupKind]:
        """See SupportsImport."""
        return ((GROUP, "SQLInstance"),)

    def import_scopes(self, place: ImportPlace) -> Sequence[ListScope]:
        """Each instance of the project that is known."""
        return instances_at(place)

    def live_objects(self, list_scope: ListScope) -> AsyncGenerator[tuple[Location, Present[SqlUser]], None]:
        """The users of an instance."""
        return _users(self, list_scope)

    def identity_at(self, location: Location) -> LiveIdentity:
        """The inverse of `locate`."""
        found = parse_user_location(location)
        spec: dict[str, Json] = {"instanceRef": {"external": f"projects/{found.project}/instances/{found.instance}"}}
        spec |= {"host": found.host} if found.host else {}
        return LiveIdentity(found.name, spec, {PROJECT_ANNOTATION: found.project})


async def _users(kind: SqlUserKind, list_scope: ListScope) -> AsyncGenerator[tuple[Location, Present[SqlUser]], None]:
    """The users of an instance, each as an observation shows it."""
    instance = parse_user_location(Location(f"{list_scope}/users/-"))
    body = await kind.google.get(instance.users())
    for location, found in () if body is None else listed_users(body, instance):
        live, outputs = read_user(found, parse_user_location(location))
        yield location, Present(live, outputs=_status(outputs))


def _status(outputs: SqlUserOutputs) -> JsonObject:
    details = outputs.sqlserverUserDetails
    return {} if details is None else {"sqlServerUserDetails": [msgspec.to_builtins(details)]}


def _operation(body: bytes, parsed: SqlUserLocation) -> RemoteOperation | None:
    return pending_operation(sql_operation(body), parsed.project)
