"""Functions and procedures: what PostgreSQL can replace is replaced, the rest by policy alone."""

import re
from typing import Any, get_type_hints

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from postgres_server import PostgresServer
from postgres_world import postgres_world, ref, run
from setpoint.kind import Mark
from setpoint_postgresql.replication.slot import PostgresReplicationSlotKind
from setpoint_postgresql.routines.expressions import is_expression, plain
from setpoint_postgresql.routines.function import PostgresFunctionKind
from setpoint_postgresql.routines.recreation import RecreatableKind

DATABASE = "functions"


@pytest.fixture
def shop(postgres: PostgresServer) -> PostgresServer:
    """A server with a database of functions, and a table."""
    if not postgres.execute(f"SELECT 1 FROM pg_database WHERE datname = '{DATABASE}'"):
        postgres.execute(f"CREATE DATABASE {DATABASE}")
        postgres.execute(
            "CREATE SCHEMA app; CREATE TABLE app.orders (id integer, name text);INSERT INTO app.orders VALUES (1, 'a')",
            DATABASE,
        )
    return postgres


def function(body: str, **more: Any) -> dict[str, Any]:
    """The spec of a function in SQL."""
    place = {"databaseRef": {"external": DATABASE}, "schemaRef": {"external": "app"}}
    return {**place, "language": "sql", "body": body, **more}


INTEGER = {"name": "i", "type": "int"}
FORMS: dict[str, tuple[dict[str, Any], str, list[tuple[Any, ...]]]] = {
    "table": (
        # `orders` is found in the schema of the function when it is created, and by its path when it runs.
        function(
            "SELECT * FROM orders",
            returnsTable=[{"name": "number", "type": "int4"}, {"name": "label", "type": "text"}],
            searchPath=["app"],
            settings={"work_mem": "8MB"},
            securityDefiner=True,
            volatility="STABLE",
            parallel="SAFE",
            cost=7,
            rows=3,
        ),
        "SELECT * FROM app.table()",
        [(1, "a")],
    ),
    "set": (function("VALUES (1), (2)", returns="setof int"), "SELECT app.set()", [(1,), (2,)]),
    "out": (
        function("SELECT $1 + 1", arguments=[INTEGER, {"name": "o", "type": "bigint", "mode": "OUT"}]),
        "SELECT app.out(1)",
        [(2,)],
    ),
    "variadic": (
        function("SELECT $1[2]", arguments=[{"type": "text[]", "mode": "VARIADIC"}], returns="text"),
        "SELECT app.variadic('a', 'b')",
        [("b",)],
    ),
    "void": (function("SELECT"), "SELECT pg_typeof(app.void())::text", [("void",)]),
    "procedure": (
        function(
            "BEGIN i := i + 1; END", kind="PROCEDURE", language="plpgsql", arguments=[{**INTEGER, "mode": "INOUT"}]
        ),
        "CALL app.procedure(1)",
        [(2,)],
    ),
}


@pytest.mark.parametrize("name", FORMS)
def test_every_form_of_a_function_is_created_and_rests(shop: PostgresServer, name: str) -> None:
    spec, call, answer = FORMS[name]

    async def test() -> None:
        async with postgres_world(shop) as world:
            await world.settle("PostgresFunction", name, {**spec, "comment": "one of many"})

            assert shop.execute(call, DATABASE) == answer
            assert await world.changes("PostgresFunction", name) == []
            await world.settle("PostgresFunction", name, {**spec, "body": f"{spec['body']} "})
            assert await world.changes("PostgresFunction", name) == []
            await world.delete("PostgresFunction", name)
            assert shop.execute(f"SELECT 1 FROM pg_proc WHERE proname = '{name}'", DATABASE) == []

    run(test())


def test_a_default_can_change_and_cannot_be_taken_away(shop: PostgresServer) -> None:
    def with_default(**default: str) -> dict[str, Any]:
        return function("SELECT $1", arguments=[{**INTEGER, **default}], returns="integer")

    async def test() -> None:
        async with postgres_world(shop) as world:
            await world.settle("PostgresFunction", "given", with_default())
            await world.settle("PostgresFunction", "given", with_default(default="length('abc')"))
            assert shop.execute("SELECT app.given()", DATABASE) == [(3,)]
            assert await world.changes("PostgresFunction", "given") == []

            error = await world.error("PostgresFunction", "given", with_default())

            assert "spec.arguments cannot change" in str(error)
            await world.settle("PostgresFunction", "given", {**with_default(), "onChange": "Recreate"})
            await world.delete("PostgresFunction", "given")

    run(test())


def test_another_result_or_name_of_an_argument_is_refused_or_recreated_by_policy(shop: PostgresServer) -> None:
    before = function("SELECT 1", arguments=[INTEGER], returns="integer")
    after = {**before, "arguments": [{**INTEGER, "name": "j"}], "returns": "text", "body": "SELECT 'one'"}

    async def test() -> None:
        async with postgres_world(shop) as world:
            await world.settle("PostgresFunction", "changing", before)

            error = await world.error("PostgresFunction", "changing", after)

            assert 'spec.returns cannot change from "integer" to "text"' in str(error)
            assert shop.execute("SELECT app.changing(1)", DATABASE) == [(1,)]
            await world.settle("PostgresFunction", "changing", {**after, "onChange": "Recreate"})
            assert shop.execute("SELECT app.changing(j => 1)", DATABASE) == [("one",)]
            await world.delete("PostgresFunction", "changing")

    run(test())


def test_other_types_of_arguments_are_another_function(shop: PostgresServer) -> None:
    before = function("SELECT 1", arguments=[INTEGER], returns="integer")
    after = {**before, "arguments": [{"name": "i", "type": "text"}]}
    query = "SELECT oidvectortypes(proargtypes) FROM pg_proc WHERE proname = 'overloaded'"

    async def test() -> None:
        async with postgres_world(shop) as world:
            await world.settle("PostgresFunction", "overloaded", before)

            error = await world.error("PostgresFunction", "overloaded", after)

            assert "cannot move to" in str(error)
            assert shop.execute(query, DATABASE) == [("integer",)]
            await world.settle("PostgresFunction", "overloaded", {**after, "onChange": "Recreate"})
            assert shop.execute(query, DATABASE) == [("text",)]
            await world.delete("PostgresFunction", "overloaded")

    run(test())


@pytest.mark.parametrize("kind", [PostgresFunctionKind, PostgresReplicationSlotKind])
def test_an_api_server_lets_pass_a_change_that_the_policy_may_allow(kind: type[RecreatableKind[Any, Any]]) -> None:
    hints = get_type_hints(kind.spec_type, include_extras=True)

    assert [name for name in kind.fixed if Mark.IMMUTABLE in getattr(hints[name], "__metadata__", ())] == []


def test_a_body_of_another_writer_is_planned_and_put_back(shop: PostgresServer) -> None:
    async def test() -> None:
        async with postgres_world(shop) as world:
            await world.settle("PostgresFunction", "edited", function("SELECT 1", returns="integer"))
            shop.psql("CREATE OR REPLACE FUNCTION app.edited() RETURNS int LANGUAGE sql AS 'SELECT 2'", DATABASE)

            plan = await world.harness.plan(ref("PostgresFunction", "edited"))

            assert [(str(one.path), one.before, one.after) for one in plan.changes] == [
                ("spec.body", "SELECT 2", "SELECT 1")
            ]
            assert plan.decision.value == "drifted"
            await world.settled("PostgresFunction", "edited")
            assert shop.execute("SELECT app.edited()", DATABASE) == [(1,)]
            await world.delete("PostgresFunction", "edited")

    run(test())


def test_what_a_view_uses_goes_with_it_by_policy_alone(shop: PostgresServer) -> None:
    async def test() -> None:
        async with postgres_world(shop) as world:
            spec = function("SELECT 1", returns="integer")
            await world.settle("PostgresFunction", "used", spec)
            shop.execute("CREATE VIEW app.user_of_it AS SELECT app.used()", DATABASE)

            outcome = await world.delete("PostgresFunction", "used")

            assert "say in spec.onDelete what becomes of them" in str(outcome.error)
        async with postgres_world(shop) as world:
            await world.settle("PostgresFunction", "used", {**spec, "onDelete": {"cascade": True}})
            await world.delete("PostgresFunction", "used")
            assert shop.execute("SELECT 1 FROM pg_class WHERE relname = 'user_of_it'", DATABASE) == []

    run(test())


def test_what_no_procedure_can_be_is_refused(shop: PostgresServer) -> None:
    async def test() -> None:
        async with postgres_world(shop) as world:
            wrong: dict[str, dict[str, Any]] = {
                "spec.returns is for functions": {"kind": "PROCEDURE", "returns": "integer"},
                "a procedure returns values by INOUT": {
                    "kind": "PROCEDURE",
                    "arguments": [{"type": "int", "mode": "OUT"}],
                },
                "write returns or returnsTable": {
                    "returns": "integer",
                    "returnsTable": [{"name": "a", "type": "integer"}],
                },
                "spec.arguments[0].default": {"arguments": [{**INTEGER, "default": "1) , j int DEFAULT (2"}]},
            }
            for problem, spec in wrong.items():
                assert problem in str(await world.error("PostgresFunction", "wrong", function("", **spec)))

    run(test())


# --- Expressions ------------------------------------------------------------------------------------------------------

_TEXTS = st.text(st.sampled_from("'\"();-/*eE\\$a \n"), max_size=12)
_QUOTED = re.compile("'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"")


def stays_inside(text: str) -> bool:
    """The same, by taking away what is quoted, and then each pair of parentheses."""
    if "\\" in text and re.search("[eE]'", text):
        return False
    rest = _QUOTED.sub("q", text)
    if re.search("[;$'\"]|--|/\\*", rest) or not text.strip():
        return False
    brackets = re.sub("[^()]", "", rest)
    while "()" in brackets:
        brackets = brackets.replace("()", "")
    return brackets == ""


@pytest.mark.laws
@given(_TEXTS)
@example("')'")
@example("ae'\\' ; a'")
@example("a'' ) (")
def test_an_expression_never_leaves_its_parentheses(text: str) -> None:
    assert is_expression(text) == stays_inside(text)


@pytest.mark.laws
@given(_TEXTS.filter(is_expression))
def test_parentheses_around_the_whole_say_nothing(text: str) -> None:
    assert plain(f"( ({text}) )") == plain(text)
