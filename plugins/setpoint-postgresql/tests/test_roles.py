"""Roles: passwords that are never read back, memberships, settings, and what becomes of what a role owns."""

import json
from typing import Any

from postgres_server import PostgresServer
from postgres_world import can_log_in, postgres_world, ref, run
from setpoint.kind import RemoteRefused

FROM_SECRET = {"valueFrom": {"secretKeyRef": {"name": "pw", "key": "password"}}}
PASSWORD = "correct horse battery staple 7"


def test_a_password_is_accepted_and_is_in_no_log_no_plan_and_no_status(postgres: PostgresServer) -> None:
    async def test() -> None:
        async with postgres_world(postgres) as world:
            await world.harness.secret("pw", {"password": PASSWORD})
            await world.settle("PostgresRole", "scram-user", {"login": True, "password": FROM_SECRET})

            assert can_log_in(postgres, "scram-user", PASSWORD)
            assert not can_log_in(postgres, "scram-user", f"{PASSWORD}x")
            resource = await world.harness.resource(ref("PostgresRole", "scram-user"))
            assert PASSWORD not in json.dumps(resource.document)
            plan = await world.harness.plan(ref("PostgresRole", "scram-user"))
            assert PASSWORD not in json.dumps(plan.to_data())

    run(test())
    # The log has every statement.
    assert "SCRAM-SHA-256$" in postgres.log
    assert PASSWORD not in postgres.log


def test_a_rotated_secret_becomes_the_password(postgres: PostgresServer) -> None:
    async def test() -> None:
        async with postgres_world(postgres) as world:
            await world.harness.secret("pw", {"password": "first"})
            await world.settle("PostgresRole", "rotated", {"login": True, "password": FROM_SECRET})
            await world.harness.secret("pw", {"password": "second"})

            await world.harness.go_on(ref("PostgresRole", "rotated"))

            assert can_log_in(postgres, "rotated", "second")
            assert not can_log_in(postgres, "rotated", "first")

    run(test())


def test_a_password_set_by_hand_is_drift_where_it_is_always_checked(postgres: PostgresServer) -> None:
    async def test() -> None:
        async with postgres_world(postgres) as world:
            await world.harness.secret("pw", {"password": "declared"})
            spec = {"login": True, "password": FROM_SECRET, "passwordCheck": "Always"}
            await world.settle("PostgresRole", "checked", spec)
            postgres.execute("ALTER ROLE checked PASSWORD 'by hand'")

            assert await world.changes("PostgresRole", "checked") == ["spec.passwordCheck"]
            await world.harness.go_on(ref("PostgresRole", "checked"))
            assert can_log_in(postgres, "checked", "declared")
            assert await world.changes("PostgresRole", "checked") == []

    run(test())


def test_all_that_a_role_has_is_read_back_as_it_was_declared(postgres: PostgresServer) -> None:
    spec = {
        "login": True,
        "createDatabase": True,
        "inherit": False,
        "connectionLimit": 7,
        "validUntil": "2031-02-03T04:05:06+01:00",
        "memberOf": [{"role": "pg_monitor", "admin": True}, {"role": "pg_signal_backend"}],
        "searchPath": ["app", 'My "Schema"', "$user"],
        "settings": {"work_mem": "64MB", "TimeZone": "Europe/Berlin", "session_preload_libraries": "auto_explain, x"},
        "databaseSettings": [{"database": "postgres", "settings": {"statement_timeout": "5s"}}],
        "comment": 'it\'s a "role"; --',
    }

    async def test() -> None:
        async with postgres_world(postgres) as world:
            await world.settle("PostgresRole", "whole", spec)
            # Without its cookie everything is compared.
            await world.harness.go_on(ref("PostgresRole", "whole"), requested=True)

            assert await world.changes("PostgresRole", "whole") == []
            assert (await world.harness.ready(ref("PostgresRole", "whole")))[0] == "True"

    run(test())
    assert (
        postgres.execute("SELECT rolvaliduntil AT TIME ZONE 'UTC' FROM pg_roles WHERE rolname = 'whole'")[0][0].hour
        == 3
    )


def test_options_of_a_membership_are_set_where_the_server_has_them(postgres: PostgresServer) -> None:
    spec = {"memberOf": [{"role": "pg_monitor", "admin": True, "inherit": False, "set": True}]}

    async def test() -> None:
        async with postgres_world(postgres) as world:
            if postgres.session().info.server_version < 160000:
                error = await world.error("PostgresRole", "optional", spec)
                assert "inherit and set are for PostgreSQL 16 and newer" in str(error)
                return
            await world.settle("PostgresRole", "optional", spec)
            assert await world.changes("PostgresRole", "optional") == []
            postgres.execute("GRANT pg_monitor TO optional WITH INHERIT TRUE")
            assert await world.changes("PostgresRole", "optional") == ["spec.memberOf[role=pg_monitor].inherit"]
            await world.settled("PostgresRole", "optional")
            assert await world.changes("PostgresRole", "optional") == []

    run(test())


def test_drift_by_hand_is_put_back_or_kept_by_policy(postgres: PostgresServer) -> None:
    keeping = {"cnrm.cloud.google.com/ignore-unspecified-fields": "true"}

    async def test() -> None:
        async with postgres_world(postgres) as world:
            spec = {"settings": {"work_mem": "8MB"}, "connectionLimit": 1}
            await world.settle("PostgresRole", "strict", spec)
            await world.settle("PostgresRole", "lenient", spec, annotations=keeping)
            for role in ("strict", "lenient"):
                postgres.execute(f"ALTER ROLE {role} CREATEDB CONNECTION LIMIT 2")
                await world.harness.go_on(ref("PostgresRole", role))

    run(test())
    rows = postgres.execute(
        "SELECT rolcreatedb, rolconnlimit FROM pg_roles WHERE rolname IN ('strict', 'lenient') ORDER BY rolname"
    )
    assert rows == [(True, 1), (False, 1)]


def test_a_role_that_owns_something_is_deleted_only_as_its_policy_says(postgres: PostgresServer) -> None:
    postgres.execute("CREATE ROLE heir")
    for database in ("estate_one", "estate_two"):
        postgres.execute(f"CREATE DATABASE {database}")

    async def test() -> None:
        async with postgres_world(postgres) as world:
            for role, policy in (("plain", {}), ("giver", {"reassignOwnedTo": "heir"}), ("taker", {"dropOwned": True})):
                await world.settle("PostgresRole", role, {"onDelete": policy} if policy else {})
                for database in ("estate_one", "estate_two"):
                    postgres.execute(f"CREATE TABLE of_{role} (); ALTER TABLE of_{role} OWNER TO {role}", database)
                    postgres.execute(f"GRANT CREATE ON SCHEMA public TO {role}", database)

            outcomes = {role: await world.delete("PostgresRole", role) for role in ("plain", "giver", "taker")}

            assert isinstance(outcomes["plain"].error, RemoteRefused)
            assert "say in spec.onDelete what becomes of them" in str(outcomes["plain"].error)
            for role in ("giver", "taker"):
                assert await world.harness.is_gone(ref("PostgresRole", role)), outcomes[role]

    run(test())
    for database in ("estate_one", "estate_two"):
        owners = "SELECT tablename, tableowner FROM pg_tables WHERE tablename LIKE 'of_%' ORDER BY 1"
        assert postgres.execute(owners, database) == [("of_giver", "heir"), ("of_plain", "plain")]


def test_a_role_with_createrole_is_enough_and_what_it_may_not_do_is_told(postgres: PostgresServer) -> None:
    postgres.execute("CREATE ROLE manager LOGIN CREATEROLE CREATEDB PASSWORD 'manages'")

    async def test() -> None:
        async with postgres_world(postgres, PGUSER="manager", PGPASSWORD="manages") as world:
            await world.settle("PostgresRole", "managed", {"login": True, "settings": {"work_mem": "8MB"}})
            await world.settle("PostgresRole", "managed", {"login": False, "connectionLimit": 4, "comment": "x"})
            await world.settle("PostgresDatabase", "managed", {"connectionLimit": 5})

            refused = await world.error("PostgresRole", "too-much", {"superuser": True})

            assert isinstance(refused, RemoteRefused)
            assert "create role too-much at localhost:" in str(refused)
            assert "the role that setpoint logs in as lacks a privilege" in str(refused)
            assert await world.harness.is_gone(ref("PostgresRole", "managed")) is False

    run(test())


def test_invalid_specs_are_refused_with_the_field(postgres: PostgresServer) -> None:
    wrong: dict[str, tuple[dict[str, Any], str]] = {
        "validUntil": ({"validUntil": "tomorrow"}, "spec.validUntil is 'tomorrow'"),
        "search-path": ({"settings": {"Search_Path": "a"}}, "write it as spec.searchPath"),
        "twice": ({"settings": {"a": "1", "A": "2"}}, "has a parameter twice"),
        "reserved": ({"resourceID": "pg_mine"}, "PostgreSQL reserves"),
        "long": ({"resourceID": "ü" * 32}, "at most 63 bytes"),
    }

    async def test() -> None:
        async with postgres_world(postgres) as world:
            for name, (spec, message) in wrong.items():
                assert message in str(await world.error("PostgresRole", name.lower(), spec))

    run(test())
