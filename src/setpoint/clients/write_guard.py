"""Write guard of previews: blocks every write and records it.

An HTTP interceptor blocks writes of our clients; an audit hook blocks connections, datagrams and subprocesses that
bypass them. A native extension that bypasses the interpreter is not seen.
"""

import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit
from weakref import WeakSet

import msgspec

from setpoint.clients.http import HttpInterceptor, HttpRequest, HttpResponse
from setpoint.clients.ratelimit.fair_queue import current_caller
from setpoint.clients.scoped_value import ScopedValue
from setpoint.clients.sockets import ClientSocket
from setpoint.core.redaction import redact_untyped
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import Json
from setpoint.core.values.paths import Path
from setpoint.errors import RemoteError, WriteBlocked

_ROOT_PATH: Final = Path()


# --- Blocked writes ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class BlockedWrite:
    """A write that was not sent. `way` names the service or cluster, `caller` the resource it was made for.

    The body is redacted; `fields` are the fields that it would have set.
    """

    way: str
    method: str
    target: str
    caller: str
    body: Json = None
    fields: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.method} {self.target} ({self.way})"


_captured: Final[ContextVar[list[BlockedWrite] | None]] = ContextVar("captured", default=None)


@contextmanager
def capture_writes() -> Iterator[list[BlockedWrite]]:
    """Writes blocked inside are wanted, to be shown: they are added to a list of their own."""
    captured: list[BlockedWrite] = []
    with ScopedValue(_captured, captured):
        yield captured


def is_capturing_writes() -> bool:
    """Whether blocked writes are wanted here: see `capture_writes`."""
    return _captured.get() is not None


@dataclass(slots=True)
class BlockedWrites:
    """All writes that were blocked, in order, except those that `capture_writes` captured."""

    writes: list[BlockedWrite] = field(default_factory=list)

    def stop(self, way: str, method: str, target: str, body: Json = None) -> WriteBlocked:
        """Records the write; the error to raise instead of sending it."""
        caller = current_caller.get()
        shown = redact_untyped(body)
        fields = tuple(str(path) for path, _ in leaf_fields(shown))
        write = BlockedWrite(way, method, target, "" if caller is None else str(caller.key), shown, fields)
        captured = _captured.get()
        (self.writes if captured is None else captured).append(write)
        return WriteBlocked(f"{write}: nothing may be written here; a preview only reads")


def leaf_fields(body: Json, at: Path = _ROOT_PATH) -> Iterator[tuple[Path, Json]]:
    """The fields that a body sets, with their values; a list is one field."""
    if not isinstance(body, dict) or not body:
        if at.steps:
            yield at, body
        return
    for name, member in body.items():
        yield from leaf_fields(member, at / name)


# --- Writes by our clients --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WriteGuard:
    """An interceptor that lets reads pass, and dry runs by an API server; then the next one behind it, if any."""

    way: str
    blocked_writes: BlockedWrites
    is_cluster: bool = False
    behind: HttpInterceptor | None = None

    def on_request(self, request: HttpRequest) -> HttpResponse | None:
        """See HttpInterceptor."""
        if not (request.is_read or (self.is_cluster and is_server_dry_run(request))):
            path, body = urlsplit(request.url).path, decoded_body(request.body)
            raise self.blocked_writes.stop(self.way, request.method, path, body)
        return None if self.behind is None else self.behind.on_request(request)

    def on_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        """See HttpInterceptor."""
        return response if self.behind is None else self.behind.on_response(request, response)

    def on_error(self, request: HttpRequest, error: RemoteError) -> None:
        """See HttpInterceptor."""
        if self.behind is not None:
            self.behind.on_error(request, error)


def is_server_dry_run(request: HttpRequest) -> bool:
    """Whether an API server would only dry-run it: by the query, or for a deletion by its body."""
    if request.method != "DELETE" and "dryRun" not in request.url:
        return False
    values = [value for name, value in parse_qsl(urlsplit(request.url).query) if name == "dryRun"]
    if request.method == "DELETE" and not values:
        body = decoded_body(request.body)
        found = body.get("dryRun") if isinstance(body, dict) else None
        values = list(map(str, found)) if isinstance(found, list) else []
    return values == ["All"]


def decoded_body(body: bytes | None) -> Json:
    """The body of a request as JSON; of another one, how long it is."""
    if not body:
        return None
    try:
        found: Json = msgspec.json.decode(body)
    except msgspec.DecodeError:
        return f"({len(body)} bytes)"
    return found


# --- Bypasses of our clients ------------------------------------------------------------------------------------------

BYPASSING_CLIENT: Final = "past our client"


class ProcessGuard:
    """Guards a task, the tasks it starts, and every thread that starts meanwhile, since its starter is unknown.

    With `covers_threads` False, only threads that inherit the context of the task are guarded.
    """

    __slots__ = ("_covers_threads", "_earlier_threads", "blocked_writes")

    def __init__(self, blocked_writes: BlockedWrites, *, covers_threads: bool = True) -> None:
        self.blocked_writes = blocked_writes
        self._covers_threads = covers_threads
        self._earlier_threads = WeakSet(threading.enumerate())

    def covers(self, thread: threading.Thread) -> bool:
        """Whether the thread started after the guard."""
        return self._covers_threads and thread not in self._earlier_threads


_task_guard: Final[ContextVar[ProcessGuard | None]] = ContextVar("task_guard", default=None)
# The newest last.
_active_guards: Final[list[ProcessGuard]] = []
_exempt: Final[ContextVar[bool]] = ContextVar("exempt", default=False)
_hook_installed: Final = threading.Event()


@contextmanager
def process_guarded_by(blocked_writes: BlockedWrites, *, covers_threads: bool = True) -> Iterator[None]:
    """Blocks inside, in this task, in those it starts and in new threads, everything that bypasses our clients."""
    guard = ProcessGuard(blocked_writes, covers_threads=covers_threads)
    if not _hook_installed.is_set():
        _hook_installed.set()
        # For the life of the process: an audit hook cannot be removed.
        sys.addaudithook(_audit)
    _active_guards.append(guard)
    try:
        with ScopedValue(_task_guard, guard):
            yield
    finally:
        _active_guards.remove(guard)


def exempt_from_guard() -> ScopedValue[bool]:
    """For code of ours that logs in by a library or a command of its own, and writes nothing."""
    return ScopedValue(_exempt, True)


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    check = _AUDIT_EVENTS.get(event)
    if check is not None and _active_guards and not _exempt.get() and (guard := _current_guard()) is not None:
        check(guard, arguments)


def _current_guard() -> ProcessGuard | None:
    guard = _task_guard.get()
    if guard is not None:
        # A task may outlive the block that it was started in.
        return guard if guard in _active_guards else None
    thread = threading.current_thread()
    return next((one for one in reversed(_active_guards) if one.covers(thread)), None)


def _on_connect(guard: ProcessGuard, arguments: tuple[Any, ...]) -> None:
    opened, address = arguments
    if not isinstance(opened, ClientSocket):
        # Most libraries close a socket that cannot be connected, but not after an error that they do not know.
        opened.close()
        raise guard.blocked_writes.stop(BYPASSING_CLIENT, "connect", _address_text(address))


def _on_send(guard: ProcessGuard, arguments: tuple[Any, ...]) -> None:
    _, address = arguments
    # Without an address the socket is connected, and `_on_connect` has let it pass.
    if address is not None:
        raise guard.blocked_writes.stop(BYPASSING_CLIENT, "send", _address_text(address))


def _on_subprocess(guard: ProcessGuard, arguments: tuple[Any, ...]) -> None:
    # Only the program: its arguments may hold secrets.
    command = arguments[0].decode(errors="replace") if isinstance(arguments[0], bytes) else str(arguments[0])
    raise guard.blocked_writes.stop(BYPASSING_CLIENT, "start", command.partition(" ")[0])


def _address_text(address: object) -> str:
    return ":".join(map(str, address[:2])) if isinstance(address, tuple) else str(address)


_AUDIT_EVENTS: Final[Mapping[str, Callable[[ProcessGuard, tuple[Any, ...]], None]]] = {
    "socket.connect": _on_connect,
    "socket.sendto": _on_send,
    "socket.sendmsg": _on_send,
    "subprocess.Popen": _on_subprocess,
    "os.system": _on_subprocess,
    "os.posix_spawn": _on_subprocess,
    "os.exec": _on_subprocess,
}
