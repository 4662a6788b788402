"""The real command: killed in the middle of an apply, cut off from its server, and finding its login for a deletion."""

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from postgres_server import PASSWORD, PostgresServer, until
from postgres_world import Manifest, can_log_in, environment, manifest

_PROJECT = Path(__file__).parents[1]
# Each test has objects with names of its own.
_NUMBERS = count()
_COMMAND = str(Path(sys.executable).with_name("setpoint"))


def shop_manifests(name: str, port: int) -> list[Manifest]:
    """A database, a schema, a role and a grant, with the login in a Secret."""

    def secret(key: str) -> dict[str, Any]:
        return {"valueFrom": {"secretKeyRef": {"name": "login", "key": key}}}

    connection = {"host": "localhost", "port": port, "password": secret("admin"), "tls": {"mode": "require"}}
    database, role, schema = f"{name}-shop", f"{name}-reader", f"{name}-app"
    reader = {"login": True, "password": secret("reader"), "memberOf": [{"role": "pg_monitor"}]}
    grant = {
        "databaseRef": {"name": database},
        "roleRef": {"name": role},
        "object": {"type": "SCHEMA", "schemaRef": {"name": schema}},
        "privileges": [{"privilege": "USAGE"}],
    }
    specs: dict[tuple[str, str], dict[str, Any]] = {
        ("PostgresDatabase", database): {"onDelete": {"force": True}},
        ("PostgresSchema", schema): {"databaseRef": {"name": database}, "onDelete": {"cascade": True}},
        ("PostgresRole", role): {**reader, "onDelete": {"dropOwned": True}},
        ("PostgresGrant", f"{name}-grant"): grant,
    }
    login = {"admin": PASSWORD, "reader": "the reader's own"}
    found: list[Manifest] = [{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login"}, "stringData": login}]
    return [*found, *(manifest(*key, {"connection": connection, **spec}) for key, spec in specs.items())]


@dataclass(frozen=True, slots=True)
class CommandLine:
    """`setpoint` with this plug-in installed, in a folder with its own store."""

    folder: Path
    server: PostgresServer
    name: str
    variables: Mapping[str, str] = field(default_factory=dict)

    def start(self, *arguments: str) -> "subprocess.Popen[str]":
        source = os.pathsep.join([str(self.folder / "site"), str(_PROJECT / "src")])
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "SETPOINT"))}
        return subprocess.Popen(
            [_COMMAND, *arguments],
            cwd=self.folder,
            env={**kept, **self.variables, "PYTHONPATH": source},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, *arguments: str) -> tuple[int, str]:
        """The exit code and the output."""
        with self.start(*arguments) as process:
            output = process.communicate(timeout=120)[0]
            return process.returncode, output


@pytest.fixture
def command(tmp_path: Path, postgres: PostgresServer) -> CommandLine:
    """The command, with manifests whose objects are the test's own."""
    project = tomllib.loads((_PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    metadata = tmp_path / "site" / "setpoint_postgresql-0.1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: setpoint-postgresql\nVersion: 0.1.0\n", "utf-8")
    kinds = project["entry-points"]["setpoint.kinds"]
    entries = "".join(f"{name} = {target}\n" for name, target in kinds.items())
    (metadata / "entry_points.txt").write_text(f"[setpoint.kinds]\n{entries}", "utf-8")
    name = f"process{next(_NUMBERS)}"
    documents = "\n---\n".join(map(json.dumps, shop_manifests(name, postgres.port)))
    (tmp_path / "shop.yaml").write_text(documents, "utf-8")
    return CommandLine(tmp_path, postgres, name)


@contextmanager
def holding(server: PostgresServer, table: str) -> Iterator[None]:
    """Whoever writes to this catalog waits, as long as the context lasts."""
    with server.connect() as connection:
        connection.execute("BEGIN")
        connection.execute(f"LOCK TABLE {table} IN EXCLUSIVE MODE".encode())
        yield


def waiting(server: PostgresServer) -> Sequence[tuple[int]]:
    """The sessions of setpoint that wait for a lock."""
    query = "SELECT pid FROM pg_stat_activity WHERE application_name = 'setpoint' AND wait_event_type = 'Lock'"
    return [(int(pid),) for (pid,) in server.execute(query)]


def objects(command: CommandLine) -> list[int]:
    """How many databases and roles there are of the test's own."""
    queries = ("pg_database WHERE datname", "pg_roles WHERE rolname")
    return [command.server.execute(f"SELECT count(*) FROM {one} LIKE '{command.name}-%'")[0][0] for one in queries]


# What an apply writes to: when it creates the database, the role, its membership, and the grant on the schema.
@pytest.mark.parametrize("catalog", ["pg_database", "pg_authid", "pg_auth_members"])
def test_killed_in_the_middle_of_an_apply_the_next_one_finishes_it(command: CommandLine, catalog: str) -> None:
    with holding(command.server, catalog):
        process = command.start("apply", "-f", "shop.yaml")
        until(lambda: waiting(command.server) or process.poll() is not None, "it never wrote")
        assert process.poll() is None, process.communicate()[0]
        process.kill()
        process.communicate()
    until(lambda: not waiting(command.server))

    code, output = command.run("apply", "-f", "shop.yaml")

    assert code == 0, output
    assert objects(command) == [1, 1]
    code, output = command.run("plan", "-f", "shop.yaml")
    assert code == 0, output
    assert can_log_in(command.server, f"{command.name}-reader", "the reader's own")


def test_cut_off_in_the_middle_of_an_apply_it_connects_again_and_finishes(command: CommandLine) -> None:
    with holding(command.server, "pg_auth_members"):
        process = command.start("apply", "-f", "shop.yaml")
        until(lambda: waiting(command.server) or process.poll() is not None, "it never wrote")
        assert process.poll() is None, process.communicate()[0]
        for (pid,) in waiting(command.server):
            command.server.execute(f"SELECT pg_terminate_backend({pid})")

    output = process.communicate(timeout=120)[0]

    assert process.returncode == 0, output
    assert objects(command) == [1, 1]


def test_a_deletion_by_a_new_process_logs_in_with_the_secret_and_leaves_nothing(command: CommandLine) -> None:
    code, output = command.run("apply", "-f", "shop.yaml")
    assert code == 0, output
    assert PASSWORD not in output

    # The Secret stays: it is not the plug-in's, and the login is needed to the end.
    refs = [f"PostgresGrant/{command.name}-grant", f"PostgresSchema/{command.name}-app"]
    refs += [f"PostgresRole/{command.name}-reader", f"PostgresDatabase/{command.name}-shop"]
    code, output = command.run("delete", *refs)

    assert code == 0, output
    assert objects(command) == [0, 0]


def test_what_the_readme_shows_is_applied_and_deleted(command: CommandLine) -> None:
    command = replace(command, variables=environment(command.server))
    text = (_PROJECT / "README.md").read_text(encoding="utf-8")
    (command.folder / "shop.yaml").write_text(text.partition("```yaml\n")[2].partition("```")[0], encoding="utf-8")

    for arguments in (["apply", "-f", "shop.yaml"], ["plan", "-f", "shop.yaml"]):
        code, output = command.run(*arguments)
        assert code == 0, output
    command.server.execute("ALTER ROLE reader CONNECTION LIMIT 99")
    code, output = command.run("plan", "-f", "shop.yaml")
    assert code == 2, output
    assert "spec.connectionLimit  99 → 10  the spec says so" in output

    assert command.run("get", "Secret/shop-app-login")[0] == 0

    code, output = command.run("delete", "-f", "shop.yaml")

    assert code == 0, output
    assert command.run("get", "Secret/shop-app-login")[0] == 1
    assert command.server.execute("SELECT rolname FROM pg_roles WHERE rolname IN ('reader', 'shop-owner')") == []


def test_what_is_on_a_server_is_imported_and_nothing_changes(command: CommandLine) -> None:
    command = replace(command, variables=environment(command.server))
    name, execute = command.name, command.server.execute
    for statement in (
        f"CREATE ROLE {name}_owners",
        f"CREATE ROLE \"{name}'s\" LOGIN PASSWORD 'sesame' CONNECTION LIMIT 5 IN ROLE {name}_owners",
        f"ALTER ROLE {name}_owners SET statement_timeout = '5s'",
        f"CREATE DATABASE {name} OWNER {name}_owners",
    ):
        execute(statement)
    execute(f"CREATE SCHEMA ovens AUTHORIZATION {name}_owners; COMMENT ON SCHEMA ovens IS 'hot'", name)

    kinds = "PostgresRole,PostgresDatabase,PostgresSchema"
    code, output = command.run("import", kinds, "--filter", f"name={name}*", "--to", "found", "--by", "kind")
    assert (code, "3 manifests in found; applied, 3 would change nothing" in output) == (0, True), output
    code, output = command.run("import", "PostgresSchema", "--filter", "name=ovens", "--to", "found")
    assert code == 0, output

    found = command.folder / "found"
    assert (found / "postgresrole.yaml").read_text().replace(name, "NAME") == _ROLES.format(port=command.server.port)
    database = (found / "postgresdatabase.yaml").read_text()
    assert f"  ownerRef:\n    name: {name}-owners\n" in database
    assert "locale:" not in database
    # Of the database, not yet declared: by its name on the server.
    schema = (found / "postgresschema-ovens.yaml").read_text()
    assert schema.endswith(
        f"spec:\n  ownerRef:\n    external: {name}_owners\n  comment: hot\n  databaseRef:\n    external: {name}\n"
    )
    assert command.run("plan", "-q", "-f", "found") == (0, "unchanged 4\n")
    assert command.run("apply", "-q", "-f", "found") == (0, "adopted 4\n")
    command.server.leave(name)
    execute(f"DROP DATABASE {name}")


_ROLES = """\
# postgresql://localhost:{port}/roles/NAME%27s
# No service tells spec.password: to set it, refer to a Secret by valueFrom.secretKeyRef.
apiVersion: postgresql.setpoint.dev/v1alpha1
kind: PostgresRole
metadata:
  name: NAME-s
  namespace: default
spec:
  login: true
  connectionLimit: 5
  memberOf:
  - role: NAME_owners
  resourceID: NAME's
---
# postgresql://localhost:{port}/roles/NAME_owners
# No service tells spec.password: to set it, refer to a Secret by valueFrom.secretKeyRef.
apiVersion: postgresql.setpoint.dev/v1alpha1
kind: PostgresRole
metadata:
  name: NAME-owners
  namespace: default
spec:
  settings:
    statement_timeout: 5s
  resourceID: NAME_owners
"""


def test_an_import_from_no_server_says_how_to_name_one(command: CommandLine) -> None:
    code, output = command.run("import", "PostgresRole")

    assert code == 1
    assert "PostgresRole: not listed: on which server? Name it as for psql: PGHOST, PGPORT" in output
