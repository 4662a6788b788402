"""PostgresForeignServer: where a foreign data wrapper finds data that is outside of the server."""

from collections.abc import Sequence
from typing import Annotated, Final

import msgspec
from msgspec import UNSET, Struct
from psycopg import sql

from setpoint.kind import (
    Absent,
    Default,
    Intent,
    JsonObject,
    Location,
    Mark,
    Maybe,
    PlannedWrite,
    Present,
    ResolvedReferences,
    Resource,
    Unchanged,
    referenced_name,
)
from setpoint_postgresql import statements as ddl
from setpoint_postgresql.catalogs import VERSION_COLUMN, Catalog
from setpoint_postgresql.connection import (
    NAME,
    DatabaseReference,
    PostgresKind,
    RoleReference,
    body_digest,
    changed_fields,
    spec_in,
)
from setpoint_postgresql.database_objects import DATABASE_FIELD, CascadingDeletion, external_name
from setpoint_postgresql.foreign.options import (
    SECRET_OPTIONS,
    OptionsSpec,
    check_options,
    declared_options,
    option_changes,
    option_list,
    secret_values,
    shown_options,
    wanted_options,
)

_KIND: Final = "SERVER"
SERVERS: Final = Catalog(
    "foreign servers",
    {
        0: f"""
SELECT k.key, json_build_object(
    'version', {VERSION_COLUMN}, 'name', s.srvname, 'owner', pg_get_userbyid(s.srvowner),
    'foreignDataWrapper', w.fdwname, 'serverType', coalesce(s.srvtype, ''), 'serverVersion', coalesce(s.srvversion, ''),
    'options', coalesce(to_json(s.srvoptions), '[]'),
    'comment', coalesce(obj_description(s.oid, 'pg_foreign_server'), ''))::text
FROM unnest(%s::text[]) AS k(key) JOIN pg_foreign_server s ON s.srvname = k.key
    JOIN pg_foreign_data_wrapper w ON w.oid = s.srvfdw"""
    },
)


class PostgresForeignServerSpec(OptionsSpec, frozen=True, kw_only=True):
    """The spec of a PostgresForeignServer."""

    databaseRef: Annotated[DatabaseReference, Mark.IMMUTABLE]
    """The database that it is in."""
    foreignDataWrapper: Annotated[str, NAME, Mark.IMMUTABLE]
    """The foreign data wrapper, which an extension makes: `postgres_fdw`, `file_fdw`."""
    serverType: Annotated[Maybe[str], Default(""), Mark.IMMUTABLE] = UNSET
    """Its type, where the wrapper knows types."""
    serverVersion: Annotated[Maybe[str], Default("")] = UNSET
    """Its version, where the wrapper knows versions."""
    ownerRef: Annotated[Maybe[RoleReference], Mark.CHOSEN] = UNSET
    """Its owner; the role that logs in, when left out."""
    comment: Annotated[Maybe[str], Default("")] = UNSET
    """Its comment."""
    onDelete: Maybe[CascadingDeletion] = UNSET
    """How it is dropped: with the foreign tables and user mappings that depend on it, or not while there are any."""


class ForeignServerRow(Struct, frozen=True):
    """A foreign server as the catalog has it."""

    owner: str
    foreignDataWrapper: str
    serverType: str
    serverVersion: str
    comment: str
    options: list[str]


class LiveForeignServer(Struct, frozen=True):
    """The live foreign server. Of an option that is secret, it is known whether it is as declared."""

    owner: str
    foreignDataWrapper: str
    serverType: str
    serverVersion: str
    comment: str
    options: dict[str, str]


_row: Final = msgspec.json.Decoder(ForeignServerRow)


class PostgresForeignServerKind(PostgresKind[PostgresForeignServerSpec, LiveForeignServer]):
    """A foreign server in a database of a PostgreSQL server: where a foreign data wrapper finds its data."""

    name = "PostgresForeignServer"
    word = "foreign server"
    short_names = ("pgforeignserver",)
    uncompared = (*PostgresKind.uncompared, "databaseRef")

    def parts(self, resource: Resource, spec: PostgresForeignServerSpec, resolved: ResolvedReferences) -> Sequence[str]:
        """`databases/DATABASE/foreignServers/NAME`."""
        database = referenced_name(DATABASE_FIELD, spec.databaseRef, resolved)
        return ("databases", database, "foreignServers", self.object_name(resource))

    def check(self, resource: Resource) -> None:
        """ManifestInvalid for an option that is declared twice."""
        super().check(resource)
        check_options(resource, self.spec_of(resource))

    def declare(self, resource: Resource, resolved: ResolvedReferences) -> JsonObject:
        """The server as declared, with the name of its owner, and without a value of a Secret."""
        found, spec = self.declared(resource, resolved), self.spec_of(resource)
        if spec.ownerRef:
            found["ownerRef"] = {"external": referenced_name("spec.ownerRef", spec.ownerRef, resolved)}
        return {"spec": {**found, **declared_options(spec, resolved)}}

    def view(self, live: LiveForeignServer) -> JsonObject:
        """The live server in the terms of the spec."""
        found = msgspec.to_builtins(live)
        owner = {"external": found.pop("owner")}
        return {"spec": {**found, "ownerRef": owner}}

    # --- Verbs -------------------------------------------------------------------------------------------------------

    async def observe(
        self, location: Location, known: str | None = None
    ) -> Absent | Present[LiveForeignServer] | Unchanged:
        """Reads the server; absent where its database is."""
        target, address = await self.target(location), self.address(location)
        body = await self.read(target, address.database, SERVERS, address.name)
        if body is None:
            return Absent()
        row, names = _row.decode(body), target.spec.secretOptions or {}
        options = shown_options(row.options, secret_values(target.spec, target.secrets), names)
        live = LiveForeignServer(**{**msgspec.structs.asdict(row), "options": options})
        # Of what is shown: a digest of the row would be one of secret values, too.
        digest = body_digest(msgspec.json.encode(live))
        return Unchanged() if digest == known else Present(live, digest)

    async def create(self, intent: Intent, wanted: JsonObject) -> None:
        """CREATE SERVER, with its owner and comment, in one transaction."""
        target, address, after = await self.target(intent.location), self.address(intent.location), spec_in(wanted)
        options = wanted_options(after.get("options"), secret_values(target.spec, target.secrets))
        found = [_create_server(address.name, target.spec, options)]
        owner = external_name(after, "ownerRef")
        if owner is not None:
            found.append(ddl.owned_by(_KIND, [address.name], owner))
        if after.get("comment"):
            found.append(ddl.comment(_KIND, [address.name], str(after["comment"])))
        client = await self.client()
        await client.create(target.server, address.database, found, self.doing("create", intent.location))

    async def update(
        self, intent: Intent, wanted: JsonObject, write: PlannedWrite, before: Present[LiveForeignServer]
    ) -> None:
        """ALTER SERVER: version, options, owner and comment, in one transaction."""
        target, address, after = await self.target(intent.location), self.address(intent.location), spec_in(wanted)
        changed, found, secret = (
            changed_fields(write),
            list[ddl.Statement](),
            secret_values(target.spec, target.secrets),
        )
        options = None
        if not changed.isdisjoint(("options", SECRET_OPTIONS)):
            options = option_changes(before.live.options, wanted_options(after.get("options"), secret), secret)
        version = str(after.get("serverVersion") or "") if "serverVersion" in changed else None
        if options is not None or version is not None:
            found.append(_alter_server(address.name, version, options))
        owner = external_name(after, "ownerRef")
        if "ownerRef" in changed and owner is not None:
            found.append(ddl.owned_by(_KIND, [address.name], owner))
        if "comment" in changed:
            found.append(ddl.comment(_KIND, [address.name], str(after.get("comment") or "")))
        client = await self.client()
        await client.update(target.server, address.database, found, self.doing("change", intent.location))

    async def delete(self, location: Location, before: Present[LiveForeignServer], resource: Resource) -> None:
        """DROP SERVER; with what depends on it only where the spec says so."""
        target, address = await self.target(location), self.address(location)
        cascade = bool(target.spec.onDelete and target.spec.onDelete.cascade)
        client, statement = await self.client(), ddl.drop(_KIND, address.name, cascade=cascade)
        await client.delete(target.server, address.database, [statement], self.doing("delete", location))


def _create_server(name: str, spec: PostgresForeignServerSpec, options: dict[str, str]) -> ddl.Statement:
    parts = [sql.SQL("CREATE SERVER {}").format(ddl.name(name))]
    for word, text in (("TYPE", spec.serverType), ("VERSION", spec.serverVersion)):
        if text:
            parts.append(sql.SQL(f" {word} {{}}").format(sql.Literal(text)))
    parts.append(sql.SQL(" FOREIGN DATA WRAPPER {}").format(ddl.name(spec.foreignDataWrapper)))
    return sql.Composed([*parts, option_list(options)])


def _alter_server(name: str, version: str | None, options: sql.Composable | None) -> ddl.Statement:
    parts: list[sql.Composable] = [sql.SQL("ALTER SERVER {}").format(ddl.name(name))]
    if version is not None:
        parts.append(sql.SQL(" VERSION {}").format(sql.Literal(version or None)))
    return sql.Composed(parts if options is None else [*parts, sql.SQL(" "), options])
