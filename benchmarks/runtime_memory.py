"""A scenario: the memory of a process with many resources, measured in a new process that does nothing else."""

import subprocess
import sys
from pathlib import Path
from typing import Final

import msgspec

from benchmarks.buckets import USUAL, InMemoryStorage, body_of
from benchmarks.comparison import WrongResult
from benchmarks.process_memory import proc_status_bytes
from benchmarks.scenarios import Measurement, Unit
from benchmarks.setpoint_process import running_process
from benchmarks.settled_store import write_settled_store
from setpoint.core.decide import Decision

MEMORY: Final = "memory of a process with 100,000 buckets at rest"
EACH: Final = "each of them"
ALL: Final = "all of the process"
PEAK: Final = "all of the process, at its peak"
_ROOT: Final = Path(__file__).resolve().parents[1]


class MemoryUsage(msgspec.Struct):
    """Resident bytes at the start, when idle, and at the peak; and how many resources are in sync."""

    at_start: int
    idle: int
    peak: int
    resources: int


def memory(folder: Path, count: int) -> tuple[Measurement, ...]:
    """The memory of a process with `count` buckets."""
    path = folder / "many.db"
    write_settled_store(path, count, USUAL)
    command = (sys.executable, "-m", "benchmarks.runtime_memory", str(path))
    completed = subprocess.run(command, cwd=_ROOT, stdout=subprocess.PIPE, check=True)
    usage = msgspec.json.decode(completed.stdout, type=MemoryUsage)
    if usage.resources != count:
        raise WrongResult(f"{usage.resources} buckets are in sync, not {count}")
    return (
        Measurement(MEMORY, EACH, (usage.idle - usage.at_start) / count, Unit.BYTES),
        Measurement(MEMORY, ALL, usage.idle, Unit.BYTES),
        Measurement(MEMORY, PEAK, usage.peak, Unit.BYTES),
    )


def _measure_usage(path: Path) -> MemoryUsage:
    service = InMemoryStorage(lambda name: body_of(name, USUAL))
    at_start = proc_status_bytes("VmRSS")
    with running_process(path, service) as process:
        process.wait_until_idle()
        return MemoryUsage(
            at_start,
            proc_status_bytes("VmRSS"),
            proc_status_bytes("VmHWM"),
            process.decisions().get(Decision.IN_SYNC.value, 0),
        )


if __name__ == "__main__":
    print(msgspec.json.encode(_measure_usage(Path(sys.argv[1]))).decode())
