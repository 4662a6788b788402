"""What goes out past our client while nothing may be written: it cannot be told from a write, and is stopped as one.

The interpreter says beforehand whatever connects, sends or starts a program, in whichever library. An extension in
another language that does so by itself is not seen.
"""

import sys
import threading
from collections.abc import Callable, Mapping
from contextvars import ContextVar, Token
from typing import Any, Final
from weakref import WeakSet

from setpoint.clients.read_only import Blocks
from setpoint.clients.sockets import OurSocket

PAST_US: Final = "past our client"


class Seal:
    """Closed around a task, what that starts, and every thread that begins meanwhile: nobody knows who started it."""

    __slots__ = ("_before", "blocks")

    def __init__(self, blocks: Blocks) -> None:
        self.blocks = blocks
        self._before = WeakSet(threading.enumerate())

    def is_around(self, thread: threading.Thread) -> bool:
        """Whether the thread began since."""
        return thread not in self._before


_inside: Final[ContextVar[Seal | None]] = ContextVar("inside", default=None)
# Those that are closed now, the newest last.
_closed: Final[list[Seal]] = []
_trusted: Final[ContextVar[bool]] = ContextVar("trusted", default=False)
_listening: Final = threading.Event()


class sealed_by:  # noqa: N801 - a context manager is called like a function
    """What goes past our client inside, in this task and those that it starts, and in new threads, is stopped."""

    __slots__ = ("_seal", "_token")

    def __init__(self, blocks: Blocks) -> None:
        self._seal = Seal(blocks)
        self._token: Token[Seal | None] | None = None

    def __enter__(self) -> None:
        if not _listening.is_set():
            _listening.set()
            # For good: the interpreter has no way to take it back.
            sys.addaudithook(_hear)
        _closed.append(self._seal)
        self._token = _inside.set(self._seal)

    def __exit__(self, *_: object) -> None:
        assert self._token is not None
        _inside.reset(self._token)
        _closed.remove(self._seal)


class trusted:  # noqa: N801 - a context manager is called like a function
    """For what of ours has a way out of its own, and only logs in there."""

    __slots__ = ("_token",)

    def __init__(self) -> None:
        self._token: Token[bool] | None = None

    def __enter__(self) -> None:
        self._token = _trusted.set(True)

    def __exit__(self, *_: object) -> None:
        assert self._token is not None
        _trusted.reset(self._token)


def _hear(event: str, said: tuple[Any, ...]) -> None:
    hear = _EVENTS.get(event)
    if hear is not None and _closed and not _trusted.get() and (seal := _seal_here()) is not None:
        hear(seal, said)


def _seal_here() -> Seal | None:
    inside = _inside.get()
    if inside is not None:
        # A task may outlive what it was started in.
        return inside if inside in _closed else None
    thread = threading.current_thread()
    return next((seal for seal in reversed(_closed) if seal.is_around(thread)), None)


def _connects(seal: Seal, said: tuple[Any, ...]) -> None:
    opened, address = said
    if not isinstance(opened, OurSocket):
        # Most libraries close what they cannot connect, but for this reason they do not know.
        opened.close()
        raise seal.blocks.stop(PAST_US, "connect", _where(address))


def _sends(seal: Seal, said: tuple[Any, ...]) -> None:
    _, address = said
    # One that is connected had to pass by then.
    if address is not None:
        raise seal.blocks.stop(PAST_US, "send", _where(address))


def _starts(seal: Seal, said: tuple[Any, ...]) -> None:
    # Its arguments may hold what nobody should read.
    program = said[0].decode(errors="replace") if isinstance(said[0], bytes) else str(said[0])
    raise seal.blocks.stop(PAST_US, "start", program.partition(" ")[0])


def _where(address: object) -> str:
    return ":".join(map(str, address[:2])) if isinstance(address, tuple) else str(address)


_EVENTS: Final[Mapping[str, Callable[[Seal, tuple[Any, ...]], None]]] = {
    "socket.connect": _connects,
    "socket.sendto": _sends,
    "socket.sendmsg": _sends,
    "subprocess.Popen": _starts,
    "os.system": _starts,
    "os.posix_spawn": _starts,
    "os.exec": _starts,
}
