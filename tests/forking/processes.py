"""Commands of `setpoint` as processes forked from a server that has it imported: that takes a tenth of the time.

Outside of tests, on other systems than Linux, and where a command needs other settings of the interpreter, it is
started as usual.
"""

import atexit
import marshal
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import IO, Any, Final, TypeAlias

from tests.forking.server import Order

SETPOINT: Final = str(Path(sys.executable).with_name("setpoint"))
_SERVER: Final = str(Path(__file__).with_name("server.py"))
_LAUNCHER: Final = Path(__file__).with_name("launcher.txt")
# Variables that an interpreter reads when it starts: those of the fork server.
_INTERPRETER_VARIABLES: Final = {"PYTHONUTF8": "1"}
_INTEGER: Final = struct.Struct("i")
Stream: TypeAlias = int | IO[Any]


@dataclass(slots=True)
class Forked:
    """A process that the fork server has started: as much of `subprocess.Popen` as the tests need."""

    pid: int
    args: Sequence[str]
    _report: int
    returncode: int | None = field(default=None, init=False)

    def poll(self) -> int | None:
        """The exit code, `None` before the end."""
        self._read_report(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """The exit code, once there is one; `subprocess.TimeoutExpired` when that takes longer."""
        self._read_report(timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Sends it a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Asks it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """kill -9."""
        self.send_signal(signal.SIGKILL)

    def _read_report(self, timeout: float | None) -> None:
        if self.returncode is not None or not select.select([self._report], [], [], timeout)[0]:
            return
        text = os.read(self._report, _INTEGER.size)
        os.close(self._report)
        # Without a report: the server was killed, and with it all that it started.
        (self.returncode,) = _INTEGER.unpack(text) if text else (-signal.SIGKILL,)


Process: TypeAlias = subprocess.Popen[bytes] | Forked


class _Server:
    """The fork server, seen from the tests. When this process is killed, the server ends by itself."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # Processes that the tests started, not a launcher, by their id: once one has ended, another may get its id.
        self._started: dict[int, Forked] = {}
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH", "HOME") if name in os.environ}
            # In a temporary folder: the path of a socket has to be short. It is removed with this object.
            self._folder = tempfile.TemporaryDirectory(prefix="setpoint-fork-")
            self.address = str(Path(self._folder.name, "server"))
            self._process = subprocess.Popen(
                # Without the folder of the script on sys.path.
                [sys.executable, "-P", _SERVER, str(theirs.fileno()), self.address],
                stdin=subprocess.DEVNULL,
                env={**kept, **_INTERPRETER_VARIABLES},
                cwd=os.sep,
                pass_fds=[theirs.fileno()],
            )
        self.pid = self._read()

    def start(self, order: Order, streams: Sequence[int]) -> Forked:
        report, reported = os.pipe()
        with self._lock:
            socket.send_fds(self._control, [marshal.dumps(tuple[Any, ...](order))], [*streams, reported])
            os.close(reported)
            pid = self._read()
            self._started[pid] = Forked(pid, (order.program, *order.arguments), report)
            return self._started[pid]

    def is_started_by_tests(self, pid: int) -> bool:
        """Whether a child of the server was started by the tests, not by a launcher."""
        started = self._started.get(pid)
        return started is not None and started.poll() is None

    def close(self) -> None:
        """Ends the server, and all that it has started."""
        self._control.close()
        self._process.wait()
        self._folder.cleanup()

    def _read(self) -> int:
        text = self._control.recv(_INTEGER.size)
        assert text, "the fork server has ended"
        (number,) = _INTEGER.unpack(text)
        assert isinstance(number, int)
        return number


@cache
def _server() -> _Server:
    server = _Server()
    atexit.register(server.close)
    return server


@dataclass(frozen=True, slots=True)
class Start:
    """A command line, with its folder, environment and streams."""

    command: Sequence[str]
    folder: Path
    environment: Mapping[str, str]
    stdin: Stream = subprocess.DEVNULL
    stdout: Stream = subprocess.DEVNULL
    stderr: Stream = subprocess.DEVNULL
    # Whether its standard input is to be its controlling terminal.
    has_terminal: bool = False


def can_fork() -> bool:
    """Whether there can be a fork server: only in tests on Linux. `make soak` starts its processes as usual."""
    return sys.platform == "linux" and "PYTEST_VERSION" in os.environ


def is_forked(start: Start) -> bool:
    """Whether the command is forked by the fork server, not started as usual."""
    given = {name: text for name, text in start.environment.items() if name.startswith("PYTHON")}
    same = {
        **_INTERPRETER_VARIABLES,
        **({"PYTHONPATH": os.environ["PYTHONPATH"]} if "PYTHONPATH" in os.environ else {}),
    }
    return can_fork() and start.command[0] == SETPOINT and given == same


def fork(start: Start) -> Forked:
    """Starts it, as the leader of a new session."""
    with Path(os.devnull).open("r+b", buffering=0) as nowhere:
        streams = [_number(start.stdin, nowhere), _number(start.stdout, nowhere)]
        streams.append(streams[1] if start.stderr == subprocess.STDOUT else _number(start.stderr, nowhere))
        program, *arguments = start.command
        order = Order(program, [*arguments], str(start.folder), dict(start.environment), start.has_terminal)
        return _server().start(order, streams)


def write_launcher(file: Path, program: str, *arguments: str) -> None:
    """Makes `file` a program that runs `program` in the fork server: for callers that start an executable file."""
    text = _LAUNCHER.read_text(encoding="utf-8")
    values = {"ADDRESS": _server().address, "PROGRAM": program, "ARGUMENTS": repr(arguments), "PYTHON": sys.executable}
    for name, value in values.items():
        text = text.replace(f"@{name}@", value)
    file.write_text(text, encoding="utf-8")
    file.chmod(0o755)


def path_with_launcher(folder: Path) -> str:
    """A PATH whose first `setpoint` is the fork server's, where there can be one; for shells."""
    rest = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    if not can_fork():
        return rest
    folder.mkdir(exist_ok=True)
    write_launcher(folder / "setpoint", SETPOINT)
    return os.pathsep.join([str(folder), rest])


def launched_now() -> list[str]:
    """The ids of running processes that launchers started."""
    if not _server.cache_info().currsize:
        return []
    pid = _server().pid
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    return [child for child in children if not _server().is_started_by_tests(int(child))]


def _number(stream: Stream, nowhere: IO[bytes]) -> int:
    if stream == subprocess.DEVNULL:
        return nowhere.fileno()
    return stream if isinstance(stream, int) else stream.fileno()


def run(start: Start, timeout: float) -> "subprocess.CompletedProcess[str]":
    """Runs the command; its exit code, stdout and stderr."""
    if not is_forked(start):
        return subprocess.run(
            start.command,
            cwd=start.folder,
            env=start.environment,
            capture_output=True,
            encoding="utf-8",
            timeout=timeout,
            check=False,
        )
    (out, out_end), (err, err_end) = os.pipe(), os.pipe()
    process = fork(Start(start.command, start.folder, start.environment, stdout=out_end, stderr=err_end))
    os.close(out_end)
    os.close(err_end)
    try:
        printed = _read_both(out, err, time.monotonic() + timeout)
        code = process.wait(timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    finally:
        os.close(out)
        os.close(err)
    return subprocess.CompletedProcess(list(start.command), code, *(text.decode("utf-8") for text in printed))


def _read_both(out: int, err: int, end: float) -> tuple[bytes, bytes]:
    printed = {out: b"", err: b""}
    is_open = {out, err}
    while is_open:
        ready, _, _ = select.select([*is_open], [], [], max(0.0, end - time.monotonic()))
        if not ready:
            raise subprocess.TimeoutExpired("setpoint", 0, printed[out], printed[err])
        for descriptor in ready:
            text = os.read(descriptor, 1 << 16)
            printed[descriptor] += text
            if not text:
                is_open.remove(descriptor)
    return printed[out], printed[err]
