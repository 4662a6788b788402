"""Rollouts of every kind of workload: progress and completion."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.cluster.waiting.fake_controllers import FakeControllers
from tests.cluster.waiting.manifests import daemon_set, deployment, job, kubernetes_object, stateful_set
from tests.cluster.waiting.wait_harness import CommandResult, WaitHarness

ROLLING = {"type": "RollingUpdate"}
PARTITIONED = {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}
# By name: the workload, the first report of its controller, the message then, and the last report.
WORKLOADS: dict[
    str, tuple[Any, Callable[[FakeControllers, str], None], str, Callable[[FakeControllers, str], None]]
] = {
    "deployment": (
        deployment("deployment", 3),
        lambda controllers, target: controllers.report_replicas(target, 3, up=2),
        "2 of 3 replicas available",
        lambda controllers, target: controllers.report_replicas(target, 3),
    ),
    "old-replicas": (
        deployment("old-replicas", 2),
        lambda controllers, target: controllers.report_replicas(target, 2, replicas=3),
        "1 old replica still there",
        lambda controllers, target: controllers.report_replicas(target, 2),
    ),
    "stateful": (
        stateful_set("stateful", 3, **ROLLING),
        lambda controllers, target: controllers.report_replicas(target, 3, updatedReplicas=1),
        "1 of 3 replicas updated",
        lambda controllers, target: controllers.report_replicas(target, 3),
    ),
    # With a partition only the last of three is updated, with OnDelete none.
    "partitioned": (
        stateful_set("partitioned", 3, **PARTITIONED),
        lambda controllers, target: controllers.report_replicas(target, 3, updatedReplicas=0),
        "0 of 1 replica updated",
        lambda controllers, target: controllers.report_replicas(target, 3, updatedReplicas=1),
    ),
    "on-delete": (
        stateful_set("on-delete", 2, type="OnDelete"),
        lambda controllers, target: controllers.report_replicas(target, 2, up=1, updatedReplicas=0),
        "1 of 2 replicas available",
        lambda controllers, target: controllers.report_replicas(target, 2, updatedReplicas=0),
    ),
    "daemons": (
        daemon_set("daemons"),
        lambda controllers, target: controllers.report_nodes(target, 5, up=4),
        "4 of 5 replicas available",
        lambda controllers, target: controllers.report_nodes(target, 5, up=5),
    ),
    "job": (
        job("job"),
        lambda controllers, target: controllers.patch_status(target, active=1, startTime="2026-01-01T00:00:00Z"),
        "0 of 1 completions",
        lambda controllers, target: controllers.report_complete(target),
    ),
    "none": (
        deployment("none", 0),
        lambda controllers, target: None,
        "the controller has not reported yet",
        lambda controllers, target: controllers.report_replicas(target, 0),
    ),
}


@pytest.fixture(scope="module")
def rolled_out(common: WaitHarness) -> CommandResult:
    """All of them in one apply, with two reports of the controllers."""
    running = common.start_apply(
        *(kubernetes_object(tree, waitFor={"rollout": True, "timeout": "240s"}) for tree, *_ in WORKLOADS.values())
    )
    running.until_printed(*(f"KubernetesObject here/{name} waiting" for name in WORKLOADS))
    for name, (tree, begin, *_) in WORKLOADS.items():
        begin(common.controllers, f"{tree['kind']}/{name}")
    running.until_printed(*(f"here/{name} waiting: {missing}\n" for name, (_, _, missing, _) in WORKLOADS.items()))
    for name, (tree, *_, finish) in WORKLOADS.items():
        finish(common.controllers, f"{tree['kind']}/{name}")
    return running.result()


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_rollout_shows_its_progress_and_completes(rolled_out: CommandResult, name: str) -> None:
    assert rolled_out.code == 0, rolled_out.text
    assert f"KubernetesObject here/{name} waiting: {WORKLOADS[name][2]}\n" in rolled_out.text
    assert f"KubernetesObject here/{name} created\n" in rolled_out.text


def test_a_kind_without_rollouts_cannot_wait_for_one(harness: WaitHarness) -> None:
    tree = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "still"}}
    code, text = harness.apply(kubernetes_object(tree, waitFor={"rollout": True}))

    assert code == 1
    assert "waitFor.rollout: ConfigMap" in text
    assert "has no rollout" in text
    assert harness.controllers.get("ConfigMap/still") is None
