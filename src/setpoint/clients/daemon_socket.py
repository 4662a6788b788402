"""Where the process that owns a store listens: a socket beside the store, for its owner only.

The path of a socket may not be long. Where `<store>.sock` would be, that is a link to a socket with a short path, in a
folder that is the user's alone.
"""

import hashlib
import os
import socket
import stat
import struct
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from setpoint.errors import StoreError

# What every system allows, in bytes: Linux 107, macOS 103.
LONGEST_PATH: Final = 103
_ROOT: Final = 0


def link_beside(store: Path) -> Path:
    """Where those who look for the socket of `store` begin."""
    return store.with_name(f"{store.name}.sock")


def address_of(store: Path) -> Path | None:
    """The socket to connect to; None when there is none, or it is a stranger's, who should not be told anything."""
    link = link_beside(store)
    address = Path(os.readlink(link)) if link.is_symlink() else link
    try:
        found = address.lstat()
    except OSError:
        return None
    owners = {os.geteuid(), store.stat().st_uid, _ROOT}
    return address if stat.S_ISSOCK(found.st_mode) and found.st_uid in owners else None


def make_way(store: Path, environment: Mapping[str, str]) -> Path:
    """Where to listen for `store`: the place is free, and whoever looks for the socket finds it there.

    Only for the process that has the lock of the store: whatever was left there is nobody's any more.
    """
    link = link_beside(store)
    try:
        link.unlink(missing_ok=True)
        if len(os.fsencode(link)) <= LONGEST_PATH:
            return link
        address = _short(link, environment)
        address.unlink(missing_ok=True)
        link.symlink_to(address)
        return address
    except OSError as error:
        raise StoreError(
            f"cannot listen on {link}: {error.strerror}; allow it, or name a store in another folder"
        ) from error


def remove_from(store: Path) -> None:
    """Takes away what leads to the socket, and the socket."""
    link = link_beside(store)
    if link.is_symlink():
        Path(os.readlink(link)).unlink(missing_ok=True)
    link.unlink(missing_ok=True)


def is_ours(connection: socket.socket) -> bool:
    """Whether the other end belongs to the user that this process runs as, or to root."""
    if not hasattr(socket, "SO_PEERCRED"):
        # The mode of the socket has to be enough.
        return True
    _, uid, _ = struct.unpack("iII", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return uid in (os.geteuid(), _ROOT)


def _short(link: Path, environment: Mapping[str, str]) -> Path:
    """A path that is always the same for one store and user, in a folder where nobody else can put anything."""
    runtime = environment.get("XDG_RUNTIME_DIR", "")
    above = Path(runtime) if runtime and Path(runtime).is_dir() else Path(tempfile.gettempdir())
    folder = above / f"setpoint-{os.geteuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise StoreError(f"{folder} is not this user's alone: remove it, or set XDG_RUNTIME_DIR to a folder that is")
    return folder / f"{hashlib.sha256(os.fsencode(link)).hexdigest()[:16]}.sock"
