"""Files of a provider: each is there as a whole or not at all, in a folder where nothing else is."""

import errno
import os
import secrets
import shutil
from contextlib import suppress
from enum import StrEnum
from pathlib import Path

from setpoint.errors import UserError


class Change(StrEnum):
    """What became of a file."""

    CREATED = "created"
    UPDATED = "updated"
    UNCHANGED = "unchanged"


def put(file: Path, text: str, *, mode: int, setting: str) -> Change:
    """The file with this text in a folder of its own. UserError says that `setting` names another place."""
    try:
        before = _state_of(file)
        if before == (text.encode(), mode):
            return Change.UNCHANGED
        _put(file, text, mode)
    except OSError as error:
        raise _refusal(file, error, setting) from error
    return Change.CREATED if before is None else Change.UPDATED


def remove(file: Path, upto: Path, *, setting: str) -> bool:
    """Whether the file was there. Folders that are empty then go, too, up to `upto` and without it."""
    try:
        is_there = file.exists()
        file.unlink(missing_ok=True)
    except OSError as error:
        raise _refusal(file, error, setting) from error
    for folder in file.parents:
        if folder == upto:
            break
        # Others live there.
        with suppress(OSError):
            folder.rmdir()
    return is_there


def _state_of(file: Path) -> tuple[bytes, int] | None:
    try:
        return file.read_bytes(), file.stat().st_mode & 0o777
    except FileNotFoundError:
        return None


def _put(file: Path, text: str, mode: int) -> None:
    above = file.parent.parent
    above.mkdir(parents=True, exist_ok=True)
    # Beside the folder: whatever is in it is part of the provider, and of the hash in lock files.
    stage = above / f".{secrets.token_hex(4)}"
    stage.mkdir()
    try:
        fresh = stage / file.name
        with fresh.open("x", encoding="utf-8") as opened:
            opened.write(text)
            opened.flush()
            os.fsync(opened.fileno())
        fresh.chmod(mode)
        _swap_in(fresh, file)
    finally:
        shutil.rmtree(stage, ignore_errors=True)


def _swap_in(fresh: Path, file: Path) -> None:
    try:
        # A new folder comes with its file.
        fresh.parent.rename(file.parent)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        fresh.replace(file)


def _refusal(file: Path, error: OSError, setting: str) -> UserError:
    # Not by pathlib: what may not even be looked at is not in the way, but refused.
    wrong = [one for one in file.parents if os.path.exists(one) and not os.path.isdir(one)]
    wrong += [file] if os.path.isdir(file) else []
    if wrong:
        return UserError(f"{wrong[0]} is in the way: move it elsewhere, and run again")
    return UserError(f"{file}: {error.strerror}: make that possible, or name another folder by {setting}")
