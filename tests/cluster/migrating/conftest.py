"""A cluster with Config Connector, and the workspace of an operator who leaves it."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.workspace import Workspace
from tests.cluster.access import Access
from tests.cluster.migrating.config_connector_cluster import ConfigConnectorCluster, serve_config_connector_kinds
from tests.scenarios.served_kinds import empty


@pytest.fixture(scope="session")
def cluster(api_server: Access) -> Access:
    """The shared API server, which serves the kinds of Config Connector."""
    serve_config_connector_kinds(api_server)
    return api_server


@pytest.fixture
def workspace(cluster: Access, tmp_path: Path) -> Iterator[Workspace]:
    """A workspace with the kubeconfig of that cluster."""
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    with Workspace(tmp_path, {**kept, "PYTHONUTF8": "1", "KUBECONFIG": str(cluster.kubeconfig)}) as workspace:
        yield workspace


@pytest.fixture
def config_connector(cluster: Access, namespace: str, workspace: Workspace) -> Iterator[ConfigConnectorCluster]:
    """One bucket as declared, and one with more settings than are declared."""
    config_connector = ConfigConnectorCluster(cluster, namespace, workspace)
    config_connector.create("calm")
    config_connector.create("edited", {"versioning": {"enabled": True}})
    workspace.in_cloud(lambda cloud: cloud.journal.clear())
    yield config_connector
    empty(cluster, namespace)
