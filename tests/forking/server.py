"""The fork server: a process that has `setpoint` imported, and forks a child for each command.

Run by `tests.forking.processes`. It imports nothing of the tests, and starts no thread: a fork would lose it.
"""

import atexit
import ctypes
import fcntl
import gc
import importlib
import io
import marshal
import os
import pkgutil
import runpy
import selectors
import signal
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, NamedTuple, TextIO

# More than an environment and a command line take.
_LARGEST: Final = 1 << 17
_PR_SET_PDEATHSIG: Final = 1
_TIOCSCTTY: Final = 0x540E
# The exit code of an interpreter that cannot flush its streams.
_EXIT_BROKEN_STREAM: Final = 120
_MODULE: Final = "-m "
_ROOT: Final = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_INTEGER: Final = struct.Struct("i")
# No process here has a file with a higher number.
_ENOUGH: Final = 4096


class Order(NamedTuple):
    """A command to start. Its standard streams and the pipe for its exit status are sent with it."""

    # The path of one of our programs, or `-m MODULE` for one of the tests.
    program: str
    arguments: list[str]
    folder: str
    environment: dict[str, str]
    # Whether its standard input is to be its controlling terminal.
    has_terminal: bool


# Kept alive: in a child its files are closed, and its destructor would close new files with the same numbers.
_KEPT_ALIVE: Final[list["Server"]] = []


class Server:
    """Forks on demand. `serve` returns in the child, with its entry point; in the server it never returns.

    The tests send orders over `control`, and get the exit status from a pipe. Launchers connect to `listener`: their
    connection carries the status, and when it breaks, the launched process is killed.
    """

    def __init__(self, control: socket.socket, listener: socket.socket) -> None:
        self._control = control
        self._listener = listener
        self._reports: dict[int, int] = {}
        self._launched: dict[socket.socket, int] = {}
        self._selector = selectors.DefaultSelector()

    def serve(self) -> Callable[[], object]:
        """The entry point, in a process that was just forked."""
        woken, wake = os.pipe()
        for end in (woken, wake):
            os.set_blocking(end, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        for source in (woken, self._control, self._listener):
            self._selector.register(source, selectors.EVENT_READ)
        while True:
            for key, _ in self._selector.select():
                if key.fd == woken:
                    os.read(woken, 1024)
                    self._report_ended()
                elif key.fileobj is self._listener:
                    self._selector.register(self._listener.accept()[0], selectors.EVENT_READ)
                elif isinstance(key.fileobj, socket.socket) and (entry := self._take_order(key.fileobj)) is not None:
                    return entry

    def _report_ended(self) -> None:
        while self._reports:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            report = self._reports.pop(pid)
            # A launcher may have been killed meanwhile.
            with suppress(BrokenPipeError):
                os.write(report, _INTEGER.pack(os.waitstatus_to_exitcode(status)))
            os.close(report)

    def _take_order(self, connection: socket.socket) -> Callable[[], object] | None:
        text, descriptors, _, _ = socket.recv_fds(connection, _LARGEST, 4)
        if not text:
            self._disconnected(connection)
            return None
        order: Order = Order(*marshal.loads(text))
        streams, reports = descriptors[:3], descriptors[3:]
        ready, ready_writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            set_up_process(order, streams)
            os.write(ready_writer, b".")
            os.closerange(3, _ENOUGH)
            return _entry_of(order.program)
        self._reports[pid] = reports[0] if reports else os.dup(connection.fileno())
        if not reports:
            self._launched[connection] = pid
        for descriptor in (ready_writer, *streams):
            os.close(descriptor)
        # From then on it leads a session, which can be sent signals.
        os.read(ready, 1)
        os.close(ready)
        connection.send(_INTEGER.pack(pid))
        return None

    def _disconnected(self, connection: socket.socket) -> None:
        if connection is self._control:
            # The tests have ended, or were killed: all that was started ends with the server.
            os._exit(0)
        self._selector.unregister(connection)
        connection.close()
        pid = self._launched.pop(connection, None)
        if pid in self._reports:
            os.kill(pid, signal.SIGKILL)


def set_up_process(order: Order, streams: Sequence[int]) -> None:
    """Sets up the forked process as `execve` would."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    os.setsid()
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for stream, descriptor in enumerate(streams):
        os.dup2(descriptor, stream)
    if order.has_terminal:
        fcntl.ioctl(0, _TIOCSCTTY, 0)
    os.chdir(order.folder)
    os.environ.clear()
    os.environ.update(order.environment)
    time.tzset()
    sys.argv = [order.program, *order.arguments]
    _open_streams()
    gc.enable()


def _open_streams() -> None:
    """Opens the standard streams as the interpreter does when it starts."""
    reader = io.BufferedReader(io.FileIO(0, "r", closefd=False))
    sys.stdin = io.TextIOWrapper(reader, sys.stdin.encoding, sys.stdin.errors)
    sys.stdout = _writer(1, sys.stdout, is_by_line=os.isatty(1))
    sys.stderr = _writer(2, sys.stderr, is_by_line=True)


def _writer(number: int, like: TextIO, *, is_by_line: bool) -> TextIO:
    buffer = io.BufferedWriter(io.FileIO(number, "w", closefd=False))
    return io.TextIOWrapper(buffer, like.encoding, like.errors, newline="\n", line_buffering=is_by_line)


def _entry_of(program: str) -> Callable[[], object]:
    found = _entries().get(os.path.basename(program))
    if found is not None:
        return found
    sys.path.insert(0, _ROOT)
    return lambda: runpy.run_module(program.removeprefix(_MODULE), run_name="__main__", alter_sys=True)


def _entries() -> dict[str, Callable[[], object]]:
    """Our programs, by name."""
    from setpoint.cli.entry import main as command
    from setpoint.terraform.entry import main as provider

    return {"setpoint": command, f"{_MODULE}setpoint.terraform.entry": provider}


def load() -> None:
    """Imports every module that a command may need."""
    import setpoint

    for found in pkgutil.walk_packages(setpoint.__path__, "setpoint."):
        if not found.name.endswith("__main__"):
            importlib.import_module(found.name)
    # Shared with all children: their garbage collector skips it.
    gc.collect()
    gc.freeze()
    gc.disable()


def main(descriptor: int, path: str) -> Callable[[], object]:
    """Serves; the entry point of a program, in the forked process."""
    control = socket.socket(fileno=descriptor)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(path)
    listener.listen()
    load()
    control.send(_INTEGER.pack(os.getpid()))
    _KEPT_ALIVE.append(Server(control, listener))
    return _KEPT_ALIVE[0].serve()


def run(entry: Callable[[], object]) -> None:
    """Runs a program to its end, as the interpreter does, but without the teardown of modules."""
    code: object = 0
    try:
        entry()
    except SystemExit as end:
        code = end.code
    except BaseException as error:  # noqa: BLE001 - the interpreter prints every exception
        sys.excepthook(*sys.exc_info())
        code = 1
        if isinstance(error, KeyboardInterrupt):
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGINT)
    if not isinstance(code, int | None):
        sys.stderr.write(f"{code}\n")
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]  # waits for threads, as the interpreter does
    atexit._run_exitfuncs()
    # So that coroutines never awaited and files never closed are reported.
    gc.collect()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        code = _EXIT_BROKEN_STREAM
    os._exit(code or 0)


if __name__ == "__main__":
    run(main(int(sys.argv[1]), sys.argv[2]))
