"""A GitOps tool that applies the same objects: neither side reverts the other."""

from typing import Any

from setpoint.engine.requeue import jittered_resync
from setpoint.engine.resource import ResourceRef
from tests.cluster.polling import until
from tests.cluster.running.gitops import GitOps
from tests.cluster.running.manifests import bucket, bucket_path
from tests.cluster.running.controller_harness import Site

COOKIE = "cnrm.cloud.google.com/last-changed-cookie"
IN_ANNOTATIONS = ("--cookie-location", "annotation")
ROUNDS = 20
FEW_ROUNDS = 3


def _begin(site: Site, before: tuple[str, ...] = ()) -> GitOps:
    """A process that reconciles a bucket twice a second, which another field manager keeps applying."""
    site.process(before=before)
    manifest = bucket(_looked_at_often(site.kubectl.namespace), reconcile_interval_in_seconds="1")
    tool = GitOps.of(site.kubectl.access, site.kubectl.namespace, manifest)
    tool.apply()
    site.kubectl.until_ready(tool.target)
    _until_looked_at(site, tool)
    return tool


def _looked_at_often(namespace: str) -> str:
    """The name of a bucket whose looks are as close together as they may be with an interval of a second."""

    def pause(name: str) -> float:
        return jittered_resync(ResourceRef("storage.cnrm.cloud.google.com", "StorageBucket", namespace, name), 1)

    return min((f"watched-{number}" for number in range(100)), key=pause)


def _until_looked_at(site: Site, tool: GitOps) -> None:
    """Returns when the bucket has been looked at once more."""

    def looks() -> int:
        path = bucket_path(tool.name)
        return site.in_cloud(lambda cloud: sum(one.path == path for one in cloud.journal.entries))

    before = looks()
    until(lambda: looks() > before)


def _writes(site: Site, tool: GitOps) -> list[tuple[str, str]]:
    """What processes asked the cluster to change."""
    return [(one.method, one.path.rpartition(tool.name)[2]) for one in site.asked() if one.method != "GET"]


def _without_managers(tree: Any) -> Any:
    metadata = {name: value for name, value in tree["metadata"].items() if name != "managedFields"}
    return {**tree, "metadata": metadata}


def test_a_tool_that_applies_and_prunes_again_and_again_changes_nothing(site: Site) -> None:
    tool = _begin(site)
    settled, asked = _without_managers(tool.prune()), len(site.asked())
    written = site.in_cloud(lambda cloud: len(cloud.written))

    seen = []
    for _ in range(ROUNDS):
        tool.apply()
        seen.append(_without_managers(tool.prune()))
        _until_looked_at(site, tool)

    assert seen == [settled] * ROUNDS
    assert settled["status"]["lastModifiedCookie"]
    assert [condition["type"] for condition in settled["status"]["conditions"]] == ["Ready"]
    assert site.asked()[asked:] == []
    assert site.in_cloud(lambda cloud: len(cloud.written)) == written == 1


def test_a_cookie_in_an_annotation_outlives_a_tool_that_only_applies(site: Site) -> None:
    tool = _begin(site, IN_ANNOTATIONS)
    settled, written = _without_managers(tool.apply()), _writes(site, tool)

    for _ in range(FEW_ROUNDS):
        assert _without_managers(tool.apply()) == settled
        _until_looked_at(site, tool)

    assert settled["metadata"]["annotations"][COOKIE]
    assert "lastModifiedCookie" not in settled["status"]
    assert _writes(site, tool) == written


def test_a_cookie_in_an_annotation_that_is_pruned_is_written_again_once_by_the_next_look(site: Site) -> None:
    tool = _begin(site, IN_ANNOTATIONS)
    settled, written = tool.apply(), _writes(site, tool)

    for _ in range(FEW_ROUNDS):
        assert COOKIE not in tool.prune()["metadata"]["annotations"]
        until(lambda: COOKIE in site.kubectl.get(tool.target)["metadata"]["annotations"])
        _until_looked_at(site, tool)

    now = site.kubectl.get(tool.target)
    assert now["metadata"]["annotations"] == settled["metadata"]["annotations"]
    assert now["status"] == settled["status"]
    assert _writes(site, tool)[len(written) :] == [("PATCH", "")] * FEW_ROUNDS
    assert [one.method for one in site.in_cloud(lambda cloud: tuple(cloud.written))] == ["POST"]
