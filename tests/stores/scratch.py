"""Folders for stores that need not outlive a test."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# Where an fsync costs nothing, when the system has such a place.
_IN_MEMORY = Path("/dev/shm")


@contextmanager
def scratch_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=_IN_MEMORY if _IN_MEMORY.is_dir() else None) as folder:
        yield Path(folder)
