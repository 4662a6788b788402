"""Two tenants of a cluster with an installed controller."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.assets import Assets
from tests.cluster.server import CONTROLLERS, Cluster, Settings
from tests.security.tenant_cluster import TenantCluster


@pytest.fixture(scope="session")
def tenants(
    cluster_assets: Assets, kubectl_program: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[TenantCluster]:
    """An API server of its own: the controller reconciles all namespaces, which the shared one cannot offer."""
    folder = tmp_path_factory.mktemp("tenants")
    with (
        Cluster(cluster_assets, folder, Settings(controllers=CONTROLLERS)) as cluster,
        TenantCluster(cluster.access, kubectl_program, folder) as tenants,
    ):
        yield tenants
