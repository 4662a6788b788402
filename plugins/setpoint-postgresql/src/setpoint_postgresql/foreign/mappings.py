"""PostgresUserMapping: how a role logs in to a foreign server."""

from collections.abc import Sequence
from typing import Annotated, Final

import msgspec
from msgspec import UNSET, Struct
from psycopg import sql

from setpoint.kind import (
    Absent,
    Intent,
    Json,
    JsonObject,
    KindContext,
    Location,
    Mark,
    Maybe,
    PlannedWrite,
    Present,
    RefersTo,
    ResolvedReferences,
    Resource,
    ResourceReference,
    Unchanged,
    referenced_name,
)
from setpoint_postgresql import statements as ddl
from setpoint_postgresql.acl import PUBLIC
from setpoint_postgresql.catalogs import VERSION_COLUMN, Catalog, key_of
from setpoint_postgresql.client import PostgresClient
from setpoint_postgresql.connection import (
    GROUP,
    DatabaseReference,
    PostgresKind,
    RoleReference,
    Target,
    body_digest,
    spec_in,
)
from setpoint_postgresql.database_objects import DATABASE_FIELD
from setpoint_postgresql.foreign.options import (
    SAME,
    UNREADABLE,
    OptionsSpec,
    check_options,
    declared_options,
    option_changes,
    option_list,
    secret_values,
    shown_options,
    wanted_options,
)

ForeignServerReference = Annotated[ResourceReference, RefersTo(GROUP, "PostgresForeignServer")]
SERVER_FIELD: Final = "spec.serverRef"
ROLE_FIELD: Final = "spec.roleRef"
# The view instead of the table, which only superusers may read. Options are null for those who may not see them.
MAPPINGS: Final = Catalog(
    "user mappings",
    {
        0: f"""
SELECT k.key, json_build_object(
    'version', {VERSION_COLUMN}, 'options', to_json(m.umoptions),
    'mayRead', m.umoptions IS NOT NULL OR r.rolsuper OR m.usename = current_user
        OR (m.umuser = 0 AND pg_has_role(s.srvowner, 'USAGE')))::text
FROM unnest(%s::text[]) AS k(key) JOIN pg_user_mappings m ON m.srvname = (k.key::json->>0)
    AND (m.usename = (k.key::json->>1) OR (m.umuser = 0 AND (k.key::json->>1) = '{PUBLIC}'))
    JOIN pg_foreign_server s ON s.oid = m.srvid JOIN pg_roles r ON r.rolname = current_user"""
    },
)


class PostgresUserMappingSpec(OptionsSpec, frozen=True, kw_only=True):
    """The spec of a PostgresUserMapping."""

    databaseRef: Annotated[DatabaseReference, Mark.IMMUTABLE]
    """The database that the foreign server is in."""
    serverRef: Annotated[ForeignServerReference, Mark.IMMUTABLE]
    """The foreign server."""
    roleRef: Annotated[Maybe[RoleReference], Mark.IMMUTABLE] = UNSET
    """The role that uses it; `external: public` for roles without one of their own. Left out: the role that setpoint
    logs in as."""


class UserMappingRow(Struct, frozen=True):
    """A user mapping as the view of the catalog has it."""

    mayRead: bool
    options: list[str] | None = None


class LiveUserMapping(Struct, frozen=True):
    """The live user mapping. Options that may not be read are as declared once that was sent."""

    options: dict[str, str]
    areRead: bool = True


_row: Final = msgspec.json.Decoder(UserMappingRow)


class PostgresUserMappingKind(PostgresKind[PostgresUserMappingSpec, LiveUserMapping]):
    """A user mapping: how a role of a PostgreSQL server logs in to a foreign server."""

    name = "PostgresUserMapping"
    word = "user mapping"
    short_names = ("pgusermapping",)
    uncompared = (*PostgresKind.uncompared, "databaseRef", "serverRef", "roleRef")

    def __init__(self, context: KindContext, client: PostgresClient | None = None) -> None:
        super().__init__(context, client)
        # The options that were sent to a mapping, where the server does not let them be read: as a tree shows them.
        self._sent: dict[Location, Json] = {}

    def parts(self, resource: Resource, spec: PostgresUserMappingSpec, resolved: ResolvedReferences) -> Sequence[str]:
        """`databases/DATABASE/foreignServers/SERVER/userMappings/ROLE`."""
        database = referenced_name(DATABASE_FIELD, spec.databaseRef, resolved)
        server = referenced_name(SERVER_FIELD, spec.serverRef, resolved)
        own = self.public_address(resource, spec).user
        role = referenced_name(ROLE_FIELD, spec.roleRef, resolved) if spec.roleRef else own
        return ("databases", database, "foreignServers", server, "userMappings", role)

    def check(self, resource: Resource) -> None:
        """ManifestInvalid for an option that is declared twice."""
        super().check(resource)
        check_options(resource, self.spec_of(resource))

    def declare(self, resource: Resource, resolved: ResolvedReferences) -> JsonObject:
        """The options as declared, without a value of a Secret."""
        return {"spec": declared_options(self.spec_of(resource), resolved)}

    def view(self, live: LiveUserMapping) -> JsonObject:
        """The live options in the terms of the spec."""
        return {"spec": {"options": dict(live.options)}}

    # --- Verbs -------------------------------------------------------------------------------------------------------

    async def observe(
        self, location: Location, known: str | None = None
    ) -> Absent | Present[LiveUserMapping] | Unchanged:
        """Reads the mapping; absent where its server is, or its database."""
        target, parts = await self.target(location), self.address(location).parts
        body = await self.read(target, parts[1], MAPPINGS, key_of(parts[3], parts[5]))
        if body is None:
            return Absent()
        row = _row.decode(body)
        live = _live(row, target) if row.mayRead else self._unread(location, target)
        digest = body_digest(msgspec.json.encode(live))
        return Unchanged() if digest == known else Present(live, digest)

    async def create(self, intent: Intent, wanted: JsonObject) -> None:
        """CREATE USER MAPPING."""
        target, parts = await self.target(intent.location), self.address(intent.location).parts
        found = [_statement("CREATE", parts, option_list(_options(target, wanted)))]
        await (await self.client()).create(target.server, parts[1], found, self.doing("create", intent.location))
        self._sent[intent.location] = spec_in(wanted).get("options")

    async def update(
        self, intent: Intent, wanted: JsonObject, write: PlannedWrite, before: Present[LiveUserMapping]
    ) -> None:
        """ALTER USER MAPPING; where its options may not be read, it is made anew, in one transaction."""
        target, parts = await self.target(intent.location), self.address(intent.location).parts
        after, client = _options(target, wanted), await self.client()
        if before.live.areRead:
            sent = secret_values(target.spec, target.secrets)
            changes = option_changes(before.live.options, after, sent)
            found = [] if changes is None else [_statement("ALTER", parts, sql.SQL(" ") + changes)]
        else:
            found = [_statement("DROP", parts, sql.SQL("")), _statement("CREATE", parts, option_list(after))]
        await client.update(target.server, parts[1], found, self.doing("change", intent.location))
        self._sent[intent.location] = spec_in(wanted).get("options")

    def _unread(self, location: Location, target: Target[PostgresUserMappingSpec]) -> LiveUserMapping:
        """A mapping whose options may not be read: as declared once that was sent, by this process or as on record."""
        spec = target.spec
        declared: dict[str, str] = {**(spec.options or {}), **dict.fromkeys(spec.secretOptions or {}, SAME)}
        if target.is_settled or self._sent.get(location) == declared:
            return LiveUserMapping(declared, areRead=False)
        return LiveUserMapping(dict.fromkeys(declared, UNREADABLE) or {UNREADABLE: ""}, areRead=False)

    async def delete(self, location: Location, before: Present[LiveUserMapping], resource: Resource) -> None:
        """DROP USER MAPPING."""
        target, parts = await self.target(location), self.address(location).parts
        found = [_statement("DROP", parts, sql.SQL(""))]
        await (await self.client()).delete(target.server, parts[1], found, self.doing("delete", location))

    def doing(self, verb: str, location: Location) -> str:
        """What is being done, for messages."""
        address = self.address(location)
        _, database, _, server, _, role = address.parts
        return f"{verb} user mapping of {role} for {server} in {database} at {address.host}:{address.port}"


def _live(row: UserMappingRow, target: Target[PostgresUserMappingSpec]) -> LiveUserMapping:
    spec = target.spec
    values = secret_values(spec, target.secrets)
    return LiveUserMapping(shown_options(row.options or (), values, spec.secretOptions or {}))


def _options(target: Target[PostgresUserMappingSpec], wanted: JsonObject) -> dict[str, str]:
    return wanted_options(spec_in(wanted).get("options"), secret_values(target.spec, target.secrets))


def _statement(verb: str, parts: Sequence[str], options: sql.Composable) -> ddl.Statement:
    """CREATE, ALTER or DROP of the mapping at a location; a drop is of one that may be gone already."""
    words = f"{verb} USER MAPPING{' IF EXISTS' if verb == 'DROP' else ''} FOR {{role}} SERVER {{server}}{{options}}"
    return sql.SQL(words).format(role=ddl.grantee(parts[5]), server=ddl.name(parts[3]), options=options)
