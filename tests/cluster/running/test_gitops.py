"""A GitOps tool that applies the same objects: neither side reverts the other."""

from functools import partial
from typing import Any

from setpoint.core.schema.annotations import CLAIM
from tests.cluster.polling import until
from tests.cluster.running.controller_harness import ControllerHarness
from tests.cluster.running.gitops import GitOps
from tests.cluster.running.manifests import bucket, bucket_path, quickly_resynced

COOKIE = "cnrm.cloud.google.com/last-changed-cookie"
IN_ANNOTATIONS = ("--cookie-location", "annotation")
ROUNDS = 20
FEW_ROUNDS = 3
# A resync takes half a second.
ROUNDS_PER_RESYNC = 5


def _start(harness: ControllerHarness, before: tuple[str, ...] = ()) -> GitOps:
    """A controller that reconciles a bucket twice a second, and a GitOps tool that applies it."""
    harness.start_controller(before=before)
    manifest = bucket(quickly_resynced(harness.kubectl.namespace), reconcile_interval_in_seconds="1")
    tool = GitOps.of(harness.kubectl.access, harness.kubectl.namespace, manifest)
    tool.apply()
    harness.kubectl.until_ready(tool.target)
    harness.until_observed(bucket_path(tool.name))
    return tool


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
    for number in range(ROUNDS):
        tool.apply()
        seen.append(_without_managers(tool.prune()))
        if number % ROUNDS_PER_RESYNC == 0:
            harness.until_observed(bucket_path(tool.name))

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
        harness.until_observed(bucket_path(tool.name))

    assert settled["metadata"]["annotations"][COOKIE]
    assert "lastModifiedCookie" not in settled["status"]
    assert _writes(harness, tool) == written


def test_a_pruned_cookie_annotation_is_written_again_once_by_the_next_step(harness: ControllerHarness) -> None:
    tool = _start(harness, IN_ANNOTATIONS)
    settled, written = tool.apply(), _writes(harness, tool)

    for _ in range(FEW_ROUNDS):
        assert COOKIE not in tool.prune()["metadata"]["annotations"]
        until(lambda: COOKIE in harness.kubectl.get(tool.target)["metadata"]["annotations"])
        harness.until_observed(bucket_path(tool.name))

    now = harness.kubectl.get(tool.target)
    # The claim is in the status by then: its announcement is not written again.
    lasting = {name: text for name, text in settled["metadata"]["annotations"].items() if name != CLAIM}
    assert now["metadata"]["annotations"] == lasting
    assert now["status"] == settled["status"]
    assert _writes(harness, tool)[len(written) :] == [("PATCH", "")] * FEW_ROUNDS
    assert [one.method for one in harness.in_cloud(lambda cloud: tuple(cloud.written))] == ["POST"]


def test_a_switch_moves_the_cookie_with_the_next_step_and_writes_nothing_to_the_cloud(
    harness: ControllerHarness,
) -> None:
    tool = _start(harness)
    cookie = harness.kubectl.get(tool.target)["status"]["lastModifiedCookie"]

    for name, before, places in (
        ("second", IN_ANNOTATIONS, (cookie, None)),
        ("third", (), (None, cookie)),
    ):
        assert harness.processes[-1].stop() == 0
        harness.start_controller(name=name, before=before)
        until(partial(_are_at, places, harness, tool))
        written = _writes(harness, tool)
        harness.until_observed(bucket_path(tool.name))
        assert _writes(harness, tool) == written

    assert [one.method for one in harness.in_cloud(lambda cloud: tuple(cloud.written))] == ["POST"]


def _are_at(places: tuple[str | None, str | None], harness: ControllerHarness, tool: GitOps) -> bool:
    return _cookies(harness, tool) == places


def _cookies(harness: ControllerHarness, tool: GitOps) -> tuple[str | None, str | None]:
    """The cookies in the annotation and in the status."""
    found = harness.kubectl.get(tool.target)
    return found["metadata"]["annotations"].get(COOKIE), found["status"].get("lastModifiedCookie")
