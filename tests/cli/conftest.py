"""Who works with the command line in these tests."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.desk import Desk


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """A folder of one's own and a local cloud; what was started there is ended."""
    with Desk(tmp_path, _environment()) as desk:
        yield desk


@pytest.fixture
def other_desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """Another folder, and another cloud."""
    with Desk(tmp_path_factory.mktemp("other"), _environment()) as desk:
        yield desk


def _environment() -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    return {**kept, "TERM": "xterm-256color", "PYTHONUTF8": "1"}
