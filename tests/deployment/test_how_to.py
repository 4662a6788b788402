"""Every command of the page about Kubernetes succeeds on a real API server."""

import os
import re
import subprocess
import sys
from pathlib import Path
from shutil import copytree

import pytest

from tests.cluster.fixtures import NewApiServer
from tests.cluster.server import CONTROLLERS, Cluster, Settings
from tests.deployment.chart import helm
from tests.deployment.conftest import Kubectl

PAGE = Path("docs/how-to/run-on-kubernetes.md").read_text(encoding="utf-8")
HEADING = re.compile(r"^#{2,3} (.+)\n((?:(?!^#{2,3} ).*\n)*)", re.MULTILINE)
BOX = re.compile(r"^```bash\n(.*?)^```$", re.DOTALL | re.MULTILINE)
# Each section is independent. These begin with an empty cluster, or with an installation.
EMPTY = ("With Helm",)
INSTALLED = ("What it may do", "Take it away, and keep what it made", "When it was removed too early")
HANGING = """
apiVersion: storage.cnrm.cloud.google.com/v1beta1
kind: StorageBucket
metadata:
  name: logs
  namespace: default
  finalizers: [cnrm.cloud.google.com/finalizer]
spec:
  location: EU
"""


def _stories() -> dict[str, str]:
    """The commands of each section, by heading."""
    boxes = {heading: "".join(BOX.findall(text)) for heading, text in HEADING.findall(PAGE)}
    return {heading: commands for heading, commands in boxes.items() if commands}


class Terminal:
    """A shell in a copy of the files, with the programs and the cluster that the page assumes."""

    def __init__(self, cluster: Cluster, kubectl: Path, folder: Path) -> None:
        programs = (str(kubectl.parent), str(Path(sys.executable).parent), str(Path(helm()).parent))
        path = os.pathsep.join([*programs, os.environ["PATH"]])
        kubeconfig = str(cluster.access.kubeconfig)
        self._environment = {"PATH": path, "KUBECONFIG": kubeconfig, "HOME": str(folder)}
        self._folder = folder

    def run(self, commands: str) -> str:
        """The output; AssertionError for the first command that fails."""
        done = subprocess.run(
            ["bash", "-euxo", "pipefail", "-c", commands],
            cwd=self._folder,
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture
def terminal(new_api_server: NewApiServer, kubectl_alone: Kubectl, tmp_path: Path) -> Terminal:
    copytree("deploy", tmp_path / "deploy")
    (tmp_path / "key.json").write_text("{}", encoding="utf-8")
    return Terminal(new_api_server(Settings(controllers=CONTROLLERS)), kubectl_alone.program, tmp_path)


def test_every_command_of_the_page_succeeds(terminal: Terminal) -> None:
    stories = _stories()
    for heading, commands in stories.items():
        if heading in EMPTY:
            terminal.run("setpoint install --dry-run | kubectl delete --ignore-not-found -f -")
        if heading in INSTALLED:
            terminal.run("setpoint install --force")
        if heading == INSTALLED[-1]:
            terminal.run(f"kubectl apply -f - <<'END'\n{HANGING}\nEND\nkubectl delete setpoint --all --wait=false")
        terminal.run(commands)

    assert terminal.run("kubectl get setpoint --all-namespaces") == ""
    assert len(stories) == 8
