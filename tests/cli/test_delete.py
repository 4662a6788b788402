"""`setpoint delete`: what it says before, what it asks, the order in which it deletes, and what it never deleted."""

import asyncio
import json
from typing import Any

import pytest

from setpoint.localcloud.faults import FailOperation
from setpoint.stores.sqlite.store import open_sqlite
from tests.cli.workspace import Workspace, bucket, database
from tests.engine.clock import FakeClock

INSTANCE = """apiVersion: sql.cnrm.cloud.google.com/v1beta1
kind: SQLInstance
metadata:
  name: main
  annotations: {cnrm.cloud.google.com/project-id: some-project}
spec: {databaseVersion: MYSQL_8_0, region: europe-west1, settings: {tier: db-n1-standard-1}}
"""
ABANDON = "some-project, cnrm.cloud.google.com/deletion-policy: abandon"
NOT_DECLARED = "not found: it is not declared here: `setpoint get -A` lists what is"
DEPENDANT = "SQLDatabase default/app refers to SQLInstance default/main by spec.instanceRef, and stays"


@pytest.fixture
def declared(workspace: Workspace) -> Workspace:
    """A workspace with a bucket, one that is to be abandoned, and an instance with a database."""
    workspace.in_cloud(lambda cloud: cloud.clock.release())
    kept = bucket("kept").replace("some-project", ABANDON)
    workspace.apply(bucket("logs"), kept, INSTANCE, database("app", "{name: main}"))
    workspace.in_cloud(lambda cloud: cloud.journal.clear())
    return workspace


def _deletions(workspace: Workspace) -> list[str]:
    """The last words of the paths of all DELETE requests, in order."""
    entries = workspace.in_cloud(lambda cloud: cloud.journal.entries)
    return [entry.path.rpartition("/")[2] for entry in entries if entry.method == "DELETE"]


# --- What was never declared ------------------------------------------------------------------------------------------


def test_what_was_never_declared_is_named_and_is_a_failure(workspace: Workspace) -> None:
    deleted = workspace.run("delete", "StorageBucket/nosuch")

    assert (deleted.returncode, deleted.stderr) == (1, "")
    assert deleted.stdout.splitlines() == [f"StorageBucket default/nosuch {NOT_DECLARED}", "not found 1"]


def test_what_is_declared_is_deleted_and_the_rest_named_last(declared: Workspace) -> None:
    declared.write(bucket("nosuch"), bucket("logs"))

    assert declared.run_in_process("delete") == (
        1,
        [
            "StorageBucket default/logs deleted: projects/some-project/buckets/logs",
            f"StorageBucket default/nosuch {NOT_DECLARED}",
            "deleted 1, not found 1",
        ],
    )


def test_with_ignore_not_found_it_is_no_error(declared: Workspace) -> None:
    deleted = declared.run("delete", "--ignore-not-found", "StorageBucket/logs", "StorageBucket/nosuch")

    assert (deleted.returncode, deleted.stdout.splitlines()[-1]) == (0, "deleted 1, not found 1")
    assert _deletions(declared) == ["logs"]


# --- Whose object goes ------------------------------------------------------------------------------------------------


def test_each_line_says_what_became_of_the_live_object(declared: Workspace) -> None:
    declared.run_in_process("delete", "SQLDatabase/app", "SQLInstance/main")
    declared.write(database("app", "{name: main}"))
    declared.run_in_process("apply")
    names = ("StorageBucket/logs", "StorageBucket/kept", "SQLDatabase/app")

    code, lines = declared.run_in_process("delete", *names)

    assert (code, lines[-1]) == (0, "deleted 2, abandoned 1")
    assert sorted(lines[:-1]) == [
        "SQLDatabase default/app deleted: no object was made",
        "StorageBucket default/kept abandoned: the object projects/some-project/buckets/kept stays",
        "StorageBucket default/logs deleted: projects/some-project/buckets/logs",
    ]
    assert _deletions(declared) == ["app", "main", "logs"]


def test_a_resource_whose_status_was_wiped_is_not_said_to_have_no_object(declared: Workspace) -> None:
    _wipe_status(declared, "logs")

    would = declared.run("delete", "--dry-run", "StorageBucket/logs").stdout.splitlines()
    code, lines = declared.run_in_process("delete", "StorageBucket/logs")

    lost = "its status was wiped, and with it the record of its object"
    assert would[0] == f"StorageBucket default/logs would be deleted: {lost}"
    assert code != 0
    assert f"{lost}: whether projects/some-project/buckets/logs is that object is not known" in lines[0]
    assert _deletions(declared) == []


def _wipe_status(workspace: Workspace, name: str) -> None:
    async def wipe() -> None:
        store = await open_sqlite(workspace.folder / ".setpoint" / "state.db", FakeClock(), lambda: "uid")
        (resource,) = [one for one in (await store.list()).resources if one.ref.name == name]
        await store.update_status(resource, {})
        await store.close()

    asyncio.run(wipe())


def test_a_dry_run_says_the_same_and_deletes_nothing(declared: Workspace) -> None:
    names = ("SQLInstance/main", "StorageBucket/kept", "StorageBucket/nosuch")

    shown = declared.run("delete", "--dry-run", *names)

    assert (shown.returncode, shown.stderr) == (1, "")
    assert shown.stdout.splitlines() == [
        DEPENDANT,
        "SQLInstance default/main would be deleted: projects/some-project/instances/main",
        "StorageBucket default/kept would be abandoned: the object projects/some-project/buckets/kept stays",
        f"StorageBucket default/nosuch {NOT_DECLARED}",
        "deleted 1, abandoned 1, not found 1 (dry run)",
    ]
    assert declared.run("get").stdout.count("UpToDate") == 4
    assert _deletions(declared) == []


def test_a_dry_run_for_programs_says_so(declared: Workspace) -> None:
    shown = declared.run("delete", "--dry-run", "SQLInstance/main", "-o", "json")

    document: dict[str, Any] = json.loads(shown.stdout)
    (result,) = document["results"]
    (dependant,) = document["dependants"]
    assert (document["dryRun"], document["exitCode"], shown.returncode) == (True, 0, 0)
    assert (result["outcome"], result["location"]) == ("deleted", "projects/some-project/instances/main")
    assert (dependant["kind"], dependant["name"], dependant["field"]) == ("SQLDatabase", "app", "spec.instanceRef")
    assert dependant["refersTo"] == {
        "group": "sql.cnrm.cloud.google.com",
        "kind": "SQLInstance",
        "namespace": "default",
        "name": "main",
    }


# --- Dependants -------------------------------------------------------------------------------------------------------


def test_dependants_that_stay_are_named_first(declared: Workspace) -> None:
    assert declared.run("delete", "SQLInstance/main").stdout.splitlines()[0] == DEPENDANT


def test_a_resource_that_is_only_ordered_after_another_is_a_dependant(workspace: Workspace) -> None:
    after = bucket("later").replace("some-project", "some-project, setpoint.dev/depends-on: StorageBucket/logs")
    workspace.apply(bucket("logs"), after)

    lines = workspace.run("delete", "StorageBucket/logs").stdout.splitlines()

    assert lines[0] == "StorageBucket default/later depends on StorageBucket default/logs, and stays"


@pytest.mark.parametrize("names", [("SQLInstance/main", "SQLDatabase/app"), ("SQLDatabase/app", "SQLInstance/main")])
def test_dependants_are_deleted_before_what_they_need(declared: Workspace, names: tuple[str, str]) -> None:
    deleted = declared.run("delete", *names)

    assert (deleted.returncode, deleted.stdout.splitlines()[-1]) == (0, "deleted 2")
    assert DEPENDANT not in deleted.stdout
    assert _deletions(declared) == ["app", "main"]


def test_the_daemon_deletes_dependants_first_too(declared: Workspace) -> None:
    declared.daemon()

    deleted = declared.run("delete", "SQLInstance/main", "SQLDatabase/app")

    assert (deleted.returncode, deleted.stdout.splitlines()[-1]) == (0, "deleted 2")
    assert _deletions(declared) == ["app", "main"]


def test_what_a_failed_deletion_still_needs_is_not_deleted(declared: Workspace) -> None:
    declared.in_cloud(lambda cloud: cloud.inject(FailOperation(type="DELETE_DATABASE", times=10)))

    code, lines = declared.run_in_process("delete", "SQLInstance/main", "SQLDatabase/app")

    assert code == 1
    assert lines[-3] == (
        "SQLInstance default/main blocked: not deleted: SQLDatabase default/app depends on it, and is still there"
    )
    assert lines[-2].startswith("SQLDatabase default/app failed: ")
    assert lines[-1] == "blocked 1, failed 1"
    assert "main" not in _deletions(declared)
    assert "deletionTimestamp" not in declared.run("get", "SQLInstance/main", "-o", "yaml").stdout


def test_without_waiting_all_are_marked(declared: Workspace) -> None:
    declared.hold_operations()

    deleted = declared.run("delete", "--no-wait", "SQLInstance/main", "SQLDatabase/app")

    assert deleted.returncode == 3
    for name in ("SQLInstance/main", "SQLDatabase/app"):
        assert "deletionTimestamp" in declared.run("get", name, "-o", "yaml").stdout


# --- The question -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("keys", [b"n\r", b"\r", b"yep\r", b"\x04"])
def test_on_a_terminal_anything_but_yes_deletes_nothing(declared: Workspace, keys: bytes) -> None:
    terminal = declared.terminal("delete", "SQLInstance/main", "StorageBucket/kept")
    terminal.until_shown(
        DEPENDANT,
        "StorageBucket default/kept will be abandoned: the object projects/some-project/buckets/kept stays",
        "SQLInstance default/main will be deleted: projects/some-project/instances/main",
        "Delete 2 resources? [y/N]",
    )
    terminal.press(keys)

    assert terminal.end() == 1
    assert "error: nothing was deleted: the answer was not yes; --yes deletes without a question" in terminal.text
    assert _deletions(declared) == []
    assert declared.run("get").stdout.count("UpToDate") == 4


@pytest.mark.parametrize("keys", [b"y\r", b"YES\r"])
def test_on_a_terminal_yes_deletes(declared: Workspace, keys: bytes) -> None:
    terminal = declared.terminal("delete", "StorageBucket/logs")
    terminal.until_shown("Delete 1 resource? [y/N]")
    terminal.press(keys)

    assert terminal.end() == 0
    assert terminal.lines[-1] == "deleted 1"
    assert _deletions(declared) == ["logs"]


def test_the_store_is_free_while_it_asks(declared: Workspace) -> None:
    terminal = declared.terminal("delete", "StorageBucket/logs")
    terminal.until_shown("Delete 1 resource? [y/N]")

    assert declared.run("reconcile", "StorageBucket/kept").returncode == 0
    terminal.interrupt()
    assert terminal.end() == 130


@pytest.mark.parametrize("option", ["-y", "--yes"])
def test_with_yes_nothing_is_asked(declared: Workspace, option: str) -> None:
    terminal = declared.terminal("delete", option, "StorageBucket/logs")

    assert terminal.end() == 0
    assert "?" not in terminal.text
    assert _deletions(declared) == ["logs"]
