"""Secret values in what commands print: hidden unless they are asked for, and never taken back from there."""

import asyncio
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from setpoint.app import StoreAccess, open_engine
from setpoint.cli.main import main
from setpoint.core.values.json_types import JsonObject
from setpoint.core.values.yaml_documents import read_documents, write_document
from setpoint.engine.resource import ResourceRef
from setpoint.localcloud.faults import FailOperation
from setpoint.stores.sqlite.encryption import SecretCipher
from setpoint.stores.sqlite.tables import associated_data
from tests.cli.workspace import Workspace, user_environment
from tests.security.secret_places import (
    PLACES,
    bytes_of,
    encoded_secret,
    kubernetes_object,
    secret,
    secret_values,
    settings_of,
    traces,
    user,
)
from tests.stores.scratch import scratch_folder

PASSWORD = "correct-horse-battery-staple"
OTHER = "another-horse-battery-staple"
PROJECT = {"cnrm.cloud.google.com/project-id": "some-project"}
VIEWS = (
    *(("get", "-A", "-o", form) for form in ("table", "wide", "yaml", "json")),
    *((command, "-o", form) for command in ("describe", "explain") for form in ("table", "yaml", "json")),
    *(("events", "-o", form) for form in ("table", "json")),
    *(("graph", "-A", "-o", form) for form in ("text", "dot", "mermaid", "json")),
    *(("export", "-A", "-o", form) for form in ("yaml", "json")),
)
# Each prints something that the others do not.
FEW_VIEWS = (("get", "-o", "yaml"), ("get", "-o", "wide"), ("describe",), ("explain",), ("events",), ("export",))


# --- Every kind, every view ------------------------------------------------------------------------------------------


def _named(place: str, text: str) -> JsonObject:
    document = PLACES[place](text)
    metadata = document["metadata"]
    assert isinstance(metadata, dict)
    return {**document, "metadata": {**metadata, "name": f"r-{sorted(PLACES).index(place)}"}}


@pytest.mark.laws
@settings(max_examples=3)
@given(st.fixed_dictionaries(dict.fromkeys(sorted(PLACES), secret_values)))
def test_no_view_prints_a_secret_value_of_any_kind(texts: dict[str, str]) -> None:
    async def fill(folder: Path) -> None:
        async with open_engine(settings_of(folder), StoreAccess.WRITE) as engine:
            for place, text in texts.items():
                await engine.store.apply(_named(place, text))

    with scratch_folder() as folder:
        asyncio.run(fill(folder))
        environment = {"SETPOINT_GCP_AUTH": "anonymous", "HOME": str(folder)}
        for view in VIEWS:
            store = f"sqlite:///{folder}/state.db"
            shown = CliRunner().invoke(main, ["--store", store, *view], env=environment)

            leaked = {place: found for place, text in texts.items() if (found := traces(text, shown.output.encode()))}
            assert leaked == {}, view
            # The view is not empty: it names the resources.
            assert "r-0" in shown.output or view[0] in ("events", "explain", "describe", "graph"), shown.output


# --- One user with a password, and a local cloud ---------------------------------------------------------------------


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    with Workspace(tmp_path, user_environment()) as workspace:
        workspace.make_instance("main")
        yield workspace


def manifest(text: str) -> str:
    """A SQLUser with this password, as its author writes it."""
    return write_document({**user(text), "metadata": {"name": "app", "annotations": PROJECT}})


WHERE = {"valueFrom": {"secretKeyRef": {"name": "login", "key": "password"}}}
# A SQLUser whose password is in a Secret.
REFERRING = write_document(
    {
        **user(""),
        "metadata": {"name": "app", "annotations": PROJECT},
        "spec": {"instanceRef": {"external": "main"}, "password": WHERE},
    }
)


def printed(workspace: Workspace, *arguments: str) -> str:
    done = workspace.run(*arguments)
    return done.stdout + done.stderr


def test_a_password_is_in_no_file_and_no_output_of_its_whole_life(workspace: Workspace) -> None:
    files = workspace.folder / ".setpoint"
    workspace.write(manifest(PASSWORD))
    seen = [printed(workspace, "plan", "-f", "manifest.yaml"), printed(workspace, "apply", "-f", "manifest.yaml")]
    while_applied = bytes_of(files)
    workspace.write(manifest(OTHER))
    seen += [printed(workspace, "plan", "-f", "manifest.yaml", "-o", form) for form in ("table", "json")]
    seen += [printed(workspace, "apply", "-f", "manifest.yaml", "-o", form) for form in ("json", "text")]
    seen += [printed(workspace, *view) for view in FEW_VIEWS]
    seen += [printed(workspace, "delete", "SQLUser/app")]

    assert seen[1] == "SQLUser default/app created\ncreated 1\n"
    assert [traces(text, "".join(seen).encode()) for text in (PASSWORD, OTHER)] == [[], []]
    assert [traces(text, while_applied + bytes_of(files)) for text in (PASSWORD, OTHER)] == [[], []]


@pytest.mark.parametrize("is_in_secret", [False, True])
def test_a_password_that_a_service_repeats_in_an_error_is_not_repeated(
    workspace: Workspace, is_in_secret: bool
) -> None:
    refusal = FailOperation(message=f"the password {PASSWORD} is too weak")
    workspace.in_cloud(lambda cloud: cloud.inject(refusal))
    workspace.write(*((write_document(secret(PASSWORD)), REFERRING) if is_in_secret else (manifest(PASSWORD),)))
    seen = [printed(workspace, "apply", "-f", "manifest.yaml")]
    seen += [printed(workspace, *view) for view in FEW_VIEWS]

    assert "the password (redacted) is too weak" in seen[0]
    assert traces(PASSWORD, "".join(seen).encode()) == []
    assert traces(PASSWORD, bytes_of(workspace.folder / ".setpoint")) == []


@pytest.mark.parametrize("view", [("get", "SQLUser/app", "-o", "yaml"), ("describe", "SQLUser/app")])
def test_a_password_is_shown_when_it_is_asked_for(workspace: Workspace, view: tuple[str, ...]) -> None:
    workspace.apply(manifest(PASSWORD))

    assert PASSWORD not in workspace.run(*view).stdout
    assert "(redacted)" in workspace.run(*view).stdout
    assert PASSWORD in workspace.run(*view, "--show-secrets").stdout


def test_a_watch_hides_secret_values(workspace: Workspace) -> None:
    workspace.apply(manifest(PASSWORD))
    watch = workspace.piped("get", "SQLUser/app", "-w", "-o", "json")
    watch.until(lambda: "(redacted)" in watch.text)
    workspace.apply(manifest(OTHER))
    watch.until(lambda: '"generation":2' in watch.text)

    assert [traces(text, watch.text.encode()) for text in (PASSWORD, OTHER)] == [[], []]


# --- What was hidden is not taken for a value ------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["yaml", "json"])
def test_a_printed_resource_is_not_applied_with_the_mark_as_its_password(workspace: Workspace, form: str) -> None:
    workspace.apply(manifest(PASSWORD))
    workspace.in_cloud(lambda cloud: cloud.journal.clear())
    shown = workspace.run("get", "SQLUser/app", "-o", form).stdout
    (workspace.folder / "printed.yaml").write_text(shown, encoding="utf-8")

    done = workspace.run("apply", "-f", "printed.yaml")

    assert done.returncode == 1
    assert (
        'SQLUser default/app: spec.password.value is "(redacted)", which stands for a value that was not' in done.stderr
    )
    assert workspace.in_cloud(lambda cloud: cloud.journal.counts())["writes"] == 0


@pytest.mark.parametrize(
    ("document", "at"),
    [
        (secret("(redacted)"), "stringData.password"),
        ({**encoded_secret("a"), "data": {"password": "(redacted)"}}, "data.password"),
        (kubernetes_object(secret("(redacted)")), "spec.manifest.stringData.password"),
        (kubernetes_object(write_document(secret("(redacted)"))), "spec.manifest.stringData.password"),
        (kubernetes_object("(redacted)"), "spec.manifest"),
    ],
)
def test_the_mark_is_refused_wherever_a_view_prints_it(workspace: Workspace, document: JsonObject, at: str) -> None:
    workspace.write(write_document(document))

    done = workspace.run("apply", "-f", "manifest.yaml")

    assert (done.returncode, json.loads(workspace.run("get", "-A", "-o", "json").stdout)["items"]) == (1, [])
    assert f'{at} is "(redacted)", which stands for a value that was not shown: write the value itself' in done.stderr


def test_an_export_hides_passwords_and_is_refused_without_them(workspace: Workspace) -> None:
    workspace.apply(manifest(PASSWORD))
    hidden = workspace.run("export", "--to", "hidden.yaml")
    workspace.run("export", "--pause", "--with-secrets", "--to", "whole.yaml")
    refused = workspace.run("--store", "sqlite:///new.db", "import", "-f", "hidden.yaml")
    moved = workspace.run("--store", "sqlite:///new.db", "import", "-f", "whole.yaml")
    workspace.in_cloud(lambda cloud: cloud.journal.clear())
    again = workspace.run("--store", "sqlite:///new.db", "reconcile")

    warning = "its secret values are left out, and an import refuses it without them: --with-secrets exports them"
    assert f"SQLUser default/app: {warning}" in hidden.stderr
    assert PASSWORD not in (workspace.folder / "hidden.yaml").read_text(encoding="utf-8")
    assert refused.returncode == 1
    assert 'spec.password.value is "(redacted)"' in refused.stderr
    assert moved.stdout.startswith("SQLUser default/app moved\n"), moved.stderr
    assert again.stdout == "SQLUser default/app unchanged\nunchanged 1\n"
    assert workspace.in_cloud(lambda cloud: cloud.journal.counts())["writes"] == 0


def test_an_exported_reference_to_a_secret_is_shown(workspace: Workspace) -> None:
    workspace.apply(write_document(secret(PASSWORD)), REFERRING)
    shown = read_documents(workspace.run("get", "SQLUser/app", "-o", "yaml").stdout, "")[0].value

    assert isinstance(shown, dict)
    assert shown["spec"]["password"] == WHERE
    assert "its secret values are left out" not in workspace.run("export").stderr


# --- Files that others can read --------------------------------------------------------------------------------------


def test_a_store_that_others_can_read_draws_one_warning(workspace: Workspace) -> None:
    workspace.write(manifest(PASSWORD))
    new = workspace.run("apply", "-f", "manifest.yaml")
    store = workspace.folder / ".setpoint" / "state.db"
    modes = {file.name: oct(file.stat().st_mode & 0o777) for file in store.parent.iterdir()}
    quiet = workspace.run("get")
    store.chmod(0o644)
    read, explained = workspace.run("get"), workspace.run("explain", "SQLUser/app")
    store.chmod(0o620)
    written = workspace.run("apply", "-f", "manifest.yaml")

    assert set(modes.values()) == {"0o600"}
    assert (new.stderr, quiet.stderr) == ("", "")
    warning = f"warning: {store} can be read by others (mode 0644): run chmod 600 {store}*\n"
    assert (read.stderr, explained.stderr) == (warning, warning)
    assert (read.returncode, written.returncode) == (0, 0)
    assert written.stderr == f"warning: {store} can be written by others (mode 0620): run chmod 600 {store}*\n"


def test_a_key_that_others_can_read_is_refused_and_draws_a_warning_while_it_is_not_needed(
    workspace: Workspace,
) -> None:
    workspace.apply(manifest(PASSWORD))
    key = workspace.folder / ".setpoint" / "state.db.key"
    key.chmod(0o604)
    refused = workspace.run("get")
    key.chmod(0o600)
    workspace.run("delete", "SQLUser/app")
    key.chmod(0o604)
    unused = workspace.run("get")

    problem = f"{key} can be read by others (mode 0604): run chmod 600"
    assert (refused.returncode, refused.stderr) == (1, f"error: {problem} on it\n")
    assert (unused.returncode, unused.stderr) == (0, f"warning: {problem} {key.with_suffix('')}*\n")


# --- No write after the upgrade --------------------------------------------------------------------------------------


def test_nothing_is_sent_after_an_upgrade_of_the_store(workspace: Workspace) -> None:
    instance: JsonObject = {
        "apiVersion": "sql.cnrm.cloud.google.com/v1beta1",
        "kind": "SQLInstance",
        "metadata": {"name": "second", "annotations": PROJECT},
        "spec": {
            "databaseVersion": "MYSQL_8_0",
            "region": "europe-west1",
            "rootPassword": {"value": OTHER},
            "settings": {"tier": "db-n1-standard-1"},
        },
    }
    workspace.in_cloud(lambda cloud: cloud.clock.release())
    workspace.apply(manifest(PASSWORD), write_document(instance))
    workspace.in_cloud(lambda cloud: cloud.advance(3600))
    workspace.run_quietly("reconcile")
    before = json.loads(workspace.run("get", "-o", "json").stdout)["items"]
    _make_earlier(workspace.folder / ".setpoint" / "state.db")
    workspace.in_cloud(lambda cloud: cloud.journal.clear())

    planned = workspace.run("plan")
    applied = workspace.run("apply", "-f", "manifest.yaml")
    after = json.loads(workspace.run("get", "-o", "json").stdout)["items"]

    assert planned.returncode == 0, planned.stdout
    assert applied.stdout == "SQLInstance default/second unchanged\nSQLUser default/app unchanged\nunchanged 2\n"
    assert [one["status"] for one in after] == [one["status"] for one in before]
    assert [one["metadata"] for one in after] == [one["metadata"] for one in before]
    assert workspace.in_cloud(lambda cloud: cloud.journal.counts())["writes"] == 0
    assert [traces(text, bytes_of(workspace.folder / ".setpoint")) for text in (PASSWORD, OTHER)] == [[], []]


def _make_earlier(path: Path) -> None:
    """The same store as the version before would have written it: in plain text."""
    cipher = SecretCipher(path.with_name("state.db.key"))
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute(
            "SELECT b.id, b.sealed, r.uid, r.grp, r.kind, r.namespace, r.name"
            " FROM resources r JOIN bodies b ON b.id = r.body WHERE b.sealed IS NOT NULL"
        ).fetchall()
        assert len(rows) == 2
        for id_, sealed, uid, *key in rows:
            plain = cipher.decrypt(sealed, associated_data(ResourceRef(*key), uid))
            connection.execute("UPDATE bodies SET body = ?, sealed = NULL WHERE id = ?", (plain, id_))
        connection.execute("PRAGMA user_version = 1")
        for table in ("history", "sets"):
            # Of later versions.
            connection.execute(f"DROP TABLE {table}")
        connection.commit()
    assert PASSWORD.encode() in path.read_bytes()
    path.with_name("state.db.key").unlink()
