"""PostgresDatabase: a database of a server."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Final, Literal

import msgspec
from msgspec import UNSET, Struct

from setpoint.kind import (
    Absent,
    Between,
    Default,
    Int64,
    Intent,
    Json,
    JsonObject,
    Location,
    Mark,
    Maybe,
    Path,
    PlannedWrite,
    PlanOptions,
    Present,
    ResolvedReferences,
    Resource,
    SpecStruct,
    Unchanged,
    referenced_name,
)
from setpoint_postgresql import statements as ddl
from setpoint_postgresql.catalogs import DATABASES
from setpoint_postgresql.connection import (
    NAME,
    PostgresSpec,
    RoleReference,
    body_digest,
    changed_fields,
    spec_in,
)
from setpoint_postgresql.imports import ImportedKind
from setpoint_postgresql.settings import (
    SettingsMap,
    check_settings,
    normalized_settings,
    setting_statements,
    settings_view,
)

# What CREATE DATABASE cannot say: it follows.
_AFTER_CREATION: Final = tuple(Path(("spec", name)) for name in ("settings", "searchPath", "comment"))
_FLAGS: Final[Mapping[str, Json]] = {"isTemplate": False, "allowConnections": True, "connectionLimit": -1}
# What is fixed when a database is created, and the server chooses where the spec is silent.
_LOCALE: Final = ("encoding", "collation", "characterType", "localeProvider", "locale")


class DatabaseDeletion(SpecStruct, frozen=True):
    """How a database is dropped."""

    force: Maybe[bool] = UNSET
    """Whether sessions of others are ended; without it, a database that is in use is not dropped."""


class PostgresDatabaseSpec(PostgresSpec, frozen=True, kw_only=True):
    """The spec of a PostgresDatabase."""

    ownerRef: Annotated[Maybe[RoleReference], Mark.CHOSEN] = UNSET
    """Its owner; the role that logs in, when left out."""
    template: Annotated[Maybe[str], NAME, Mark.IMMUTABLE, Mark.ASKED] = UNSET
    """The database that it is copied from, once; template1 when left out."""
    encoding: Annotated[Maybe[str], Mark.IMMUTABLE, Mark.CHOSEN] = UNSET
    """The character set, such as UTF8; that of the template when left out."""
    collation: Annotated[Maybe[str], Mark.IMMUTABLE, Mark.CHOSEN] = UNSET
    """LC_COLLATE: the order of texts; that of the template when left out."""
    characterType: Annotated[Maybe[str], Mark.IMMUTABLE, Mark.CHOSEN] = UNSET
    """LC_CTYPE: which characters are letters; that of the template when left out."""
    localeProvider: Annotated[Maybe[Literal["libc", "icu", "builtin"]], Mark.IMMUTABLE, Mark.CHOSEN] = UNSET
    """Which library compares texts. PostgreSQL 15 and newer; `builtin` from 17 on."""
    locale: Annotated[Maybe[str], Mark.IMMUTABLE, Mark.CHOSEN] = UNSET
    """The locale of the provider `icu` or `builtin`."""
    tablespace: Annotated[Maybe[str], NAME, Mark.CHOSEN] = UNSET
    """Where its files are; that of the template when left out. A change moves them, and needs it unused."""
    isTemplate: Annotated[Maybe[bool], Default(False)] = UNSET
    """Whether every role that may create databases can copy it."""
    allowConnections: Annotated[Maybe[bool], Default(True)] = UNSET
    """Whether sessions can connect to it."""
    connectionLimit: Annotated[Maybe[Int64], Between(-1, 2147483647), Default(-1)] = UNSET
    """How many connections it may have at once; -1 for any number."""
    searchPath: Maybe[list[Annotated[str, NAME]]] = UNSET
    """The schemas in which its sessions look for names (ALTER DATABASE … SET search_path)."""
    settings: Maybe[SettingsMap] = UNSET
    """Parameters of its sessions (ALTER DATABASE … SET)."""
    comment: Annotated[Maybe[str], Default("")] = UNSET
    """Its comment."""
    onDelete: Maybe[DatabaseDeletion] = UNSET
    """How it is dropped."""


class LiveDatabase(Struct, frozen=True):
    """The live database."""

    name: str
    owner: str
    encoding: str
    collation: str
    characterType: str
    tablespace: str
    localeProvider: str = "libc"
    locale: str = ""
    isTemplate: bool = False
    allowConnections: bool = True
    connectionLimit: int = -1
    comment: str = ""
    settings: list[str] = []


_decoder: Final = msgspec.json.Decoder(LiveDatabase)


class PostgresDatabaseKind(ImportedKind[PostgresDatabaseSpec, LiveDatabase]):
    """A database of a PostgreSQL server."""

    name = "PostgresDatabase"
    word = "database"
    short_names = ("pgdatabase",)

    def parts(self, resource: Resource, spec: PostgresDatabaseSpec, resolved: ResolvedReferences) -> Sequence[str]:
        """`databases/NAME`."""
        return ("databases", self.object_name(resource))

    def check(self, resource: Resource) -> None:
        """ManifestInvalid for what no database can be."""
        super().check(resource)
        check_settings(resource, "spec.settings", self.spec_of(resource).settings)

    def declare(self, resource: Resource, resolved: ResolvedReferences) -> JsonObject:
        """The database as declared, with the name of its owner."""
        found, owner = normalized_settings(self.declared(resource, resolved)), self.spec_of(resource).ownerRef
        if owner:
            found["ownerRef"] = {"external": referenced_name("spec.ownerRef", owner, resolved)}
        return {"spec": found}

    def view(self, live: LiveDatabase) -> JsonObject:
        """The live database in the terms of the spec."""
        names = (*_LOCALE, "tablespace", *_FLAGS, "comment")
        found: dict[str, Json] = {name: getattr(live, name) for name in names}
        settings = settings_view([("", live.settings)])
        return {"spec": {"ownerRef": {"external": live.owner}, **found, **settings}}

    def sending(self, intent: Intent) -> PlanOptions:
        """The creation, then what belongs to the database and not to the statement that creates it."""
        return PlanOptions(after_creation=_AFTER_CREATION)

    # --- Verbs -------------------------------------------------------------------------------------------------------

    async def observe(self, location: Location, known: str | None = None) -> Absent | Present[LiveDatabase] | Unchanged:
        """Reads the database, together with all others that are observed at the same time."""
        target = await self.target(location)
        body = await self.read(target, target.server.database, DATABASES, self.address(location).name)
        if body is None:
            return Absent()
        digest = body_digest(body)
        return Unchanged() if digest == known else Present(_decoder.decode(body), digest)

    async def create(self, intent: Intent, wanted: JsonObject) -> None:
        """CREATE DATABASE: no transaction can contain it."""
        target, database, after = (
            await self.target(intent.location),
            self.address(intent.location).name,
            spec_in(wanted),
        )
        given = ("template", *_LOCALE, "tablespace")
        options: dict[str, object] = {name: after[name] for name in given if after.get(name)}
        options |= {name: after[name] for name, default in _FLAGS.items() if after.get(name, default) != default}
        if owner := _owner(after):
            options["owner"] = owner
        client = await self.client()
        await client.release(target.server, str(options.get("template") or "template1"))
        statement = ddl.create_database(database, options)
        await client.create_alone(target.server, statement, self.doing("create", intent.location))

    async def update(
        self, intent: Intent, wanted: JsonObject, write: PlannedWrite, before: Present[LiveDatabase]
    ) -> None:
        """What differs, in one transaction; a move to another tablespace after it."""
        target, database, after = (
            await self.target(intent.location),
            self.address(intent.location).name,
            spec_in(wanted),
        )
        changed, was = changed_fields(write), spec_in(self.view(before.live))
        kept = {name: after.get(name) if name in changed else was.get(name) for name in {*after, *was}}
        found = ddl.alter_database(database, {name: kept.get(name, _FLAGS[name]) for name in _FLAGS if name in changed})
        found += setting_statements(was, kept, lambda _: ddl.database_subject(database))
        if "ownerRef" in changed and (owner := _owner(after)):
            found.append(ddl.owned_by("DATABASE", [database], owner))
        if "comment" in changed:
            found.append(ddl.comment("DATABASE", [database], str(after.get("comment") or "")))
        client, doing = await self.client(), self.doing("change", intent.location)
        await client.update(target.server, target.server.database, found, doing)
        if "tablespace" in changed and after.get("tablespace"):
            await client.release(target.server, database)
            await client.update_alone(target.server, ddl.move_database(database, str(after["tablespace"])), doing)

    async def delete(self, location: Location, before: Present[LiveDatabase], resource: Resource) -> None:
        """DROP DATABASE; by force only where the spec says so."""
        target, database = await self.target(location), self.address(location).name
        client, doing, policy = await self.client(), self.doing("delete", location), target.spec.onDelete
        if before.live.isTemplate:
            statements = ddl.alter_database(database, {"isTemplate": False})
            await client.delete(target.server, target.server.database, statements, doing)
        await client.release(target.server, database)
        force = bool(policy and policy.force)
        await client.delete_alone(target.server, ddl.drop_database(database, force=force), doing)


def _owner(spec: Mapping[str, Json]) -> str:
    owner = spec.get("ownerRef")
    return str(owner.get("external") or "") if isinstance(owner, Mapping) else ""
