"""PostgresSchema and PostgresExtension: what belongs to one database, and has an owner or a version."""

from collections.abc import Sequence
from typing import Annotated, Final

import msgspec
from msgspec import UNSET, Struct

from setpoint.kind import (
    Absent,
    Default,
    Intent,
    Json,
    JsonObject,
    Location,
    Mark,
    Maybe,
    PlannedWrite,
    Present,
    ResolvedReferences,
    Resource,
    SpecStruct,
    Unchanged,
    referenced_name,
)
from setpoint_postgresql import statements as ddl
from setpoint_postgresql.catalogs import EXTENSIONS, SCHEMAS
from setpoint_postgresql.connection import (
    NAME,
    DatabaseReference,
    PostgresKind,
    PostgresSpec,
    RoleReference,
    body_digest,
    changed_fields,
    spec_in,
)
from setpoint_postgresql.imports import ImportedPart

DATABASE_FIELD: Final = "spec.databaseRef"


class CascadingDeletion(SpecStruct, frozen=True):
    """How an object is dropped that others may depend on."""

    cascade: Maybe[bool] = UNSET
    """Whether what depends on it is dropped, too; without it, it is not dropped as long as anything does."""


# --- Schemas ---------------------------------------------------------------------------------------------------------


class PostgresSchemaSpec(PostgresSpec, frozen=True, kw_only=True):
    """The spec of a PostgresSchema."""

    databaseRef: Annotated[DatabaseReference, Mark.IMMUTABLE]
    """The database that it is in."""
    ownerRef: Annotated[Maybe[RoleReference], Mark.CHOSEN] = UNSET
    """Its owner; the role that logs in, when left out."""
    comment: Annotated[Maybe[str], Default("")] = UNSET
    """Its comment."""
    onDelete: Maybe[CascadingDeletion] = UNSET
    """How it is dropped."""


class LiveSchema(Struct, frozen=True):
    """The live schema."""

    name: str
    owner: str
    comment: str = ""


_schema: Final = msgspec.json.Decoder(LiveSchema)


class PostgresSchemaKind(ImportedPart[PostgresSchemaSpec, LiveSchema]):
    """A schema in a database of a PostgreSQL server."""

    name = "PostgresSchema"
    word = "schema"
    short_names = ("pgschema",)
    uncompared = (*ImportedPart.uncompared, "databaseRef")

    def parts(self, resource: Resource, spec: PostgresSchemaSpec, resolved: ResolvedReferences) -> Sequence[str]:
        """`databases/DATABASE/schemas/NAME`."""
        database = referenced_name(DATABASE_FIELD, spec.databaseRef, resolved)
        return ("databases", database, "schemas", self.object_name(resource))

    def declare(self, resource: Resource, resolved: ResolvedReferences) -> JsonObject:
        """The schema as declared, with the name of its owner."""
        found, owner = self.declared(resource, resolved), self.spec_of(resource).ownerRef
        if owner:
            found["ownerRef"] = {"external": referenced_name("spec.ownerRef", owner, resolved)}
        return {"spec": found}

    def view(self, live: LiveSchema) -> JsonObject:
        """The live schema in the terms of the spec."""
        return {"spec": {"ownerRef": {"external": live.owner}, "comment": live.comment}}

    async def observe(self, location: Location, known: str | None = None) -> Absent | Present[LiveSchema] | Unchanged:
        """Reads the schema; absent where its database is."""
        target, address = await self.target(location), self.address(location)
        body = await self.read(target, address.database, SCHEMAS, address.name)
        if body is None:
            return Absent()
        digest = body_digest(body)
        return Unchanged() if digest == known else Present(_schema.decode(body), digest)

    async def create(self, intent: Intent, wanted: JsonObject) -> None:
        """CREATE SCHEMA, and its comment, in one transaction."""
        target, address, after = await self.target(intent.location), self.address(intent.location), spec_in(wanted)
        found = [ddl.create_schema(address.name, external_name(after, "ownerRef"))]
        if after.get("comment"):
            found.append(ddl.comment("SCHEMA", [address.name], str(after["comment"])))
        client = await self.client()
        await client.create(target.server, address.database, found, self.doing("create", intent.location))

    async def update(
        self, intent: Intent, wanted: JsonObject, write: PlannedWrite, before: Present[LiveSchema]
    ) -> None:
        """Owner and comment, in one transaction."""
        target, address, after = await self.target(intent.location), self.address(intent.location), spec_in(wanted)
        changed, found = changed_fields(write), list[ddl.Statement]()
        owner = external_name(after, "ownerRef")
        if "ownerRef" in changed and owner is not None:
            found.append(ddl.owned_by("SCHEMA", [address.name], owner))
        if "comment" in changed:
            found.append(ddl.comment("SCHEMA", [address.name], str(after.get("comment") or "")))
        client = await self.client()
        await client.update(target.server, address.database, found, self.doing("change", intent.location))

    async def delete(self, location: Location, before: Present[LiveSchema], resource: Resource) -> None:
        """DROP SCHEMA; with what is in it only where the spec says so."""
        target, address = await self.target(location), self.address(location)
        cascade = bool(target.spec.onDelete and target.spec.onDelete.cascade)
        client, statement = await self.client(), ddl.drop("SCHEMA", address.name, cascade=cascade)
        await client.delete(target.server, address.database, [statement], self.doing("delete", location))


def external_name(spec: JsonObject, field: str) -> str | None:
    """The name in a reference of a tree, which is resolved."""
    reference = spec.get(field)
    found = reference.get("external") if isinstance(reference, dict) else None
    return found if isinstance(found, str) else None


# --- Extensions ------------------------------------------------------------------------------------------------------


class PostgresExtensionSpec(PostgresSpec, frozen=True, kw_only=True):
    """The spec of a PostgresExtension."""

    databaseRef: Annotated[DatabaseReference, Mark.IMMUTABLE]
    """The database that it is in."""
    extensionVersion: Annotated[Maybe[str], Mark.CHOSEN] = UNSET
    """Its version; a change updates it (ALTER EXTENSION … UPDATE). Left out: the server's default at its creation."""
    schema: Annotated[Maybe[str], NAME, Mark.CHOSEN] = UNSET
    """The schema that has its objects; where it is left out, the one that the extension names itself, or `public`."""
    createDependencies: Maybe[bool] = UNSET
    """Whether extensions that it needs are created with it (CREATE EXTENSION … CASCADE)."""
    onDelete: Maybe[CascadingDeletion] = UNSET
    """How it is dropped."""


class ExtensionOutputs(Struct, frozen=True):
    """What the status shows of an extension."""

    defaultVersion: str = ""
    """The version that the server would create now: another one is an update that is available."""


class LiveExtension(Struct, frozen=True):
    """The live extension."""

    name: str
    extensionVersion: str
    schema: str


class _AvailableVersion(Struct, frozen=True):
    defaultVersion: str | None = None


_extension: Final = msgspec.json.Decoder(LiveExtension)
_available: Final = msgspec.json.Decoder(_AvailableVersion)


class PostgresExtensionKind(PostgresKind[PostgresExtensionSpec, LiveExtension]):
    """An extension in a database of a PostgreSQL server."""

    name = "PostgresExtension"
    word = "extension"
    short_names = ("pgextension",)
    outputs_type = ExtensionOutputs
    uncompared = (*PostgresKind.uncompared, "databaseRef", "createDependencies")

    def parts(self, resource: Resource, spec: PostgresExtensionSpec, resolved: ResolvedReferences) -> Sequence[str]:
        """`databases/DATABASE/extensions/NAME`."""
        database = referenced_name(DATABASE_FIELD, spec.databaseRef, resolved)
        return ("databases", database, "extensions", self.object_name(resource))

    def declare(self, resource: Resource, resolved: ResolvedReferences) -> JsonObject:
        """The extension as declared."""
        return {"spec": self.declared(resource, resolved)}

    def view(self, live: LiveExtension) -> JsonObject:
        """The live extension in the terms of the spec."""
        return {"spec": {"extensionVersion": live.extensionVersion, "schema": live.schema}}

    async def observe(
        self, location: Location, known: str | None = None
    ) -> Absent | Present[LiveExtension] | Unchanged:
        """Reads the extension; absent where its database is."""
        target, address = await self.target(location), self.address(location)
        body = await self.read(target, address.database, EXTENSIONS, address.name)
        if body is None:
            return Absent()
        digest = body_digest(body)
        if digest == known:
            return Unchanged()
        version = _available.decode(body).defaultVersion
        outputs: dict[str, Json] = {"defaultVersion": version} if version else {}
        return Present(_extension.decode(body), digest, outputs=outputs)

    async def create(self, intent: Intent, wanted: JsonObject) -> None:
        """CREATE EXTENSION."""
        target, address, after = await self.target(intent.location), self.address(intent.location), spec_in(wanted)
        statements = ddl.create_extension(
            address.name,
            _text(after.get("schema")),
            _text(after.get("extensionVersion")),
            cascade=bool(target.spec.createDependencies),
        )
        client = await self.client()
        await client.create(target.server, address.database, statements, self.doing("create", intent.location))

    async def update(
        self, intent: Intent, wanted: JsonObject, write: PlannedWrite, before: Present[LiveExtension]
    ) -> None:
        """ALTER EXTENSION: another version, then another schema."""
        target, address, after = await self.target(intent.location), self.address(intent.location), spec_in(wanted)
        changed, found = changed_fields(write), list[ddl.Statement]()
        version, schema = _text(after.get("extensionVersion")), _text(after.get("schema"))
        if "extensionVersion" in changed and version is not None:
            found.append(ddl.update_extension(address.name, version))
        if "schema" in changed and schema is not None:
            found.append(ddl.move_extension(address.name, schema))
        client = await self.client()
        await client.update(target.server, address.database, found, self.doing("change", intent.location))

    async def delete(self, location: Location, before: Present[LiveExtension], resource: Resource) -> None:
        """DROP EXTENSION; with what depends on it only where the spec says so."""
        target, address = await self.target(location), self.address(location)
        cascade = bool(target.spec.onDelete and target.spec.onDelete.cascade)
        client, statement = await self.client(), ddl.drop("EXTENSION", address.name, cascade=cascade)
        await client.delete(target.server, address.database, [statement], self.doing("delete", location))


def _text(value: Json) -> str | None:
    return value if isinstance(value, str) and value else None
