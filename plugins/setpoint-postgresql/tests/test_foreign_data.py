"""Foreign servers and user mappings: data read through them, secret options, and options that may not be read."""

import json
from typing import Any

import psycopg
import pytest

from postgres_server import PostgresServer
from postgres_world import PostgresWorld, postgres_world, ref, run
from setpoint.kind import RemoteRefused

DATABASE = "foreign_data"
IN = {"databaseRef": {"external": DATABASE}}
SERVER = {**IN, "foreignDataWrapper": "postgres_fdw"}
PASSWORD = "the remote password"
FROM_SECRET = {"valueFrom": {"secretKeyRef": {"name": "remote", "key": "password"}}}


@pytest.fixture(scope="module")
def database(postgres: PostgresServer) -> PostgresServer:
    """The server, with a database that has the wrappers, and a role that reads a table as a remote user."""
    postgres.execute(f"CREATE DATABASE {DATABASE}")
    for extension in ("postgres_fdw", "file_fdw"):
        postgres.execute(f"CREATE EXTENSION {extension}", DATABASE)
    postgres.execute(f"CREATE ROLE remote_reader LOGIN PASSWORD '{PASSWORD}'")
    postgres.execute("CREATE ROLE local_reader LOGIN")
    postgres.execute("CREATE TABLE wares (name text); INSERT INTO wares VALUES ('lamp')", DATABASE)
    postgres.execute("GRANT SELECT ON wares TO remote_reader", DATABASE)
    return postgres


def options_of(server: PostgresServer, name: str) -> list[str]:
    rows = server.execute(f"SELECT srvoptions FROM pg_foreign_server WHERE srvname = '{name}'", DATABASE)
    return rows[0][0] or [] if rows else []


def mapping_of(server: PostgresServer, name: str) -> dict[str, dict[str, str]]:
    """The options of each role's mapping for a server."""
    query = f"SELECT usename, umoptions FROM pg_user_mappings WHERE srvname = '{name}'"
    return {role: dict(one.split("=", 1) for one in found or ()) for role, found in server.execute(query, DATABASE)}


async def texts(world: PostgresWorld, kind: str, name: str) -> str:
    """All that the status, the events and a plan say of a resource."""
    found = await world.harness.resource(ref(kind, name))
    events = [event.message for event in await world.harness.events(found.ref)]
    return json.dumps([found.document, events, (await world.harness.plan(found.ref)).to_data()])


def test_data_is_read_through_a_server_and_a_mapping_with_a_password_from_a_secret(database: PostgresServer) -> None:
    remote = {"host": "localhost", "port": str(database.port), "dbname": DATABASE, "sslmode": "require"}

    async def test() -> None:
        async with postgres_world(database) as world:
            await world.harness.secret("remote", {"password": PASSWORD})
            await world.settle("PostgresForeignServer", "shop", {**SERVER, "options": remote})
            mapping = {**IN, "serverRef": {"name": "shop"}, "roleRef": {"external": "local_reader"}}
            # No certificate of a client: where libpq looks for one, the server may not be allowed to look.
            files = {"sslcert": "/nowhere", "sslkey": "/nowhere"}
            secret = {"options": {"user": "remote_reader", **files}, "secretOptions": {"password": FROM_SECRET}}
            await world.settle("PostgresUserMapping", "reader", {**mapping, **secret})

            assert PASSWORD not in await texts(world, "PostgresUserMapping", "reader")
            assert (await world.harness.plan(ref("PostgresUserMapping", "reader"))).is_fast_path

    run(test())
    table = "CREATE FOREIGN TABLE far_wares (name text) SERVER shop OPTIONS (table_name 'wares')"
    database.execute(f"{table}; GRANT SELECT ON far_wares TO local_reader", DATABASE)
    with psycopg.connect(
        host=str(database.folder), port=database.port, dbname=DATABASE, user="local_reader"
    ) as session:
        assert session.execute("SELECT name FROM far_wares").fetchall() == [("lamp",)]


def test_options_are_added_set_and_dropped_and_drift_of_each_is_shown(database: PostgresServer) -> None:
    async def test() -> None:
        async with postgres_world(database) as world:
            kind, at = "PostgresForeignServer", ref("PostgresForeignServer", "drifting")
            spec = {**SERVER, "options": {"host": "a", "port": "1"}, "serverVersion": "9", "serverType": "t"}
            await world.settle(kind, "drifting", spec)
            database.execute(
                "ALTER SERVER drifting VERSION '8' OPTIONS (SET host 'x', DROP port, ADD dbname 'y')", DATABASE
            )

            changes = {str(one.path): (one.before, one.after) for one in (await world.harness.plan(at)).changes}

            assert set(changes) == {
                f"spec.{one}" for one in ("serverVersion", "options.host", "options.port", "options.dbname")
            }
            assert changes["spec.options.host"] == ("x", "a")
            await world.settled(kind, "drifting")
            assert options_of(database, "drifting") == ["host=a", "port=1"]
            quoted = {"host": 'it\'s \\ "quoted"; --', "dbname": "d"}
            await world.settle(kind, "drifting", {**SERVER, "serverType": "t", "options": quoted, "comment": "c"})
            assert options_of(database, "drifting") == ['host=it\'s \\ "quoted"; --', "dbname=d"]
            assert await world.changes(kind, "drifting") == []

    run(test())


def test_a_secret_option_is_rotated_and_drift_of_it_is_put_back_and_never_shown(database: PostgresServer) -> None:
    async def test() -> None:
        async with postgres_world(database) as world:
            kind, at = "PostgresForeignServer", ref("PostgresForeignServer", "hidden")
            await world.harness.secret("remote", {"password": "first"})
            await world.settle(kind, "hidden", {**SERVER, "secretOptions": {"host": FROM_SECRET}})
            await world.harness.secret("remote", {"password": "second"})
            await world.harness.go_on(at)
            assert options_of(database, "hidden") == ["host=second"]

            database.execute("ALTER SERVER hidden OPTIONS (SET host 'by hand')", DATABASE)
            changes = {str(one.path): (one.before, one.after) for one in (await world.harness.plan(at)).changes}

            told = ("(another one than that of its Secret)", "(that of its Secret)")
            assert changes == {"spec.options.host": told}
            shown = await texts(world, kind, "hidden")
            assert "second" not in shown
            assert "by hand" not in shown
            await world.harness.go_on(at)
            assert options_of(database, "hidden") == ["host=second"]
            both = {**SERVER, "options": {"host": "x"}, "secretOptions": {"host": FROM_SECRET}}
            assert "is in spec.options, too" in str(await world.error(kind, "both", both))

    run(test())


def test_a_mapping_is_for_a_role_for_all_roles_or_for_the_one_that_logs_in(database: PostgresServer) -> None:
    mapping = {**IN, "serverRef": {"name": "many"}}

    async def test() -> None:
        async with postgres_world(database) as world:
            await world.settle("PostgresForeignServer", "many", SERVER)
            for name, spec in (("all", {"roleRef": {"external": "public"}}), ("own", {})):
                await world.settle("PostgresUserMapping", name, {**mapping, **spec, "options": {"user": name}})
            assert mapping_of(database, "many") == {"public": {"user": "all"}, "postgres": {"user": "own"}}

            await world.delete("PostgresForeignServer", "many")
            left = await world.harness.ready(ref("PostgresForeignServer", "many"))
            assert "say in spec.onDelete what becomes of them" in left[2]
            await world.delete("PostgresUserMapping", "all")
            assert mapping_of(database, "many") == {"postgres": {"user": "own"}}

    run(test())


def test_options_that_may_not_be_read_are_sent_when_they_are_declared_otherwise(database: PostgresServer) -> None:
    """The owner of a server may write the mappings of other roles, and read none of them."""
    database.execute("CREATE ROLE keeper LOGIN PASSWORD 'keeps'")
    database.execute("GRANT USAGE ON FOREIGN DATA WRAPPER postgres_fdw TO keeper", DATABASE)
    mapping = {**IN, "serverRef": {"name": "kept"}, "roleRef": {"external": "local_reader"}}
    kind, at = "PostgresUserMapping", ref("PostgresUserMapping", "unread")

    def sent() -> Any:
        return mapping_of(database, "kept")["local_reader"]

    async def test() -> None:
        async with postgres_world(database, PGUSER="keeper", PGPASSWORD="keeps") as world:
            await world.harness.secret("remote", {"password": "first"})
            await world.settle("PostgresForeignServer", "kept", SERVER)
            spec = {**mapping, "options": {"user": "a"}, "secretOptions": {"password": FROM_SECRET}}
            await world.settle(kind, "unread", spec)
            assert sent() == {"user": "a", "password": "first"}
            assert await world.changes(kind, "unread") == []

            await world.settle(kind, "unread", {**spec, "options": {"user": "b", "sslpassword": "k"}})
            assert sent() == {"user": "b", "sslpassword": "k", "password": "first"}
            await world.harness.secret("remote", {"password": "second"})
            await world.harness.go_on(at)
            assert sent() == {"user": "b", "sslpassword": "k", "password": "second"}
            await world.settled(kind, "unread")
            assert await world.changes(kind, "unread") == []

    run(test())


def test_a_wrapper_s_own_refusal_is_told_and_dependants_go_only_by_choice(database: PostgresServer) -> None:
    async def test() -> None:
        async with postgres_world(database) as world:
            refused = await world.error("PostgresForeignServer", "wrong", {**SERVER, "options": {"colour": "red"}})
            assert isinstance(refused, RemoteRefused)
            assert 'invalid option "colour"' in str(refused)
            files = {**IN, "foreignDataWrapper": "file_fdw", "onDelete": {"cascade": True}}
            await world.settle("PostgresForeignServer", "files", files)
            table = "CREATE FOREIGN TABLE lines (line text) SERVER files OPTIONS (filename '/nothing')"
            database.execute(table, DATABASE)

            await world.delete("PostgresForeignServer", "files")

            assert await world.harness.is_gone(ref("PostgresForeignServer", "files"))

    run(test())
    assert database.execute("SELECT 1 FROM pg_class WHERE relname = 'lines'", DATABASE) == []
