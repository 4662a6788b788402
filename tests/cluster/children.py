"""Programs that run beside the tests and never outlive them, whatever ends the tests."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final

from tests.forking.processes import Process, Start, fork, is_forked

# Nothing is known of it any more, or only its parent has not noticed its end.
GONE: Final = ("", "Z")
# As much of a log as a reader of a failed test wants to see.
_SHOWN_LINES: Final = 25
_SHOWN_CHARACTERS: Final = 400
_PATIENCE: Final = 120.0
# Linux ends the program together with its parent, even after kill -9. The parent may be gone already by
# the time of the request, so that is looked at afterwards. Elsewhere the program is only replaced.
_DIE_WITH_PARENT: Final = """
import ctypes, os, signal, sys
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    if os.getppid() != int(sys.argv[1]):
        sys.exit("the parent process is gone")
os.execv(sys.argv[2], sys.argv[2:])
"""


@dataclass(slots=True)
class Child:
    """A program that can be started and ended again and again; all that it says goes to the file `log`."""

    command: Sequence[str]
    log: Path
    folder: Path
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    _process: Process | None = field(default=None, init=False)

    @property
    def name(self) -> str:
        """The program's name."""
        return Path(self.command[0]).name

    @property
    def pid(self) -> int | None:
        """The id of the process, `None` when it does not run."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    @property
    def code(self) -> int | None:
        """The exit code of the last run, `None` before its end."""
        return None if self._process is None else self._process.poll()

    def start(self) -> None:
        """Runs it. It has a session of its own: Ctrl-C is for the tests, which then end it in good order."""
        assert self.pid is None, f"{self.name} runs already"
        with self.log.open("ab") as log:
            start = Start(self.command, self.folder, self.environment, stdout=log, stderr=subprocess.STDOUT)
            # To Linux the parent is a thread: a child of one that ends early would end with it.
            self._process = fork(start) if is_forked(start) else _lasting_thread().submit(_open, start).result()

    def stop(self, patience: float = _PATIENCE) -> None:
        """Asks it to end and waits; what has not listened after `patience` seconds is killed."""
        try:
            if self._process is not None:
                self._process.terminate()
                self._process.wait(patience)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """kill -9, to it and whatever it started."""
        self._send(signal.SIGKILL)
        if self._process is not None:
            self._process.wait()

    def freeze(self) -> None:
        """It is stopped and answers no request, with all its connections open."""
        self._send(signal.SIGSTOP)

    def thaw(self) -> None:
        """It goes on where it was frozen."""
        self._send(signal.SIGCONT)

    def tail(self) -> str:
        """The last lines that it said."""
        return last_lines(self.log)

    def _send(self, number: signal.Signals) -> None:
        pid = self.pid
        if pid is not None:
            os.killpg(pid, number)


def _open(start: Start) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _DIE_WITH_PARENT, str(os.getpid()), *start.command],
        stdin=start.stdin,
        stdout=start.stdout,
        stderr=start.stderr,
        cwd=start.folder,
        env=start.environment,
        start_new_session=True,
    )


def last_lines(log: Path) -> str:
    """The end of the file, as much as one wants to read."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines() if log.exists() else []
    return "\n".join(line[:_SHOWN_CHARACTERS] for line in lines[-_SHOWN_LINES:])


def state(pid: int) -> str:
    """What `ps` says of a process, one letter; one of `GONE` when it has ended."""
    shown = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return shown.stdout.strip()[:1]


def kill_starter(script: str, folder: Path) -> tuple[int, str]:
    """Runs a Python script that starts a process and prints its id, and kills the script with kill -9.

    Returns the id of the process, and its state before.
    """
    command, pipe = [sys.executable, "-c", script, str(folder)], subprocess.PIPE
    with subprocess.Popen(
        command, stdin=pipe, stdout=pipe, text=True, env={**os.environ, "PYTHONPATH": "."}
    ) as starter:
        assert starter.stdout is not None
        pid = int(starter.stdout.readline())
        before = state(pid)
        starter.kill()
    return pid, before


@cache
def _lasting_thread() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix="children")
