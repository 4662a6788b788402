"""PostgresFunction: a function or procedure of a database."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
from psycopg import sql

from setpoint.kind import (
    Absent,
    Intent,
    Json,
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
from setpoint_postgresql.catalogs import key_of
from setpoint_postgresql.client import CatalogRow, PostgresClient
from setpoint_postgresql.connection import PostgresKind, body_digest, changed_fields, spec_in, text_setting
from setpoint_postgresql.database_objects import DATABASE_FIELD, external_name
from setpoint_postgresql.routines.expressions import (
    ExpressionForm,
    as_declared,
    check_expression,
    forms_output,
    new_forms,
    recorded_forms,
)
from setpoint_postgresql.routines.function_types import (
    DECODER,
    DEFAULTS,
    FUNCTION,
    FUNCTIONS,
    OF_FUNCTIONS,
    PROCEDURE,
    FunctionOutputs,
    LiveFunction,
    PostgresFunctionSpec,
    arguments_in,
    declared_defaults,
    is_replaceable,
    normalized,
    signature,
)
from setpoint_postgresql.routines.recreation import RECREATE, RecreatableKind
from setpoint_postgresql.server import ObjectAddress
from setpoint_postgresql.settings import SEARCH_PATH, check_settings, normalized_settings, settings_view

_COMPARED: Final = (
    "kind", "language", "body", "volatility", "parallel", "strict", "securityDefiner", "cost", "rows", "comment",
    "onChange",
)  # fmt: skip
_PATH: Final = sql.SQL("SET LOCAL search_path TO {path}")


class PostgresFunctionKind(RecreatableKind[PostgresFunctionSpec, LiveFunction]):
    """A function or procedure in a database of a PostgreSQL server."""

    name = "PostgresFunction"
    word = "function"
    short_names = ("pgfunction",)
    outputs_type = FunctionOutputs
    uncompared = (*PostgresKind.uncompared, "databaseRef", "schemaRef")
    fixed = ("kind", "arguments", "returns", "returnsTable")

    def __init__(self, context: KindContext, client: PostgresClient | None = None) -> None:
        super().__init__(context, client)
        # What the server made of the defaults that this process has sent.
        self._forms: dict[Location, dict[str, ExpressionForm]] = {}

    def parts(self, resource: Resource, spec: PostgresFunctionSpec, resolved: ResolvedReferences) -> Sequence[str]:
        """`databases/DATABASE/schemas/SCHEMA/functions/NAME/(TYPES)`."""
        database = referenced_name(DATABASE_FIELD, spec.databaseRef, resolved)
        schema = referenced_name("spec.schemaRef", spec.schemaRef, resolved)
        return ("databases", database, "schemas", schema, "functions", self.object_name(resource), signature(spec))

    def check(self, resource: Resource) -> None:
        """ManifestInvalid for what no function can be."""
        super().check(resource)
        spec = self.spec_of(resource)
        check_settings(resource, "spec.settings", spec.settings)
        if spec.kind == PROCEDURE:
            wrong = [name for name in OF_FUNCTIONS if resource.spec.get(name) is not None]
            if wrong:
                raise field_invalid(resource, f"spec.{wrong[0]}", " is for functions: a procedure has none")
            if any(one.mode == "OUT" for one in spec.arguments or ()):
                raise field_invalid(resource, "spec.arguments", ": a procedure returns values by INOUT arguments")
        if spec.returns and spec.returnsTable:
            raise field_invalid(resource, "spec.returns", ": write returns or returnsTable, and not both")
        for number, one in enumerate(spec.arguments or ()):
            if isinstance(one.default, str):
                check_expression(resource, f"spec.arguments[{number}].default", one.default)

    def may_replace(self, resource: Resource) -> bool:
        """See SupportsReplace: with other types of arguments it is another function."""
        return self.spec_of(resource).onChange == RECREATE

    def declare(self, resource: Resource, resolved: ResolvedReferences) -> JsonObject:
        """The function as declared, with types and arguments as the catalog writes them."""
        found, spec = normalized_settings(self.declared(resource, resolved)), self.spec_of(resource)
        if spec.ownerRef:
            found["ownerRef"] = {"external": referenced_name("spec.ownerRef", spec.ownerRef, resolved)}
        for name in ("arguments", "returns", "returnsTable"):
            found.pop(name, None)
        return {"spec": {**found, **normalized(spec)}}

    def view(self, live: LiveFunction) -> JsonObject:
        """The live function in the terms of the spec."""
        names = [name for name in _COMPARED if live.kind == FUNCTION or name not in OF_FUNCTIONS]
        found: dict[str, Json] = {name: getattr(live, name) for name in names}
        if live.arguments:
            found["arguments"] = [one.shown for one in live.arguments]
        if live.returnsTable:
            found["returnsTable"] = [dict(one) for one in live.returnsTable]
        if isinstance(live.returns, str):
            found["returns"] = live.returns
        return {"spec": {"ownerRef": {"external": live.owner}, **found, **settings_view([("", live.settings)])}}

    def is_changeable(self, spec: JsonObject, live: JsonObject) -> bool:
        """Another default of an argument is no other argument."""
        return is_replaceable(live, spec)

    # --- Verbs -------------------------------------------------------------------------------------------------------

    async def observe(self, location: Location, known: str | None = None) -> Absent | Present[LiveFunction] | Unchanged:
        """Reads the function; absent where its database or schema is."""
        target, row = await self.target(location), _row(self.address(location))
        body = await self.read(target, row.database, row.catalog, row.key)
        if body is None:
            return Absent()
        live = DECODER.decode(body)
        forms = {**recorded_forms(target.status, DEFAULTS), **self._forms.get(location, {})}.values()
        stored = _stored_defaults(live)
        words = as_declared(forms, stored)
        arguments = [
            msgspec.structs.replace(one, default=words.get(str(number))) for number, one in enumerate(live.arguments, 1)
        ]
        outputs: dict[str, Json] = {DEFAULTS: [*forms_output(forms, stored)]} if stored else {}
        digest = body_digest(msgspec.json.encode((body.decode(), outputs)))
        if digest == known:
            return Unchanged()
        live = msgspec.structs.replace(live, arguments=arguments, onChange=self.on_change(target))
        return Present(live, digest, outputs=outputs)

    async def create(self, intent: Intent, wanted: JsonObject) -> None:
        """CREATE FUNCTION, its owner and its comment, in one transaction."""
        target, row, after = await self.target(intent.location), _row(self.address(intent.location)), spec_in(wanted)
        found = _definition(self.address(intent.location), after, is_new=True)
        client = await self.client()
        body = await client.create_and_read(target.server, found, row, self.doing("create", intent.location))
        self._remember(intent.location, after, body)

    async def update(
        self, intent: Intent, wanted: JsonObject, write: PlannedWrite, before: Present[LiveFunction]
    ) -> None:
        """CREATE OR REPLACE with all of it; what that cannot change is dropped before, in the same transaction."""
        target, address, after = await self.target(intent.location), self.address(intent.location), spec_in(wanted)
        changed, found = changed_fields(write), list[ddl.Statement]()
        if not is_replaceable(spec_in(self.view(before.live)), after):
            found += [_dropped(address), *_definition(address, after, is_new=True)]
        elif not changed <= {"ownerRef", "comment"}:
            found += _definition(address, {**after, "comment": None, "ownerRef": None}, is_new=False)
        if "ownerRef" in changed and (owner := external_name(after, "ownerRef")):
            found.append(_altered(address, owner))
        if "comment" in changed:
            found.append(_comment(address, str(after.get("comment") or "")))
        client, row = await self.client(), _row(address)
        body = await client.update_and_read(target.server, found, row, self.doing("change", intent.location))
        self._remember(intent.location, after, body)

    async def delete(self, location: Location, before: Present[LiveFunction], resource: Resource) -> None:
        """DROP FUNCTION; with what depends on it only where the spec says so."""
        target, address = await self.target(location), self.address(location)
        cascade = bool(target.spec.onDelete and target.spec.onDelete.cascade)
        client, doing = await self.client(), self.doing("delete", location)
        await client.delete(target.server, address.database, [_dropped(address, cascade=cascade)], doing)

    def _remember(self, location: Location, after: JsonObject, body: bytes | None) -> None:
        """What the server made of the defaults that were sent."""
        stored = {} if body is None else _stored_defaults(DECODER.decode(body))
        self._forms[location] = new_forms(declared_defaults(after), stored)


def _stored_defaults(live: LiveFunction) -> dict[str, str]:
    return {str(number): one.default for number, one in enumerate(live.arguments, 1) if one.default is not None}


# --- Statements -------------------------------------------------------------------------------------------------------


def _row(address: ObjectAddress) -> CatalogRow:
    schema, name, types = address.parts[3], address.parts[5], address.parts[6]
    return CatalogRow(address.database, FUNCTIONS, key_of(schema, name, types))


def _routine(address: ObjectAddress) -> ddl.Statement:
    """The name and the types of its arguments, which are names of types: the spec was checked."""
    types = address.parts[6][1:-1]
    return ddl.object_target(FUNCTION, [address.parts[3], address.parts[5]], types.split(", ") if types else [])


def _dropped(address: ObjectAddress, *, cascade: bool = False) -> ddl.Statement:
    return sql.SQL(f"DROP {{routine}}{' CASCADE' if cascade else ''}").format(routine=_if_exists(address))


def _if_exists(address: ObjectAddress) -> sql.Composable:
    return sql.SQL("ROUTINE IF EXISTS ") + sql.Composed(list(_routine(address))[1:])


def _altered(address: ObjectAddress, owner: str) -> ddl.Statement:
    return sql.SQL("ALTER {routine} OWNER TO {owner}").format(routine=_routine(address), owner=ddl.name(owner))


def _comment(address: ObjectAddress, text: str) -> ddl.Statement:
    words = sql.SQL("COMMENT ON {routine} IS {text}")
    return words.format(routine=_routine(address), text=sql.Literal(text or None))


def _definition(address: ObjectAddress, spec: Mapping[str, Json], *, is_new: bool) -> list[ddl.Statement]:
    """What makes the function. Names in its body are looked for in its own schema, when it is checked."""
    path = sql.SQL(", ").join((ddl.name(address.parts[3]), ddl.name("public")))
    words = "CREATE {kind} {name}({arguments})" if is_new else "CREATE OR REPLACE {kind} {name}({arguments})"
    kind = str(spec.get("kind") or FUNCTION)
    parts: list[sql.Composable] = [
        sql.SQL(words).format(
            kind=sql.SQL(kind),
            name=ddl.name(address.parts[3], address.parts[5]),
            arguments=sql.SQL(", ").join(map(_argument, arguments_in(spec))),
        ),
        *_result(spec),
        sql.SQL("LANGUAGE ") + ddl.name(str(spec.get("language") or "plpgsql")),
        *(_attributes(spec) if kind == FUNCTION else []),
        sql.SQL("SECURITY DEFINER" if spec.get("securityDefiner") else "SECURITY INVOKER"),
        *_settings(spec),
        sql.SQL("AS ") + sql.Literal(str(spec["body"])),
    ]
    found = [_PATH.format(path=path), sql.SQL(" ").join(parts), _PATH.format(path=ddl.name("pg_catalog"))]
    if owner := external_name(dict(spec), "ownerRef"):
        found.append(_altered(address, owner))
    if spec.get("comment"):
        found.append(_comment(address, str(spec["comment"])))
    return found


def _argument(argument: Mapping[str, Json]) -> sql.Composable:
    """Mode, name, type and default: types and defaults were checked, and stand as they are."""
    found: list[sql.Composable] = [sql.SQL(str(argument.get("mode") or "IN"))]
    if argument.get("name"):
        found.append(ddl.name(str(argument["name"])))
    found.append(sql.SQL(str(argument["type"])))
    if argument.get("default") is not None:
        found.append(sql.SQL(f"DEFAULT ({argument['default']})"))
    return sql.SQL(" ").join(found)


def _result(spec: Mapping[str, Json]) -> list[sql.Composable]:
    table = spec.get("returnsTable")
    if isinstance(table, list) and table:
        columns = [ddl.name(str(one["name"])) + sql.SQL(f" {one['type']}") for one in table if isinstance(one, Mapping)]
        return [sql.SQL("RETURNS TABLE ({columns})").format(columns=sql.SQL(", ").join(columns))]
    return [sql.SQL(f"RETURNS {spec['returns']}")] if spec.get("returns") else []


def _attributes(spec: Mapping[str, Json]) -> list[sql.Composable]:
    found = [
        str(spec.get("volatility") or "VOLATILE"),
        f"PARALLEL {spec.get('parallel') or 'UNSAFE'}",
        "STRICT" if spec.get("strict") else "CALLED ON NULL INPUT",
    ]
    found += [f"{name.upper()} {spec[name]}" for name in ("cost", "rows") if spec.get(name)]
    return [sql.SQL(one) for one in found]


def _settings(spec: Mapping[str, Json]) -> list[sql.Composable]:
    given, path = spec.get("settings"), spec.get("searchPath")
    values = {name: text_setting(value) for name, value in given.items()} if isinstance(given, Mapping) else {}
    lists: dict[str, list[str]] = {
        name: ddl.parse_names(value) if name in ddl.LIST_SETTINGS else [value] for name, value in values.items()
    }
    if isinstance(path, list) and path:
        lists[SEARCH_PATH] = [str(one) for one in path]
    return [
        sql.SQL("SET {name} = {values}").format(
            name=ddl.name(*name.split(".")), values=sql.SQL(", ").join(map(sql.Literal, listed))
        )
        for name, listed in lists.items()
    ]
