"""Connections: TLS that is verified, sessions that end, a server that restarts, and what each failure becomes."""

import asyncio
from typing import Any

import psycopg
import pytest

from postgres_fixtures import ADMIN_SECRET, tcp_connection
from postgres_server import PASSWORD, PostgresServer, certificates
from postgres_world import postgres_world, ref, run
from setpoint.kind import (
    AlreadyExists,
    DependencyNotReady,
    RemoteConflict,
    RemoteInvalid,
    RemoteRefused,
    RemoteUnavailable,
)
from setpoint_postgresql.catalogs import ROLES
from setpoint_postgresql.client import Login, PostgresClient
from setpoint_postgresql.connections import Access
from setpoint_postgresql.failures import DatabaseNotFound, translated
from setpoint_postgresql.server import Server, TlsFiles

_OURS = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'setpoint'"
_END_OURS = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'setpoint'"
# The same, and waits until they have ended: before that a session still takes a statement.
_END_OURS_NOW = _END_OURS.replace("(pid)", "(pid, 30000)")


def administrator(server: PostgresServer, **tls: str) -> Server:
    return Server("localhost", server.port, password=PASSWORD, tls=TlsFiles(**tls))


@pytest.mark.parametrize("mode", ["verify-ca", "verify-full"])
def test_a_verified_server_is_one_whose_certificate_the_authority_signed(postgres: PostgresServer, mode: str) -> None:
    async def test() -> None:
        async with postgres_world(postgres) as world:
            await world.harness.apply(ADMIN_SECRET)
            own = {"mode": mode, "authority": {"value": certificates().authority}}
            other = {"mode": mode, "authority": {"value": certificates("another authority").authority}}
            await world.settle("PostgresRole", mode, {"connection": tcp_connection(postgres, tls=own)})

            error = await world.error("PostgresRole", f"{mode}-2", {"connection": tcp_connection(postgres, tls=other)})

            assert isinstance(error, RemoteRefused)
            assert "certificate verify failed" in str(error)

    run(test())
    assert postgres.execute(f"SELECT count(*) FROM pg_roles WHERE rolname LIKE '{mode}%'") == [(1,)]


def test_a_wrong_password_is_refused_and_is_not_told(postgres: PostgresServer) -> None:
    async def test() -> None:
        async with postgres_world(postgres, PGPASSWORD="not the password") as world:
            error = await world.error("PostgresRole", "never", {})

            assert isinstance(error, RemoteRefused)
            assert "password authentication failed" in str(error)
            assert "not the password" not in f"{error!r}"

    run(test())


def test_a_session_that_was_ended_is_replaced(postgres: PostgresServer) -> None:
    async def test() -> None:
        async with postgres_world(postgres) as world:
            await world.settle("PostgresRole", "lasting", {"connectionLimit": 1})
            for limit in (2, 3):
                assert postgres.execute(_END_OURS_NOW)
                await world.settle("PostgresRole", "lasting", {"connectionLimit": limit})

    run(test())
    assert postgres.execute("SELECT rolconnlimit FROM pg_roles WHERE rolname = 'lasting'") == [(3,)]


def test_a_session_that_ends_in_the_middle_of_a_write_is_an_outage_and_nothing_is_half_done(
    postgres: PostgresServer,
) -> None:
    async def test() -> None:
        async with postgres_world(postgres) as world:
            await world.settle("PostgresRole", "cut", {"connectionLimit": 1})
            spec = {"connectionLimit": 2, "memberOf": [{"role": "pg_monitor"}]}
            with postgres.connect() as blocking:
                blocking.execute("BEGIN")
                # The second statement of the write waits for this.
                blocking.execute("LOCK TABLE pg_auth_members IN ACCESS EXCLUSIVE MODE")
                writing = asyncio.ensure_future(world.error("PostgresRole", "cut", spec))
                while not blocking.execute(f"{_OURS} AND wait_event_type = 'Lock'").fetchall()[0][0]:
                    assert not writing.done()
                    await asyncio.sleep(0)
                blocking.execute(_END_OURS)
                blocking.execute("COMMIT")
            assert isinstance(await writing, RemoteUnavailable)
            assert postgres.execute("SELECT rolconnlimit FROM pg_roles WHERE rolname = 'cut'") == [(1,)]

            await world.harness.go_on(ref("PostgresRole", "cut"))

            assert postgres.execute("SELECT rolconnlimit FROM pg_roles WHERE rolname = 'cut'") == [(2,)]
            assert await world.changes("PostgresRole", "cut") == []

    run(test())


def test_a_server_that_is_down_is_no_reason_to_create_or_to_forget_anything(postgres: PostgresServer) -> None:
    async def test() -> None:
        async with postgres_world(postgres) as world:
            await world.settle("PostgresRole", "survivor", {"connectionLimit": 4})
            postgres.stop()
            try:
                error = await world.error("PostgresRole", "survivor", {"connectionLimit": 5})
            finally:
                postgres.start()
            assert isinstance(error, RemoteUnavailable)

            await world.harness.go_on(ref("PostgresRole", "survivor"))

            assert (await world.harness.ready(ref("PostgresRole", "survivor")))[0] == "True"

    run(test())
    assert postgres.execute("SELECT rolconnlimit FROM pg_roles WHERE rolname = 'survivor'") == [(5,)]


def test_a_connection_that_reads_cannot_write(postgres: PostgresServer) -> None:
    async def test() -> None:
        async with PostgresClient() as client:
            server = administrator(postgres, mode="require")
            async with client.connected(server, "postgres", Access.READ) as connection:
                with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
                    await connection.execute("CREATE ROLE written_by_a_reader")

    run(test())


def test_a_preview_opens_no_connection_that_can_write(postgres: PostgresServer) -> None:
    async def test() -> None:
        async with PostgresClient(is_read_only=True) as client:
            server = administrator(postgres, mode="require")
            assert await client.read(server, "postgres", ROLES, "postgres") is not None
            with pytest.raises(RemoteRefused, match="this is a preview"):
                await client.create(server, "postgres", [], "create nothing")

    run(test())


def test_connections_are_few_and_end_with_the_client(postgres: PostgresServer) -> None:
    async def test() -> None:
        async with postgres_world(postgres) as world:
            names = [f"crowd-{number}" for number in range(40)]
            await asyncio.gather(*(world.settle("PostgresRole", name, {"connectionLimit": 1}) for name in names))

            assert postgres.execute(_OURS)[0][0] <= 6

    run(test())
    while postgres.execute(_OURS) != [(0,)]:
        pass


def test_a_missing_database_is_told_apart_from_a_failure(postgres: PostgresServer) -> None:
    async def test() -> None:
        async with PostgresClient() as client:
            with pytest.raises(DatabaseNotFound, match="there is no database 'nowhere'"):
                await client.read(administrator(postgres), "nowhere", ROLES, "postgres")

    run(test())


def test_a_login_proves_a_password_only_where_it_was_asked_for(postgres: PostgresServer) -> None:
    async def test() -> None:
        async with PostgresClient() as client:
            by_socket = Server(str(postgres.folder), postgres.port)
            assert await client.log_in(administrator(postgres), "postgres", PASSWORD) is Login.ACCEPTED
            assert await client.log_in(administrator(postgres), "postgres", "another") is Login.WRONG
            assert await client.log_in(by_socket, "postgres", "another") is Login.UNKNOWN

    run(test())


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (psycopg.errors.AdminShutdown, RemoteUnavailable),
        (psycopg.errors.CannotConnectNow, RemoteUnavailable),
        (psycopg.errors.TooManyConnections, RemoteUnavailable),
        (psycopg.errors.ConnectionFailure, RemoteUnavailable),
        (psycopg.errors.QueryCanceled, RemoteUnavailable),
        (psycopg.OperationalError, RemoteUnavailable),
        (psycopg.errors.InsufficientPrivilege, RemoteRefused),
        (psycopg.errors.DependentObjectsStillExist, RemoteRefused),
        (psycopg.errors.SerializationFailure, RemoteConflict),
        (psycopg.errors.DeadlockDetected, RemoteConflict),
        (psycopg.errors.LockNotAvailable, RemoteConflict),
        (psycopg.errors.DuplicateDatabase, AlreadyExists),
        (psycopg.errors.DuplicateObject, AlreadyExists),
        (psycopg.errors.UndefinedTable, DependencyNotReady),
        (psycopg.errors.UndefinedObject, DependencyNotReady),
        (psycopg.errors.InvalidParameterValue, RemoteInvalid),
    ],
)
def test_each_failure_becomes_the_error_that_decides_its_retry(error: Any, expected: type[Exception]) -> None:
    assert type(translated(error("it failed"), "create role app")) is expected
