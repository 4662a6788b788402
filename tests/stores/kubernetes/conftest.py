"""A store in a real cluster, empty before each test."""

import asyncio
from collections.abc import Iterator

import pytest

from setpoint.clients.kubernetes.client import KubernetesClient
from setpoint.clients.kubernetes.contexts import connection_from_files
from setpoint.stores.kubernetes.served_kinds import ClusterScope
from setpoint.stores.kubernetes.store import KubernetesStore
from tests.cluster.access import Access
from tests.cluster.assets import Assets
from tests.cluster.server import Cluster, Settings
from tests.engine.clock import FakeClock
from tests.stores.kubernetes.crds import KINDS, install, wipe


@pytest.fixture(scope="session")
def prepared(cluster_assets: Assets, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Access]:
    """An API server of its own, since everything is removed from it, with the CRDs of the contract."""
    with Cluster(cluster_assets, tmp_path_factory.mktemp("stores"), Settings()) as cluster:
        install(cluster.access)
        yield cluster.access


@pytest.fixture
def cluster_scope() -> ClusterScope:
    return ClusterScope({kind.name: kind for kind in KINDS}, leases="default")


@pytest.fixture
def store(
    prepared: Access, loop: asyncio.Runner, clock: FakeClock, cluster_scope: ClusterScope
) -> Iterator[KubernetesStore]:
    wipe(prepared)
    client = KubernetesClient(connection_from_files([prepared.kubeconfig]))
    opened = KubernetesStore(client, clock, cluster_scope)
    yield opened
    loop.run(opened.close())
