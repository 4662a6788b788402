"""New files: private from the first byte on, and synced to disk."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

PRIVATE_MODE: Final = 0o600


def create_file(path: Path, parts: Iterable[bytes], *, mode: int = PRIVATE_MODE, sync: bool = True) -> None:
    """Creates the file; only its owner can read it before it is complete. FileExistsError when there is one.

    With `sync` it is on disk afterwards. To replace a file, create another one beside it, and rename that.
    """
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_MODE), "wb") as file:
        file.writelines(parts)
        file.flush()
        os.fchmod(file.fileno(), mode)
        if sync:
            os.fsync(file.fileno())
