"""Terraform with the provider `setpoint`, on a namespace of a real API server."""

from pathlib import Path

import pytest

from tests.cluster.access import Access
from tests.terraform.command import Installation
from tests.terraform.conftest import install_provider
from tests.terraform.objects.workspace import Workspace


@pytest.fixture(scope="session")
def patch_installation(installation: Installation) -> Installation:
    """Terraform, which finds the provider in the same folder as the probe providers."""
    home = Path(installation.environment["HOME"])
    if not list(home.glob("mirror/*/setpoint/setpoint")):
        install_provider("setpoint", "setpoint", ("-m setpoint.terraform.entry",), home)
    return installation


@pytest.fixture
def workspace(patch_installation: Installation, api_server: Access, namespace: str, tmp_path: Path) -> Workspace:
    """A namespace, and a folder for a configuration."""
    return Workspace(patch_installation, api_server, namespace, tmp_path)
