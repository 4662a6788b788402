"""Files that only their owner can read."""

import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from setpoint.cli.atomic_files import write_private_file
from setpoint.errors import UserError


def test_a_private_file_is_readable_by_its_owner_only_and_complete(tmp_path: Path) -> None:
    path = tmp_path / "w"
    path.write_bytes(b"before")

    write_private_file(path, [b"one", b"two"])

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_bytes() == b"onetwo"
    assert list(tmp_path.iterdir()) == [path]


def test_a_failed_write_leaves_the_file_unchanged(tmp_path: Path) -> None:
    def parts() -> Iterator[bytes]:
        yield b"one"
        raise UserError("no more")

    path = tmp_path / "w"
    path.write_bytes(b"before")

    with pytest.raises(UserError, match="no more"):
        write_private_file(path, parts())
    assert [(one.name, one.read_bytes()) for one in tmp_path.iterdir()] == [("w", b"before")]


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"--to .*: No such file or directory: name a file in a folder"):
        write_private_file(tmp_path / "none" / "w", [])
