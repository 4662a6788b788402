"""A thousand roles and a thousand grants: planned with few queries."""

import sys
import time

from postgres_server import PostgresServer
from postgres_world import manifest, postgres_world, ref, run
from setpoint.kind import Location, ResolvedReferences

MANY = 1_000
GRANT = {
    "databaseRef": {"external": "many"},
    "object": {"type": "SCHEMA", "schemaRef": {"external": "public"}},
    "privileges": [{"privilege": "USAGE"}],
}


def test_a_thousand_roles_and_grants_take_at_most_twenty_queries(postgres: PostgresServer) -> None:
    postgres.execute("CREATE DATABASE many")
    for_all = "DO 'BEGIN FOR n IN 1..{} LOOP EXECUTE format(''{} ROLE %I'', ''many-'' || n); END LOOP; END'"
    postgres.execute(for_all.format(MANY, "CREATE"))

    async def test() -> None:
        async with postgres_world(postgres) as world:
            roles = [f"many-{number}" for number in range(1, MANY + 1)]
            for role in roles:
                await world.harness.apply(manifest("PostgresRole", role, {"connectionLimit": 5}))
                spec = {**GRANT, "roleRef": {"external": role}}
                await world.harness.apply(manifest("PostgresGrant", role, spec))
            refs = [ref(kind, role) for role in roles for kind in ("PostgresRole", "PostgresGrant")]
            begun, queries = time.process_time(), world.client.queries

            plans = await world.harness.plans(refs)

            used, asked = time.process_time() - begun, world.client.queries - queries
            sys.stdout.write(f"{len(refs)} resources planned: {asked} queries, {used:.2f} s of CPU\n")
            assert asked <= 20
            changed = [str(change.path) for role in roles for change in plans[ref("PostgresRole", role)].changes]
            assert changed == ["spec.connectionLimit"] * MANY
            created = [plans[ref("PostgresGrant", role)].decision.value for role in roles]
            assert created == ["create"] * MANY

    run(test())
    # So many roles would slow down other tests.
    postgres.execute(for_all.format(MANY, "DROP"))


def test_objects_that_are_observed_at_the_same_time_share_one_query(postgres: PostgresServer) -> None:
    async def test() -> None:
        async with postgres_world(postgres) as world:
            names = [f"shared-{number}" for number in range(50)]
            kind = world.kinds[0]
            locations: list[Location] = []
            for name in names:
                resource = await world.harness.apply(manifest("PostgresRole", name, {}))
                locations.append(kind.locate(resource, ResolvedReferences()))
            before = world.client.queries

            found = await kind.observe_many(locations)

            assert len(found) == 50
            assert world.client.queries - before == 1

    run(test())
