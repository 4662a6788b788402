"""Where the tests of a running `setpoint` take place."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from soak.fleet.process import RunProcess
from tests.cluster.access import Access
from tests.cluster.running.kubectl import Kubectl, install_kinds
from tests.cluster.running.controller_harness import Site


@pytest.fixture(scope="session")
def cluster(api_server: Access, kubectl_program: Path) -> Access:
    """The shared API server once it serves our kinds."""
    install_kinds(api_server, kubectl_program)
    return api_server


@pytest.fixture
def site(cluster: Access, kubectl_program: Path, namespace: str, tmp_path: Path) -> Iterator[Site]:
    """A place of the test's own, in which nothing runs yet."""
    with Site(Kubectl(kubectl_program, cluster, namespace), tmp_path) as site:
        yield site


@pytest.fixture(scope="session")
def busy_site(cluster: Access, kubectl_program: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A place that many tests share, with a process at work: each keeps to names of its own."""
    namespace = cluster.new_namespace()
    with Site(Kubectl(kubectl_program, cluster, namespace), tmp_path_factory.mktemp("busy")) as site:
        site.process()
        yield site


@pytest.fixture
def keeper(busy_site: Site) -> RunProcess:
    """The process that is at work there."""
    return busy_site.processes[0]
