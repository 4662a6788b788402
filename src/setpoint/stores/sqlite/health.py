"""What can be said of a store's file without changing it, and while other processes use it."""

import os
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from threading import Timer
from typing import Final

from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.errors import StoreError
from setpoint.stores.sqlite.backup import key_of, require_whole
from setpoint.stores.sqlite.database_file import access_of_others, connect_to_read, sqlite_errors
from setpoint.stores.sqlite.encryption import SecretCipher
from setpoint.stores.sqlite.schema import MIGRATIONS, require_setpoint_file

_LOCKS: Final = Path("/proc/locks")
# `1: FLOCK  ADVISORY  WRITE 4321 08:02:131 0 EOF`: the process, the device and the inode.
_FLOCK: Final = re.compile(r"FLOCK\s+ADVISORY\s+WRITE (-?\d+) [0-9a-f]+:[0-9a-f]+:(\d+) ")


@dataclass(frozen=True, slots=True)
class StoreHealth:
    """The file of a store: its version and size, who holds it, and what is wrong with it, if anything."""

    version: int
    newest_version: int
    resources: int
    size: int
    log_size: int
    # The process that holds the lock; None when none does.
    holder: str | None
    exposed: str
    # Empty for a store that is whole.
    damage: str = ""


def store_health(path: Path, seconds: float) -> StoreHealth:
    """See StoreHealth. Of a store that cannot be read within `seconds`, the damage says so."""
    log = path.with_name(f"{path.name}-wal")
    version, resources, damage = 0, 0, ""
    try:
        with sqlite_errors(path), closing(connect_to_read(path)) as connection:
            limit = Timer(seconds, connection.interrupt)
            limit.daemon = True
            limit.start()
            try:
                version, resources = _checked(connection, path)
            finally:
                limit.cancel()
    except StoreError as error:
        damage = str(error)
    log_size = log.stat().st_size if log.exists() else 0
    size = path.stat().st_size
    return StoreHealth(
        version, len(MIGRATIONS), resources, size, log_size, store_holder(path), access_of_others(path), damage
    )


def _checked(connection: sqlite3.Connection, path: Path) -> tuple[int, int]:
    version = require_setpoint_file(connection, path)
    require_whole(connection, path, "restore it from a backup")
    if version == 0:
        return 0, 0
    (resources,) = connection.execute("SELECT count(*) FROM resources").fetchone()
    encrypted = connection.execute("SELECT sealed FROM bodies WHERE sealed IS NOT NULL LIMIT 1").fetchone()
    if encrypted is not None:
        SecretCipher(key_of(path)).require_key_of(encrypted[0])
    return version, int(resources)


def store_holder(path: Path) -> str | None:
    """The process that holds the lock, without taking it: another one may be about to."""
    lock = path.with_name(f"{path.name}.lock")
    try:
        inode, recorded = lock.stat().st_ino, lock.read_text(encoding="utf-8", errors="replace").strip()
        found = next((pid for pid, node in _FLOCK.findall(_LOCKS.read_text()) if int(node) == inode), None)
    except OSError:
        return None
    if found is None:
        return None
    # A process of another container has no id here.
    return found if int(found) > 0 and int(found) != os.getpid() else recorded or "unknown"
