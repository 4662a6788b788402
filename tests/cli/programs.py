"""A program that runs beside a test: on a pseudo-terminal, or with a pipe for its output."""

import codecs
import os
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.cli.screen import Screen, plain
from tests.forking.processes import Process, Start, fork, is_forked

# Long enough for a busy machine: a test that passes does not wait for it.
DEADLINE: Final = 240.0
_CTRL_C: Final = b"\x03"
# Of the output, in the message of a failed test.
_SHOWN: Final = 2_000
# Only a session leader has a controlling terminal, which turns Ctrl-C into a signal.
_TAKE_TERMINAL: Final = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
)


@dataclass(frozen=True, slots=True)
class Call:
    """A command line with its working folder and its environment."""

    command: Sequence[str]
    folder: Path
    environment: Mapping[str, str]


def _restore_sigint() -> None:
    """Restores SIGINT: a test run in the background ignores it, and so would the programs that it starts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Program:
    """A program that is running. `written` is all that has been read of it so far."""

    def __init__(self, process: Process, output: int) -> None:
        self._process = process
        self._output = output
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._is_open = True
        self.written = ""

    @property
    def text(self) -> str:
        """Everything that was written, one frame after another, without colours and movements."""
        return plain(self.written)

    def until(self, condition: Callable[[], object]) -> None:
        """Reads on until `condition` holds; AssertionError when it does not in good time."""
        end = time.monotonic() + DEADLINE
        while not condition():
            assert self._is_open, f"it ended too early:\n{self.text[-_SHOWN:]}"
            self._read(end)

    def end(self) -> int:
        """The exit code, once the program has ended."""
        end = time.monotonic() + DEADLINE
        while self._is_open:
            self._read(end)
        return self._process.wait(DEADLINE)

    def interrupt(self) -> None:
        """Sends SIGINT, as Ctrl-C does."""
        self.send(signal.SIGINT)

    def send(self, number: signal.Signals) -> None:
        """Sends it a signal."""
        self._process.send_signal(number)

    def close(self) -> None:
        """Kills it, if it is still running."""
        self._process.kill()
        self._process.wait()
        os.close(self._output)

    def _read(self, end: float) -> None:
        ready, _, _ = select.select([self._output], [], [], max(0.0, end - time.monotonic()))
        assert ready, f"{DEADLINE:.0f} s were not enough:\n{self.text[-_SHOWN:]}"
        try:
            data = os.read(self._output, 65_536)
        except OSError:
            # How Linux says that the other end of a terminal is closed.
            data = b""
        self._is_open = bool(data)
        self._take(self._decoder.decode(data))

    def _take(self, text: str) -> None:
        self.written += text


class Terminal(Program):
    """A program on a terminal of `size`, columns by rows: all its standard streams are there."""

    def __init__(self, call: Call, size: tuple[int, int]) -> None:
        self.screen = Screen(*size)
        master, slave = os.openpty()
        termios.tcsetwinsize(slave, size[::-1])
        start = Start(call.command, call.folder, call.environment, slave, slave, slave, has_terminal=True)
        process = fork(start) if is_forked(start) else _with_terminal(start)
        os.close(slave)
        super().__init__(process, master)

    @property
    def lines(self) -> list[str]:
        """What can be read on the screen now."""
        return self.screen.lines

    def until_shown(self, *words: str) -> None:
        """Reads on until all of `words` are on the screen together."""
        self.until(lambda: all(word in "\n".join(self.lines) for word in words))

    def interrupt(self) -> None:
        """Presses Ctrl-C."""
        self.press(_CTRL_C)

    def press(self, keys: bytes) -> None:
        """Presses keys."""
        os.write(self._output, keys)

    def _take(self, text: str) -> None:
        super()._take(text)
        self.screen.write(text)


class Piped(Program):
    """A program whose output is read from a pipe; with its standard error, if `errors` is STDOUT."""

    def __init__(self, call: Call, errors: int = subprocess.DEVNULL) -> None:
        reading, writing = os.pipe()
        start = Start(call.command, call.folder, call.environment, stdout=writing, stderr=errors)
        process = fork(start) if is_forked(start) else _in_pipe(start)
        os.close(writing)
        super().__init__(process, reading)


def _with_terminal(start: Start) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _TAKE_TERMINAL, *start.command],
        stdin=start.stdin,
        stdout=start.stdout,
        stderr=start.stderr,
        env=start.environment,
        cwd=start.folder,
        start_new_session=True,
        preexec_fn=_restore_sigint,
    )


def _in_pipe(start: Start) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        start.command,
        stdin=start.stdin,
        stdout=start.stdout,
        stderr=start.stderr,
        env=start.environment,
        cwd=start.folder,
        preexec_fn=_restore_sigint,
    )
