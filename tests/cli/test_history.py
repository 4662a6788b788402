"""`setpoint history`: steps with their fields, drift and requests; beside a running process and without one."""

import json
import signal

import pytest

from setpoint.cli.commands.history import since_time
from setpoint.errors import ManifestInvalid
from tests.cli.workspace import Workspace, bucket, database

NOW = "2026-01-31T12:00:00Z"


def entries(workspace: Workspace, *options: str) -> list[dict[str, object]]:
    done = workspace.run("history", "StorageBucket/logs-1", "-o", "json", *options)
    assert done.returncode == 0, done.stderr
    found: list[dict[str, object]] = json.loads(done.stdout)
    return found


def drift(workspace: Workspace, storage_class: str) -> None:
    """Another writer changes a field."""

    def change(cloud: object) -> None:
        body = {"storageClass": storage_class}
        assert cloud.call("PATCH", "/storage/v1/b/logs-1", body).status == 200  # type: ignore[attr-defined]

    workspace.in_cloud(change)


def test_a_history_is_shown_without_a_running_process_and_beside_one(workspace: Workspace) -> None:
    workspace.apply(bucket("logs-1"))
    workspace.write(bucket("logs-1").replace("spec: {", "spec: {storageClass: STANDARD, "))
    workspace.run_quietly("apply")

    alone = workspace.run("history", "StorageBucket/logs-1")
    assert alone.returncode == 0
    assert alone.stdout.splitlines()[0].split() == ["WHEN", "WHAT", "BY", "RESULT"]
    assert "create" in alone.stdout
    assert '  spec.location: unset → "EU" (spec)' in alone.stdout

    process = workspace.daemon()
    watch = workspace.piped("history", "StorageBucket/logs-1", "-w", "-o", "json")
    watch.until(lambda: '"decision":"create"' in watch.text)
    drift(workspace, "NEARLINE")
    assert workspace.run("reconcile", "StorageBucket/logs-1").returncode == 0
    watch.until(lambda: '"before":"NEARLINE"' in watch.text)
    wide = workspace.run("history", "StorageBucket/logs-1", "-o", "wide").stdout
    process.send(signal.SIGTERM)
    assert process.end() == 0

    assert 'spec.storageClass: "NEARLINE" → "STANDARD"' in wide
    assert "another writer changed" in wide
    assert "PATCH " in wide
    assert " 200 " in wide
    # The same by itself, once the process has ended, in the order in which it happened.
    found = entries(workspace)
    assert [one["at"] for one in found] == sorted(str(one["at"]) for one in found)
    assert {"step", "write", "drift"} == {one["type"] for one in found}
    assert entries(workspace, "--limit", "1") == found[-1:]
    assert entries(workspace, "--since", "2999-01-01T00:00Z") == []
    assert entries(workspace, "--since", "3h") == found


def _told(workspace: Workspace, target: str) -> list[str]:
    """The lines of a history without their times and fields."""
    done = workspace.run("history", target)
    assert done.returncode == 0, done.stderr
    return [" ".join(line.split()[1:]) for line in done.stdout.splitlines()[1:] if not line.startswith(" ")]


def test_the_history_of_what_is_gone_ends_with_its_deletion(workspace: Workspace) -> None:
    workspace.make_instance("main")
    kept = bucket("kept-1").replace("annotations: {", "annotations: {cnrm.cloud.google.com/deletion-policy: abandon, ")
    workspace.apply(bucket("logs-1"), kept, database("orders", "{external: main}"))

    names = ("StorageBucket/logs-1", "StorageBucket/kept-1", "SQLDatabase/orders")
    assert workspace.run("delete", "--yes", *names).returncode == 0

    assert _told(workspace, names[0]) == ["step setpoint apply create", "step setpoint delete delete"]
    assert _told(workspace, names[1])[-1] == (
        "step setpoint delete intent changed: nothing written; the resource goes, and "
        "projects/some-project/buckets/kept-1 stays as it is"
    )
    # The step that finds the end of the operation is none of its own.
    assert _told(workspace, names[2]) == ["step setpoint apply create", "step setpoint delete delete"]
    # The next resource of the name goes on with it; nothing of a running process is left over, either.
    daemon = workspace.daemon()
    assert workspace.run("apply", "-f", "manifest.yaml").returncode == 0
    assert workspace.run("delete", "--yes", names[0]).returncode == 0
    daemon.send(signal.SIGTERM)
    assert daemon.end() == 0
    assert _told(workspace, names[0])[2:] == [
        "write its declaration create projects/some-project/buckets/logs-1",
        "step its declaration create",
        "write its deletion delete projects/some-project/buckets/logs-1",
        "step its deletion delete",
    ]


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("2h", "2026-01-31T10:00:00Z"),
        ("90", "2026-01-31T11:58:30Z"),
        ("2026-01-30", "2026-01-30T00:00:00Z"),
        ("2026-01-30T12:00+02:00", "2026-01-30T10:00:00Z"),
    ],
)
def test_since_is_a_duration_or_a_time(text: str, time: str) -> None:
    assert since_time(text, NOW) == time


@pytest.mark.parametrize("text", ["yesterday", "-2h", "", "2026-13-01", "99999999h", "9e99"])
def test_anything_else_is_refused_with_what_to_write(text: str) -> None:
    with pytest.raises(ManifestInvalid, match=r"--since: .* is neither a duration .* nor a time"):
        since_time(text, NOW)


def test_what_names_no_resource_is_refused(workspace: Workspace) -> None:
    done = [workspace.run("history", word) for word in ("StorageBucket", "Nothing/one", "StorageBucket/mistyped")]

    assert [one.returncode for one in done] == [1, 1, 1]
    assert "StorageBucket mistyped is not declared here" in done[2].stderr
    assert "write KIND/NAME" in done[0].stderr
    assert "Nothing" in done[1].stderr


def test_as_much_is_kept_as_the_environment_says(workspace: Workspace) -> None:
    workspace.environment["SETPOINT_HISTORY_ENTRIES"] = "1"
    workspace.apply(bucket("logs-1"))
    workspace.write(bucket("logs-1").replace("spec: {", "spec: {storageClass: NEARLINE, "))
    workspace.run_quietly("apply")

    assert len(entries(workspace)) == 1
    for text in ("0", "many", "10001", "-1", "٣"):
        done = workspace.run("get", SETPOINT_HISTORY_ENTRIES=text)
        assert done.returncode == 1
        assert "SETPOINT_HISTORY_ENTRIES is" in done.stderr
        assert "write a number from 1 to 10,000" in done.stderr
