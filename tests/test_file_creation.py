"""New files: their permissions, their contents, and what is not overwritten."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from setpoint.file_creation import create_file


@pytest.fixture
def open_umask() -> Iterator[None]:
    """A umask that takes no permission away."""
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("open_umask")
def test_only_the_owner_can_read_a_new_file_while_it_is_written_and_afterwards(tmp_path: Path) -> None:
    modes = []

    def parts() -> Iterator[bytes]:
        modes.append(stat.S_IMODE((tmp_path / "key").stat().st_mode))
        yield b"one"
        yield b"two"

    create_file(tmp_path / "key", parts())

    modes.append(stat.S_IMODE((tmp_path / "key").stat().st_mode))
    assert modes == [0o600, 0o600]
    assert (tmp_path / "key").read_bytes() == b"onetwo"


def test_a_program_gets_its_mode_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        create_file(tmp_path / "program", [], mode=0o755)
    finally:
        os.umask(before)

    assert stat.S_IMODE((tmp_path / "program").stat().st_mode) == 0o755


def test_an_existing_file_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(b"before")

    with pytest.raises(FileExistsError):
        create_file(tmp_path / "key", [b"after"])
    assert (tmp_path / "key").read_bytes() == b"before"
