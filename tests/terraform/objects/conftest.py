"""Terraform with the provider `setpoint`, on a namespace of a real API server."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.access import Access
from tests.terraform.command import Installation
from tests.terraform.conftest import install_provider
from tests.terraform.objects.counted_commands import CountedCommands
from tests.terraform.objects.counting_proxy import counting_proxy
from tests.terraform.objects.workspace import Workspace


@pytest.fixture(scope="session")
def setpoint_installation(installation: Installation) -> Installation:
    """Terraform, which finds the provider in the same folder as the probe providers."""
    home = Path(installation.environment["HOME"])
    install_provider("setpoint", "setpoint", ("-m setpoint.terraform.entry",), home)
    return installation


@pytest.fixture
def workspace(setpoint_installation: Installation, api_server: Access, namespace: str, tmp_path: Path) -> Workspace:
    """A namespace, and a folder for a configuration."""
    return Workspace(setpoint_installation, api_server, namespace, tmp_path)


@pytest.fixture
def commands(workspace: Workspace) -> Iterator[CountedCommands]:
    """Commands in that folder, for a cluster behind a proxy that counts requests."""
    with counting_proxy(workspace.access, workspace.namespace) as proxy:
        yield CountedCommands(workspace, proxy)
