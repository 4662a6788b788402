"""Measures the fleet in several sizes, and how each quantity grows from one size to the next."""

import os
import sys
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import click

from benchmarks.comparison import BenchmarkSettings, WrongResult
from benchmarks.growth.exponents import exponents
from benchmarks.growth.fleet_usage import QUEUE, FleetUsage
from benchmarks.growth.phases import Phase
from benchmarks.growth.plots import write_plots
from benchmarks.growth.replica_process import ReplicaJob, run_replica
from benchmarks.growth.simulated_store import write_digests
from benchmarks.peer_packages import Peers
from benchmarks.scenarios import Benchmark, Measurement, Scenario, Unmeasured

SIZES: Final = (1_000, 10_000, 100_000, 1_000_000)
REPLICAS: Final = 4
# A fleet of this size or less is also that of a single process; of this size or more, also that of several.
LARGEST_OF_ONE, SMALLEST_OF_MANY = 100_000, 100_000
# A fleet up to this size is measured several times, and the turn with the lowest CPU time counts.
LARGEST_IN_TURNS, TURNS = 10_000, 3
WORKERS: Final = 20
# Processes that run at once: each may take two gigabytes.
_AT_ONCE: Final = 2


def benchmarks(_peers: Peers, settings: BenchmarkSettings) -> Generator[Benchmark, None, None]:
    """One scenario: every fleet, and the exponents."""
    if sys.platform != "linux":
        yield Unmeasured("growth", "memory is read from the /proc of Linux")
        return
    yield Scenario(lambda: measured_fleets(settings))


def measured_fleets(settings: BenchmarkSettings) -> tuple[Measurement, ...]:
    """The measurements of all fleets; the plots go to a folder, if the settings name one."""
    sizes = sorted({settings.scaled(size) for size in settings.sizes or SIZES})
    with TemporaryDirectory(prefix="setpoint-bench-") as name:
        digests = Path(name) / "digests"
        _log(f"{max(sizes):,} digests")
        _write_all_digests(digests, max(sizes))
        fleets = [_best_turn(digests, *fleet, settings) for fleet in fleets_of(sizes, settings)]
    if settings.plots is not None:
        write_plots(settings.plots, fleets)
    return tuple(measurements(fleets))


def fleets_of(sizes: Sequence[int], settings: BenchmarkSettings) -> Iterator[tuple[int, int]]:
    """The fleets to measure: their size, and the number of replicas."""
    smallest = settings.scaled(SMALLEST_OF_MANY)
    yield from ((size, 1) for size in sizes if size <= settings.scaled(LARGEST_OF_ONE))
    if max(sizes) > smallest:
        yield from ((size, REPLICAS) for size in sizes if size >= smallest)


def _write_all_digests(path: Path, count: int) -> None:
    """In as many processes as there are cores."""
    parts = [range(count * part // _AT_ONCE, count * (part + 1) // _AT_ONCE) for part in range(_AT_ONCE)]
    files = [path.with_suffix(f".{part}") for part in range(_AT_ONCE)]
    with ProcessPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(write_digests, files, parts))
    with path.open("wb") as whole:
        for file in files:
            whole.write(file.read_bytes())


def _best_turn(digests: Path, count: int, replicas: int, settings: BenchmarkSettings) -> FleetUsage:
    turns = min(TURNS, settings.rounds) if count <= LARGEST_IN_TURNS else 1
    fleets = [_measure(digests, count, replicas, settings.replicas) for _ in range(turns)]
    return min(fleets, key=lambda fleet: sum(map(fleet.cpu, fleet.measured_phases)))


def _measure(digests: Path, count: int, replicas: int, measured: int) -> FleetUsage:
    """What the first `measured` of the replicas took."""
    _log(f"{count:,} resources, replicas: {replicas}")
    jobs = [
        ReplicaJob(str(digests), count, one, replicas, WORKERS, tuple(Phase)) for one in range(min(measured, replicas))
    ]
    with ThreadPoolExecutor(min(_AT_ONCE, os.cpu_count() or 1)) as pool:
        fleet = FleetUsage(count, replicas, tuple(pool.map(run_replica, jobs)))
    if len(jobs) == replicas and sum(replica.own for replica in fleet.replicas) != count:
        raise WrongResult(f"{sum(replica.own for replica in fleet.replicas)} of {count} resources have a replica")
    return fleet


def measurements(fleets: Sequence[FleetUsage]) -> Iterator[Measurement]:
    """Every quantity of every fleet, then the exponents: of fleets with the same number of replicas."""
    for fleet in fleets:
        for name, quantity in fleet.quantities.items():
            yield Measurement(fleet.subject, name, *quantity)
    for processes, group in groupby(fleets, key=lambda fleet: fleet.processes):
        alike = list(group)
        for name in alike[0].quantities:
            values = [(fleet.count, fleet.quantities[name].value) for fleet in alike if name in fleet.quantities]
            # A queue that is shorter than this is empty as soon as each worker has taken one.
            least = WORKERS * alike[0].number if name.endswith(QUEUE) else 0
            yield from exponents(f"{processes}, {name}", values, least)


def _log(line: str) -> None:
    click.echo(line, err=True)
