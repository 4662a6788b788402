"""What tests of the deployment share: kubectl, and a cluster in which it is installed."""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.access import Access


@dataclass(frozen=True, slots=True)
class Kubectl:
    """The program, and the cluster that it speaks to, if it needs any."""

    program: Path
    access: Access | None = None

    def __call__(self, *arguments: str, stdin: str | None = None) -> str:
        """What it prints; AssertionError with what it complains about."""
        done = self.run(*arguments, stdin=stdin)
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}\n{done.stdout}{done.stderr}"
        return done.stdout

    def run(self, *arguments: str, stdin: str | None = None) -> "subprocess.CompletedProcess[str]":
        """How it ended."""
        cluster = () if self.access is None else (f"--kubeconfig={self.access.kubeconfig}",)
        return subprocess.run(
            [str(self.program), *cluster, *arguments], input=stdin, capture_output=True, text=True, check=False
        )

    def apply(self, text: str, *options: str) -> str:
        """Applies objects as YAML, or JSON, as we tell people to: the server checks every field."""
        return self("apply", "--server-side", "--force-conflicts", *options, "-f", "-", stdin=text)

    def get(self, *arguments: str) -> Any:
        """An object, or a list of them."""
        return json.loads(self("get", *arguments, "-o", "json"))


@pytest.fixture(scope="session")
def kubectl_alone(kubectl_program: Path) -> Kubectl:
    """For what needs no cluster."""
    return Kubectl(kubectl_program)


@pytest.fixture(scope="session")
def kubectl(kubectl_alone: Kubectl, api_server: Access) -> Kubectl:
    """For the cluster that all tests share, as its administrator."""
    return Kubectl(kubectl_alone.program, api_server)
