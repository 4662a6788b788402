"""The kind SQLInstance: location, comparison, and the verbs observe, create, update and delete."""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from typing import ClassVar, Final

from msgspec import Struct

from setpoint.clients.google.client import GoogleClient, item_name, list_pages
from setpoint.clients.google.operations import SqlOperation, sql_operation
from setpoint.core.overlay import Declared, EffectiveState
from setpoint.core.plan import PlannedWrite, PlanOptions, ResolvedProject, WriteStage
from setpoint.core.schema.policy import FieldPolicy
from setpoint.core.unstructured import GroupKind
from setpoint.core.values.canonical import sha256_hex
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import Json, JsonObject, Missing
from setpoint.core.values.messages import FieldTerm, Message
from setpoint.core.values.paths import Path, get_at
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
from setpoint.engine.management import MANAGED_LABEL, MANAGED_LABELS
from setpoint.engine.resource import Resource
from setpoint.engine.tenancy.tenants import Tenant
from setpoint.errors import ManifestInvalid, RemoteConflict, RemoteRefused
from setpoint.kinds.gcp.shared.cloud_sql import instance_scope, is_operation_done, pending_operation
from setpoint.kinds.gcp.shared.config_connector import (
    ANY_PROJECT,
    INSTANCE_NAME,
    PROJECT_ANNOTATION,
    TenantProjects,
    definition_for,
    google_labels,
    name_taken_error,
    resource_id,
)
from setpoint.kinds.gcp.sql_instance.declared import (
    GROUP,
    check_instance,
    clone_source,
    declared_instance,
    instance_dependencies,
)
from setpoint.kinds.gcp.sql_instance.effective import (
    effective_instance,
    effective_instance_tree,
    fit_instance_to_live,
    missing_edition,
    require_edition_for_creation,
)
from setpoint.kinds.gcp.sql_instance.live import SqlInstance, read_instance
from setpoint.kinds.gcp.sql_instance.normalization import instance_view
from setpoint.kinds.gcp.sql_instance.requests import (
    clone_body,
    clone_call,
    insert_body,
    instance_call,
    instances_call,
    patch_body,
    project_and_instance,
    project_in,
    put_body,
)
from setpoint.kinds.gcp.sql_instance.root_user import remove_root_user, set_root_password
from setpoint.kinds.gcp.sql_instance.spec import SqlInstanceTree
from setpoint.kinds.gcp.sql_instance.status import SqlInstanceStatus, instance_outputs

_VERSION: Final = Path(("spec", "databaseVersion"))
_PASSWORD: Final = Path(("spec", "rootPassword"))
_EDITION: Final = Path(("spec", "settings", "edition"))
_TIER: Final = Path(("spec", "settings", "tier"))
# The HTTP status of a request with a value that the service does not accept.
_INVALID: Final = 400
_MAINTENANCE: Final = Path(("spec", "maintenanceVersion"))
# The service takes each of these in a request of its own. The password is set on a user, not on the instance.
_SENDING: Final = PlanOptions(
    (
        WriteStage("root password", (_PASSWORD,)),
        WriteStage("database version", (_VERSION,)),
        WriteStage("edition", (_EDITION,)),
        WriteStage("maintenance version", (_MAINTENANCE,)),
    ),
    after_creation=(_MAINTENANCE,),
)
_WITH_FIRST_USERS: Final = replace(_SENDING, follow_up="first users")
_DEFINITION: Final = definition_for(
    "SQLInstance", SqlInstanceStatus, "An instance of Cloud SQL: a database server, a replica or a clone."
)


@dataclass(slots=True)
class SqlInstanceKind:
    """The kind SQLInstance."""

    google: GoogleClient
    group: str = GROUP
    version: str = "v1beta1"
    name: str = "SQLInstance"
    reconciliation: Reconciliation = Reconciliation.STATEFUL
    revision: int = 1
    writes_through_clients: ClassVar = True
    annotations: Sequence[str] = (PROJECT_ANNOTATION,)
    live_type: type[SqlInstance] = SqlInstance
    tree_type: type[Struct] = SqlInstanceTree
    definition: CrdDetails = _DEFINITION
    projects: TenantProjects = ANY_PROJECT

    def for_tenant(self, tenant: Tenant) -> "SqlInstanceKind":
        """See SupportsTenants."""
        projects = TenantProjects(tenant)
        return replace(self, google=self.google.acting_for(projects.caller), projects=projects)

    def check(self, resource: Resource) -> None:
        """ManifestInvalid for a spec that is invalid whatever the live state."""
        check_instance(resource)

    def dependencies(self, resource: Resource) -> Sequence[Dependency]:
        """The referenced resources, and the secrets."""
        return instance_dependencies(resource)

    def locate(self, resource: Resource, resolved: ResolvedReferences) -> Location:
        """`projects/p/instances/i`."""
        return Location(f"projects/{self.projects.of(resource)}/instances/{resource_id(resource, INSTANCE_NAME)}")

    def project_of(self, resource: Resource, resolved: ResolvedReferences) -> ResolvedProject:
        """See SupportsProjects."""
        return self.projects.resolve(resource)

    def declare(self, resource: Resource, resolved: ResolvedReferences) -> JsonObject:
        """The spec, and the labels to send."""
        return {
            "spec": declared_instance(resource, resolved, self.projects),
            "metadata": {"labels": google_labels(resource)},
        }

    def view(self, live: SqlInstance) -> JsonObject:
        """The live instance in the terms of the spec; an error for one that is being created, or that failed."""
        return instance_view(live)

    def effective(
        self, spec: SqlInstanceTree, live: SqlInstanceTree | Missing, policy: FieldPolicy
    ) -> EffectiveState[SqlInstanceTree]:
        """See `effective_instance`."""
        return effective_instance(spec, live, policy)

    def effective_tree(self, declared: Declared, live: JsonObject | Missing) -> EffectiveState[SqlInstanceTree]:
        """See `effective_instance`."""
        return effective_instance_tree(declared, live)

    def check_creation(self, intent: Intent, wanted: JsonObject) -> None:
        """See SupportsCreationCheck. A clone has the edition of its source."""
        is_named = isinstance(get_at(intent.declared.tree, _EDITION), str)
        if not is_named and intent.resource.spec.get("cloneSource") is None:
            require_edition_for_creation(wanted)

    def abandons(self, resource: Resource) -> bool:
        """Never: the spec has no deletion policy."""
        return False

    def sending(self, intent: Intent) -> PlanOptions:
        """The changes that need requests of their own, in their order; then one request for everything else."""
        return _WITH_FIRST_USERS if _comes_with_root(intent) else _SENDING

    async def observe(self, location: Location, known: str | None = None) -> Absent | Present[SqlInstance] | Unchanged:
        """Reads the instance."""
        body = await self.google.get(instance_call(location))
        if body is None:
            return Absent()
        digest = sha256_hex(body)
        if digest == known:
            return Unchanged()
        return _present(body, location, digest)

    async def create(self, intent: Intent, wanted: JsonObject) -> RemoteOperation | None:
        """Creates the instance: empty, as a replica, or as a clone."""
        project, _ = project_and_instance(intent.location)
        try:
            if intent.resource.spec.get("cloneSource") is not None:
                source = clone_source(intent.resource, intent.resolved, self.projects)
                answer = await self.google.post(clone_call(project, source), clone_body(intent, wanted))
            else:
                answer = await self.google.post(instances_call(project), insert_body(intent, wanted))
        except RemoteConflict as error:
            raise await name_taken_error(error, observe_decoded(intent.location, self)) from error
        except RemoteRefused as error:
            raise _with_missing_edition(error, intent, wanted) from error
        return pending_operation(sql_operation(answer), project)

    async def update(
        self, intent: Intent, wanted: JsonObject, write: PlannedWrite, before: Present[SqlInstance]
    ) -> RemoteOperation | None:
        """Sends one write of the plan."""
        project, _ = project_and_instance(intent.location)
        return pending_operation(await self._send(intent, wanted, write, before), project)

    async def _send(
        self, intent: Intent, wanted: JsonObject, write: PlannedWrite, before: Present[SqlInstance]
    ) -> SqlOperation | None:
        call = instance_call(intent.location)
        match write.name:
            case "first users":
                return await self._remove_root(intent.location, before.live)
            case "root password":
                return await self._set_password(intent, wanted, before.live)
            case "database version":
                body: Json = {"databaseVersion": _at(wanted, _VERSION)}
            case "edition":
                body = {"settings": _edition(wanted, before.live)}
            case "maintenance version":
                body = {"maintenanceVersion": _at(wanted, _MAINTENANCE)}
            case _:
                declared = fit_instance_to_live(intent.declared, instance_view(before.live))
                if not before.live.others:
                    return sql_operation(await self.google.put(call, put_body(intent, declared, wanted, before)))
                # A full update would reset settings that the spec does not model.
                body = patch_body(intent, declared, wanted, before)
        return sql_operation(await self.google.patch(call, body))

    async def _remove_root(self, location: Location, live: SqlInstance) -> SqlOperation | None:
        is_mysql = (live.databaseVersion or "").startswith("MYSQL")
        # Without the label, another writer created the instance first.
        is_created_here = MANAGED_LABEL in (live.settings.userLabels or {})
        return await remove_root_user(location, self.google) if is_mysql and is_created_here else None

    async def _set_password(self, intent: Intent, wanted: JsonObject, live: SqlInstance) -> SqlOperation | None:
        password = get_at(wanted, _PASSWORD / "value")
        if live.masterInstanceName or not isinstance(password, str):
            # A replica has the users of its primary; and the password may be unmanaged.
            return None
        return await set_root_password(intent.location, live.databaseVersion or "", password, self.google)

    async def delete(
        self, location: Location, before: Present[SqlInstance], resource: Resource
    ) -> RemoteOperation | None:
        """Deletes the instance."""
        body = await self.google.delete(instance_call(location))
        project, _ = project_and_instance(location)
        return None if body is None else pending_operation(sql_operation(body), project)

    def operation_scope(self, location: Location) -> OperationScope:
        """The instance: Cloud SQL executes one operation at a time on it."""
        return instance_scope(location)

    async def poll(self, operation: RemoteOperation) -> bool:
        """Whether the operation is done. An expired operation is: the next observation shows its result."""
        return await is_operation_done(operation.name, self.google)

    def list_scope_of(self, location: Location) -> ListScope | None:
        """The project."""
        project = project_in(location)
        return None if project is None else ListScope(project)

    def pages(self, list_scope: ListScope) -> AsyncGenerator[Sequence[bytes], None]:
        """The instances of the project."""
        return list_pages(self.google, instances_call(list_scope), f"the instances of project {list_scope}")

    def location_of(self, item: bytes, list_scope: ListScope) -> Location:
        """`projects/p/instances/i`."""
        return Location(f"projects/{list_scope}/instances/{item_name(item, list_scope)}")

    def read_item(self, item: bytes, location: Location) -> Present[SqlInstance] | None:
        """The instance."""
        return _present(item, location)

    def parent_kinds(self) -> Sequence[GroupKind]:
        """See SupportsImport."""
        return ()

    def import_scopes(self, place: ImportPlace) -> Sequence[ListScope]:
        """The project."""
        return (ListScope(place.in_project),)

    def live_objects(self, list_scope: ListScope) -> AsyncGenerator[tuple[Location, Present[SqlInstance]], None]:
        """The instances of a project."""
        from setpoint.engine.importing.live_lists import listed_objects

        return listed_objects(self, list_scope)

    def identity_at(self, location: Location) -> LiveIdentity:
        """The inverse of `locate`."""
        project, _, name = location.split("/")[1:]
        return LiveIdentity(name, {}, {PROJECT_ANNOTATION: project}, MANAGED_LABELS, _MOVING)


# An instance is upgraded, and its disk grows.
_MOVING: Final = (Path(("maintenanceVersion",)), Path(("settings", "diskSize")))


def _present(body: bytes, location: Location, digest: str | None = None) -> Present[SqlInstance]:
    found = read_instance(body, location)
    return Present(found.instance, digest, found.version, instance_outputs(found.outputs))


def _comes_with_root(intent: Intent) -> bool:
    """Whether the service creates a default root user. A clone has the users of its source."""
    version = get_at(intent.declared.tree, _VERSION)
    is_mysql = not isinstance(version, str) or version.startswith("MYSQL")
    return is_mysql and intent.resource.spec.get("cloneSource") is None


def _edition(wanted: JsonObject, live: SqlInstance) -> Json:
    """The edition, with the tier if that changes: no tier exists in both editions."""
    tier = _at(wanted, _TIER)
    changed = {} if tier == live.settings.tier else {"tier": tier}
    return {"edition": _at(wanted, _EDITION), **changed}


def _with_missing_edition(error: RemoteRefused, intent: Intent, wanted: JsonObject) -> RemoteRefused:
    """The refusal, with what to write where the service had to choose the edition."""
    is_chosen = isinstance(get_at(wanted, _EDITION), Missing) and intent.resource.spec.get("cloneSource") is None
    advice = missing_edition(wanted) if is_chosen and error.status == _INVALID else None
    if advice is None:
        return error
    return RemoteRefused(f"{str(error).removesuffix('.')}. If it is the tier: {advice}", error.status)


def _at(tree: JsonObject, path: Path) -> Json:
    found = get_at(tree, path)
    if isinstance(found, Missing):
        raise ManifestInvalid(Message(FieldTerm(str(path)), " cannot be removed: write the value that it is to have"))
    return found
