"""A cluster with a running controller for TrusteeConfig and KbsConfig."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.assets import Assets
from tests.cluster.running.kubectl import install_kinds
from tests.cluster.server import CONTROLLERS, Cluster, Settings
from tests.cluster.trustee.trustee_cluster import TrusteeCluster
from tests.cluster.trustee.trustee_namespace import DEPLOYMENT, TrusteeNamespace


@pytest.fixture(scope="session")
def trustee_cluster(
    cluster_assets: Assets, kubectl_program: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[TrusteeCluster]:
    """An API server of its own: the controller reconciles all namespaces, which the shared one cannot offer."""
    folder = tmp_path_factory.mktemp("trustee")
    with Cluster(cluster_assets, folder, Settings(controllers=CONTROLLERS)) as cluster:
        install_kinds(cluster.access, kubectl_program)
        if cluster.controller_manager is not None:
            # It discovers new kinds only periodically: after a restart it collects garbage of ours from the start.
            cluster.controller_manager.stop()
            cluster.controller_manager.start()
        with TrusteeCluster(cluster.access, kubectl_program, folder) as trustee_cluster:
            yield trustee_cluster
            assert trustee_cluster.written_after_settling() == []


@pytest.fixture
def trustee(trustee_cluster: TrusteeCluster) -> Iterator[TrusteeNamespace]:
    """A namespace of the test's own. In the end its pods are ready: otherwise it is reconciled every ten seconds."""
    trustee = trustee_cluster.new_namespace()
    yield trustee
    if trustee.get(DEPLOYMENT) is not None:
        trustee.report_replicas()
