"""A survey: the memory of a process that keeps many resources, measured in a process that has done nothing else."""

import subprocess
import sys
from pathlib import Path
from typing import Final

import msgspec

from benchmarks.buckets import USUAL, Service, body_of
from benchmarks.measuring import Disagreement
from benchmarks.residence import in_memory
from benchmarks.running import running
from benchmarks.settled import settle
from benchmarks.surveys import Reading, Unit
from setpoint.core.decide import Decision

MEMORY: Final = "memory of a process with 100,000 buckets at rest"
EACH: Final = "each of them"
ALL: Final = "all of the process"
PEAK: Final = "all of the process, at its peak"
_ROOT: Final = Path(__file__).resolve().parents[1]


class Found(msgspec.Struct):
    """Bytes in memory before the process knew of anything, at rest, and at most; how many resources were settled."""

    before: int
    after: int
    peak: int
    resources: int


def memory(folder: Path, count: int) -> tuple[Reading, ...]:
    """With so many buckets."""
    path = folder / "many.db"
    settle(path, count, USUAL)
    command = (sys.executable, "-m", "benchmarks.runtime_memory", str(path))
    done = subprocess.run(command, cwd=_ROOT, stdout=subprocess.PIPE, check=True)
    found = msgspec.json.decode(done.stdout, type=Found)
    if found.resources != count:
        raise Disagreement(f"{found.resources} buckets came to rest, not {count}")
    return (
        Reading(MEMORY, EACH, (found.after - found.before) / count, Unit.BYTES),
        Reading(MEMORY, ALL, found.after, Unit.BYTES),
        Reading(MEMORY, PEAK, found.peak, Unit.BYTES),
    )


def _found(path: Path) -> Found:
    service = Service(lambda name: body_of(name, USUAL))
    before = in_memory("VmRSS")
    with running(path, service) as process:
        process.until_at_rest()
        return Found(before, in_memory("VmRSS"), in_memory("VmHWM"), process.decisions().get(Decision.IN_SYNC.value, 0))


if __name__ == "__main__":
    print(msgspec.json.encode(_found(Path(sys.argv[1]))).decode())
