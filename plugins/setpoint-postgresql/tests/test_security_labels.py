"""Security labels pass the lifecycle contract with a provider that the tests compile, for each type of object."""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from label_fixtures import DATABASE, SecurityLabelFixture, make_labelled_world
from label_provider import PROVIDER, NoCompiler
from postgres_contract import PostgresContract
from postgres_server import PostgresServer
from postgres_world import postgres_world, ref, run
from setpoint.kind import DependencyNotReady, RemoteError
from setpoint.testing import KindFixture, LackingPart, LifecycleClaim

KIND = "PostgresSecurityLabel"
_HOUR = "another writer every ten seconds for an hour costs eight writes"
# By the type of an object: how it is named, and what makes it.
OBJECTS: Mapping[str, tuple[Mapping[str, Any], str]] = {
    "VIEW": ({"name": "v"}, "CREATE VIEW app.v AS SELECT 1 AS x"),
    "MATERIALIZED VIEW": ({"name": "m"}, "CREATE MATERIALIZED VIEW app.m AS SELECT 1 AS x"),
    "SEQUENCE": ({"name": "s"}, "CREATE SEQUENCE app.s"),
    "COLUMN": ({"name": "t", "column": "Second"}, 'CREATE TABLE app.t (first integer, "Second" text)'),
    "FUNCTION": (
        {"name": "f", "arguments": ["int", "text[]"]},
        "CREATE FUNCTION app.f(integer, text[]) RETURNS integer LANGUAGE sql AS 'SELECT 1'",
    ),
    "PROCEDURE": ({"name": "p"}, "CREATE PROCEDURE app.p() LANGUAGE sql AS 'SELECT 1'"),
    "AGGREGATE": (
        {"name": "a", "arguments": ["integer"]},
        "CREATE AGGREGATE app.a(integer) (sfunc = int4pl, stype = integer)",
    ),
    "TYPE": ({"name": "c"}, "CREATE TYPE app.c AS (x integer)"),
    "DOMAIN": ({"name": "d"}, "CREATE DOMAIN app.d AS integer"),
    "SCHEMA": ({"name": "app"}, ""),
    "LANGUAGE": ({"name": "plpgsql"}, ""),
    "EVENT TRIGGER": (
        {"name": "e"},
        "CREATE FUNCTION app.e() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN END'; "
        "CREATE EVENT TRIGGER e ON ddl_command_end EXECUTE FUNCTION app.e(); ALTER EVENT TRIGGER e DISABLE",
    ),
    "DATABASE": ({"name": DATABASE}, ""),
    "ROLE": ({"name": "Labelled Role"}, 'CREATE ROLE "Labelled Role"'),
    "TABLESPACE": ({"name": "pg_default"}, ""),
}
ELSEWHERE = ("SCHEMA", "LANGUAGE", "EVENT TRIGGER", "PUBLICATION")
SHARED = ("DATABASE", "ROLE", "TABLESPACE")


@pytest.fixture(scope="module")
def labelled(postgres: PostgresServer) -> PostgresServer:
    """The server, with a database that has the provider; without a C compiler the tests are skipped."""
    try:
        make_labelled_world(postgres)
    except NoCompiler as error:
        if os.environ.get("CI") or os.environ.get("SETPOINT_REQUIRE_POSTGRESQL"):
            raise
        pytest.skip(str(error))
    return postgres


class TestSecurityLabel(PostgresContract):
    fixture = SecurityLabelFixture

    @pytest.fixture
    def new_fixture(self, labelled: PostgresServer) -> Callable[[], KindFixture]:
        return lambda: SecurityLabelFixture(labelled)

    @classmethod
    def cases(cls) -> Sequence[LifecycleClaim | LackingPart]:
        """Of the long ones those about a kill: the others are about what all kinds of the plug-in do the same way."""
        return [one for one in super().cases() if not isinstance(one, LifecycleClaim) or _is_tried(one)]


def _is_tried(claim: LifecycleClaim) -> bool:
    return (not claim.is_long and claim.name != _HOUR) or claim.name.startswith("killed after any await")


def test_every_type_of_object_is_labelled_read_and_unlabelled(labelled: PostgresServer) -> None:
    labelled.execute("CREATE SCHEMA app", DATABASE)
    for _, statement in OBJECTS.values():
        if statement:
            labelled.execute(statement, DATABASE)

    async def test() -> None:
        async with postgres_world(labelled, PGDATABASE=DATABASE) as world:
            for kind, (named, _) in OBJECTS.items():
                schema = {} if kind in (*ELSEWHERE, *SHARED) else {"schemaRef": {"external": "app"}}
                what = {"type": kind, **named, **schema}
                place = {} if kind in SHARED else {"databaseRef": {"external": DATABASE}}
                name = kind.lower().replace(" ", "-")
                await world.settle(KIND, name, {**place, "object": what, "provider": PROVIDER, "label": f"of {kind}"})
                assert await world.changes(KIND, name) == [], kind
            query = "SELECT upper(objtype), label FROM pg_seclabels WHERE label LIKE 'of %'"
            found = dict(labelled.execute(query, DATABASE))
            assert set(found.values()) == {f"of {kind}" for kind in OBJECTS}
            for kind in OBJECTS:
                await world.delete(KIND, kind.lower().replace(" ", "-"))
            assert labelled.execute(query, DATABASE) == []

    run(test())


def test_an_object_that_is_not_there_is_waited_for_and_a_provider_that_is_not_loaded_is_told(
    labelled: PostgresServer,
) -> None:
    table = {"type": "TABLE", "schemaRef": {"external": "public"}, "name": "later"}
    spec = {"databaseRef": {"external": DATABASE}, "object": table, "provider": PROVIDER, "label": "x"}

    async def test() -> None:
        async with postgres_world(labelled) as world:
            assert isinstance(await world.error(KIND, "early", spec), DependencyNotReady)
            labelled.execute("CREATE TABLE later ()", DATABASE)
            await world.harness.go_on(ref(KIND, "early"))
            assert (await world.harness.ready(ref(KIND, "early")))[0] == "True"

            refused = await world.error(KIND, "unloaded", {**spec, "provider": "selinux"})
            assert isinstance(refused, RemoteError)
            assert 'security label provider "selinux" is not loaded' in str(refused)
            shared = {**spec, "object": {"type": "ROLE", "name": "postgres"}}
            assert "spec.databaseRef is for all objects but" in str(await world.error(KIND, "shared", shared))
            bare = {**spec, "object": {"type": "TABLE", "name": "later"}}
            assert "schemaRef is for what is in a schema" in str(await world.error(KIND, "bare", bare))

    run(test())
