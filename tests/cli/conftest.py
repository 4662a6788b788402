"""Workspaces for the tests of the command line."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.fleets import INSTANCE
from tests.cli.test_transfer import SECRET, USER
from tests.cli.workspace import Workspace, bucket, user_environment
from tests.localcloud.process import cloud_process


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    """An empty folder and a local cloud; programs started there are ended with the test."""
    with Workspace(tmp_path, user_environment()) as workspace:
        yield workspace


@pytest.fixture(scope="module")
def cloud() -> Iterator[str]:
    """The address of a local cloud in a process of its own."""
    with cloud_process() as address:
        yield address


@pytest.fixture
def folder_with_cloud(cloud: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty working folder, and an environment that leads to the local cloud: for commands in this process."""
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", cloud)
    monkeypatch.setenv("SETPOINT_GCP_AUTH", "anonymous")
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def second_workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    """A second workspace: another folder and another local cloud."""
    with Workspace(tmp_path_factory.mktemp("other"), user_environment()) as workspace:
        yield workspace


@pytest.fixture
def fleet(workspace: Workspace) -> Iterator[Workspace]:
    """A workspace with buckets, an instance with a password in its manifest, and a user with one in a Secret.

    From here on there are only reads: nothing is written to the cloud, whatever the test tries.
    """
    workspace.make_instance("main")
    workspace.in_cloud(lambda cloud: cloud.clock.release())
    workspace.apply(bucket("logs"), bucket("more"), SECRET, USER, INSTANCE)
    workspace.in_cloud(lambda cloud: cloud.advance(3600))
    workspace.run_quietly("reconcile")
    workspace.in_cloud(lambda cloud: cloud.journal.clear())
    yield workspace
    assert workspace.in_cloud(lambda cloud: cloud.journal.counts())["writes"] == 0
