"""A machine for those who ask who we are."""

from pathlib import Path

import pytest

from tests.clients.identities import Machine


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """One on which nobody has logged in."""
    return Machine(tmp_path, monkeypatch)
