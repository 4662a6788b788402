"""Plans: a thousand roles and a thousand grants with few queries, and a reference that is kept as a whole."""

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


def test_an_owner_is_kept_by_the_path_of_its_reference_and_a_path_into_it_is_refused_with_that(
    postgres: PostgresServer,
) -> None:
    for role in ("keeps_it", "takes_it"):
        postgres.execute(f"CREATE ROLE {role}")
    unmanaged = "cnrm.cloud.google.com/unmanaged"
    spec = {"databaseRef": {"external": "postgres"}, "ownerRef": {"external": "keeps_it"}, "comment": "declared"}

    async def test() -> None:
        async with postgres_world(postgres) as world:
            await world.settle("PostgresSchema", "kept-owner", spec, annotations={unmanaged: "spec.ownerRef"})
            postgres.execute('ALTER SCHEMA "kept-owner" OWNER TO takes_it; COMMENT ON SCHEMA "kept-owner" IS NULL')
            assert await world.changes("PostgresSchema", "kept-owner") == ["spec.comment"]
            await world.settled("PostgresSchema", "kept-owner")

            inside = {unmanaged: "spec.ownerRef.external"}
            error = await world.error("PostgresSchema", "into-owner", spec, annotations=inside)
            assert "points into a reference that is one unit: name spec.ownerRef itself" in str(error)

    run(test())
    query = "SELECT pg_get_userbyid(nspowner) FROM pg_namespace WHERE nspname IN ('kept-owner', 'into-owner')"
    assert postgres.execute(query) == [("takes_it",)]
