"""Who works with the command line in these tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.desk import Desk, bucket, surroundings
from tests.cli.fleets import INSTANCE
from tests.cli.test_moving import SECRET, USER


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """A folder of one's own and a local cloud; what was started there is ended."""
    with Desk(tmp_path, surroundings()) as desk:
        yield desk


@pytest.fixture
def other_desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """Another folder, and another cloud."""
    with Desk(tmp_path_factory.mktemp("other"), surroundings()) as desk:
        yield desk


@pytest.fixture
def fleet(desk: Desk) -> Iterator[Desk]:
    """A workspace with buckets, an instance with a password in its manifest, and a user with one in a Secret.

    From here on there are only reads: nothing is written to the cloud, whatever the test tries.
    """
    desk.make_instance("main")
    desk.in_cloud(lambda cloud: cloud.clock.release())
    desk.apply(bucket("logs"), bucket("more"), SECRET, USER, INSTANCE)
    desk.in_cloud(lambda cloud: cloud.advance(3600))
    desk.act("reconcile")
    desk.in_cloud(lambda cloud: cloud.journal.clear())
    yield desk
    assert desk.in_cloud(lambda cloud: cloud.journal.counts())["writes"] == 0
