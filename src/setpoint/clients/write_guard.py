"""Write guard of previews: blocks every write and records it.

An HTTP interceptor blocks writes of our clients; an audit hook blocks connections, datagrams and subprocesses that
bypass them. A native extension that bypasses the interpreter is not seen.
"""

import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar, Token
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit
from weakref import WeakSet

import msgspec

from setpoint.clients.http import ClientSocket, HttpInterceptor, HttpRequest, HttpResponse
from setpoint.clients.ratelimit.fair_queue import current_caller
from setpoint.core.redaction import redact_untyped
from setpoint.core.values.json_types import Json
from setpoint.core.values.paths import Path
from setpoint.errors import RemoteError, WriteBlocked

_READ_METHODS: Final = ("GET", "HEAD")
_ROOT_PATH: Final = Path()


@dataclass(frozen=True, slots=True)
class BlockedWrite:
    """A write that did not go out. `way` is the service or cluster, `caller` the resource on whose behalf it was tried.

    The body has nothing in it that nobody may see; `fields` are the places that it would have set.
    """

    way: str
    method: str
    target: str
    caller: str
    body: Json = None
    fields: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.method} {self.target} ({self.way})"


_captured: Final[ContextVar[list[BlockedWrite] | None]] = ContextVar("trial", default=None)


class capture_writes:  # noqa: N801 - a context manager is called like a function
    """What is stopped inside is what somebody wants to see, and no offence: it goes on a list of its own."""

    __slots__ = ("_token",)

    def __init__(self) -> None:
        self._token: Token[list[BlockedWrite] | None] | None = None

    def __enter__(self) -> list[BlockedWrite]:
        stopped: list[BlockedWrite] = []
        self._token = _captured.set(stopped)
        return stopped

    def __exit__(self, *_: object) -> None:
        assert self._token is not None
        _captured.reset(self._token)


def is_capturing_writes() -> bool:
    """Whether this is no more than a trial."""
    return _captured.get() is not None


@dataclass(slots=True)
class BlockedWrites:
    """All writes that were stopped, on any way out, in order; but for those that were only tried out."""

    writes: list[BlockedWrite] = field(default_factory=list)

    def stop(self, way: str, method: str, target: str, body: Json = None) -> WriteBlocked:
        """What to raise in the place of the write."""
        who = current_caller.get()
        hidden = redact_untyped(body)
        fields = tuple(str(path) for path, _ in leaf_fields(hidden))
        write = BlockedWrite(way, method, target, "" if who is None else str(who.key), hidden, fields)
        trial = _captured.get()
        (self.writes if trial is None else trial).append(write)
        return WriteBlocked(f"{write}: nothing may be written here; a preview only looks")


@dataclass(frozen=True, slots=True)
class WriteGuard:
    """A tap that lets reads pass, and what a cluster only rehearses; and hands them on to the tap behind it, if any."""

    way: str
    blocked_writes: BlockedWrites
    is_cluster: bool = False
    behind: HttpInterceptor | None = None

    def on_request(self, request: HttpRequest) -> HttpResponse | None:
        """See Tap."""
        if not (request.method in _READ_METHODS or (self.is_cluster and is_server_dry_run(request))):
            raise self.blocked_writes.stop(self.way, request.method, urlsplit(request.url).path, _decoded(request.body))
        return None if self.behind is None else self.behind.on_request(request)

    def on_response(self, request: HttpRequest, answer: HttpResponse) -> HttpResponse:
        """See Tap."""
        return answer if self.behind is None else self.behind.on_response(request, answer)

    def on_error(self, request: HttpRequest, error: RemoteError) -> None:
        """See Tap."""
        if self.behind is not None:
            self.behind.on_error(request, error)


def is_server_dry_run(request: HttpRequest) -> bool:
    """Whether a cluster would do all of it but keep it: by the query, or for a deletion by its body."""
    asked = [value for name, value in parse_qsl(urlsplit(request.url).query) if name == "dryRun"]
    if request.method == "DELETE" and not asked:
        body = _decoded(request.body)
        said = body.get("dryRun") if isinstance(body, dict) else None
        asked = list(map(str, said)) if isinstance(said, list) else []
    return asked == ["All"]


def leaf_fields(body: Json, at: Path = _ROOT_PATH) -> Iterator[tuple[Path, Json]]:
    """The places that a body sets, and to what; a list is set as a whole."""
    if not isinstance(body, dict) or not body:
        if at.steps:
            yield at, body
        return
    for name, member in body.items():
        yield from leaf_fields(member, at / name)


def _decoded(body: bytes | None) -> Json:
    if not body:
        return None
    try:
        found: Json = msgspec.json.decode(body)
    except msgspec.DecodeError:
        return f"({len(body)} bytes)"
    return found


BYPASSING_CLIENT: Final = "past our client"


class ProcessGuard:
    """Closed around a task, what that starts, and every thread that begins meanwhile: nobody knows who started it."""

    __slots__ = ("_before", "blocked_writes")

    def __init__(self, blocked_writes: BlockedWrites) -> None:
        self.blocked_writes = blocked_writes
        self._before = WeakSet(threading.enumerate())

    def is_around(self, thread: threading.Thread) -> bool:
        """Whether the thread began since."""
        return thread not in self._before


_task_guard: Final[ContextVar[ProcessGuard | None]] = ContextVar("inside", default=None)
# Those that are closed now, the newest last.
_active_guards: Final[list[ProcessGuard]] = []
_exempt: Final[ContextVar[bool]] = ContextVar("trusted", default=False)
_hook_installed: Final = threading.Event()


class process_guarded_by:  # noqa: N801 - a context manager is called like a function
    """What goes past our client inside, in this task and those that it starts, and in new threads, is stopped."""

    __slots__ = ("_seal", "_token")

    def __init__(self, blocked_writes: BlockedWrites) -> None:
        self._seal = ProcessGuard(blocked_writes)
        self._token: Token[ProcessGuard | None] | None = None

    def __enter__(self) -> None:
        if not _hook_installed.is_set():
            _hook_installed.set()
            # For good: the interpreter has no way to take it back.
            sys.addaudithook(_audit)
        _active_guards.append(self._seal)
        self._token = _task_guard.set(self._seal)

    def __exit__(self, *_: object) -> None:
        assert self._token is not None
        _task_guard.reset(self._token)
        _active_guards.remove(self._seal)


class exempt_from_guard:  # noqa: N801 - a context manager is called like a function
    """For what of ours has a way out of its own, and only logs in there."""

    __slots__ = ("_token",)

    def __init__(self) -> None:
        self._token: Token[bool] | None = None

    def __enter__(self) -> None:
        self._token = _exempt.set(True)

    def __exit__(self, *_: object) -> None:
        assert self._token is not None
        _exempt.reset(self._token)


def _audit(event: str, said: tuple[Any, ...]) -> None:
    hear = _AUDIT_EVENTS.get(event)
    if hear is not None and _active_guards and not _exempt.get() and (seal := _current_guard()) is not None:
        hear(seal, said)


def _current_guard() -> ProcessGuard | None:
    inside = _task_guard.get()
    if inside is not None:
        # A task may outlive what it was started in.
        return inside if inside in _active_guards else None
    thread = threading.current_thread()
    return next((seal for seal in reversed(_active_guards) if seal.is_around(thread)), None)


def _on_connect(seal: ProcessGuard, said: tuple[Any, ...]) -> None:
    opened, address = said
    if not isinstance(opened, ClientSocket):
        # Most libraries close what they cannot connect, but for this reason they do not know.
        opened.close()
        raise seal.blocked_writes.stop(BYPASSING_CLIENT, "connect", _address_text(address))


def _on_send(seal: ProcessGuard, said: tuple[Any, ...]) -> None:
    _, address = said
    # One that is connected had to pass by then.
    if address is not None:
        raise seal.blocked_writes.stop(BYPASSING_CLIENT, "send", _address_text(address))


def _on_subprocess(seal: ProcessGuard, said: tuple[Any, ...]) -> None:
    # Its arguments may hold what nobody should read.
    program = said[0].decode(errors="replace") if isinstance(said[0], bytes) else str(said[0])
    raise seal.blocked_writes.stop(BYPASSING_CLIENT, "start", program.partition(" ")[0])


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
