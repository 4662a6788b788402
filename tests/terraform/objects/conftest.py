"""Terraform with the provider `setpoint`, on a namespace of a real API server."""

from pathlib import Path

import pytest

from tests.cluster.access import Access
from tests.terraform.command import Installation
from tests.terraform.conftest import install_provider
from tests.terraform.objects.stage import Stage


@pytest.fixture(scope="session")
def setpoint_installation(installation: Installation) -> Installation:
    """Terraform, which finds the provider in the same folder as the others."""
    install_provider("setpoint", "setpoint", "-m setpoint.terraform.entry", Path(installation.environment["HOME"]))
    return installation


@pytest.fixture
def stage(setpoint_installation: Installation, api_server: Access, namespace: str, tmp_path: Path) -> Stage:
    """A namespace, and a folder for a configuration."""
    return Stage(setpoint_installation, api_server, namespace, tmp_path)
