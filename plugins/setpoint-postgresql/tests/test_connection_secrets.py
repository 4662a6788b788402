"""Passwords that are generated: kept in a Secret before they are set, never lost, and never set by accident."""

import base64
import json
from collections.abc import Mapping
from typing import Any

import psycopg

from postgres_server import PostgresServer
from postgres_world import PostgresWorld, can_log_in, manifest, postgres_world, ref, run
from setpoint.kind import DependencyInvalid, ResourceRef

SECRET = "connection"
SPEC = {"login": True, "writeConnectionSecretToRef": {"name": SECRET}}


async def entries(world: PostgresWorld, name: str = SECRET) -> dict[str, str]:
    """What the Secret has."""
    found: Any = (await world.harness.resource(ResourceRef("", "Secret", "default", name))).document["data"]
    return {key: base64.b64decode(text).decode() for key, text in found.items()}


async def edit(world: PostgresWorld, changes: Mapping[str, str | None], name: str = SECRET) -> None:
    """Another writer changes the entries of the Secret; None removes one."""
    secret = await world.harness.resource(ResourceRef("", "Secret", "default", name))
    before: Any = secret.document["data"]
    data = {**before, **{key: base64.b64encode((text or "").encode()).decode() for key, text in changes.items()}}
    kept = {key: text for key, text in data.items() if changes.get(key, "") is not None}
    await world.harness.store.replace(secret, {**secret.document, "data": kept})


async def is_there(world: PostgresWorld, name: str = SECRET) -> bool:
    return not await world.harness.is_gone(ResourceRef("", "Secret", "default", name))


def test_a_password_is_generated_and_the_secret_has_all_that_a_client_needs(postgres: PostgresServer) -> None:
    async def test() -> None:
        async with postgres_world(postgres) as world:
            role = ref("PostgresRole", "generated user")._replace(name="generated-user")
            await world.harness.apply(manifest("PostgresRole", role.name, {**SPEC, "resourceID": "generated user/:"}))
            plan = await world.harness.plan(role)
            assert plan.because == f"Secret default/{SECRET} is created first, with a value that is generated"
            assert "spec.password" in [str(change.path) for change in plan.changes]
            assert not await is_there(world)

            await world.harness.go_on(role)

            found = await entries(world)
            address = {"endpoint": "localhost", "port": str(postgres.port), "database": "postgres"}
            assert found == {
                **address,
                "username": "generated user/:",
                "password": found["password"],
                "uri": f"postgresql://generated%20user%2F%3A:{found['password']}@localhost:{postgres.port}/postgres",
            }
            assert len(found["password"]) == 43
            assert can_log_in(postgres, "generated user/:", found["password"])
            psycopg.connect(found["uri"]).close()
            resource = await world.harness.resource(role)
            told = [event.message for event in await world.harness.events(role)]
            assert found["password"] not in json.dumps([resource.document, told, plan.to_data()])
            assert (await world.harness.plan(role)).is_fast_path
            assert found["password"] not in postgres.log

    run(test())


def test_another_writer_s_password_is_set_and_one_that_is_deleted_is_generated_anew(postgres: PostgresServer) -> None:
    async def test() -> None:
        async with postgres_world(postgres) as world:
            role = ref("PostgresRole", "edited")
            await world.settle("PostgresRole", "edited", SPEC)
            first = await entries(world)

            await edit(world, {"password": "by hand", "mine": "stays", "username": "wrong"})
            await world.harness.go_on(role)

            edited = await entries(world)
            assert can_log_in(postgres, "edited", "by hand")
            assert (edited["mine"], edited["username"]) == ("stays", "edited")
            assert "by%20hand@" in edited["uri"]
            made = edited
            for wrong in (None, ""):
                await edit(world, {"password": wrong})
                await world.harness.go_on(role)
                made = await entries(world)
                assert len(made["password"]) == 43
                assert made["mine"] == "stays"
                assert can_log_in(postgres, "edited", made["password"])
            await world.harness.store.delete(ResourceRef("", "Secret", "default", SECRET))
            await world.harness.go_on(role)
            last = await entries(world)
            assert len({first["password"], made["password"], last["password"]}) == 3
            assert can_log_in(postgres, "edited", last["password"])
            assert await world.changes("PostgresRole", "edited") == []

    run(test())


def test_a_secret_that_is_not_the_resource_s_is_neither_written_nor_used(postgres: PostgresServer) -> None:
    async def test() -> None:
        async with postgres_world(postgres) as world:
            await world.harness.secret("taken", {"password": "theirs"})
            await world.settle("PostgresRole", "first-owner", SPEC)
            for name, message in (("taken", "is not a generated one of it"), (SECRET, "belongs to PostgresRole")):
                spec = {"login": True, "writeConnectionSecretToRef": {"name": name}}
                error = await world.error("PostgresRole", f"not-{name}", spec)

                assert isinstance(error, DependencyInvalid)
                assert message in str(error)
            assert await entries(world, "taken") == {"password": "theirs"}
            both = {"writeConnectionSecretToRef": {"name": "free"}, "password": {"value": "x"}}
            assert "leave spec.password out" in str(await world.error("PostgresRole", "both", both))

    run(test())
    assert postgres.execute("SELECT rolname FROM pg_roles WHERE rolname LIKE 'not-%'") == []


def test_the_secret_goes_with_the_resource_and_stays_with_an_abandoned_role(postgres: PostgresServer) -> None:
    async def test() -> None:
        async with postgres_world(postgres) as world:
            await world.settle("PostgresRole", "leaving", SPEC)
            await world.delete("PostgresRole", "leaving")
            assert not await is_there(world)

            await world.settle("PostgresRole", "kept-role", {**SPEC, "deletionPolicy": "ABANDON"})
            before = await entries(world)
            await world.delete("PostgresRole", "kept-role")
            assert await entries(world) == before
            # The one that it was generated for takes it back, with its password.
            await world.settle("PostgresRole", "kept-role", SPEC)
            assert await entries(world) == before
            await world.delete("PostgresRole", "kept-role")
            assert not await is_there(world)

    run(test())


def test_a_role_that_is_only_observed_has_no_secret(postgres: PostgresServer) -> None:
    postgres.execute("CREATE ROLE watched LOGIN")

    async def test() -> None:
        async with postgres_world(postgres) as world:
            observing = {"setpoint.dev/management": "observe"}
            applied = await world.harness.apply(manifest("PostgresRole", "watched", SPEC, annotations=observing))
            await world.harness.step(applied.ref)

            assert (await world.harness.ready(applied.ref))[1] == "Observed"
            assert not await is_there(world)

    run(test())
