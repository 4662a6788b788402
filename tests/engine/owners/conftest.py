"""Worlds for the claims about owners."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.engine.owners.settings import Setting


@pytest.fixture
def setting(request: pytest.FixtureRequest, tmp_path: Path) -> Setting:
    """The setting that a claim is played in, with a folder of its own."""
    found = request.param
    assert isinstance(found, Setting)
    return replace(found, folder=tmp_path)
