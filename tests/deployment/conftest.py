"""Fixtures of the deployment tests: kubectl, without a cluster and for the shared one."""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.access import Access


@dataclass(frozen=True, slots=True)
class Kubectl:
    """The program, and its cluster, if it needs one."""

    program: Path
    access: Access | None = None

    def __call__(self, *arguments: str, stdin: str | None = None) -> str:
        """The output; AssertionError with its messages if it fails."""
        done = self.run(*arguments, stdin=stdin)
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}\n{done.stdout}{done.stderr}"
        return done.stdout

    def run(self, *arguments: str, stdin: str | None = None) -> "subprocess.CompletedProcess[str]":
        """The exit code and output."""
        cluster: tuple[str, ...] = ()
        if self.access is not None:
            # What kubectl knows of a cluster it keeps by address: an earlier cluster may have had the same.
            cache = self.access.folder / "kubectl-cache"
            cluster = f"--kubeconfig={self.access.kubeconfig}", f"--cache-dir={cache}"
        return subprocess.run(
            [str(self.program), *cluster, *arguments], input=stdin, capture_output=True, text=True, check=False
        )

    def apply(self, text: str, *options: str) -> str:
        """Applies objects from YAML or JSON, by server-side apply."""
        return self("apply", "--server-side", "--force-conflicts", *options, "-f", "-", stdin=text)

    def get(self, *arguments: str) -> Any:
        """An object, or a list of objects."""
        return json.loads(self("get", *arguments, "-o", "json"))


@pytest.fixture(scope="session")
def kubectl_alone(kubectl_program: Path) -> Kubectl:
    """kubectl without a cluster."""
    return Kubectl(kubectl_program)


@pytest.fixture(scope="session")
def kubectl(kubectl_alone: Kubectl, api_server: Access) -> Kubectl:
    """kubectl for the shared cluster, as its administrator."""
    return Kubectl(kubectl_alone.program, api_server)
