"""Publications, subscriptions and slots: data flows, filters keep their words, and no password is shown."""

import json
from collections.abc import Mapping
from typing import Any

import psycopg
import pytest

from postgres_server import PASSWORD, PostgresServer, until
from postgres_world import KINDS, PostgresWorld, postgres_world, ref, run
from setpoint.kind import Location, ManifestInvalid, RemoteRefused, RemoteUnavailable, ResolvedReferences
from setpoint.testing import EngineHarness

SOURCE, SINK = "replication_source", "replication_sink"
SECRET = {"valueFrom": {"secretKeyRef": {"name": "publisher", "key": "password"}}}
ORDERS = {"schema": "app", "name": "orders"}


@pytest.fixture(autouse=True)
def shops(postgres: PostgresServer) -> None:
    """Two databases with the same tables."""
    if postgres.execute(f"SELECT 1 FROM pg_database WHERE datname = '{SINK}'"):
        return
    for database in (SOURCE, SINK):
        postgres.execute(f"CREATE DATABASE {database}")
        postgres.execute(
            "CREATE SCHEMA app; CREATE SCHEMA more; CREATE TABLE more.lines (id integer PRIMARY KEY);"
            "CREATE TABLE app.orders (id integer PRIMARY KEY, status text, price integer)",
            database,
        )


def published(tables: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    """The spec of a publication."""
    return {"databaseRef": {"external": SOURCE}, "tables": tables, **more}


def subscribed(postgres: PostgresServer, **more: Any) -> dict[str, Any]:
    """The spec of a subscription to the other database, by a password; the slot is there."""
    return {
        "databaseRef": {"external": SINK},
        "conninfo": f"host=127.0.0.1 port={postgres.port} user=postgres dbname={SOURCE}",
        "password": SECRET,
        "publications": ["orders"],
        "createSlot": False,
        "slotName": "flow",
        **more,
    }


def offline(**more: Any) -> dict[str, Any]:
    """The spec of a subscription whose publisher is away, and was never asked."""
    return {
        "databaseRef": {"external": SINK},
        "conninfo": "host=127.0.0.1 port=1 user=nemo dbname=away",
        "publications": ["orders"],
        "enabled": False,
        "connect": False,
        "slotName": "away",
        **more,
    }


def forgotten(postgres: PostgresServer, subscription: str) -> None:
    """Drops a subscription without its slot."""
    postgres.execute(
        f"ALTER SUBSCRIPTION {subscription} SET (slot_name = NONE); DROP SUBSCRIPTION {subscription}", SINK
    )


async def status_of(world: PostgresWorld, kind: str, name: str) -> Mapping[str, Any]:
    """The status of a resource."""
    return (await world.harness.resource(ref(kind, name))).status


# --- Publications -----------------------------------------------------------------------------------------------------


def test_columns_filters_and_schemas_are_set_together_and_taken_away(postgres: PostgresServer) -> None:
    query = "SELECT tablename, attnames, rowfilter FROM pg_publication_tables WHERE pubname = 'parts' ORDER BY 1"

    async def test() -> None:
        async with postgres_world(postgres) as world:
            table = {**ORDERS, "columns": ["status", "id"], "where": "status = 'paid'"}
            await world.settle("PostgresPublication", "parts", published([table]))

            assert postgres.execute(query, SOURCE) == [("orders", ["id", "status"], "(status = 'paid'::text)")]

            await world.settle("PostgresPublication", "parts", published([ORDERS], schemas=["more"]))
            assert [row[0] for row in postgres.execute(query, SOURCE)] == ["lines", "orders"]
            await world.settle("PostgresPublication", "parts", published([]))
            assert postgres.execute(query, SOURCE) == []
            await world.delete("PostgresPublication", "parts")

    run(test())


def test_another_filter_is_drift_in_the_words_of_both_and_its_own_is_none(postgres: PostgresServer) -> None:
    async def test() -> None:
        async with postgres_world(postgres) as world:
            spec = published([{**ORDERS, "where": "status='paid'  AND price>5"}])
            await world.settle("PostgresPublication", "filtered", spec)
            # Another process knows it from the status alone.
            kinds = [kind(world.kinds[0].context, world.client) for kind in KINDS]
            other = EngineHarness(kinds, world.harness.store, world.harness.clock)
            assert (await other.plan(ref("PostgresPublication", "filtered"))).changes == ()

            drifted = "ALTER PUBLICATION filtered SET TABLE app.orders WHERE (price > 9)"
            postgres.execute(drifted, SOURCE)

            plan = await world.harness.plan(ref("PostgresPublication", "filtered"))
            assert [(str(one.path), one.before, one.after) for one in plan.changes] == [
                ("spec.tables[schema=app,name=orders].where", "price > 9", "status='paid'  AND price>5")
            ]
            await world.settled("PostgresPublication", "filtered")
            assert await world.changes("PostgresPublication", "filtered") == []
            await world.delete("PostgresPublication", "filtered")

    run(test())


@pytest.mark.parametrize("text", ["true) WITH (publish = ''", "1; DROP TABLE app.orders", "a -- b", "E'\\' OR 1", "("])
def test_a_filter_that_ends_its_statement_is_refused(postgres: PostgresServer, text: str) -> None:
    async def test() -> None:
        async with postgres_world(postgres) as world:
            error = await world.error("PostgresPublication", "broken", published([{**ORDERS, "where": text}]))

            assert isinstance(error, ManifestInvalid)
            assert "write one expression of SQL" in str(error)

    run(test())


# --- Subscriptions and slots ------------------------------------------------------------------------------------------


def test_rows_flow_through_a_slot_of_the_same_server_which_is_kept_while_it_is_used(postgres: PostgresServer) -> None:
    slot = {"plugin": "pgoutput", "databaseRef": {"external": SOURCE}}

    async def test() -> None:
        async with postgres_world(postgres) as world:
            await world.harness.secret("publisher", {"password": PASSWORD})
            await world.settle("PostgresPublication", "orders", published([{**ORDERS, "where": "price > 5"}]))
            await world.settle("PostgresReplicationSlot", "flow", slot)
            await world.settle("PostgresSubscription", "flow", subscribed(postgres))
            postgres.execute("INSERT INTO app.orders VALUES (1, 'paid', 9), (2, 'paid', 3)", SOURCE)

            until(lambda: postgres.execute("SELECT id FROM app.orders", SINK) == [(1,)])
            outcome = await world.delete("PostgresReplicationSlot", "flow")
            assert isinstance(outcome.error, RemoteRefused)
            assert "postgres (flow, from 127.0.0.1) streams from it, as process" in str(outcome.error)
            shown = json.dumps(await status_of(world, "PostgresSubscription", "flow"))
            assert PASSWORD not in shown
            assert await world.changes("PostgresSubscription", "flow") == []

            await world.delete("PostgresSubscription", "flow")
            assert postgres.execute("SELECT slot_name FROM pg_replication_slots WHERE slot_name = 'flow'") == []
            await world.harness.go_on(ref("PostgresReplicationSlot", "flow"))
            assert await world.harness.is_gone(ref("PostgresReplicationSlot", "flow"))
            await world.delete("PostgresPublication", "orders")

    run(test())


def test_a_password_of_another_writer_is_drift_that_shows_neither(postgres: PostgresServer) -> None:
    async def test() -> None:
        async with postgres_world(postgres) as world:
            await world.harness.secret("publisher", {"password": "declared words"})
            policy = {"onDelete": {"slot": "Keep"}}
            await world.settle("PostgresSubscription", "secretive", offline(password=SECRET, **policy))
            other = "host=127.0.0.1 port=1 user=nemo dbname=away password=theirs"
            postgres.execute(f"ALTER SUBSCRIPTION secretive CONNECTION '{other}'", SINK)

            plan = await world.harness.plan(ref("PostgresSubscription", "secretive"))

            changed = [(str(one.path), one.before) for one in plan.changes if str(one.path) == "spec.conninfo"]
            without = "dbname=away host=127.0.0.1 port=1 user=nemo"
            assert changed == [("spec.conninfo", f"{without} password=(another)")]
            assert "theirs" not in str(plan)
            assert "declared words" not in json.dumps([str(one.before) for one in plan.changes])
            await world.settled("PostgresSubscription", "secretive")
            stored = postgres.execute("SELECT subconninfo FROM pg_subscription WHERE subname = 'secretive'", SINK)
            assert psycopg.conninfo.conninfo_to_dict(stored[0][0])["password"] == "declared words"
            await world.delete("PostgresSubscription", "secretive")

    run(test())


def test_a_login_that_cannot_read_the_connection_goes_by_what_was_set(postgres: PostgresServer) -> None:
    if not postgres.execute("SELECT 1 FROM pg_roles WHERE rolname = 'onlooker'"):
        postgres.execute("CREATE ROLE onlooker LOGIN PASSWORD 'eyes'")

    async def test() -> None:
        async with postgres_world(postgres) as world:
            await world.settle("PostgresSubscription", "watched", offline())
            login = {"user": "onlooker", "password": {"value": "eyes"}}
            await world.settle("PostgresSubscription", "watched", offline(connection=login))

            status = await status_of(world, "PostgresSubscription", "watched")

            assert status["publisher"] == "dbname=away host=127.0.0.1 port=1 user=nemo"
            moved = offline(connection=login, conninfo="host=127.0.0.1 port=2 user=nemo dbname=away")
            await world.harness.apply(
                {**(await world.harness.resource(ref("PostgresSubscription", "watched"))).document, "spec": moved}
            )
            assert await world.changes("PostgresSubscription", "watched") == ["spec.conninfo"]
        forgotten(postgres, "watched")

    run(test())


@pytest.mark.parametrize(("policy", "is_gone"), [("Drop", False), ("DropIfReachable", True), ("Keep", True)])
def test_without_its_publisher_a_subscription_goes_by_policy_alone(
    postgres: PostgresServer, policy: str, is_gone: bool
) -> None:
    async def test() -> None:
        async with postgres_world(postgres) as world:
            await world.settle("PostgresSubscription", "lonely", offline(onDelete={"slot": policy}))

            outcome = await world.delete("PostgresSubscription", "lonely")

            assert await world.harness.is_gone(ref("PostgresSubscription", "lonely")) is is_gone
            if not is_gone:
                assert isinstance(outcome.error, RemoteUnavailable)
                assert "set spec.onDelete.slot to DropIfReachable or Keep" in str(outcome.error)
                forgotten(postgres, "lonely")

    run(test())


def test_what_no_subscription_can_be_is_refused(postgres: PostgresServer) -> None:
    async def test() -> None:
        async with postgres_world(postgres) as world:
            wrong = {
                "spec.conninfo has a password": offline(conninfo="host=a password=b"),
                "spec.conninfo is no connection": offline(conninfo="host=a nonsense"),
                "spec.connect is false": offline(enabled=True),
                "spec.publications: name at least one": offline(publications=[]),
            }
            for problem, spec in wrong.items():
                assert problem in str(await world.error("PostgresSubscription", "wrong", spec))

    run(test())


def test_a_physical_slot_shows_from_where_on_it_keeps_wal(postgres: PostgresServer) -> None:
    async def test() -> None:
        async with postgres_world(postgres) as world:
            await world.settle("PostgresReplicationSlot", "replica-a", {"resourceID": "replica_a"})
            await world.settle(
                "PostgresReplicationSlot", "replica-b", {"resourceID": "replica_b", "reserveImmediately": True}
            )

            status = [await status_of(world, "PostgresReplicationSlot", f"replica-{one}") for one in "ab"]

            assert [one["active"] for one in status] == [False, False]
            assert ["restartLsn" in one for one in status] == [False, True]
            for one in "ab":
                await world.delete("PostgresReplicationSlot", f"replica-{one}")

    run(test())


def test_what_no_slot_can_be_is_refused(postgres: PostgresServer) -> None:
    async def test() -> None:
        async with postgres_world(postgres) as world:
            wrong: dict[str, dict[str, Any]] = {
                "metadata.name is 'not-a-slot'": {},
                "a logical slot has a plugin and a databaseRef": {"resourceID": "a", "plugin": "pgoutput"},
                "spec.twoPhase is for logical slots": {"resourceID": "a", "twoPhase": True},
            }
            for problem, spec in wrong.items():
                assert problem in str(await world.error("PostgresReplicationSlot", "not-a-slot", spec))

    run(test())


def test_slots_and_publications_that_are_observed_at_the_same_time_share_queries(postgres: PostgresServer) -> None:
    async def test() -> None:
        async with postgres_world(postgres) as world:
            specs = {"PostgresPublication": published([ORDERS]), "PostgresReplicationSlot": {}}
            for kind in (one for one in world.kinds if one.name in specs):
                locations: list[Location] = []
                for number in range(20):
                    from_spec = await world.harness.apply(
                        {
                            "apiVersion": f"{kind.group}/{kind.version}",
                            "kind": kind.name,
                            "metadata": {"name": f"many{number}", "namespace": "default"},
                            "spec": specs[kind.name],
                        }
                    )
                    locations.append(kind.locate(from_spec, ResolvedReferences()))
                before = world.client.queries

                found = await kind.observe_many(locations)

                assert len(found) == 20
                assert world.client.queries - before == 1

    run(test())
