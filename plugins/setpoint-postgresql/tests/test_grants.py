"""Grants: one resource for one grantee and one object, and other writers beside it."""

from typing import Any

import pytest

from postgres_server import PostgresServer
from postgres_world import PostgresWorld, manifest, postgres_world, ref, run
from setpoint.kind import DependencyNotReady, ManagementConflict, ManifestInvalid

DATABASE = "grants"


@pytest.fixture(autouse=True)
def shop(postgres: PostgresServer) -> None:
    """A database with tables, a sequence and a function; no privileges are granted on them."""
    if not postgres.execute(f"SELECT 1 FROM pg_database WHERE datname = '{DATABASE}'"):
        postgres.execute(f"CREATE DATABASE {DATABASE}")
        postgres.execute("CREATE ROLE clerk")
        postgres.execute("CREATE ROLE auditor")
        postgres.execute(
            "CREATE SCHEMA app; CREATE TABLE app.orders (id integer, name text, price integer);"
            "CREATE TABLE app.lines (id integer); CREATE SEQUENCE app.numbers;"
            "CREATE FUNCTION app.total(integer, text) RETURNS integer LANGUAGE sql AS 'SELECT 1'",
            DATABASE,
        )
    for role in ("clerk", "auditor"):
        postgres.execute(
            f"REVOKE ALL ON ALL TABLES IN SCHEMA app FROM {role} CASCADE; REVOKE ALL ON SCHEMA app FROM {role};"
            f"REVOKE ALL ON ALL SEQUENCES IN SCHEMA app FROM {role};"
            f"REVOKE ALL ON FUNCTION app.total(integer, text) FROM {role}",
            DATABASE,
        )


def grant(privileges: list[dict[str, Any]], role: str = "clerk", **more: Any) -> dict[str, Any]:
    """A spec for the table `orders`, unless another object is named."""
    table = {"type": "TABLE", "schemaRef": {"external": "app"}, "name": "orders"}
    references = {"databaseRef": {"external": DATABASE}, "roleRef": {"external": role}}
    return {**references, "object": table, "privileges": privileges, **more}


def held(postgres: PostgresServer, role: str = "clerk", table: str = "orders") -> list[tuple[str, bool]]:
    """The privileges of a role on a table."""
    query = (
        "SELECT a.privilege_type, a.is_grantable FROM pg_class c, aclexplode(c.relacl) a "
        f"WHERE pg_get_userbyid(a.grantee) = '{role}' AND c.oid = 'app.{table}'::regclass ORDER BY 1"
    )
    return [(name, option) for name, option in postgres.execute(query, DATABASE)]


SELECT, INSERT = {"privilege": "SELECT"}, {"privilege": "INSERT"}


def test_a_second_resource_for_the_same_grant_is_refused_and_both_are_named(postgres: PostgresServer) -> None:
    async def test() -> None:
        async with postgres_world(postgres) as world:
            await world.settle("PostgresGrant", "first", grant([SELECT]))

            error = await world.error("PostgresGrant", "second", grant([INSERT]))

            assert isinstance(error, ManagementConflict)
            assert "PostgresGrant default/first" in str(error)
            assert "grants/clerk/TABLE/app/orders" in str(error)
            await world.settle("PostgresGrant", "of-another-role", grant([INSERT], "auditor"))

    run(test())
    assert held(postgres) == [("SELECT", False)]


def test_what_other_writers_granted_stays_unless_the_resource_is_exclusive(postgres: PostgresServer) -> None:
    async def test() -> None:
        async with postgres_world(postgres) as world:
            await world.settle("PostgresGrant", "shared", grant([SELECT]))
            postgres.execute("GRANT DELETE ON app.orders TO clerk; REVOKE SELECT ON app.orders FROM clerk", DATABASE)
            await world.settled("PostgresGrant", "shared")
            assert held(postgres) == [("DELETE", False), ("SELECT", False)]

            await world.settle("PostgresGrant", "shared", grant([SELECT], otherPrivileges="Revoke"))
            assert held(postgres) == [("SELECT", False)]

    run(test())


def test_a_deleted_resource_takes_back_its_own_privileges_and_no_others(postgres: PostgresServer) -> None:
    async def test() -> None:
        async with postgres_world(postgres) as world:
            await world.settle("PostgresGrant", "ending", grant([SELECT, {**INSERT, "grantOption": True}]))
            postgres.execute("GRANT UPDATE ON app.orders TO clerk", DATABASE)

            await world.delete("PostgresGrant", "ending")

            assert await world.harness.is_gone(ref("PostgresGrant", "ending"))

    run(test())
    assert held(postgres) == [("UPDATE", False)]


def test_a_schema_and_a_table_of_it_are_not_granted_the_same_privilege_by_two_resources(
    postgres: PostgresServer,
) -> None:
    everything = {"type": "TABLE", "schemaRef": {"external": "app"}, "allInSchema": True}

    async def test() -> None:
        async with postgres_world(postgres) as world:
            await world.settle("PostgresGrant", "whole", grant([SELECT], object=everything))
            one = await world.error("PostgresGrant", "one", grant([INSERT, SELECT]))
            # Another privilege is no matter of the first.
            await world.settle("PostgresGrant", "one", grant([INSERT]))
            await world.delete("PostgresGrant", "whole")
            again = await world.error("PostgresGrant", "again", grant([SELECT, INSERT], object=everything))

            assert isinstance(one, ManagementConflict)
            assert "PostgresGrant default/whole" in str(one)
            assert isinstance(again, ManagementConflict)
            assert "PostgresGrant default/one" in str(again)

    run(test())
    assert held(postgres) == [("INSERT", False)]
    assert held(postgres, table="lines") == []


def test_no_privilege_at_all_can_be_declared(postgres: PostgresServer) -> None:
    nothing = grant([], "public", object={"type": "DATABASE"}, otherPrivileges="Revoke")

    async def test() -> None:
        async with postgres_world(postgres) as world:
            await world.settle("PostgresGrant", "closed", nothing)
            assert not postgres.execute(f"SELECT has_database_privilege('clerk', '{DATABASE}', 'CONNECT')")[0][0]
            postgres.execute(f"GRANT CONNECT ON DATABASE {DATABASE} TO PUBLIC")
            await world.settled("PostgresGrant", "closed")

    run(test())
    assert not postgres.execute(f"SELECT has_database_privilege('clerk', '{DATABASE}', 'CONNECT')")[0][0]


def test_columns_the_whole_table_and_back(postgres: PostgresServer) -> None:
    async def test() -> None:
        async with postgres_world(postgres) as world:
            for privileges in (
                [{**SELECT, "columns": ["price", "id"]}, {"privilege": "UPDATE", "columns": ["name"]}],
                [SELECT],
                [{**SELECT, "columns": ["name"], "grantOption": True}],
            ):
                await world.settle("PostgresGrant", "columns", grant(privileges))
                assert await world.changes("PostgresGrant", "columns") == []

    run(test())
    columns = (
        "SELECT t.attname, a.privilege_type, a.is_grantable FROM pg_attribute t, aclexplode(t.attacl) a "
        "WHERE a.grantee = 'clerk'::regrole AND t.attrelid = 'app.orders'::regclass"
    )
    assert postgres.execute(columns, DATABASE) == [("name", "SELECT", True)]
    assert held(postgres) == []


def test_all_tables_of_a_schema_include_those_that_are_created_later(postgres: PostgresServer) -> None:
    everything = {"type": "TABLE", "schemaRef": {"external": "app"}, "allInSchema": True}

    async def test() -> None:
        async with postgres_world(postgres) as world:
            await world.settle("PostgresGrant", "all", grant([SELECT], object=everything))
            postgres.execute("CREATE TABLE app.later ()", DATABASE)
            assert await world.changes("PostgresGrant", "all") == ["spec.privileges[privilege=SELECT]"]

            await world.settled("PostgresGrant", "all")

            assert [held(postgres, table=table) for table in ("orders", "lines", "later")] == [[("SELECT", False)]] * 3
            await world.delete("PostgresGrant", "all")
            assert [held(postgres, table=table) for table in ("orders", "lines", "later")] == [[], [], []]

    run(test())
    postgres.execute("DROP TABLE app.later", DATABASE)


@pytest.mark.parametrize(
    ("what", "privilege", "query"),
    [
        (
            {"type": "SCHEMA", "schemaRef": {"external": "app"}},
            "USAGE",
            "has_schema_privilege('clerk', 'app', 'USAGE')",
        ),
        ({"type": "DATABASE"}, "CREATE", f"has_database_privilege('clerk', '{DATABASE}', 'CREATE')"),
        (
            {"type": "SEQUENCE", "schemaRef": {"external": "app"}, "name": "numbers"},
            "ALL",
            "has_sequence_privilege('clerk', 'app.numbers', 'USAGE, UPDATE')",
        ),
        (
            {"type": "FUNCTION", "schemaRef": {"external": "app"}, "name": "total", "arguments": ["int", "text"]},
            "EXECUTE",
            "has_function_privilege('clerk', 'app.total(integer, text)', 'EXECUTE')",
        ),
        (
            {"type": "FUNCTION", "schemaRef": {"external": "pg_catalog"}, "name": "pg_reload_conf"},
            "EXECUTE",
            "has_function_privilege('clerk', 'pg_reload_conf()', 'EXECUTE')",
        ),
        ({"type": "LANGUAGE", "name": "plpgsql"}, "USAGE", "has_language_privilege('clerk', 'plpgsql', 'USAGE')"),
        (
            {"type": "TYPE", "schemaRef": {"external": "pg_catalog"}, "name": "int4"},
            "USAGE",
            "has_type_privilege('clerk', 'integer', 'USAGE')",
        ),
    ],
    ids=lambda value: value["type"] if isinstance(value, dict) else "",
)
def test_each_type_of_object_can_be_granted_on(
    postgres: PostgresServer, what: dict[str, Any], privilege: str, query: str
) -> None:
    async def test() -> None:
        async with postgres_world(postgres) as world:
            spec = grant([{"privilege": privilege, "grantOption": True}], object=what)
            await world.settle("PostgresGrant", "one", spec)
            assert await world.changes("PostgresGrant", "one") == []
            assert postgres.execute(f"SELECT {query}", DATABASE) == [(True,)]

            await world.delete("PostgresGrant", "one")
            assert await world.harness.is_gone(ref("PostgresGrant", "one"))

    run(test())


def granted_on_by_a_third_role(postgres: PostgresServer) -> None:
    """A dealer may grant on what it holds, and has granted it to the clerk: on a table, a column and a function."""
    if not postgres.execute("SELECT 1 FROM pg_roles WHERE rolname = 'the dealer'"):
        postgres.execute('CREATE ROLE "the dealer"')
        postgres.execute('GRANT USAGE ON SCHEMA app TO "the dealer"', DATABASE)
    postgres.execute(
        'GRANT SELECT, INSERT, UPDATE ON app.orders TO "the dealer" WITH GRANT OPTION;'
        'GRANT EXECUTE ON FUNCTION app.total(integer, text) TO "the dealer" WITH GRANT OPTION;'
        'SET ROLE "the dealer"; GRANT SELECT ON app.orders TO clerk WITH GRANT OPTION;'
        "GRANT UPDATE (name) ON app.orders TO clerk; GRANT INSERT ON app.orders TO clerk;"
        "GRANT EXECUTE ON FUNCTION app.total(integer, text) TO clerk; RESET ROLE",
        DATABASE,
    )


def test_what_a_third_role_granted_is_taken_back_as_that_role(postgres: PostgresServer) -> None:
    granted_on_by_a_third_role(postgres)
    function = {"type": "FUNCTION", "schemaRef": {"external": "app"}, "allInSchema": True}

    async def test() -> None:
        async with postgres_world(postgres) as world:
            # The grant option goes, and all that is not declared.
            await world.settle("PostgresGrant", "third", grant([SELECT], otherPrivileges="Revoke"))
            assert held(postgres) == [("SELECT", False)] * 2
            await world.settle("PostgresGrant", "routines", grant([], object=function, otherPrivileges="Revoke"))
            await world.delete("PostgresGrant", "third")
            assert await world.harness.is_gone(ref("PostgresGrant", "third"))

    run(test())
    assert held(postgres) == []
    assert held(postgres, "the dealer") == [("INSERT", True), ("SELECT", True), ("UPDATE", True)]
    columns = "SELECT attacl FROM pg_attribute WHERE attrelid = 'app.orders'::regclass AND attacl IS NOT NULL"
    assert [row for row in postgres.execute(columns, DATABASE) if "clerk" in str(row)] == []
    routine = "SELECT proacl::text FROM pg_proc WHERE proname = 'total'"
    assert "clerk" not in postgres.execute(routine, DATABASE)[0][0]


def test_what_a_third_role_granted_stays_where_setpoint_may_not_act_as_that_role(postgres: PostgresServer) -> None:
    granted_on_by_a_third_role(postgres)
    if not postgres.execute("SELECT 1 FROM pg_roles WHERE rolname = 'shopkeeper'"):
        postgres.execute("CREATE ROLE shopkeeper LOGIN PASSWORD 'keeps the shop'")
        postgres.execute(f"GRANT CONNECT ON DATABASE {DATABASE} TO shopkeeper")
        postgres.execute("GRANT USAGE ON SCHEMA app TO shopkeeper", DATABASE)
    postgres.execute("ALTER TABLE app.orders OWNER TO shopkeeper", DATABASE)

    async def test() -> None:
        async with postgres_world(postgres, PGUSER="shopkeeper", PGPASSWORD="keeps the shop") as world:
            spec = grant([{**SELECT, "grantOption": True}], otherPrivileges="Revoke")
            await world.harness.apply(manifest("PostgresGrant", "stuck", spec))
            await world.harness.go_on(ref("PostgresGrant", "stuck"))
            assert (await world.harness.ready(ref("PostgresGrant", "stuck")))[1] == "NotConverged"

            postgres.execute('GRANT "the dealer" TO shopkeeper')
            await world.settled("PostgresGrant", "stuck")
            assert (await world.harness.ready(ref("PostgresGrant", "stuck")))[1] == "UpToDate"

    run(test())
    postgres.execute('REVOKE "the dealer" FROM shopkeeper')
    postgres.execute("ALTER TABLE app.orders OWNER TO postgres", DATABASE)
    assert {name for name, _ in held(postgres)} == {"SELECT"}


def test_a_grant_waits_for_its_object(postgres: PostgresServer) -> None:
    missing = {"type": "TABLE", "schemaRef": {"external": "app"}, "name": "not_there"}

    async def test() -> None:
        async with postgres_world(postgres) as world:
            error = await world.error("PostgresGrant", "early", grant([SELECT], object=missing))

            assert isinstance(error, DependencyNotReady)
            assert 'relation "app.not_there" does not exist' in str(error)

    run(test())


def test_what_no_grant_can_be_is_refused(postgres: PostgresServer) -> None:
    table = {"type": "TABLE", "schemaRef": {"external": "app"}, "name": "orders"}
    routine = {"type": "FUNCTION", "schemaRef": {"external": "app"}, "name": "f"}
    wrong: list[tuple[dict[str, Any], str]] = [
        (grant([{"privilege": "EXECUTE"}]), "TABLE has no privilege EXECUTE: write SELECT,"),
        (grant([{"privilege": "ALL"}, SELECT]), "write ALL alone"),
        (grant([]), "spec.privileges is empty"),
        (grant([{"privilege": "DELETE", "columns": ["id"]}]), "columns are for SELECT"),
        (grant([SELECT], object={**table, "allInSchema": True}), ".name is for one object"),
        (grant([SELECT], object={"type": "TABLE", "name": "orders"}), ".schemaRef is for"),
        (grant([{"privilege": "EXECUTE"}], object={**routine, "arguments": ["int) TO public; --"]}), "arguments"),
    ]

    async def test(world: PostgresWorld) -> None:
        for number, (spec, message) in enumerate(wrong):
            error = await world.error("PostgresGrant", f"wrong-{number}", spec)
            assert isinstance(error, ManifestInvalid)
            assert message in str(error)

    async def with_world() -> None:
        async with postgres_world(postgres) as world:
            await test(world)

    run(with_world())
