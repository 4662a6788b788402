"""Fixtures of the scenarios."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.workspace import Workspace
from tests.scenarios.command_harness import CommandHarness


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[CommandHarness]:
    """A folder with a manifest in it, a local cloud, and the command between the two."""
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    with Workspace(tmp_path, {**kept, "PYTHONUTF8": "1"}) as workspace:
        yield CommandHarness(workspace)
