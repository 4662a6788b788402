"""An API server that ends in the middle of a wait, and forgets: nothing is lost but time."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.assets import Assets
from tests.cluster.patience import until
from tests.cluster.server import Cluster, Settings
from tests.cluster.waiting.conftest import serve_records
from tests.cluster.waiting.four_waits import four, play, uids, until_all_wait
from tests.cluster.waiting.manifests import ADDRESS, config_map, kept, service, value_of
from tests.cluster.waiting.stage import Stage


@pytest.fixture(scope="module")
def own_cluster(cluster_assets: Assets, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """An API server that the tests of this module may end; it remembers what it was told."""
    with Cluster(cluster_assets, tmp_path_factory.mktemp("cluster"), Settings(fsync=True)) as cluster:
        serve_records(cluster.access)
        yield cluster


@pytest.fixture
def stage(own_cluster: Cluster, tmp_path: Path) -> Iterator[Stage]:
    """A place on that API server."""
    with Stage(own_cluster.access, own_cluster.access.new_namespace(), tmp_path) as stage:
        yield stage


def _end_and_forget(cluster: Cluster, stage: Stage) -> None:
    """The API server is gone, and when it starts again it cannot go on from where watches are."""
    for number in range(5):
        stage.player.make(config_map(f"other-{number}"))
    cluster.api_server.kill()
    cluster.compact()


def _listed_since(stage: Stage, asked: int) -> set[str]:
    """What was listed anew after so many requests."""
    return {one.path.rpartition("/")[2] for one in stage.asked()[asked:] if one.query.startswith("limit=")}


def test_waits_outlive_an_api_server_that_ends_and_forgets(stage: Stage, own_cluster: Cluster) -> None:
    applying = stage.begin_apply(*four("120s"))
    until_all_wait(applying)
    # One for each kind of object.
    until(lambda: stage.watches() == 3)
    made = uids(stage.player)
    _end_and_forget(own_cluster, stage)
    applying.until_said("KubernetesObject here/by-field retrying")
    asked = len(stage.asked())
    own_cluster.start()
    # Custom resources may be remembered all the same.
    until(lambda: {"services", "deployments"} <= _listed_since(stage, asked))
    play(stage.player)
    code, text = applying.ended()

    assert code == 0, text
    assert uids(stage.player) == made
    assert len(stage.writes()) == 5


def test_a_process_that_goes_on_for_ever_hears_of_values_after_that_as_before(
    stage: Stage, own_cluster: Cluster
) -> None:
    stage.keep()
    web = kept(service("web"), waitFor={"field": ADDRESS, "timeout": "120s"})
    applying = stage.begin_apply(web, kept(config_map("needs-it", address=value_of("web"))))
    applying.until_said("KubernetesObject here/web waiting", "KubernetesObject here/needs-it blocked")
    stage.player.give_address("Service/web", "203.0.113.1")
    assert applying.ended().code == 0
    _end_and_forget(own_cluster, stage)
    asked = len(stage.asked())
    own_cluster.start()
    until(lambda: "services" in _listed_since(stage, asked))
    stage.player.give_address("Service/web", "203.0.113.2")
    until(lambda: stage.player.see("ConfigMap/needs-it")["data"]["address"] == "203.0.113.2")

    assert stage.writes("Service/web") == ["PATCH"]
    assert stage.writes("ConfigMap/needs-it") == ["PATCH", "PATCH"]
