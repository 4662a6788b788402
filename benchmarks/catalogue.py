"""The group `catalogue`: what hundreds of kinds cost that are data, and many resources of 40 of them."""

import subprocess
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from benchmarks.buckets import USUAL
from benchmarks.catalogue_fleet import FleetUsage, KindsUsage, write_settled_fleet
from benchmarks.comparison import BenchmarkSettings, WrongResult
from benchmarks.peer_packages import Peers
from benchmarks.runtime_latency import COLD_CPU as BUCKETS_CPU
from benchmarks.runtime_latency import cold_start
from benchmarks.scenarios import Benchmark, Measurement, Scenario, Unit, compared
from benchmarks.server_process import running_server
from benchmarks.settled_store import write_settled_store

KINDS: Final = "kinds of the catalogue, in a process of its own"
KNOWN: Final = "their names, known at the start: CPU time for 300"
ROW: Final = "the row of one, read: CPU time"
TYPES: Final = "the types of one, made: CPU time"
TYPES_MEMORY: Final = "row and types of one: memory"
MEMORY: Final = "memory of a process with 10,000 resources of 40 kinds at rest"
EACH: Final = "each of them"
WITHOUT: Final = "the process without them, with the types of the kinds"
COLD_START: Final = "cold start: from opening the store with 10,000 resources of 40 kinds until ready"
BUCKETS: Final = "as many buckets: CPU time"
COLD_CPU: Final = "CPU time, with the types of the kinds"

_RESOURCES: Final = 10_000
_FEWEST: Final = 50
_ROOT: Final = Path(__file__).resolve().parents[1]
T = TypeVar("T")


def benchmarks(_peers: Peers, settings: BenchmarkSettings) -> Generator[Benchmark, None, None]:
    """The kinds, and a fleet of them."""
    yield Scenario(_kinds)
    yield Scenario(lambda: _fleet(max(_FEWEST, settings.scaled(_RESOURCES))))


def _kinds() -> tuple[Measurement, ...]:
    usage = _measured(KindsUsage, "kinds")
    return (
        Measurement(KINDS, KNOWN, usage.known_seconds / usage.kinds * 300, Unit.SECONDS),
        Measurement(KINDS, ROW, usage.row_seconds / usage.kinds, Unit.SECONDS),
        Measurement(KINDS, TYPES, usage.type_seconds / usage.kinds, Unit.SECONDS),
        Measurement(KINDS, TYPES_MEMORY, usage.memory / usage.kinds, Unit.BYTES),
    )


def _fleet(count: int) -> tuple[Measurement, ...]:
    fewer = count // 5
    small, large = _usage_with(fewer), _usage_with(count)
    each = (large.idle - small.idle) / (count - fewer)
    with tempfile.TemporaryDirectory(prefix="setpoint-bench-") as name:
        path = Path(name, "buckets.db")
        write_settled_store(path, count, USUAL)
        buckets = next(one.value for one in cold_start(path, count, USUAL) if one.name == BUCKETS_CPU)
    return (
        Measurement(MEMORY, EACH, each, Unit.BYTES),
        Measurement(MEMORY, WITHOUT, small.idle - fewer * each, Unit.BYTES),
        *compared(COLD_START, {BUCKETS: buckets, COLD_CPU: large.start_seconds}, Unit.SECONDS),
    )


def _usage_with(count: int) -> FleetUsage:
    with tempfile.TemporaryDirectory(prefix="setpoint-bench-") as name:
        store, state = Path(name, "state.db"), Path(name, "cloud.json")
        names = write_settled_fleet(store, state, count)
        with running_server("benchmarks.catalogue_server", str(state)) as url:
            usage = _measured(FleetUsage, "fleet", str(store), url, *map("/".join, names))
    if usage.resources != count or usage.in_sync < count:
        raise WrongResult(f"of {usage.resources} resources {usage.in_sync} are in sync, not {count}")
    return usage


def _measured(usage: type[T], *words: str) -> T:
    command = (sys.executable, "-m", "benchmarks.catalogue_fleet", *words)
    completed = subprocess.run(command, cwd=_ROOT, stdout=subprocess.PIPE, check=True)
    return msgspec.json.decode(completed.stdout, type=usage)
