"""Events as they come, and when `explain` expects the next step."""

import json

from tests.cli.workspace import Workspace, bucket


def test_events_are_watched_as_json_lines(workspace: Workspace) -> None:
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


def test_a_watch_of_events_prints_its_header_once(workspace: Workspace) -> None:
    workspace.apply(bucket("logs"))
    terminal = workspace.terminal("events", "-w")
    terminal.until_shown("logs")

    workspace.apply(bucket("more"))
    terminal.until_shown("default/more")
    terminal.interrupt()

    assert terminal.end() == 130
    assert [line.split()[0] for line in terminal.lines if line.strip()].count("WHEN") == 1


def test_explain_says_which_process_takes_the_next_step(workspace: Workspace) -> None:
    workspace.apply(bucket("logs"))
    alone = workspace.run("explain", "StorageBucket/logs").stdout
    workspace.daemon()

    together = workspace.run("explain", "StorageBucket/logs").stdout

    assert "next step: with the next `setpoint apply` or `setpoint reconcile`" in alone
    assert "next step: by the running process, at the latest" in together


def test_get_of_an_undeclared_resource_is_an_error(workspace: Workspace) -> None:
    workspace.apply(bucket("logs"))

    missing = workspace.run("get", "StorageBucket/nosuch")

    assert (missing.returncode, missing.stderr) == (
        1,
        "error: StorageBucket nosuch is not declared here: `setpoint get -A` lists what is\n",
    )


def test_a_plan_that_raises_exits_with_failure(workspace: Workspace) -> None:
    workspace.write(bucket("logs"))

    planned = workspace.run("plan", "-f", "manifest.yaml", STORAGE_EMULATOR_HOST="http://127.0.0.1:1")

    assert (planned.returncode, "failed: GET /storage/v1/b/logs: cannot connect" in planned.stdout) == (1, True)


def test_the_end_of_an_operation_is_shown_as_the_action_that_started_it(workspace: Workspace) -> None:
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
    created = workspace.run("apply", "-f", "manifest.yaml").stdout.splitlines()[-2]
    workspace.write(manifest.replace("3840}", "3840, availabilityType: REGIONAL}"))
    updated = workspace.run("apply", "-f", "manifest.yaml").stdout.splitlines()[-2]
    unchanged = workspace.run("apply", "-f", "manifest.yaml").stdout.splitlines()[-2]

    assert [line.rpartition(" ")[2] for line in (created, updated, unchanged)] == ["created", "updated", "unchanged"]
