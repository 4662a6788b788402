"""The group `cluster`: 10,000 custom resources of a real API server, listed, watched and cached.

Compares `setpoint run`, the client of setpoint alone, and peers. Each runs in a process of its own; listings are
measured one after the other.
"""

from collections.abc import Generator, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import click
import msgspec

from benchmarks.comparison import BenchmarkSettings, WrongResult
from benchmarks.fleet import FLEET, new_fleet
from benchmarks.fleet_server import FleetServer, find_assets, running_server
from benchmarks.impersonation import impersonation
from benchmarks.measured_process import CustomResourceKind, Job, MeasuredProcess, Usage, run_job
from benchmarks.peer_packages import Peers
from benchmarks.scenarios import Benchmark, Measurement, Scenario, Unit, Unmeasured, compared
from tests.cluster.assets import Assets, Missing

START_CPU: Final = "10,000 custom resources: start, until all are heard of: CPU time"
START_WALL: Final = "10,000 custom resources: start, until all are heard of: by the clock"
MEMORY_EACH: Final = "10,000 custom resources: memory at rest, each, beyond that of a process without any"
MEMORY_ALL: Final = "10,000 custom resources: memory at rest, all of the process"
RECONCILE: Final = "10,000 custom resources: a look at one in which nothing moved: CPU time"
REQUESTS: Final = "10,000 custom resources: requests to the cluster, besides watches"
EDIT_CPU: Final = "10,000 custom resources: a fifth is edited at once, each until that is kept: CPU time"
OURS: Final = "ours: setpoint run"
OURS_BEYOND_BARE: Final = "ours, without the bare lists"
BARE: Final = "our client: the bare lists, nothing is kept"
TREES: Final = "our client: everything is kept as trees"
STREAM: Final = "our client: the bare events, nothing is kept"
OURS_START: Final = "ours: the start"
FIRST_RECONCILE: Final = "ours: the first look at each"
LATER_RECONCILE: Final = "ours: a later look at each"

RESOURCES: Final = 10_000
# The watch cache of an API server without recent changes holds about 3,000 events of a burst.
EDITS: Final = 2_000
# Of a round, when requests as a ServiceAccount are compared with those of the process itself.
REQUESTS_EACH: Final = 200
# More than there are templates.
_MIN_RESOURCES: Final = 60
_STARTS: Final = 3
_EMPTY_NAMESPACE: Final = "empty"
_SETPOINT_RUN: Final = "benchmarks.list_watch_setpoint_run"
_SETPOINT_CLIENT: Final = "benchmarks.list_watch_setpoint_client"


def benchmarks(peers: Peers, settings: BenchmarkSettings) -> Generator[Benchmark, None, None]:
    """All on one API server. Its binaries are built first if there are none."""
    assets = find_assets(lambda line: click.echo(line, err=True))
    if isinstance(assets, Missing):
        yield Unmeasured("10,000 custom resources", assets.reason)
        return
    with fleet_in_cluster(assets, settings) as fleet:
        scenarios = ClusterScenarios(fleet, peers)
        yield Scenario(lambda: scenarios.list_and_reconcile(min(_STARTS, settings.rounds)))
        yield Scenario(lambda: scenarios.watch_edits(settings.scaled(EDITS)))
        yield Scenario(lambda: impersonation(fleet.server.access, settings.scaled(REQUESTS_EACH)))


@dataclass(frozen=True, slots=True)
class FleetInCluster:
    """An API server with a fleet, and the folder with its kubeconfig and the fleet, for the measured processes."""

    server: FleetServer
    folder: Path


@contextmanager
def fleet_in_cluster(assets: Assets, settings: BenchmarkSettings) -> Iterator[FleetInCluster]:
    """A new API server with a new fleet; it is stopped at the end of the block."""
    fleet = new_fleet(max(_MIN_RESOURCES, settings.scaled(RESOURCES)))
    with TemporaryDirectory(prefix="setpoint-bench-") as name, running_server(assets, Path(name), fleet) as server:
        fleet.write(Path(name, FLEET))
        yield FleetInCluster(server, Path(name))


class ClusterScenarios:
    """Measures listing, reconciling and watching the fleet: `setpoint run`, the client of setpoint, and the peers."""

    def __init__(self, fleet: FleetInCluster, peers: Peers) -> None:
        self._server = fleet.server
        self._folder = fleet.folder
        caching_clients = {TREES: _SETPOINT_CLIENT, **{peer.name: peer.module for peer in peers.caching_clients}}
        self.list_entry_points = {name: f"{module}:start" for name, module in caching_clients.items()}
        self.watch_entry_points = {name: f"{module}:watch_and_cache" for name, module in caching_clients.items()}

    def list_and_reconcile(self, times: int) -> tuple[Measurement, ...]:
        """The usage of listing all resources, the best of `times` starts; and of reconciling all of them again."""
        entry_points = {OURS: f"{_SETPOINT_RUN}:start", BARE: f"{_SETPOINT_CLIENT}:list_only", **self.list_entry_points}
        starts = {name: self.list_usage(entry_point) for name, entry_point in entry_points.items()}
        for _ in range(1, times):
            starts = {name: _best(usage, self.list_usage(entry_points[name])) for name, usage in starts.items()}
        first = self.list_usage(f"{_SETPOINT_RUN}:first_reconcile")
        later = self.list_usage(f"{_SETPOINT_RUN}:later_reconcile")
        return (
            *_start_measurements(starts),
            *self._memory_measurements({OURS: later, **{name: starts[name] for name in self.list_entry_points}}),
            *_reconcile_measurements(starts[OURS], first, later),
        )

    def watch_edits(self, edits: int) -> tuple[Measurement, ...]:
        """The usage of receiving many edits. All processes are ready before the first edit."""
        setpoint = {OURS: f"{_SETPOINT_RUN}:watch_and_cache", STREAM: f"{_SETPOINT_CLIENT}:watch_only"}
        usages = self.watch_usages({**setpoint, **self.watch_entry_points}, edits)
        return compared(EDIT_CPU, {name: usage.cpu / edits for name, usage in usages.items()}, Unit.SECONDS)

    def watch_usages(self, entry_points: Mapping[str, str], edits: int) -> Mapping[str, Usage]:
        """The usage of each process that receives `edits` edits; WrongResult for one that missed an event."""
        jobs = {name: self._job(entry_point, events=edits) for name, entry_point in entry_points.items()}
        with ExitStack() as stack:
            processes = {name: stack.enter_context(MeasuredProcess(job)) for name, job in jobs.items()}
            for process in processes.values():
                process.wait_until_ready()
            self._server.edit(edits)
            usages = {name: process.finish() for name, process in processes.items()}
        for name, usage in usages.items():
            if usage.number != edits or usage.requests:
                raise WrongResult(f"{name} heard of {usage.number} edits, not of {edits}, in {usage.requests} requests")
        return usages

    def _memory_measurements(self, full: Mapping[str, Usage]) -> tuple[Measurement, ...]:
        entry_points = {OURS: f"{_SETPOINT_RUN}:later_reconcile", **self.list_entry_points}
        empty = {name: self.list_usage(entry_point, _EMPTY_NAMESPACE) for name, entry_point in entry_points.items()}
        each = {name: (usage.memory - empty[name].memory) / usage.number for name, usage in full.items()}
        return (
            *compared(MEMORY_EACH, each, Unit.BYTES),
            *compared(MEMORY_ALL, {name: usage.memory for name, usage in full.items()}, Unit.BYTES),
        )

    def list_usage(self, entry_point: str, namespace: str | None = None) -> Usage:
        """The usage of a process that lists the fleet; WrongResult when it missed a resource."""
        job = self._job(entry_point, namespace)
        usage = run_job(job)
        if usage.number != job.expected:
            raise WrongResult(f"{entry_point} knows of {usage.number} resources, not of {job.expected}")
        return usage

    def _job(self, entry_point: str, namespace: str | None = None, events: int = 0) -> Job:
        fleet = self._server.fleet
        kinds = tuple(CustomResourceKind(kind.group, kind.version, kind.kind, kind.plural) for kind in fleet.served)
        expected = fleet.count if namespace is None else 0
        resource_version = self._server.resource_version() if events else ""
        return Job(entry_point, str(self._folder), kinds, expected, namespace, resource_version, events)


def _best(one: Usage, other: Usage) -> Usage:
    """The lower value of each field."""
    cpu, wall, memory = min(one.cpu, other.cpu), min(one.wall, other.wall), min(one.memory, other.memory)
    return msgspec.structs.replace(one, cpu=cpu, wall=wall, memory=memory)


def _start_measurements(starts: Mapping[str, Usage]) -> tuple[Measurement, ...]:
    ours, *peers = compared(START_CPU, {name: usage.cpu for name, usage in starts.items()}, Unit.SECONDS)
    return (
        ours,
        Measurement(START_CPU, OURS_BEYOND_BARE, starts[OURS].cpu - starts[BARE].cpu, Unit.SECONDS),
        *peers,
        *compared(START_WALL, {name: usage.wall for name, usage in starts.items()}, Unit.SECONDS),
    )


def _reconcile_measurements(start: Usage, first: Usage, later: Usage) -> tuple[Measurement, ...]:
    reconciles = {FIRST_RECONCILE: first, LATER_RECONCILE: later}
    for name, usage in reconciles.items():
        if usage.requests:
            raise WrongResult(f"{name} took {usage.requests} requests to the cluster, and none is needed")
    return (
        *compared(RECONCILE, {name: usage.cpu / usage.number for name, usage in reconciles.items()}, Unit.SECONDS),
        *(
            Measurement(REQUESTS, name, usage.requests, Unit.NUMBER)
            for name, usage in {OURS_START: start, **reconciles}.items()
        ),
    )
