"""A cluster that knows our kinds, as the docs say that it gets to."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cluster.access import Access
from tests.cluster.crds.resources import Corner

Kubectl = Callable[..., str]


@pytest.fixture(scope="session")
def kubectl(api_server: Access, kubectl_program: Path) -> Kubectl:
    """Runs kubectl as the administrator, and returns what it printed; what it refuses is an error."""

    def run(*arguments: str, stdin: str = "") -> str:
        command = [str(kubectl_program), f"--kubeconfig={api_server.kubeconfig}", *arguments]
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.fixture(scope="session")
def definitions() -> str:
    """What `setpoint crds` prints."""
    program = Path(sys.executable).with_name("setpoint")
    return subprocess.run([str(program), "crds"], capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="session")
def cluster(api_server: Access, kubectl: Kubectl, definitions: str) -> Access:
    """The shared API server once it serves our kinds."""
    kubectl("apply", "--server-side", "-f", "-", stdin=definitions)
    kubectl("wait", "--for=condition=Established", "crd", "-l", "app.kubernetes.io/part-of=setpoint", "--timeout=240s")
    return api_server


@pytest.fixture
def corner(cluster: Access, namespace: str) -> Corner:
    """A namespace that is this test's own."""
    return Corner(cluster, namespace)
