"""PostgresPublication: which changes of which tables other servers may subscribe to."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Final, Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType
from psycopg import sql

from setpoint.kind import (
    Absent,
    Default,
    Intent,
    Json,
    JsonObject,
    Keyed,
    KindContext,
    Location,
    ManifestInvalid,
    Mark,
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
from setpoint_postgresql.catalogs import Catalog
from setpoint_postgresql.client import CatalogRow, PostgresClient
from setpoint_postgresql.connection import (
    NAME,
    DatabaseReference,
    PostgresKind,
    PostgresSpec,
    RoleReference,
    Target,
    body_digest,
    changed_fields,
    spec_in,
)
from setpoint_postgresql.database_objects import DATABASE_FIELD, CascadingDeletion, external_name
from setpoint_postgresql.routines.expressions import (
    ExpressionForm,
    as_declared,
    check_expression,
    forms_output,
    new_forms,
    recorded_forms,
)

# In the order in which the catalog has them.
OPERATIONS: Final = ("insert", "update", "delete", "truncate")
_FILTERS: Final = "rowFilters"
_FIRST_VERSION_WITH_FILTERS: Final = 150000


class PublishedTable(SpecStruct, frozen=True):
    """A table of a publication."""

    schema: Annotated[str, NAME]
    """Its schema."""
    name: Annotated[str, NAME]
    """Its name."""
    columns: Maybe[list[Annotated[str, NAME]]] = UNSET
    """The columns that are published; all, when left out. PostgreSQL 15 and newer."""
    where: Maybe[str] = UNSET
    """Which rows are published: an expression of SQL. PostgreSQL 15 and newer."""


class PostgresPublicationSpec(PostgresSpec, frozen=True, kw_only=True):
    """The spec of a PostgresPublication."""

    databaseRef: Annotated[DatabaseReference, Mark.IMMUTABLE]
    """The database that has the tables."""
    ownerRef: Annotated[Maybe[RoleReference], Mark.CHOSEN] = UNSET
    """Its owner; the role that logs in, when left out."""
    allTables: Annotated[Maybe[bool], Default(False), Mark.IMMUTABLE] = UNSET
    """Whether all tables of the database are published, later ones included. It needs a superuser."""
    tables: Annotated[Maybe[list[PublishedTable]], Keyed("schema", "name")] = UNSET
    """The tables that are published."""
    schemas: Maybe[list[Annotated[str, NAME]]] = UNSET
    """The schemas all of whose tables are published, later ones included. PostgreSQL 15 and newer."""
    publish: Annotated[Maybe[list[Literal["insert", "update", "delete", "truncate"]]], Default([*OPERATIONS])] = UNSET
    """Which operations are published."""
    publishViaPartitionRoot: Annotated[Maybe[bool], Default(False)] = UNSET
    """Whether changes of a partition are published as changes of the partitioned table."""
    comment: Annotated[Maybe[str], Default("")] = UNSET
    """Its comment."""
    onDelete: Maybe[CascadingDeletion] = UNSET
    """How it is dropped."""


class PublicationOutputs(Struct, frozen=True):
    """What the status shows of a publication."""

    rowFilters: list[ExpressionForm] = []
    """The row filters as declared, and as the server spells them: another spelling is drift."""


class LivePublishedTable(Struct, frozen=True):
    """A table of the live publication; its filter in the author's words where these are known."""

    schema: str
    name: str
    columns: list[str] | UnsetType | None = UNSET
    where: str | UnsetType | None = UNSET


class LivePublication(Struct, frozen=True):
    """The live publication."""

    name: str
    owner: str
    allTables: bool
    publish: list[str]
    publishViaPartitionRoot: bool
    tables: list[LivePublishedTable] = []
    schemas: list[str] = []
    comment: str = ""


def _publications(details: str, schemas: str) -> str:
    """`details`: what a version has of a table; `schemas`: the schemas of a publication."""
    return f"""
SELECT k.key, json_build_object(
    'version', current_setting('server_version_num')::int, 'name', p.pubname, 'owner', pg_get_userbyid(p.pubowner),
    'allTables', p.puballtables, 'publishViaPartitionRoot', p.pubviaroot,
    'publish', to_json(array_remove(ARRAY[
        CASE WHEN p.pubinsert THEN 'insert' END, CASE WHEN p.pubupdate THEN 'update' END,
        CASE WHEN p.pubdelete THEN 'delete' END, CASE WHEN p.pubtruncate THEN 'truncate' END], NULL)),
    'comment', coalesce(obj_description(p.oid, 'pg_publication'), ''),
    'tables', (
        SELECT coalesce(json_agg(json_build_object('schema', n.nspname, 'name', c.relname{details})
            ORDER BY n.nspname, c.relname), '[]')
        FROM pg_publication_rel r JOIN pg_class c ON c.oid = r.prrelid JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE r.prpubid = p.oid),
    'schemas', {schemas})::text
FROM unnest(%s::text[]) AS k(key) JOIN pg_publication p ON p.pubname = k.key"""


PUBLICATIONS: Final = Catalog(
    "publications",
    {
        0: _publications("", "'[]'::json"),
        _FIRST_VERSION_WITH_FILTERS: _publications(
            """, 'columns', (
            SELECT json_agg(a.attname ORDER BY a.attname) FROM pg_attribute a
            WHERE a.attrelid = r.prrelid AND a.attnum = ANY(r.prattrs)), 'where', pg_get_expr(r.prqual, r.prrelid)""",
            """(SELECT coalesce(json_agg(n.nspname ORDER BY n.nspname), '[]') FROM pg_publication_namespace s
        JOIN pg_namespace n ON n.oid = s.pnnspid WHERE s.pnpubid = p.oid)""",
        ),
    },
)
_decoder: Final = msgspec.json.Decoder(LivePublication)


class PostgresPublicationKind(PostgresKind[PostgresPublicationSpec, LivePublication]):
    """A publication in a database of a PostgreSQL server."""

    name = "PostgresPublication"
    word = "publication"
    short_names = ("pgpublication",)
    outputs_type = PublicationOutputs
    uncompared = (*PostgresKind.uncompared, "databaseRef")

    def __init__(self, context: KindContext, client: PostgresClient | None = None) -> None:
        super().__init__(context, client)
        # What the server made of the filters that this process has sent.
        self._forms: dict[Location, dict[str, ExpressionForm]] = {}

    def parts(self, resource: Resource, spec: PostgresPublicationSpec, resolved: ResolvedReferences) -> Sequence[str]:
        """`databases/DATABASE/publications/NAME`."""
        database = referenced_name(DATABASE_FIELD, spec.databaseRef, resolved)
        return ("databases", database, "publications", self.object_name(resource))

    def check(self, resource: Resource) -> None:
        """ManifestInvalid for what no publication can be."""
        super().check(resource)
        spec = self.spec_of(resource)
        if spec.allTables and (spec.tables or spec.schemas):
            raise field_invalid(resource, "spec.allTables", " has all tables in it: leave out tables and schemas")
        tables = [(one.schema, one.name) for one in spec.tables or ()]
        if len(set(tables)) < len(tables):
            raise field_invalid(resource, "spec.tables", " has a table twice: name each once")
        for one in spec.tables or ():
            if one.columns is not UNSET and not one.columns:
                raise field_invalid(resource, "spec.tables", ": columns is empty: leave it out for all columns")
            if isinstance(one.where, str):
                check_expression(resource, f"spec.tables[schema={one.schema},name={one.name}].where", one.where)

    def declare(self, resource: Resource, resolved: ResolvedReferences) -> JsonObject:
        """The publication as declared; what is a set is sorted as the catalog has it."""
        found, spec = self.declared(resource, resolved), self.spec_of(resource)
        if spec.ownerRef:
            found["ownerRef"] = {"external": referenced_name("spec.ownerRef", spec.ownerRef, resolved)}
        if isinstance(spec.publish, list):
            found["publish"] = [one for one in OPERATIONS if one in spec.publish]
        if isinstance(spec.schemas, list):
            found["schemas"] = [*sorted(set(spec.schemas))]
        if isinstance(spec.tables, list):
            found["tables"] = [_sorted_table(one) for one in spec.tables]
        return {"spec": found}

    def view(self, live: LivePublication) -> JsonObject:
        """The live publication in the terms of the spec."""
        names = ("allTables", "publish", "publishViaPartitionRoot", "comment")
        found: dict[str, Json] = {name: getattr(live, name) for name in names}
        tables: list[Json] = [_present(msgspec.to_builtins(one)) for one in live.tables]
        found |= {"tables": tables} if tables else {}
        found |= {"schemas": [*live.schemas]} if live.schemas else {}
        return {"spec": {"ownerRef": {"external": live.owner}, **found}}

    # --- Verbs -------------------------------------------------------------------------------------------------------

    async def observe(
        self, location: Location, known: str | None = None
    ) -> Absent | Present[LivePublication] | Unchanged:
        """Reads the publication; absent where its database is."""
        target, address = await self.target(location), self.address(location)
        body = await self.read(target, address.database, PUBLICATIONS, address.name)
        if body is None:
            return Absent()
        live, stored = _decoder.decode(body), _stored_filters(_decoder.decode(body))
        forms = {**recorded_forms(target.status, _FILTERS), **self._forms.get(location, {})}.values()
        words = as_declared(forms, stored)
        tables = [msgspec.structs.replace(one, where=words.get(_table_name(one), UNSET)) for one in live.tables]
        outputs: dict[str, Json] = {_FILTERS: [*forms_output(forms, stored)]} if stored else {}
        digest = body_digest(msgspec.json.encode((body.decode(), outputs)))
        if digest == known:
            return Unchanged()
        return Present(msgspec.structs.replace(live, tables=tables), digest, outputs=outputs)

    async def create(self, intent: Intent, wanted: JsonObject) -> None:
        """CREATE PUBLICATION, its owner and its comment, in one transaction."""
        target, address, after = await self.target(intent.location), self.address(intent.location), spec_in(wanted)
        await self._require_version(target, after)
        found = [_create(address.name, after)]
        if owner := external_name(after, "ownerRef"):
            found.append(ddl.owned_by("PUBLICATION", [address.name], owner))
        if after.get("comment"):
            found.append(ddl.comment("PUBLICATION", [address.name], str(after["comment"])))
        row = CatalogRow(address.database, PUBLICATIONS, address.name)
        client = await self.client()
        body = await client.create_and_read(target.server, found, row, self.doing("create", intent.location))
        self._remember(intent.location, after, body)

    async def update(
        self, intent: Intent, wanted: JsonObject, write: PlannedWrite, before: Present[LivePublication]
    ) -> None:
        """What differs, in one transaction: tables and schemas are set together."""
        target, address, after = await self.target(intent.location), self.address(intent.location), spec_in(wanted)
        await self._require_version(target, after)
        changed, found = changed_fields(write), list[ddl.Statement]()
        if not changed.isdisjoint(("tables", "schemas")):
            found += _set_objects(address.name, spec_in(self.view(before.live)), after)
        if not changed.isdisjoint(("publish", "publishViaPartitionRoot")):
            found.append(_altered(address.name, sql.SQL("SET ") + _options(after)))
        owner = external_name(after, "ownerRef")
        if "ownerRef" in changed and owner is not None:
            found.append(ddl.owned_by("PUBLICATION", [address.name], owner))
        if "comment" in changed:
            found.append(ddl.comment("PUBLICATION", [address.name], str(after.get("comment") or "")))
        row = CatalogRow(address.database, PUBLICATIONS, address.name)
        client = await self.client()
        body = await client.update_and_read(target.server, found, row, self.doing("change", intent.location))
        if "tables" in changed:
            self._remember(intent.location, after, body)

    async def delete(self, location: Location, before: Present[LivePublication], resource: Resource) -> None:
        """DROP PUBLICATION; with what depends on it only where the spec says so."""
        target, address = await self.target(location), self.address(location)
        cascade = bool(target.spec.onDelete and target.spec.onDelete.cascade)
        client, statement = await self.client(), ddl.drop("PUBLICATION", address.name, cascade=cascade)
        await client.delete(target.server, address.database, [statement], self.doing("delete", location))

    # --- Parts of them -----------------------------------------------------------------------------------------------

    async def _require_version(self, target: Target[PostgresPublicationSpec], after: Mapping[str, Json]) -> None:
        """ManifestInvalid for what only newer servers have."""
        tables = _tables(after)
        if after.get("schemas") or any("columns" in one or "where" in one for one in tables):
            version = await (await self.client()).version(target.server)
            if version < _FIRST_VERSION_WITH_FILTERS:
                raise ManifestInvalid(
                    "spec.schemas, and columns and where in spec.tables, are for PostgreSQL 15 and newer: "
                    "leave them out"
                )

    def _remember(self, location: Location, after: Mapping[str, Json], body: bytes | None) -> None:
        """What the server made of the filters that were sent."""
        declared = {f"{one['schema']}.{one['name']}": str(one["where"]) for one in _tables(after) if one.get("where")}
        stored = {} if body is None else _stored_filters(_decoder.decode(body))
        self._forms[location] = new_forms(declared, stored)


def _sorted_table(table: PublishedTable) -> dict[str, Json]:
    found: dict[str, Json] = {"schema": table.schema, "name": table.name}
    if table.columns:
        found["columns"] = [*sorted(set(table.columns))]
    if table.where:
        found["where"] = table.where
    return found


def _present(table: dict[str, Json]) -> dict[str, Json]:
    return {name: value for name, value in table.items() if value is not None}


def _table_name(table: LivePublishedTable) -> str:
    return f"{table.schema}.{table.name}"


def _stored_filters(live: LivePublication) -> dict[str, str]:
    return {_table_name(one): one.where for one in live.tables if isinstance(one.where, str)}


# --- Statements -------------------------------------------------------------------------------------------------------


def _tables(spec: Mapping[str, Json]) -> list[Mapping[str, Json]]:
    found = spec.get("tables")
    return [one for one in found if isinstance(one, Mapping)] if isinstance(found, list) else []


def _names(spec: Mapping[str, Json], member: str) -> list[str]:
    found = spec.get(member)
    return [str(one) for one in found] if isinstance(found, list) else []


def _create(publication: str, spec: Mapping[str, Json]) -> ddl.Statement:
    objects: sql.Composable = sql.SQL("")
    if spec.get("allTables"):
        objects = sql.SQL(" FOR ALL TABLES")
    elif _tables(spec) or _names(spec, "schemas"):
        objects = sql.SQL(" FOR ") + _objects(spec)
    return sql.SQL("CREATE PUBLICATION {name}{objects} WITH {options}").format(
        name=ddl.name(publication), objects=objects, options=_options(spec)
    )


def _altered(publication: str, change: sql.Composable) -> ddl.Statement:
    return sql.SQL("ALTER PUBLICATION {name} {change}").format(name=ddl.name(publication), change=change)


def _options(spec: Mapping[str, Json]) -> ddl.Statement:
    operations = ", ".join(_names(spec, "publish") if "publish" in spec else OPERATIONS)
    via_root = "true" if spec.get("publishViaPartitionRoot") else "false"
    return sql.SQL(f"(publish = {{publish}}, publish_via_partition_root = {via_root})").format(
        publish=sql.Literal(operations)
    )


def _set_objects(publication: str, before: Mapping[str, Json], after: Mapping[str, Json]) -> list[ddl.Statement]:
    """SET has to name something: where nothing is left, what was there is dropped."""
    if _tables(after) or _names(after, "schemas"):
        return [_altered(publication, sql.SQL("SET ") + _objects(after))]
    found = []
    if tables := _tables(before):
        names = sql.SQL(", ").join(ddl.name(str(one["schema"]), str(one["name"])) for one in tables)
        found.append(_altered(publication, sql.SQL("DROP TABLE ") + names))
    if schemas := _names(before, "schemas"):
        found.append(_altered(publication, sql.SQL("DROP TABLES IN SCHEMA ") + _listed(schemas)))
    return found


def _objects(spec: Mapping[str, Json]) -> sql.Composable:
    tables, schemas = _tables(spec), _names(spec, "schemas")
    found: list[sql.Composable] = []
    if tables:
        found.append(sql.SQL("TABLE ") + sql.SQL(", ").join(map(_table, tables)))
    if schemas:
        found.append(sql.SQL("TABLES IN SCHEMA ") + _listed(schemas))
    return sql.SQL(", ").join(found)


def _table(table: Mapping[str, Json]) -> sql.Composable:
    found: sql.Composable = ddl.name(str(table["schema"]), str(table["name"]))
    if columns := _names(table, "columns"):
        found = sql.SQL("{table} ({columns})").format(table=found, columns=_listed(columns))
    if where := table.get("where"):
        # It was checked: nothing in it ends the parentheses.
        found = sql.SQL("{table} WHERE ({where})").format(table=found, where=sql.SQL(str(where)))
    return found


def _listed(names: Sequence[str]) -> sql.Composable:
    return sql.SQL(", ").join(map(ddl.name, names))
