"""Many Google resources that are as declared are planned and applied by a list."""

import json

import pytest

from setpoint.localcloud.server import LocalCloud
from tests.cli.workspace import Workspace, bucket


def requests_of(cloud: LocalCloud) -> list[str]:
    """The paths that were asked for, without what follows the bucket."""
    return sorted({one.path.partition("?")[0] for one in cloud.journal.entries})


@pytest.mark.parametrize("command", ["plan", "apply"])
def test_buckets_that_are_as_declared_are_listed(workspace: Workspace, command: str) -> None:
    workspace.apply(*(bucket(f"logs-{number}") for number in range(12)))
    workspace.in_cloud(lambda cloud: cloud.journal.clear())

    code, lines = workspace.run_in_process(command)

    assert (code, lines[-1]) == (0, "unchanged 12")
    assert workspace.in_cloud(requests_of) == ["/storage/v1/b"]


def test_a_bucket_that_drifted_is_observed_by_itself_and_planned(workspace: Workspace) -> None:
    workspace.apply(*(bucket(f"logs-{number}") for number in range(12)))
    changed = {"storageClass": "NEARLINE"}
    workspace.in_cloud(lambda cloud: cloud.call("PATCH", "/storage/v1/b/logs-3", changed))
    workspace.in_cloud(lambda cloud: cloud.journal.clear())

    code, lines = workspace.run_in_process("plan")

    assert (code, lines[-1]) == (2, "update 1, unchanged 11")
    assert workspace.in_cloud(requests_of) == ["/storage/v1/b", "/storage/v1/b/logs-3"]


def test_a_plan_of_all_lists_what_is_as_declared_and_observes_a_drifted_bucket_once(workspace: Workspace) -> None:
    workspace.apply(*(bucket(f"logs-{number}") for number in range(12)))
    changed = {"storageClass": "NEARLINE"}
    workspace.in_cloud(lambda cloud: cloud.call("PATCH", "/storage/v1/b/logs-3", changed))
    workspace.in_cloud(lambda cloud: cloud.journal.clear())

    done = workspace.run("plan", "--all", "-o", "json")

    assert (done.returncode, json.loads(done.stdout)["summary"]) == (2, {"StorageBucket": {"in sync": 11, "writes": 1}})
    assert workspace.in_cloud(lambda cloud: sorted(one.path for one in cloud.journal.entries)) == [
        *("/storage/v1/b", "/storage/v1/b/logs-3"),
    ]
