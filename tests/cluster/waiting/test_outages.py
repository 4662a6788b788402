"""An API server that ends in the middle of a wait, and forgets: nothing is lost but time."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.assets import Assets
from tests.cluster.polling import until
from tests.cluster.server import Cluster, Settings
from tests.cluster.waiting.conftest import serve_records
from tests.cluster.waiting.four_waits import four, play, uids, until_all_wait
from tests.cluster.waiting.manifests import ADDRESS, config_map, kept, service, value_of
from tests.cluster.waiting.wait_harness import WaitHarness


@pytest.fixture(scope="module")
def own_cluster(cluster_assets: Assets, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """An API server that the tests of this module may end; it remembers what it was told."""
    with Cluster(cluster_assets, tmp_path_factory.mktemp("cluster"), Settings(fsync=True)) as cluster:
        serve_records(cluster.access)
        yield cluster


@pytest.fixture
def harness(own_cluster: Cluster, tmp_path: Path) -> Iterator[WaitHarness]:
    """A place on that API server."""
    with WaitHarness(own_cluster.access, own_cluster.access.new_namespace(), tmp_path) as harness:
        yield harness


def _end_and_forget(cluster: Cluster, harness: WaitHarness) -> None:
    """The API server is gone, and when it starts again it cannot go on from where watches are."""
    for number in range(5):
        harness.controllers.make(config_map(f"other-{number}"))
    cluster.api_server.kill()
    cluster.compact()


def _listed_since(harness: WaitHarness, asked: int) -> set[str]:
    """What was listed anew after so many requests."""
    return {one.path.rpartition("/")[2] for one in harness.asked()[asked:] if one.query.startswith("limit=")}


def test_waits_outlive_an_api_server_that_ends_and_forgets(harness: WaitHarness, own_cluster: Cluster) -> None:
    applying = harness.begin_apply(*four("240s"))
    until_all_wait(applying)
    # One for each kind of object.
    until(lambda: harness.watches() == 3)
    made = uids(harness.controllers)
    _end_and_forget(own_cluster, harness)
    applying.until_said("KubernetesObject here/by-field retrying")
    asked = len(harness.asked())
    own_cluster.start()
    # Custom resources may be remembered all the same.
    until(lambda: {"services", "deployments"} <= _listed_since(harness, asked))
    play(harness.controllers)
    code, text = applying.ended()

    assert code == 0, text
    assert uids(harness.controllers) == made
    assert len(harness.writes()) == 5


def test_a_process_that_goes_on_for_ever_hears_of_values_after_that_as_before(
    harness: WaitHarness, own_cluster: Cluster
) -> None:
    harness.keep()
    web = kept(service("web"), waitFor={"field": ADDRESS, "timeout": "240s"})
    applying = harness.begin_apply(web, kept(config_map("needs-it", address=value_of("web"))))
    applying.until_said("KubernetesObject here/web waiting", "KubernetesObject here/needs-it blocked")
    harness.controllers.give_address("Service/web", "203.0.113.1")
    assert applying.ended().code == 0
    _end_and_forget(own_cluster, harness)
    asked = len(harness.asked())
    own_cluster.start()
    until(lambda: "services" in _listed_since(harness, asked))
    harness.controllers.give_address("Service/web", "203.0.113.2")
    until(lambda: harness.controllers.see("ConfigMap/needs-it")["data"]["address"] == "203.0.113.2")

    assert harness.writes("Service/web") == ["PATCH"]
    assert harness.writes("ConfigMap/needs-it") == ["PATCH", "PATCH"]
