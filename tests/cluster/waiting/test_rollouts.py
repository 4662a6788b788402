"""Rollouts of each sort of workload: what is missing meanwhile, and when they are complete."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.cluster.waiting.fake_controllers import FakeControllers
from tests.cluster.waiting.manifests import daemon_set, deployment, job, kept, stateful_set
from tests.cluster.waiting.wait_harness import Said, WaitHarness

ROLLING = {"type": "RollingUpdate"}
PARTITIONED = {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}
# By name: the workload, what its controller says first, what is missing then, and what it says in the end.
STORIES: dict[str, tuple[Any, Callable[[FakeControllers, str], None], str, Callable[[FakeControllers, str], None]]] = {
    "deployment": (
        deployment("deployment", 3),
        lambda controllers, target: controllers.bring_up(target, 3, up=2),
        "2 of 3 replicas available",
        lambda controllers, target: controllers.bring_up(target, 3),
    ),
    "old-replicas": (
        deployment("old-replicas", 2),
        lambda controllers, target: controllers.bring_up(target, 2, replicas=3),
        "1 old replica still there",
        lambda controllers, target: controllers.bring_up(target, 2),
    ),
    "stateful": (
        stateful_set("stateful", 3, **ROLLING),
        lambda controllers, target: controllers.bring_up(target, 3, updatedReplicas=1),
        "1 of 3 replicas updated",
        lambda controllers, target: controllers.bring_up(target, 3),
    ),
    # Only the last of three is to be updated, and none where pods are updated on deletion.
    "partitioned": (
        stateful_set("partitioned", 3, **PARTITIONED),
        lambda controllers, target: controllers.bring_up(target, 3, updatedReplicas=0),
        "0 of 1 replica updated",
        lambda controllers, target: controllers.bring_up(target, 3, updatedReplicas=1),
    ),
    "on-delete": (
        stateful_set("on-delete", 2, type="OnDelete"),
        lambda controllers, target: controllers.bring_up(target, 2, up=1, updatedReplicas=0),
        "1 of 2 replicas available",
        lambda controllers, target: controllers.bring_up(target, 2, updatedReplicas=0),
    ),
    "daemons": (
        daemon_set("daemons"),
        lambda controllers, target: controllers.run_on_nodes(target, 5, up=4),
        "4 of 5 replicas available",
        lambda controllers, target: controllers.run_on_nodes(target, 5, up=5),
    ),
    "job": (
        job("job"),
        lambda controllers, target: controllers.report(target, active=1, startTime="2026-01-01T00:00:00Z"),
        "0 of 1 completions",
        lambda controllers, target: controllers.complete(target),
    ),
    "none": (
        deployment("none", 0),
        lambda controllers, target: None,
        "the controller has not reported yet",
        lambda controllers, target: controllers.bring_up(target, 0),
    ),
}


@pytest.fixture(scope="module")
def rolled_out(common: WaitHarness) -> Said:
    """All of them in one apply, with controllers that take two steps."""
    applying = common.begin_apply(
        *(kept(tree, waitFor={"rollout": True, "timeout": "240s"}) for tree, *_ in STORIES.values())
    )
    applying.until_said(*(f"KubernetesObject here/{name} waiting" for name in STORIES))
    for name, (tree, begin, *_) in STORIES.items():
        begin(common.controllers, f"{tree['kind']}/{name}")
    applying.until_said(*(f"here/{name} waiting: {missing}\n" for name, (_, _, missing, _) in STORIES.items()))
    for name, (tree, *_, finish) in STORIES.items():
        finish(common.controllers, f"{tree['kind']}/{name}")
    return applying.ended()


@pytest.mark.parametrize("name", STORIES)
def test_a_rollout_is_told_and_completes(rolled_out: Said, name: str) -> None:
    assert rolled_out.code == 0, rolled_out.text
    assert f"KubernetesObject here/{name} waiting: {STORIES[name][2]}\n" in rolled_out.text
    assert f"KubernetesObject here/{name} created\n" in rolled_out.text


def test_nothing_without_a_rollout_can_be_waited_for_like_that(harness: WaitHarness) -> None:
    tree = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "still"}}
    code, text = harness.apply(kept(tree, waitFor={"rollout": True}))

    assert code == 1
    assert "waitFor.rollout: ConfigMap" in text
    assert "has no rollout" in text
    assert harness.controllers.see("ConfigMap/still") is None
