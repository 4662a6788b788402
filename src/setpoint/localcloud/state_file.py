"""The state of the local cloud in one JSON file, so that it can be started again."""

import os
import tempfile
from datetime import datetime
from pathlib import Path
from typing import Final

import msgspec

from setpoint.errors import UserError
from setpoint.localcloud.bucket_state import StorageState
from setpoint.localcloud.sql_state import SqlState

_FORMAT: Final = 1


class CloudState(msgspec.Struct):
    """Everything both services remember, and when that was."""

    sql: SqlState = msgspec.field(default_factory=SqlState)
    storage: StorageState = msgspec.field(default_factory=StorageState)
    saved_at: datetime | None = None
    format: int = _FORMAT


def load(file: Path) -> CloudState:
    """What the file holds; nothing yet when there is no file."""
    if not file.exists():
        return CloudState()
    try:
        state = msgspec.json.decode(file.read_bytes(), type=CloudState)
    except msgspec.DecodeError as error:
        raise UserError(
            f"{file} is not a state of the local cloud ({error}): remove it, or name another file"
        ) from error
    if state.format != _FORMAT:
        raise UserError(f"{file} is of format {state.format}, this is {_FORMAT}: remove it, or name another file")
    return state


def save(file: Path, state: CloudState) -> None:
    """Replaces the file in one step: whoever reads it sees the old state or the new one."""
    file.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(msgspec.json.encode(state))
        Path(name).replace(file)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
