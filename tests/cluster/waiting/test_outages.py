"""Waits during an outage and a compaction of the API server."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.assets import Assets
from tests.cluster.polling import until
from tests.cluster.server import Cluster, Settings
from tests.cluster.waiting.conftest import serve_records
from tests.cluster.waiting.four_waits import four_objects, report_done, uids, until_all_wait
from tests.cluster.waiting.manifests import ADDRESS, config_map, kubernetes_object, service, value_of
from tests.cluster.waiting.wait_harness import WaitHarness


@pytest.fixture(scope="module")
def own_cluster(cluster_assets: Assets, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """An API server that the tests of this module may kill and restart."""
    with Cluster(cluster_assets, tmp_path_factory.mktemp("cluster"), Settings(fsync=True)) as cluster:
        serve_records(cluster.access)
        yield cluster


@pytest.fixture
def harness(own_cluster: Cluster, tmp_path: Path) -> Iterator[WaitHarness]:
    """A namespace of that API server."""
    with WaitHarness(own_cluster.access, own_cluster.access.new_namespace(), tmp_path) as harness:
        yield harness


def _kill_and_compact(cluster: Cluster, harness: WaitHarness) -> None:
    """Kills the API server and compacts etcd, so that watches have to relist after a restart."""
    for number in range(5):
        harness.controllers.create(config_map(f"other-{number}"))
    cluster.api_server.kill()
    cluster.compact()


def _relisted_since(harness: WaitHarness, requests: int) -> set[str]:
    """The plurals that were relisted after so many requests."""
    return {one.path.rpartition("/")[2] for one in harness.requests()[requests:] if one.query.startswith("limit=")}


def test_waits_survive_a_restart_and_a_compaction(harness: WaitHarness, own_cluster: Cluster) -> None:
    running = harness.start_apply(*four_objects("240s"))
    until_all_wait(running)
    # One watch for each kind.
    until(lambda: harness.watches() == 3)
    made = uids(harness.controllers)
    _kill_and_compact(own_cluster, harness)
    running.until_printed("KubernetesObject here/by-field retrying")
    requests = len(harness.requests())
    own_cluster.start()
    # The API server may still have the history of custom resources.
    until(lambda: {"services", "deployments"} <= _relisted_since(harness, requests))
    report_done(harness.controllers)
    code, text = running.result()

    assert code == 0, text
    assert uids(harness.controllers) == made
    assert len(harness.writes()) == 5


def test_a_running_controller_follows_values_after_a_restart_and_a_compaction(
    harness: WaitHarness, own_cluster: Cluster
) -> None:
    harness.run_controller()
    web = kubernetes_object(service("web"), waitFor={"field": ADDRESS, "timeout": "240s"})
    running = harness.start_apply(web, kubernetes_object(config_map("needs-it", address=value_of("web"))))
    running.until_printed("KubernetesObject here/web waiting", "KubernetesObject here/needs-it blocked")
    harness.controllers.report_address("Service/web", "203.0.113.1")
    assert running.result().code == 0
    _kill_and_compact(own_cluster, harness)
    requests = len(harness.requests())
    own_cluster.start()
    until(lambda: "services" in _relisted_since(harness, requests))
    harness.controllers.report_address("Service/web", "203.0.113.2")
    until(lambda: harness.controllers.get("ConfigMap/needs-it")["data"]["address"] == "203.0.113.2")

    assert harness.writes("Service/web") == ["PATCH"]
    assert harness.writes("ConfigMap/needs-it") == ["PATCH", "PATCH"]
