"""A storm of changes by hand, through psql: in the end the world is as declared, and policies are respected."""

import random
from typing import Any

from postgres_server import PostgresServer
from postgres_world import PostgresWorld, postgres_world, ref, run

ROLES = [f"storm-{number}" for number in range(6)]
KEEPING = {"cnrm.cloud.google.com/ignore-unspecified-fields": "true"}
WAVES, STATEMENTS = 8, 40
_STATE = """
SELECT rolname, rolcanlogin, rolconnlimit, rolinherit, rolvaliduntil IS NULL OR rolvaliduntil = 'infinity',
    ARRAY(SELECT g.rolname::text FROM pg_auth_members m JOIN pg_roles g ON g.oid = m.roleid WHERE m.member = r.oid),
    coalesce((SELECT s.setconfig FROM pg_db_role_setting s WHERE s.setrole = r.oid AND s.setdatabase = 0), '{}')
FROM pg_roles r WHERE rolname LIKE 'storm-%' AND rolname <> 'storm-kept' ORDER BY rolname
"""
_ACLS = """
SELECT g.rolname, c.relname, a.privilege_type, a.is_grantable
FROM pg_class c, aclexplode(c.relacl) a JOIN pg_roles g ON g.oid = a.grantee
WHERE c.relnamespace = 'weather'::regnamespace AND g.rolname LIKE 'storm-%' ORDER BY 1, 2, 3
"""


def hand_made(chance: random.Random) -> str:
    """A change that a person could make, sensible or not."""
    role, table = f'"{chance.choice(ROLES)}"', f"weather.{chance.choice(['wind', 'rain'])}"
    other = chance.choice(["pg_monitor", "pg_read_all_data", "pg_signal_backend"])
    privilege = chance.choice(["SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE"])
    return chance.choice(
        [
            f"ALTER ROLE {role} CONNECTION LIMIT {chance.randint(0, 50)};",
            f"ALTER ROLE {role} {chance.choice(['LOGIN', 'NOLOGIN', 'INHERIT', 'NOINHERIT'])};",
            f"ALTER ROLE {role} VALID UNTIL '2040-01-01';",
            f"ALTER ROLE {role} SET work_mem = '{chance.randint(1, 99)}MB';",
            f"ALTER ROLE {role} RESET ALL;",
            f"GRANT {other} TO {role};",
            f"REVOKE {other} FROM {role};",
            f"GRANT {privilege} ON {table} TO {role} {chance.choice(['', 'WITH GRANT OPTION'])};",
            f"REVOKE {privilege} ON {table} FROM {role} CASCADE;",
            f"REVOKE ALL ON ALL TABLES IN SCHEMA weather FROM {role} CASCADE;",
        ]
    )


def role_spec(number: int) -> dict[str, Any]:
    """What the author declares for a role."""
    return {
        "login": number % 2 == 0,
        "connectionLimit": number,
        "memberOf": [{"role": "pg_monitor"}] if number % 3 == 0 else [],
        "settings": {"work_mem": f"{number + 1}MB"},
    }


def grant_spec(role: str, table: str) -> dict[str, Any]:
    """What the author declares for a role and a table: this, and nothing else."""
    return {
        "databaseRef": {"external": "storm"},
        "roleRef": {"name": role},
        "object": {"type": "TABLE", "schemaRef": {"external": "weather"}, "name": table},
        "privileges": [{"privilege": "SELECT"}, {"privilege": "INSERT", "grantOption": table == "wind"}],
        "otherPrivileges": "Revoke",
    }


async def declare(world: PostgresWorld) -> list[tuple[str, str]]:
    """Settles all resources: their kinds and names."""
    declared = []
    for number, role in enumerate(ROLES):
        await world.settle("PostgresRole", role, role_spec(number))
        declared.append(("PostgresRole", role))
        for table in ("wind", "rain"):
            await world.settle("PostgresGrant", f"{role}-{table}", grant_spec(role, table))
            declared.append(("PostgresGrant", f"{role}-{table}"))
    await world.settle("PostgresRole", "storm-kept", {"connectionLimit": 1}, annotations=KEEPING)
    return [*declared, ("PostgresRole", "storm-kept")]


def test_after_a_storm_the_world_is_as_declared(postgres: PostgresServer) -> None:
    chance = random.Random(20)
    postgres.execute("CREATE DATABASE storm")
    postgres.execute("CREATE SCHEMA weather; CREATE TABLE weather.wind (); CREATE TABLE weather.rain ()", "storm")

    async def test() -> None:
        async with postgres_world(postgres) as world:
            declared = await declare(world)
            before = postgres.execute(_STATE), postgres.execute(_ACLS, "storm")
            for _ in range(WAVES):
                script = "\n".join(hand_made(chance) for _ in range(STATEMENTS))
                postgres.psql(f'{script}\nALTER ROLE "storm-kept" CREATEDB CONNECTION LIMIT 9;', "storm")
                assert (postgres.execute(_STATE), postgres.execute(_ACLS, "storm")) != before
                for kind, name in chance.sample(declared, len(declared) // 2):
                    await world.harness.step(ref(kind, name))
            for kind, name in declared:
                await world.settled(kind, name)

            assert (postgres.execute(_STATE), postgres.execute(_ACLS, "storm")) == before
            for kind, name in declared:
                assert await world.changes(kind, name) == []

    run(test())
    kept = "SELECT rolcreatedb, rolconnlimit FROM pg_roles WHERE rolname = 'storm-kept'"
    assert postgres.execute(kept) == [(True, 1)]
