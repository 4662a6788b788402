"""Local admin API: messages, Unix socket, and client of the process that owns a store.

The socket is beside the store, for its owner only. Where that path is too long for a socket, it is a link to one in the
user's runtime folder.
"""

import hashlib
import os
import socket
import stat
import struct
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

import aiohttp
import msgspec

from setpoint import errors
from setpoint.core.values.canonical import canonical
from setpoint.core.values.json_types import Json
from setpoint.errors import RemoteRefused, RemoteUnavailable, SetpointError, StoreError

HELLO_PATH: Final = "/v1/hello"
ALIVE_PATH: Final = "/v1/alive"
APPLY_PATH: Final = "/v1/apply"
DELETE_PATH: Final = "/v1/delete"
RECONCILE_PATH: Final = "/v1/look"
FAILURES_PATH: Final = "/v1/troubles"


class ProcessInfo(msgspec.Struct, frozen=True):
    """Who answers."""

    version: str
    pid: int
    phase: str


class ResourceName(msgspec.Struct, frozen=True, order=True):
    """Which resource."""

    group: str
    kind: str
    namespace: str
    name: str


class ApplyRequest(msgspec.Struct, frozen=True):
    """What is to be applied, all or nothing. Canonical bytes: no digit of a number is lost on the way."""

    manifests: tuple[msgspec.Raw, ...]


class ResourceNames(msgspec.Struct, frozen=True):
    """Resources: to be deleted, to be looked at; or those that it was done for."""

    names: tuple[ResourceName, ...]


class ErrorBody(msgspec.Struct, frozen=True):
    """An error of ours."""

    error: str
    message: str


class StepFailure(msgspec.Struct, frozen=True):
    """Why a step stopped that is to be taken again, where no status says so."""

    name: ResourceName
    why: ErrorBody


class StepFailures(msgspec.Struct, frozen=True):
    """Those of the resources that somebody asked about."""

    troubles: tuple[StepFailure, ...]


def error_body(error: SetpointError) -> ErrorBody:
    """What is sent for `error`."""
    return ErrorBody(type(error).__name__, str(error))


def error_from(failure: ErrorBody) -> SetpointError:
    """The error that was sent; a clear no when its class is not known here."""
    found: Any = getattr(errors, failure.error, None)
    is_ours = isinstance(found, type) and issubclass(found, SetpointError)
    error: SetpointError = found(failure.message) if is_ours else RemoteRefused(failure.message)
    return error


# What every system allows, in bytes: Linux 107, macOS 103.
MAX_SOCKET_PATH: Final = 103
_ROOT_UID: Final = 0


def socket_link(store: Path) -> Path:
    """Where those who look for the socket of `store` begin."""
    return store.with_name(f"{store.name}.sock")


def find_socket(store: Path) -> Path | None:
    """The socket to connect to; None when there is none, or it is a stranger's, who should not be told anything."""
    link = socket_link(store)
    address = Path(os.readlink(link)) if link.is_symlink() else link
    try:
        found = address.lstat()
    except OSError:
        return None
    owners = {os.geteuid(), store.stat().st_uid, _ROOT_UID}
    return address if stat.S_ISSOCK(found.st_mode) and found.st_uid in owners else None


def prepare_socket(store: Path, environment: Mapping[str, str]) -> Path:
    """Where to listen for `store`: the place is free, and whoever looks for the socket finds it there.

    Only for the process that has the lock of the store: whatever was left there is nobody's any more.
    """
    link = socket_link(store)
    try:
        link.unlink(missing_ok=True)
        if len(os.fsencode(link)) <= MAX_SOCKET_PATH:
            return link
        address = _short_path(link, environment)
        address.unlink(missing_ok=True)
        link.symlink_to(address)
        return address
    except OSError as error:
        raise StoreError(
            f"cannot listen on {link}: {error.strerror}; allow it, or name a store in another folder"
        ) from error


def remove_socket(store: Path) -> None:
    """Takes away what leads to the socket, and the socket."""
    link = socket_link(store)
    if link.is_symlink():
        Path(os.readlink(link)).unlink(missing_ok=True)
    link.unlink(missing_ok=True)


def is_trusted_peer(connection: socket.socket) -> bool:
    """Whether the other end belongs to the user that this process runs as, or to root."""
    if not hasattr(socket, "SO_PEERCRED"):
        # The mode of the socket has to be enough.
        return True
    _, uid, _ = struct.unpack("iII", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return uid in (os.geteuid(), _ROOT_UID)


def _short_path(link: Path, environment: Mapping[str, str]) -> Path:
    """A path that is always the same for one store and user, in a folder where nobody else can put anything."""
    runtime = environment.get("XDG_RUNTIME_DIR", "")
    above = Path(runtime) if runtime and Path(runtime).is_dir() else Path(tempfile.gettempdir())
    folder = above / f"setpoint-{os.geteuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise StoreError(f"{folder} is not this user's alone: remove it, or set XDG_RUNTIME_DIR to a folder that is")
    return folder / f"{hashlib.sha256(os.fsencode(link)).hexdigest()[:16]}.sock"


T = TypeVar("T")

# It answers at once, or is busy writing down thousands: never with services.
_REQUEST_SECONDS: Final = 300.0
_HELLO_SECONDS: Final = 5.0


async def connect_admin(store: Path) -> "AdminClient | None":
    """The process that owns the store in the file `store`; None when none takes orders there. `close` it when done."""
    address = find_socket(store)
    if address is None:
        return None
    daemon = AdminClient(address)
    try:
        await daemon.hello()
    except RemoteUnavailable:
        await daemon.close()
        return None
    return daemon


class AdminClient:
    """A running process. What it refuses is raised as it raised it; RemoteUnavailable when it is not there any more."""

    def __init__(self, address: Path) -> None:
        # The host is a matter of form: the socket decides who is asked.
        self._session = aiohttp.ClientSession("http://setpoint", connector=aiohttp.UnixConnector(str(address)))

    async def hello(self) -> ProcessInfo:
        """Who answers."""
        return await self._ask("GET", HELLO_PATH, None, ProcessInfo)

    async def apply(self, manifests: Iterable[Json]) -> None:
        """All of them are on record, or none is."""
        encoded = tuple(msgspec.Raw(canonical(manifest)) for manifest in manifests)
        await self._ask("POST", APPLY_PATH, ApplyRequest(encoded), ResourceNames)

    async def delete(self, names: Iterable[ResourceName]) -> None:
        """They are gone, or marked for deletion."""
        await self._ask("POST", DELETE_PATH, ResourceNames(tuple(names)), ResourceNames)

    async def look(self, names: Iterable[ResourceName]) -> None:
        """A look at each is asked for; the status of each echoes it."""
        await self._ask("POST", RECONCILE_PATH, ResourceNames(tuple(names)), ResourceNames)

    async def troubles(self, names: Iterable[ResourceName]) -> Mapping[ResourceName, SetpointError]:
        """Why the last steps of those among them stopped that are to be retried, where no status says so."""
        found = await self._ask("POST", FAILURES_PATH, ResourceNames(tuple(names)), StepFailures)
        return {one.name: error_from(one.why) for one in found.troubles}

    async def wait_until_exit(self) -> None:
        """Returns when the process has ended, in whatever way."""
        try:
            async with self._session.get(ALIVE_PATH, timeout=aiohttp.ClientTimeout(total=None)) as response:
                while await response.content.readany():
                    pass
        except (aiohttp.ClientError, OSError):
            pass

    async def close(self) -> None:
        """Lets go of the connections."""
        await self._session.close()

    async def _ask(self, method: str, path: str, body: msgspec.Struct | None, answer: type[T]) -> T:
        data = None if body is None else msgspec.json.encode(body)
        timeout = aiohttp.ClientTimeout(total=_HELLO_SECONDS if path == HELLO_PATH else _REQUEST_SECONDS)
        try:
            async with self._session.request(method, path, data=data, timeout=timeout) as response:
                status, received = response.status, await response.read()
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise RemoteUnavailable(
                "the process that owns the store ended, or does not answer: run the command again"
            ) from error
        return _decode_response(status, received, answer)


def _decode_response(status: int, body: bytes, answer: type[T]) -> T:
    try:
        if status == 200:
            return msgspec.json.decode(body, type=answer)
        failure = msgspec.json.decode(body, type=ErrorBody)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise RemoteUnavailable(
            f"the process that owns the store answers {status} in words of another version: "
            "stop it, and start it again with this one"
        ) from error
    raise error_from(failure)
