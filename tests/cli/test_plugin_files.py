"""Files of a provider: a reader sees all of one, or none, at any moment."""

import errno
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from setpoint.cli.atomic_files import FileChange, put_file
from setpoint.errors import UserError


def _put(file: Path, text: str) -> FileChange:
    return put_file(file, text, mode=0o755, setting="--plugins")


def test_concurrent_installs_leave_one_complete_file(tmp_path: Path) -> None:
    file = tmp_path / "1.0.0" / "linux_amd64" / "launcher"
    with ThreadPoolExecutor(8) as pool:
        changes = list(pool.map(lambda _: _put(file, "the text"), range(64)))

    assert FileChange.CREATED in changes
    assert file.read_text() == "the text"
    assert [one.name for one in tmp_path.rglob("*")] == ["1.0.0", "linux_amd64", "launcher"]


@pytest.mark.parametrize("before", [None, "the old text"])
def test_a_full_disk_leaves_the_file_unchanged(
    tmp_path: Path, before: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "1.0.0" / "linux_amd64" / "launcher"
    if before is not None:
        _put(file, before)

    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UserError, match="No space left on device: make that possible, or name another folder"):
        _put(file, "the new text")

    there = [one for one in tmp_path.rglob("*") if one.is_file()]
    assert [(one, one.read_text()) for one in there] == ([] if before is None else [(file, before)])
