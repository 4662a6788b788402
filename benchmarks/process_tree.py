"""Runs a command, and reports the CPU time that it took with all processes that it left behind.

`python -m benchmarks.process_tree COMMAND` waits for the descendants of the command as well, also for those whose own
parent has ended: as a subreaper, this process becomes their parent. Linux only.
"""

import ctypes
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import Final

import msgspec

_ROOT: Final = Path(__file__).resolve().parents[1]
_PR_SET_CHILD_SUBREAPER: Final = 36
_TICKS: Final = os.sysconf("SC_CLK_TCK")


class TreeUsage(msgspec.Struct, frozen=True):
    """Seconds of CPU time of the command and of all its descendants, of the latter alone, and by the clock.

    The duration ends with the command: what it leaves behind keeps no one waiting.
    """

    code: int
    output: str
    cpu: float
    descendants_cpu: float
    wall: float


def run_tree(command: Sequence[str], environment: Mapping[str, str]) -> TreeUsage:
    """The usage of `command`, with everything that it started."""
    reaper = [sys.executable, "-m", "benchmarks.process_tree", *command]
    done = subprocess.run(
        reaper, env={**environment, "PYTHONPATH": str(_ROOT)}, stdout=subprocess.PIPE, cwd=_ROOT, check=True
    )
    return msgspec.json.decode(done.stdout, type=TreeUsage)


def _main(command: Sequence[str]) -> TreeUsage:
    # The command and its processes are to find the modules that they would find without this one.
    os.environ.pop("PYTHONPATH", None)
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    begun = time.monotonic()
    # A file: a pipe would be open for as long as a descendant has it.
    with TemporaryFile("w+") as written, subprocess.Popen(command, stdout=written, stderr=written) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        wall = time.monotonic() - begun
        # Ended, and not reaped yet: without its descendants.
        own = process_cpu(process.pid, with_children=False)
        code, cpu = _reaped(process.pid)
        process.returncode = code
        written.seek(0)
        output = written.read()
    with suppress(ChildProcessError):
        while True:
            cpu += _reaped(-1)[1]
    return TreeUsage(code, output, cpu, cpu - own, wall)


def _reaped(process: int) -> tuple[int, float]:
    """Exit code and CPU time of a process, with those of its descendants that it has waited for."""
    _, status, used = os.wait4(process, 0)
    return os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime


def process_cpu(process: int, *, with_children: bool) -> float:
    """CPU seconds of a process so far; with those of its children that have ended, if they are asked for."""
    return cpu_seconds(Path(f"/proc/{process}/stat").read_text(encoding="utf-8"), with_children=with_children)


def cpu_seconds(stat: str, *, with_children: bool) -> float:
    """User and system time in a /proc/PID/stat."""
    # The name of the program is in parentheses, and may have any character.
    fields = stat.rpartition(")")[2].split()
    return sum(map(int, fields[11 : 15 if with_children else 13])) / _TICKS


if __name__ == "__main__":
    sys.stdout.buffer.write(msgspec.json.encode(_main(sys.argv[1:])))
