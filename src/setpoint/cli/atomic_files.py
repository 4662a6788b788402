"""Files that are written atomically: private ones (exports, recorded worlds) and those of the Terraform provider."""

import errno
import os
import secrets
import shutil
from collections.abc import Iterable
from contextlib import suppress
from enum import StrEnum
from pathlib import Path

from setpoint.errors import UserError
from setpoint.file_creation import create_file


def write_private_file(path: Path, parts: Iterable[bytes]) -> None:
    """Writes the file atomically; only its owner can read it. UserError says what to do instead."""
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        create_file(fresh, parts)
        fresh.replace(path)
    except OSError as error:
        raise UserError(f"--to {path}: {error.strerror}: name a file in a folder that you can write to") from error
    finally:
        with suppress(OSError):
            fresh.unlink(missing_ok=True)


class FileChange(StrEnum):
    """What writing a file changed."""

    CREATED = "created"
    UPDATED = "updated"
    UNCHANGED = "unchanged"


def put_file(file: Path, text: str, *, mode: int, setting: str) -> FileChange:
    """Writes a file atomically, in a folder that holds nothing else. UserError says that `setting` names another."""
    try:
        before = _current(file)
        if before == (text.encode(), mode):
            return FileChange.UNCHANGED
        _write_file(file, text, mode)
    except OSError as error:
        raise _file_error(file, error, setting) from error
    return FileChange.CREATED if before is None else FileChange.UPDATED


def remove_file(file: Path, upto: Path, *, setting: str) -> bool:
    """Removes the file, and folders that are empty then, below `upto`. Whether the file existed."""
    try:
        existed = file.exists()
        file.unlink(missing_ok=True)
    except OSError as error:
        raise _file_error(file, error, setting) from error
    for folder in file.parents:
        if folder == upto:
            break
        # The folder holds other files.
        with suppress(OSError):
            folder.rmdir()
    return existed


def _current(file: Path) -> tuple[bytes, int] | None:
    try:
        return file.read_bytes(), file.stat().st_mode & 0o777
    except FileNotFoundError:
        return None


def _write_file(file: Path, text: str, mode: int) -> None:
    above = file.parent.parent
    above.mkdir(parents=True, exist_ok=True)
    # Beside the folder: every file in it is part of the provider, and of the hash in lock files.
    temporary = above / f".{secrets.token_hex(4)}"
    temporary.mkdir()
    try:
        fresh = temporary / file.name
        create_file(fresh, [text.encode()], mode=mode)
        _move_into_place(fresh, file)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _move_into_place(fresh: Path, file: Path) -> None:
    try:
        # A new folder appears together with its file.
        fresh.parent.rename(file.parent)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        fresh.replace(file)


def _file_error(file: Path, error: OSError, setting: str) -> UserError:
    # Not by pathlib: a path without read permission is not in the way, but refused.
    wrong = [one for one in file.parents if os.path.exists(one) and not os.path.isdir(one)]
    wrong += [file] if os.path.isdir(file) else []
    if wrong:
        return UserError(f"{wrong[0]} is in the way: move it elsewhere, and run again")
    return UserError(f"{file}: {error.strerror}: make that possible, or name another folder by {setting}")
