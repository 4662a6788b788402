"""Fixtures of the tests of clients."""

from pathlib import Path

import pytest

from tests.clients.google_machines import Machine


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A machine without a login."""
    return Machine(tmp_path, monkeypatch)
