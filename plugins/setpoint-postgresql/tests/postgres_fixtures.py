"""The fixtures of the six kinds for the lifecycle contract: one object of each on a real server, and another writer."""

from collections.abc import Mapping
from typing import Any, ClassVar

import psycopg

from postgres_server import PASSWORD, PostgresServer
from setpoint import MISSING
from setpoint.kind import Json, Kind
from setpoint.testing import (
    ImmutableChange,
    KindFixture,
    MovedObject,
    Part,
    ReferringSpec,
    Spec,
    SpecifiedField,
    UnspecifiedField,
)
from setpoint_postgresql.client import PostgresClient
from setpoint_postgresql.connection import GROUP, VERSION, PostgresKind
from setpoint_postgresql.database import PostgresDatabaseKind
from setpoint_postgresql.database_objects import PostgresExtensionKind, PostgresSchemaKind
from setpoint_postgresql.role import PostgresRoleKind

# The database of schemas, extensions and grants, and the role that they are about.
DATABASE, OWNER, READER = "contract", "contract_owner", "contract_reader"
_VERBS: Mapping[str, str | None] = {
    "read": "get",
    "create": "create",
    "create_alone": "create",
    "create_and_read": "create",
    "update_and_read": "update",
    "update": "update",
    "update_alone": "update",
    "delete": "delete",
    "delete_alone": "delete",
    # They change nothing, and are parts of a write.
    "release": None,
    "version": None,
    "verifier": None,
    "log_in": None,
}
LACKING: Mapping[Part, str] = {
    Part.LABELS: "PostgreSQL has no labels",
    Part.PROTECTION: "no field of it keeps data from being lost",
    Part.OPERATIONS: "PostgreSQL answers when a statement is done",
    Part.NEW_FIELDS: "the queries name each column of a catalog: a new one is not read",
    Part.OUTPUTS: "its status shows nothing of the object",
    Part.MOVING_OUTPUT: "its status shows nothing of the object",
}


def target(kind: str, name: str, spec: Spec | None = None) -> Mapping[str, Any]:
    """The manifest of another resource of the plug-in."""
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": f"{GROUP}/{VERSION}", "kind": kind, "metadata": metadata, "spec": spec or {}}


class PostgresFixture(KindFixture):
    """What the fixtures share: the server, whose other writer is its superuser, and how calls are counted."""

    verbs = _VERBS
    many_steps = 30
    without: ClassVar[Mapping[Part, str]] = LACKING
    # For each member: the query that reads it, and the statement that sets it.
    members: ClassVar[Mapping[str, tuple[str, str]]] = {}
    database: ClassVar[str] = "postgres"

    def __init__(self, server: PostgresServer) -> None:
        self.server = server

    def environment(self) -> Mapping[str, str]:
        # By the socket, where the server trusts its client: SCRAM has tests of its own.
        return {"PGHOST": str(self.server.folder), "PGPORT": str(self.server.port)}

    def new_kind(self, client: Any) -> Kind[Any, Any]:
        """The kind, whose client takes connections that worlds before it left: to open one costs more than a step."""
        kind = super().new_kind(client)
        assert isinstance(kind, PostgresKind)
        connect, is_read_only = self.server.sessions.connect, client.is_read_only
        kind.new_client = lambda: PostgresClient(is_read_only=is_read_only, connect=connect)  # type: ignore[method-assign] # a kind of a test
        return kind

    async def restart(self) -> None:
        """A new process has new connections."""
        await super().restart()
        self.server.sessions.close()

    def execute(self, statement: str) -> list[tuple[Any, ...]]:
        return self.server.execute(statement, self.database)

    def read(self, member: str) -> Any:
        rows = self.execute(self.members[member][0])
        return rows[0][0] if rows and rows[0][0] is not None else MISSING

    def drift(self, member: str, value: Json) -> None:
        self.execute(self.members[member][1].format(self.literal(value)))

    def literal(self, value: Json) -> str:
        return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)


class RoleFixture(PostgresFixture):
    """A role."""

    kind_type = PostgresRoleKind
    name = "some-role"
    field = SpecifiedField("spec.connectionLimit", 3, 5, 9)
    unspecified = UnspecifiedField("spec.createDatabase", theirs=True, pruned=False)
    unlisted = UnspecifiedField("spec.createRole", theirs=True, pruned=False)
    moved = MovedObject({"connectionLimit": 3, "resourceID": "some-other-role"}, "some-other-role")
    abandoning: ClassVar[Spec] = {"connectionLimit": 3, "deletionPolicy": "ABANDON"}
    with_secret: ClassVar[Spec] = {
        "connectionLimit": 3,
        "login": True,
        "password": {"valueFrom": {"secretKeyRef": {"name": "s", "key": "password"}}},
    }
    without: ClassVar[Mapping[Part, str]] = {
        **LACKING,
        Part.IMMUTABLE: "every attribute of a role can change",
        Part.REFERENCES: "a role refers to no resource",
    }
    members: ClassVar[Mapping[str, tuple[str, str]]] = {
        "connectionLimit": (
            "SELECT rolconnlimit FROM pg_roles WHERE rolname = 'some-role'",
            'ALTER ROLE "some-role" CONNECTION LIMIT {}',
        ),
        "createDatabase": (
            "SELECT rolcreatedb FROM pg_roles WHERE rolname = 'some-role'",
            'ALTER ROLE "some-role" CREATEDB',
        ),
        "createRole": (
            "SELECT rolcreaterole FROM pg_roles WHERE rolname = 'some-role'",
            'ALTER ROLE "some-role" CREATEROLE',
        ),
    }

    def set_up(self) -> None:
        for name in self.objects():
            self.execute(f'DROP ROLE "{name}"')

    def objects(self) -> list[str]:
        rows = self.execute("SELECT rolname FROM pg_roles WHERE rolname LIKE 'some-%' ORDER BY 1")
        return [name for (name,) in rows]

    def create_outside(self, value: Json) -> None:
        self.execute(f'CREATE ROLE "some-role" CONNECTION LIMIT {value}')

    def delete_outside(self) -> None:
        self.execute('DROP ROLE "some-role"')

    def holds_secret(self, text: str) -> bool:
        """By logging in: the password itself cannot be read."""
        login: dict[str, Any] = {"host": "127.0.0.1", "port": self.server.port, "user": "some-role", "password": text}
        try:
            psycopg.connect(**login, dbname="postgres", sslmode="require").close()
        except psycopg.OperationalError:
            return False
        return True


class DatabaseFixture(PostgresFixture):
    """A database."""

    kind_type = PostgresDatabaseKind
    name = "some-database"
    field = SpecifiedField("spec.connectionLimit", 3, 5, 9)
    unspecified = UnspecifiedField("spec.comment", theirs="theirs", pruned="")
    unlisted = UnspecifiedField("spec.allowConnections", theirs=False, pruned=True)
    moved = MovedObject({"connectionLimit": 3, "resourceID": "some-other-database"}, "some-other-database")
    abandoning: ClassVar[Spec] = {"connectionLimit": 3, "deletionPolicy": "ABANDON"}
    immutable = ImmutableChange(
        {"connectionLimit": 3, "encoding": "UTF8"},
        {"connectionLimit": 3, "encoding": "LATIN1"},
        'spec.encoding cannot change from "UTF8" to "LATIN1"',
    )
    referring = ReferringSpec(
        {"connectionLimit": 3, "ownerRef": {"name": OWNER.replace("_", "-")}},
        target("PostgresRole", OWNER.replace("_", "-"), {"resourceID": OWNER}),
        f"reference PostgresRole default/{OWNER.replace('_', '-')}",
    )
    without: ClassVar[Mapping[Part, str]] = {**LACKING, Part.SECRET: "a database has no secret"}
    members: ClassVar[Mapping[str, tuple[str, str]]] = {
        "connectionLimit": (
            "SELECT datconnlimit FROM pg_database WHERE datname = 'some-database'",
            'ALTER DATABASE "some-database" CONNECTION LIMIT {}',
        ),
        "comment": (
            "SELECT coalesce(shobj_description(oid, 'pg_database'), '') FROM pg_database "
            "WHERE datname = 'some-database'",
            'COMMENT ON DATABASE "some-database" IS {}',
        ),
        "allowConnections": (
            "SELECT datallowconn FROM pg_database WHERE datname = 'some-database'",
            'ALTER DATABASE "some-database" ALLOW_CONNECTIONS {}',
        ),
    }

    def set_up(self) -> None:
        make_world(self.server)
        for name in self.objects():
            self.execute(f'DROP DATABASE "{name}" WITH (FORCE)')

    def objects(self) -> list[str]:
        rows = self.execute("SELECT datname FROM pg_database WHERE datname LIKE 'some-%' ORDER BY 1")
        return [name for (name,) in rows]

    def create_outside(self, value: Json) -> None:
        self.execute(f'CREATE DATABASE "some-database" CONNECTION LIMIT {value}')

    def delete_outside(self) -> None:
        self.execute('DROP DATABASE "some-database" WITH (FORCE)')


class SchemaFixture(PostgresFixture):
    """A schema."""

    kind_type = PostgresSchemaKind
    name = "some-schema"
    database = DATABASE
    bare: ClassVar[Spec] = {"databaseRef": {"external": DATABASE}}
    field = SpecifiedField("spec.comment", "one", "two", "three")
    unspecified = UnspecifiedField("spec.ownerRef", theirs={"external": OWNER})
    moved = MovedObject({**bare, "comment": "one", "resourceID": "some-other-schema"}, "some-other-schema")
    abandoning: ClassVar[Spec] = {**bare, "comment": "one", "deletionPolicy": "ABANDON"}
    referring = ReferringSpec(
        {"databaseRef": {"name": DATABASE}, "comment": "one"},
        target("PostgresDatabase", DATABASE),
        f"reference PostgresDatabase default/{DATABASE}",
    )
    without: ClassVar[Mapping[Part, str]] = {
        **LACKING,
        Part.SECRET: "a schema has no secret",
        Part.IMMUTABLE: "all that a schema has can change",
        Part.PRUNING: "an owner that is left out stays: some role has to own a schema",
    }
    members: ClassVar[Mapping[str, tuple[str, str]]] = {
        "comment": (
            "SELECT coalesce(obj_description(oid, 'pg_namespace'), '') FROM pg_namespace WHERE nspname = 'some-schema'",
            'COMMENT ON SCHEMA "some-schema" IS {}',
        ),
        "ownerRef": (
            "SELECT json_build_object('external', pg_get_userbyid(nspowner)) FROM pg_namespace "
            "WHERE nspname = 'some-schema'",
            f'ALTER SCHEMA "some-schema" OWNER TO {OWNER}',
        ),
    }

    def set_up(self) -> None:
        make_world(self.server)
        for name in self.objects():
            self.execute(f'DROP SCHEMA "{name}" CASCADE')

    def objects(self) -> list[str]:
        return [
            name for (name,) in self.execute("SELECT nspname FROM pg_namespace WHERE nspname LIKE 'some-%' ORDER BY 1")
        ]

    def create_outside(self, value: Json) -> None:
        self.execute('CREATE SCHEMA "some-schema"')
        self.drift("comment", value)

    def delete_outside(self) -> None:
        self.execute('DROP SCHEMA "some-schema"')


class ExtensionFixture(PostgresFixture):
    """An extension that comes with PostgreSQL, and can be moved from schema to schema."""

    kind_type = PostgresExtensionKind
    name = "hstore"
    database = DATABASE
    bare: ClassVar[Spec] = {"databaseRef": {"external": DATABASE}}
    field = SpecifiedField("spec.schema", "one", "two", "three")
    unspecified = UnspecifiedField("spec.extensionVersion", theirs="1.4")
    moved = MovedObject({**bare, "schema": "one", "resourceID": "citext"}, "citext")
    abandoning: ClassVar[Spec] = {**bare, "schema": "one", "deletionPolicy": "ABANDON"}
    referring = ReferringSpec(
        {"databaseRef": {"name": DATABASE}, "schema": "one"},
        target("PostgresDatabase", DATABASE),
        f"reference PostgresDatabase default/{DATABASE}",
    )
    outputs: ClassVar[Mapping[str, Json]] = {"defaultVersion": "1.8"}
    without: ClassVar[Mapping[Part, str]] = {
        **{part: why for part, why in LACKING.items() if part not in (Part.OUTPUTS, Part.MOVING_OUTPUT)},
        Part.MOVING_OUTPUT: "the version that a server offers changes with its files alone",
        Part.SECRET: "an extension has no secret",
        Part.IMMUTABLE: "all that an extension has can change",
        Part.PRUNING: "what is left out is chosen by the server, and stays",
    }
    members: ClassVar[Mapping[str, tuple[str, str]]] = {
        "schema": (
            "SELECT n.nspname FROM pg_extension e "
            "JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'hstore'",
            "ALTER EXTENSION hstore SET SCHEMA {}",
        ),
        "extensionVersion": ("SELECT extversion FROM pg_extension WHERE extname = 'hstore'", ""),
    }

    def set_up(self) -> None:
        make_world(self.server)
        for name in self.objects():
            self.execute(f"DROP EXTENSION {name}")

    def objects(self) -> list[str]:
        return [
            name for (name,) in self.execute("SELECT extname FROM pg_extension WHERE extname IN ('hstore', 'citext')")
        ]

    def literal(self, value: Json) -> str:
        return str(value)

    def drift(self, member: str, value: Json) -> None:
        if member == "extensionVersion":
            schema = self.literal(self.read("schema"))
            self.execute(f"DROP EXTENSION hstore; CREATE EXTENSION hstore SCHEMA {schema} VERSION '{value}'")
        else:
            super().drift(member, value)

    def create_outside(self, value: Json) -> None:
        self.execute(f"CREATE EXTENSION hstore SCHEMA {self.literal(value)}")

    def delete_outside(self) -> None:
        self.execute("DROP EXTENSION hstore")


_MADE: set[int] = set()


def make_world(server: PostgresServer) -> None:
    """The database with schemas, tables and roles that the objects are in; made once for each server."""
    if id(server) in _MADE:
        return
    _MADE.add(id(server))
    server.execute(f"CREATE ROLE {OWNER}")
    server.execute(f"CREATE ROLE {READER}")
    server.execute(f"CREATE DATABASE {DATABASE}")
    for schema in ("one", "two", "three"):
        server.execute(f"CREATE SCHEMA {schema} AUTHORIZATION {OWNER}", DATABASE)
    for table in ("orders", "lines"):
        server.execute(f"CREATE TABLE one.{table} (id integer, name text)", DATABASE)


def tcp_connection(server: PostgresServer, **more: Any) -> Spec:
    """A connection over TCP, with the administrator's password from the Secret `admin`."""
    password = {"valueFrom": {"secretKeyRef": {"name": "admin", "key": "password"}}}
    return {"host": "localhost", "port": server.port, "user": "postgres", "password": password, **more}


ADMIN_SECRET: Mapping[str, Any] = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "admin", "namespace": "default"},
    "stringData": {"password": PASSWORD},
}
