"""The fork server: a process that has `setpoint` loaded, and becomes the command whenever one is asked for.

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
# With which the interpreter ends when it cannot write what is left to be written.
_EXIT_BROKEN_STREAM: Final = 120
_MODULE: Final = "-m "
_ROOT: Final = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_INTEGER: Final = struct.Struct("i")
# No process here has a file with a higher number.
_ENOUGH: Final = 4096


class Order(NamedTuple):
    """What is to be started; its standard streams and the pipe for its exit status come with it."""

    # The path of a program of ours, or `-m MODULE` for one of the tests.
    program: str
    arguments: list[str]
    folder: str
    environment: dict[str, str]
    # Whether its standard input is to be its controlling terminal.
    has_terminal: bool


# In a child its files are closed: if it went there, it would close them again, when others have their numbers.
_LASTING: Final[list["Server"]] = []


class Server:
    """Forks on demand. `serve` returns in the child, with what it is to do; the server itself never returns.

    The tests give orders by `control`, and are told the exit status by a pipe. Launchers call at `listener`: the line
    tells them the status, and when it breaks off, what they launched is killed.
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

    def _take_order(self, line: socket.socket) -> Callable[[], object] | None:
        text, descriptors, _, _ = socket.recv_fds(line, _LARGEST, 4)
        if not text:
            self._hang_up(line)
            return None
        order: Order = Order(*marshal.loads(text))
        streams, reports = descriptors[:3], descriptors[3:]
        ready, tell_ready = os.pipe()
        pid = os.fork()
        if pid == 0:
            become(order, streams)
            os.write(tell_ready, b".")
            os.closerange(3, _ENOUGH)
            return _entry_of(order.program)
        self._reports[pid] = reports[0] if reports else os.dup(line.fileno())
        if not reports:
            self._launched[line] = pid
        for descriptor in (tell_ready, *streams):
            os.close(descriptor)
        # Only then it leads a session, which can be sent signals.
        os.read(ready, 1)
        os.close(ready)
        line.send(_INTEGER.pack(pid))
        return None

    def _hang_up(self, line: socket.socket) -> None:
        if line is self._control:
            # The tests are over, however they ended: all that was started ends with the server.
            os._exit(0)
        self._selector.unregister(line)
        line.close()
        pid = self._launched.pop(line, None)
        if pid in self._reports:
            os.kill(pid, signal.SIGKILL)


def become(order: Order, streams: Sequence[int]) -> None:
    """Makes this process what `execve` would have made of it."""
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
    """As the interpreter opens them when it starts."""
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
    """The programs of ours that can be asked for."""
    from setpoint.cli.entry import main as command
    from setpoint.terraform.entry import main as provider

    return {"setpoint": command, f"{_MODULE}setpoint.terraform.entry": provider}


def load() -> None:
    """Imports whatever a command may need."""
    import setpoint

    for found in pkgutil.walk_packages(setpoint.__path__, "setpoint."):
        if not found.name.endswith("__main__"):
            importlib.import_module(found.name)
    # What is there now is everybody's: no child has to look through it.
    gc.collect()
    gc.freeze()
    gc.disable()


def main(descriptor: int, path: str) -> Callable[[], object]:
    """The entry point of a program, in a process of its own."""
    control = socket.socket(fileno=descriptor)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(path)
    listener.listen()
    load()
    control.send(_INTEGER.pack(os.getpid()))
    _LASTING.append(Server(control, listener))
    return _LASTING[0].serve()


def run(entry: Callable[[], object]) -> None:
    """Runs a program to its end, as the interpreter does; but nothing that was loaded is taken apart again."""
    code: object = 0
    try:
        entry()
    except SystemExit as end:
        code = end.code
    except BaseException as error:  # noqa: BLE001 - the interpreter prints it, whatever it is
        sys.excepthook(*sys.exc_info())
        code = 1
        if isinstance(error, KeyboardInterrupt):
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGINT)
    if not isinstance(code, int | None):
        sys.stderr.write(f"{code}\n")
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]  # waits for threads, as at every end
    atexit._run_exitfuncs()
    # What was never awaited or closed says so when it goes.
    gc.collect()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        code = _EXIT_BROKEN_STREAM
    os._exit(code or 0)


if __name__ == "__main__":
    run(main(int(sys.argv[1]), sys.argv[2]))
