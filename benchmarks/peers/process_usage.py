"""The CPU time and memory of a process and its children, as Linux accounts for them."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.process_tree import process_cpu

_PROC: Final = Path("/proc")


@dataclass(frozen=True, slots=True)
class Reading:
    """The CPU seconds that a process has used, at a time of the monotonic clock."""

    cpu: float
    wall: float

    def since(self, before: "Reading") -> "Reading":
        """The difference."""
        return Reading(self.cpu - before.cpu, self.wall - before.wall)


@dataclass(frozen=True, slots=True)
class Memory:
    """Resident bytes: now, and the peak since the start of the process."""

    now: int
    peak: int


class ProcessTree:
    """A process, its children, and theirs."""

    def __init__(self, pid: int) -> None:
        self._pid = pid

    def read(self) -> Reading:
        """The CPU time so far; that of ended children is in their parent's account."""
        return Reading(sum(process_cpu(pid, with_children=True) for pid in self._pids()), time.monotonic())

    def memory(self) -> Memory:
        """The memory of all processes."""
        statuses = [(_PROC / str(pid) / "status").read_text(encoding="utf-8") for pid in self._pids()]
        return Memory(*(sum(status_bytes(status, name) for status in statuses) for name in ("VmRSS", "VmHWM")))

    def _pids(self) -> Iterator[int]:
        remaining = [self._pid]
        while remaining:
            pid = remaining.pop()
            yield pid
            for children in (_PROC / str(pid) / "task").glob("*/children"):
                remaining += map(int, children.read_text(encoding="utf-8").split())


def status_bytes(status: str, name: str) -> int:
    """The field `name` of a /proc/PID/status."""
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith(f"{name}:"))


# A process is at rest when it has used less CPU time than this within so many seconds.
_REST_SECONDS: Final = 3.0
_REST_CPU: Final = 0.06
_POLL_SECONDS: Final = 0.1
_TIMEOUT_SECONDS: Final = 120.0


def wait_until_rest(tree: ProcessTree) -> Reading:
    """Waits until the process is at rest: all CPU time until now, and the time when the rest began."""
    readings = [tree.read()]
    end = readings[0].wall + _TIMEOUT_SECONDS
    while (rest := start_of_rest(readings)) is None:
        if readings[-1].wall > end:
            raise TimeoutError(f"the process was not at rest within {_TIMEOUT_SECONDS:.0f} s")
        time.sleep(_POLL_SECONDS)
        readings.append(tree.read())
    return rest


def start_of_rest(readings: list[Reading]) -> Reading | None:
    """The last CPU time, and when the rest began; None if there is none yet. `readings` are the oldest first."""
    last = readings[-1]
    before = next((one for one in reversed(readings) if last.wall - one.wall >= _REST_SECONDS), None)
    if before is None or last.cpu - before.cpu >= _REST_CPU:
        return None
    return Reading(last.cpu, before.wall)
