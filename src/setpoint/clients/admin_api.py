"""Local admin API: messages, Unix socket, and client of the process that owns a store.

The socket is beside the store, for its owner only. Where that path is too long for a socket, it is a link to one in the
user's runtime folder.
"""

import asyncio
import hashlib
import os
import socket
import stat
import struct
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from setpoint import errors
from setpoint.clients.foreign_errors import TransportError
from setpoint.clients.http import DEFAULT_HEADERS, request_tracer
from setpoint.clients.http_transport import MIB, HeldBytes, HttpLimits, ResponseBody
from setpoint.clients.response_bodies import UNDECODABLE
from setpoint.clients.transport.messages import ServerAddress
from setpoint.clients.transport.opening import ServerRoute, UnixOpener
from setpoint.clients.transport.pool import ConnectionPool
from setpoint.core.values.canonical import MAX_DEPTH, canonical
from setpoint.core.values.json_limits import excess_of
from setpoint.core.values.json_types import Json
from setpoint.errors import ManifestInvalid, RemoteRefused, RemoteUnavailable, SetpointError, StoreError

# The paths keep their names: clients and processes of different versions talk to each other.
HELLO_PATH: Final = "/v1/hello"
ALIVE_PATH: Final = "/v1/alive"
APPLY_PATH: Final = "/v1/apply"
DECLARE_PATH: Final = "/v1/declare"
DELETE_PATH: Final = "/v1/delete"
RECONCILE_PATH: Final = "/v1/look"
FAILURES_PATH: Final = "/v1/troubles"
LOOKS_PATH: Final = "/v1/looks"
# So many resources are asked for their looks in one request; their names are far below `MAX_MESSAGE`.
MOST_LOOKS: Final = 10_000
# The largest message, in bytes and in JSON values.
MAX_MESSAGE: Final = 16 * MIB
MAX_MESSAGE_VALUES: Final = 300_000


class ProcessInfo(msgspec.Struct, frozen=True):
    """The process that owns the store."""

    version: str
    pid: int
    phase: str


class ResourceName(msgspec.Struct, frozen=True, order=True):
    """The identity of a resource."""

    group: str
    kind: str
    namespace: str
    name: str


class ApplyRequest(msgspec.Struct, frozen=True):
    """Manifests to be applied, all or nothing, as canonical bytes: numbers keep all their digits."""

    manifests: tuple[msgspec.Raw, ...]


class DeclaredMember(msgspec.Struct, frozen=True):
    """A manifest of a set, and where it is; `seen` is the set that the resource was in before."""

    manifest: msgspec.Raw
    set_name: str
    source: str
    seen: str = ""


class LeavingMember(msgspec.Struct, frozen=True):
    """A resource that leaves its set."""

    name: ResourceName
    set_name: str


class DeclareRequest(msgspec.Struct, frozen=True):
    """The manifests of sets, what leaves them, and their records: all or nothing."""

    members: tuple[DeclaredMember, ...]
    # To be pruned; and to stay.
    leaving: tuple[LeavingMember, ...]
    released: tuple[LeavingMember, ...]
    records: tuple[msgspec.Raw, ...]


class ResourceNames(msgspec.Struct, frozen=True):
    """Resources to be deleted; in a response, those that were deleted, applied or are to be reconciled."""

    names: tuple[ResourceName, ...]


class ReconcileRequest(msgspec.Struct, frozen=True):
    """Resources to be reconciled, and the command that asks for it: a client before this version names none."""

    names: tuple[ResourceName, ...]
    command: str = ""


class ErrorBody(msgspec.Struct, frozen=True):
    """One of our errors."""

    error: str
    message: str


class StepFailure(msgspec.Struct, frozen=True):
    """The error of a step that is to be retried, and is not in the status."""

    name: ResourceName
    why: ErrorBody


class StepFailures(msgspec.Struct, frozen=True):
    """The failures of the requested resources."""

    troubles: tuple[StepFailure, ...]


class ResourceLook(msgspec.Struct, frozen=True):
    """When the process last looked at a live object, and when it does next: RFC 3339; empty where that is unknown."""

    name: ResourceName
    last: str = ""
    next: str = ""


class ResourceLooks(msgspec.Struct, frozen=True):
    """The looks of the requested resources, without those of which nothing is known."""

    looks: tuple[ResourceLook, ...]


def require_small(message: bytes | bytearray) -> None:
    """ManifestInvalid for a message that the process which owns the store would not take."""
    if len(message) > MAX_MESSAGE:
        raise ManifestInvalid(f"larger than {MAX_MESSAGE // MIB} MiB: apply it in parts")
    # Two levels more than a manifest may have.
    if excess := excess_of(message, MAX_MESSAGE_VALUES, MAX_DEPTH + 2):
        raise ManifestInvalid(f"this {excess}: apply it in parts")


def error_body(error: SetpointError) -> ErrorBody:
    """The message for an error."""
    return ErrorBody(type(error).__name__, str(error))


def error_from(failure: ErrorBody) -> SetpointError:
    """The error of a message; RemoteRefused when its class is not known here."""
    found: Any = getattr(errors, failure.error, None)
    is_known = isinstance(found, type) and issubclass(found, SetpointError)
    error: SetpointError = found(failure.message) if is_known else RemoteRefused(failure.message)
    return error


# --- The socket -------------------------------------------------------------------------------------------------------

# In bytes: Linux allows 107, macOS 103.
MAX_SOCKET_PATH: Final = 103
_ROOT_UID: Final = 0


def socket_link(store: Path) -> Path:
    """The path beside `store` that is the socket, or a link to it."""
    return store.with_name(f"{store.name}.sock")


def find_socket(store: Path) -> Path | None:
    """The socket to connect to; None when there is none, or it belongs to another user, who may not see manifests."""
    link = socket_link(store)
    address = Path(os.readlink(link)) if link.is_symlink() else link
    try:
        found = address.lstat()
    except OSError:
        return None
    owners = {os.geteuid(), store.stat().st_uid, _ROOT_UID}
    return address if stat.S_ISSOCK(found.st_mode) and found.st_uid in owners else None


def prepare_socket(store: Path, environment: Mapping[str, str]) -> Path:
    """The path to listen on for `store`: it is free, and `find_socket` finds it.

    Only for the process that holds the lock of the store: a socket that is there is left from an earlier process.
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
    """Removes the socket, and the link to it."""
    link = socket_link(store)
    if link.is_symlink():
        Path(os.readlink(link)).unlink(missing_ok=True)
    link.unlink(missing_ok=True)


def is_trusted_peer(connection: socket.socket) -> bool:
    """Whether the peer is a process of our own user, or of root."""
    if not hasattr(socket, "SO_PEERCRED"):
        # Without peer credentials, the mode of the socket has to be enough.
        return True
    _, uid, _ = struct.unpack("iII", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return uid in (os.geteuid(), _ROOT_UID)


def _short_path(link: Path, environment: Mapping[str, str]) -> Path:
    """A path that is the same for one store and user each time, in a folder that only this user can write to."""
    import tempfile

    runtime = environment.get("XDG_RUNTIME_DIR", "")
    above = Path(runtime) if runtime and Path(runtime).is_dir() else Path(tempfile.gettempdir())
    folder = above / f"setpoint-{os.geteuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise StoreError(f"{folder} is not this user's alone: remove it, or set XDG_RUNTIME_DIR to a folder that is")
    return folder / f"{hashlib.sha256(os.fsencode(link)).hexdigest()[:16]}.sock"


# --- The client -------------------------------------------------------------------------------------------------------

T = TypeVar("T")

# It answers at once, or after writing thousands of resources; it never waits for services.
_REQUEST_SECONDS: Final = 300.0
_HELLO_SECONDS: Final = 5.0
_LIMITS: Final = HttpLimits(MAX_MESSAGE)
# The host is a placeholder: the socket decides.
_ROUTE: Final = ServerRoute(ServerAddress(is_tls=False, host="setpoint", port=80, authority="setpoint"))


async def connect_admin(store: Path) -> "AdminClient | None":
    """A client of the process that owns the file `store`; None when no process does. `close` it when done."""
    address = find_socket(store)
    if address is None:
        return None
    client = AdminClient(address)
    try:
        await client.hello()
    except RemoteUnavailable:
        await client.close()
        return None
    return client


class AdminClient:
    """Client of a process that owns a store. Raises the errors of that process; RemoteUnavailable when it has ended."""

    def __init__(self, address: Path) -> None:
        self._pool = ConnectionPool(UnixOpener(str(address)), 0, DEFAULT_HEADERS)

    async def hello(self) -> ProcessInfo:
        """The process that answers."""
        return await self._request("GET", HELLO_PATH, None, ProcessInfo)

    async def apply(self, manifests: Iterable[Json]) -> None:
        """Stores all manifests, or none."""
        encoded = tuple(msgspec.Raw(canonical(manifest)) for manifest in manifests)
        await self._request("POST", APPLY_PATH, ApplyRequest(encoded), ResourceNames)

    async def declare(self, request: DeclareRequest) -> None:
        """Stores the manifests of sets, and their records: all of it, or nothing."""
        await self._request("POST", DECLARE_PATH, request, ResourceNames)

    async def delete(self, names: Iterable[ResourceName]) -> None:
        """Removes resources, or marks them for deletion."""
        await self._request("POST", DELETE_PATH, ResourceNames(tuple(names)), ResourceNames)

    async def reconcile(self, names: Iterable[ResourceName], command: str = "") -> None:
        """Requests a reconcile of each for `command`; its status will echo the request."""
        await self._request("POST", RECONCILE_PATH, ReconcileRequest(tuple(names), command), ResourceNames)

    async def step_failures(self, names: Iterable[ResourceName]) -> Mapping[ResourceName, SetpointError]:
        """The errors of last steps that are to be retried, and are not in the status."""
        found = await self._request("POST", FAILURES_PATH, ResourceNames(tuple(names)), StepFailures)
        return {one.name: error_from(one.why) for one in found.troubles}

    async def looks(self, names: Iterable[ResourceName]) -> Sequence[ResourceLook]:
        """When each was last looked at, and is next, as far as that is known. Nothing is read or written for this."""
        return (await self._request("POST", LOOKS_PATH, ResourceNames(tuple(names)), ResourceLooks)).looks

    async def page(self, path: str) -> str:
        """One of the pages that the process serves beside the API: /healthz, /readyz, /metrics."""
        try:
            async with asyncio.timeout(_HELLO_SECONDS):
                response = await self._pool.request(_ROUTE, "GET", path, {})
                try:
                    return (await ResponseBody(f"GET {path}", response, _LIMITS, HeldBytes()).whole()).decode()
                finally:
                    response.close()
        except (TransportError, OSError, UnicodeDecodeError) as error:
            raise RemoteUnavailable(
                f"GET {path}: the process that owns the store does not answer: try again"
            ) from error

    async def wait_until_exit(self) -> None:
        """Returns when the process has ended, however it did."""
        with suppress(TransportError, OSError):
            response = await self._pool.request(_ROUTE, "GET", ALIVE_PATH, {})
            try:
                while await response.read():
                    pass
            finally:
                response.close()

    async def close(self) -> None:
        """Closes the connections."""
        self._pool.close()
        # The event loop closes the sockets in its next turn.
        await asyncio.sleep(0)

    async def _request(self, method: str, path: str, body: msgspec.Struct | None, response_type: type[T]) -> T:
        data = None if body is None else msgspec.json.encode(body)
        require_small(data or b"")
        try:
            async with asyncio.timeout(_HELLO_SECONDS if path == HELLO_PATH else _REQUEST_SECONDS):
                response = await self._pool.request(_ROUTE, method, path, _carried(), body=data)
                try:
                    received = await ResponseBody(f"{method} {path}", response, _LIMITS, HeldBytes()).whole()
                finally:
                    response.close()
        except (TransportError, OSError) as error:
            raise RemoteUnavailable(
                "the process that owns the store ended, or does not answer: run the command again"
            ) from error
        return _decode_response(response.status, received, response_type)


def _carried() -> Mapping[str, str]:
    """The headers that carry the trace of this process on, if it has one."""
    tracer = request_tracer()
    return {} if tracer is None else tracer.carried()


def _decode_response(status: int, body: bytes, response_type: type[T]) -> T:
    try:
        if status == 200:
            return msgspec.json.decode(body, type=response_type)
        failure = msgspec.json.decode(body, type=ErrorBody)
    except UNDECODABLE as error:
        raise RemoteUnavailable(
            f"the process that owns the store answers {status} as another version does: "
            "stop it, and start it again with this one"
        ) from error
    raise error_from(failure)
