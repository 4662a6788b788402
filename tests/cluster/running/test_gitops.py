"""A GitOps tool that applies the same objects: neither side reverts the other."""

from typing import Any

from setpoint.engine.requeue import jittered_resync
from setpoint.engine.resource import ResourceRef
from tests.cluster.polling import until
from tests.cluster.running.controller_harness import ControllerHarness
from tests.cluster.running.gitops import GitOps
from tests.cluster.running.manifests import bucket, bucket_path

COOKIE = "cnrm.cloud.google.com/last-changed-cookie"
IN_ANNOTATIONS = ("--cookie-location", "annotation")
ROUNDS = 20
FEW_ROUNDS = 3


def _start(harness: ControllerHarness, before: tuple[str, ...] = ()) -> GitOps:
    """A controller that reconciles a bucket twice a second, and a GitOps tool that applies it."""
    harness.process(before=before)
    manifest = bucket(_with_short_resync(harness.kubectl.namespace), reconcile_interval_in_seconds="1")
    tool = GitOps.of(harness.kubectl.access, harness.kubectl.namespace, manifest)
    tool.apply()
    harness.kubectl.until_ready(tool.target)
    _until_observed(harness, tool)
    return tool


def _with_short_resync(namespace: str) -> str:
    """The name of a bucket with the shortest jittered resync for an interval of a second."""

    def pause(name: str) -> float:
        return jittered_resync(ResourceRef("storage.cnrm.cloud.google.com", "StorageBucket", namespace, name), 1)

    return min((f"watched-{number}" for number in range(100)), key=pause)


def _until_observed(harness: ControllerHarness, tool: GitOps) -> None:
    """Returns when the bucket has been observed once more."""

    def observations() -> int:
        path = bucket_path(tool.name)
        return harness.in_cloud(lambda cloud: sum(one.path == path for one in cloud.journal.entries))

    before = observations()
    until(lambda: observations() > before)


def _writes(harness: ControllerHarness, tool: GitOps) -> list[tuple[str, str]]:
    """The writes of controllers to the cluster."""
    return [(one.method, one.path.rpartition(tool.name)[2]) for one in harness.requests() if one.method != "GET"]


def _without_managers(tree: Any) -> Any:
    metadata = {name: value for name, value in tree["metadata"].items() if name != "managedFields"}
    return {**tree, "metadata": metadata}


def test_a_tool_that_applies_and_prunes_repeatedly_changes_nothing(harness: ControllerHarness) -> None:
    tool = _start(harness)
    settled, requests = _without_managers(tool.prune()), len(harness.requests())
    written = harness.in_cloud(lambda cloud: len(cloud.written))

    seen = []
    for _ in range(ROUNDS):
        tool.apply()
        seen.append(_without_managers(tool.prune()))
        _until_observed(harness, tool)

    assert seen == [settled] * ROUNDS
    assert settled["status"]["lastModifiedCookie"]
    assert [condition["type"] for condition in settled["status"]["conditions"]] == ["Ready"]
    assert harness.requests()[requests:] == []
    assert harness.in_cloud(lambda cloud: len(cloud.written)) == written == 1


def test_a_cookie_in_an_annotation_survives_a_tool_that_only_applies(harness: ControllerHarness) -> None:
    tool = _start(harness, IN_ANNOTATIONS)
    settled, written = _without_managers(tool.apply()), _writes(harness, tool)

    for _ in range(FEW_ROUNDS):
        assert _without_managers(tool.apply()) == settled
        _until_observed(harness, tool)

    assert settled["metadata"]["annotations"][COOKIE]
    assert "lastModifiedCookie" not in settled["status"]
    assert _writes(harness, tool) == written


def test_a_pruned_cookie_annotation_is_written_again_once_by_the_next_step(harness: ControllerHarness) -> None:
    tool = _start(harness, IN_ANNOTATIONS)
    settled, written = tool.apply(), _writes(harness, tool)

    for _ in range(FEW_ROUNDS):
        assert COOKIE not in tool.prune()["metadata"]["annotations"]
        until(lambda: COOKIE in harness.kubectl.get(tool.target)["metadata"]["annotations"])
        _until_observed(harness, tool)

    now = harness.kubectl.get(tool.target)
    assert now["metadata"]["annotations"] == settled["metadata"]["annotations"]
    assert now["status"] == settled["status"]
    assert _writes(harness, tool)[len(written) :] == [("PATCH", "")] * FEW_ROUNDS
    assert [one.method for one in harness.in_cloud(lambda cloud: tuple(cloud.written))] == ["POST"]
