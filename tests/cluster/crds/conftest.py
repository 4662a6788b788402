"""The shared API server with the CustomResourceDefinitions of `setpoint crds`."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cluster.access import Access
from tests.cluster.crds.resources import CustomResources, printed_definitions

Kubectl = Callable[..., str]


@pytest.fixture(scope="session")
def kubectl(api_server: Access, kubectl_program: Path) -> Kubectl:
    """Runs kubectl as the administrator, and returns its output; a failure is an AssertionError."""

    def run(*arguments: str, stdin: str = "") -> str:
        command = [str(kubectl_program), f"--kubeconfig={api_server.kubeconfig}", *arguments]
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.fixture(scope="session")
def definitions() -> str:
    """The output of `setpoint crds`."""
    return printed_definitions()


@pytest.fixture(scope="session")
def cluster(api_server: Access, kubectl: Kubectl, definitions: str) -> Access:
    """The shared API server, which serves our kinds."""
    kubectl("apply", "--server-side", "-f", "-", stdin=definitions)
    kubectl("wait", "--for=condition=Established", "crd", "-l", "app.kubernetes.io/part-of=setpoint", "--timeout=240s")
    return api_server


@pytest.fixture
def resources(cluster: Access, namespace: str) -> CustomResources:
    """Requests for custom resources in a namespace of the test's own."""
    return CustomResources(cluster, namespace)
