"""Files for their owner alone: exports and recorded worlds."""

import os
import secrets
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from setpoint.errors import UserError


def write_privately(path: Path, parts: Iterable[bytes]) -> None:
    """The file with this in it, there as a whole or not at all, which nobody but its owner can read."""
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.writelines(parts)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    except OSError as error:
        raise UserError(f"--to {path}: {error.strerror}: name a file in a folder that you can write to") from error
    finally:
        with suppress(OSError):
            fresh.unlink(missing_ok=True)
