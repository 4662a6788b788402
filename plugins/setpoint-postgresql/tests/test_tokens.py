"""Logins by a token that another program renews: read for each connection, and for the operator's own server alone."""

from pathlib import Path

from postgres_server import PASSWORD, PostgresServer
from postgres_world import environment, manifest, postgres_world, ref, run
from setpoint.kind import KindContext, ManifestInvalid, RemoteUnavailable, Tenant
from setpoint.testing import engine_harness
from setpoint_postgresql.connection import TOKEN_FILE
from setpoint_postgresql.role import PostgresRoleKind

END_OURS = "SELECT pg_terminate_backend(pid, 30000) FROM pg_stat_activity WHERE application_name = 'setpoint'"


def test_each_connection_logs_in_with_the_token_of_the_moment(postgres: PostgresServer, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("the first token\n", encoding="utf-8")
    postgres.execute("CREATE ROLE identity LOGIN CREATEROLE PASSWORD 'the first token'")

    async def test() -> None:
        async with postgres_world(
            postgres, SETPOINT_POSTGRES_TOKEN_FILE=str(token), PGUSER="identity", PGPASSWORD="not used"
        ) as world:
            await world.settle("PostgresRole", "by-token", {})
            postgres.execute("ALTER ROLE identity PASSWORD 'the second token'")
            token.write_text("the second token\n", encoding="utf-8")
            postgres.execute(END_OURS)

            await world.settle("PostgresRole", "by-token", {"connectionLimit": 3})

            for text, message in (("", "is empty: see the program that renews it"), (None, "cannot be read")):
                token.unlink() if text is None else token.write_text(text, encoding="utf-8")
                postgres.execute(END_OURS)
                outcome = await world.harness.step(ref("PostgresRole", "by-token"), requested=True)
                error = getattr(outcome, "error", None)
                assert isinstance(error, RemoteUnavailable)
                assert message in str(error)
            assert "the second token" not in str(world.client.__dict__)

    run(test())
    assert postgres.execute("SELECT rolconnlimit FROM pg_roles WHERE rolname = 'by-token'") == [(3,)]
    assert "the second token" not in postgres.log.replace("ALTER ROLE identity PASSWORD 'the second token'", "")


def test_no_token_is_for_another_host_in_the_clear_or_for_a_tenant(postgres: PostgresServer, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("of the operator", encoding="utf-8")
    path = str(token)
    away = {"connection": {"host": "127.0.0.1", "port": postgres.port}}

    async def test() -> None:
        # The server of the spec is not the operator's: what PGPASSWORD says is sent there, and no token.
        async with postgres_world(postgres, SETPOINT_POSTGRES_TOKEN_FILE=path) as world:
            await world.settle("PostgresRole", "elsewhere", away)
        async with postgres_world(
            postgres, SETPOINT_POSTGRES_TOKEN_FILE=path, PGHOST="db.example.com", PGSSLMODE="prefer"
        ) as world:
            refused = await world.error("PostgresRole", "in-the-clear", {})
            assert isinstance(refused, ManifestInvalid)
            assert "spec.connection.tls.mode is prefer: a token is sent as it is" in str(refused)
        context = KindContext(environment(postgres, **{TOKEN_FILE: path})).for_tenant(Tenant("default"))
        async with engine_harness(PostgresRoleKind(context)) as harness:
            own = {"host": "localhost", "port": postgres.port}
            applied = await harness.apply(manifest("PostgresRole", "of-a-tenant", {"connection": own}))
            outcome = await harness.step(applied.ref)
            assert "spec.connection.password is missing" in str(getattr(outcome, "error", ""))

    run(test())
    assert PASSWORD not in postgres.log
