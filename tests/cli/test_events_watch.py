"""Events as they come, and what `explain` says of the next look."""

import json

from tests.cli.workspace import Workspace, bucket


def test_events_can_be_watched_by_programs(workspace: Workspace) -> None:
    workspace.apply(bucket("logs"))
    watching = workspace.piped("events", "-w", "-o", "json")
    watching.until(lambda: "logs" in watching.text)

    workspace.apply(bucket("more"))
    watching.until(lambda: '"more"' in watching.text)
    watching.interrupt()

    assert watching.end() == 130
    lines = [json.loads(line) for line in watching.text.splitlines()]
    assert {one["resource"]["name"] for one in lines} == {"logs", "more"}
    assert len({json.dumps(one, sort_keys=True) for one in lines}) == len(lines)


def test_the_header_of_events_stands_once(workspace: Workspace) -> None:
    workspace.apply(bucket("logs"))
    terminal = workspace.terminal("events", "-w")
    terminal.until_shown("logs")

    workspace.apply(bucket("more"))
    terminal.until_shown("default/more")
    terminal.interrupt()

    assert terminal.end() == 130
    assert [line.split()[0] for line in terminal.lines if line.strip()].count("WHEN") == 1


def test_explain_says_who_looks_next(workspace: Workspace) -> None:
    workspace.apply(bucket("logs"))
    alone = workspace.run("explain", "StorageBucket/logs").stdout
    workspace.daemon()

    together = workspace.run("explain", "StorageBucket/logs").stdout

    assert "next look: with the next `setpoint apply` or `setpoint reconcile`" in alone
    assert "next look: by the running process, at the latest" in together


def test_get_of_what_is_not_there_says_so(workspace: Workspace) -> None:
    workspace.apply(bucket("logs"))

    missing = workspace.run("get", "StorageBucket/nosuch")

    assert (missing.returncode, missing.stderr) == (
        1,
        "error: StorageBucket nosuch is not declared here: `setpoint get -A` lists what is\n",
    )


def test_a_plan_that_could_not_be_made_has_failed(workspace: Workspace) -> None:
    workspace.write(bucket("logs"))

    planned = workspace.run("plan", "-f", "manifest.yaml", STORAGE_EMULATOR_HOST="http://127.0.0.1:1")

    assert (planned.returncode, "failed: GET /storage/v1/b/logs: cannot connect" in planned.stdout) == (1, True)


def test_what_took_an_operation_is_told_as_what_it_was_begun_for(workspace: Workspace) -> None:
    manifest = """\
apiVersion: sql.cnrm.cloud.google.com/v1beta1
kind: SQLInstance
metadata:
  name: main
  annotations: {cnrm.cloud.google.com/project-id: demo}
spec:
  databaseVersion: POSTGRES_16
  region: europe-west1
  settings: {tier: db-custom-1-3840}
"""
    workspace.write(manifest)
    created = workspace.run("apply", "-f", "manifest.yaml").stdout.splitlines()[-1]
    workspace.write(manifest.replace("3840}", "3840, availabilityType: REGIONAL}"))
    updated = workspace.run("apply", "-f", "manifest.yaml").stdout.splitlines()[-1]
    unchanged = workspace.run("apply", "-f", "manifest.yaml").stdout.splitlines()[-1]

    assert [line.rpartition(" ")[2] for line in (created, updated, unchanged)] == ["created", "updated", "unchanged"]
