"""PostgresGrant and PostgresDefaultPrivileges: what a role may do with objects that are there, or will be created.

One resource is about one grantee and one object: its location names both, so that two resources never fight over a
privilege. What other writers granted beside it stays, unless the resource is exclusive.
"""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Final, Generic, TypeVar

import msgspec
from msgspec import Struct

from setpoint.kind import (
    Absent,
    ClaimKey,
    Intent,
    JsonObject,
    KindContext,
    Location,
    PlannedWrite,
    Present,
    ResolvedReferences,
    Resource,
    Unchanged,
    field_invalid,
    referenced_name,
)
from setpoint_postgresql import statements as ddl
from setpoint_postgresql.acl import PRIVILEGES, AclChange
from setpoint_postgresql.catalogs import ACLS, ACTORS, DEFAULT_ACL_LETTERS, DEFAULT_ACLS, SCHEMA_EXISTS, Catalog, key_of
from setpoint_postgresql.client import PostgresClient
from setpoint_postgresql.connection import PostgresKind, Target, body_digest, spec_in
from setpoint_postgresql.database_objects import DATABASE_FIELD
from setpoint_postgresql.grant_specs import (
    ALL_OF_SCHEMA,
    IN_SCHEMA,
    PostgresDefaultPrivilegesSpec,
    PostgresGrantSpec,
    PrivilegesSpec,
    argument_types,
    check_columns,
    check_object,
    granted,
    object_names,
    object_type_in,
    overlapping,
    privilege_tree,
    third_statements,
)
from setpoint_postgresql.privileges import (
    ALL,
    DeclaredPrivileges,
    Grants,
    LiveGrant,
    LivePrivilege,
    ObjectAcls,
    ThirdGrant,
    live_privileges,
    privilege_statements,
    read_acls,
    third_grants_in,
)

ROLE_FIELD: Final = "spec.roleRef"
OWNER_FIELD: Final = "spec.ownerRef"
# The member of the status with the names of the privileges that the resource has granted.
GRANTED: Final = "grantedPrivileges"
CLAIMS: Final = "postgresql/grants"
P = TypeVar("P", bound=PrivilegesSpec)


class GrantOutputs(Struct, frozen=True):
    """What the status shows of a grant."""

    grantedPrivileges: list[str] = []
    """The declared privileges that the role holds: one that is taken out of the spec is revoked."""


class PrivilegesKind(PostgresKind[P, LiveGrant], Generic[P]):
    """What both kinds of grants do the same way."""

    outputs_type = GrantOutputs
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

    @abstractmethod
    def wanted_privileges(self, wanted: JsonObject) -> Sequence[LivePrivilege]:
        """The privileges in a tree."""

    def seen(self, location: Location, acls: ObjectAcls | None) -> None:
        """The objects at a location were observed."""
        return

    async def third_grants(self, target: Target[P], location: Location) -> Sequence[ThirdGrant]:
        """What roles that are not the owner granted, and setpoint can take back as one of them."""
        return ()

    def is_for_many(self, spec: P) -> bool:
        """Whether the privileges are for all objects of a schema."""
        return False

    @abstractmethod
    def privileges_of(self, spec: P) -> Sequence[LivePrivilege]:
        """The declared privileges, their columns sorted."""

    # --- What the spec says ------------------------------------------------------------------------------------------

    def check(self, resource: Resource) -> None:
        """ManifestInvalid for privileges that the type of object does not have."""
        super().check(resource)
        spec = self.spec_of(resource)
        known, names = PRIVILEGES[self.object_type(spec)], [one.privilege for one in self.privileges_of(spec)]
        for name in names:
            if name not in (ALL, *known):
                problem = f": {self.object_type(spec)} has no privilege {name}: write {', '.join(known)} or ALL"
                raise field_invalid(resource, "spec.privileges", problem)
        if (ALL in names and len(names) > 1) or len(set(names)) < len(names):
            raise field_invalid(resource, "spec.privileges", ": write ALL alone, or each privilege once")
        if not names and spec.otherPrivileges != "Revoke":
            problem = " is empty: that is for `otherPrivileges: Revoke`, which leaves the role without any"
            raise field_invalid(resource, "spec.privileges", problem)

    # --- Verbs -------------------------------------------------------------------------------------------------------

    async def observe(self, location: Location, known: str | None = None) -> Absent | Present[LiveGrant] | Unchanged:
        """Reads the privileges; absent when the grantee holds none of those that the resource is about."""
        target, parts = await self.target(location), self.address(location).parts
        body = await self.read(target, *self.catalog_row(target, parts))
        declared = self._declared(target, parts)
        live = None if body is None else live_privileges(read_acls(body), declared)
        self.seen(location, None if body is None else read_acls(body))
        if live is None and not target.is_deleting:
            live = await self.live_without_privileges(target, parts, declared, is_there=body is not None)
        if live is None:
            return Absent()
        names = sorted(one.privilege for one in live.privileges if one.privilege in declared.privileges)
        digest = body_digest(msgspec.json.encode((live, names)))
        return Unchanged() if digest == known else Present(live, digest, outputs={GRANTED: [*names]})

    async def live_without_privileges(
        self, target: Target[P], parts: Sequence[str], declared: DeclaredPrivileges, *, is_there: bool
    ) -> LiveGrant | None:
        """What counts as there though no privilege is held: the lack of privileges, where that is declared."""
        return LiveGrant() if is_there and not declared.privileges else None

    def _declared(self, target: Target[P], parts: Sequence[str]) -> DeclaredPrivileges:
        spec, recorded = target.spec, target.status.get(GRANTED)
        names = frozenset(map(str, recorded)) if isinstance(recorded, list) else frozenset()
        privileges = {one.privilege: one for one in self.privileges_of(spec)}
        return DeclaredPrivileges(self.object_type(spec), parts[3], privileges, spec.otherPrivileges == "Revoke", names)

    async def create(self, intent: Intent, wanted: JsonObject) -> None:
        """GRANT, in one transaction."""
        target, parts = await self.target(intent.location), self.address(intent.location).parts
        found = privilege_statements([], self.wanted_privileges(wanted), await self._grants(target, intent.location))
        await (await self.client()).create(target.server, parts[1], found, self.doing("grant", intent.location))

    async def update(self, intent: Intent, wanted: JsonObject, write: PlannedWrite, before: Present[LiveGrant]) -> None:
        """GRANT and REVOKE, in one transaction."""
        location, client = intent.location, await self.client()
        target, parts = await self.target(location), self.address(location).parts
        revoked = self._declared(target, parts).others(await client.version(target.server))
        after, grants = self.wanted_privileges(wanted), await self._grants(target, location)
        found = privilege_statements(before.live.privileges, after, grants, revoked=revoked)
        await client.update(target.server, parts[1], found, self.doing("change", location))

    async def delete(self, location: Location, before: Present[LiveGrant], resource: Resource) -> None:
        """REVOKE of what the resource declares; of all privileges where it is exclusive."""
        target, parts, client = await self.target(location), self.address(location).parts, await self.client()
        declared = self._declared(target, parts)
        revoked = {*declared.privileges, *declared.others(await client.version(target.server))}
        found = privilege_statements([], [], await self._grants(target, location), revoked=revoked)
        await client.delete(target.server, parts[1], found, self.doing("revoke", location))

    async def _grants(self, target: Target[P], location: Location) -> Grants:
        parts, third = self.address(location).parts, await self.third_grants(target, location)
        kind = self.object_type(target.spec)
        return lambda change, columns: [
            *([] if columns else third_statements(third, kind, parts, change)),
            *self.grants(target.spec, parts, change, columns),
        ]

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

    def __init__(self, context: KindContext, client: PostgresClient | None = None) -> None:
        super().__init__(context, client)
        # The objects of a schema, by the location of a grant on all of them: as they were last observed.
        self._objects: dict[Location, Sequence[Sequence[str]]] = {}
        # What other roles than the owners of the objects granted.
        self._third: dict[Location, Sequence[ThirdGrant]] = {}

    def parts(self, resource: Resource, spec: PostgresGrantSpec, resolved: ResolvedReferences) -> Sequence[str]:
        """`databases/DATABASE/grants/ROLE/TYPE/…`."""
        database = referenced_name(DATABASE_FIELD, spec.databaseRef, resolved)
        role = referenced_name(ROLE_FIELD, spec.roleRef, resolved)
        what = spec.object
        schema = referenced_name("spec.object.schemaRef", what.schemaRef, resolved) if what.schemaRef else ""
        if what.type == "DATABASE":
            return ("databases", database, "grants", role, what.type, database)
        kind = ALL_OF_SCHEMA[what.type] if what.allInSchema else what.type
        found = ["databases", database, "grants", role, kind, *(one for one in (schema, what.name) if one)]
        return (
            [*found, argument_types(what.arguments or ())]
            if what.type == "FUNCTION" and not what.allInSchema
            else found
        )

    def check(self, resource: Resource) -> None:
        """ManifestInvalid for an object that is not named, or too much of it."""
        super().check(resource)
        spec = self.spec_of(resource)
        check_object(resource, spec.object)
        check_columns(resource, spec)

    async def live_without_privileges(
        self, target: Target[PostgresGrantSpec], parts: Sequence[str], declared: DeclaredPrivileges, *, is_there: bool
    ) -> LiveGrant | None:
        """All objects of a schema are there as long as the schema is; in one without any, what is declared holds."""
        if not target.spec.object.allInSchema:
            return await super().live_without_privileges(target, parts, declared, is_there=is_there)
        if is_there:
            return LiveGrant()
        is_schema = await self.read(target, parts[1], SCHEMA_EXISTS, key_of(parts[5])) is not None
        return LiveGrant(list(declared.privileges.values())) if is_schema else None

    def seen(self, location: Location, acls: ObjectAcls | None) -> None:
        """Keeps the names of all objects of a schema, and who granted what."""
        self._third[location] = [] if acls is None else third_grants_in(acls, self.address(location).parts[3])
        if self.address(location).parts[4] in ALL_OF_SCHEMA.values():
            self._objects[location] = [] if acls is None else [object_names(one.name) for one in acls.objects]

    async def third_grants(self, target: Target[PostgresGrantSpec], location: Location) -> Sequence[ThirdGrant]:
        """Those of roles that the connected one is a member of."""
        client, server = await self.client(), target.server
        third = self._third.get(location, ())
        return [one for one in third if await client.read(server, server.database, ACTORS, one.grantor) is not None]

    # --- Two resources never claim one privilege: not by a schema and a table of it, either --------------------------

    def claim_keys(self, location: Location, outputs: JsonObject) -> tuple[ClaimKey, ...]:
        """See SupportsClaimKeys: the grant itself, and each of its privileges."""
        return (ClaimKey(CLAIMS, location), *_privilege_keys(location, self._claimed_names(location, outputs)))

    def seen_claim_keys(self, location: Location, outputs: JsonObject) -> tuple[ClaimKey, ...]:
        """The same privileges for the whole schema, or for each object of it."""
        address, names = self.address(location), self._claimed_names(location, outputs)
        others = overlapping(address, self._objects.get(location, ()))
        return tuple(key for other in others for key in _privilege_keys(other, names))

    def _claimed_names(self, location: Location, outputs: JsonObject) -> Sequence[str]:
        target, recorded = self._targets.get(location), outputs.get(GRANTED)
        names = list(map(str, recorded)) if isinstance(recorded, list) else []
        kind = object_type_in(self.address(location))
        if target is not None:
            names += [one.privilege for one in target.spec.privileges]
        is_exclusive = target is not None and target.spec.otherPrivileges == "Revoke"
        return PRIVILEGES[kind] if ALL in names or is_exclusive else sorted(set(names))

    def object_type(self, spec: PostgresGrantSpec) -> str:
        """The type of object."""
        return spec.object.type

    def is_for_many(self, spec: PostgresGrantSpec) -> bool:
        """Whether all objects of a schema are meant."""
        return bool(spec.object.allInSchema)

    def privileges_of(self, spec: PostgresGrantSpec) -> Sequence[LivePrivilege]:
        """The declared privileges."""
        return [granted(one) for one in spec.privileges]

    def wanted_privileges(self, wanted: JsonObject) -> Sequence[LivePrivilege]:
        """The privileges in a tree."""
        return msgspec.convert(spec_in(wanted).get("privileges") or [], list[LivePrivilege])

    def declare(self, resource: Resource, resolved: ResolvedReferences) -> JsonObject:
        """The privileges as declared."""
        return {"spec": {"privileges": [privilege_tree(one) for one in self.privileges_of(self.spec_of(resource))]}}

    def view(self, live: LiveGrant) -> JsonObject:
        """The live privileges in the terms of the spec."""
        return {"spec": {"privileges": [privilege_tree(one) for one in live.privileges]}}

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
            target = ddl.all_target(ALL_OF_SCHEMA[what.type], parts[5])
        else:
            names = parts[5:7] if what.type in IN_SCHEMA else parts[5:6]
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

    def privileges_of(self, spec: PostgresDefaultPrivilegesSpec) -> Sequence[LivePrivilege]:
        """The declared privileges, all with the same option."""
        return [LivePrivilege(one, bool(spec.grantOption)) for one in sorted(spec.privileges)]

    def wanted_privileges(self, wanted: JsonObject) -> Sequence[LivePrivilege]:
        """The privileges in a tree."""
        spec = spec_in(wanted)
        names = spec.get("privileges")
        listed = names if isinstance(names, list) else []
        return [LivePrivilege(str(one), bool(spec.get("grantOption"))) for one in listed]

    def declare(self, resource: Resource, resolved: ResolvedReferences) -> JsonObject:
        """The privileges as declared, sorted."""
        found = self.declared(resource, resolved)
        return {"spec": {**found, "privileges": [one.privilege for one in self.privileges_of(self.spec_of(resource))]}}

    def view(self, live: LiveGrant) -> JsonObject:
        """The live privileges in the terms of the spec."""
        return {"spec": {"privileges": [one.privilege for one in live.privileges], "grantOption": live.grantOption}}

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


def _privilege_keys(location: str, names: Sequence[str]) -> tuple[ClaimKey, ...]:
    return tuple(ClaimKey(CLAIMS, f"{location}#{name}") for name in names)
