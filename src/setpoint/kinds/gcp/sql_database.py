"""The kind SQLDatabase: a database in a Cloud SQL instance."""

import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, ClassVar, Final, Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType

from setpoint.clients.google.calls import GoogleCall, GoogleService
from setpoint.clients.google.client import GoogleClient
from setpoint.clients.google.operations import sql_operation
from setpoint.clients.response_bodies import decode_response
from setpoint.core.overlay import Declared, EffectiveState, effective_state
from setpoint.core.plan import DEFAULT_PLAN_OPTIONS, PlannedWrite, PlanOptions, ResolvedProject
from setpoint.core.schema.constraints import Matches
from setpoint.core.schema.policy import FieldPolicy
from setpoint.core.schema.shape import Mark, with_marks
from setpoint.core.unstructured import GroupKind
from setpoint.core.values.canonical import same, sha256_hex
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_limits import MAX_LIST_VALUES
from setpoint.core.values.json_types import Json, JsonObject, Missing
from setpoint.core.values.messages import FieldTerm, Message
from setpoint.core.values.paths import Path, get_at
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
    match_location,
    observe_decoded,
)
from setpoint.engine.resource import Resource
from setpoint.engine.tenancy.tenants import Tenant
from setpoint.errors import ManifestInvalid, RemoteConflict
from setpoint.kind.typed_spec import decode_spec
from setpoint.kinds.gcp.shared.cloud_sql import (
    INSTANCE_REF,
    InstanceReference,
    ParentInstance,
    check_parent_instance,
    instance_scope,
    instances_at,
    is_operation_done,
    parent_instance,
    pending_operation,
)
from setpoint.kinds.gcp.shared.config_connector import (
    ANY_NAME,
    ANY_PROJECT,
    PROJECT_ANNOTATION,
    RESOURCE_ID_CHECK,
    ReferenceTarget,
    TenantProjects,
    definition_for,
    name_taken_error,
    reference_at,
    resource_id,
)

GROUP: Final = "sql.cnrm.cloud.google.com"
# The service chooses these when the spec leaves them out: compared only when the spec sets them.
SERVICE_CHOSEN: Final = ("charset", "collation")
_COLLATION_PATH: Final = Path(("spec", "collation"))
_CHARSET: Final = Matches("[A-Za-z0-9_-]+", "a character set, such as UTF8 or utf8mb4", 128)
_COLLATION: Final = Matches("[A-Za-z0-9_.@-]+", "a collation, such as en_US.UTF8 or utf8mb4_general_ci", 128)
_IMMUTABLE: Final = {"spec.charset": Mark.IMMUTABLE, "spec.collation": Mark.IMMUTABLE}


class SqlDatabaseSpec(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """The spec. Charset and collation have no fixed default: they depend on the engine, and on each other."""

    instanceRef: Annotated[InstanceReference, Mark.IMMUTABLE]
    """The instance that the database is in."""
    charset: Annotated[str | None | UnsetType, _CHARSET, Mark.CHOSEN] = UNSET
    """The character set. Only MySQL can change it."""
    collation: Annotated[str | None | UnsetType, _COLLATION, Mark.CHOSEN] = UNSET
    """The collation. Only MySQL can change it."""
    deletionPolicy: Literal["ABANDON", "DELETE"] | None | UnsetType = UNSET
    """Whether the database goes when the resource does; ABANDON leaves it there."""
    resourceID: Annotated[str | None | UnsetType, ANY_NAME.constraint, Mark.IMMUTABLE] = UNSET
    """The name of the database in the service; the resource's own when left out."""

    __checks__: ClassVar = (RESOURCE_ID_CHECK,)


class SqlDatabaseTree(Struct, frozen=True):
    """The compared tree. Instance and name are the location: a change is refused before the database is read."""

    spec: SqlDatabaseSpec


class SqlDatabaseStatus(Struct, frozen=True):
    """The status: what the service reports beside the spec."""

    selfLink: str | UnsetType = UNSET
    """The address of the database in the API."""


class SqlDatabase(Struct, frozen=True):
    """The live database."""

    name: str
    charset: str | None | UnsetType = UNSET
    collation: str | None | UnsetType = UNSET


class _DatabaseOutputs(Struct, frozen=True):
    """Output-only fields of a database: not compared."""

    selfLink: str | None = None


class _Databases(Struct, frozen=True):
    """The list of an instance."""

    items: list[msgspec.Raw] = []


_decoder: Final = msgspec.json.Decoder(SqlDatabase)
_list: Final = msgspec.json.Decoder(_Databases)
_outputs: Final = msgspec.json.Decoder(_DatabaseOutputs)


def effective_database(
    spec: SqlDatabaseTree, live: SqlDatabaseTree | Missing, policy: FieldPolicy
) -> EffectiveState[SqlDatabaseTree]:
    """What the database should be after this step."""
    return effective_state(spec, live, policy, _fit_database_to_live)


def _fit_database_to_live(declared: Declared, live: JsonObject) -> Declared:
    """Charset and collation as immutable, unless the live database is one of MySQL."""
    collation = get_at(live, _COLLATION_PATH)
    if not isinstance(collation, str) or mysql_charset(collation):
        return declared
    return replace(declared, shape=with_marks(declared.shape, _IMMUTABLE))


_DEFINITION: Final = definition_for("SQLDatabase", SqlDatabaseStatus, "A database in an instance of Cloud SQL.")


@dataclass(slots=True)
class SqlDatabaseKind:
    """The kind SQLDatabase."""

    google: GoogleClient
    group: str = GROUP
    version: str = "v1beta1"
    name: str = "SQLDatabase"
    reconciliation: Reconciliation = Reconciliation.STATELESS
    revision: int = 1
    writes_through_clients: ClassVar = True
    annotations: Sequence[str] = (PROJECT_ANNOTATION,)
    live_type: type[SqlDatabase] = SqlDatabase
    tree_type: type[Struct] = SqlDatabaseTree
    definition: CrdDetails = _DEFINITION
    projects: TenantProjects = ANY_PROJECT

    def for_tenant(self, tenant: Tenant) -> "SqlDatabaseKind":
        """See SupportsTenants."""
        projects = TenantProjects(tenant)
        return replace(self, google=self.google.acting_for(projects.caller), projects=projects)

    def check(self, resource: Resource) -> None:
        """ManifestInvalid for a spec that is invalid whatever the live state."""
        problems = Problems()
        dependencies = problems.collect(self.dependencies, resource)
        if dependencies is not None and not dependencies:
            instance = decode_spec(resource, SqlDatabaseSpec).instanceRef
            problems.collect(check_parent_instance, instance, resource, self.projects)
        problems.collect(resource_id, resource)
        problems.require_none()

    def dependencies(self, resource: Resource) -> Sequence[Dependency]:
        """The instance, if it is referred to as a resource; it has to be ready."""
        ref = decode_spec(resource, SqlDatabaseSpec).instanceRef
        found = reference_at(INSTANCE_REF, ref, resource, ReferenceTarget(GROUP, "SQLInstance"))
        return () if found is None else (found,)

    def locate(self, resource: Resource, resolved: ResolvedReferences) -> Location:
        """`projects/p/instances/i/databases/d`."""
        return Location(f"{_instance(resource, resolved, self.projects).path}/databases/{resource_id(resource)}")

    def project_of(self, resource: Resource, resolved: ResolvedReferences) -> ResolvedProject:
        """See SupportsProjects: that of the instance."""
        return _instance(resource, resolved, self.projects).project

    def declare(self, resource: Resource, resolved: ResolvedReferences) -> JsonObject:
        """Charset and collation as declared."""
        spec = decode_spec(resource, SqlDatabaseSpec)
        return {"spec": _settings(spec.charset, spec.collation)}

    def view(self, live: SqlDatabase) -> JsonObject:
        """The live database in the terms of the spec."""
        settings = _settings(live.charset, live.collation)
        implied = mysql_charset(settings.get("collation"))
        return {"spec": settings if implied is None else {**settings, "charset": implied}}

    def effective(
        self, spec: SqlDatabaseTree, live: SqlDatabaseTree | Missing, policy: FieldPolicy
    ) -> EffectiveState[SqlDatabaseTree]:
        """See `effective_database`."""
        return effective_database(spec, live, policy)

    def sending(self, intent: Intent) -> PlanOptions:
        """A single PUT."""
        return DEFAULT_PLAN_OPTIONS

    def abandons(self, resource: Resource) -> bool:
        """Whether spec.deletionPolicy keeps the database when the resource goes; ManifestInvalid for any other word.

        A store keeps what was written, valid or not: no word is taken for a wish to delete.
        """
        policy = resource.spec.get("deletionPolicy")
        if policy not in ("ABANDON", "DELETE", None):
            raise ManifestInvalid(
                Message(
                    FieldTerm("spec.deletionPolicy"), f" is {policy!r}: write ABANDON or DELETE; nothing is deleted"
                )
            )
        return policy == "ABANDON"

    async def observe(self, location: Location, known: str | None = None) -> Absent | Present[SqlDatabase] | Unchanged:
        """Reads the database."""
        body = await self.google.get(_call(location))
        if body is None:
            return Absent()
        digest = sha256_hex(body)
        if digest == known:
            return Unchanged()
        live, link = decode_response(_decoder, body, location), decode_response(_outputs, body, location).selfLink
        return Present(live, digest, outputs={"selfLink": link} if link else {})

    async def create(self, intent: Intent, wanted: JsonObject) -> RemoteOperation | None:
        """Creates the database."""
        project, instance, _ = _parts(intent.location)
        call = GoogleCall(GoogleService.SQL, ("projects", project, "instances", instance, "databases"))
        try:
            return _operation(await self.google.post(call, _body(intent, wanted)), project)
        except RemoteConflict as error:
            raise await name_taken_error(error, observe_decoded(intent.location, self)) from error

    async def update(
        self, intent: Intent, wanted: JsonObject, write: PlannedWrite, before: Present[SqlDatabase]
    ) -> RemoteOperation | None:
        """Sends the declared settings; the service chooses a matching value for one that is left out."""
        return _operation(
            await self.google.put(_call(intent.location), _body(intent, wanted)), _parts(intent.location)[0]
        )

    async def delete(
        self, location: Location, before: Present[SqlDatabase], resource: Resource
    ) -> RemoteOperation | None:
        """Deletes the database, unless it is to be abandoned."""
        body = None if self.abandons(resource) else await self.google.delete(_call(location))
        return None if body is None else _operation(body, _parts(location)[0])

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

    def live_objects(self, list_scope: ListScope) -> AsyncGenerator[tuple[Location, Present[SqlDatabase]], None]:
        """The databases of an instance."""
        return _databases(self, list_scope)

    def identity_at(self, location: Location) -> LiveIdentity:
        """The inverse of `locate`."""
        project, instance, name = _parts(location)
        return LiveIdentity(
            name,
            {"instanceRef": {"external": f"projects/{project}/instances/{instance}"}},
            {PROJECT_ANNOTATION: project},
        )


async def _databases(
    kind: SqlDatabaseKind, list_scope: ListScope
) -> AsyncGenerator[tuple[Location, Present[SqlDatabase]], None]:
    """The databases of an instance, each as an observation shows it."""
    call = GoogleCall(GoogleService.SQL, (*list_scope.split("/"), "databases"))
    body = await kind.google.get(call)
    found = () if body is None else decode_response(_list, body, list_scope, MAX_LIST_VALUES).items
    for one in map(bytes, found):
        live, link = decode_response(_decoder, one, list_scope), decode_response(_outputs, one, list_scope).selfLink
        location = Location(f"{list_scope}/databases/{live.name}")
        yield location, Present(live, outputs={"selfLink": link} if link else {})


# --- Location --------------------------------------------------------------------------------------------------------

_LOCATION: Final = re.compile(r"projects/([^/]+)/instances/([^/]+)/databases/(.+)")


def _parts(location: Location) -> tuple[str, str, str]:
    """Project, instance and database."""
    found = match_location(_LOCATION, location)
    return found[1], found[2], found[3]


def _call(location: Location) -> GoogleCall:
    project, instance, database = _parts(location)
    return GoogleCall(GoogleService.SQL, ("projects", project, "instances", instance, "databases", database))


def _instance(resource: Resource, resolved: ResolvedReferences, projects: TenantProjects) -> ParentInstance:
    return parent_instance(decode_spec(resource, SqlDatabaseSpec).instanceRef, resource, resolved, projects)


def _operation(body: bytes, project: str) -> RemoteOperation | None:
    return pending_operation(sql_operation(body), project)


# --- Charset and collation -------------------------------------------------------------------------------------------

# A MySQL collation belongs to one character set, and its name starts with it.
_MYSQL: Final = frozenset(
    {
        *("armscii8", "ascii", "big5", "cp1250", "cp1251", "cp1256", "cp1257", "cp850", "cp852"),
        *("cp866", "cp932", "dec8", "eucjpms", "euckr", "gb18030", "gb2312", "gbk", "geostd8"),
        *("greek", "hebrew", "hp8", "keybcs2", "koi8r", "koi8u", "latin1", "latin2", "latin5"),
        *("latin7", "macce", "macroman", "sjis", "swe7", "tis620", "ucs2", "ujis", "utf16"),
        *("utf16le", "utf32", "utf8", "utf8mb4"),
    }
)
# The one character set whose only collation has its name.
_BINARY: Final = "binary"


def _settings(charset: str | None | UnsetType, collation: str | None | UnsetType) -> dict[str, str]:
    """Both settings normalized: the service changes the case, and has two names for one character set."""
    settings = {"charset": charset, "collation": collation}
    return {name: _normalized(name, text) for name, text in settings.items() if text}


def _normalized(name: str, text: str) -> str:
    """Character sets are case-insensitive; newer versions of MySQL call utf8 utf8mb3, in collations too."""
    text = text.lower() if name == "charset" else text
    return f"utf8{text.removeprefix('utf8mb3')}" if text == "utf8mb3" or text.startswith("utf8mb3_") else text


def mysql_charset(collation: str | None) -> str | None:
    """The character set that a MySQL collation implies, whatever the service reports; None for other engines."""
    charset, found, _ = (collation or "").partition("_")
    is_mysql = charset in _MYSQL if found else charset == _BINARY
    return charset if is_mysql else None


def _body(intent: Intent, wanted: JsonObject) -> Json:
    """The declared settings in the author's spelling, with the names that the API requires."""
    _, instance, database = _parts(intent.location)
    spec = wanted["spec"]
    assert isinstance(spec, Mapping)
    declared = {
        name: _as_written(name, intent.resource, spec[name]) for name in SERVICE_CHOSEN if name in _declared(intent)
    }
    return {**declared, "instance": instance, "name": database}


def _declared(intent: Intent) -> Mapping[str, Json]:
    spec = intent.declared.tree["spec"]
    assert isinstance(spec, Mapping)
    return spec


def _as_written(name: str, resource: Resource, value: Json) -> Json:
    written = resource.spec.get(name)
    assert isinstance(written, str)
    return written if same(_normalized(name, written), value) else value
