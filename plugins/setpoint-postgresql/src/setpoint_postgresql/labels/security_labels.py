"""PostgresSecurityLabel: the label of an object that a label provider, such as sepgsql or anon, reads."""

from collections.abc import Sequence
from typing import Annotated, Final

import msgspec
from msgspec import UNSET, Struct
from psycopg import sql

from setpoint.kind import (
    Absent,
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
    field_invalid,
    referenced_name,
)
from setpoint_postgresql import statements as ddl
from setpoint_postgresql.catalogs import key_of
from setpoint_postgresql.connection import (
    NAME,
    DatabaseReference,
    PostgresKind,
    PostgresSpec,
    Target,
    body_digest,
    spec_in,
)
from setpoint_postgresql.database_objects import DATABASE_FIELD
from setpoint_postgresql.grant_specs import argument_types
from setpoint_postgresql.labels.labelled_objects import (
    LABELS,
    ROUTINES,
    SHARED,
    LabelledObject,
    check_labelled,
    labelled_target,
)

SCHEMA_FIELD: Final = "spec.object.schemaRef"


class PostgresSecurityLabelSpec(PostgresSpec, frozen=True, kw_only=True):
    """The spec of a PostgresSecurityLabel."""

    databaseRef: Annotated[Maybe[DatabaseReference], Mark.IMMUTABLE] = UNSET
    """The database that the object is in; left out for one of the whole server: a database, a role, a tablespace."""
    object: Annotated[LabelledObject, Mark.IMMUTABLE]
    """What is labelled."""
    provider: Annotated[str, NAME, Mark.IMMUTABLE]
    """The label provider, which has to be loaded where setpoint connects to: by `session_preload_libraries`, say."""
    label: str
    """The label."""


class LiveSecurityLabel(Struct, frozen=True):
    """The live label."""

    label: str


_decoder: Final = msgspec.json.Decoder(LiveSecurityLabel)


class PostgresSecurityLabelKind(PostgresKind[PostgresSecurityLabelSpec, LiveSecurityLabel]):
    """A security label of an object of a PostgreSQL server (SECURITY LABEL)."""

    name = "PostgresSecurityLabel"
    word = "security label"
    short_names = ("pgsecuritylabel",)
    uncompared = (*PostgresKind.uncompared, "databaseRef", "object", "provider")

    def parts(self, resource: Resource, spec: PostgresSecurityLabelSpec, resolved: ResolvedReferences) -> Sequence[str]:
        """`databases/DATABASE/labels/PROVIDER/TYPE/…`; of an object of the whole server, without its database."""
        what = spec.object
        inside: list[str] = []
        if spec.databaseRef:
            inside = ["databases", referenced_name(DATABASE_FIELD, spec.databaseRef, resolved)]
        names = [referenced_name(SCHEMA_FIELD, what.schemaRef, resolved)] if what.schemaRef else []
        names += [what.name, *([what.column] if what.column else [])]
        return [*inside, "labels", spec.provider, what.type, *names, *(f"({one})" for one in _arguments(spec))]

    def check(self, resource: Resource) -> None:
        """ManifestInvalid for an object that is not named, or in the wrong place."""
        super().check(resource)
        spec = self.spec_of(resource)
        check_labelled(resource, spec.object)
        if bool(spec.databaseRef) == (spec.object.type in SHARED):
            raise field_invalid(resource, DATABASE_FIELD, f" is for all objects but {', '.join(SHARED)}")
        if not spec.label:
            raise field_invalid(resource, "spec.label", " is empty: delete the resource to take the label away")

    def declare(self, resource: Resource, resolved: ResolvedReferences) -> JsonObject:
        """The label as declared."""
        return {"spec": {"label": self.spec_of(resource).label}}

    def view(self, live: LiveSecurityLabel) -> JsonObject:
        """The live label in the terms of the spec."""
        return {"spec": {"label": live.label}}

    # --- Verbs -------------------------------------------------------------------------------------------------------

    async def observe(
        self, location: Location, known: str | None = None
    ) -> Absent | Present[LiveSecurityLabel] | Unchanged:
        """Reads the label; absent where its object is, too."""
        target = await self.target(location)
        database, kind, names = self._place(location, target)
        key = key_of(*names, *_arguments(target.spec), target.spec.provider)
        body = await self.read(target, database, LABELS[kind], key)
        if body is None:
            return Absent()
        digest = body_digest(body)
        return Unchanged() if digest == known else Present(_decoder.decode(body), digest)

    async def create(self, intent: Intent, wanted: JsonObject) -> None:
        """SECURITY LABEL … IS."""
        target = await self.target(intent.location)
        statement, database = self._statement(intent.location, target, str(spec_in(wanted)["label"]))
        client = await self.client()
        await client.create(target.server, database, [statement], self.doing("create", intent.location))

    async def update(
        self, intent: Intent, wanted: JsonObject, write: PlannedWrite, before: Present[LiveSecurityLabel]
    ) -> None:
        """SECURITY LABEL … IS another one."""
        target = await self.target(intent.location)
        statement, database = self._statement(intent.location, target, str(spec_in(wanted)["label"]))
        client = await self.client()
        await client.update(target.server, database, [statement], self.doing("change", intent.location))

    async def delete(self, location: Location, before: Present[LiveSecurityLabel], resource: Resource) -> None:
        """SECURITY LABEL … IS NULL."""
        target = await self.target(location)
        statement, database = self._statement(location, target, None)
        await (await self.client()).delete(target.server, database, [statement], self.doing("delete", location))

    def _place(self, location: Location, target: Target[PostgresSecurityLabelSpec]) -> tuple[str, str, Sequence[str]]:
        """The database to connect to, the type of the object, and its names without its arguments."""
        parts = self.address(location).parts
        inside, rest = (parts[1], parts[3:]) if parts[0] == "databases" else (target.server.database, parts[1:])
        return inside, rest[1], rest[2:-1] if _arguments(target.spec) else rest[2:]

    def _statement(
        self, location: Location, target: Target[PostgresSecurityLabelSpec], label: str | None
    ) -> tuple[ddl.Statement, str]:
        """The statement, and the database that it is for."""
        database, kind, names = self._place(location, target)
        statement = sql.SQL("SECURITY LABEL FOR {provider} ON {object} IS {label}").format(
            provider=ddl.name(target.spec.provider),
            object=labelled_target(kind, names, target.spec.object.arguments or ()),
            label=sql.Literal(label),
        )
        return statement, database

    def doing(self, verb: str, location: Location) -> str:
        """What is being done, for messages."""
        address = self.address(location)
        return f"{verb} security label {' '.join(address.parts)} at {address.host}:{address.port}"


def _arguments(spec: PostgresSecurityLabelSpec) -> list[str]:
    """The types of the arguments of a routine as the catalog has them, in one text; none for what is no routine."""
    return [argument_types(spec.object.arguments or ())] if spec.object.type in ROUTINES else []
