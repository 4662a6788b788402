"""A namespace with local cloud and proxy, with and without a running controller."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from soak.fleet.process import RunProcess
from tests.cluster.access import Access
from tests.cluster.running.controller_harness import ControllerHarness
from tests.cluster.running.kubectl import Kubectl, install_kinds


@pytest.fixture(scope="session")
def cluster(api_server: Access, kubectl_program: Path) -> Access:
    """The shared API server, which serves our kinds."""
    install_kinds(api_server, kubectl_program)
    return api_server


@pytest.fixture
def harness(cluster: Access, kubectl_program: Path, namespace: str, tmp_path: Path) -> Iterator[ControllerHarness]:
    """A namespace and a local cloud of the test's own, without a controller."""
    with ControllerHarness(Kubectl(kubectl_program, cluster, namespace), tmp_path) as harness:
        yield harness


@pytest.fixture(scope="session")
def shared_harness(
    cluster: Access, kubectl_program: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControllerHarness]:
    """A namespace with a running controller that tests share: each uses names of its own."""
    namespace = cluster.new_namespace()
    with ControllerHarness(Kubectl(kubectl_program, cluster, namespace), tmp_path_factory.mktemp("busy")) as harness:
        harness.start_controller()
        yield harness


@pytest.fixture
def controller(shared_harness: ControllerHarness) -> RunProcess:
    """The controller of `shared_harness`."""
    return shared_harness.processes[0]
