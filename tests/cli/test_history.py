"""`setpoint history`: steps with their fields, drift and requests; beside a running process and without one."""

import json
import signal

import pytest

from setpoint.cli.commands.history import since_time
from setpoint.errors import ManifestInvalid
from tests.cli.workspace import Workspace, bucket

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
