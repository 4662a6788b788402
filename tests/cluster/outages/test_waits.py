"""Waits during an outage and a compaction of the API server."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.polling import until
from tests.cluster.server import Cluster
from tests.cluster.waiting.conftest import serve_records
from tests.cluster.waiting.four_waits import four_objects, report_done, uids, until_all_wait
from tests.cluster.waiting.manifests import ADDRESS, config_map, kubernetes_object, service, value_of
from tests.cluster.waiting.wait_harness import WaitHarness


@pytest.fixture
def harness(outage_server: Cluster, tmp_path: Path) -> Iterator[WaitHarness]:
    """A namespace of an API server that can be killed, which serves DNSRecord."""
    serve_records(outage_server.access)
    with WaitHarness(outage_server.access, outage_server.access.new_namespace(), tmp_path) as harness:
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


def test_waits_survive_a_restart_and_a_compaction(harness: WaitHarness, outage_server: Cluster) -> None:
    running = harness.start_apply(*four_objects("240s"))
    until_all_wait(running)
    # One watch for each kind.
    until(lambda: harness.watches() == 3)
    made = uids(harness.controllers)
    _kill_and_compact(outage_server, harness)
    running.until_printed("KubernetesObject here/by-field retrying")
    requests = len(harness.requests())
    outage_server.start()
    # The API server may still have the history of custom resources.
    until(lambda: {"services", "deployments"} <= _relisted_since(harness, requests))
    report_done(harness.controllers)
    code, text = running.result()

    assert code == 0, text
    assert uids(harness.controllers) == made
    assert len(harness.writes()) == 5


def test_a_running_controller_follows_values_after_a_restart_and_a_compaction(
    harness: WaitHarness, outage_server: Cluster
) -> None:
    harness.run_controller()
    web = kubernetes_object(service("web"), waitFor={"field": ADDRESS, "timeout": "240s"})
    running = harness.start_apply(web, kubernetes_object(config_map("needs-it", address=value_of("web"))))
    running.until_printed("KubernetesObject here/web waiting", "KubernetesObject here/needs-it blocked")
    harness.controllers.report_address("Service/web", "203.0.113.1")
    assert running.result().code == 0
    _kill_and_compact(outage_server, harness)
    requests = len(harness.requests())
    outage_server.start()
    until(lambda: "services" in _relisted_since(harness, requests))
    harness.controllers.report_address("Service/web", "203.0.113.2")
    until(lambda: harness.controllers.get("ConfigMap/needs-it")["data"]["address"] == "203.0.113.2")

    assert harness.writes("Service/web") == ["PATCH"]
    assert harness.writes("ConfigMap/needs-it") == ["PATCH", "PATCH"]
