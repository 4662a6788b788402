"""Who works with the command line in these tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.fleets import INSTANCE
from tests.cli.test_moving import SECRET, USER
from tests.cli.workspace import Workspace, bucket, surroundings


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    """A folder of one's own and a local cloud; what was started there is ended."""
    with Workspace(tmp_path, surroundings()) as workspace:
        yield workspace


@pytest.fixture
def other_desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    """Another folder, and another cloud."""
    with Workspace(tmp_path_factory.mktemp("other"), surroundings()) as workspace:
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
    workspace.act("reconcile")
    workspace.in_cloud(lambda cloud: cloud.journal.clear())
    yield workspace
    assert workspace.in_cloud(lambda cloud: cloud.journal.counts())["writes"] == 0
