"""An API server of the tests can be killed and restarted, and keeps its address and its objects."""

import os
from pathlib import Path

import pytest

from tests.cluster.assets import Assets
from tests.cluster.server import Cluster, NotReady, Settings


def _is_read(cluster: Cluster, path: str) -> bool:
    try:
        return cluster.access.call("GET", f"{path}?timeout=1s").status == 200
    except OSError:
        # It closes the connection when etcd does not answer in time.
        return False


def test_address_and_objects_survive_a_restart(outage_server: Cluster) -> None:
    namespace = outage_server.access.new_namespace()
    before = outage_server.access.call("GET", f"/api/v1/namespaces/{namespace}").body
    outage_server.restart_api_server()

    assert outage_server.access.call("GET", f"/api/v1/namespaces/{namespace}").body == before


def test_objects_survive_kill_9_of_all_processes(outage_server: Cluster) -> None:
    namespace = outage_server.access.new_namespace()
    outage_server.api_server.kill()
    outage_server.etcd.kill()
    outage_server.start()

    assert outage_server.access.call("GET", f"/api/v1/namespaces/{namespace}").status == 200


def test_it_fails_without_etcd_and_recovers_with_it(outage_server: Cluster) -> None:
    outage_server.etcd.kill()
    meanwhile = _is_read(outage_server, "/api/v1/namespaces/default")
    outage_server.etcd.start()
    outage_server.wait_until_ready()

    assert (meanwhile, _is_read(outage_server, "/api/v1/namespaces/default")) == (False, True)


def test_a_watch_from_before_a_compaction_expires_after_a_restart(outage_server: Cluster) -> None:
    old = outage_server.access.call("GET", "/api/v1/namespaces").body["metadata"]["resourceVersion"]
    outage_server.access.new_namespace()
    outage_server.compact()
    outage_server.restart_api_server()
    event = outage_server.access.call(
        "GET", f"/api/v1/namespaces?watch=true&timeoutSeconds=1&resourceVersion={old}"
    ).body

    assert (event["type"], event["object"]["code"], event["object"]["reason"]) == ("ERROR", 410, "Expired")


def test_neither_processes_nor_data_are_left_after_close(cluster_assets: Assets, tmp_path: Path) -> None:
    with Cluster(cluster_assets, tmp_path, Settings()) as cluster:
        pids = [cluster.etcd.pid, cluster.api_server.pid]

    for pid in pids:
        assert pid is not None
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    assert not (tmp_path / "etcd").exists()


def test_a_failed_start_shows_the_logs(cluster_assets: Assets, tmp_path: Path) -> None:
    cluster = Cluster(cluster_assets, tmp_path, Settings(arguments=["--no-such-flag"]))

    with pytest.raises(NotReady, match=r"(?s)^kube-apiserver ended\n.*unknown flag: --no-such-flag"):
        cluster.open()
    assert (cluster.etcd.pid, cluster.api_server.pid) == (None, None)
