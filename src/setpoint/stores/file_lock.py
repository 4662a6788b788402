"""One process at a time: a lock that the system itself takes back when the process dies."""

import fcntl
import os
from pathlib import Path

from setpoint.errors import StoreError, StoreInUse


class FileLock:
    """Holds the lock on `<store>.lock` until `release`; StoreInUse names who has it. The file itself stays."""

    def __init__(self, store: Path) -> None:
        path = store.with_name(f"{store.name}.lock")
        try:
            # Python does not hand it on to programs that are started from here, so none of them keeps the lock.
            self._file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+b", buffering=0)
        except OSError as error:
            raise StoreError(
                f"cannot write in {store.parent}: {error.strerror}; allow it, or name a store in another folder"
            ) from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = self._file.read(32).decode(errors="replace").strip() or "unknown"
            self._file.close()
            raise StoreInUse(
                f"{store} is in use by process {holder}: wait for it or stop it, or name another store"
            ) from error
        self._file.truncate(0)
        self._file.write(f"{os.getpid()}\n".encode())

    def release(self) -> None:
        """Lets the next process in; a second time does nothing."""
        self._file.close()
