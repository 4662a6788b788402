"""PostgresGrant and PostgresDefaultPrivileges: what a role may do with objects that are there, or will be created.

One resource is about one grantee and one object: its location names both, so that two resources never fight over a
privilege. What other writers granted beside it stays, unless the resource is exclusive.
"""

import re
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Annotated, Final, Generic, Literal, TypeVar

import msgspec
from msgspec import UNSET

from setpoint.kind import (
    Absent,
    Default,
    Intent,
    Json,
    JsonObject,
    Keyed,
    Location,
    Mark,
    Matches,
    Maybe,
    PlannedWrite,
    Present,
    ResolvedReferences,
    Resource,
    SpecStruct,
    Unchanged,
    field_invalid,
    referenced_name,
)
from setpoint_postgresql import statements as ddl
from setpoint_postgresql.acl import COLUMN_PRIVILEGES, PRIVILEGES, AclChange
from setpoint_postgresql.catalogs import ACLS, DEFAULT_ACL_LETTERS, DEFAULT_ACLS, SCHEMA_EXISTS, Catalog, key_of
from setpoint_postgresql.connection import (
    NAME,
    DatabaseReference,
    PostgresKind,
    PostgresSpec,
    RoleReference,
    SchemaReference,
    Target,
    body_digest,
    spec_in,
)
from setpoint_postgresql.database_objects import DATABASE_FIELD
from setpoint_postgresql.privileges import (
    ALL,
    DeclaredPrivileges,
    LiveGrant,
    LivePrivilege,
    live_privileges,
    privilege_statements,
    read_acls,
)

ROLE_FIELD: Final = "spec.roleRef"
OWNER_FIELD: Final = "spec.ownerRef"
# Types of arguments stand in statements as they are: nothing but the name of a type may get there.
_TYPE_TEXT: Final = r"[A-Za-z_][A-Za-z0-9_]*(?:[ .][A-Za-z_][A-Za-z0-9_]*)*(?:\[\])*"
_TYPE: Final = Matches(_TYPE_TEXT, "the name of a type, such as integer or text[]", 128)
_TYPE_FORM: Final = re.compile(_TYPE_TEXT)
# Other names of types, and what the catalog calls them.
_TYPE_NAMES: Final[Mapping[str, str]] = {
    **{"int": "integer", "int4": "integer", "int8": "bigint", "int2": "smallint", "bool": "boolean"},
    **{"varchar": "character varying", "char": "character", "float8": "double precision", "float4": "real"},
    **{"timestamptz": "timestamp with time zone", "timestamp": "timestamp without time zone"},
    **{"timetz": "time with time zone", "time": "time without time zone", "decimal": "numeric"},
}
_IN_SCHEMA: Final = ("TABLE", "SEQUENCE", "FUNCTION", "TYPE")
_MANY: Final[Mapping[str, str]] = {"TABLE": "ALL TABLES", "SEQUENCE": "ALL SEQUENCES", "FUNCTION": "ALL ROUTINES"}
PrivilegeName = Literal[
    "ALL", "SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER", "MAINTAIN", "EXECUTE", "USAGE",
    "CREATE", "CONNECT", "TEMPORARY",
]  # fmt: skip


class GrantedPrivilege(SpecStruct, frozen=True):
    """A privilege, on an object or on some columns of a table."""

    privilege: PrivilegeName
    """The privilege; ALL for every one that the type of object has."""
    grantOption: Annotated[Maybe[bool], Default(False)] = UNSET
    """Whether the grantee may grant it on."""
    columns: Maybe[list[Annotated[str, NAME]]] = UNSET
    """The columns of a table, for SELECT, INSERT, UPDATE and REFERENCES; left out: the whole table."""


class PrivilegesSpec(PostgresSpec, frozen=True, kw_only=True):
    """What both kinds of grants have."""

    databaseRef: Annotated[DatabaseReference, Mark.IMMUTABLE]
    """The database that has the objects."""
    roleRef: Annotated[RoleReference, Mark.IMMUTABLE]
    """The role that gets the privileges; `external: public` for all roles."""
    privileges: Annotated[list[GrantedPrivilege], Keyed("privilege")]
    """The privileges."""
    otherPrivileges: Maybe[Literal["Keep", "Revoke"]] = UNSET
    """What becomes of other privileges of the role on the same object: kept, by default, or revoked."""


class GrantObject(SpecStruct, frozen=True):
    """What the privileges are for."""

    type: Literal[
        "TABLE", "SEQUENCE", "FUNCTION", "DATABASE", "SCHEMA", "TYPE", "LANGUAGE", "FOREIGN DATA WRAPPER",
        "FOREIGN SERVER",
    ]  # fmt: skip
    """The type of object. Views are tables; procedures and aggregates are functions."""
    schemaRef: Maybe[SchemaReference] = UNSET
    """The schema that the object is in, or that the privileges are for."""
    name: Annotated[Maybe[str], NAME] = UNSET
    """Its name; left out for a database or schema, which a reference names, and for all objects of a schema."""
    allInSchema: Maybe[bool] = UNSET
    """Whether all tables, sequences or functions are meant that are in the schema at the time."""
    arguments: Maybe[list[Annotated[str, _TYPE]]] = UNSET
    """The types of the arguments of a function."""


class PostgresGrantSpec(PrivilegesSpec, frozen=True, kw_only=True):
    """The spec of a PostgresGrant."""

    object: Annotated[GrantObject, Mark.IMMUTABLE]
    """What the privileges are for."""


class PostgresDefaultPrivilegesSpec(PrivilegesSpec, frozen=True, kw_only=True):
    """The spec of PostgresDefaultPrivileges."""

    ownerRef: Annotated[RoleReference, Mark.IMMUTABLE]
    """The role that will create the objects."""
    schemaRef: Annotated[Maybe[SchemaReference], Mark.IMMUTABLE] = UNSET
    """The schema that the objects will be in; any, when left out."""
    objectType: Annotated[Literal["TABLE", "SEQUENCE", "FUNCTION", "TYPE", "SCHEMA"], Mark.IMMUTABLE]
    """The type of the objects."""


P = TypeVar("P", bound=PrivilegesSpec)


class PrivilegesKind(PostgresKind[P, LiveGrant], Generic[P]):
    """What both kinds of grants do the same way."""

    uncompared = (
        *PostgresKind.uncompared, "databaseRef", "roleRef", "otherPrivileges", "object", "ownerRef", "schemaRef",
        "objectType",
    )  # fmt: skip

    @abstractmethod
    def object_type(self, spec: P) -> str:
        """The type of object, as in `PRIVILEGES`."""

    @abstractmethod
    def catalog_row(self, target: Target[P], parts: Sequence[str]) -> tuple[str, Catalog, str]:
        """The database, the catalog and the key that have the access control lists."""

    @abstractmethod
    def grants(self, spec: P, parts: Sequence[str], change: AclChange, columns: Sequence[str]) -> list[ddl.Statement]:
        """The statements for a change of privileges."""

    def is_for_many(self, spec: P) -> bool:
        """Whether the privileges are for all objects of a schema."""
        return False

    # --- What the spec says ------------------------------------------------------------------------------------------

    def check(self, resource: Resource) -> None:
        """ManifestInvalid for privileges that the type of object does not have."""
        super().check(resource)
        spec = self.spec_of(resource)
        known, names = PRIVILEGES[self.object_type(spec)], [one.privilege for one in spec.privileges]
        for one in spec.privileges:
            if one.privilege not in (ALL, *known):
                problem = (
                    f": {self.object_type(spec)} has no privilege {one.privilege}: write {', '.join(known)} or ALL"
                )
                raise field_invalid(resource, "spec.privileges", problem)
            if one.columns and (one.privilege not in COLUMN_PRIVILEGES or not self.may_have_columns(spec)):
                problem = f": columns are for {', '.join(COLUMN_PRIVILEGES)} on one table: leave them out"
                raise field_invalid(resource, "spec.privileges", problem)
        if not names or (ALL in names and len(names) > 1) or len(set(names)) < len(names):
            raise field_invalid(resource, "spec.privileges", ": write ALL alone, or each privilege once")

    def may_have_columns(self, spec: P) -> bool:
        """Whether privileges can be for columns."""
        return False

    def declare(self, resource: Resource, resolved: ResolvedReferences) -> JsonObject:
        """The privileges as declared, their columns sorted."""
        wanted = [_normalized(one) for one in self.spec_of(resource).privileges]
        return {"spec": {"privileges": [_tree(one) for one in wanted]}}

    def view(self, live: LiveGrant) -> JsonObject:
        """The live privileges in the terms of the spec."""
        return {"spec": {"privileges": [_tree(one) for one in live.privileges]}}

    # --- Verbs -------------------------------------------------------------------------------------------------------

    async def observe(self, location: Location, known: str | None = None) -> Absent | Present[LiveGrant] | Unchanged:
        """Reads the privileges; absent when the grantee holds none of those that the resource is about."""
        target, parts = await self.target(location), self.address(location).parts
        body = await self.read(target, *self.catalog_row(target, parts))
        declared = self._declared(target.spec, parts)
        if body is not None:
            live = live_privileges(read_acls(body), declared)
        elif self.is_for_many(target.spec) and not target.is_deleting:
            live = await self._live_of_none(target, parts)
        else:
            live = None
        if live is None:
            return Absent()
        digest = body_digest(msgspec.json.encode(live))
        return Unchanged() if digest == known else Present(live, digest)

    async def _live_of_none(self, target: Target[P], parts: Sequence[str]) -> LiveGrant | None:
        """In a schema without such objects, everything that is declared holds for all of them."""
        if await self.read(target, parts[1], SCHEMA_EXISTS, key_of(parts[5])) is None:
            return None
        return LiveGrant(list(self._declared(target.spec, parts).privileges.values()))

    def _declared(self, spec: P, parts: Sequence[str]) -> DeclaredPrivileges:
        privileges: dict[str, LivePrivilege] = {one.privilege: _normalized(one) for one in spec.privileges}
        return DeclaredPrivileges(self.object_type(spec), parts[3], privileges, spec.otherPrivileges == "Revoke")

    async def create(self, intent: Intent, wanted: JsonObject) -> None:
        """GRANT, in one transaction."""
        target, parts = await self.target(intent.location), self.address(intent.location).parts
        found = self._statements(target.spec, parts, [], _privileges_in(wanted))
        await (await self.client()).create(target.server, parts[1], found, self.doing("grant", intent.location))

    async def update(self, intent: Intent, wanted: JsonObject, write: PlannedWrite, before: Present[LiveGrant]) -> None:
        """GRANT and REVOKE, in one transaction."""
        target, parts = await self.target(intent.location), self.address(intent.location).parts
        found = self._statements(target.spec, parts, before.live.privileges, _privileges_in(wanted))
        await (await self.client()).update(target.server, parts[1], found, self.doing("change", intent.location))

    async def delete(self, location: Location, before: Present[LiveGrant], resource: Resource) -> None:
        """REVOKE of what the resource declares; of all privileges where it is exclusive."""
        target, parts = await self.target(location), self.address(location).parts
        declared = list(self._declared(target.spec, parts).privileges.values())
        names = {one.privilege for one in declared}
        held = [*declared, *(one for one in before.live.privileges if one.privilege not in names)]
        found = self._statements(target.spec, parts, held, [])
        await (await self.client()).delete(target.server, parts[1], found, self.doing("revoke", location))

    def _statements(
        self, spec: P, parts: Sequence[str], before: Sequence[LivePrivilege], after: Sequence[LivePrivilege]
    ) -> list[ddl.Statement]:
        return privilege_statements(
            before,
            after,
            lambda change, columns: self.grants(spec, parts, change, columns),
            is_for_many=self.is_for_many(spec),
        )

    def doing(self, verb: str, location: Location) -> str:
        """What is being done, for messages."""
        address = self.address(location)
        _, database, _, role, *what = address.parts
        return f"{verb} privileges of {role} on {' '.join(what)} in {database} at {address.host}:{address.port}"


class PostgresGrantKind(PrivilegesKind[PostgresGrantSpec], PostgresKind[PostgresGrantSpec, LiveGrant]):
    """Privileges of a role on an object of a PostgreSQL server."""

    name = "PostgresGrant"
    word = "grant"
    short_names = ("pggrant",)

    def parts(self, resource: Resource, spec: PostgresGrantSpec, resolved: ResolvedReferences) -> Sequence[str]:
        """`databases/DATABASE/grants/ROLE/TYPE/…`."""
        database = referenced_name(DATABASE_FIELD, spec.databaseRef, resolved)
        role = referenced_name(ROLE_FIELD, spec.roleRef, resolved)
        what = spec.object
        schema = referenced_name("spec.object.schemaRef", what.schemaRef, resolved) if what.schemaRef else ""
        if what.type == "DATABASE":
            return ("databases", database, "grants", role, what.type, database)
        kind = _MANY[what.type] if what.allInSchema else what.type
        found = ["databases", database, "grants", role, kind, *(one for one in (schema, what.name) if one)]
        return [*found, _arguments(what)] if what.type == "FUNCTION" and not what.allInSchema else found

    def check(self, resource: Resource) -> None:
        """ManifestInvalid for an object that is not named, or too much of it."""
        super().check(resource)
        what = self.spec_of(resource).object
        is_many = bool(what.allInSchema)
        problem = ""
        if is_many and what.type not in _MANY:
            problem = f".allInSchema is for {', '.join(_MANY)}: name the object instead"
        elif bool(what.schemaRef) != (what.type in (*_IN_SCHEMA, "SCHEMA")):
            problem = f".schemaRef is for {', '.join(_IN_SCHEMA)} and SCHEMA, and they need it"
        elif bool(what.name) != (not is_many and what.type not in ("DATABASE", "SCHEMA")):
            problem = ".name is for one object in a schema: a database or schema is named by its reference"
        elif bool(what.arguments) and (what.type != "FUNCTION" or is_many):
            problem = ".arguments are for one function"
        elif not all(map(_TYPE_FORM.fullmatch, what.arguments or ())):
            problem = ".arguments: write names of types, such as integer or text[]"
        if problem:
            raise field_invalid(resource, "spec.object", problem)

    def object_type(self, spec: PostgresGrantSpec) -> str:
        """The type of object."""
        return spec.object.type

    def is_for_many(self, spec: PostgresGrantSpec) -> bool:
        """Whether all objects of a schema are meant."""
        return bool(spec.object.allInSchema)

    def may_have_columns(self, spec: PostgresGrantSpec) -> bool:
        """Columns are those of one table."""
        return spec.object.type == "TABLE" and not spec.object.allInSchema

    def catalog_row(self, target: Target[PostgresGrantSpec], parts: Sequence[str]) -> tuple[str, Catalog, str]:
        """Privileges on databases are read from any of them, all others in their own."""
        kind = target.spec.object.type
        database = target.server.database if kind == "DATABASE" else parts[1]
        return database, ACLS[kind, self.is_for_many(target.spec)], key_of(*parts[5:])

    def grants(
        self, spec: PostgresGrantSpec, parts: Sequence[str], change: AclChange, columns: Sequence[str]
    ) -> list[ddl.Statement]:
        """GRANT and REVOKE."""
        what = spec.object
        if what.allInSchema:
            target = ddl.all_target(_MANY[what.type], parts[5])
        else:
            names = parts[5:7] if what.type in _IN_SCHEMA else parts[5:6]
            target = ddl.object_target(what.type, names, what.arguments or ())
        return ddl.grant_statements(target, parts[3], change, columns)


class PostgresDefaultPrivilegesKind(
    PrivilegesKind[PostgresDefaultPrivilegesSpec], PostgresKind[PostgresDefaultPrivilegesSpec, LiveGrant]
):
    """Privileges that a role gets on objects that another role will create (ALTER DEFAULT PRIVILEGES)."""

    name = "PostgresDefaultPrivileges"
    word = "default privileges"
    plural = "postgresdefaultprivileges"
    short_names = ("pgdefaultprivileges",)

    def parts(
        self, resource: Resource, spec: PostgresDefaultPrivilegesSpec, resolved: ResolvedReferences
    ) -> Sequence[str]:
        """`databases/DATABASE/defaultPrivileges/ROLE/TYPE/OWNER/SCHEMA`; without a schema, for all."""
        database = referenced_name(DATABASE_FIELD, spec.databaseRef, resolved)
        role = referenced_name(ROLE_FIELD, spec.roleRef, resolved)
        owner = referenced_name(OWNER_FIELD, spec.ownerRef, resolved)
        schema = (referenced_name("spec.schemaRef", spec.schemaRef, resolved),) if spec.schemaRef else ()
        return ("databases", database, "defaultPrivileges", role, spec.objectType, owner, *schema)

    def check(self, resource: Resource) -> None:
        """ManifestInvalid for schemas in a schema."""
        super().check(resource)
        spec = self.spec_of(resource)
        if spec.objectType == "SCHEMA" and spec.schemaRef:
            raise field_invalid(resource, "spec.schemaRef", ": no schema is in a schema: leave it out")

    def object_type(self, spec: PostgresDefaultPrivilegesSpec) -> str:
        """The type of object."""
        return spec.objectType

    def catalog_row(
        self, target: Target[PostgresDefaultPrivilegesSpec], parts: Sequence[str]
    ) -> tuple[str, Catalog, str]:
        """One row for an owner, a schema and a type of object."""
        schema = parts[6] if len(parts) > 6 else ""
        return parts[1], DEFAULT_ACLS, key_of(parts[5], schema, *DEFAULT_ACL_LETTERS[target.spec.objectType])

    def grants(
        self, spec: PostgresDefaultPrivilegesSpec, parts: Sequence[str], change: AclChange, columns: Sequence[str]
    ) -> list[ddl.Statement]:
        """ALTER DEFAULT PRIVILEGES."""
        schema = parts[6] if len(parts) > 6 else ""
        return ddl.default_privilege_statements(parts[5], schema, parts[4], role=parts[3], change=change)


def _normalized(one: GrantedPrivilege) -> LivePrivilege:
    columns = sorted(set(one.columns)) if one.columns else UNSET
    return LivePrivilege(one.privilege, bool(one.grantOption), columns)


def _tree(one: LivePrivilege) -> Json:
    found: dict[str, Json] = {"privilege": one.privilege, "grantOption": one.grantOption}
    return found if one.columns is UNSET else {**found, "columns": [*one.columns]}


def _privileges_in(wanted: JsonObject) -> list[LivePrivilege]:
    listed = spec_in(wanted).get("privileges") or []
    return msgspec.convert(listed, list[LivePrivilege])


def _arguments(what: GrantObject) -> str:
    """The types as the catalog writes them."""
    return ", ".join(_type_name(one) for one in what.arguments or ())


def _type_name(text: str) -> str:
    plain = text.removesuffix("[]")
    dimensions = "[]" if plain != text else ""
    return _TYPE_NAMES.get(plain.lower(), plain) + dimensions
