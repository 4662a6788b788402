"""An API server that tests kill, freeze, compact and restart."""

from collections.abc import Iterator

import pytest

from tests.cluster.assets import Assets
from tests.cluster.server import Cluster, Settings


@pytest.fixture(scope="session")
def _cluster(cluster_assets: Assets, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(cluster_assets, tmp_path_factory.mktemp("outages"), Settings()) as cluster:
        yield cluster


@pytest.fixture
def outage_server(_cluster: Cluster) -> Cluster:
    """The API server that all tests of this folder share, ready, whatever the test before did to it."""
    return _ready(_cluster)


@pytest.fixture(scope="module")
def running_outage_server(_cluster: Cluster) -> Cluster:
    """The same, for a fixture of a module."""
    return _ready(_cluster)


def _ready(cluster: Cluster) -> Cluster:
    for process in (cluster.etcd, cluster.api_server):
        process.thaw()
    cluster.start()
    return cluster
